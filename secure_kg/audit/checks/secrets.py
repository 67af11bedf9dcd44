"""Secrets that the server was given by design must be random over their whole length: seeds, and weights of a union."""

from collections import Counter
from typing import Final

import numpy as np
from scipy import stats

from protocols.psu.table import PeelFailed, peel_in_rounds
from secure_kg.attacks.weak_seed import bits_in_use
from secure_kg.audit.checks.base import Check
from secure_kg.audit.findings import Evidence, Finding
from secure_kg.audit.opening import OpenedSum
from secure_kg.audit.statistics import ALARM, byte_histogram, uniform_p
from secure_kg.federation.config import RunConfig

_SEED_BITS: Final = 256
_SAME_BYTES: Final = 10
"""So often one value stands among 32 random bytes with probability 10^-14."""
_SMALL: Final = np.uint64(1 << 32)
"""A uniform weight is below this with probability 2^-29."""


class Seeds(Check):
    id = "full-entropy-seeds"
    question = "Do seeds of masks have fewer than 256 random bits?"

    def __init__(self, config: RunConfig, clients: int) -> None:
        super().__init__(config, clients)
        self._seeds: list[bytes] = []
        self._mask_keys = 0
        self._padded = Evidence()

    def opened(self, total: OpenedSum) -> None:
        self._seeds += total.seeds.values()
        self._mask_keys += len(total.mask_keys)
        for what, secrets in (("self-mask seed", total.seeds), ("mask key", total.mask_keys)):
            for party, secret in secrets.items():
                if max(Counter(secret).values()) >= _SAME_BYTES:
                    self._padded.add(f"{what} of client {party}, round {total.round}, {total.purpose}")

    def findings(self) -> list[Finding]:
        return [*self._by_padding(), *self._by_variation()]

    def _by_padding(self) -> list[Finding]:
        if not self._padded:
            return []
        return [
            Finding(
                "padded-secrets",
                "high",
                "Seeds or mask keys consist largely of one repeated byte",
                self._padded.told(),
                f"In a random secret of 32 bytes no byte stands {_SAME_BYTES} times. These are short numbers, padded: "
                "whoever tries all of them removes the masks. All secrets must come from the operating system's "
                "random generator at full length.",
            )
        ]

    def _by_variation(self) -> list[Finding]:
        if len(self._seeds) < 2:
            return []
        bits = bits_in_use(self._seeds).varying
        # Of n seeds a random bit is the same in all with probability 2^(1-n), each by itself.
        by_chance = float(stats.binom.sf(_SEED_BITS - bits - 1, _SEED_BITS, 2.0 ** (1 - len(self._seeds))))
        if by_chance >= ALARM:
            return []
        return [
            Finding(
                "weak-seeds",
                "high",
                f"Seeds of masks vary in {bits} of their {_SEED_BITS} bits",
                (f"{len(self._seeds)} seeds were opened; {_SEED_BITS - bits} bits are the same in all of them",),
                "Whoever tries all seeds of so few bits finds the mask of an upload, and reads it. All secrets must "
                "come from the operating system's random generator at full length.",
            )
        ]

    @property
    def seen(self) -> int:
        return len(self._seeds)

    def looked_at(self) -> str:
        return f"{len(self._seeds):,} seeds and {self._mask_keys:,} mask keys that the server was given"


class Weights(Check):
    id = "union-weights"
    question = "Does the table of the private set union show how many clients hold a name?"

    def __init__(self, config: RunConfig, clients: int) -> None:
        super().__init__(config, clients)
        self._tables = self._names = 0
        self._odd = Evidence()

    def opened(self, total: OpenedSum) -> None:
        if total.attempt is None or total.vector is None:
            return
        try:
            peeled = peel_in_rounds(total.vector.astype(np.uint64, copy=False), total.attempt.layout)
        except PeelFailed:
            return
        _, weights = peeled.in_order()
        self._tables += 1
        self._names += len(weights)
        small = int(np.count_nonzero(weights < _SMALL))
        if small:
            shown = ", ".join(str(int(weight)) for weight in weights[weights < _SMALL][:8])
            self._odd.add(f"{total.purpose}: {small} of {len(weights)} weights are small numbers: {shown}")
            return
        p = uniform_p(byte_histogram(weights, in_field=True))
        if p is not None and p < ALARM:
            self._odd.add(f"{total.purpose}: weights are not uniform, p = {p:.1e}")

    def findings(self) -> list[Finding]:
        if not self._odd:
            return []
        return [
            Finding(
                "union-weights-not-uniform",
                "high",
                "The private set union shows the server how many clients hold a name",
                self._odd.told(),
                "A name's weight in the sum of tables must be uniform however many clients hold it. Here it is not: "
                "the server reads from it how many do, and whom a name is peculiar to.",
            )
        ]

    @property
    def seen(self) -> int:
        return self._tables

    def looked_at(self) -> str:
        return f"{self._tables:,} tables, {self._names:,} names" if self._tables else "no private set union"
