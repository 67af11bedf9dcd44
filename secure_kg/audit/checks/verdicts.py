"""The server's verdict on an evaluation, best so far or not, follows from the results that it has opened.

A client keeps the copy of its model that was called best. With false verdicts the server chooses which one that is, and
so which one the test results are of. At the end it names the round of that copy (`Finish`).

Under secret sums the verdict is a client's, and only that all are told the same is checked (`same_for_all`).
"""

import dataclasses
import math

from secure_kg.audit.view.evidence import Check
from secure_kg.audit.view.findings import Evidence, Finding
from secure_kg.audit.view.opening import OpenedSum
from secure_kg.audit.view.read import Observation
from secure_kg.audit.view.snapshots import Snapshots
from secure_kg.federation.plan.messages import Finish, SaveCheckpoint, Verdict, Welcome
from secure_kg.federation.plan.run_plan import RunPlan
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.errors import DataError
from secure_kg.foundation.words import counted


@dataclasses.dataclass(frozen=True, slots=True)
class _Best:
    mrr: float = -math.inf
    exact: bool = True
    """False: what was best before is not in the record, and no less than `mrr`."""
    round: int | None = 0
    """Of the last evaluation that was called the best so far; None if it is not known."""


class Verdicts(Check):
    id = "verdicts"
    question = "Does a verdict contradict the results?"

    def __init__(self, config: RunConfig, clients: int) -> None:
        super().__init__(config, clients)
        self._metrics = RunPlan(config, clients).metrics
        self._session = self._told = self._unchecked = 0
        self._best, self._saved = _Best(), Snapshots(_Best())
        self._greeted = False
        self._results: dict[int, float] = {}
        """By round, those without a verdict so far."""
        self._expected: dict[int, bool | None] = {}
        """By round: whether it was the best so far; None if that is not known."""
        self._wrong = Evidence()

    def begin_session(self) -> None:
        self._session += 1
        self._greeted, self._results, self._expected = False, {}, {}

    def opened(self, total: OpenedSum) -> None:
        if total.purpose != "valid" or total.vector is None or total.layout is None or total.abandoned:
            return
        try:
            self._results[total.round] = self._metrics.of(total.layout.decode(total.vector)).headline
        except DataError:  # nobody has anything to rank; the server gives up the run
            return

    def observe(self, observation: Observation) -> None:
        if observation.direction != "sent":
            return
        number = observation.round
        match observation.message:
            case Welcome(rounds_done=done) if not self._greeted:
                self._greeted = True
                best = self._saved.go_on_from(done)
                self._best = best if best is not None else _Best(exact=False, round=None)
            case SaveCheckpoint():
                self._saved.save(number, self._best)
            case Verdict(improved=improved):
                if not self.config.sum_protocol.sealed:
                    self._told += 1
                    self._blame(observation, self._fault(number, improved))
                if improved:
                    self._best = dataclasses.replace(self._best, round=number)
            case Finish(best_round=named):
                self._blame(observation, self._fault_of_end(named))

    def _blame(self, observation: Observation, fault: str) -> None:
        if fault:
            where = f"session {self._session}, round {observation.round}, client {observation.peer}"
            self._wrong.add(f"{where}: {fault}")

    def _fault_of_end(self, named: int) -> str:
        expected = self._best.round
        if expected is None or named == expected:
            return ""
        return f"tested with the copy of round {named}, where that of round {expected} was the best"

    def _fault(self, number: int, improved: bool) -> str:
        if number in self._results:
            self._expected[number] = self._judge(self._results.pop(number), improved)
        if number not in self._expected:
            return "a verdict, though no results were opened"
        expected = self._expected[number]
        if expected is None:
            self._unchecked += 1
            return ""
        return "" if improved == expected else f"called {_called(improved)}, and was {_called(expected)}"

    def _judge(self, mrr: float, improved: bool) -> bool | None:
        best = self._best
        if mrr <= best.mrr:
            return False
        if not best.exact and not improved:
            self._best = _Best(mrr, exact=False, round=best.round)
            return None
        self._best = _Best(mrr, round=best.round)
        return True if best.exact else None

    def findings(self) -> list[Finding]:
        if not self._wrong:
            return []
        return [
            Finding(
                "false-verdict",
                "high",
                "The server called the wrong evaluation the best",
                self._wrong.told(),
                "Clients keep the copy of their model that was the best in validation, and their test results are of "
                "that copy. Here the server chose it against the results.",
            )
        ]

    @property
    def seen(self) -> int:
        return self._told

    def looked_at(self) -> str:
        if self.config.sum_protocol.sealed:
            return "no verdicts of the server: clients judge"
        unknown = f", {self._unchecked:,} of them on what is not in the record" if self._unchecked else ""
        return f"{counted(self._told, 'verdict')} sent{unknown}"


def _called(improved: bool) -> str:
    return "the best so far" if improved else "not the best so far"
