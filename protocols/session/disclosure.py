"""Disclosures of a session's set-up: the channels between clients, and the key that all of them have."""

from typing import Final

from protocols.foundation.disclosure import Disclosure, Field, Learned, Subject
from protocols.session import group_key, messages

SIGNATURE: Final = Field("public", "a signature; empty where nobody signs")

CHANNELS: Final = Disclosure(
    title="channels between clients",
    place="session/channels",
    choice="",
    in_brief="",
    learned={Subject.PARTICIPATION: Learned("who is there, by their public keys", "the same")},
    against="the server, semi-honest, or active with pinned identities",
    with_a_client="the channels of that client, no others",
    assumes="computational Diffie-Hellman on Curve25519, HKDF-SHA256 as a random oracle; authentic channels to the "
    "server, or against an active one Ed25519 and a key directory compared over another channel",
    not_covered="denial of service",
    fields={
        messages.AdvertiseChannel: {
            "channel_key": Field("public", "a client's public key of the session"),
            "signature": SIGNATURE,
        },
        messages.ChannelDirectory: {
            "channel_keys": Field("public", "all clients' public keys of the session"),
            "signatures": SIGNATURE,
        },
    },
)

GROUP_KEY: Final = Disclosure(
    title="the clients' group key",
    place="session/group_key",
    choice="",
    in_brief="",
    learned={Subject.COMMON_KEY: Learned("which client drew it, and a commitment to it", "the key")},
    against="the server alone, semi-honest or active",
    with_a_client="the key",
    assumes="AES-256-GCM, HKDF-SHA256, SHA-256; the channels between clients",
    not_covered="a client that passes the key on; an active server that has several keys drawn and deals them out: "
    "sums of clients with different keys are noise",
    fields={
        group_key.DrawGroupKey: {},
        group_key.SealedGroupKeys: {
            "commitment": Field("public", "a commitment to the clients' common key"),
            "sealed": Field("ciphertext", "the clients' common key, encrypted for each of them"),
        },
        group_key.SealedGroupKey: {
            "drawn_by": Field("public", "which client has drawn the common key"),
            "commitment": Field("public", "a commitment to the clients' common key"),
            "sealed": Field("ciphertext", "the clients' common key, encrypted for one of them"),
        },
    },
)
