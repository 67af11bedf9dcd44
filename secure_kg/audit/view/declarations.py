"""What each field of each message is, and which messages a run's settings allow the server to see.

This is the declaration an audit compares a transcript with. A field belongs to one of five classes:

public      settings, public keys, signatures, who is there: of no client's data
ciphertext  encrypted for a client; the server carries it
masked      uniform to whoever lacks the masks, or a share of a secret that opens nothing by itself
aggregate   a sum, a mean or a size over several clients, which the protocol means the server to have
clear       a single client's own data

Whatever is not listed here is a finding: a message type that somebody adds must be declared before an audit passes.
"""

from dataclasses import dataclass
from typing import Final, Literal

from protocols.alignment import plain as plain_union
from protocols.alignment.psu import attempts
from protocols.foundation import wire
from protocols.session import conversation as talk
from protocols.session import group_key
from protocols.session import messages as setup
from protocols.sums import plain as plain_sums
from protocols.sums import totals
from protocols.sums.secagg import messages as secagg
from secure_kg.federation.plan import messages as federation
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.federation.plan.strategies import STRATEGIES

FieldClass = Literal["public", "ciphertext", "masked", "aggregate", "clear"]
CLASSES: Final[tuple[FieldClass, ...]] = ("public", "ciphertext", "masked", "aggregate", "clear")


@dataclass(frozen=True, slots=True)
class Field:
    """`meaning` completes the sentence "the server saw ..."."""

    field_class: FieldClass
    meaning: str


_PURPOSE: Final = Field("public", "which sum a message belongs to")
_SIGNATURE: Final = Field("public", "a signature; empty where nobody signs")
_STATE: Final = Field("public", "a keyed hash of what a client's input depends on: whether it is the same as before")

FIELDS: Final[dict[type[wire.Message], dict[str, Field]]] = {
    federation.Hello: {"digest": Field("public", "a fingerprint of the client's settings")},
    federation.Welcome: {
        "session": Field("public", "the session's number"),
        "digest": Field("public", "a fingerprint of its own settings"),
        "rounds_done": Field("public", "how far the run has come"),
        "saved_by": Field("public", "who has written the last checkpoint"),
        "aligned": Field("public", "a fingerprint of the alignment"),
        "run_name": Field("public", "the name of the run's folder"),
    },
    federation.Ready: {},
    federation.Aligned: {},
    federation.TrainRound: {},
    federation.Evaluate: {},
    federation.SharedRows: {
        "rows": Field("aggregate", "the mean of each shared row over its holders"),
        "averaged": Field("aggregate", "in which round a row was last averaged"),
    },
    federation.LendTable: {"to": Field("public", "which client has missed sums")},
    federation.LentTable: {
        "by": Field("public", "which client lends another one its table"),
        "sealed": Field("ciphertext", "the shared rows, encrypted for one client"),
    },
    federation.Judged: {
        "improved": Field("aggregate", "whether the federation's result was the best so far"),
        "evaluations": Field("public", "how many evaluations a client has seen"),
    },
    federation.Verdict: {"improved": Field("aggregate", "whether the federation's result was the best so far")},
    federation.SaveCheckpoint: {},
    federation.Saved: {},
    federation.Finish: {
        "best_round": Field("aggregate", "which evaluation was the best"),
        "wanted": Field("public", "whether a client's results go into the sum"),
    },
    federation.Done: {},
    federation.Goodbye: {"complete": Field("public", "whether everybody is there at the end")},
    talk.Failed: {"reason": Field("public", "why a client gave up, in words")},
    talk.Abort: {"reason": Field("public", "why the job ended, in words")},
    talk.LeaveOut: {},
    talk.Back: {},
    talk.Abandon: {"purpose": _PURPOSE, "reason": Field("public", "why a sum was given up, in words")},
    setup.AdvertiseChannel: {
        "channel_key": Field("public", "a client's public key of the session"),
        "signature": _SIGNATURE,
    },
    setup.ChannelDirectory: {
        "channel_keys": Field("public", "all clients' public keys of the session"),
        "signatures": _SIGNATURE,
    },
    secagg.AdvertiseKeys: {
        "purpose": _PURPOSE,
        "mask_key": Field("public", "a client's public mask key of one sum"),
        "state": _STATE,
        "signature": _SIGNATURE,
    },
    secagg.KeyDirectory: {
        "purpose": _PURPOSE,
        "mask_keys": Field("public", "the neighbours' public mask keys"),
        "states": _STATE,
        "signatures": _SIGNATURE,
    },
    secagg.ShareKeys: {
        "purpose": _PURPOSE,
        "sealed": Field("ciphertext", "shares of a client's mask secrets, each encrypted for one other client"),
        "seed_commitment": Field("public", "a commitment to the seed of a client's self mask"),
    },
    secagg.EncryptedShares: {
        "purpose": _PURPOSE,
        "sealed": Field("ciphertext", "shares of mask secrets on their way to a client"),
    },
    secagg.MaskedInput: {
        "purpose": _PURPOSE,
        "vector": Field("masked", "a client's vector under its masks"),
        "peers": Field("public", "a fingerprint of those with whom a client shares masks"),
    },
    secagg.Survivors: {"purpose": _PURPOSE, "dropped": Field("public", "who has sent no input")},
    secagg.SurvivorSignature: {"purpose": _PURPOSE, "signature": _SIGNATURE},
    secagg.SignedSurvivors: {"purpose": _PURPOSE, "signatures": _SIGNATURE},
    secagg.UnmaskShares: {
        "purpose": _PURPOSE,
        "mask_key_shares": Field("masked", "shares of the mask keys of clients that dropped out"),
        "seed_shares": Field("masked", "shares of the survivors' self-mask seeds"),
    },
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
    attempts.UnionPlaces: {
        "purpose": _PURPOSE,
        "size": Field("aggregate", "how many names there are"),
        "places": Field("aggregate", "numbers by which clients find the positions of their own names"),
    },
    totals.SumTotal: {
        "purpose": _PURPOSE,
        "of_round": Field("public", "the round of a sum"),
        "contributors": Field("public", "whose vectors are in a sum"),
        "vector": Field("masked", "a sum under masks that only clients can remove"),
    },
    plain_sums.ClearInput: {"purpose": _PURPOSE, "vector": Field("clear", "a single client's own numbers")},
    plain_union.ClearNames: {"names": Field("clear", "a single client's own names")},
    plain_union.ClearUnion: {"tags": Field("aggregate", "hashes of all names, which it has read before")},
}

