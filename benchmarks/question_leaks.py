"""What answers to questions over a FedCQA run give away: `python -m benchmarks.question_leaks RUN --help`.

Every client of RUN asks in turn, in real sessions, what it likes, and computes from the answers what it was not told
(`secure_kg.attacks.questions`). Budgets are kept in memory: nothing of the clients' own is spent.

rows      rows of relations that the asker lacks, from points before and after a projection
triples   tails of a relation that --no-atoms hides: every relation of 20 triples or more, and every client without it
names     whether somebody holds a name, with a dictionary of all names of the run and of the data sets in the wheel
scores    rows of entities, from means of chosen points and from the best positions
updates   with --recorded PLAIN SECRET, two runs that were recorded with --transcript and differ in --aggregation: what
          the server reads in uploads under one perturbation for all rounds (FedCQA, algorithm 1) and in secret sums

Intervals are 95 of 100 draws of the trials with replacement. Beside every figure stands what the asker can guess
without any answer.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from launch.command_line import OneLineParser, deliver, require_json, run_command
from secure_kg.attacks.extraction import MORE_QUERIES
from secure_kg.attacks.questions.hidden_triples import TrialFound, attack_relation, trials_of
from secure_kg.attacks.questions.name_guesses import NamesFound, attack_names
from secure_kg.attacks.questions.opened_scores import (
    attack_scores,
    chosen_points,
    from_positions,
    positions_in_clear,
)
from secure_kg.attacks.questions.parties import AttackedRun, Parties
from secure_kg.attacks.questions.predicting import Interval
from secure_kg.attacks.questions.recorded_updates import attack_recorded
from secure_kg.attacks.questions.relation_rows import attack_rows, attack_within_budget, foreign_ways
from secure_kg.data.catalogue import BUNDLED
from secure_kg.data.sources import PooledSource, load_source
from secure_kg.foundation.console import fail, table
from secure_kg.foundation.errors import UserError
from secure_kg.foundation.progress import tracked
from secure_kg.queries.retrieval.rules import NamePolicy, Rules

PARTS: Final = ("rows", "triples", "names", "scores")
_TRANSLATES: Final = "gqe"
_TOP: Final = 10
Line = dict[str, Any]


def main(argv: Sequence[str] | None = None) -> int:
    """0: measured. 2: one line on standard error says what to mend."""
    return run_command(lambda: _run(_parser().parse_args(argv)))


def _parser() -> argparse.ArgumentParser:
    parser = OneLineParser(
        prog="python -m benchmarks.question_leaks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="example: python -m benchmarks.question_leaks runs/umls --recorded runs/plain runs/secret",
        allow_abbrev=False,
    )
    parser.add_argument("run", type=Path, metavar="RUN", help="folder of a finished run of launch.fedcqa")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), help="what is measured [all]")
    parser.add_argument("--recorded", type=Path, nargs=2, metavar=("PLAIN", "SECRET"), help="for updates")
    parser.add_argument("--budgets", type=int, nargs="+", default=[20, 100], metavar="N", help="of vectors [20 100]")
    parser.add_argument(
        "--answers", type=int, nargs="+", default=[0, 10, 30, 1000], metavar="N", help="for triples [0 10 30 1000]"
    )
    parser.add_argument("--trials", type=int, metavar="N", help="of triples at most, spread over all of them [all]")
    parser.add_argument("--fitted", type=int, default=12, metavar="N", help="rows solved for, of networks [12]")
    parser.add_argument("--positions", type=int, default=144, metavar="Q", help="points ranked in sessions [144]")
    parser.add_argument("--seed", type=int, default=0, help="of orders and points [0]")
    parser.add_argument("--json", metavar="FILE", help="write the figures to FILE; - for standard output")
    return parser


def _run(options: argparse.Namespace) -> int:
    numbers = [*options.budgets, options.fitted, options.positions, options.trials or 1]
    if min(numbers) < 1 or min(options.answers) < 0 or options.seed < 0:
        raise UserError("--budgets, --trials, --fitted and --positions must be at least 1, --answers and --seed 0")
    require_json(options.json)
    run = AttackedRun.load(options.run)
    measures: dict[str, Callable[[AttackedRun, argparse.Namespace], list[Line]]] = {
        "rows": _rows,
        "triples": _triples,
        "names": _names,
        "scores": _scores,
    }
    report: dict[str, Any] = {"encoder": run.encoder, "clients": len(run.graphs), "seed": options.seed}
    if options.recorded is not None:
        plain, secret = options.recorded
        report["updates"] = _updates(plain, secret, options.seed)
    for part in tracked(options.parts, "parts"):
        if part == "triples" and run.encoder != _TRANSLATES:
            fail(f"triples: guessed from translations, and --encoder {run.encoder} has none; not tried")
            continue
        report[part] = measures[part](run, options)
    deliver(report, options.json, _show)
    return 0


def _each(run: AttackedRun) -> list[Parties]:
    """Every client as the asker."""
    return [run.parties.asked_by(int(party)) for party in run.graphs]


def _rows(run: AttackedRun, options: argparse.Namespace) -> list[Line]:
    """Over all askers."""
    found = [_rows_line("difference, 1 answer", [attack_rows(one, fit=False) for one in _each(run)])]
    if run.encoder != _TRANSLATES:
        return [
            *found,
            *(
                _rows_line(
                    f"solved for, answers: {answers}",
                    [attack_rows(one, answers, fit=True, most=options.fitted) for one in _each(run)],
                )
                for answers in (1, 2, 4)
            ),
        ]
    for budget in options.budgets:
        rows = [attack_within_budget(one.with_atoms(budget)) for one in _each(run)]
        found.append(_rows_line(f"difference, --atom-budget {budget}", rows))
    hidden = [one.under(Rules(no_atoms=frozenset(name for name, _ in foreign_ways(one)))) for one in _each(run)]
    return [*found, _rows_line("difference, --no-atoms of all", [attack_rows(one, fit=False) for one in hidden])]


def _rows_line(how: str, found: Sequence[Any]) -> Line:
    answered = [one for one in found if one.answered]
    return {
        "how": how,
        "askers": len(found),
        "wanted": sum(one.wanted for one in found),
        "computed": sum(one.computed for one in found),
        "largest_error": max((one.largest_error for one in answered), default=None),
        "error_relative_to_guess": [one.error for one in answered],
    }


def _triples(run: AttackedRun, options: argparse.Namespace) -> list[Line]:
    trials = trials_of(run)
    if not trials:
        raise UserError(f"{run.path}: no relation has enough triples to be hidden")
    if options.trials is not None:
        trials = trials[:: max(1, len(trials) // options.trials)][: options.trials]
    found = [attack_relation(run, trial, options.answers, options.seed) for trial in trials]
    return [
        {
            "guess": guess,
            "answers": min(number, max(one.asked for one in found)),
            "hits": asdict(Interval.of([one.found[guess, number].hits for one in found])),
            "auc": asdict(Interval.of([one.found[guess, number].auc for one in found])),
            "gain": _gain(found, guess, number),
        }
        for guess, number in found[0].found
    ]


def _gain(found: Sequence[TrialFound], guess: str, number: int) -> Line | None:
    """In hits, trial by trial, over the same guess without an answer."""
    if not number or (guess, 0) not in found[0].found:
        return None
    return asdict(Interval.of([one.found[guess, number].hits - one.found[guess, 0].hits for one in found]))


def _names(run: AttackedRun, options: argparse.Namespace) -> list[Line]:
    names = {name for graph in run.graphs.values() for name in graph.entities}
    for dataset in BUNDLED:
        source = load_source(dataset)
        if isinstance(source, PooledSource):
            names |= set(source.entities)
    policies: tuple[NamePolicy, ...] = ("all", "shared", "none")
    found = []
    for policy in policies:
        told = [attack_names(one.under(Rules(anchors=policy)), names) for one in _each(run)]
        found.append(_names_line(f"--anchor-policy {policy}", told))
    for budget in options.budgets:
        tried = [attack_names(one, names, budget, seed) for one in _each(run) for seed in range(5)]
        found.append(_names_line(f"--atom-budget {budget}", tried))
    return found


def _names_line(how: str, found: Sequence[NamesFound]) -> Line:
    held, asked = sum(one.held for one in found), sum(one.asked for one in found)
    return {
        "how": how,
        "dictionaries": len(found),
        "asked": asked,
        "held": held,
        "found": sum(one.found for one in found),
        "wrong": sum(one.wrong for one in found),
        "right_if_all_are_guessed": held / max(1, sum(one.guesses for one in found)),
    }


def _scores(run: AttackedRun, options: argparse.Namespace) -> list[Line]:
    """The asker that lacks most entities."""
    one = max(_each(run), key=lambda parties: parties.public.union - len(parties.own.positions.own))
    enough, union = one.public.dim + MORE_QUERIES, one.public.union
    means = one.scored_by("masked", union, 2)
    best = one.scored_by("topk", min(_TOP, union), 1)
    many = chosen_points(one.public.dim, 2000, options.seed)
    tried = [
        ("means, --allow-extraction", attack_scores(means, enough, options.seed)),
        ("means, the usual budget", attack_scores(means.with_means(means.usual_means), enough, options.seed)),
        (f"{_TOP} best positions", attack_scores(best, options.positions, options.seed)),
        (f"{_TOP} best positions, in clear", from_positions(best, many, positions_in_clear(best, many))),
    ]
    return [{"opened": how, "asker": int(one.public.asker), **asdict(found)} for how, found in tried]


def _updates(plain: Path, secret: Path, seed: int) -> list[Line]:
    return [
        {
            "masks": masks,
            "uploads_of": found.against,
            "values": found.sizes["values"],
            "explained": found.scores["explained"],
            "by_chance": found.chance["explained"],
            "succeeded": found.succeeded,
        }
        for pair in attack_recorded(plain, secret, seed)
        for masks, found in zip(("one perturbation", "secret sums"), pair, strict=True)
    ]


def _show(report: dict[str, Any]) -> None:
    for part in (*PARTS, "updates"):
        lines = report.get(part)
        if lines:
            rows = [[_cell(value) for value in line.values()] for line in lines]
            table(f"{part} ({report['encoder']})", [name.replace("_", " ") for name in lines[0]], rows)


def _cell(value: Any) -> str | int:
    match value:
        case {"mean": mean, "low": low, "high": high, "trials": trials}:
            return f"{mean:.3f} [{low:.3f}, {high:.3f}], n={trials}"
        case float():
            return f"{value:.3g}"
        case list():
            return ", ".join(f"{one:.2g}" for one in value)
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case int():
            return value
    return str(value)


if __name__ == "__main__":
    sys.exit(main())
