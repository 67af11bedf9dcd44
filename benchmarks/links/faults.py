"""What a proxy does to the connections that pass it."""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from secure_kg.foundation.errors import UserError


class Answer(StrEnum):
    """What happens to a connection that comes in."""

    FORWARD = "forward"
    REFUSE = "refuse"
    """It is reset at once."""
    BLACK_HOLE = "black-hole"
    """It is accepted, and nobody says a word."""


class Break(StrEnum):
    """What happens at the piece whose turn has come."""

    CUT = "cut"
    """Half of the piece is still sent; then both ends are reset."""
    HALF_CLOSE = "half-close"
    """Its direction ends in good order in front of it; the other one stays open."""


@dataclass(frozen=True, slots=True)
class Faults:
    """Pieces and bytes are counted over all connections and both directions, from 1, and each is met once."""

    delay: float = 0.0
    """Seconds that every piece takes in each direction; as many as may be are under way at once, in order."""
    rate: float = 0.0
    """Bytes per second in each direction of a connection; 0: no limit."""
    break_at_pieces: frozenset[int] = frozenset()
    break_after_bytes: int = 0
    """0: never. Otherwise once, at the piece in which so many bytes are passed."""
    breaking: Break = Break.CUT
    answer: Answer = Answer.FORWARD
    answered: int = 0
    """So many connections get `answer`, and later ones are forwarded; 0: all."""
    overtaken: frozenset[int] = frozenset()
    """Connections (counted from 1) that are held until a newer one has been let through, or `patience` has passed."""
    patience: float = 5.0

    def __post_init__(self) -> None:
        if min(self.delay, self.rate, self.patience, self.break_after_bytes, self.answered) < 0:
            raise UserError("delays, rates and numbers of a link cannot be negative")


_UNITS = {"ms": 1e-3, "s": 1.0, "kbit": 125.0, "Mbit": 125e3, "Gbit": 125e6}


def parse_link(text: str) -> Faults:
    """Faults from a text such as `delay=25ms,rate=100Mbit`: the delay of each direction, and its bits per second."""
    found: dict[str, Any] = {}
    for part in (one for one in text.split(",") if one):
        name, _, value = part.partition("=")
        if name not in ("delay", "rate") or name in found:
            raise UserError(f"'{part}': a link has a delay (25ms) and a rate (100Mbit), each once")
        units = ("ms", "s") if name == "delay" else ("kbit", "Mbit", "Gbit")
        unit = next((one for one in units if value.endswith(one)), None)
        try:
            found[name] = float(value.removesuffix(unit or " ")) * _UNITS[unit or ""]
        except (ValueError, KeyError):
            raise UserError(f"'{part}': a number with one of the units {', '.join(units)}") from None
    return replace(Faults(), **found)
