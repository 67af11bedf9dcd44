"""Rows that the server could read although too few clients contributed to them: of one, the sum is its very row."""

import numpy as np

from secure_kg.audit.view.evidence import Check
from secure_kg.audit.view.findings import Evidence, Finding
from secure_kg.audit.view.opening import OpenedSum
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.words import counted


class FewHolders(Check):
    id = "few-holders"
    question = "Were rows revealed to which fewer clients contributed than the least number?"

    def __init__(self, config: RunConfig, clients: int) -> None:
        super().__init__(config, clients)
        self._rows = self._sums = 0
        self._least = max(2, config.least_holders)
        self._single, self._few = Evidence(), Evidence()

    def opened(self, total: OpenedSum) -> None:
        if total.purpose != "rows" or total.layout is None or total.vector is None:
            return
        counts = total.vector[total.layout.real_entries :]
        self._sums += 1
        self._rows += int(np.count_nonzero(counts))
        single = np.flatnonzero(counts == 1)
        few = np.flatnonzero((counts > 1) & (counts < self._least))
        for found, evidence in ((single, self._single), (few, self._few)):
            if len(found):
                some = ", ".join(map(str, found[:5])) + (", ..." if len(found) > 5 else "")
                evidence.add(f"round {total.round}: {len(found)} of {len(counts)} rows, at positions {some}")

    def findings(self) -> list[Finding]:
        found = []
        if self._single:
            found.append(
                Finding(
                    "single-holder-rows",
                    "high",
                    "The server read rows of single clients: their sum has one contributor",
                    self._single.told(),
                    "A sum over one client is that client's own row, masks or not. With --min-holders 2 or more "
                    "such rows stay with their holder.",
                )
            )
        if self._few:
            found.append(
                Finding(
                    "few-holder-rows",
                    "high",
                    f"The server read rows to which fewer than {self._least} clients contributed",
                    self._few.told(),
                    "The run declares a least number of holders, and these rows have fewer.",
                )
            )
        return found

    @property
    def seen(self) -> int:
        return self._sums

    def looked_at(self) -> str:
        if not self._sums:
            return "no sums of rows that the server could read"
        return f"{counted(self._sums, 'sum')} of rows, {counted(self._rows, 'row')} with contributors"
