"""Budget of opened means: how many queries a client helps to open the mean scores of, over one trained table.

Why there is one. The score of a row e for a query q is a function of both that the asker knows, e.g. their inner
product. One opened mean is one equation in e, and holders of an entity have the same row after aggregation, so that
the number of holders does not matter. d linearly independent queries give every row of width d by solving a linear
system (`secure_kg.attacks.extraction`), squared distances with d + 1.

What a budget of m < d gives. Inner products with m queries fix the part of a row that lies in their span and say
nothing of the rest: for rows e and e + x with x orthogonal to all queries, every answer is the same. d - m dimensions
of every row stay open. d - 1 would leave one unknown per row, and anything that is known of rows, e.g. their length,
would fix it. So half of d is what may be opened in all.

The limit of one client is lower than that, because not every client is charged for every query: a server may call some
of them dropouts before they are, and askers may take turns. Every opened query is charged to all honest scorers that
have contributed. Of n clients, c of them corrupt, with at least s scorers in every sum, these are s - c of n - c. If
each of them allows m queries, there are m (n - c) / (s - c) at most. The default m = d (s - c) / 2 (n - c)
(`default_limit`) makes that d / 2, whoever is called a dropout when.

How it is counted. Per table (`ScoreTerms.table`), over all askers and sessions: askers may share what they read. A
batch counts its queries. A client charges itself before its input leaves, and gives nothing back: what was sent may
have been opened, whatever the server says. The same queries of the same asker, asked again in this session after an
attempt that was abandoned, count once: clients open them over one set of survivors only
(`protocols.sums.secagg.openings`). With the charges a client keeps over whom means were opened
(`protocols.scores.covering`).

Misuse:      a budget belongs to backends that open means. Where positions alone are opened there is none.
Not covered: what a row gives away within the span of the queries. A budget bounds dimensions, not what they matter:
             queries along the directions in which rows differ most give more than their share. Tables that are nearly
             the same, e.g. of consecutive rounds, have budgets of their own. Clients that keep none: means are opened
             as long as enough clients help.
"""

import copy
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol, Self

from protocols.foundation.digests import digest, encode_parties
from protocols.foundation.errors import SumAbandoned
from protocols.foundation.identifiers import PartyId
from protocols.holders.interface import PURPOSE as HOLDERS
from protocols.scores.covering import Covering, CoverRecord, Kept, MemoryCovers
from protocols.scores.messages import PURPOSE
from protocols.scores.terms import FEWEST_CLIENTS, MOST_CLIENTS, ScoreTerms
from protocols.session.client_session import ClientSession
from protocols.session.conversation import MAX_REASON, Abandon
from protocols.sums.secagg.params import ThreatModel


class BudgetSpent(SumAbandoned):
    """This client does not help to open more means of this table."""


@dataclass(frozen=True, slots=True)
class Charge:
    """The queries of one batch, as they are written down."""

    table: bytes
    queries: int
    asker: PartyId


def spent_of(charges: Iterable[Charge], table: bytes, asker: PartyId | None) -> int:
    """What was charged to a table, by all askers or by one."""
    return sum(one.queries for one in charges if one.table == table and asker in (None, one.asker))


def goes_beyond(charges: Sequence[Charge], charge: Charge, limit: int | None, share: int | None) -> bool:
    """Whether one more charge goes beyond `limit` in all, or beyond the `share` of its asker. None: no bound."""
    bounds = ((limit, None), (share, charge.asker))
    return any(
        bound is not None and spent_of(charges, charge.table, asker) + charge.queries > bound for bound, asker in bounds
    )


