"""Several byte strings as one, such that no two lists of them give the same bytes."""

import struct


def length_prefixed(*fields: bytes) -> bytes:
    """Each field behind its length as a 4-byte little-endian number. Unambiguous for a fixed number of fields."""
    return b"".join(struct.pack("<I", len(field)) + field for field in fields)
