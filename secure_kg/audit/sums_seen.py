"""The sums of a run: who was in each, whether the server could read it, and whether an auditor can compute it again."""

import dataclasses

from protocols.session.conversation import Abandon
from secure_kg.audit.records.parts import SumLine
from secure_kg.audit.view.evidence import Check
from secure_kg.audit.view.findings import Evidence, Finding
from secure_kg.audit.view.opening import OpenedSum
from secure_kg.audit.view.read import Observation
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.words import counted


class SumsSeen(Check):
    id = "sums-recomputed"
    question = "Is there a sum that does not follow from the messages of its clients?"

    def __init__(self, config: RunConfig, clients: int) -> None:
        super().__init__(config, clients)
        self._abandoned: set[tuple[int, str]] = set()
        self.sums: list[OpenedSum] = []
        """Without their vectors."""

    def observe(self, observation: Observation) -> None:
        if isinstance(observation.message, Abandon):
            self._abandoned.add((observation.round, observation.purpose))

    def opened(self, total: OpenedSum) -> None:
        self.sums.append(dataclasses.replace(total, vector=None, seeds={}, mask_keys={}))

    def findings(self) -> list[Finding]:
        odd, abandoned = Evidence(), Evidence()
        for total in self.sums:
            if total.problem:
                ended = (total.round, total.purpose) in self._abandoned or not total.finished
                (abandoned if ended else odd).add(f"round {total.round}, {total.purpose}: {total.problem}")
        found = []
        if odd:
            found.append(
                Finding(
                    "sum-not-reproduced",
                    "high",
                    "Sums do not follow from the messages of their clients",
                    odd.told(),
                    "An auditor repeats the server's work from the recorded messages and the public settings. Here "
                    "that fails: the parties did something else than the settings say, with other masks, keys or "
                    "vectors than the protocol has, or the record was changed. Nothing is known about what these "
                    "uploads hide.",
                )
            )
        if abandoned:
            found.append(
                Finding(
                    "sums-given-up",
                    "info",
                    "Some sums ended without a result",
                    abandoned.told(),
                    "Too few clients were left, one of them refused, or the record ends in the middle. Nothing was "
                    "opened.",
                )
            )
        return found

    @property
    def seen(self) -> int:
        return len(self.sums)

    def looked_at(self) -> str:
        done = sum(not total.problem for total in self.sums)
        return f"{counted(len(self.sums), 'sum')}, {done:,} computed again"

    def record(self) -> list[SumLine]:
        return [
            SumLine(
                round=total.round,
                purpose=total.purpose,
                contributors=sorted(total.contributors),
                threshold=total.threshold,
                read_by_server=total.read_by_server,
                problem=total.problem,
            )
            for total in self.sums
        ]
