"""Disclosures of lookups."""

from typing import Final

from protocols.foundation.disclosure import Disclosure, Field, Learned, Subject
from protocols.lookups import messages
from protocols.scores.disclosure import ASKING, MASKED_SCORES, PURPOSE, TOOK_PART, TOTAL_OF

_REQUESTS: Final = Learned("who asks, when, and for how much", "the requests", "its own")
_AGAINST: Final = "the server with a declared fraction of the clients, semi-honest, or active with pinned identities"

VECTOR_LOOKUPS: Final = Disclosure(
    title="lookups of vectors",
    place="lookups/vectors",
    choice="vectors on request, as means over whoever has them",
    in_brief="vectors were looked up under masks: the asker read means, the server nothing",
    learned={
        Subject.ROWS: Learned(asker="of every vector that it asks for the mean over those that have an answer"),
        Subject.HOLDERS: Learned(asker="of every vector how many have an answer, and not who"),
        Subject.QUERIES: _REQUESTS,
        Subject.PARTICIPATION: TOOK_PART,
    },
    against=_AGAINST,
    with_a_client="with the asker what the asker reads; with another client the requests",
    assumes="what masked sums assume",
    not_covered="wrong answers; what an answer gives away: one that is computed from a row may give the row; denial of "
    "service",
    fields=MASKED_SCORES.fields,
)
NAME_LOOKUPS: Final = Disclosure(
    title="lookups of names",
    place="lookups/names",
    choice="names of positions on request, from whoever names them",
    in_brief="names were looked up under masks: the asker read them, the server nothing",
    learned={
        Subject.NAMES: Learned(asker="those of the positions that it asks for, if somebody names them"),
        Subject.HOLDERS: Learned(asker="that somebody holds a position that is named, and not how many or who"),
        Subject.QUERIES: Learned("who asks, when, and for how many names", "for which positions", "its own"),
        Subject.PARTICIPATION: TOOK_PART,
    },
    against=_AGAINST,
    with_a_client="with the asker what the asker reads; with another client the positions that were asked for",
    assumes="what masked sums assume",
    not_covered="false names, where nobody else names the position; clients whose names do not agree, which ends the "
    "lookup; denial of service",
    fields={
        **ASKING,
        messages.NamesTotal: {
            "purpose": PURPOSE,
            "contributors": TOTAL_OF,
            "vector": Field("masked", "a sum of names times weights under masks of the asker"),
        },
    },
)
_SHAPE: Final = "how many steps a question takes, of what kind and how large each is"
STEPS: Final = Disclosure(
    title="announcements of steps",
    place="lookups/steps",
    choice="",
    in_brief="",
    learned={
        Subject.QUERIES: Learned(_SHAPE, _SHAPE, "its own"),
    },
    against="nobody: announcements are public",
    with_a_client="nothing",
    assumes="that what follows an announcement is sealed under terms that are made from it; of the end, that no client "
    "gives the group key away",
    not_covered="what the shape of a question tells; a server that withholds or alters announcements: whoever is told "
    "of another step, or of an end that no client announced, refuses, and is a dropout if the server hides that",
    fields={
        messages.NextStep: {
            "kind": Field("public", "what kind of step comes next"),
            "sizes": Field("public", "how large the next step is"),
            "table": Field("public", "a digest of the model that is asked; at the end a word of the clients"),
        }
    },
)
