"""Pseudorandom vectors of a group from a 256-bit key: the AES-256-CTR keystream, read as little-endian words.

For a ring every word is an element. For the prime field a word of 64 bits gives its low 61 bits, and a word whose low
61 bits are p = 2^61 - 1 is left out: entry n of the vector is word n of those that remain. Both holders of a key leave
out the same words, and given a uniform stream the elements are exactly uniform (`Group.from_words`).

Use each key for one vector only: two vectors masked with the same keystream differ by the difference of their inputs.
That includes two vectors of different groups, so the group's name belongs into the key's context. The counter starts
at a fixed value, which is sound exactly because keys are single-use (`protocols.primitives.keys.derive_key` binds them
to session, round, pair and purpose). The stream of one key ends at 2^35 bytes (and the few words the field left out),
below the 2^36 bytes at which a 32-bit counter would repeat and low enough that the distance of a permutation from a
random function stays under 2^-64 (birthday bound on 2^31 blocks of 128 bits).

The stream is taken from the library's GCM mode under an all-zero 96-bit nonce, whose tag nobody asks for: encrypting
zeros there is AES-256-CTR from counter block 2 on, to the last bit (a test compares the two), and where the processor
has wide AES instructions OpenSSL uses them for GCM only, which makes it a third faster than its CTR mode.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes

from protocols.primitives.group import Group, GroupVector

KEY_BYTES: Final = 32
MAX_STREAM_BYTES: Final = 1 << 35
_BLOCK_BYTES: Final = 16
_NONCE: Final = bytes(12)
# A piece of the vector and a piece of keystream stay in the cache while all masks are applied to it: measured 1.0 times
# a bare AES-256-CTR for ten masks, against 1.4 when each mask passes over the whole vector.
_CHUNK_BYTES: Final = 1 << 18
_ZEROS: Final = memoryview(bytes(_CHUNK_BYTES))


def add_keystream(key: bytes, vector: GroupVector, group: Group) -> None:
    """vector += keystream(key), in place."""
    combine_keystreams(vector, group, added=[key])


def subtract_keystream(key: bytes, vector: GroupVector, group: Group) -> None:
    """vector -= keystream(key), in place."""
    combine_keystreams(vector, group, subtracted=[key])


def combine_keystreams(
    vector: GroupVector, group: Group, added: Sequence[bytes] = (), subtracted: Sequence[bytes] = ()
) -> None:
    """Add the keystreams of some keys to `vector` and subtract those of others, in place."""
    # Narrow masks on wide entries, or masks added as floats, would leave the input visible.
    group.require(vector, len(vector))
    if vector.nbytes > MAX_STREAM_BYTES:
        raise ValueError("vector is longer than one key may cover")
    streams = [(_keystream(key).update_into, group.add_into) for key in added]
    streams += [(_keystream(key).update_into, group.subtract_into) for key in subtracted]
    # OpenSSL may write up to a block beyond the data; CTR does not, but the binding asks for the room.
    buffer = bytearray(min(_CHUNK_BYTES, vector.nbytes) + _BLOCK_BYTES)
    words = np.frombuffer(buffer, dtype=group.dtype, count=(len(buffer) - _BLOCK_BYTES) // group.element_bytes)
    for start in range(0, len(vector), max(1, len(words))):
        part = vector[start : start + len(words)]
        window, zeros = words[: len(part)], _ZEROS[: part.nbytes]
        for write_stream, combine in streams:
            write_stream(zeros, buffer)
            elements = group.from_words(window)
            if len(elements) == len(part):
                combine(part, elements)
                continue
            done = 0
            while True:  # the group has left out a word: the stream goes on
                combine(part[done : done + len(elements)], elements)
                done += len(elements)
                missing = len(part) - done
                if not missing:
                    break
                write_stream(_ZEROS[: missing * group.element_bytes], buffer)
                elements = group.from_words(words[:missing])


class Keystream:
    """The words of one key's stream, taken piece by piece.

    Two holders of a key have the same words only if they take pieces of the same lengths in the same order. What holds
    for vectors holds here: one stream per key, and no key that is used for anything else.
    """

    __slots__ = ("_left", "_write")

    def __init__(self, key: bytes) -> None:
        self._write, self._left = _keystream(key).update_into, MAX_STREAM_BYTES

    def words(self, count: int) -> npt.NDArray[np.uint64]:
        """The next `count` words of 64 bits."""
        size = count * 8
        if size > self._left:
            raise ValueError("more words than one key may give")
        self._left -= size
        room = bytearray(size + _BLOCK_BYTES)
        view = memoryview(room)
        for start in range(0, size, _CHUNK_BYTES):
            self._write(_ZEROS[: min(_CHUNK_BYTES, size - start)], view[start:])
        return np.frombuffer(room, dtype="<u8", count=count)

    def __reduce__(self) -> str | tuple[object, ...]:
        raise TypeError("a keystream is not serialised")


def _keystream(key: bytes) -> CipherContext:
    if len(key) != KEY_BYTES:
        raise ValueError(f"a key has {KEY_BYTES} bytes")
    return Cipher(algorithms.AES(key), modes.GCM(_NONCE)).encryptor()
