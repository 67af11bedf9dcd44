"""Names as pseudorandom tags: two elements of the prime field for each name, under a key that only clients know.

A tag is keyed BLAKE2b (RFC 7693) of the name, with 16 bytes of output read as two little-endian words, of which the low
61 bits are the two elements. Given a pseudorandom function the elements are exactly uniform and independent: if one of
the two would be p = 2^61 - 1, a second zero, the name is hashed again under the next counter. Without the key a tag
says nothing of its name; with the key anybody can compute the tag of a name and compare.

Two different names share a tag with probability 2^-122, and would be taken for one: 2^-83 for a union of 2^20 names.
Names are compared code point by code point; those that should be equal in spite of a different spelling (composed and
decomposed accents, upper and lower case) are for the caller to bring into one form.
"""

import hashlib
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Final

import numpy as np

from protocols.primitives.group import MODULUS, FieldArray
from protocols.primitives.prg import KEY_BYTES

LIMBS: Final = 2
_DOMAIN: Final = b"secure-kg/psu/1"  # BLAKE2b's personalisation: at most 16 bytes
_DIGEST_BYTES: Final = 8 * LIMBS
_P: Final = np.uint64(MODULUS)
_BLOCK: Final = 1 << 14
"""Names hashed at a time: their bytes and digests take several times the room of their tags."""


def tags_of(names: Iterable[str], key: bytes) -> FieldArray:
    """Tags [n, 2] of the n different names, in the order of their first appearance."""
    if len(key) != KEY_BYTES:
        raise ValueError(f"a key has {KEY_BYTES} bytes")
    different = names if isinstance(names, dict) else dict.fromkeys(names)
    tags = np.empty((len(different), LIMBS), dtype=np.uint64)
    rest = iter(different)
    for start in range(0, len(different), _BLOCK):
        tags[start : start + _BLOCK] = _tags_of_block(list(islice(rest, _BLOCK)), key)
    return tags


def _tags_of_block(names: Sequence[str], key: bytes) -> FieldArray:
    # A lone surrogate has no UTF-8 form, yet may stand in a string: passed through, it has one of its own.
    encoded = [name.encode("utf-8", "surrogatepass") for name in names]
    tags = _limbs(encoded, key, attempt=0)
    attempt = 0
    while len(again := np.flatnonzero((tags == _P).any(axis=1))):
        attempt += 1
        tags[again] = _limbs([encoded[index] for index in again], key, attempt)
    return tags


def _limbs(names: Sequence[bytes], key: bytes, attempt: int) -> FieldArray:
    """Two numbers of 61 bits for each name; one that is p itself calls for another attempt."""
    words = np.frombuffer(_digests(names, key, attempt), dtype="<u8").astype(np.uint64, copy=False)
    return (words & _P).reshape(-1, LIMBS)


def _digests(names: Sequence[bytes], key: bytes, attempt: int) -> bytes:
    # The counter goes where BLAKE2b takes a salt, apart from the name, so that no two pairs of them are hashed alike.
    start = hashlib.blake2b(digest_size=_DIGEST_BYTES, key=key, salt=attempt.to_bytes(16, "little"), person=_DOMAIN)
    digests = []
    for name in names:
        state = start.copy()
        state.update(name)
        digests.append(state.digest())
    return b"".join(digests)