def share_of(limit: int, askers: int) -> int:
    """What one of so many askers may have of a budget: an equal part, and one at least."""
    return max(limit // askers, min(limit, 1))


class ChargeRecord(Protocol):
    """Where charges are kept, for all sessions of a client."""

    def spent(self, table: bytes, asker: PartyId | None = None) -> int:
        """Queries that were charged to a table so far, by all askers or by one."""

    def cover(self, table: bytes, clients: frozenset[PartyId]) -> frozenset[PartyId]:
        """See `protocols.scores.covering.CoverRecord`."""

    def covered(self, table: bytes) -> frozenset[PartyId]:
        """Likewise."""

    def release(self) -> None:
        """A step is over, also one that came to nothing: other sessions of this client may go on."""

    def add(self, charge: Charge, limit: int | None, share: int | None = None) -> bool:
        """Write a charge down, safe from the process's own death; False, and nothing written, if it goes beyond
        `limit` in all, or beyond the `share` of its asker. Both in one step: sessions may run at the same time."""


@dataclass(slots=True)
class MemoryRecord:
    """A record that ends with its process: for measurements and tests."""

    charges: list[Charge] = field(default_factory=list)
    covers: MemoryCovers = field(default_factory=MemoryCovers)

    def cover(self, table: bytes, clients: frozenset[PartyId]) -> frozenset[PartyId]:
        return self.covers.cover(table, clients)

    def covered(self, table: bytes) -> frozenset[PartyId]:
        return self.covers.covered(table)

    def release(self) -> None:
        """Nobody else waits for it."""

    def spent(self, table: bytes, asker: PartyId | None = None) -> int:
        return spent_of(self.charges, table, asker)

    def add(self, charge: Charge, limit: int | None, share: int | None = None) -> bool:
        if goes_beyond(self.charges, charge, limit, share):
            return False
        self.charges.append(charge)
        return True


@dataclass(frozen=True, slots=True)
class Helpers:
    """Who shares in opening: so many clients, of whom so many may be corrupt, at least `least` scorers in every sum."""

    clients: int = MOST_CLIENTS
    least: int = FEWEST_CLIENTS
    corrupt: int = 0

    @classmethod
    def of(cls, clients: int, model: ThreatModel) -> "Helpers":
        """By what a client's configuration declares, with the asker among the clients."""
        scorers = clients - 1
        return cls(clients, max(FEWEST_CLIENTS, scorers - model.dropouts_of(scorers)), model.corrupt_of(clients))


@dataclass(frozen=True, slots=True)
class Standing:
    """What was charged of a budget, and what there is in all; None: it has no limit."""

    spent: int
    limit: int | None


def default_limit(width: int, helpers: Helpers) -> int:
    """Of one client, for a table whose rows have so many numbers: half of them are opened at most, by all together."""
    charged, honest = max(1, helpers.least - helpers.corrupt), max(1, helpers.clients - helpers.corrupt)
    return width * min(charged, honest) // (2 * honest)


class Budget:
    """What a client lets be opened of a table: how many queries, and over whom.

    `limit`: queries per table. `share`: of one asker; None: as many as there are. `allow_extraction`: charges are
    written down and never refused. `other_scorers`: means of one table may be opened over different clients.
    """

    def __init__(
        self,
        record: ChargeRecord,
        limit: int,
        *,
        share: int | None = None,
        allow_extraction: bool = False,
        other_scorers: bool = False,
    ) -> None:
        if limit < 0 or (share is not None and share < 0):
            raise ValueError(f"a budget of {limit} queries is none")
        self.record, self._limit, self._share, self._allowed = record, limit, share, allow_extraction
        self._charged: set[bytes] = set()
        """Batches that this session has paid for."""
        self.covering = Covering(Kept(record), others=other_scorers)

    def __repr__(self) -> str:
        return f"Budget({'unlimited' if self._allowed else self._limit} queries per table)"

    def within(self, covers: CoverRecord, *, whole: bool = False) -> Self:
        """The same budget where everything that this client helps to open is over one set of clients: it is kept in
        `covers`, beside that of each table. Whether other scorers were allowed does not matter then. `whole`: see
        `Covering`."""
        same = copy.copy(self)
        same.covering = Covering(Kept(covers, together=True), Kept(self.record), whole=whole)
        return same

    def standing(self, table: bytes) -> Standing:
        """Of one table, for the client itself."""
        return Standing(self.record.spent(table), None if self._allowed else self._limit)

    def cost(self, terms: ScoreTerms) -> int:
        """What a batch counts."""
        return terms.queries

    def may_come(self, terms: ScoreTerms, queries: bytes) -> None:
        """`BudgetSpent` if the batch goes beyond the budget. Nothing is charged."""
        if not self._allowed and not self._is_paid(terms, queries):
            self._require_room(terms)

    def charge(self, terms: ScoreTerms, queries: bytes) -> None:
        """Called right before a client sends what the means are made of; `BudgetSpent` if it must not."""
        if self._is_paid(terms, queries):
            return
        charge = Charge(terms.table, self.cost(terms), terms.asker)
        limit, share = (None, None) if self._allowed else (self._limit, self._share)
        if not self.record.add(charge, limit, share):
            self._require_room(terms)
            raise AssertionError("unreachable: charges are never taken back")
        self._charged.add(_batch(terms, queries))

    def _require_room(self, terms: ScoreTerms) -> None:
        bounds = ((self._limit, None, ""), (self._share, terms.asker, " by this asker"))
        for bound, asker, of in bounds:
            spent = self.record.spent(terms.table, asker)
            if bound is not None and spent + self.cost(terms) > bound:
                raise BudgetSpent(self._refusal(terms, spent, bound, of))

    def _is_paid(self, terms: ScoreTerms, queries: bytes) -> bool:
        return _batch(terms, queries) in self._charged

    def _refusal(self, terms: ScoreTerms, spent: int, bound: int, of: str) -> str:
        queries = "1 query" if spent == 1 else f"{spent} queries"
        return (
            f"means of {queries} of this table were opened{of}, and {self.cost(terms)} more go beyond the budget "
            f"of {bound}: enough of them give the table; use a backend that opens positions only, or say "
            "--allow-extraction"
        )


def require_budget(session: ClientSession, budget: Budget | None, terms: ScoreTerms, queries: bytes) -> None:
    """A scorer's first step after it was asked: refuse early, and tell the server. None: nothing is counted."""
    if budget is None:
        return
    with _told(session, terms, HOLDERS, PURPOSE):
        budget.may_come(terms, queries)


def require_all_clients(
    session: ClientSession, covering: Covering | None, terms: ScoreTerms, purpose: str = PURPOSE
) -> None:
    """A client's first step in a batch that all take part in, before anything leaves; it tells the server if it may
    not. None: nothing is kept. `purpose`: of what the server waits for, if it does not count holders."""
    if covering is not None:
        with _told(session, terms, HOLDERS, purpose):
            covering.may_all(terms)


def note_all_clients(session: ClientSession, covering: Covering | None, terms: ScoreTerms) -> None:
    """Its last step before it gives its part of the answer: the set is written down. Another session may have written
    another one in the meantime."""
    if covering is not None:
        with _told(session, terms, PURPOSE):
            covering.note_all(terms)


@contextmanager
def _told(session: ClientSession, terms: ScoreTerms, *awaited: str) -> Iterator[None]:
    """Tell the server if this client cannot go on, whichever of its sums the server waits for."""
    try:
        yield
    except SumAbandoned as problem:
        for purpose in awaited:
            session.send(Abandon(purpose, str(problem)[:MAX_REASON]), terms.round)
        raise


def announced(session: ClientSession, covering: Covering, terms: ScoreTerms) -> bytes:
    """What a scorer announces with the keys of its sum; if it cannot take part now, it tells the server."""
    with _told(session, terms, HOLDERS, PURPOSE):
        return covering.announced(terms)


def charge(budget: Budget | None, terms: ScoreTerms, queries: bytes) -> None:
    """A scorer's last step before its input leaves. None: nothing is counted."""
    if budget is not None:
        budget.charge(terms, queries)


def _batch(terms: ScoreTerms, queries: bytes) -> bytes:
    """What the attempts of one batch have in common."""
    size = terms.queries.to_bytes(8, "little") + terms.positions.to_bytes(8, "little")
    return digest(terms.table, encode_parties(terms.clients), encode_parties([terms.asker]), size, queries)