_COUNTS_IN_CLEAR: Final = Field("aggregate", "how many clients hold each row")
_GREETING: Final = (
    federation.Hello,
    federation.Welcome,
    federation.Ready,
    federation.TrainRound,
    federation.Evaluate,
    federation.Verdict,
    federation.SaveCheckpoint,
    federation.Saved,
    federation.Finish,
    federation.Done,
    federation.Goodbye,
    talk.Failed,
    talk.Abort,
    talk.LeaveOut,
    talk.Back,
    talk.Abandon,
)
_SESSION: Final = (
    setup.AdvertiseChannel,
    setup.ChannelDirectory,
    group_key.DrawGroupKey,
    group_key.SealedGroupKeys,
    group_key.SealedGroupKey,
    secagg.AdvertiseKeys,
    secagg.KeyDirectory,
    secagg.ShareKeys,
    secagg.EncryptedShares,
    secagg.MaskedInput,
    secagg.Survivors,
    secagg.UnmaskShares,
)


def field_of(message: type[wire.Message], name: str, config: RunConfig) -> Field | None:
    """None if nothing is declared of it."""
    if message is totals.SumTotal and name == "vector" and config.aggregation == "plain":
        return _COUNTS_IN_CLEAR
    return FIELDS.get(message, {}).get(name)


def allowed_kinds(config: RunConfig) -> frozenset[type[wire.Message]]:
    """The message types that may pass the server under these settings."""
    shared = STRATEGIES[config.strategy].shared is not None
    kinds: set[type[wire.Message]] = set(_GREETING)
    if config.has_session:
        kinds |= set(_SESSION)
    if config.adversary == "active":
        kinds |= {secagg.SurvivorSignature, secagg.SignedSurvivors}
    if config.aggregation == "plain":
        kinds |= {plain_sums.ClearInput}
    if config.aggregation == "secret":
        kinds |= {totals.SumTotal, federation.Judged}
    if shared:
        kinds |= {federation.Aligned}
        if config.least_holders > 1:
            kinds |= {totals.SumTotal}
        if config.aggregation == "secret":
            kinds |= {federation.LendTable, federation.LentTable}
        else:
            kinds |= {federation.SharedRows}
        if config.alignment == "psu":
            kinds |= {attempts.UnionPlaces, totals.SumTotal}  # a sum for clients to read: their vote on the places
        else:
            kinds |= {plain_union.ClearNames, plain_union.ClearUnion}
    return frozenset(kinds)


def may_learn(config: RunConfig) -> list[str]:
    """In words: what the protocols of these settings mean the server to learn, and nothing else."""
    shared = STRATEGIES[config.strategy].shared
    learns = ["who takes part in which sum, and when each message comes"]
    if shared is not None:
        if config.alignment == "plain":
            learns.append(f"every client's {shared} names (plain alignment hides nothing)")
        elif config.reveal_names:
            learns.append(f"the {shared} names, not who holds them")
        else:
            learns.append(f"how many different {shared} names there are")
        if config.alignment == "psu":
            learns.append("that no client objected to its answer, or that some did, which ends the run")
    match config.aggregation:
        case "plain":
            learns.append("every client's rows, which rows it holds, and its results (plain sums hide nothing)")
        case "secagg":
            if shared is not None:
                learns.append("of each shared row the sum over the contributors, and how many they are")
            learns.append("validation and test results summed over the clients")
        case "secret":
            learns.append("after each evaluation whether it was the best so far")
    return learns
