"""A client that follows the protocol of a private run and writes down its own share of the noise.

It draws the noise itself, so nothing can keep it from knowing it. The proof counts every client among the corrupt ones
for that reason (`secure_kg.federation.plan.private_plan`), and an attack that left its own noise in the means would
understate the risk.
"""

import dataclasses
from collections.abc import Callable, Collection
from pathlib import Path

from protocols.session.credentials import Credentials
from protocols.sums.interface import Contribution, ContributionReport, MayOpen, SumLayout
from protocols.sums.noise import NO_NOISE
from protocols.sums.noted_noise import Drawn, NotedNoise
from protocols.sums.secagg.openings import Openings
from protocols.sums.terms import SumTerms
from secure_kg.federation.client.client import FederationClient
from secure_kg.federation.client.context import ClientContext
from secure_kg.federation.client.states import States
from secure_kg.learning.learner import Learner

Note = Callable[[int, Drawn], None]
"""Told the round and the noise."""


class CuriousClient(FederationClient):
    """`watch` comes before `run`."""

    def watch(self, rounds: Collection[int]) -> dict[int, Drawn]:
        """Where the noise of these rounds will be found, by round; nothing where there is none."""
        self._watched, self._drawn = frozenset(rounds), dict[int, Drawn]()
        return self._drawn

    def _open_session(
        self, learner: Learner, folder: Path, states: States, credentials: Credentials | None, openings: Openings
    ) -> ClientContext:
        usual = super()._open_session(learner, folder, states, credentials, openings)
        return _CuriousContext(
            usual.plan, usual.conversation, learner, folder, states, usual.keys, usual.holders, usual.sums,
            note=self._note,
        )  # fmt: skip

    def _note(self, round: int, drawn: Drawn) -> None:
        if round in self._watched:
            self._drawn[round] = drawn


@dataclasses.dataclass(slots=True)
class _CuriousContext(ClientContext):
    note: Note = lambda round, drawn: None

    def contribute(
        self,
        aggregation: str,
        terms: SumTerms[SumLayout],
        contribution: Contribution,
        may_open: MayOpen | None = None,
    ) -> ContributionReport:
        if contribution.noise is not NO_NOISE:
            contribution = dataclasses.replace(contribution, noise=NotedNoise(contribution.noise, self.note))
        return ClientContext.contribute(self, aggregation, terms, contribution, may_open)
