"""Masked values must be uniform, and those of different clients independent of each other."""

from typing import Final

import numpy as np

from protocols.sums.secagg.messages import MaskedInput
from secure_kg.audit.view.elements import elements
from secure_kg.audit.view.evidence import Check
from secure_kg.audit.view.findings import Finding, GradedEvidence
from secure_kg.audit.view.read import Observation
from secure_kg.audit.view.statistics import (
    ALARM,
    Histogram,
    Words,
    byte_histogram,
    correlation_p,
    difference,
    odd_p,
    uniform_p,
)
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.words import counted

_MOST_PAIRS: Final = 66
"""Of clients within one sum, all pairs of 12; of more clients the first of them are compared."""


def in_field(purpose: str) -> bool:
    """Whether a sum is one of field elements; the others are of ring elements."""
    return purpose.startswith("union") or purpose == "holders"


class Uniformity(Check):
    id = "uniform-masked-values"
    question = "Do masked uploads differ from uniform noise, or depend on each other?"

    def __init__(self, config: RunConfig, clients: int) -> None:
        super().__init__(config, clients)
        self._pooled: dict[tuple[int, str, int, int | None], Histogram] = {}
        self._current: dict[tuple[int, str], dict[int, Words]] = {}
        self._uploads = self._tests = 0
        self._odd, self._dependent = GradedEvidence(), GradedEvidence()

    def observe(self, observation: Observation) -> None:
        message = observation.message
        if not isinstance(message, MaskedInput):
            return
        self._uploads += 1
        family = "field" if self._in_field(observation) else "ring"
        words, bits = elements(message.vector, self.config)
        histogram = byte_histogram(words)
        where = f"client {observation.peer}, round {observation.round}, {message.purpose}"
        self._note(odd_p(words, family == "field", bits), where)
        pooled = self._pooled.setdefault((observation.peer, family, len(histogram), bits), np.zeros_like(histogram))
        pooled += histogram
        key = observation.round, message.purpose
        for old in [old for old in self._current if old[0] < observation.round]:
            del self._current[old]
        others = self._current.setdefault(key, {})
        for party, vector in others.items():
            if party != observation.peer and len(others) * (len(others) - 1) // 2 <= _MOST_PAIRS:
                self._compare((words, vector), bits, f"clients {party} and {observation.peer}", where, family)
        others[observation.peer] = words

    def ignored(self, observation: Observation) -> None:
        """What the server drops it has seen. It is looked at by itself: a client may have copied another's."""
        message = observation.message
        if isinstance(message, MaskedInput) and observation.direction == "received":
            self._uploads += 1
            where = f"client {observation.peer}, round {observation.round}, {message.purpose}"
            words, bits = elements(message.vector, self.config)
            self._note(odd_p(words, self._in_field(observation), bits), where, heard=False)

    def _in_field(self, observation: Observation) -> bool:
        return in_field(observation.purpose)

    def _note(self, p: float, where: str, heard: bool = True) -> None:
        self._tests += 1
        if p < ALARM:
            self._odd.add(f"{where}: p = {p:.1e}", heard=heard)

    def _compare(self, pair: tuple[Words, Words], bits: int | None, who: str, where: str, family: str) -> None:
        measured = correlation_p(*pair, family == "field", bits)
        if measured is not None:
            self._tests += 1
            if measured[1] < ALARM:
                self._dependent.add(f"{who} ({where}): correlation {measured[0]:.3f}, p = {measured[1]:.1e}")
        p = odd_p(difference(*pair, family == "field", bits), family == "field", bits)
        self._tests += 1
        if p < ALARM:
            self._dependent.add(f"{who} ({where}): difference not uniform, p = {p:.1e}")

    def findings(self) -> list[Finding]:
        for (party, family, _, bits), histogram in sorted(self._pooled.items(), key=lambda item: str(item[0])):
            together = f"client {party}, all uploads of {family} elements together"
            self._note(uniform_p(histogram, family == "field", bits), together)
        self._pooled = {}
        found = []
        if self._odd:
            found.append(
                Finding(
                    "masked-values-not-uniform",
                    self._odd.severity,
                    "Uploads that should look like noise do not",
                    self._odd.told(),
                    "A masked upload must be as good as random to the server. These are not, so the masks are missing, "
                    "weak or not over all entries, and the server can learn from single uploads. "
                    f"{self._odd.explained}".strip(),
                )
            )
        if self._dependent:
            found.append(
                Finding(
                    "masked-values-dependent",
                    "high",
                    "Uploads of different clients depend on each other",
                    self._dependent.told(),
                    "Masks of different clients must be independent as far as the server can tell. Where they are not, "
                    "the server can compare clients' values or remove their masks.",
                )
            )
        return found

    @property
    def seen(self) -> int:
        return self._uploads

    def looked_at(self) -> str:
        return f"{counted(self._uploads, 'masked upload')}, {counted(self._tests, 'test')} at p < {ALARM:g}"
