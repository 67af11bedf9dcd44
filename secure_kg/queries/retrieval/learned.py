"""What each party learns from a question, in the words of the disclosures of the protocols that it goes through."""

from collections.abc import Collection
from dataclasses import dataclass

from protocols.exact.disclosure import EXACT_ANSWERS
from protocols.foundation.disclosure import NOTHING, Disclosure, Subject, learned
from protocols.lookups.disclosure import NAME_LOOKUPS, STEPS, VECTOR_LOOKUPS
from protocols.scores.topk.disclosure import HIDDEN_QUERIES
from secure_kg.queries.retrieval.rules import Exact
from secure_kg.queries.retrieval.terms import Kind, PublicTerms

_SLOTS = {"shared": "shared"}
_ORDER = (Kind.ENTITIES, Kind.PROJECTIONS, Kind.NAMES, Kind.SCORES, Kind.HIDDEN, Kind.EXACT)
_IN_BRIEF = (Subject.QUERIES, Subject.ROWS, Subject.SCORES, Subject.NAMES, Subject.ANSWERS, Subject.FACTS)


@dataclass(frozen=True, slots=True)
class PartyLearns:
    """By subject, in words; subjects of which a party learns nothing are left out."""

    party: str
    about: dict[str, str]

    def line(self) -> str:
        """Without who took part and who holds what, of which `about` has everything."""
        named = {subject.value.format_map(_SLOTS) for subject in _IN_BRIEF}
        told = "; ".join(f"{subject}: {words}" for subject, words in self.about.items() if subject in named)
        return f"{self.party} learned of {told}" if told else f"{self.party} learned nothing"


def who_learns_what(
    public: PublicTerms, allow_extraction: bool, asked: Collection[Kind] | None = None
) -> tuple[PartyLearns, ...]:
    """From a whole question, or from steps of these kinds and no others: server, other clients, asker."""
    if asked is None:
        return _by_party(protocols_of(public, allow_extraction))
    used = [STEPS] if asked else []
    for kind in (kind for kind in _ORDER if kind in asked):
        used += [one for one in _protocols_of_step(kind, public, allow_extraction) if one not in used]
    return _by_party(tuple(used))


def what_a_step_tells(kind: Kind, public: PublicTerms, allow_extraction: bool) -> tuple[PartyLearns, ...]:
    """From one step, its announcement aside: server, other clients, asker."""
    return _by_party(_protocols_of_step(kind, public, allow_extraction))


def protocols_of(public: PublicTerms, allow_extraction: bool) -> tuple[Disclosure, ...]:
    """The disclosures of all that a question goes through."""
    scores = _protocols_of_step(Kind.HIDDEN if public.hidden else Kind.SCORES, public, allow_extraction)
    used: tuple[Disclosure, ...] = (STEPS, VECTOR_LOOKUPS, NAME_LOOKUPS, *scores)
    if public.exact is Exact.ONLY:
        used = (STEPS, NAME_LOOKUPS)
    if public.exact is not Exact.NO:
        used = (*used, EXACT_ANSWERS)
    return used


def _protocols_of_step(kind: Kind, public: PublicTerms, allow_extraction: bool) -> tuple[Disclosure, ...]:
    match kind:
        case Kind.ENTITIES | Kind.PROJECTIONS:
            return (VECTOR_LOOKUPS,)
        case Kind.NAMES:
            return (NAME_LOOKUPS,)
        case Kind.HIDDEN:
            return (HIDDEN_QUERIES,)
        case Kind.EXACT:
            return (EXACT_ANSWERS,)
        case Kind.SCORES:
            return public.bundle.disclosures(allow_extraction and public.bundle.has_budget)


def _by_party(used: tuple[Disclosure, ...]) -> tuple[PartyLearns, ...]:
    by_party: dict[str, dict[str, str]] = {"the server": {}, "other clients": {}, "the asker": {}}
    for subject in Subject:
        told = learned(used, subject)
        if told is None:
            continue
        for about, words in zip(by_party.values(), (told.server, told.client, told.asker), strict=True):
            if words != NOTHING:
                about[subject.value.format_map(_SLOTS)] = words.format_map(_SLOTS)
    return tuple(PartyLearns(party, about) for party, about in by_party.items())
