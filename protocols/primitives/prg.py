"""Pseudorandom vectors of a group from a 256-bit key: the AES-256-CTR keystream, read as little-endian words.

For a ring every word is an element. For the prime field a word of 64 bits gives its low 61 bits, and a word whose low
61 bits are p = 2^61 - 1 is left out: entry n of the vector is word n of those that remain. Both holders of a key leave
out the same words, and given a uniform stream the elements are exactly uniform (`Group.from_words`).

Use each key for one vector only: two vectors masked with the same keystream differ by the difference of their inputs.
That includes two vectors of different groups, so the group's name belongs into the key's context. The counter starts
at zero, which is sound exactly because keys are single-use (`protocols.primitives.keys.derive_key` binds them to
session, round, pair and purpose). The stream of one key ends at 2^36 bytes (and the few words the field left out), far
below the 2^68 bytes at which the counter would repeat and low enough that the distance of a permutation from a random
function stays under 2^-62 (birthday bound on 2^32 blocks of 128 bits).
"""

from typing import Final

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes

from protocols.primitives.group import Group, GroupVector

KEY_BYTES: Final = 32
MAX_STREAM_BYTES: Final = 1 << 36
_BLOCK_BYTES: Final = 16
# Half a megabyte of keystream stays in the cache between cipher and addition: measured 1.2x the bare cipher, against
# 2x and more when the whole stream is written out first.
_CHUNK_BYTES: Final = 1 << 19
_ZEROS: Final = bytes(_CHUNK_BYTES)


def add_keystream(key: bytes, vector: GroupVector, group: Group) -> None:
    """vector += keystream(key), in place."""
    _combine(key, vector, group, subtract=False)


def subtract_keystream(key: bytes, vector: GroupVector, group: Group) -> None:
    """vector -= keystream(key), in place."""
    _combine(key, vector, group, subtract=True)


def _combine(key: bytes, vector: GroupVector, group: Group, *, subtract: bool) -> None:
    stream = _keystream(key)
    # Narrow masks on wide entries, or masks added as floats, would leave the input visible.
    group.require(vector, len(vector))
    if vector.nbytes > MAX_STREAM_BYTES:
        raise ValueError("vector is longer than one key may cover")
    # OpenSSL may write up to a block beyond the data; CTR does not, but the binding asks for the room.
    buffer = bytearray(min(_CHUNK_BYTES, vector.nbytes) + _BLOCK_BYTES)
    per_chunk = _CHUNK_BYTES // group.element_bytes
    combine = group.subtract_into if subtract else group.add_into
    done = 0
    while done < len(vector):
        words = min(per_chunk, len(vector) - done)
        stream.update_into(_ZEROS[: words * group.element_bytes], buffer)
        elements = group.from_words(np.frombuffer(buffer, dtype=group.dtype, count=words))
        combine(vector[done : done + len(elements)], elements)
        done += len(elements)


def _keystream(key: bytes) -> CipherContext:
    if len(key) != KEY_BYTES:
        raise ValueError(f"a key has {KEY_BYTES} bytes")
    return Cipher(algorithms.AES(key), modes.CTR(bytes(_BLOCK_BYTES))).encryptor()
