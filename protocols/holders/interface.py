"""Counting the holders of rows before rows are added up: the interface that the plain and the secret count share.

A row that one client holds is not hidden by adding it up. Clients therefore count first, and contribute to a row only
if at least `CountTask.least` of them hold it.

A count may stand for later sums of the same rows (`StandingCount`): what a client holds does not change within a run.
Whether holders are counted anew is the server's choice, for it knows who is present. It is a choice that gives it
nothing: without a count that stands for the very participants a client adds no rows, and a count that is made anew says
no more than one that is made every round. Three rules keep the bound, whatever the server does and whoever drops out.

- A client helps to open a sum of rows only if nobody is missing from it who was in the count that it goes by
  (`Holders.may_open`), however long ago that was.
- Clients that go by different counts open no shares of each other's (`Holders.binding`, `SumTerms.counted`), and so
  give no input: all in a sum go by one count. A row that is in it has as many holders in it as were counted.
- A client that begins another count, or was a dropout, goes by no earlier one. If a count fails, none stands.

So of all counts that a client has made only the last one counts, and fewer counts tell less: two of them over different
sets of clients may show who holds a row.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from protocols.foundation.digests import digest, encode_parties, length_prefixed
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
    binding: bytes = field(default=b"", repr=False)
    """Digest of the count: clients have the same only if they go by the same one."""

    def may_open(self, missing: frozenset[PartyId]) -> None:
        """A `protocols.sums.interface.MayOpen`: no sum of rows from which a holder may be missing that was there
        before.
        """
        if gone := missing & self.contributors:
            raise SumAbandoned(dropped_after_counting(len(gone)))


def dropped_after_counting(clients: int) -> str:
    """Why a sum of rows is not opened."""
    return f"{counted(clients, 'client')} dropped out after holders were counted: a row may have too few of them left"


def binding_of(total: SumTotal) -> bytes:
    """Of the count that this is the total of."""
    numbers = total.of_round.to_bytes(8, "little"), encode_parties([PartyId(party) for party in total.contributors])
    return digest(total.purpose.encode(), *numbers, total.vector.tobytes())


class StandingCount:
    """A client's last count, as long as it stands. `forget` it before another one begins."""

    def __init__(self) -> None:
        self._made: tuple[CountTask, Holders] | None = None

    def __repr__(self) -> str:
        return f"StandingCount({'none' if self._made is None else 'one'})"

    def keep(self, task: CountTask, holders: Holders) -> None:
        self._made = task, holders

    def forget(self) -> None:
        self._made = None

    def stands_for(self, task: CountTask) -> Holders | None:
        """What was counted for another round of the same task; None if there is nothing of the kind."""
        if self._made is None or replace(self._made[0], round=task.round) != task:
            return None
        return self._made[1]


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
    def collect(self, session: ServerSession, task: CountTask) -> frozenset[PartyId]:
        """Add up, and send the total to those who are in it."""


def send_total(session: ServerSession, task: CountTask, contributors: Collection[PartyId], vector: GroupVector) -> None:
    """To those who are in it and still present."""
    total = SumTotal.of(task.round, PURPOSE, contributors, vector)
    with session.phase(task.round, PURPOSE):
        session.broadcast(contributors, total, task.round, PURPOSE)
