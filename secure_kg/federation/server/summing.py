"""The server's part in the sums of a run: with whoever is there, and given up where that is too few."""

from collections.abc import Callable, Collection
from typing import Final

from protocols.foundation.errors import SumAbandoned, SumRefused
from protocols.foundation.identifiers import PartyId
from protocols.holders.interface import PURPOSE as HOLDERS
from protocols.holders.interface import CountTask
from protocols.session.conversation import MAX_REASON, Abandon
from protocols.session.patience import Patience
from protocols.sums.interface import SumLayout
from protocols.sums.secagg.keys import ServerKeys
from protocols.sums.terms import SumTerms
from secure_kg.federation.plan import twins
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.federation.server.gathering import Gathering
from secure_kg.federation.server.ledger import Ledger
from secure_kg.foundation.errors import UserError

_MOST_ABANDONED: Final = 10
"""So many sums given up one after the other end the job: it would run on without learning anything."""


class Summing:
    """`keys`: those of the run, where its protocols need any."""

    def __init__(
        self,
        config: RunConfig,
        keys: ServerKeys | None,
        people: Gathering,
        ledger: Ledger,
        report: Callable[[str], None],
    ) -> None:
        self._config, self._people, self._ledger, self._report = config, people, ledger, report
        self._sums = ledger.sums = twins.sum_server(config, keys)
        self._holders = twins.holder_server(config, keys)
        self.refused = False
        """Whether a client did not help to open the last sum that was given up."""

    def add_up(
        self,
        terms: SumTerms[SumLayout],
        counting: CountTask | None = None,
        patience: Patience | None = None,
        among: Collection[PartyId] | None = None,
    ) -> twins.Result | None:
        """One sum over those of its participants who are there (and `among` these); None if it had to be given up.

        `counting`: the count of holders that comes first. Keys for both are agreed on before either. `patience`: of
        this sum alone, if how long its steps take says nothing about other sums.
        """
        session, purpose = self._people.session, HOLDERS
        if patience is not None:
            session = session.with_patience(patience)
        asked = session if among is None else session.among(among)
        try:
            if counting is not None:
                self._holders.prepare(session, counting)
            purpose = terms.purpose
            self._sums.prepare(asked, terms)
            if counting is not None:
                purpose = HOLDERS
                self._holders.collect(session, counting)
                purpose = terms.purpose
            result = self._sums.collect(asked, terms)
        except SumAbandoned as problem:
            self._give_up(terms, purpose, problem)
            return None
        self._ledger.abandoned_in_a_row = 0
        return result

    def _give_up(self, terms: SumTerms[SumLayout], purpose: str, problem: SumAbandoned) -> None:
        self.refused = isinstance(problem, SumRefused)
        self._ledger.abandon(int(terms.round), purpose, str(problem))
        self._report(f"round {terms.round}: the sum of {purpose} was given up: {problem}")
        self._people.tell(terms.participants, Abandon(purpose, str(problem)[:MAX_REASON]))
        # A resumed job may have to give up the sums it repeats, those of training and of evaluation.
        given_up = self._ledger.abandoned_in_a_row
        if given_up >= _MOST_ABANDONED + 2 * self._config.checkpoint_every:
            raise UserError(f"{given_up} sums in a row were given up, the last one: {problem}") from None
