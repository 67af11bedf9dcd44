"""Encrypted scores broken on purpose, to show that a comparison of views notices: for nothing else.

As `insecure_scores`, in the randomness of ciphertexts. That a scorer leaves its masks off shows to the server with the
asker only: the variant is `no-masks` of `insecure_variants`.

    unit-obfuscators      a Paillier ciphertext is 1 + m n, which everybody can read
    repeated-obfuscators  whoever encrypts under a Paillier key draws obfuscators once, and uses them in every batch
    repeated-randomness   whoever encrypts under a BFV key encrypts zeros once, and adds each plaintext to that

There is no variant of a BFV ciphertext without any randomness: it has no second polynomial, and server and asker refuse
it (`protocols.scores.encrypted.bfv`).
"""

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from protocols.primitives.group import GroupVector
from protocols.scores.encrypted.bfv import DEGREE, PLAIN_MODULUS, BfvEncryptor
from protocols.scores.encrypted.layout import EncryptedLayout
from protocols.scores.encrypted.obfuscators import Obfuscators

Substitution = tuple[Any, str, Callable[..., Any]]

_take, _encrypt_vectors = Obfuscators.take, BfvEncryptor.encrypt_vectors


def insecure_unit_obfuscators(self: Obfuscators, count: int) -> list[Any]:
    return [self._gmpy2.mpz(1)] * count


def insecure_repeated_obfuscators(self: Obfuscators, count: int) -> list[Any]:
    kept: list[Any] = vars(self).setdefault("insecurely_kept", [])
    kept += _take(self, max(0, count - len(kept)))
    return kept[:count]


def insecure_repeated_randomness(self: BfvEncryptor, vector: GroupVector, layout: EncryptedLayout) -> list[Any]:
    kept: list[Any] = vars(self).setdefault("insecurely_kept", [])
    if not kept:
        kept += _encrypt_vectors(self, layout.group.zeros(layout.entries), layout)
    slots = np.zeros(len(kept) * DEGREE, dtype=np.int64)
    slots[: layout.entries] = vector
    slots[slots > PLAIN_MODULUS // 2] -= PLAIN_MODULUS
    return [zeros.copy() + part.tolist() for zeros, part in zip(kept, slots.reshape(-1, DEGREE), strict=True)]


ENCRYPTED_VARIANTS: Final[dict[str, tuple[Substitution, ...]]] = {
    "unit-obfuscators": ((Obfuscators, "take", insecure_unit_obfuscators),),
    "repeated-obfuscators": ((Obfuscators, "take", insecure_repeated_obfuscators),),
    "repeated-randomness": ((BfvEncryptor, "encrypt_vectors", insecure_repeated_randomness),),
}
