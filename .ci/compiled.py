"""The last step of `make setup`: compile modules to bytecode and loops to machine code, once.

Numba keeps machine code beside the modules, and pytest keeps test modules in a form of its own. Without this step every
rank of the first job, and every process of the tests, would compile all of it at the same time.
"""

import compileall
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import torch

from secure_kg.data.graph import ClientGraph
from secure_kg.learning.config import TrainingConfig
from secure_kg.learning.kge import KgeLearner
from secure_kg.queries.edges import QueryGraph
from secure_kg.queries.sampling import Sampler, hard_queries

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("protocols", "secure_kg", "launch", "benchmarks")
TRIPLES = np.array([[0, 0, 1], [1, 0, 2], [2, 1, 3], [3, 1, 0], [0, 1, 2]], dtype=np.int64)


def compile_loops() -> None:
    """Train, rank, draw and answer on a graph of five triples, by every kind of loop."""
    graph = ClientGraph(("a", "b", "c", "d"), ("r", "s"), TRIPLES[:3], TRIPLES[3:4], TRIPLES[4:])
    for model, norm in (("TransE", 1), ("TransE", 2), ("RotatE", 1), ("DistMult", 1)):
        config = TrainingConfig(model=model, dim=4, negatives=2, norm=norm)
        learner = KgeLearner(graph, config, torch.device("cpu"), 0, 1)
        learner.train(2)
        learner.evaluate("valid")
    whole, part = (QueryGraph.of(triples, 4, 2) for triples in (TRIPLES, TRIPLES[:2]))
    hard_queries(Sampler(whole, np.random.SeedSequence(0)), "2p", 1, part, whole)


if __name__ == "__main__":
    tests = [sys.executable, "-m", "pytest", "--collect-only", "-qq", "-p", "no:xdist"]
    collecting = subprocess.Popen(tests, cwd=ROOT, stdout=subprocess.DEVNULL)
    for package in PACKAGES:
        compileall.compile_dir(ROOT / package, quiet=1, rx=re.compile(r"/\.venv/"))
    compile_loops()
    collecting.wait()  # tests that cannot be read are the affair of `make test`
