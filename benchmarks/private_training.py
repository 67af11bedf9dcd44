"""What privacy costs in link prediction, trained in one place: `python -m benchmarks.private_training --help`.

Filtered tail MRR by epsilon and mechanism, over several seeds. Noise is central: one holder has all triples. Every
figure has been accounted for at the given epsilon and delta, one triple as the unit, add/remove neighbours. The table
of counts relation -> tail stands beside, under noise for the same epsilon: it sees no head and trains nothing, and a
mechanism that does not beat it is not worth its training. Rows of negatives are public and always released, so on a
graph with few entities beyond them (column rows: 100%) adafest and flames choose nothing, and pay for the choice.

Settings that were chosen by results, also on validation triples (--part valid), are outside epsilon.
"""

import argparse
import statistics
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from benchmarks.kge import published_split
from launch.command_line import OneLineParser, deliver, require_json, run_command
from secure_kg.data.catalogue import BUNDLED
from secure_kg.data.graph import ClientGraph
from secure_kg.foundation.console import say, table
from secure_kg.foundation.errors import UserError
from secure_kg.foundation.progress import tracked
from secure_kg.models.shapes import MODELS
from secure_kg.privacy.training_config import PrivateTrainingConfig

if TYPE_CHECKING:
    from secure_kg.evaluation.ranking import FilteredRanking, Scorer
    from secure_kg.models.base import EmbeddingModel
    from secure_kg.privacy.mechanisms.interface import Mechanism

MECHANISMS = ("sgd", "adafest", "flames")
_STEP_SUM = 570.0  # steps of the sum's mean, if --step is not given; it suits the default clip


def main(argv: Sequence[str] | None = None) -> int:
    """0: measured. 2: one line on standard error says what to mend."""
    return run_command(lambda: _run(_parser().parse_args(argv)))


def _parser() -> argparse.ArgumentParser:
    parser = OneLineParser(
        prog="python -m benchmarks.private_training",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="example: python -m benchmarks.private_training --dataset kinships --epsilon 16 4 --mechanisms sgd",
        allow_abbrev=False,
    )
    usual = PrivateTrainingConfig()
    names = [name.lower() for name in MODELS]
    add = parser.add_argument
    add("--dataset", default="kinships", metavar="PATH", help=f"a folder, or one of {', '.join(BUNDLED)} [kinships]")
    add("--epsilon", type=float, nargs="+", default=[32.0, 16.0, 8.0, 4.0], metavar="E", help="[32 16 8 4]")
    add("--delta", type=float, default=1e-5, metavar="P", help="[1e-5]")
    add("--mechanisms", nargs="+", default=list(MECHANISMS), choices=MECHANISMS, help=f"[{' '.join(MECHANISMS)}]")
    add("--seeds", type=int, default=3, metavar="N", help="trainings of each [3]")
    add("--first-seed", type=int, default=0, metavar="S", help="[0]")
    add("--part", choices=("valid", "test"), default="test", help="which is ranked [test]")
    add("--model", default="distmult", choices=names, help="[distmult]")
    add("--dim", type=int, default=usual.dim, help=f"[{usual.dim}]")
    add("--negatives", type=int, default=usual.negatives, metavar="K", help=f"public, shared [{usual.negatives}]")
    add("--clip", type=float, default=usual.clip, metavar="C", help=f"[{usual.clip}]")
    add("--steps", type=int, default=usual.steps, metavar="T", help=f"[{usual.steps}]")
    add("--step", type=float, metavar="L", help="per unit of the sum [570 / (sampling x triples)]")
    add("--last-step", type=float, default=usual.last_step, metavar="F", help=f"fraction left [{usual.last_step:g}]")
    add("--sampling", type=float, default=1.0, metavar="Q", help="rate of Poisson samples; 1: full batches [1]")
    add("--margin", type=float, default=usual.margin, help=f"of distances and initial rows [{usual.margin:g}]")
    add("--temperature", type=float, default=usual.temperature, help=f"[{usual.temperature:g}]")
    add("--row-threshold", type=float, default=1.0, metavar="M", help="adafest: in deviations of a count's noise [1]")
    add("--count-threshold", type=float, default=1.0, metavar="M", help="counts: in deviations of a cell's noise [1]")
    add("--json", metavar="FILE", help="write the figures to FILE; - for standard output")
    return parser


