"""Several byte strings as one, and digests of them, such that no two lists give the same bytes."""

import hashlib
import struct
from collections.abc import Collection

from protocols.foundation.identifiers import PartyId


def length_prefixed(*fields: bytes) -> bytes:
    """Each field behind its length as a 4-byte little-endian number. Unambiguous for a fixed number of fields."""
    return b"".join(struct.pack("<I", len(field)) + field for field in fields)


def digest(*parts: bytes) -> bytes:
    """SHA-256 of length-prefixed parts, so that no two lists of parts give the same input."""
    state = hashlib.sha256()
    for part in parts:
        state.update(struct.pack("<Q", len(part)))
        state.update(part)
    return state.digest()


def encode_parties(parties: Collection[PartyId]) -> bytes:
    """A set of parties: their numbers in ascending order, 8 bytes each."""
    return struct.pack(f"<{len(parties)}Q", *sorted(parties))
