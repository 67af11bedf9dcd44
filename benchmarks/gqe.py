"""Training on logical queries, one thread: `python -m benchmarks.gqe --help`.

With --dataset, how many queries a second each encoder trains on, by dimension: drawing, forward, backward and optimiser
step, all types in one batch. Figures are per second of the processor, the best of several stretches.

With --published, one encoder is trained on all train triples for a given processor time, and judged by published
queries, for choices by those of the validation part: means over a query's hard answers, over queries, over types. The
learning rate falls linearly to a fiftieth. Drawing counts as training, ranking does not.
"""

import argparse
import dataclasses
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from launch.command_line import OneLineParser, deliver, require_json, run_command
from secure_kg.data.partition import partition
from secure_kg.data.sources import load_source
from secure_kg.evaluation.query_metrics import FIGURES
from secure_kg.evaluation.query_ranking import rank_queries
from secure_kg.foundation.console import say, table
from secure_kg.foundation.errors import UserError
from secure_kg.foundation.seeds import generator, seed_sequence, torch_seed
from secure_kg.learning.adam import Adam
from secure_kg.learning.query_config import QueryConfig
from secure_kg.learning.query_steps import QuerySteps, draw_negatives, drawn_from
from secure_kg.models.queries.model import QueryModel, QueryModelSize
from secure_kg.models.queries.shapes import ENCODERS
from secure_kg.queries.answers import Judged, answer_rows
from secure_kg.queries.clients import QueryClients
from secure_kg.queries.edges import Ids, QueryGraph
from secure_kg.queries.published import read_names, read_queries, read_stages
from secure_kg.queries.sampling import Evaluation, Sampler
from secure_kg.queries.structures import EIGHT, STRUCTURES

_WARM_UP, _STRETCHES = 2, 3
_LEAST_RATE = 0.02


def main(argv: Sequence[str] | None = None) -> int:
    """0: measured. 2: one line on standard error says what to mend."""
    return run_command(lambda: _run(_parser().parse_args(argv)))


