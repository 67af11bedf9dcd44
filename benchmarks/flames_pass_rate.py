"""How often DP-FLames' own test lets a gradient through: `python -m benchmarks.flames_pass_rate --help`.

Algorithm 2 of the paper as printed, with its settings, on batches of a graph: on gradients of a model that is being
trained, and on the best case, in which every end of every triple has a gradient at the clip and all point one way, so
that no two cancel. A batch passes if its noised gap exceeds C₂; otherwise no positive gradient is applied in that step.

    passed     batches whose gradient is let through
    largest    the largest gap among ranks B to 2 B of any batch, in row clips C₂
    needed     the gap that passes with even chances, as printed, in row clips
    mended     the same for the sound test, whose sensitivity is 2 C₂
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

from benchmarks.kge import published_split
from launch.command_line import OneLineParser, deliver, require_json, run_command
from secure_kg.data.catalogue import BUNDLED
from secure_kg.data.graph import ClientGraph
from secure_kg.foundation.console import say, table
from secure_kg.foundation.errors import UserError
from secure_kg.foundation.progress import tracked
from secure_kg.foundation.seeds import generator, torch_seed

if TYPE_CHECKING:
    from torch import Tensor

    from secure_kg.privacy.mechanisms.flames_printed import FlamesAsPrintedUnsound


def main(argv: Sequence[str] | None = None) -> int:
    """0: measured. 2: one line on standard error says what to mend."""
    return run_command(lambda: _run(_parser().parse_args(argv)))


def _parser() -> argparse.ArgumentParser:
    parser = OneLineParser(
        prog="python -m benchmarks.flames_pass_rate",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="example: python -m benchmarks.flames_pass_rate --dataset data/fb15k-237 --batches 1000",
        allow_abbrev=False,
    )
    parser.add_argument("--dataset", default="umls", metavar="PATH", help=f"a folder, or {', '.join(BUNDLED)} [umls]")
    parser.add_argument("--batch", type=int, default=None, metavar="B", help="expected size [64; at most entities / 3]")
    parser.add_argument("--batches", type=int, default=500, metavar="N", help="of each kind [500]")
    parser.add_argument("--dim", type=int, default=128, metavar="D", help="[128]")
    parser.add_argument("--test-delta", type=float, nargs="+", default=[1e-5, 1e-9], metavar="P", help="[1e-5 1e-9]")
    parser.add_argument("--step", type=float, default=0.05, help="of training between batches, in clear [0.05]")
    parser.add_argument("--seed", type=int, default=0, help="of rows, batches and noise [0]")
    parser.add_argument("--json", metavar="FILE", help="write the figures to FILE; - for standard output")
    return parser


def _run(options: argparse.Namespace) -> int:
    if min(options.batches, options.dim) < 1 or options.seed < 0 or not options.step > 0:
        raise UserError("--batches and --dim must be at least 1, --seed at least 0, --step above 0")
    require_json(options.json)
    graph = published_split(options.dataset)
    batch = options.batch if options.batch is not None else max(1, min(64, len(graph.entities) // 3))
    if not 1 <= batch < len(graph.entities) or batch > len(graph.train):
        raise UserError("--batch must be at least 1, and fewer than the entities and the triples")
    report = measure(graph, options, batch)
    deliver(report, options.json, _show)
    return 0


def measure(graph: ClientGraph, options: argparse.Namespace, batch: int) -> dict[str, Any]:
    from secure_kg.privacy.mechanisms.flames_printed import FlamesAsPrintedUnsound

    printed = FlamesAsPrintedUnsound(batch=batch)
    rows = []
    for kind in ("in training", "best case"):
        settings = [replace(printed, test_delta=delta) for delta in options.test_delta]
        passed, largest = [0] * len(settings), 0.0
        for number, sums in enumerate(_row_sums(graph, options, printed, kind)):
            for place, one in enumerate(settings):
                choice = one.choose(sums, generator(options.seed, "selection", kind, number, place))
                passed[place] += choice.rows is not None
                largest = max(largest, choice.largest_gap)
        rows += [
            _figures(kind, one, count, options.batches, largest) for one, count in zip(settings, passed, strict=True)
        ]
    names = ("dataset", "dim", "batches", "step", "seed")
    sizes = {"entities": len(graph.entities), "train_triples": len(graph.train), "batch": batch}
    return {**{name: getattr(options, name) for name in names}, **sizes, "rows": rows}


def _figures(
    kind: str, settings: "FlamesAsPrintedUnsound", passed: int, batches: int, largest: float
) -> dict[str, Any]:
    from secure_kg.privacy.mechanisms.flames import Flames, gap_needed_as_printed

    needed = gap_needed_as_printed(settings.row_clip, settings.test_noise, settings.test_delta)
    sound = Flames(settings.choice_noise, settings.test_noise, settings.noise, (1, 2), settings.test_delta)
    return {
        "gradients": kind,
        "test_delta": settings.test_delta,
        "passed": passed,
        "batches": batches,
        "largest_gap_in_row_clips": largest / settings.row_clip,
        "needed_in_row_clips": needed / settings.row_clip,
        "needed_by_the_mended_test_in_row_clips": sound.passing_gap(1.0),
        # Of a gap of at most C₂, which the test replaces by C₂.
        "chance_of_a_small_gap": NormalDist().cdf(1.0 - needed / settings.row_clip),
    }


def _row_sums(
    graph: ClientGraph, options: argparse.Namespace, printed: "FlamesAsPrintedUnsound", kind: str
) -> Iterator["Tensor"]:
    """Sums over rows [entities, dim] of Poisson batches, as algorithm 1 has them before its selection."""
    import torch

    from secure_kg.models.base import ModelSize
    from secure_kg.models.registry import build_model
    from secure_kg.privacy.gradients.clipped_sums import PrivateGradients

    entities, train = len(graph.entities), torch.from_numpy(graph.train)
    size = ModelSize(entities, len(graph.relations), options.dim, 10.0, 2)
    initial = torch.Generator().manual_seed(torch_seed(options.seed, "initial rows", "flames"))
    model = build_model("TransE", size, initial)
    gradients = PrivateGradients(model)
    for number in tracked(range(options.batches), f"batches, {kind}"):
        draws = generator(options.seed, "batches", kind, number)
        batch = train[torch.from_numpy(draws.random(len(train)) < printed.batch / len(train))]
        if kind == "best case" or len(batch) == 0:
            counts = torch.bincount(batch[:, [0, 2]].reshape(-1), minlength=entities)
            yield (counts * printed.row_clip)[:, None].double()
            continue
        yield printed.row_sums(gradients, batch, entities)
        negatives = torch.from_numpy(draws.choice(entities, min(256, entities), replace=False))
        moved = gradients.sums(batch, negatives, printed.clip)
        with torch.no_grad():
            model.entity.sub_(options.step * moved.entity.float())
            model.relation.sub_(options.step * moved.relation.float())


def _show(report: dict[str, Any]) -> None:
    rows = [
        [
            one["gradients"],
            f"{one['test_delta']:g}",
            f"{one['passed']} of {one['batches']}",
            f"{one['largest_gap_in_row_clips']:.2f}",
            f"{one['needed_in_row_clips']:.2f}",
            f"{one['needed_by_the_mended_test_in_row_clips']:.2f}",
            f"{one['chance_of_a_small_gap']:.1g}",
        ]
        for one in report["rows"]
    ]
    title = f"{report['dataset']}: {report['entities']:,} entities, batches of about {report['batch']} triples"
    table(title, ("gradients", "delta", "passed", "largest", "needed", "mended", "chance at C2"), rows)
    say("As printed, a gap of at most C2 passes with the last column's chance. A batch that fails moves nothing.")


if __name__ == "__main__":
    sys.exit(main())
