"""What each party learns from a question, in the words of the disclosures of the protocols that it goes through."""

from dataclasses import dataclass

from protocols.exact.disclosure import EXACT_ANSWERS
from protocols.foundation.disclosure import NOTHING, Disclosure, Subject, learned
from protocols.lookups.disclosure import NAME_LOOKUPS, STEPS, VECTOR_LOOKUPS
from protocols.scores.topk.disclosure import HIDDEN_QUERIES
from secure_kg.queries.retrieval.rules import Exact
from secure_kg.queries.retrieval.terms import PublicTerms

_SLOTS = {"shared": "shared"}
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


def who_learns_what(public: PublicTerms, allow_extraction: bool) -> tuple[PartyLearns, ...]:
    """Server, other clients, asker."""
    bundle = public.bundle
    scores = (HIDDEN_QUERIES,) if public.hidden else bundle.disclosures(allow_extraction and bundle.has_budget)
    used: tuple[Disclosure, ...] = (STEPS, VECTOR_LOOKUPS, NAME_LOOKUPS, *scores)
    if public.exact is Exact.ONLY:
        used = (STEPS, NAME_LOOKUPS)
    if public.exact is not Exact.NO:
        used = (*used, EXACT_ANSWERS)
    by_party: dict[str, dict[str, str]] = {"the server": {}, "other clients": {}, "the asker": {}}
    for subject in Subject:
        told = learned(used, subject)
        if told is None:
            continue
        for about, words in zip(by_party.values(), (told.server, told.client, told.asker), strict=True):
            if words != NOTHING:
                about[subject.value.format_map(_SLOTS)] = words.format_map(_SLOTS)
    return tuple(PartyLearns(party, about) for party, about in by_party.items())
