"""Spoils of a cheating server: what it computes from its notebook, and how far that is from the victim's secret.

The server's side uses nothing but what passed its end of the wire, and the group key where a client is on its side. The
truth comes from the victim's own trainer and files, and is used for nothing but to measure the error.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from benchmarks.cheating.stage import Rows, Session, Stage
from protocols.alignment.interface import Union
from protocols.foundation import wire
from protocols.session.conversation import Abandon, Failed
from protocols.sums.interface import Total
from secure_kg.audit.view.opening import OpenedSum, Opening
from secure_kg.audit.view.read import Observation, Recording
from secure_kg.runs.alignment_files import load_aligned, load_positions

NEAR: Final = 0.25
"""A secret counts as got if half of it is known with less than this share of the error of an honest guess."""


@dataclass(frozen=True, slots=True)
class Spoils:
    """Errors of what the server computed, against the secret, and `guess`: of guessing from what all may know."""

    largest: float | None
    median: float | None
    guess: float | None
    """The median again."""
    entries: int = 0

    @property
    def got(self) -> bool:
        return self.median is not None and self.guess is not None and self.median <= NEAR * self.guess

    def record(self) -> dict[str, Any]:
        return {
            "largest_error": self.largest,
            "median_error": self.median,
            "error_of_guessing": self.guess,
            "entries": self.entries,
        }


NOTHING: Final = Spoils(None, None, None)


def compared(computed: npt.NDArray[Any], truth: npt.NDArray[Any], guess: npt.NDArray[Any]) -> Spoils:
    if not truth.size:
        return NOTHING
    errors, guessed = np.abs(computed - truth), np.abs(guess - truth)
    return Spoils(float(errors.max()), float(np.median(errors)), float(np.median(guessed)), int(truth.size))


def observations(notebook: Path) -> Iterator[Observation]:
    if notebook.exists():
        yield from Recording(notebook)


def sums_read(stage: Stage, session: Session, union: Union | None = None) -> list[OpenedSum]:
    """Every sum of the session that the server could open, in order."""
    opening, found = Opening(stage.config, stage.config.clients or 0, union, stage.directory), list[OpenedSum]()
    for observation in observations(session.notebook):
        found.extend(opening.observe(observation))
    found.extend(opening.end())
    return [one for one in found if one.vector is not None]


Read: TypeAlias = tuple[Total, frozenset[int]] | None
"""The numbers of a sum and who is in it; None of one that the server cannot read."""


def total_of(sums: list[OpenedSum], purpose: str, round_id: int) -> Read:
    for one in sums:
        if (one.purpose, one.round) == (purpose, round_id) and one.layout is not None and one.vector is not None:
            return one.layout.decode(one.vector), one.contributors
    return None


def said(session: Session, *kinds: type[wire.Message], sender: int | None = None) -> list[Observation]:
    """What clients sent of some kinds."""
    return [
        one
        for one in observations(session.notebook)
        if one.direction == "received" and isinstance(one.message, kinds) and sender in (None, one.peer)
    ]


def refusals(stage: Stage) -> dict[str, str]:
    """By client: why it would not go on, or not with one sum."""
    found: dict[str, str] = {}
    for session in stage.sessions:
        for one in said(session, Abandon, Failed):
            found.setdefault(str(one.peer), str(getattr(one.message, "reason", "")))
        for number, reason in session.refused.items():
            found.setdefault(str(number), reason)
    return found


def held_rows(stage: Stage, number: int, rows: Rows) -> tuple[npt.NDArray[np.int64], Rows] | None:
    """A client's rows with their positions in the union; None if it has found none."""
    aligned = load_aligned(stage.run / "server")
    if aligned is None:
        return None
    folder, names = stage.run / "clients" / str(number), stage.graphs[number - 1].relations
    return load_positions(folder, aligned.union.digest, names).own, rows