def _run(options: argparse.Namespace) -> int:
    if options.seeds < 1 or options.first_seed < 0:
        raise UserError("--seeds must be at least 1, --first-seed at least 0")
    require_json(options.json)
    graph = published_split(options.dataset)
    config = _config(options, len(graph.train))
    report = measure(graph, config, options)
    deliver(report, options.json, _show)
    return 0


def _config(options: argparse.Namespace, triples: int) -> PrivateTrainingConfig:
    """Without --step, the step is by the number of triples, which is private: a choice by results, outside epsilon."""
    step = options.step if options.step is not None else _STEP_SUM / max(1.0, options.sampling * triples)
    return PrivateTrainingConfig(
        model={name.lower(): name for name in MODELS}[options.model],
        dim=options.dim,
        negatives=options.negatives,
        clip=options.clip,
        steps=options.steps,
        step=step,
        last_step=options.last_step,
        sampling=options.sampling,
        margin=options.margin,
        temperature=options.temperature,
    )


def measure(graph: ClientGraph, config: PrivateTrainingConfig, options: argparse.Namespace) -> dict[str, Any]:
    import torch

    from secure_kg.evaluation.ranking import FilteredRanking
    from secure_kg.privacy.mechanisms.no_noise import NoNoise

    torch.set_num_threads(1)
    ranking = FilteredRanking(graph, torch.device("cpu"))
    rows = [_trained(graph, config, NoNoise(), ranking, options) | {"epsilon": None, "mechanism": "no noise"}]
    rows.append(_counted(graph, None, ranking, options))
    for epsilon in tracked(options.epsilon, "budgets"):
        for name in options.mechanisms:
            mechanism = _mechanism(name, epsilon, graph, config, options)
            found = _trained(graph, config, mechanism, ranking, options)
            rows.append(found | {"epsilon": epsilon, "mechanism": name} | _account(mechanism, config, options))
        rows.append(_counted(graph, epsilon, ranking, options))
    settings = {name: getattr(config, name) for name in config.__dataclass_fields__}
    names = ("dataset", "delta", "seeds", "first_seed", "part", "row_threshold", "count_threshold")
    sizes = {"entities": len(graph.entities), "relations": len(graph.relations), "train_triples": len(graph.train)}
    report = {**{name: getattr(options, name) for name in names}, **sizes, "settings": settings, "rows": rows}
    return report | {"sentence": _sentence(rows)}


def _mechanism(
    name: str, epsilon: float, graph: ClientGraph, config: PrivateTrainingConfig, options: argparse.Namespace
) -> "Mechanism":
    """Settings that spend epsilon and delta in all steps together."""
    from secure_kg.privacy.accounting.accountant import Budget, noise_for
    from secure_kg.privacy.mechanisms.adafest import AdaFest
    from secure_kg.privacy.mechanisms.flames import Flames
    from secure_kg.privacy.mechanisms.sgd import Sgd

    delta = 0.9 * options.delta if name == "flames" else options.delta
    total = noise_for(Budget(epsilon, delta), config.steps, config.sampling)
    if name == "sgd":
        return Sgd(total, config.sampling)
    if name == "adafest":
        counts_noise = AdaFest.of_total(total, 0.0, config.sampling).selection_noise
        return AdaFest.of_total(total, options.row_threshold * counts_noise, config.sampling)
    return Flames.of_total(total, (1, len(graph.entities)), 0.1 * options.delta / config.steps, config.sampling)


def _account(mechanism: "Mechanism", config: PrivateTrainingConfig, options: argparse.Namespace) -> dict[str, Any]:
    """What the accountant says of all steps, at the delta that is left for it."""
    from secure_kg.privacy.accounting.accountant import epsilon_of

    (release,) = mechanism.releases()
    left = options.delta - config.steps * mechanism.delta
    return {"noise": release.noise, "epsilon_spent": epsilon_of([(release, config.steps)], left)}


