"""Disclosure of secret selection (`protocols.scores.topk`)."""

from typing import Final

from protocols.foundation.disclosure import Disclosure, Field, Learned, Subject
from protocols.scores.disclosure import ASKING, COUNTED, PURPOSE, SEALED_QUERIES
from protocols.scores.topk import messages

_STEP: Final = Field("public", "which step of a selection a message belongs to")

_SEED: Final = Field("public", "a seed of the randomness that the server deals, which it drew itself")

TOP_K: Final = Disclosure(
    title="secret selection",
    place="scores/topk",
    choice="clients find the best positions on shares; only those open, to the asker alone",
    in_brief="the best positions were found on shares: the asker read these and nothing else, the server nothing",
    learned={
        Subject.SCORES: Learned(),
        Subject.HOLDERS: Learned(client=COUNTED),
        Subject.QUERIES: SEALED_QUERIES,
        Subject.ANSWERS: Learned(asker="its own: the best positions in order, and that somebody scores them so high"),
        Subject.PARTICIPATION: Learned("who took part, and how many comparisons each step has", "the same", "the same"),
    },
    against="the server alone, or all clients but one, semi-honest; not the server together with a client",
    with_a_client="everything: the server dealt the masks, and the client sees what was opened under them",
    assumes="AES-256 as a pseudorandom generator, AES-GCM as authenticated encryption, HKDF-SHA256; between each "
    "client and the server a link that other clients cannot read",
    not_covered="the server together with any client; an active server; dropouts, which end a batch; wrong scores; "
    "what the answers themselves give away: no row exactly, but many answers give an estimate of the trained table",
    fields={
        **ASKING,
        messages.DealtSeed: {
            "purpose": PURPOSE,
            "seed": _SEED,
        },
        messages.SelectionStep: {
            "purpose": PURPOSE,
            "step": _STEP,
            "deal": Field("public", "how much randomness a step takes, and so how many comparisons it has"),
            "to_all": Field("ciphertext", "shares that are opened to the clients"),
            "to_one": Field("ciphertext", "shares for one client"),
        },
        messages.SelectionRelay: {
            "purpose": PURPOSE,
            "step": _STEP,
            "to_all": Field("ciphertext", "shares that are opened to the clients, on their way"),
            "to_one": Field("ciphertext", "shares for one client, on their way"),
            "dealt": Field("public", "randomness that the server dealt itself"),
        },
        messages.SharesForAsker: {
            "purpose": PURPOSE,
            "sealed": Field("ciphertext", "shares of the answers on their way to an asker outside"),
        },
    },
)
HIDDEN_QUERIES: Final = Disclosure(
    title="hidden queries",
    place="scores/topk/hidden",
    choice="",
    in_brief="",
    learned={
        Subject.ROWS: Learned(),
        Subject.HOLDERS: Learned(client=COUNTED),
        Subject.QUERIES: Learned("who asks, when, how many, and how many branches they have", "the same", "its own"),
        Subject.ANSWERS: Learned(asker="its own, as in a secret selection"),
        Subject.PARTICIPATION: Learned("who took part", "the same", "the same"),
    },
    against="the server alone, or all clients but one, semi-honest; not the server together with a client",
    with_a_client="everything: with the asker all tables, with a scorer the queries and that scorer's own",
    assumes="what a secret selection assumes",
    not_covered="what a secret selection does not cover; an asker outside; scores that are neither inner products nor "
    "squared distances",
    fields={
        **TOP_K.fields,
        messages.MaskedTable: {
            "purpose": PURPOSE,
            "owner": Field("public", "whose table it is"),
            "sealed": Field("ciphertext", "a client's rows under a mask, encrypted for the asker"),
        },
        messages.DealtProduct: {
            "purpose": PURPOSE,
            "product": Field("public", "randomness that the server dealt itself"),
        },
    },
)
"""Beside `TOP_K`, where queries are hidden. Not a choice of its own."""
