"""All cheats, and what is promised against each.

stopped         clients refuse before anything is lost, or nothing is lost by it, and an audit names the cheat
caught          an audit with all clients' receipts ends with exit code 3 and names it, whether or not clients refuse
out of scope    it works, and SECURITY.md says so
clean           no cheat: an honest party, whom nobody may accuse
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks.cheating import (
    around_sums,
    between_members,
    between_sums,
    honest,
    in_questions,
    in_scores,
    in_sums,
    questions,
    scores,
    under_audit,
)
from benchmarks.cheating.entry import Entry, Played


def _honest() -> tuple[Entry, ...]:
    plays: dict[str, Callable[[Path], Played]] = {
        "honest": honest.run,
        "honest-secret": honest.secret,
        "honest-resumed": honest.resumed,
        "honest-without-common-rows": honest.without_common_rows,
        "honest-with-a-dropout": honest.dropout,
        "honest-and-stalled": honest.stalled,
        "honest-masked-scores": partial(scores.honest, backend="masked"),
        "honest-scores-with-a-dropout": scores.dropout,
        "honest-selection": partial(scores.honest, backend="topk"),
        "honest-questions": questions.honest,
    }
    return tuple(Entry(name, "nothing", (), "clean", (), play) for name, play in plays.items())


_ENTRIES: Final = (
    *_honest(),
    *in_sums.of_tables(),
    *in_sums.of_evaluations(),
    *in_sums.of_sums(),
    *in_sums.of_lending(),
    *around_sums.of_sessions(),
    *around_sums.of_unions(),
    *around_sums.of_records(),
    *around_sums.of_absences(),
    *between_sums.of_training(),
    *between_sums.of_duties(),
    *between_sums.of_early_words(),
    *under_audit.of_first_answers(),
    *under_audit.of_framing(),
    *under_audit.of_halves(),
    *between_sums.of_losses(),
    *between_sums.of_results(),
    *between_sums.of_beginnings(),
    *between_members.of_disputes(),
    *between_members.of_newcomers(),
    *in_scores.of_scores(),
    *in_questions.of_questions(),
)
ZOO: Final = {entry.name: entry for entry in _ENTRIES}
