"""Counting the holders of rows before rows are added up: the interface that the plain and the secret count share.

A row that one client holds is not hidden by adding it up. Clients therefore count first, and contribute to a row only
if at least `CountTask.least` of them hold it.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from protocols.foundation.digests import length_prefixed
from protocols.foundation.errors import SumAbandoned
from protocols.foundation.identifiers import PartyId, RoundId
from protocols.foundation.spent import Spent
from protocols.foundation.words import counted
from protocols.primitives.group import GroupVector
from protocols.session.client_session import ClientSession
from protocols.session.server_session import ServerSession
from protocols.sums.totals import SumTotal

PURPOSE: Final = "holders"


@dataclass(frozen=True, slots=True)
class CountTask:
    """One count, as a party reckons it itself."""

    round: RoundId
    participants: tuple[PartyId, ...]
    union_size: int
    union: bytes
    """Digest of the alignment: only clients whose positions mean the same rows can count together."""
    least: int = 2
    """How many holders a row must have."""

    def __post_init__(self) -> None:
        if self.least < 2:
            raise ValueError(f"a bound of {self.least}: every row has that many holders")

    @property
    def entries_per_row(self) -> int:
        """One matrix."""
        return (self.least - 1) ** 2

    @property
    def entries(self) -> int:
        """Without the check."""
        return self.union_size * self.entries_per_row

    @property
    def binding(self) -> bytes:
        """What clients must agree on before they can count together."""
        return length_prefixed(self.union, self.least.to_bytes(8, "little"))


@dataclass(frozen=True, slots=True)
class Holders:
    """What a client knows of the holders of its own rows. Kept out of reprs."""

    enough: npt.NDArray[np.bool_] = field(repr=False)
    """[held]: which of its rows have enough holders among `contributors`, in the order in which it named them."""
    contributors: frozenset[PartyId]

    def may_open(self, missing: frozenset[PartyId]) -> None:
        """A `protocols.sums.interface.MayOpen`: no sum of rows from which a holder may be missing that was there
        before.
        """
        if gone := missing & self.contributors:
            raise SumAbandoned(
                f"{counted(len(gone), 'client')} dropped out after holders were counted: "
                "a row may have too few of them left"
            )


def require_positions(held: npt.NDArray[np.int64], task: CountTask) -> None:
    """`ValueError` for rows that would count elsewhere or be read back wrongly."""
    if held.size and not (int(held.min()) >= 0 and int(held.max()) < task.union_size):
        raise ValueError(f"rows held are positions in the union, below {task.union_size}")
    taken = np.zeros(task.union_size, dtype=np.bool_)
    taken[held] = True
    if np.count_nonzero(taken) != len(held):  # without sorting: this is done in every round
        raise ValueError("rows held are positions in the union, each once")


class HolderClient(ABC):
    """A client's part in counting."""

    def __init__(self) -> None:
        self.spent = Spent()
        """The work of all counts so far, without waiting."""

    @abstractmethod
    def prepare(self, session: ClientSession, task: CountTask) -> None:
        """Agree on whatever this count needs. At most once per round."""

    @abstractmethod
    def count(self, session: ClientSession, task: CountTask, held: npt.NDArray[np.int64]) -> Holders:
        """`held`: the positions of the rows this client holds, each once."""


class HolderServer(ABC):
    """The server's part in counting."""

    @abstractmethod
    def prepare(self, session: ServerSession, task: CountTask) -> None:
        """The counterpart of `HolderClient.prepare`."""

    @abstractmethod
    def collect(self, session: ServerSession, task: CountTask) -> None:
        """Add up, and send the total to those who are in it."""


def send_total(session: ServerSession, task: CountTask, contributors: Collection[PartyId], vector: GroupVector) -> None:
    """To those who are in it and still present."""
    total = SumTotal.of(task.round, PURPOSE, contributors, vector)
    with session.phase(task.round, PURPOSE):
        session.broadcast(contributors, total, task.round, PURPOSE)
