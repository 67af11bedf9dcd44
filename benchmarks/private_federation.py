"""What privacy costs in link prediction in a federation: `python -m benchmarks.private_federation --help`.

Whole federations in one process, each with its own noise: the tail MRR of the clients' test triples, by epsilon and by
who adds the noise. Ranks leave out the triples of all clients, which only whoever runs this can do; a client of a real
federation leaves out its own, and its figures (second column) are lower for that. All sums are plain: a secure sum with
the same noise has the same result to the last bit.

Settings that were chosen by results are outside epsilon.
"""

import argparse
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from launch.command_line import OneLineParser, deliver, require_json, run_command
from secure_kg.data.catalogue import BUNDLED
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.console import say, table
from secure_kg.foundation.errors import UserError
from secure_kg.learning.config import TrainingConfig
from secure_kg.models.shapes import MODELS
from secure_kg.privacy.run_config import PrivacyConfig

if TYPE_CHECKING:
    from secure_kg.data.graph import ClientGraph
    from secure_kg.learning.kge import KgeLearner

SETTINGS: dict[str, dict[str, Any]] = {
    "shares, f = 1": {"max_dropout": 0.0},
    "shares, usual f": {},
    "full": {"dp_noise": "full"},
    "local": {"strategy": "local"},
    "fede": {"strategy": "fede"},
}
"""By name: what differs from shares of noise on all rows."""


def main(argv: Sequence[str] | None = None) -> int:
    """0: measured. 2: one line on standard error says what to mend."""
    return run_command(lambda: _run(_parser().parse_args(argv)))


def _parser() -> argparse.ArgumentParser:
    parser = OneLineParser(
        prog="python -m benchmarks.private_federation",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="example: python -m benchmarks.private_federation --epsilon 16 4 --settings full 'shares, f = 1'",
        allow_abbrev=False,
    )
    usual, add = PrivacyConfig(epsilon=1.0, delta=1e-5), parser.add_argument
    add("--dataset", default="kinships", metavar="PATH", help=f"a folder, or one of {', '.join(BUNDLED)} [kinships]")
    add("--by", default="triples", help="how triples are divided among clients [triples]")
    add("--clients", type=int, default=5, metavar="N", help="[5]")
    add("--epsilon", type=float, nargs="+", default=[16.0, 4.0], metavar="E", help="[16 4]")
    add("--delta", type=float, default=1e-5, metavar="P", help="[1e-5]")
    names = list(SETTINGS)
    add("--settings", nargs="+", default=names, choices=names, help=f"[{', '.join(names)}]")
    add("--seeds", type=int, default=3, metavar="N", help="trainings of each [3]")
    add("--first-seed", type=int, default=0, metavar="S", help="[0]")
    add("--model", default="distmult", choices=[name.lower() for name in MODELS], help="[distmult]")
    add("--dim", type=int, default=32, help="[32]")
    add("--negatives", type=int, default=64, metavar="K", help="[64]")
    add("--steps", type=int, default=200, metavar="T", help="[200]")
    add("--clip", type=float, default=usual.dp_clip, metavar="C", help=f"[{usual.dp_clip:g}]")
    add("--step", type=float, default=usual.dp_step, metavar="L", help=f"per unit of the sum [{usual.dp_step:g}]")
    add("--json", metavar="FILE", help="write the figures to FILE; - for standard output")
    return parser


def _run(options: argparse.Namespace) -> int:
    if options.seeds < 1 or options.first_seed < 0 or options.clients < 2:
        raise UserError("--seeds must be at least 1, --first-seed at least 0, --clients at least 2")
    require_json(options.json)
    rows = [_measured(epsilon, name, options) for epsilon in options.epsilon for name in options.settings]
    told = {name: value for name, value in vars(options).items() if name not in ("json", "settings", "epsilon")}
    deliver(told | {"rows": rows}, options.json, _show)
    return 0


def _config(epsilon: float, name: str, seed: int, options: argparse.Namespace) -> RunConfig:
    changes = dict(SETTINGS[name])
    privacy = PrivacyConfig(
        epsilon=epsilon,
        delta=options.delta,
        dp_clip=options.clip,
        dp_step=options.step,
        dp_noise=changes.pop("dp_noise", "shares"),
    )
    model = {one.lower(): one for one in MODELS}[options.model]
    changes = {"strategy": "all-rows", **changes}
    return RunConfig(
        **changes,
        dataset=options.dataset,
        by=options.by,
        clients=options.clients,
        aggregation="plain",
        alignment="plain",
        rounds=options.steps + (changes["strategy"] != "local"),
        checkpoint_every=0,
        seed=seed,
        training=TrainingConfig(model=model, dim=options.dim, negatives=options.negatives),
        privacy=privacy,
    )


