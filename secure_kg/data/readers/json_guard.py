"""Guard of JSON-LD: values nested deeper than 200 are refused before the parser sees them.

The time of the parser behind grows with the square of the depth, and at some thousands it runs out of stack, which ends
the process. Brackets inside strings do not count. What is no JSON at all is left to the parser to refuse.
"""

from pathlib import Path
from typing import Final

from secure_kg.data.readers.interface import refuse
from secure_kg.data.readers.streams import ByteStream

DEEPEST: Final = 200
_PIECE: Final = 1 << 15
_OPEN: Final = b"{["
_CLOSE: Final = b"}]"
_OTHER: Final = bytes(set(range(256)) - set(_OPEN + _CLOSE + b"\n"))


class GuardedJson:
    """A stream of JSON that has passed the guard."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream, self._depth, self._quoted, self._waiting = stream, 0, False, b""

    @property
    def path(self) -> Path:
        return self._stream.path

    def read(self, size: int = -1) -> bytes:
        """The next bytes of the file, at most `size` unless it is negative."""
        lines = self._stream.lines
        data = self._stream.read(min(size, _PIECE) if size >= 0 else _PIECE)
        self._check(data, lines + 1)
        return data

    def _check(self, data: bytes, line: int) -> None:
        marks = self._outside_strings(data).translate(None, _OTHER)
        opened = marks.count(b"{") + marks.count(b"[")
        if self._depth + opened <= DEEPEST:
            self._depth += opened - marks.count(b"}") - marks.count(b"]")
            return
        for mark in marks:
            if mark in _OPEN:
                self._depth += 1
                if self._depth > DEEPEST:
                    refuse(self.path, f"values nested deeper than {DEEPEST}", line)
            elif mark in _CLOSE:
                self._depth -= 1
            else:
                line += 1

    def _outside_strings(self, data: bytes) -> bytes:
        data = self._waiting + data
        # A backslash at the end may belong to what comes next.
        plain = data.rstrip(b"\\")
        slashes = len(data) - len(plain)
        self._waiting = b"\\" * (slashes % 2)
        pieces = plain.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
        outside = b"".join(pieces[self._quoted :: 2])
        self._quoted ^= len(pieces) % 2 == 0
        return outside
