"""Places in a text, and errors that name them."""

import re
from dataclasses import dataclass
from typing import Final

from secure_kg.queries.form import QueryError

MOST_CHARACTERS: Final = 1 << 20
"""Of a text with questions."""
MOST_NESTING: Final = 64
"""Parentheses and negations inside each other. Deeper formulas have no query either: see `form.MOST_DEPTH`."""


MOST_ATOMS: Final = 500
"""Of one question, comparisons included."""
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


@dataclass(frozen=True, slots=True)
class Place:
    """A line and a column, both from 1; columns count characters."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}"


class LanguageError(QueryError):
    """A text that is no question. `place` is where, `reason` why."""

    def __init__(self, place: Place, reason: str) -> None:
        super().__init__(f"{place}: {reason}")
        self.place, self.reason = place, reason


def place_at(text: str, offset: int) -> Place:
    """The place of the character at `offset`; its end is a place too."""
    line_start = text.rfind("\n", 0, offset) + 1
    return Place(text.count("\n", 0, offset) + 1, offset - line_start + 1)


def checked_text(text: str) -> str:
    """A text of bounded size, without control characters but tabs and line ends, which become "\\n"."""
    if len(text) > MOST_CHARACTERS:
        raise LanguageError(Place(1, 1), f"a text of more than {MOST_CHARACTERS:,} characters")
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    if found := _CONTROL.search(text):
        raise LanguageError(place_at(text, found.start()), "a control character")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise LanguageError(place_at(text, error.start), "a character that is not valid Unicode") from None
    return text
