"""Secrets that the server was given by design must be random over their whole length: seeds, and weights of a union."""

from collections import Counter
from typing import Final

import numpy as np
from scipy import special

from protocols.alignment.psu import names as union_names
from protocols.alignment.psu.table import PeelFailed, peel_in_rounds
from protocols.scores.topk.messages import DealtSeed
from secure_kg.attacks.weak_seed import bits_in_use
from secure_kg.audit.view.evidence import Check
from secure_kg.audit.view.findings import Evidence, Finding
from secure_kg.audit.view.opening import OpenedSum
from secure_kg.audit.view.read import Observation
from secure_kg.audit.view.statistics import ALARM, Words, secrets_p
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.words import counted

_SEED_BITS: Final = 256
_SAME_BYTES: Final = 10
"""So often one value stands among 32 random bytes with probability 10^-14."""
_SMALL: Final = np.uint64(1 << 32)
"""Weights below this are shown where weights are not uniform: one in 2^29 is, if they are."""


class Seeds(Check):
    id = "full-entropy-seeds"
    question = "Do seeds of masks have fewer than 256 random bits?"

    def __init__(self, config: RunConfig, clients: int) -> None:
        super().__init__(config, clients)
        self._seeds: list[bytes] = []
        self._dealt: list[bytes] = []
        """Apart from the others: random ones among them would hide how little the others vary."""
        self._mask_keys = 0
        self._padded = Evidence()

    def opened(self, total: OpenedSum) -> None:
        self._seeds += total.seeds.values()
        self._mask_keys += len(total.mask_keys)
        for what, secrets in (("self-mask seed", total.seeds), ("mask key", total.mask_keys)):
            for party, secret in secrets.items():
                self._look_for_padding(secret, f"{what} of client {party}, round {total.round}, {total.purpose}")

    def observe(self, observation: Observation) -> None:
        """Seeds of dealt randomness are the server's own. Weak ones open to a client what the server alone may know."""
        message = observation.message
        if isinstance(message, DealtSeed) and observation.direction == "sent":
            self._dealt.append(message.seed)
            self._look_for_padding(message.seed, f"seed dealt to client {observation.peer}, round {observation.round}")

    def _look_for_padding(self, secret: bytes, what: str) -> None:
        if max(Counter(secret).values()) >= _SAME_BYTES or _repeats(secret):
            self._padded.add(what)

    def findings(self) -> list[Finding]:
        return [*self._by_padding(), *_by_variation(self._seeds, "opened"), *_by_variation(self._dealt, "dealt")]

    def _by_padding(self) -> list[Finding]:
        if not self._padded:
            return []
        return [
            Finding(
                "padded-secrets",
                "high",
                "Seeds or mask keys are short numbers, padded or repeated",
                self._padded.told(),
                f"In a random secret of 32 bytes no byte stands {_SAME_BYTES} times, and no word comes again. Whoever "
                "tries all short numbers removes the masks. All secrets must come from the operating system's random "
                "generator at full length.",
            )
        ]

    @property
    def seen(self) -> int:
        return len(self._seeds) + len(self._dealt)

    def looked_at(self) -> str:
        given = f"{counted(len(self._seeds), 'seed')} and {counted(self._mask_keys, 'mask key')}"
        dealt = f", and {counted(len(self._dealt), 'seed')} that it has dealt" if self._dealt else ""
        return f"{given} that the server was given{dealt}"


def _repeats(secret: bytes) -> bool:
    """Whether a word of 8 bytes comes again, or two of 4: by chance once in 10^16 secrets of 32 bytes."""
    halves, words = (len(secret) // size - len(set(_words(secret, size))) for size in (8, 4))
    return halves >= 1 or words >= 2


def _words(secret: bytes, size: int) -> list[bytes]:
    return [secret[at : at + size] for at in range(0, len(secret) // size * size, size)]


def _by_variation(seeds: list[bytes], how: str) -> list[Finding]:
    """What many seeds have in common."""
    if len(seeds) < 2:
        return []
    bits = bits_in_use(seeds).varying
    # Of n seeds a random bit is the same in all with probability 2^(1-n), each by itself.
    by_chance = float(special.bdtrc(_SEED_BITS - bits - 1, _SEED_BITS, 2.0 ** (1 - len(seeds))))
    if by_chance >= ALARM:
        return []
    return [
        Finding(
            "weak-seeds",
            "high",
            f"Seeds of masks vary in {bits} of their {_SEED_BITS} bits",
            (f"{len(seeds)} seeds were {how}; {_SEED_BITS - bits} bits are the same in all of them",),
            "Whoever tries all seeds of so few bits finds the mask of an upload, and reads it. All secrets must "
            "come from the operating system's random generator at full length.",
        )
    ]


class Weights(Check):
    """Tested over all 61 bits: of n weights without their top bit, or with any other bit fixed, p is about 2^-n."""

    id = "union-weights"
    question = "Does the table of the private set union show how many clients hold a name?"

    def __init__(self, config: RunConfig, clients: int) -> None:
        super().__init__(config, clients)
        self._tables: list[Words] = []
        self._odd = Evidence()

    def opened(self, total: OpenedSum) -> None:
        weights = _weights_of(total)
        if weights is None:
            return
        self._tables.append(weights)
        self._test(weights, total.purpose)

    def _test(self, weights: Words, where: str) -> None:
        p = secrets_p(weights, in_field=True)
        if p >= ALARM:
            return
        small = weights[weights < _SMALL]
        shown = ""
        if len(small):
            shown = f"; {len(small)} are small numbers: {', '.join(str(int(weight)) for weight in small[:8])}"
        self._odd.add(f"{where}: {len(weights)} weights are not uniform, p = {p:.1e}{shown}")

    def findings(self) -> list[Finding]:
        if not self._odd and len(self._tables) > 1:
            self._test(np.concatenate(self._tables), "all tables together")
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
        return len(self._tables)

    def looked_at(self) -> str:
        if not self._tables:
            return "no private set union"
        return f"{counted(len(self._tables), 'table')}, {counted(sum(map(len, self._tables)), 'weight')}"


def _weights_of(total: OpenedSum) -> Words | None:
    """The weights under which names stand in a sum; None if it is no union, or its table cannot be peeled."""
    if total.vector is None:
        return None
    vector = total.vector.astype(np.uint64, copy=False)
    if total.purpose == union_names.PURPOSE:
        weights: Words = vector.reshape(union_names.POSITION_ENTRIES, -1)[0]
        there: Words = weights[weights != 0]  # not so where all holders have dropped out since the union
        return there
    if total.attempt is None:
        return None
    try:
        return peel_in_rounds(vector, total.attempt.layout).in_order()[1]
    except PeelFailed:
        return None
