"""Words of others where people read them.

Peers put words into messages: names, and reasons of failures. A terminal, or a page, must not obey what is in them, and
two names that differ must not look alike because a letter of one cannot be seen.
"""

import re
import unicodedata
from pathlib import Path
from typing import Final

_UNSEEN: Final = "\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0000-\U000e0fff"
"""What Unicode lets a terminal leave out (Default_Ignorable_Code_Point), and Python takes for printable in part."""
_SUSPECT: Final = re.compile("[^ -~]")
_ALWAYS: Final = re.compile(f"[{_UNSEEN}]")
_BLANK: Final = "Zs"


def visible(text: str) -> str:
    """Text in which nothing is hidden and nothing acts: control characters, those of no width, those that turn the
    direction of writing, private and unassigned ones, and halves of characters (surrogates, which no file can hold)
    are shown by their numbers. Tabs and line breaks stay."""
    return _SUSPECT.sub(lambda found: found[0] if found[0] in "\t\n" else _shown(found[0]), text)


def visible_line(text: str) -> str:
    """The same for what stands in one line: tabs and line breaks are shown as well."""
    return _SUSPECT.sub(lambda found: _shown(found[0]), text)


def shown(path: Path | str) -> str:
    """A path for a message: one line, whatever characters it holds."""
    text = str(path)
    return text if text.isprintable() else ascii(text)


def _shown(letter: str) -> str:
    seen = letter.isprintable() or unicodedata.category(letter) == _BLANK
    return letter if seen and not _ALWAYS.match(letter) else letter.encode("unicode_escape").decode()
