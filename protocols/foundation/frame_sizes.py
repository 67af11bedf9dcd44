"""Sizes of frames by the wire format (`protocols.foundation.wire`).

A frame is a header of 32 bytes, then MessagePack, in which a number, a text, a list or an array says its own length in
more or fewer bytes depending on how long it is. Where a field is not known beforehand (the round of a total, how many
have contributed) the size is that of the longest.

A party admits no larger frame than a task of its own has need of (`Conversation.admit`): what a peer sends is neither
decoded nor, where the transport can tell its size beforehand, given memory.
"""

from collections.abc import Collection
from typing import Final

from protocols.foundation.identifiers import PartyId
from protocols.foundation.wire import HEADER

_ARRAY_HEAD: Final = 3
LONGEST_NUMBER: Final = 9


def _steps(value: int, limits: tuple[int, ...], sizes: tuple[int, ...]) -> int:
    """The size that belongs to the first limit above `value`."""
    return next((size for limit, size in zip(limits, sizes, strict=False) if value < limit), sizes[-1])


def number_bytes(value: int) -> int:
    """A whole number that is not negative."""
    return _steps(value, (1 << 7, 1 << 8, 1 << 16, 1 << 32), (1, 2, 3, 5, 9))


def binary_bytes(length: int) -> int:
    return length + _steps(length, (1 << 8, 1 << 16), (2, 3, 5))


def text_bytes(text: str) -> int:
    length = len(text.encode())
    return length + _steps(length, (1 << 5, 1 << 8, 1 << 16), (1, 2, 3, 5))


def list_head_bytes(length: int) -> int:
    """Of a list or of a map, before its entries."""
    return _steps(length, (1 << 4, 1 << 16), (1, 3, 5))


def array_bytes(entries: int, entry_bytes: int, axes: int = 1) -> int:
    """An array: an extension value that begins with dtype, number of axes and the length of each."""
    length = _ARRAY_HEAD + 8 * axes + entries * entry_bytes
    return length + (2 if length == 16 else _steps(length, (1 << 8, 1 << 16), (3, 4, 6)))


def map_bytes(parties: Collection[PartyId], entry_bytes: int) -> int:
    """One entry of so many raw bytes for each of the parties."""
    return list_head_bytes(len(parties)) + sum(number_bytes(party) + binary_bytes(entry_bytes) for party in parties)


def frame_bytes(*fields: int) -> int:
    """A message whose fields have these sizes."""
    return HEADER.size + list_head_bytes(len(fields)) + sum(fields)
