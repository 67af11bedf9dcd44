"""Confidential statements among unrestricted ones (DPKGE): `python -m launch.dpkge --dataset umls`."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from launch.command_line import OneLineParser, deliver, require_json, run_command
from secure_kg.data.graph import ClientGraph
from secure_kg.data.partition import load_client
from secure_kg.foundation.console import say, table
from secure_kg.foundation.errors import UserError
from secure_kg.foundation.invocation import command
from secure_kg.models.shapes import MODELS
from secure_kg.privacy.training_config import PrivateTrainingConfig

if TYPE_CHECKING:
    from secure_kg.privacy.confidential.marking import Divided

_DESCRIPTION = """\
Train on a graph of which some statements are confidential (DPKGE, Han et al. 2022, made sound): plain steps on the
unrestricted statements U, steps with noise on the confidential ones C, and beside it the arms of the paper's tables.

    NDP       plain steps on U and C: no privacy
    U-only    plain steps on U, C is not used; U-twice: as many steps as the other arms have in all
    DPKGE     plain steps on U, noised steps on C: epsilon is of one confidential statement, added or removed
    FullDP    noised steps on U and C: epsilon is of one statement, added or removed

    AUC       tracing: how often a confidential statement ranks better than a held-out one; .5 is a coin
    p         the paper's tracing test: do ranks of confidential statements differ from those of NDP? It has no
              non-members. U-only, which never saw C, passes it as well: it measures how good a model is."""

_EXAMPLE = """\
example:
  python -m launch.dpkge --dataset umls                                  half of the statements, by a coin
  python -m launch.dpkge --dataset kinships --confidential-fraction 0.2 0.5 0.8 --epsilon 8 1 --json r.json
  python -m launch.dpkge --dataset DIR --confidential-relations diagnosis --expected-confidential 5000
  python -m launch.dpkge --dataset DIR --confidential-file secret.tsv    statements, one per line

