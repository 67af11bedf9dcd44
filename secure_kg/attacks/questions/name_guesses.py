"""Whether somebody holds a name: an asker looks up rows of names that it guesses.

Attacker:  the asker, with a dictionary of names that may be there.
Has:       of every name that it asks for how many others give a row.
Gains:     which of its guesses somebody holds, and how many do, without an error. Not who.
Bound by:  the budget of vectors, of which every guess costs one; and --anchor-policy: under `shared` clients give rows
           of those names only that enough clients hold, under `none` of no name.
Without:   its own graph says nothing of names that it lacks. A guess that all of the dictionary is held is right as
           often as the dictionary is good.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from protocols.foundation.errors import SumAbandoned
from secure_kg.attacks.questions.curious import Curious, as_asker
from secure_kg.attacks.questions.parties import Parties
from secure_kg.foundation.seeds import generator


@dataclass(frozen=True, slots=True)
class NamesFound:
    """Of the names that the asker lacks and others hold."""

    guesses: int
    """Names of the dictionary that the asker lacks."""
    asked: int
    held: int
    """How many of the guesses others hold."""
    found: int
    wrong: int
    """Said to be held, and not; or with a wrong number of holders."""

    @property
    def recall(self) -> float:
        return self.found / self.held if self.held else 0.0


def told_holders(parties: Parties, names: Sequence[str]) -> dict[str, int]:
    """One session: by name, how many others gave a row. Ends where others refuse, without an error."""

    def ask(curious: Curious) -> dict[str, int]:
        told: dict[str, int] = {}
        for start in range(0, len(names), curious.most_rows):
            part = names[start : start + curious.most_rows]
            try:
                found = curious.rows(part)
            except SumAbandoned:
                break
            told |= dict(zip(part, found.counts.tolist(), strict=True))
        return told

    return as_asker(parties, ask)


def attack_names(parties: Parties, dictionary: Collection[str], budget: int | None = None, seed: int = 0) -> NamesFound:
    """`budget`: vectors that every client helps to find; None: any number. The asker asks for its share of them."""
    own = set(parties.own.vocabulary.entities)
    names = sorted(set(dictionary) - own)
    order = generator(seed, "order of guesses", int(parties.public.asker)).permutation(len(names)).tolist()
    wanted = [names[place] for place in order]
    if budget is not None:
        parties = parties.with_atoms(budget)
        wanted = wanted[: budget // (len(parties.knowledge) - 1)]
    told, truth = told_holders(parties, wanted), _holders(parties)
    held = sum(name in truth for name in names)
    found = sum(count > 0 for count in told.values())
    wrong = sum(count not in (0, truth.get(name, 0)) for name, count in told.items())
    return NamesFound(len(names), len(told), held, found, wrong)


def _holders(parties: Parties) -> Mapping[str, int]:
    """How many others hold a name: the truth."""
    counts: dict[str, int] = {}
    for one in parties.others.values():
        for name in one.vocabulary.entities:
            counts[name] = counts.get(name, 0) + 1
    return counts
