"""How large the messages of a selection may be, from the terms of its batch."""

from typing import Final

from protocols.scores import messages
from protocols.scores.terms import ScoreTerms
from protocols.scores.topk.selection import FEW, SAMPLE

_OPENED_BYTES: Final = 16
"""Of one comparison in one step: two words."""
_OVERHEAD: Final = 256
"""Of one sealed message, its place in a map included."""


def most_comparisons(terms: ScoreTerms) -> int:
    """Of one step of a batch."""
    candidates = min(terms.positions, max(FEW, SAMPLE))
    return terms.queries * max(terms.positions, candidates * (candidates - 1) // 2)


def step_bytes(terms: ScoreTerms) -> int:
    """What one client sends in one step, at most."""
    return _OPENED_BYTES * most_comparisons(terms) + 8 * terms.positions + _OVERHEAD


def most_dealt(terms: ScoreTerms) -> int:
    """How many words the server deals in one step, at most."""
    return max(most_comparisons(terms), terms.positions << len(terms.clients).bit_length())


def relay_bytes(terms: ScoreTerms) -> int:
    """What one client is sent in one step, at most."""
    return len(terms.clients) * step_bytes(terms) + 8 * most_dealt(terms) + _OVERHEAD


def require_sendable(terms: ScoreTerms) -> None:
    """`ValueError` for a batch whose messages would be too large."""
    messages.require_sendable(terms, relay_bytes(terms))
