"""Words and marks of a text in the toolkit's own language.

?name            a variable
word  "a name"   a relation, an entity or the name of a question; in quotes any characters, with \\" \\\\ \\n \\r \\t
                 \\uXXXX \\UXXXXXXXX as escapes
( ) , & | ! : =  marks; `not` is the same as !
# ...            a comment, up to the end of the line
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from secure_kg.queries.language.places import LanguageError, Place, checked_text

Kind = Literal["variable", "name", "mark", "end"]

_TOKEN: Final = re.compile(
    r"""
      (?P<space>(?:[ \t\n]|\#[^\n]*)+)
    | \?(?P<variable>[^\W\d]\w*)
    | (?P<word>\w[\w.-]*)
    | "(?P<quoted>(?:[^"\\\n]|\\[^\n])*)"
    | (?P<mark>[(),&|!:=])
    """,
    re.VERBOSE,
)
_ESCAPE: Final = re.compile(r'\\(?:(["\\nrt])|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|)')
_PLAIN: Final = {'"': '"', "\\": "\\", "n": "\n", "r": "\r", "t": "\t"}


@dataclass(frozen=True, slots=True)
class Token:
    """`text` is the name of a variable, a word, the content of quotes, or the mark; of the end it is empty."""

    kind: Kind
    text: str
    place: Place


def tokens(text: str) -> Iterator[Token]:
    """The tokens of a text, the last one being its end."""
    text = checked_text(text)
    offset, line, line_start = 0, 1, 0
    while offset < len(text):
        found = _TOKEN.match(text, offset)
        place = Place(line, offset - line_start + 1)
        if found is None:
            raise LanguageError(place, _why_not(text[offset]))
        match found.lastgroup:
            case "space":
                if breaks := found[0].count("\n"):
                    line, line_start = line + breaks, offset + found[0].rindex("\n") + 1
            case "variable":
                yield Token("variable", found["variable"], place)
            case "word":
                yield Token("mark", "!", place) if found["word"] == "not" else Token("name", found["word"], place)
            case "quoted":
                yield Token("name", _unescaped(found["quoted"], place), place)
            case _:
                yield Token("mark", found["mark"], place)
        offset = found.end()
    yield Token("end", "", Place(line, offset - line_start + 1))


def _why_not(character: str) -> str:
    if character == '"':
        return "quotes that do not end on this line"
    if character == "?":
        return "a variable needs a name that begins with a letter"
    return "a character that is no part of the language; names with such characters stand in quotes"


def _unescaped(quoted: str, place: Place) -> str:
    """The name in quotes that begin at `place`; they are on one line."""
    if not quoted:
        raise LanguageError(place, "an empty name")

    def replaced(found: "re.Match[str]") -> str:
        plain, short, long = found.groups()
        if plain:
            return _PLAIN[plain]
        code = int(short or long or "110000", 16)
        if code > 0x10FFFF or 0xD800 <= code < 0xE000:
            where = Place(place.line, place.column + 1 + found.start())
            raise LanguageError(where, r"an unknown escape; there are \" \\ \n \r \t \uXXXX \UXXXXXXXX")
        return chr(code)

    return _ESCAPE.sub(replaced, quoted)
