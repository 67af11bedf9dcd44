"""Disclosure of secret sums (`protocols.sums.secret.aggregation`)."""

from typing import Final

from protocols.foundation.disclosure import WHETHER_BEST, Disclosure, Field, Fields, Learned, Subject
from protocols.sums.secagg.disclosure import PURPOSE
from protocols.sums.totals import SumTotal

SEALED_TOTAL: Final[Fields] = {
    SumTotal: {
        "purpose": PURPOSE,
        "of_round": Field("public", "the round of a sum"),
        "contributors": Field("public", "whose vectors are in a sum"),
        "vector": Field("masked", "a sum under masks that only clients can remove"),
    }
}
"""A total that the server adds up for clients to read."""

SECRET_SUMS: Final = Disclosure(
    title="secret sums",
    place="sums/secret",
    choice="the server adds up what only clients can read",
    in_brief="aggregation was secret: the server added up what only clients can read, {trust}; {lost}",
    learned={
        Subject.ROWS: Learned(client="their sums, and so the mean rows"),
        Subject.HOLDERS: Learned(client="of rows that were added up, how many contributed"),
        Subject.METRICS: Learned(WHETHER_BEST, "their sums"),
        Subject.PARTICIPATION: Learned(
            "who took part and who dropped out", "which of its neighbours dropped out; who contributed"
        ),
    },
    against="the server alone, semi-honest or active; with a client: the sums open, single vectors do not",
    with_a_client="the sums of the session; no other client's vector, up to the declared fraction of the clients",
    assumes="what masked sums and the group key assume; AES-256 as a pseudorandom generator",
    not_covered="the sums, if one client is on the server's side; changed totals of more than 4096 entries (tables of "
    "rows are mostly longer), unless what clients read is impossible (their refusal then tells an active server so); a "
    "client that tells an active server the factors of the check",
    fields=SEALED_TOTAL,
)
