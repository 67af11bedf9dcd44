"""Several byte strings as one, and digests of them, such that no two lists give the same bytes."""

import hashlib
import struct
from collections.abc import Collection
from typing import Final

from protocols.foundation.identifiers import PartyId

_LENGTH: Final = struct.Struct("<I")
_LONG_LENGTH: Final = struct.Struct("<Q")
_SHORT: Final = 1 << 12


def length_prefixed(*fields: bytes) -> bytes:
    """Each field behind its length as a 4-byte little-endian number. Unambiguous for a fixed number of fields."""
    return b"".join([part for field in fields for part in (_LENGTH.pack(len(field)), field)])


def digest(*parts: bytes) -> bytes:
    """SHA-256 of length-prefixed parts, so that no two lists of parts give the same input."""
    state = hashlib.sha256()
    if sum(map(len, parts)) <= _SHORT:  # one call costs less than many; what is longer is not copied
        state.update(b"".join([piece for part in parts for piece in (_LONG_LENGTH.pack(len(part)), part)]))
        return state.digest()
    for part in parts:
        state.update(_LONG_LENGTH.pack(len(part)))
        state.update(part)
    return state.digest()


def encode_parties(parties: Collection[PartyId]) -> bytes:
    """A set of parties: their numbers in ascending order, 8 bytes each."""
    return struct.pack(f"<{len(parties)}Q", *sorted(parties))
