"""Digests of several byte strings: one definition, however long they are."""

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from protocols.foundation.digests import digest, length_prefixed

PARTS = st.lists(st.one_of(st.binary(max_size=40), st.sampled_from([1 << 12, (1 << 12) + 1]).map(bytes)), max_size=4)


@given(PARTS)
def test_a_digest_is_sha256_of_the_parts_each_behind_its_length(parts: list[bytes]) -> None:
    whole = b"".join(len(part).to_bytes(8, "little") + part for part in parts)
    assert digest(*parts) == hashlib.sha256(whole).digest()


@given(PARTS)
def test_fields_stand_behind_their_lengths(fields: list[bytes]) -> None:
    assert length_prefixed(*fields) == b"".join(len(field).to_bytes(4, "little") + field for field in fields)
