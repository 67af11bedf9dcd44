"""The server's part in the sums of a run: over the clients that are present, abandoned if they are too few."""

from collections.abc import Callable, Collection, Sequence
from typing import Final, NamedTuple

from protocols.alignment.interface import Union
from protocols.foundation.errors import SumAbandoned, SumRefused
from protocols.foundation.identifiers import PartyId, RoundId
from protocols.holders.interface import PURPOSE as HOLDERS
from protocols.holders.interface import CountTask, dropped_after_counting
from protocols.session.conversation import MAX_REASON, Abandon
from protocols.session.patience import Patience
from protocols.sums.interface import SumLayout
from protocols.sums.secagg.keys import ServerKeys
from protocols.sums.terms import SumTerms
from secure_kg.federation.plan import twins
from secure_kg.federation.plan.blocks import Block
from secure_kg.federation.plan.run_plan import RESULTS, RunPlan
from secure_kg.federation.server.gathering import Gathering
from secure_kg.federation.server.ledger import Ledger
from secure_kg.federation.server.standing_count import StandingCount
from secure_kg.foundation.errors import UserError

_MOST_ABANDONED: Final = 10
"""So many sums abandoned one after the other end the job: it would run on without learning anything."""


class RoundSum(NamedTuple):
    """One sum, the count of holders that comes before it, and how it is made."""

    terms: SumTerms[SumLayout]
    counting: CountTask | None
    aggregation: str
    counted: frozenset[PartyId] = frozenset()
    """Who was counted before, if that count stands: the sum is abandoned without any of them."""


def sums_of_blocks(
    plan: RunPlan,
    round_id: RoundId,
    unions: Collection[tuple[Block, Union]],
    standing: StandingCount,
    present: Collection[PartyId],
) -> list[RoundSum]:
    """The sums of a round; and whether holders are counted before, or the last count stands."""
    sums = list[RoundSum]()
    for block, union in unions:
        count, over = plan.count(round_id, block, union), frozenset[PartyId]()
        if count is not None and not standing.is_due(count, present):
            count, over = None, standing.over
        sums.append(RoundSum(plan.rows(round_id, block, union), count, block.aggregation, over))
    return sums


class Summing:
    """`keys`: those of the run, where its protocols need any."""

    def __init__(
        self,
        plan: RunPlan,
        keys: ServerKeys | None,
        people: Gathering,
        ledger: Ledger,
        report: Callable[[str], None],
        standing: StandingCount,
    ) -> None:
        config = plan.settings
        self._config, self._people, self._ledger, self._report = config, people, ledger, report
        self._sums = {name: twins.sum_server(name, keys, plan.least_participants) for name in plan.aggregations}
        ledger.sums = list(self._sums.values())
        self._holders = twins.holder_server(plan.counted_by, keys, config.min_participants)
        self._standing = standing
        self.refused = False
        """Whether a client did not help to open the last sum that was abandoned."""

    def add_up(
        self, sums: Sequence[RoundSum], patience: Patience | None = None, among: Collection[PartyId] | None = None
    ) -> dict[str, twins.Result]:
        """Sums over those of their participants who are present (and `among` these), by purpose.

        Keys of all of them are agreed on before the first is collected. If one has to be abandoned, so are those after
        it. `patience`: of these sums alone, if how long their steps take says nothing about other sums.
        """
        session = self._people.session
        if patience is not None:
            session = session.with_patience(patience)
        asked = session if among is None else session.among(among)
        results, at = dict[str, twins.Result](), (sums[0].terms, HOLDERS)
        try:
            for terms, counting, aggregation, _ in sums:
                if counting is not None:
                    at = terms, HOLDERS
                    self._standing.fall()
                    self._holders.prepare(session, counting)
                at = terms, terms.purpose
                self._sums[aggregation].prepare(asked, terms)
            for terms, counting, aggregation, counted in sums:
                if counting is not None:
                    at = terms, HOLDERS
                    counted = self._holders.collect(session, counting)
                    self._standing.made(counting, counted)
                at = terms, terms.purpose
                result = self._sums[aggregation].collect(asked, terms)
                _require_counted(counted, result)
                results[terms.purpose] = result
        except SumAbandoned as problem:
            rest = [one.terms.purpose for one in sums if one.terms.purpose not in (*results, at[0].purpose)]
            self._abandon(*at, problem, rest)
            return results
        self._ledger.abandoned_in_a_row = 0
        return results

    def _abandon(self, terms: SumTerms[SumLayout], purpose: str, problem: SumAbandoned, rest: Sequence[str]) -> None:
        """Tell the participants that the sum is abandoned, and report it.

        `rest`: other sums of the same round, for which clients may be waiting already.
        """
        self.refused = isinstance(problem, SumRefused)
        if isinstance(problem, SumRefused):
            accused = {PartyId(party) for party in problem.of} & set(terms.participants)
            self._people.disputes.note(int(terms.round), PartyId(problem.by), accused)
        self._people.regrouping.unsteady()
        if purpose not in RESULTS:
            self._standing.fall()
        self._ledger.abandon(int(terms.round), purpose, str(problem))
        self._report(f"round {terms.round}: the sum of {purpose} was abandoned: {problem}")
        for ended in (purpose, *rest):
            self._people.tell(terms.participants, Abandon(ended, str(problem)[:MAX_REASON]))
        # A resumed job may have to abandon the sums it repeats, those of training and of evaluation.
        in_a_row = self._ledger.abandoned_in_a_row
        if in_a_row >= _MOST_ABANDONED + 2 * self._config.checkpoint_every:
            raise UserError(f"{in_a_row} sums in a row were abandoned, the last one: {problem}") from None


def _require_counted(counted: frozenset[PartyId], result: twins.Result) -> None:
    """The twin abandons a sum where clients of the secure one refuse to open it, so that the two stay comparable."""
    if gone := counted - {PartyId(party) for party in result.contributors}:
        raise SumAbandoned(dropped_after_counting(len(gone)))
