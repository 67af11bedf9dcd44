"""Disclosures of the encrypted scores."""

from typing import Final

from protocols.foundation.disclosure import Disclosure, Field, Fields, Learned, Subject
from protocols.foundation.wire import Message
from protocols.scores.disclosure import ASKING, COUNTED, PURPOSE, SEALED_QUERIES, TOOK_PART, TOTAL_OF, WITH_A_CLIENT
from protocols.scores.encrypted import messages

_LEARNED: Final = {
    Subject.SCORES: Learned(asker="the sum over the scorers of every position that enough of them hold"),
    Subject.HOLDERS: Learned(
        client=COUNTED,
        asker="of every position, how many scorers gave a score",
    ),
    Subject.QUERIES: SEALED_QUERIES,
    Subject.ANSWERS: Learned(asker="its own"),
    Subject.PARTICIPATION: TOOK_PART,
}
_AGAINST: Final = "the server with a declared fraction of the clients, the asker among them or not; semi-honest"
_NOT_COVERED: Final = (
    "an active server: it can change a total, and nobody notices; wrong scores; what means give away: as many opened "
    "means as a row has entries give the row; time that big-number arithmetic takes; denial of service"
)


def _fields(key: type[Message], scores: type[Message], total: type[Message]) -> Fields:
    return {
        **ASKING,
        key: {"purpose": PURPOSE, "key": Field("public", "the asker's public key")},
        scores: {
            "purpose": PURPOSE,
            "ciphertexts": Field("ciphertext", "masked scores, encrypted for the asker"),
            "peers": Field("public", "a fingerprint of those with whom a scorer shares masks"),
        },
        total: {
            "purpose": PURPOSE,
            "contributors": TOTAL_OF,
            "ciphertexts": Field("ciphertext", "a sum of scores, encrypted for the asker"),
        },
    }


PAILLIER_SCORES: Final = Disclosure(
    title="Paillier scores",
    place="scores/encrypted/paillier",
    choice="the server adds scores under the asker's Paillier key; the asker reads all means (extra paillier)",
    in_brief="scores were added up under a Paillier key of the asker: the asker read means, the server nothing",
    learned=_LEARNED,
    against=_AGAINST,
    with_a_client=WITH_A_CLIENT,
    assumes="what masked sums assume; decisional composite residuosity, also with exponents of half length",
    not_covered=_NOT_COVERED,
    fields=_fields(messages.PaillierKey, messages.PaillierScores, messages.PaillierTotal),
)
BFV_SCORES: Final = Disclosure(
    title="BFV scores",
    place="scores/encrypted/bfv",
    choice="the server adds scores under the asker's BFV key; the asker reads all means (extra bfv)",
    in_brief="scores were added up under a BFV key of the asker: the asker read means, the server nothing",
    learned=_LEARNED,
    against=_AGAINST,
    with_a_client=WITH_A_CLIENT,
    assumes="what masked sums assume; ring learning with errors at degree 4096 and a modulus of 109 bits",
    not_covered=_NOT_COVERED,
    fields=_fields(messages.BfvKey, messages.BfvScores, messages.BfvTotal),
)
