"""Files of a run as text, JSON and TOML, whoever has put them there: what cannot be read is one kind of error."""

import json
import math
import stat
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from secure_kg.foundation.errors import UserError

_LONGEST_TOML: Final = 1 << 14


def require_regular(path: Path) -> None:
    """`UserError` for what is there and no file with content of its own: a pipe, or a device, might never end."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):  # ValueError: a zero byte in the name
        return  # whoever opens it says why it cannot
    if not stat.S_ISREG(mode):
        raise UserError(f"{path}: cannot be read (it is no regular file)")


def text_of(path: Path) -> str:
    """`OSError` or `ValueError` for what has no text in UTF-8."""
    require_regular(path)
    return path.read_text(encoding="utf-8")


def json_of(text: str | bytes) -> Any:
    """`ValueError` for whatever is no JSON, for values nested without end, and for numbers that are none."""
    try:
        return json.loads(text, parse_constant=_refused, parse_float=_finite)
    except RecursionError:
        raise ValueError("nested too deep") from None


def toml_of(text: str) -> dict[str, Any]:
    """`ValueError` for whatever is no TOML of a run's size, for values nested without end and for numbers of more than
    64 bits."""
    if len(text) > _LONGEST_TOML:  # a key of many parts takes the square of its length
        raise ValueError("longer than any settings are")
    try:
        found = tomllib.loads(text)
    except RecursionError:
        raise ValueError("nested too deep") from None
    for value in _leaves(found):
        if isinstance(value, int) and value.bit_length() > 63:
            raise ValueError("a number of more than 64 bits")
    return found


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _leaves(one)
    else:
        yield value


def _finite(digits: str) -> float:
    value = float(digits)
    return value if math.isfinite(value) else _refused(digits)


def _refused(word: str) -> float:
    raise ValueError(f"{word[:20]} is no number")
