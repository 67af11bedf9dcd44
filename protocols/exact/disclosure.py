"""Disclosure of exact answers (`protocols.exact`)."""

from typing import Final

from protocols.foundation.disclosure import Disclosure, Field, Learned, Subject
from protocols.scores.disclosure import ASKING
from protocols.scores.topk import messages
from protocols.scores.topk.disclosure import TOP_K

EXACT_ANSWERS: Final = Disclosure(
    title="exact answers",
    place="exact",
    choice="which positions the stored facts of all clients give, computed on shares",
    in_brief="stored facts were joined on shares: the asker read the answers, the server nothing",
    learned={
        Subject.FACTS: Learned(
            asker="those that its answers are: that somebody tells of them, and neither how many nor who"
        ),
        Subject.QUERIES: Learned(
            "who asks, when, and how many atoms", "the atoms, and how they are joined", "its own"
        ),
        Subject.ANSWERS: Learned(asker="its own: all positions that the stored facts give"),
        Subject.PARTICIPATION: Learned("who took part", "the same", "the same"),
    },
    against="the server alone, or all clients but one, semi-honest; not the server together with a client",
    with_a_client="everything: the server dealt the masks, and the client sees what was opened under them",
    assumes="what a secret selection assumes",
    not_covered="the server together with any client; an active server, or a client that opens false shares; dropouts, "
    "which end the question; false facts; what the answers themselves give away: a fact that one client alone can have "
    "is that client's, and several answers tell about the atoms that they have in common",
    fields={
        **ASKING,
        messages.DealtSeed: TOP_K.fields[messages.DealtSeed],
        messages.SelectionStep: {
            **TOP_K.fields[messages.SelectionStep],
            "deal": Field("public", "how much randomness an exchange takes: the size of the sets that it joins"),
        },
        messages.SelectionRelay: TOP_K.fields[messages.SelectionRelay],
    },
)
