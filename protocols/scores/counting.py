"""The holder rule of a batch: which of its positions a scorer may give scores of.

Where `least` is 2 or more, scorers count holders first (`protocols.holders`), and then neither give a score of a
position that too few of them hold nor help to open a sum from which somebody who was counted is missing. The asker
takes no part: what it holds is no cover for the scorer beside it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from protocols.foundation.identifiers import PartyId
from protocols.holders.interface import CountTask, HolderClient, HolderServer
from protocols.scores.terms import ScoreTerms
from protocols.session.client_session import ClientSession
from protocols.session.server_session import ServerSession


@dataclass(frozen=True, slots=True)
class Counted:
    """What a scorer knows of its positions after the count."""

    enough: npt.NDArray[np.bool_] = field(repr=False)
    """[held]."""
    may_open: Callable[[frozenset[PartyId]], None] | None = None


def count_task(terms: ScoreTerms) -> CountTask:
    """The count of a batch whose `least` is 2 or more."""
    return CountTask(terms.round, terms.scorers, terms.positions, terms.digest, terms.least)


def prepare(session: ClientSession, holders: HolderClient, terms: ScoreTerms) -> None:
    """Agree on the keys of the count, if there is one."""
    if terms.least > 1:
        holders.prepare(session, count_task(terms))


def count(session: ClientSession, holders: HolderClient, terms: ScoreTerms, held: npt.NDArray[np.int64]) -> Counted:
    """A scorer's side."""
    if terms.least == 1:
        return Counted(np.ones(len(held), dtype=np.bool_))
    counted = holders.count(session, count_task(terms), held)
    return Counted(counted.enough, counted.may_open)


def serve_prepare(session: ServerSession, holders: HolderServer, terms: ScoreTerms) -> None:
    """The counterpart of `prepare`."""
    if terms.least > 1:
        holders.prepare(session, count_task(terms))


def serve(session: ServerSession, holders: HolderServer, terms: ScoreTerms) -> None:
    """The counterpart of `count`."""
    if terms.least > 1:
        holders.collect(session, count_task(terms))
