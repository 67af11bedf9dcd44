"""Disclosures of the score backends that add up in clear or under masks, and of asking."""

from typing import Final

from protocols.foundation.disclosure import Disclosure, Field, Fields, Learned, Subject
from protocols.scores import messages, plain

PURPOSE: Final = Field("public", "which batch a message belongs to")
TOTAL_OF: Final = Field("public", "whose scores are in a total")
SERVED: Final[Fields] = {messages.BatchServed: {"purpose": PURPOSE}}
ASKING: Final[Fields] = {
    messages.AskScores: {
        "purpose": PURPOSE,
        "sealed": Field("ciphertext", "queries and secrets of a batch, encrypted for each scorer"),
    },
    messages.ScoresAsked: {
        "purpose": PURPOSE,
        "sealed": Field("ciphertext", "queries and secrets of a batch on their way to a scorer"),
    },
    **SERVED,
}
"""The messages with which every backend but the plain one begins and ends a batch."""
SEALED_QUERIES: Final = Learned("who asks, when, how many, and how long they are", "the queries", "its own")
TOOK_PART: Final = Learned("who took part and who dropped out", "which of the other scorers dropped out", "the same")

COUNTED: Final = (
    "with --min-holders N above 1, of every position, its own or another, how many other scorers hold it, up to N - 1; "
    "where askers change or scorers drop out, from the difference also who does"
)
"""What scorers learn from the count of holders (`protocols.holders.secret`)."""
WITH_A_CLIENT: Final = (
    "with the asker what the asker reads; with a scorer the queries, and what the count of holders tells that scorer"
)

MASKED_SCORES: Final = Disclosure(
    title="masked scores",
    place="scores/masked",
    choice="the server adds scores that only the asker can read the sum of; the asker reads all means",
    in_brief="scores were added up under masks: the asker read means, the server nothing",
    learned={
        Subject.SCORES: Learned(asker="the sum over the scorers of every position that enough of them hold"),
        Subject.HOLDERS: Learned(
            client=COUNTED,
            asker="of every position, how many scorers gave a score",
        ),
        Subject.QUERIES: SEALED_QUERIES,
        Subject.ANSWERS: Learned(asker="its own"),
        Subject.PARTICIPATION: TOOK_PART,
    },
    against="the server with a declared fraction of the clients, semi-honest, or active with pinned identities",
    with_a_client=WITH_A_CLIENT,
    assumes="what masked sums assume",
    not_covered="wrong scores; what means give away: as many opened means as a row has entries give the row; an active "
    "server with a scorer on its side can have the asker read a false total; denial of service",
    fields={
        **ASKING,
        messages.ScoresTotal: {
            "purpose": PURPOSE,
            "contributors": TOTAL_OF,
            "vector": Field("masked", "a sum of scores under masks of the asker"),
        },
    },
)
PLAIN_SCORES: Final = Disclosure(
    title="plain scores",
    place="scores/plain",
    choice="the server reads every client's scores",
    in_brief="scores were added up in clear: the server read every client's",
    learned={
        Subject.SCORES: Learned("every client's", asker="the sum over the scorers of every position"),
        Subject.HOLDERS: Learned("which positions each scorer holds", asker="how many scorers hold each position"),
        Subject.QUERIES: Learned("all of them", "the queries", "its own"),
        Subject.ANSWERS: Learned("all but for the asker's own scores", asker="its own"),
        Subject.PARTICIPATION: Learned("who took part"),
    },
    against="nobody: plain scores protect nothing, they are there to be measured against",
    with_a_client="nothing: the server reads all by itself",
    assumes="authentic channels",
    not_covered="any privacy",
    fields={
        **SERVED,
        plain.ClearQueries: {"purpose": PURPOSE, "queries": Field("clear", "a client's queries")},
        plain.ClearScores: {"purpose": PURPOSE, "vector": Field("clear", "a single client's scores")},
        messages.ScoresTotal: {
            "purpose": PURPOSE,
            "contributors": TOTAL_OF,
            "vector": Field("aggregate", "sums of scores and counts of holders"),
        },
    },
)
UNLIMITED_MEANS: Final = Disclosure(
    title="means without a limit",
    place="scores/budget",
    choice="clients help to open as many means as are asked for, which is enough to compute the trained table",
    in_brief="clients set no limit to opened means (--allow-extraction): the asker can compute the trained table",
    learned={
        Subject.SCORES: Learned(
            asker="from as many queries as a row has numbers, the rows of all positions that enough scorers hold"
        )
    },
    against="nobody: what a budget of opened means would keep is given up",
    with_a_client="with the asker the same",
    assumes="nothing",
    not_covered="the trained table",
)
