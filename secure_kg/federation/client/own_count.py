"""A client's own count of what it has done. It decides what the server may ask for next."""

from protocols.foundation.identifiers import PartyId
from protocols.holders.interface import PURPOSE as HOLDERS
from secure_kg.federation.plan.run_plan import RESULTS, RunPlan
from secure_kg.runs.records.checkpoints import CountRecord


class OwnCount:
    """Rounds that this client has trained in, evaluated and judged. `party`: the client itself."""

    def __init__(self, plan: RunPlan, party: PartyId) -> None:
        self._plan, self._party = plan, party
        self.trained = 0
        """The last round in which this client trained."""
        self.added = 0
        """The last one of which it has helped to open a sum of rows; where nothing is shared, in which it trained."""
        self.opening = 0
        """The last one of which it was about to: it has signed who is in the sum."""
        self.refused = 0
        """Evaluations that it was asked for and did not make."""
        self._evaluated = self._judged = 0
        self.opened: frozenset[int] = frozenset()
        """Rounds of this run whose results it has helped to open, in earlier sessions: a checkpoint may be older."""
        self._finished: int | None = None
        """The round of the test results."""
        self._begun = 0
        """The last round whose sums of blocks this client has begun."""
        self._abandoned: set[str] = set()
        """Purposes of the sums of that round that were abandoned."""
        self._without_results: set[int] = set()
        """Rounds whose sums of results were abandoned."""

    def may_evaluate(self, round_id: int) -> bool:
        """One evaluation per trained round; a client that was drawn for no round since has nothing to train.

        Nor one while it does not know whether a sum of rows that it was about to open was opened by others: beside
        those who tell the loss of that training it would tell none (`tells_loss`).
        """
        if round_id <= self._evaluated or self.opening > self.added:
            return False
        since = range(self._last(round_id) + 1, round_id + 1)
        idle = not any(self._party in self._plan.participants(number) for number in since)
        return self.fresh(round_id) or idle

    def fresh(self, round_id: int) -> bool:
        """Whether this client has trained since its last evaluation, or repeats one."""
        return round_id in self.opened or self.trained > self._last(round_id)

    def tells_loss(self, round_id: int) -> bool:
        """Whether the results of a round tell a loss: those of the first evaluation after the training.

        A training in vain is none here. A server chooses for whom a sum goes on until its clients train, and one that
        has a single client train would read its loss, and how many triples it has, in the results of all. A client that
        has helped to open a sum of rows knows that a threshold of others was about to. Each of these has trained as
        well, and tells its loss, or takes no part in an evaluation (`may_evaluate`). By the plan as well as by the
        count, so that an evaluation that a resumed session repeats tells the same again.
        """
        due = any(self._plan.evaluation_due(number) for number in range(self.added, round_id))
        return not due and self.added > self._last(round_id)

    def _last(self, round_id: int) -> int:
        """The last evaluation before `round_id`, even if a resumed session has gone back to an earlier round."""
        return max(self._evaluated, *(number for number in self.opened if number < round_id), 0)

    def evaluated(self, round_id: int) -> None:
        self._evaluated = round_id

    def judge(self, round_id: int) -> bool:
        """Whether a verdict on this round may be taken: one for each that is due."""
        fits = self._plan.evaluation_due(round_id) and round_id > self._judged
        if fits:
            self._judged = round_id
        return fits

    def finish(self, round_id: int) -> bool:
        """Whether test figures may be given: once per session, after the last round or where training stopped."""
        fits = self._finished is None and round_id <= self._plan.settings.rounds + 1
        if fits:
            self._finished = round_id
        return fits

    def begin(self, round_id: int) -> None:
        """Begin the sums of a round's blocks."""
        self._begun, self._abandoned = round_id, set()

    def abandoned(self, round_id: int, purpose: str) -> bool:
        """Whether the server may abandon this sum: once each, and none of rows that has not begun.

        Results are everybody's: also a client that was not asked for its own is told that the sum was abandoned.
        """
        if purpose in RESULTS:
            fits = round_id not in self._without_results and self._results_due(round_id, purpose)
            self._without_results |= {round_id} if fits else set()
            return fits
        known = {HOLDERS, *(block.purpose for block in self._plan.blocks)}
        fits = purpose in known - self._abandoned and round_id == self._begun
        self._abandoned |= {purpose} if fits else set()
        return fits

    def _results_due(self, round_id: int, purpose: str) -> bool:
        return round_id == self._finished if purpose == "test" else self._plan.evaluation_due(round_id)

    def record(self) -> CountRecord:
        """For a checkpoint."""
        return CountRecord(
            trained=self.trained,
            evaluated=self._evaluated,
            judged=self._judged,
            refused=self.refused,
            added=self.added,
            opening=self.opening,
        )

    def restore(self, record: CountRecord) -> None:
        """Go on from a checkpoint."""
        self.trained, self._evaluated = record.trained, record.evaluated
        self.added, self.opening = record.trained if record.added is None else record.added, record.opening
        self._judged, self.refused = record.judged, record.refused
