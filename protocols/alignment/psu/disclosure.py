"""Disclosures of the private set union (`protocols.alignment.psu`), and of its names where the server may have them."""

from typing import Final

from protocols.alignment.psu.attempts import UnionPlaces
from protocols.foundation.disclosure import Disclosure, Field, Learned, Subject
from protocols.sums.secagg.disclosure import PURPOSE
from protocols.sums.secret.disclosure import SEALED_TOTAL

PRIVATE_UNION: Final = Disclosure(
    title="the private set union",
    place="alignment/psu",
    choice="by a private set union, from which the server learns how many names there are",
    in_brief="alignment was private: it told the server the number of {shared} names, not the names or who holds them",
    learned={
        Subject.NAMES: Learned(
            "how many there are, and tags without names",
            "how many there are, and the positions of its own; it may rule out a guessed name that it does not add to "
            "its own, not confirm it",
        ),
        Subject.OBJECTIONS: Learned("whether any client objects, which ends the run, not which client", "the same"),
        Subject.PARTICIPATION: Learned(
            "who took part and who dropped out", "which of its neighbours dropped out; who contributed"
        ),
    },
    against="the server alone, or clients alone",
    with_a_client="which names it guesses are in the union, and which of that client's names others hold too",
    assumes="keyed BLAKE2b as a pseudorandom function; the group key; a sum that hides its addends",
    not_covered="the server together with a client; an active server that puts names of different clients into one "
    "row; clients that add names they do not have; denial of service",
    # The vote on the answer is a sum for clients to read.
    fields={
        UnionPlaces: {
            "purpose": PURPOSE,
            "size": Field("aggregate", "how many names there are"),
            "places": Field("aggregate", "numbers by which clients find the positions of their own names"),
        },
        **SEALED_TOTAL,
    },
)

UNION_NAMES: Final = Disclosure(
    title="the names of the union",
    place="alignment/psu/names",
    choice="the names of the union (FedR's own functionality), not who holds them",
    in_brief="alignment was private: it told the server the {shared} names (--reveal-names), not who holds them",
    learned={Subject.NAMES: Learned("the names, not who holds them")},
    against="as the private set union",
    with_a_client="whether anybody else holds a name of that client",
    assumes="what the private set union assumes",
    not_covered="clients that write other names than those they have aligned; a client that drops out after the union, "
    "which shows how many names it alone held",
)
