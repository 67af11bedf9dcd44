"""Disclosures of the counts of holders: the secret one and its plain twin."""

from typing import Final

from protocols.foundation.disclosure import Disclosure, Field, Learned, Subject
from protocols.sums.plain import PLAIN_INPUT
from protocols.sums.secret.disclosure import SEALED_TOTAL
from protocols.sums.totals import SumTotal

SECRET_COUNT: Final = Disclosure(
    title="the secret count of holders",
    place="holders/secret",
    choice="",
    in_brief="",
    learned={
        Subject.RARE_ROWS: Learned(),
        Subject.HOLDERS: Learned(
            client="of every row, its own or another by position, how many others who take part hold it, up to {others}"
        ),
        Subject.PARTICIPATION: Learned(
            "who took part and who dropped out", "which of its neighbours dropped out; who contributed"
        ),
    },
    against="the server alone, semi-honest or active; semi-honest clients, one or several, with a semi-honest server "
    "or without",
    with_a_client="the factors of the check: an active server then makes holders believe what it likes",
    assumes="what secret sums assume",
    not_covered="clients that lie about what they hold: one can pose as any number of holders; what counts over "
    "different sets of clients tell; a client that takes part in the count and then stays away, which costs the sum of "
    "that round",
    fields=SEALED_TOTAL,
)

PLAIN_COUNT: Final = Disclosure(
    title="the plain count of holders",
    place="holders/plain",
    choice="",
    in_brief="",
    learned={
        Subject.RARE_ROWS: Learned(),
        Subject.HOLDERS: Learned("which rows each client holds, by position", "how many hold each row, by position"),
        Subject.PARTICIPATION: Learned("who took part", "who contributed"),
    },
    against="nobody",
    with_a_client="nothing: the server reads all by itself",
    assumes="authentic channels",
    not_covered="any privacy towards the server; a server that names other counts",
    fields={
        **PLAIN_INPUT,
        SumTotal: {
            **SEALED_TOTAL[SumTotal],
            "vector": Field("aggregate", "how many clients hold each row"),
        },
    },
)
