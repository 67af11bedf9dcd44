"""Batches of queries broken on purpose, to show that a comparison of views notices: for nothing else.

As `insecure_variants`, for scores. The first three are broken in what the server sees, the others in what all clients
but one see together. `insecure_scores(name)` substitutes the piece and puts everything back. It also knows the variants
of `insecure_encrypted`, `insecure_hidden` and `insecure_crypten`.

    no-asker-mask         scorers leave off the mask of the asker: the server opens the sum of scores
    unsealed-steps        what clients open to each other in a selection is not encrypted
    no-common-order       keys stay in the order of the shuffle, whose seeds the server has dealt
    no-shuffle            every permutation leaves everything in its place
    equal-keys            keys have no position bits, so that equal means have equal keys
    unmasked-differences  differences of keys are opened without a mask before they are compared

Substitution is for the whole process: hold one session at a time.
"""

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import numpy as np
import numpy.typing as npt

import protocols.scores.masked as masked
import protocols.scores.topk.exchange as exchange
from benchmarks.insecure_crypten import CRYPTEN_VARIANTS
from benchmarks.insecure_encrypted import ENCRYPTED_VARIANTS
from benchmarks.insecure_hidden import HIDDEN_VARIANTS
from protocols.primitives.aead import OVERHEAD_BYTES
from protocols.scores.topk.dealing import Seed
from protocols.scores.topk.keys import KeyLayout
from protocols.scores.topk.shares import SharedArithmetic
from protocols.scores.topk.words import AnyWords, Words
from protocols.sums.secagg.vectors import VectorClient

NONCE_BYTES: Final = 12
Substitution = tuple[Any, str, Callable[..., Any]]

_contribute, _words, _keys = VectorClient.contribute, Seed.words, KeyLayout.keys


def insecure_contribute(
    self: VectorClient, session: Any, terms: Any, vector: Any, more_masks: Sequence[bytes] = (), may_open: Any = None
) -> Any:
    return _contribute(self, session, terms, vector, (), may_open)


def insecure_no_masks(vector: Any, group: Any, added: Sequence[bytes] = (), subtracted: Sequence[bytes] = ()) -> None:
    """There are none to remove."""


def insecure_seal(key: bytes, plaintext: bytes, associated: bytes) -> bytes:
    """Of the right length, and with noise for nonce and tag."""
    return secrets.token_bytes(NONCE_BYTES) + plaintext + secrets.token_bytes(OVERHEAD_BYTES - NONCE_BYTES)


def insecure_open(key: bytes, sealed: bytes, associated: bytes) -> bytes:
    return sealed[NONCE_BYTES : NONCE_BYTES - OVERHEAD_BYTES]


def insecure_order(self: SharedArithmetic, values: Words) -> Words:
    return values


def insecure_permutations(self: Seed, step: int, queries: int, length: int) -> npt.NDArray[np.int64]:
    return np.arange(queries * length)


def insecure_keys(self: KeyLayout, means: Words, given: Words, leads: bool) -> Words:
    """The lowest bits are `given` alone."""
    keys = _keys(self, means, given, leads)
    if leads:
        names = np.uint64((1 << self.position_bits) - 1) - np.arange(self.terms.positions, dtype=np.uint64)
        keys = keys - (names << np.uint64(1))
    return keys


def insecure_words(self: Seed, step: int, what: str, count: int, dtype: npt.DTypeLike = np.uint64) -> AnyWords:
    return np.zeros(count, dtype=np.dtype(dtype)) if what == "r" else _words(self, step, what, count, dtype)


SERVER_VARIANTS: Final[dict[str, tuple[Substitution, ...]]] = {
    "no-asker-mask": (
        (VectorClient, "contribute", insecure_contribute),
        (masked, "combine_keystreams", insecure_no_masks),
    ),
    "unsealed-steps": ((exchange, "seal", insecure_seal), (exchange, "open_sealed", insecure_open)),
    "no-common-order": ((SharedArithmetic, "in_common_order", insecure_order),),
}
CLIENT_VARIANTS: Final[dict[str, tuple[Substitution, ...]]] = {
    "no-shuffle": ((Seed, "permutations", insecure_permutations),),
    "equal-keys": ((KeyLayout, "keys", insecure_keys),),
    "unmasked-differences": ((Seed, "words", insecure_words),),
}
SCORE_VARIANTS: Final = SERVER_VARIANTS | CLIENT_VARIANTS | ENCRYPTED_VARIANTS | HIDDEN_VARIANTS | CRYPTEN_VARIANTS


@contextmanager
def insecure_scores(variant: str) -> Iterator[None]:
    """Batches in this process are broken meanwhile in the way `variant` says."""
    sound = [(place, name, getattr(place, name)) for place, name, _ in SCORE_VARIANTS[variant]]
    try:
        for place, name, piece in SCORE_VARIANTS[variant]:
            setattr(place, name, piece)
        yield
    finally:
        for place, name, piece in sound:
            setattr(place, name, piece)
