"""Words of others where people read them.

Peers put words into messages: names, and reasons of failures. A terminal, or a page, must not obey what is in them.
"""

import re
from typing import Final

_CONTROLS: Final = "\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069\\ud800-\\udfff"
_IN_TEXT: Final = re.compile(f"[{_CONTROLS}]")
_IN_LINE: Final = re.compile(f"[{_CONTROLS}\\t\\n]")


def visible(text: str) -> str:
    """Text whose control characters, those that turn the direction of writing, and halves of characters (surrogates,
    which no file can hold) are shown and do nothing. Tabs and line breaks stay."""
    return _IN_TEXT.sub(_shown, text)


def visible_line(text: str) -> str:
    """The same for what stands in one line: tabs and line breaks are shown as well."""
    return _IN_LINE.sub(_shown, text)


def _shown(found: re.Match[str]) -> str:
    return found.group().encode("unicode_escape").decode()
