"""Guard of RDF/XML: what an XML file may not do to the parser behind it.

Every byte passes the standard library's XML parser first, which fetches nothing. Refused are

- entities whose value names another entity, is longer than 1,000 characters or lies elsewhere: a few lines of them can
  stand for gigabytes;
- elements nested deeper than 200: the time of the parser behind grows with the square of the depth;
- what is not well-formed, with its line and column, which the parser behind does not tell.

Lines are passed on one by one, so that a fault that only the parser behind sees is known to its line.
"""

from pathlib import Path
from typing import Any, Final
from xml.parsers import expat

from secure_kg.data.readers.interface import refuse
from secure_kg.data.readers.streams import ByteStream

DEEPEST: Final = 200
LONGEST_ENTITY: Final = 1000
_PIECE: Final = 1 << 14


class GuardedXml:
    """A stream of XML that has passed the guard."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream, self._waiting, self._depth, self._some = stream, b"", 0, False
        self.line = 1
        self._parser = expat.ParserCreate()
        self._parser.StartElementHandler = self._begin
        self._parser.EndElementHandler = self._end
        self._parser.EntityDeclHandler = self._entity

    @property
    def path(self) -> Path:
        return self._stream.path

    def read(self, size: int = -1) -> bytes:
        """The rest of a line, or `size` bytes of it."""
        if not self._waiting:
            self._waiting = self._stream.read(_PIECE)
            self._check(self._waiting)
        end = self._waiting.find(b"\n") + 1 or len(self._waiting)
        end = min(end, size) if size >= 0 else end
        piece, self._waiting = self._waiting[:end], self._waiting[end:]
        self.line = self._stream.lines + 1 - self._waiting.count(b"\n") - piece.endswith(b"\n")
        return piece

    def _check(self, data: bytes) -> None:
        self._some = self._some or bool(data)
        if not self._some:
            refuse(self.path, "an empty file is no RDF/XML")
        try:
            self._parser.Parse(data, not data)
        except expat.ExpatError as error:
            refuse(self.path, "not well-formed XML", error.lineno, error.offset + 1)

    def _begin(self, name: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > DEEPEST:
            refuse(self.path, f"elements nested deeper than {DEEPEST}", self._parser.CurrentLineNumber)

    def _end(self, name: str) -> None:
        self._depth -= 1

    def _entity(self, name: str, parameter: bool, value: str | None, *where: Any) -> None:
        line = self._parser.CurrentLineNumber
        if parameter or value is None:
            refuse(self.path, "an entity that lies elsewhere, or has parameters", line)
        if "&" in value or "%" in value or len(value) > LONGEST_ENTITY:
            refuse(self.path, f"an entity that names others, or is longer than {LONGEST_ENTITY} characters", line)
