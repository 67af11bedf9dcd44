"""Confidential statements among unrestricted ones (DPKGE): `python -m launch.dpkge --dataset umls`."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from launch.command_line import OneLineParser, deliver, require_json, run_command
from secure_kg.data.graph import ClientGraph
from secure_kg.data.partition import load_client
from secure_kg.foundation.console import say, table
from secure_kg.foundation.errors import UserError
from secure_kg.foundation.invocation import command
from secure_kg.models.shapes import MODELS
from secure_kg.privacy.training_config import PrivateTrainingConfig

if TYPE_CHECKING:
    from secure_kg.privacy.confidential.figures import Work
    from secure_kg.privacy.confidential.marking import Divided

    _Named = tuple[str, Work]

_DESCRIPTION = """\
Train on a graph of which some statements are confidential (DPKGE, Han et al. 2022, made sound): plain steps on the
unrestricted statements U, steps with noise on the confidential ones C, and beside it the arms of the paper's tables.

    NDP       plain steps on U and C: no privacy
    U-only    plain steps on U, C is not used; U-twice: as many steps as the other arms have in all
    DPKGE     plain steps on U, noised steps on C: epsilon is of one confidential statement, added or removed
    FullDP    noised steps on U and C: epsilon is of one statement, added or removed

    AUC, p    tracing: how often a confidential statement ranks better than a held-out one, .5 is a coin; the chance of
              such ranks if the model does not tell them apart (Mann and Whitney). U-only is the control
    paper's p its tracing test: do ranks of confidential statements differ from those of NDP? It has no non-members.
              U-only, which never saw C, passes it as well: it measures how good a model is.

r = 0: nothing is confidential, so DPKGE is NDP. r = 1: everything is, so U-only trains nothing, DPKGE is FullDP, and
the clip is taken from random statements."""

_EXAMPLE = """\
example:
  python -m launch.dpkge --dataset umls                                  half of the statements, by a coin
  python -m launch.dpkge --dataset kinships --confidential-fraction 0.2 0.5 0.8 --epsilon 8 1 --json r.json
  python -m launch.dpkge --dataset DIR --confidential-relations diagnosis --expected-confidential 5000
  python -m launch.dpkge --dataset DIR --confidential-file secret.tsv    statements, one per line
  python -m launch.dpkge --dataset umls --clip-quantile 0.2 0.5 0.8 1    the paper's choice of the clip
  python -m launch.dpkge --dataset umls --clusters 2 3 4 --seeds 5       clusters of entities against those of NDP
  python -m launch.dpkge --dataset umls --neighbours 10                  ranks with and without a statement

