"""Guard of RDF/XML: what an XML file may not do to the parser behind it.

Every byte passes the standard library's XML parser first, which fetches nothing. Refused are

- entities whose value names another entity, is longer than 1,000 characters or lies elsewhere: a few lines of them can
  stand for gigabytes;
- entities that are declared twice, or inside of a comment or a value: XML takes the first declaration and no hidden
  ones, but the parser behind takes the last, hidden or not;
- encodings other than UTF-8, which the parser behind does not know;
- elements nested deeper than 200: the time of the parser behind grows with the square of the depth;
- what is not well-formed, with its line and column, which the parser behind does not tell.

Lines are passed on one by one, so that a fault that only the parser behind sees is known to its line.
"""

import codecs
from pathlib import Path
from typing import Any, Final
from xml.parsers import expat

from secure_kg.data.readers.interface import refuse
from secure_kg.data.readers.streams import ByteStream

DEEPEST: Final = 200
LONGEST_ENTITY: Final = 1000
_PIECE: Final = 1 << 14
_ENCODING: Final = "RDF/XML is read in UTF-8 only; convert the file from the encoding that it has"


class GuardedXml:
    """A stream of XML that has passed the guard."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream, self._waiting, self._depth, self._some = stream, b"", 0, False
        self.line = 1
        self._parser = expat.ParserCreate()
        self._parser.StartElementHandler = self._begin
        self._parser.EndElementHandler = self._end
        self._parser.EntityDeclHandler = self._entity
        self._parser.XmlDeclHandler = self._declaration
        self._parser.StartDoctypeDeclHandler = self._begin_doctype
        self._parser.EndDoctypeDeclHandler = self._end_doctype
        self._other = False
        """Whether a declaration has begun that is not an entity's."""

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
        if not self._some and not data:
            refuse(self.path, "an empty file is no RDF/XML")
        if not self._some and (data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or b"\0" in data[:4]):
            refuse(self.path, _ENCODING, 1)
        self._some = True
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
        self._refuse_hidden(value)
        if "&" in value or "%" in value or len(value) > LONGEST_ENTITY:
            refuse(self.path, f"an entity that names others, or is longer than {LONGEST_ENTITY} characters", line)

    def _declaration(self, version: str, encoding: str | None, standalone: int) -> None:
        if encoding is not None and encoding.lower() not in ("utf-8", "us-ascii"):
            refuse(self.path, _ENCODING, 1)

    def _begin_doctype(self, *words: Any) -> None:
        self._refuse_hidden(str(words))
        self._parser.DefaultHandlerExpand = self._token

    def _end_doctype(self) -> None:
        self._parser.DefaultHandlerExpand = None

    def _token(self, token: str) -> None:
        """A token of the document type that has no handler: of an entity's declaration only if it is a repeated one."""
        self._refuse_hidden(token)
        line = self._parser.CurrentLineNumber
        if self._other:
            self._other = token != ">"
        elif token.startswith("%"):
            refuse(self.path, "an entity that lies elsewhere, or has parameters", line)
        elif token.startswith("<!") and not token.startswith("<!--"):
            self._other = True
        elif token.strip("[]> \t\r\n") and not token.startswith(("<!--", "<?")):
            refuse(self.path, "an entity that is declared twice, or has a name of XML's own", line)

    def _refuse_hidden(self, text: str) -> None:
        if "<!ENTITY" in text.upper():
            refuse(self.path, "an entity that is declared inside of something else", self._parser.CurrentLineNumber)