Settings chosen by results, also those of this command, are outside epsilon. Exit code 0: done. 2: a mistake, told in
one line."""

_TRACED: Final = 2000


def main(argv: Sequence[str] | None = None) -> int:
    """0: done. 2: one line on standard error says what to mend."""
    return run_command(lambda: _run(_parser().parse_args(argv)))


def _parser() -> argparse.ArgumentParser:
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
    marks.add_argument("--confidential-fraction", type=float, nargs="+", metavar="R", help="each by a coin [0.5]")
    marks.add_argument("--confidential-relations", nargs="+", metavar="NAME", help="all statements of these relations")
    marks.add_argument("--confidential-file", type=Path, metavar="FILE", help="the statements of a triple file")
    add("--expected-confidential", type=float, metavar="N", help="public guess of how many; scales steps [size of U]")
    add("--epsilon", type=float, nargs="+", default=[8.0, 1.0], metavar="E", help="[8 1]")
    add("--delta", type=float, default=1e-5, metavar="P", help="[1e-5]")
    add("--model", default="distmult", choices=[name.lower() for name in MODELS], help="[distmult]")
    add("--dim", type=int, default=32, help="[32]")
    add("--negatives", type=int, default=64, metavar="K", help="public, shared by all statements of a step [64]")
    add("--passes", type=int, default=100, metavar="T", help="over each part [100]")
    add("--sampling", type=float, default=1.0, metavar="Q", help="rate of Poisson samples; 1: full batches [1]")
    add("--rate", type=float, metavar="L", help="step per unit of a mean gradient [twice the number of entities]")
    add("--clip", type=float, metavar="C", help="[a quantile of gradient norms of U, at the initial rows]")
    add("--clip-quantile", type=float, default=0.2, metavar="P", help="[0.2, as in the paper]")
    add("--margin", type=float, default=10.0, help="of distances and initial rows [10]")
    add("--seeds", type=int, default=3, metavar="N", help="trainings of each arm [3]")
    add("--first-seed", type=int, default=0, metavar="S", help="[0]")
    add("--json", metavar="FILE", help="write the figures to FILE; - for standard output")
    return parser


def _run(options: argparse.Namespace) -> int:
    if options.seeds < 1 or options.first_seed < 0:
        raise UserError("--seeds must be at least 1, --first-seed at least 0")
    if (options.rate is not None and not 0 < options.rate < float("inf")) or not 0 < options.clip_quantile < 1:
        raise UserError("--rate must be a positive number, --clip-quantile lie between 0 and 1")
    config = PrivateTrainingConfig(
        model={name.lower(): name for name in MODELS}[options.model],
        dim=options.dim,
        negatives=options.negatives,
        steps=options.passes,
        sampling=options.sampling,
        margin=options.margin,
        corrupt="both",
        **({} if options.clip is None else {"clip": options.clip}),
    )
    require_json(options.json)
    graph = load_client(options.dataset, 1, 1, "whole", 0, allow_leaky=options.allow_leaky_split)
    if options.rate is None:
        options.rate = 2.0 * len(graph.entities)  # a row has but a small part of a mean gradient
    report = measure(graph, config, options)
    deliver(report, options.json, _show)
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
    if expected is not None:
        raise UserError("--expected-confidential: a fraction has no use for it")
    fractions = [0.5] if options.confidential_fraction is None else options.confidential_fraction
    return [(f"r = {one:g}", by_fraction(graph, one, options.first_seed)) for one in fractions]


def measure(graph: ClientGraph, config: PrivateTrainingConfig, options: argparse.Namespace) -> dict[str, Any]:
    import torch

    from secure_kg.privacy.confidential.figures import arm_figures
    from secure_kg.privacy.confidential.training import public_clip

    torch.set_num_threads(1)
    rows = []
    for words, statements in _divisions(graph, options):
        if len(statements.confidential) == 0:
            raise UserError(f"{words}: no training statement is confidential")
        chosen = config
        if options.clip is None:
            sizes = len(graph.entities), len(graph.relations)
            clip = public_clip(statements.unrestricted, config, sizes, options.first_seed, options.clip_quantile)
            chosen = replace(config, clip=clip)
        seeds = range(options.first_seed, options.first_seed + options.seeds)
        found = arm_figures((graph, statements, chosen, options.rate), (options.epsilon, options.delta), seeds, _TRACED)
        rows += [
            {"confidential": words, "unrestricted": len(statements.unrestricted), "clip": chosen.clip} | one
            for one in found
        ]
    settings = {name: getattr(config, name) for name in config.__dataclass_fields__ if name not in ("clip", "step")}
    names = ("dataset", "delta", "rate", "clip_quantile", "seeds", "first_seed")
    sizes_of = {"entities": len(graph.entities), "relations": len(graph.relations), "train": len(graph.train)}
    return {**{name: getattr(options, name) for name in names}, **sizes_of, "settings": settings, "rows": rows}


def _show(report: dict[str, Any]) -> None:
    rows = [
        [
            row["confidential"],
            row["arm"],
            "" if row["epsilon"] is None else f"{row['epsilon']:g}",
            "" if row["noise"] is None else f"{row['noise']:.2f}",
            *(
                ("diverged", "", "", "")
                if row["diverged"]
                else (
                    f"{row['mean_rank']:.2f}",
                    f"{100 * row['hits@10']:.1f}",
                    f"{row['mrr']:.3f}",
                    f"{row['tracing_auc']:.3f}",
                )
            ),
            "" if row["papers_p"] is None else f"{row['papers_p']:.0e}",
        ]
        for row in report["rows"]
    ]
    title = f"{report['dataset']}, {report['settings']['model']}, test, both sides; mean of {report['seeds']} seeds"
    table(title, ("confidential", "arm", "epsilon", "noise", "MR", "Hits@10 %", "MRR", "AUC", "p"), rows)
    said = [row for row in report["rows"] if row["arm"] == "DPKGE"]
    for row in said:
        say(f"{row['confidential']}, epsilon {row['epsilon']:g}: {row['in_words']}")
    say("p of U-only is that of a model which never saw a confidential statement.")


if __name__ == "__main__":
    sys.exit(main())