Settings chosen by results, also those of this command, are outside epsilon. Exit code 0: done. 2: a mistake, told in
one line."""


def main(argv: Sequence[str] | None = None) -> int:
    """0: done. 2: one line on standard error says what to mend."""
    return run_command(lambda: _run(make_parser().parse_args(argv)))


def make_parser() -> argparse.ArgumentParser:
    """The options of this command."""
    parser = OneLineParser(
        prog=command("launch.dpkge"),
        description=_DESCRIPTION,
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--dataset", required=True, help="umls, kinships, nations; a folder with train.tsv ...; a triple file")
    add("--allow-leaky-split", action="store_true", help="go on with a damaged split of the data set")
    marks = parser.add_mutually_exclusive_group()
    marks.add_argument(
        "--confidential-fraction", type=float, nargs="+", metavar="R", help="each by a coin, from 0 to 1 [0.5]"
    )
    marks.add_argument("--confidential-relations", nargs="+", metavar="NAME", help="all statements of these relations")
    marks.add_argument("--confidential-file", type=Path, metavar="FILE", help="the statements of a triple file")
    add(
        "--expected-confidential",
        type=float,
        metavar="N",
        help="public guess of how many; scales steps [size of U; with a fraction: by it from U, at 1: 20 per entity]",
    )
    add("--epsilon", type=float, nargs="+", default=[8.0, 1.0], metavar="E", help="[8 1]")
    add("--delta", type=float, default=1e-5, metavar="P", help="[1e-5]")
    add("--model", default="distmult", choices=[name.lower() for name in MODELS], help="[distmult]")
    add("--dim", type=int, default=32, help="[32]")
    add("--negatives", type=int, default=64, metavar="K", help="public, shared by all statements of a step [64]")
    add("--passes", type=int, default=100, metavar="T", help="over each part [100]")
    add("--sampling", type=float, default=1.0, metavar="Q", help="rate of Poisson samples; 1: full batches [1]")
    add("--rate", type=float, metavar="L", help="step per unit of a mean gradient [four times the number of entities]")
    add("--clip", type=float, metavar="C", help="[a quantile of gradient norms of U, at the initial rows]")
    add("--clip-quantile", type=float, nargs="+", default=[0.2], metavar="P", help="of U; several: a sweep [0.2]")
    add("--most-noise", type=float, metavar="B", help="of all steps together, in deviations of initial rows [1]")
    add("--margin", type=float, default=10.0, help="of distances and initial rows [10]")
    add("--seeds", type=int, default=3, metavar="N", help="trainings of each arm [3]")
    add("--first-seed", type=int, default=0, metavar="S", help="[0]")
    add(
        "--part", choices=("valid", "test"), default="test", help="which is ranked; settings are chosen by valid [test]"
    )
    add("--clusters", type=int, nargs="+", default=[], metavar="K", help="compare k-means of entity rows with NDP's")
    add(
        "--neighbours",
        type=int,
        default=0,
        metavar="N",
        help="confidential statements that are taken out by themselves",
    )
    add("--json", metavar="FILE", help="write the figures to FILE; - for standard output")
    return parser


def _run(options: argparse.Namespace) -> int:
    if options.seeds < 1 or options.first_seed < 0:
        raise UserError("--seeds must be at least 1, --first-seed at least 0")
    if not all(0 < one <= 1 for one in options.clip_quantile):
        raise UserError("--clip-quantile must lie above 0 and be at most 1")
    if options.clip is not None and options.clip_quantile != [0.2]:
        raise UserError("--clip and --clip-quantile exclude each other")
    if options.neighbours < 0 or any(one < 2 for one in options.clusters):
        raise UserError("--neighbours must not be negative, --clusters be at least 2")
    config = PrivateTrainingConfig(
        model={name.lower(): name for name in MODELS}[options.model],
        dim=options.dim,
        negatives=options.negatives,
        steps=options.passes,
        sampling=options.sampling,
        margin=options.margin,
        temperature=1.0,
        corrupt="both",
        **({} if options.clip is None else {"clip": options.clip}),
    )
    require_json(options.json)
    graph = load_client(options.dataset, 1, 1, "whole", 0, allow_leaky=options.allow_leaky_split)
    if options.rate is None:
        options.rate = 4.0 * len(graph.entities)  # a row has but a small part of a mean gradient
    report = measure(graph, config, options)
    deliver(report, options.json, show)
    return 0


def _divisions(graph: ClientGraph, options: argparse.Namespace) -> list[tuple[str, "Divided"]]:
    """What is confidential, in words, and the division."""
    from secure_kg.privacy.confidential.marking import by_file, by_fraction, by_relations

    expected = options.expected_confidential
    if options.confidential_relations is not None:
        names = options.confidential_relations
        return [(f"{len(names)} relations", by_relations(graph, names, expected))]
    if options.confidential_file is not None:
        return [("a file", by_file(graph, options.confidential_file, expected))]
    fractions = [0.5] if options.confidential_fraction is None else options.confidential_fraction
    if expected is not None and fractions != [1.0]:
        raise UserError("--expected-confidential: a fraction below 1 has no use for it")
    return [(f"r = {one:g}", by_fraction(graph, one, options.first_seed, expected)) for one in fractions]


def _works(graph: ClientGraph, config: PrivateTrainingConfig, options: argparse.Namespace) -> "Iterator[_Named]":
    """What is to be trained, by marks and clips."""
    from secure_kg.privacy.confidential.arms import MOST_NOISE
    from secure_kg.privacy.confidential.figures import Work
    from secure_kg.privacy.confidential.training import public_clip

    sizes = len(graph.entities), len(graph.relations)
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    most = MOST_NOISE if options.most_noise is None else options.most_noise
    for words, statements in _divisions(graph, options):
        if statements.protects and len(statements.confidential) == 0:
            raise UserError(f"{words}: no training statement is confidential")
        for quantile in options.clip_quantile:
            chosen, named = config, words
            if options.clip is None:
                clip = public_clip(statements.unrestricted, config, sizes, options.first_seed, quantile)
                chosen = replace(config, clip=clip)
                named += f", P{100 * quantile:g}" if len(options.clip_quantile) > 1 else ""
            yield named, Work(graph, statements, chosen, options.rate, seeds, most)


def measure(graph: ClientGraph, config: PrivateTrainingConfig, options: argparse.Namespace) -> dict[str, Any]:
    import torch

    from secure_kg.privacy.accounting.accountant import Budget
    from secure_kg.privacy.confidential.figures import Judged, arm_figures
    from secure_kg.privacy.confidential.neighbours import neighbour_rows

    torch.set_num_threads(1)
    budgets = [Budget(epsilon, options.delta) for epsilon in options.epsilon]
    judged = Judged(part=options.part, clusters=tuple(options.clusters))
    works = list(_works(graph, config, options))  # a mistake in the last one is told before the first is trained
    rows: list[dict[str, Any]] = []
    clusters: list[dict[str, Any]] = []
    neighbours: list[dict[str, Any]] = []
    for words, work in works:
        about = {"confidential": words, "unrestricted": len(work.statements.unrestricted), "clip": work.config.clip}
        found, clustered = arm_figures(work, budgets, judged)
        rows += [about | one for one in found]
        clusters += [about | one for one in clustered]
        if options.neighbours:
            arms = [("NDP", None), *(("DPKGE", budget) for budget in budgets)]
            neighbours += [
                about | neighbour_rows(work.arm(name), budget, options.neighbours, options.first_seed)
                for name, budget in arms
            ]
    settings = {name: getattr(config, name) for name in config.__dataclass_fields__ if name not in ("clip", "step")}
    names = ("dataset", "delta", "rate", "clip_quantile", "part", "seeds", "first_seed")
    sizes_of = {"entities": len(graph.entities), "relations": len(graph.relations), "train": len(graph.train)}
    report = {**{name: getattr(options, name) for name in names}, **sizes_of, "most_noise": works[0][1].most_noise}
    return report | {"settings": settings, "rows": rows, "clusters": clusters, "neighbours": neighbours}


def _told(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)


def _cells(row: dict[str, Any]) -> list[str]:
    first = [row["confidential"], row["arm"], _told(row["epsilon"], "g"), _told(row["noise"], ".2f")]
    if row["diverged"]:
        return [*first, "diverged", *[""] * 5]
    ranks = [f"{row['mean_rank']:.2f}", f"{100 * row['hits@10']:.1f}", f"{row['mrr']:.3f}"]
    tracing = [_told(row["tracing_auc"], ".3f"), _told(row["tracing_p"], ".0e"), _told(row["papers_p"], ".0e")]
    return [*first, *ranks, *tracing]


def show(report: dict[str, Any]) -> None:
    """The tables for people."""
    about = f"{report['dataset']}, {report['settings']['model']}"
    title = f"{about}, {report['part']}, both sides; mean of {report['seeds']} seeds"
    head = ("confidential", "arm", "epsilon", "noise", "MR", "Hits@10 %", "MRR", "AUC", "p", "paper's p")
    table(title, head, [_cells(row) for row in report["rows"]])
    if report["clusters"]:
        cells = [
            [row["confidential"], row["arm"], _told(row["epsilon"], "g"), str(row["clusters"]),
             _told(row["nmi"], ".3f"), _told(row["deviation"], ".3f"), str(row["pairs"]),
             _told(row["same_seed_nmi"], ".3f")]
            for row in report["clusters"]
        ]  # fmt: skip
        named = ("confidential", "arm", "epsilon", "k", "NMI to NDP", "deviation", "pairs", "same seed")
        table(f"{about}: clusters of entity rows", named, cells)
    if report["neighbours"]:
        cells = [
            [row["confidential"], row["arm"], _told(row["epsilon"], "g"), str(row["statements"]),
             *(f"{row[name]:.1f}" for name in ("with", "without", "moved", "moved_by_noise")),
             f"{row['better_with']:.2f}"]
            for row in report["neighbours"]
        ]  # fmt: skip
        columns = (
            "confidential",
            "arm",
            "epsilon",
            "statements",
            "with",
            "without",
            "moved",
            "by noise",
            "better with",
        )
        table(f"{about}: rank of a statement with and without it", columns, cells)
    for row in report["rows"]:
        if row["arm"] == "DPKGE" and row["epsilon"] is not None:
            say(f"{row['confidential']}, epsilon {row['epsilon']:g}: {row['in_words']}")
    say("The paper's p of U-only is that of a model which never saw a confidential statement.")


if __name__ == "__main__":
    sys.exit(main())
