"""Covering: over which clients means of one table are opened. One set of them, for all batches, askers and sessions.

Where several tables are of one federation, e.g. rows of its models, vectors of every width and names, all of them say
who holds what, whatever the model. So they have one set together, kept under one key (`HOLDINGS`), for all steps of all
questions. Batches that all clients take part in or none (`may_all`, `note_all`) belong to it: an answer over all of
them, less one over all but one, is what that one has.

Two opened sums over different clients can be subtracted from each other. What is left of their counts is what the
missing client holds, whatever the queries were; what is left of their sums, if one query is a combination of others, is
its scores. So it is not enough to look at whether queries come again. A client helps to open means of a table only over
the set of clients over which it has helped before. An asker that is a client belongs to the set: it adds its own scores
by itself, and askers that pool what they read know each other's.

What follows. If two sets differ and an honest client that has helped with the first scores in the second, it refuses,
and so do all others, because it has told them (`announced`). Else nobody who has helped with the first is in the
second, and the difference holds all of their scores. With `other_scorers` in its own configuration a client gives
this up, e.g. because a scorer is gone for good: the asker then reads what that one held.
The first set stays the first.
"""

from dataclasses import dataclass
from typing import Final, Protocol

from protocols.foundation.digests import digest
from protocols.foundation.errors import SumAbandoned
from protocols.foundation.identifiers import PartyId
from protocols.scores.terms import ScoreTerms
from protocols.sums.interface import MayOpen, NotedOpening
from protocols.sums.secagg.openings import NOBODY, announcement

HOLDINGS: Final = digest(b"secure-kg/who holds what/1")
"""The key of the set that holds for everything a record's owner helps to open: no table has this digest."""


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


@dataclass(frozen=True, slots=True)
class Kept:
    """Where sets are kept, and under what: each table by itself, or all `together`."""

    record: CoverRecord
    together: bool = False

    def key(self, terms: ScoreTerms) -> bytes:
        return HOLDINGS if self.together else terms.table


class Covering:
    """`kept`: in all of these places. `others`: whether this client's owner accepts that sums over different clients
    are opened. `whole`: whether nothing comes of a question without all clients; then nothing is opened, or written
    down, without one of them."""

    def __init__(self, *kept: Kept, others: bool = False, whole: bool = False) -> None:
        self._kept, self._others, self._whole = kept, others, whole

    def announced(self, terms: ScoreTerms) -> bytes:
        """What this client tells the other scorers: over whom means of the table were opened before. It goes to them
        with the keys of the sum, and whoever is asked to open it over others refuses (`openings`). So a server gains
        nothing by asking scorers that have opened nothing yet."""
        found = {first for _, first in self._covered(terms)}
        if not found or self._others:
            return b""
        return announcement(found.pop() - {terms.asker}) if len(found) == 1 else NOBODY

    def guard(self, terms: ScoreTerms, may_open: MayOpen | None) -> NotedOpening:
        """To be asked with the missing scorers before this client helps to open a sum; `may_open` is asked first."""

        def ask(missing: frozenset[PartyId]) -> None:
            if may_open is not None:
                may_open(missing)
            if self._whole and missing:
                gone = ", ".join(map(str, sorted(missing)))
                raise SumAbandoned(f"client {gone} dropped out, and this question needs all clients")
            clients = frozenset(terms.clients) - missing
            for one, first in self._covered(terms):
                self._require(one, first, clients)

        def note(missing: frozenset[PartyId]) -> None:
            clients = frozenset(terms.clients) - missing
            for one in self._kept:
                self._require(one, one.record.cover(one.key(terms), clients), clients)

        return NotedOpening(ask, note)

    def may_all(self, terms: ScoreTerms) -> None:
        """To be asked before anything leaves for a batch that all clients take part in: `OtherScorers` if this client
        has helped to open over others."""
        for one, first in self._covered(terms):
            self._require(one, first, frozenset(terms.clients))

    def note_all(self, terms: ScoreTerms) -> None:
        """To be asked right before this client gives its part of such an answer, without which there is none."""
        clients = frozenset(terms.clients)
        for one in self._kept:
            self._require(one, one.record.cover(one.key(terms), clients), clients)

    def _covered(self, terms: ScoreTerms) -> list[tuple[Kept, frozenset[PartyId]]]:
        """The first set of each place that has one. All places are asked: from then on no other session goes on."""
        found = [(one, one.record.covered(one.key(terms))) for one in self._kept]
        return [(one, first) for one, first in found if first]

    def _require(self, kept: Kept, first: frozenset[PartyId], clients: frozenset[PartyId]) -> None:
        if first != clients and not self._others:
            raise OtherScorers(_of_all(first, clients) if kept.together else _of_table(first, clients))


def _of_table(first: frozenset[PartyId], clients: frozenset[PartyId]) -> str:
    return (
        f"means of this table were opened over {len(first)} clients, and now {len(first - clients)} of them "
        f"are missing and {len(clients - first)} are new: the difference would show what these hold; ask when "
        "all are back, or have every scorer allow other_scorers"
    )


def _of_all(first: frozenset[PartyId], clients: frozenset[PartyId]) -> str:
    gone, new = (", ".join(map(str, sorted(those))) for those in (first - clients, clients - first))
    what = [f"without client {gone}"] * bool(gone) + [f"with client {new}"] * bool(new)
    return (
        f"questions were answered before, and now {' and '.join(what)}: the difference would show what that "
        f"client holds; ask again {'when it is back' if gone else 'without it'}"
    )
