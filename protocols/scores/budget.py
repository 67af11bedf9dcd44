"""Budget of opened means: how many queries a client helps to open the mean scores of, over one trained table.

Why there is one. The score of a row e for a query q is a function of both that the asker knows, e.g. their inner
product. One opened mean is one equation in e, and holders of an entity have the same row after aggregation, so that
the number of holders does not matter. d linearly independent queries give every row of width d by solving a linear
system (`secure_kg.attacks.extraction`), squared distances with d + 1.

What a budget of m < d gives. Inner products with m queries fix the part of a row that lies in their span and say
nothing of the rest: for rows e and e + x with x orthogonal to all queries, every answer is the same. d - m dimensions
of every row stay open. The default m = d // 2 (`default_limit`) leaves at least half of them. d - 1 would leave one
unknown per row, and anything that is known of rows, e.g. their length, would fix it.

How it is counted. Per table (`ScoreTerms.table`), over all askers and sessions: askers may share what they read. A
batch counts its queries. A client charges itself before its input leaves, and gives nothing back: what was sent may
have been opened, whatever the server says. The same queries of the same asker, asked again in this session after an
attempt that was abandoned, count once: clients open them over one set of survivors only
(`protocols.sums.secagg.openings`).

Misuse:      a budget belongs to backends that open means. Where positions alone are opened there is none.
Not covered: what a row gives away within the span of the queries. A budget bounds dimensions, not what they matter:
             queries along the directions in which rows differ most give more than their share. Tables that are nearly
             the same, e.g. of consecutive rounds, have budgets of their own. Clients that keep none: means are opened
             as long as enough clients help.
"""

from dataclasses import dataclass, field
from typing import Protocol

from protocols.foundation.digests import digest, encode_parties
from protocols.foundation.errors import SumAbandoned
from protocols.foundation.identifiers import PartyId
from protocols.holders.interface import PURPOSE as HOLDERS
from protocols.scores.messages import PURPOSE
from protocols.scores.terms import ScoreTerms
from protocols.session.client_session import ClientSession
from protocols.session.conversation import MAX_REASON, Abandon


class BudgetSpent(SumAbandoned):
    """This client does not help to open more means of this table."""


@dataclass(frozen=True, slots=True)
class Charge:
    """The queries of one batch, as they are written down."""

    table: bytes
    queries: int
    asker: PartyId


class ChargeRecord(Protocol):
    """Where charges are kept, for all sessions of a client."""

    def spent(self, table: bytes) -> int:
        """Queries that were charged to a table so far."""

    def add(self, charge: Charge, limit: int | None) -> bool:
        """Write a charge down, safe from the process's own death; False, and nothing written, if it goes beyond
        `limit`. Both in one step: sessions may run at the same time."""


@dataclass(slots=True)
class MemoryRecord:
    """A record that ends with its process: for measurements and tests."""

    charges: list[Charge] = field(default_factory=list)

    def spent(self, table: bytes) -> int:
        return sum(charge.queries for charge in self.charges if charge.table == table)

    def add(self, charge: Charge, limit: int | None) -> bool:
        if limit is not None and self.spent(charge.table) + charge.queries > limit:
            return False
        self.charges.append(charge)
        return True


def default_limit(width: int) -> int:
    """Of a table whose rows have so many numbers: half of them."""
    return width // 2


class Budget:
    """`limit`: queries per table. `allow_extraction`: charges are written down and never refused."""

    def __init__(self, record: ChargeRecord, limit: int, *, allow_extraction: bool = False) -> None:
        if limit < 0:
            raise ValueError(f"a budget of {limit} queries is none")
        self._record, self._limit, self._allowed = record, limit, allow_extraction
        self._charged: set[bytes] = set()
        """Batches that this session has paid for."""

    def __repr__(self) -> str:
        return f"Budget({'unlimited' if self._allowed else self._limit} queries per table)"

    def may_come(self, terms: ScoreTerms, queries: bytes) -> None:
        """`BudgetSpent` if the batch goes beyond the budget. Nothing is charged."""
        spent = self._record.spent(terms.table)
        if not self._allowed and not self._is_paid(terms, queries) and spent + terms.queries > self._limit:
            raise BudgetSpent(self._refusal(terms, spent))

    def charge(self, terms: ScoreTerms, queries: bytes) -> None:
        """Called right before a client sends what the means are made of; `BudgetSpent` if it must not."""
        if self._is_paid(terms, queries):
            return
        charge = Charge(terms.table, terms.queries, terms.asker)
        if not self._record.add(charge, None if self._allowed else self._limit):
            raise BudgetSpent(self._refusal(terms, self._record.spent(terms.table)))
        self._charged.add(_batch(terms, queries))

    def _is_paid(self, terms: ScoreTerms, queries: bytes) -> bool:
        return _batch(terms, queries) in self._charged

    def _refusal(self, terms: ScoreTerms, spent: int) -> str:
        return (
            f"means of {spent} queries of this table were opened, and {terms.queries} more go beyond the budget of "
            f"{self._limit}: enough of them give the table; use a backend that opens positions only, or say "
            "--allow-extraction"
        )


def require_budget(session: ClientSession, budget: Budget | None, terms: ScoreTerms, queries: bytes) -> None:
    """A scorer's first step after it was asked: refuse early, and tell the server. None: nothing is counted."""
    if budget is None:
        return
    try:
        budget.may_come(terms, queries)
    except BudgetSpent as problem:
        for purpose in (HOLDERS, PURPOSE):  # whichever of its two sums the server waits for
            session.send(Abandon(purpose, str(problem)[:MAX_REASON]), terms.round)
        raise


def charge(budget: Budget | None, terms: ScoreTerms, queries: bytes) -> None:
    """A scorer's last step before its input leaves. None: nothing is counted."""
    if budget is not None:
        budget.charge(terms, queries)


def _batch(terms: ScoreTerms, queries: bytes) -> bytes:
    """What the attempts of one batch have in common."""
    return digest(terms.table, encode_parties(terms.clients), encode_parties([terms.asker]), queries)