def _measured(epsilon: float, name: str, options: argparse.Namespace) -> dict[str, Any]:
    pooled, own = [], []
    for seed in range(options.first_seed, options.first_seed + options.seeds):
        found = run(_config(epsilon, name, seed, options))
        pooled.append(found[0])
        own.append(found[1])
    spread = {"lowest": min(pooled), "highest": max(pooled), "by_seed": pooled}
    means = {"tail_mrr": statistics.mean(pooled), "own_filter": statistics.mean(own)}
    return {"epsilon": epsilon, "settings": name, **means, **spread}


def run(config: RunConfig) -> tuple[float, float]:
    """Tail MRR of one federation's test triples, with the filter of all clients' triples and with each client's own."""
    import torch

    from protocols.transport.base import Transport
    from protocols.transport.in_threads import run_in_process
    from secure_kg.data.partition import partition
    from secure_kg.data.sources import load_source
    from secure_kg.federation.client.site import Equipment, PreparedSite
    from secure_kg.federation.client.take_part import Participation, take_part
    from secure_kg.federation.plan.run_plan import RunPlan
    from secure_kg.federation.server.server import FederationServer
    from secure_kg.runs.outcome import ServerOutcome
    from secure_kg.runs.run_folder import RunFolder

    torch.set_num_threads(1)
    clients = config.clients or 0
    graphs = partition(load_source(config.dataset), clients, config.by, config.seed)
    learners: dict[int, KgeLearner] = {}
    with tempfile.TemporaryDirectory() as scratch:
        folder = RunFolder.create(Path(scratch) / "run", config)

        def serve(transport: Transport) -> ServerOutcome:
            return FederationServer(config, transport, folder, lambda line: None).run()

        def client(number: int, graph: "ClientGraph") -> Any:
            def equip() -> Equipment:
                made: Any = RunPlan(config, clients).learner.make(config, graph, number, torch.device("cpu"))
                learners[number] = made
                return Equipment(made)

            def part(transport: Transport) -> Participation:
                return take_part(config, transport, clients, PreparedSite(folder.client(number), equip))

            return part

        parts = {number: client(number, graph) for number, graph in enumerate(graphs, start=1)}
        ended = run_in_process(serve, parts)  # type: ignore[arg-type]
        test: Any = ended.server.result().test
    return _pooled_mrr(learners, graphs), test.headline


def _pooled_mrr(learners: "dict[int, KgeLearner]", graphs: "list[ClientGraph]") -> float:
    """Each client's test triples by its own model; known triples of all clients are left out."""
    import numpy as np
    import torch

    from secure_kg.data.graph import ClientGraph
    from secure_kg.evaluation.ranking import FilteredRanking

    triples = {
        (graph.entities[h], graph.relations[r], graph.entities[t])
        for graph in graphs
        for part in (graph.train, graph.valid, graph.test)
        for h, r, t in part
    }
    total, count, none = 0.0, 0, np.empty((0, 3), dtype=np.int64)
    for number, graph in enumerate(graphs, start=1):
        entity = {name: place for place, name in enumerate(graph.entities)}
        relation = {name: place for place, name in enumerate(graph.relations)}
        places = [(entity.get(h), relation.get(r), entity.get(t)) for h, r, t in triples]
        known = np.array([place for place in places if None not in place], dtype=np.int64)
        all_known = ClientGraph(graph.entities, graph.relations, known, none, graph.test)
        ranking = FilteredRanking(all_known, torch.device("cpu"))
        found = ranking.rank(learners[number].model, graph.test, "tail")
        total, count = total + found.reciprocal, count + found.count
    return total / count


def _show(report: dict[str, Any]) -> None:
    rows = [
        [
            f"{row['epsilon']:g}",
            row["settings"],
            f"{row['tail_mrr']:.3f}",
            f"{row['lowest']:.3f} to {row['highest']:.3f}",
            f"{row['own_filter']:.3f}",
        ]
        for row in report["rows"]
    ]
    title = f"{report['dataset']}, {report['model']}, {report['clients']} clients by {report['by']}: test, tail MRR"
    table(title, ("epsilon", "noise", "MRR", f"{report['seeds']} seeds", "own filter"), rows)
    say("f: how many clients may be corrupt or drop out. Settings chosen by results are outside epsilon.")


if __name__ == "__main__":
    sys.exit(main())