def _trained(
    graph: ClientGraph,
    config: PrivateTrainingConfig,
    mechanism: "Mechanism",
    ranking: "FilteredRanking",
    options: argparse.Namespace,
) -> dict[str, Any]:
    from secure_kg.privacy.training import PrivateTraining

    runs = [
        PrivateTraining(graph, config, options.first_seed + number).run(mechanism) for number in range(options.seeds)
    ]
    figures = _figures([_mrr(run.model, graph, ranking, options) for run in runs])
    return figures | {
        "clipped": statistics.mean(run.clipped for run in runs),
        "rows": statistics.mean(run.rows for run in runs),
    }


def _counted(
    graph: ClientGraph, epsilon: float | None, ranking: "FilteredRanking", options: argparse.Namespace
) -> dict[str, Any]:
    import torch

    from secure_kg.privacy.accounting.accountant import Budget, noise_for
    from secure_kg.privacy.draws.noise import SecretNoise
    from secure_kg.privacy.mechanisms.counts import Counts, NoisedCounts, counted

    exact = counted(torch.from_numpy(graph.train), len(graph.relations), len(graph.entities))
    about: dict[str, Any] = {"epsilon": epsilon, "mechanism": "counts"}
    if epsilon is None:
        return about | _figures([_mrr(NoisedCounts(exact.float()), graph, ranking, options)])
    noise = noise_for(Budget(epsilon, options.delta), 1)
    counts = Counts(noise, options.count_threshold)
    draws = [counts.privatise(exact, SecretNoise()) for _ in range(options.seeds)]
    return about | _figures([_mrr(one, graph, ranking, options) for one in draws]) | {"noise": noise}


def _mrr(
    scorer: "EmbeddingModel | Scorer", graph: ClientGraph, ranking: "FilteredRanking", options: argparse.Namespace
) -> float:
    return ranking.rank(scorer, graph.part(options.part), "tail").metrics()["mrr"]


def _figures(mrr: list[float]) -> dict[str, Any]:
    return {"tail_mrr": statistics.mean(mrr), "lowest": min(mrr), "highest": max(mrr), "by_seed": mrr}


def _sentence(rows: list[dict[str, Any]]) -> str:
    """Whether counting wins, and where."""
    counts = {row["epsilon"]: row["tail_mrr"] for row in rows if row["mechanism"] == "counts"}
    best = {
        epsilon: max(row["tail_mrr"] for row in rows if row["epsilon"] == epsilon and row["mechanism"] != "counts")
        for epsilon in counts
    }
    lost = [epsilon for epsilon in counts if counts[epsilon] >= best[epsilon]]
    if not lost:
        return "Embeddings rank better than counting in every row."
    where = ", ".join("no noise" if epsilon is None else f"epsilon {epsilon:g}" for epsilon in lost)
    return f"Counting wins at {where}: there a table of counts ranks at least as well as the best mechanism."


def _show(report: dict[str, Any]) -> None:
    rows = [
        [
            "none" if row["epsilon"] is None else f"{row['epsilon']:g}",
            row["mechanism"],
            f"{row['tail_mrr']:.3f}",
            f"{row['lowest']:.3f} to {row['highest']:.3f}",
            f"{row['noise']:.2f}" if "noise" in row else "",
            f"{row['clipped']:.0%}" if "clipped" in row else "",
            f"{row['rows']:.0%}" if "rows" in row else "",
        ]
        for row in report["rows"]
    ]
    settings = report["settings"]
    title = f"{report['dataset']}, {settings['model']}, {report['part']}: tail MRR at delta {report['delta']:g}"
    table(title, ("epsilon", "mechanism", "MRR", f"{report['seeds']} seeds", "noise", "clipped", "rows"), rows)
    say(report["sentence"])
    say("Settings chosen by results are outside epsilon. Columns clipped and rows are for the holder of the triples.")


if __name__ == "__main__":
    sys.exit(main())
