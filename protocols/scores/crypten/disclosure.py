"""Disclosure of the backend that computes with CrypTen."""

from typing import Final

from protocols.foundation.disclosure import Disclosure, Field, Learned, Subject
from protocols.scores.crypten import messages
from protocols.scores.disclosure import ASKING, COUNTED, PURPOSE, SEALED_QUERIES, TOOK_PART

_PARTICIPANTS: Final = Field("public", "who computes")
_HOST: Final = Field("public", "the address at which a group of processes meets")
_PORT: Final = Field("public", "the port at which a group of processes meets")
_PUBLIC: Final = Field("public", "public keys for streams of randomness that the server shares with a client")

CRYPTEN_SCORES: Final = Disclosure(
    title="scores compared by CrypTen",
    place="scores/crypten",
    choice="clients find the best positions with CrypTen, the server deals randomness; a process per client is needed",
    in_brief="scores were compared by CrypTen: the asker read the best positions, the server nothing",
    learned={
        Subject.SCORES: Learned(asker="nothing but the order of the best positions"),
        Subject.HOLDERS: Learned(
            client=COUNTED,
            asker="of the best positions, that somebody holds them",
        ),
        Subject.QUERIES: SEALED_QUERIES,
        Subject.ANSWERS: Learned("how many were asked for", "how many were asked for", "its own"),
        Subject.PARTICIPATION: TOOK_PART,
    },
    against="the server alone, or all clients but one without the server, semi-honest",
    with_a_client="every client's scores: the server knows all masks, and every client sees what they hide",
    assumes="X25519 (CDH), HKDF-SHA256, AES-256-GCM and AES-256 as a pseudorandom generator; the server cannot read "
    "the traffic between the clients' processes",
    not_covered="active parties; whoever reads the traffic between the clients' processes, which is neither encrypted "
    "nor authenticated, reads all scores together with the server, and can falsify answers; wrong scores; denial of "
    "service",
    fields={
        **ASKING,
        messages.JoinGroup: {
            "purpose": PURPOSE,
            "public": _PUBLIC,
            "sealed": Field("ciphertext", "keys between members of a group, encrypted for each client"),
            "host": _HOST,
            "port": _PORT,
        },
        messages.GroupFormed: {
            "purpose": PURPOSE,
            "participants": _PARTICIPANTS,
            "public": _PUBLIC,
            "sealed": Field("ciphertext", "keys between members of a group on their way to one of them"),
            "host": _HOST,
            "port": _PORT,
        },
        messages.AnswerShares: {
            "purpose": PURPOSE,
            "sealed": Field("ciphertext", "shares of answers, encrypted for the asker"),
        },
        messages.GroupAnswer: {
            "purpose": PURPOSE,
            "participants": _PARTICIPANTS,
            "sealed": Field("ciphertext", "shares of answers on their way to the asker"),
        },
    },
)
