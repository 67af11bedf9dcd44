"""Attack on holdings: the names a client holds, read off the view where alignment or sums are in clear.

Attacker: the server, alone or with a client that knows the positions of its own names.
Has:      alone: the names that clients sent in clear, and the order it gave them itself (plain alignment).
          With a client: the counts of the target's upload, which say by position what the target holds, and the
          client's own names at these positions.
Gains:    the target's names, exactly, without looking at a single row: entity reconstruction (FedR's ERR) for free.
"""

from dataclasses import dataclass, field

import numpy as np

from secure_kg.attacks.knowledge import Named
from secure_kg.attacks.result import Rate
from secure_kg.attacks.truth import Truth
from secure_kg.attacks.uploads import RowUpload, ServerView


@dataclass(frozen=True, slots=True)
class Holdings:
    """A guess at the names that a client holds."""

    names: frozenset[str] = field(repr=False)
    candidates: frozenset[str] = field(repr=False)
    """All names the attacker has without the view: among these it could have guessed."""


def holdings_in_view(view: ServerView, client: int) -> Holdings:
    """What the client sent in clear; nothing if names were aligned privately. Without it the server has no name."""
    return Holdings(frozenset(view.names.get(client, ())), frozenset())


def holdings_by_position(upload: RowUpload, known: Named) -> Holdings:
    """The colluder's names at positions to which the target contributed, for all the server can tell."""
    candidates = frozenset(known.names)
    if known.positions is None:
        return Holdings(frozenset(), candidates)
    common = np.flatnonzero(np.isin(known.positions, upload.positions))
    return Holdings(frozenset(known.names[number] for number in common.tolist()), candidates)


def holdings_rates(guess: Holdings, truth: Truth) -> dict[str, Rate]:
    """`ERR`: the share of the target's names that were found. `precision`: the share of found names that are right.

    Chance: so many names drawn from all those the attacker has.
    """
    held = frozenset(truth.graph.entities if truth.shared == "entity" else truth.graph.relations)
    share = len(guess.candidates & held) / max(len(guess.candidates), 1)
    right, found = len(guess.names & held), len(guess.names)
    return {
        "ERR": Rate(right, len(held), min(1.0, found * share / max(len(held), 1))),
        "precision": Rate(right, found, share),
    }