def _parser() -> argparse.ArgumentParser:
    parser = OneLineParser(
        prog="python -m benchmarks.gqe",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    usual = QueryConfig()
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--dataset", default="umls", help="a PyKEEN data set, a folder or a triple file [umls]")
    what.add_argument("--published", metavar="FOLDER", help="judge by FOLDER/queries-test.npz, or -valid.npz")
    parser.add_argument("--graph", metavar="FOLDER", help="triples of the published queries [the same folder]")
    parser.add_argument("--part", choices=("valid", "test"), default="test", help="whose queries judge [test]")
    parser.add_argument("--encoder", help=f"some of {','.join(ENCODERS)}; of --published one [all; gqe]")
    parser.add_argument("--dim", help="dimensions, with commas between them; of --published one [64,128; 128]")
    parser.add_argument("--score", default=usual.score, help="usual, l2, squared or dot [usual]")
    parser.add_argument("--particles", type=int, default=usual.particles, help=f"of q2p [{usual.particles}]")
    parser.add_argument("--answers", default=usual.answers, help="drawn by edges, or all entities alike [edges]")
    parser.add_argument("--as-published", action="store_true", help="encode as the public code of FedCQA does")
    parser.add_argument("--batch-size", type=int, default=usual.batch_size, metavar="B", help="of each type [512]")
    parser.add_argument("--negatives", type=int, default=usual.negatives, metavar="N", help="of a step [512]")
    parser.add_argument("--lr", type=float, default=usual.lr, help=f"learning rate [{usual.lr:g}]")
    parser.add_argument("--steps", type=int, default=20, metavar="N", help="steps of a stretch [20]")
    parser.add_argument("--minutes", type=float, default=5.0, help="processor time of --published [5]")
    parser.add_argument("--queries", type=int, default=5000, metavar="N", help="judge by so many of each type [5000]")
    parser.add_argument("--seed", type=int, default=0, help="of rows, draws and negatives [0]")
    parser.add_argument("--json", metavar="FILE", help="write the figures to FILE; - for standard output")
    return parser


def _run(options: argparse.Namespace) -> int:
    for name in ("graph", "part"):
        if getattr(options, name) not in (None, "test") and not options.published:
            raise UserError(f"--{name} goes with --published")
    if options.steps < 1 or options.queries < 1 or not options.minutes > 0:
        raise UserError("--steps, --queries and --minutes must be positive")
    require_json(options.json)
    torch.set_num_threads(1)
    encoders = (options.encoder or ("gqe" if options.published else ",".join(ENCODERS))).split(",")
    dims = (options.dim or ("128" if options.published else "64,128")).split(",")
    if not all(dim.isdecimal() for dim in dims):
        raise UserError("--dim must be whole numbers, with commas between them")
    configs = [_config(options, encoder, int(dim)) for encoder in encoders for dim in dims]
    if options.published and len(configs) > 1:
        raise UserError("--published trains one encoder of one dimension")
    report = judge(options, configs[0]) if options.published else measure(options, configs)
    deliver(report, options.json, show_judged if options.published else show_speed)
    return 0


def _config(options: argparse.Namespace, encoder: str, dim: int) -> QueryConfig:
    names = ("score", "particles", "answers", "batch_size", "negatives", "lr")
    given = {name: getattr(options, name) for name in names}
    published = options.as_published and encoder in ENCODERS and ENCODERS[encoder].varies
    return QueryConfig(encoder=encoder, dim=dim, published=published, **given)


class Training:
    """Steps on queries that are drawn from one graph."""

    def __init__(self, graph: QueryGraph, config: QueryConfig, seed: int) -> None:
        self.config = config
        size = QueryModelSize(graph.entities, graph.relations, config.encoder, config.shape, config.score)
        seeds = (torch.Generator().manual_seed(torch_seed(seed, name)) for name in ("rows", "operators"))
        self.model = QueryModel(size, *seeds)
        self.optimiser = Adam(self.model.parameters(), config.lr)
        self._steps = QuerySteps(self.model, self.optimiser)
        self._sampler = Sampler(drawn_from(graph, config.answers), seed_sequence(seed, "queries"))
        self._draws = generator(seed, "negatives")

    def step(self) -> float:
        drawn = [self._sampler.draw(kind, self.config.batch_size) for kind in self.config.trained]
        negatives = draw_negatives(self._draws, self.model.size.entities, self.config.negatives)
        return self._steps.step(drawn, negatives)

    @property
    def queries_of_a_step(self) -> int:
        return len(self.config.trained) * self.config.batch_size


# --- speed ------------------------------------------------------------------------------------------------------------


def measure(options: argparse.Namespace, configs: Sequence[QueryConfig]) -> dict[str, Any]:
    """Queries per processor second."""
    whole = QueryClients.of(partition(load_source(options.dataset), 1, "whole", options.seed))
    graph = whole.together.train
    return {
        "dataset": Path(options.dataset).name,
        "entities": graph.entities,
        "relations": graph.relations,
        "edges": len(graph.edges.targets) // 2,
        "seed": options.seed,
        "steps": options.steps,
        "stretches": _STRETCHES,
        "encoders": [
            {**dataclasses.asdict(one), "queries_per_s": _speed(Training(graph, one, options.seed), options.steps)}
            for one in configs
        ],
    }


def _speed(training: Training, steps: int) -> float:
    for _ in range(_WARM_UP):
        training.step()
    seconds = []
    for _ in range(_STRETCHES):
        started = time.process_time()
        for _ in range(steps):
            training.step()
        seconds.append(time.process_time() - started)
    return steps * training.queries_of_a_step / max(min(seconds), 1e-9)


def show_speed(report: dict[str, Any]) -> None:
    rows: list[list[str | int]] = [
        [ENCODERS[one["encoder"]].title, one["dim"], one["score"], one["batch_size"], round(one["queries_per_s"])]
        for one in report["encoders"]
    ]
    title = f"{report['dataset']}: {report['entities']:,} entities, {report['edges']:,} edges"
    table(title, ("encoder", "dimension", "score", "of each type", "queries/s"), rows)
    say(f"one thread, processor seconds, the best of {report['stretches']} stretches of {report['steps']} steps")


# --- published queries ------------------------------------------------------------------------------------------------


def judge(options: argparse.Namespace, config: QueryConfig) -> dict[str, Any]:
    """Train for the time given; figures by type."""
    folder = Path(options.published)
    names = read_names(folder)
    stages, _ = read_stages(Path(options.graph or folder), names)
    known, every = (stages.train, stages.valid) if options.part == "valid" else (stages.valid, stages.test)
    queries = read_queries(folder / f"queries-{options.part}.npz", names)
    published = {kind: one.rows for kind, one in queries.items()}
    evaluations = [
        _evaluation(known, every, kind, _some(published.get(kind, _links(known, every)), options, kind))
        for kind in EIGHT
        if kind in published or kind == "1p"
    ]
    training = Training(stages.train, config, options.seed)
    limit, used, steps = 60 * options.minutes, 0.0, 0
    training.step()  # compiles and imports
    while used < limit:
        started = time.process_time()
        training.optimiser.rate = config.lr * max(_LEAST_RATE, 1 - used / limit)
        loss = training.step()
        used, steps = used + time.process_time() - started, steps + 1
    metrics = rank_queries(training.model, evaluations, config.eval_megabytes)
    return {
        "published": folder.resolve().name,
        "part": options.part,
        "processor_minutes": used / 60,
        "steps": steps,
        "queries_trained": steps * training.queries_of_a_step,
        "queries_per_s": steps * training.queries_of_a_step / used,
        "loss": loss,
        "seed": options.seed,
        "settings": dataclasses.asdict(config),
        **metrics.figures(),
    }


def _links(known: QueryGraph, every: QueryGraph) -> Ids:
    """Queries of type 1p with a hard answer: the edges of the part. Published sets leave them to the triples."""
    owner = np.repeat(np.arange(every.entities), np.diff(every.edges.slots))
    rows = np.column_stack((owner, every.edges.labels)).astype(np.int32)
    found = answer_rows(every, STRUCTURES["1p"], rows)
    return rows[found.without(answer_rows(known, STRUCTURES["1p"], rows)).counts > 0]


def _some(rows: Ids, options: argparse.Namespace, kind: str) -> Ids:
    return rows[generator(options.seed, "published", kind).permutation(len(rows))[: options.queries]]


def _evaluation(known: QueryGraph, every: QueryGraph, kind: str, rows: Ids) -> Evaluation:
    judged = Judged.between(*(answer_rows(graph, STRUCTURES[kind], rows) for graph in (known, every)))
    kept = judged.hard.counts > 0
    return Evaluation(kind, rows[kept], Judged(judged.easy.chosen(kept), judged.hard.chosen(kept)))


def show_judged(report: dict[str, Any]) -> None:
    settings, types = report["settings"], report["types"]
    rows: list[list[str | int]] = [
        [kind, report["queries"][kind], *(f"{types[kind][name]:.4f}" for name in FIGURES)] for kind in types
    ]
    rows.append(["mean", sum(report["queries"].values()), *(f"{report[name]:.4f}" for name in FIGURES)])
    judged = f"{report['published']}, {report['part']} part"
    title = f"{ENCODERS[settings['encoder']].title}, dimension {settings['dim']}, on {judged}"
    table(title, ("type", "queries", "MRR", "Hits@1", "Hits@3", "Hits@10"), rows)
    say(
        f"{report['processor_minutes']:.1f} processor minutes, {report['queries_trained'] / 1e6:.1f} million queries, "
        f"{report['queries_per_s']:,.0f} a second"
    )


if __name__ == "__main__":
    sys.exit(main())
