"""Disclosure of masked sums (`protocols.sums.secagg`)."""

from typing import Final

from protocols.foundation.disclosure import WHAT_MEANS_SHOW, WHETHER_BEST, Disclosure, Field, Learned, Subject
from protocols.session.disclosure import SIGNATURE
from protocols.sums.secagg import messages

PURPOSE: Final = Field("public", "which sum a message belongs to")
_STATE: Final = Field("public", "a keyed hash of what a client's input depends on: whether it is the same as before")
_STATE_BEFORE: Final = Field("public", f"empty; in runs of format 3 and earlier {_STATE.meaning}")

MASKED_SUMS: Final = Disclosure(
    title="masked sums",
    place="sums/secagg",
    choice="the server adds pairwise-masked vectors and reads only the sum",
    in_brief="aggregation was secure: the server read sums only, {trust}; {lost}",
    learned={
        Subject.ROWS: Learned("their sums only, over the survivors", "the mean rows"),
        Subject.HOLDERS: Learned("of rows that were added up, how many contributed", WHAT_MEANS_SHOW),
        Subject.METRICS: Learned("their sums only, over the survivors", WHETHER_BEST),
        Subject.PARTICIPATION: Learned("who took part and who dropped out", "which of its neighbours dropped out"),
    },
    against="the server with a declared fraction of the clients, semi-honest, or active with pinned identities",
    with_a_client="nothing, up to the declared fraction of the clients",
    assumes="computational Diffie-Hellman on Curve25519, HKDF-SHA256 as a random oracle, AES-256 as a pseudorandom "
    "permutation, AES-GCM as authenticated encryption; against a semi-honest server authentic channels, against an "
    "active one Ed25519 and a key directory compared over another channel",
    not_covered="wrong inputs; what the sums themselves give away, in particular an entry to which one client alone "
    "contributes, and sums over nearly equal sets of clients; denial of service; more corruption than declared; an "
    "active server that gives all honest clients the same wrong thing, e.g. a poisoned model",
    changing_clients="sums over different clients tell the server in the end who holds which row (secret sums do not)",
    fields={
        messages.AdvertiseKeys: {
            "purpose": PURPOSE,
            "mask_key": Field("public", "a client's public mask key of one sum"),
            "state": _STATE_BEFORE,
            "signature": SIGNATURE,
        },
        messages.KeyDirectory: {
            "purpose": PURPOSE,
            "mask_keys": Field("public", "the neighbours' public mask keys"),
            "states": _STATE_BEFORE,
            "signatures": SIGNATURE,
        },
        messages.ShareKeys: {
            "purpose": PURPOSE,
            "sealed": Field("ciphertext", "shares of a client's mask secrets, each encrypted for one other client"),
            "seed_commitment": Field("public", "a commitment to the seed of a client's self mask"),
            "state": _STATE,
            "signature": SIGNATURE,
        },
        messages.EncryptedShares: {
            "purpose": PURPOSE,
            "sealed": Field("ciphertext", "shares of mask secrets on their way to a client"),
            "states": _STATE,
            "signatures": SIGNATURE,
        },
        messages.MaskedInput: {
            "purpose": PURPOSE,
            "vector": Field("masked", "a client's vector under its masks"),
            "peers": Field("public", "a fingerprint of those with whom a client shares masks"),
        },
        messages.Survivors: {"purpose": PURPOSE, "dropped": Field("public", "who has sent no input")},
        messages.UnmaskShares: {
            "purpose": PURPOSE,
            "mask_key_shares": Field("masked", "shares of the mask keys of clients that dropped out"),
            "seed_shares": Field("masked", "shares of the survivors' self-mask seeds"),
        },
    },
    signed_fields={
        messages.SurvivorSignature: {"purpose": PURPOSE, "signature": SIGNATURE},
        messages.SignedSurvivors: {"purpose": PURPOSE, "signatures": SIGNATURE},
    },
)
