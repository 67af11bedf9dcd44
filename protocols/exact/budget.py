"""The budget of exact answers: how many atoms a client answers, over all askers and sessions that share its record.

An atom gives all neighbours of an entity along a relation. The budget bounds how much of its graph a client tells, and
how many formulas an asker can put together. What is counted follows from the request alone, whether or not a client
tells of the relation: a refusal says nothing about its rules. The same request of the same asker, asked again in one
session, counts once: its answer is the same.
"""

from dataclasses import replace
from typing import Final

from protocols.foundation.digests import digest
from protocols.scores.budget import Budget
from protocols.scores.terms import ScoreTerms

_FACTS: Final = digest(b"secure-kg/exact/facts/1")
"""Under which all atoms are counted: facts are the same whatever model was trained on them."""


class ExactBudget(Budget):
    """`limit`: atoms. `share`: of one asker; None: as many as there are."""

    def may_come(self, terms: ScoreTerms, queries: bytes) -> None:
        super().may_come(replace(terms, table=_FACTS), queries)

    def charge(self, terms: ScoreTerms, queries: bytes) -> None:
        super().charge(replace(terms, table=_FACTS), queries)

    def _refusal(self, terms: ScoreTerms, spent: int, bound: int, of: str) -> str:
        kind = "share" if of else "budget"
        return f"{spent} atoms were answered exactly{of}, and {self.cost(terms)} more go beyond the {kind} of {bound}"
