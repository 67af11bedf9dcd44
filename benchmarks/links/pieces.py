"""A stream of bytes in the pieces that are counted and delayed: TLS records, or whatever arrives at once."""

from typing import Final

_HEAD: Final = 5
_LARGEST: Final = _HEAD + (1 << 14) + 256
_TYPES: Final = range(20, 25)


class Records:
    """One direction of one connection. Bytes that are not TLS are passed on as they come."""

    def __init__(self) -> None:
        self._kept = bytearray()

    def feed(self, arrived: bytes) -> list[bytes]:
        """The pieces that are complete with these bytes."""
        self._kept += arrived
        found = list[bytes]()
        while self._kept:
            if self._kept[0] not in _TYPES or (len(self._kept) > 1 and self._kept[1] != 3):
                found.append(bytes(self._kept))
                self._kept.clear()
                break
            if len(self._kept) < _HEAD:
                break
            size = _HEAD + int.from_bytes(self._kept[3:_HEAD], "big")
            if size > _LARGEST:
                found.append(bytes(self._kept))
                self._kept.clear()
                break
            if len(self._kept) < size:
                break
            found.append(bytes(self._kept[:size]))
            del self._kept[:size]
        return found

    def rest(self) -> bytes:
        """What is left of an incomplete piece when the stream ends."""
        rest = bytes(self._kept)
        self._kept.clear()
        return rest
