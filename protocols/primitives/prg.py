"""Pseudorandom ring vectors from a 256-bit key: the AES-256-CTR keystream, read as little-endian ring elements.

Use each key for one vector only: two vectors masked with the same keystream differ by the difference of their inputs.
The counter starts at zero, which is sound exactly because keys are single-use (`protocols.primitives.keys.derive_key`
binds them to session, round, pair and purpose). The stream of one key ends at 2^36 bytes, far below the 2^68 bytes at
which the counter would repeat and low enough that the distance of a permutation from a random function stays under
2^-62 (birthday bound on 2^32 blocks of 128 bits).
"""

from typing import Final

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes

from protocols.primitives.group import Ring, RingVector

KEY_BYTES: Final = 32
MAX_STREAM_BYTES: Final = 1 << 36
_BLOCK_BYTES: Final = 16
# Half a megabyte of keystream stays in the cache between cipher and addition: measured 1.2x the bare cipher, against
# 2x and more when the whole stream is written out first.
_CHUNK_BYTES: Final = 1 << 19
_ZEROS: Final = bytes(_CHUNK_BYTES)


def add_keystream(key: bytes, vector: RingVector, ring: Ring) -> None:
    """vector += keystream(key), in place."""
    _combine(key, vector, ring, subtract=False)


def subtract_keystream(key: bytes, vector: RingVector, ring: Ring) -> None:
    """vector -= keystream(key), in place."""
    _combine(key, vector, ring, subtract=True)


def _combine(key: bytes, vector: RingVector, ring: Ring, *, subtract: bool) -> None:
    stream = _keystream(key)
    # Narrow masks on wide entries, or masks added as floats, would leave the input visible.
    ring.require(vector, len(vector))
    if vector.nbytes > MAX_STREAM_BYTES:
        raise ValueError("vector is longer than one key may cover")
    # OpenSSL may write up to a block beyond the data; CTR does not, but the binding asks for the room.
    buffer = bytearray(min(_CHUNK_BYTES, vector.nbytes) + _BLOCK_BYTES)
    per_chunk = _CHUNK_BYTES // ring.element_bytes
    combine = ring.subtract_into if subtract else ring.add_into
    for start in range(0, len(vector), per_chunk):
        part = vector[start : start + per_chunk]
        stream.update_into(_ZEROS[: part.nbytes], buffer)
        combine(part, np.frombuffer(buffer, dtype=ring.dtype, count=len(part)))


def _keystream(key: bytes) -> CipherContext:
    if len(key) != KEY_BYTES:
        raise ValueError(f"a key has {KEY_BYTES} bytes")
    return Cipher(algorithms.AES(key), modes.CTR(bytes(_BLOCK_BYTES))).encryptor()
