"""A server that sends rows so close that squares underflow: what one triple then moves in a contribution."""

from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from protocols.alignment.interface import Positions, Union
from secure_kg.data.graph import ClientGraph, TripleArray
from secure_kg.federation.client.first_rows import public_first_rows
from secure_kg.federation.client.own_rows import OwnRows
from secure_kg.federation.client.private_learner import PrivateLearner
from secure_kg.federation.plan.run_plan import RunPlan
from secure_kg.learning.config import TrainingConfig
from secure_kg.privacy.release_record import ReleaseRecord
from tests.support.private_runs import private_config

DIM, CANDIDATES, ENTITIES, UNION, CLIENTS = 64, 16, 40, 43, 4
NONE = np.empty((0, 3), dtype=np.int64)
CONFIG = private_config(
    rounds=3, training=TrainingConfig(model="TransE", dim=DIM, negatives=CANDIDATES, norm=2, margin=10.0)
)
PLAN = RunPlan(CONFIG, CLIENTS)


def contributed(
    train: TripleArray, table: npt.NDArray[np.float32], folder: Path
) -> tuple[npt.NDArray[np.float64], PrivateLearner]:
    """What a client with these triples adds to the sum, before noise, after it has taken the server's table."""
    graph = ClientGraph(tuple(f"e{i:03}" for i in range(ENTITIES)), ("r0", "r1", "r2"), train, NONE, NONE)
    learner, block = PLAN.learner.make(CONFIG, graph, 1, torch.device("cpu")), PLAN.blocks[0]
    assert isinstance(learner, PrivateLearner)
    rows = OwnRows(Positions.fixed(Union(UNION, b"u" * 32)), block, learner, PLAN.row_layout(block, UNION), None)
    rows.start_public(public_first_rows(UNION, CONFIG.seed, block.width, block.span))
    rows.take(table, np.ones(UNION, dtype=np.uint32), 1)
    rows.begin_round()
    folder.mkdir()
    learner.entrust(ReleaseRecord(b"k" * 32, folder, 2, b"terms"))
    learner.train(2)
    return np.asarray(learner.contributed_block(block.name), dtype=np.float64), learner


def test_one_triple_moves_a_contribution_by_no_more_than_the_plan_says(tmp_path: Path) -> None:
    table = np.zeros((UNION, DIM), dtype=np.float32)
    _, learner = contributed(NONE, table, tmp_path / "look")
    candidates = learner._drawn(2).numpy()
    free = [i for i in range(ENTITIES) if i not in candidates]
    row = np.full(DIM, 2.6e-23, dtype=np.float32)
    row[0] = 3.8e-23
    for sign, one in zip(np.resize([1, -1], len(candidates)), candidates, strict=True):
        table[one] = sign * row
    triple = np.array([[free[0], 0, free[1]]], dtype=np.int64)
    (with_it, learner), (without, _) = (
        contributed(train, table, tmp_path / name) for train, name in ((triple, "with"), (NONE, "without"))
    )
    moved, plan = float(np.linalg.norm(with_it - without)), PLAN.private
    assert plan is not None
    assert 0 < moved <= plan._sensitivity(2)
