"""Covering: over which clients means of one table are opened. One set of them, for all batches, askers and sessions.

Two opened sums over different clients can be subtracted from each other. What is left of their counts is what the
missing client holds, whatever the queries were; what is left of their sums, if one query is a combination of others, is
its scores. So it is not enough to look at whether queries come again. A client helps to open means of a table only over
the set of clients over which it has helped before. An asker that is a client belongs to the set: it adds its own scores
by itself, and askers that pool what they read know each other's.

What follows. If two sets differ and an honest client that has helped with the first scores in the second, it refuses,
and so do all others, because it has told them (`announced`). Else nobody who has helped with the first is in the
second, and the difference holds all of their scores. With `other_scorers` in its own configuration a client gives
this up, e.g. because a scorer is gone for good: the asker then reads what that one held.
The first set stays the first. A table that was trained further is another one.
"""

from typing import Protocol

from protocols.foundation.errors import SumAbandoned
from protocols.foundation.identifiers import PartyId
from protocols.scores.terms import ScoreTerms
from protocols.sums.interface import MayOpen, NotedOpening
from protocols.sums.secagg.openings import announcement


class OtherScorers(SumAbandoned):
    """This client does not help to open means of this table over other clients than before."""


class CoverRecord(Protocol):
    """Where it is kept over whom means of a table were opened first."""

    def cover(self, table: bytes, clients: frozenset[PartyId]) -> frozenset[PartyId]:
        """Those of the first opening: `clients` if this is it, and then it is safe from the process's own death."""

    def covered(self, table: bytes) -> frozenset[PartyId]:
        """Those of the first opening; empty if there was none."""


class MemoryCovers:
    """A record that ends with its session."""

    def __init__(self) -> None:
        self._first: dict[bytes, frozenset[PartyId]] = {}

    def cover(self, table: bytes, clients: frozenset[PartyId]) -> frozenset[PartyId]:
        return self._first.setdefault(table, clients)

    def covered(self, table: bytes) -> frozenset[PartyId]:
        return self._first.get(table, frozenset())


class Covering:
    """`others`: whether this client's owner accepts that sums over different clients are opened."""

    def __init__(self, record: CoverRecord, *, others: bool = False) -> None:
        self._record, self._others = record, others

    def announced(self, terms: ScoreTerms) -> bytes:
        """What this client tells the other scorers: over whom means of the table were opened before. It goes to them
        with the keys of the sum, and whoever is asked to open it over others refuses (`openings`). So a server gains
        nothing by asking scorers that have opened nothing yet."""
        first = self._record.covered(terms.table)
        return b"" if not first or self._others else announcement(first - {terms.asker})

    def guard(self, terms: ScoreTerms, may_open: MayOpen | None) -> NotedOpening:
        """To be asked with the missing scorers before this client helps to open a sum; `may_open` is asked first."""

        def ask(missing: frozenset[PartyId]) -> None:
            if may_open is not None:
                may_open(missing)
            clients = frozenset(terms.clients) - missing
            self._require(self._record.covered(terms.table) or clients, clients)

        def note(missing: frozenset[PartyId]) -> None:
            clients = frozenset(terms.clients) - missing
            self._require(self._record.cover(terms.table, clients), clients)

        return NotedOpening(ask, note)

    def _require(self, first: frozenset[PartyId], clients: frozenset[PartyId]) -> None:
        if first != clients and not self._others:
            raise OtherScorers(
                f"means of this table were opened over {len(first)} clients, and now {len(first - clients)} of them "
                f"are missing and {len(clients - first)} are new: the difference would show what these hold; ask when "
                "all are back, use a backend that opens positions only, or have every scorer allow other_scorers"
            )
