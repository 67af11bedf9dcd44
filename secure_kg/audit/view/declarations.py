"""Declarations: what each field of each message is, and which messages a run's settings let pass the server.

These are the declarations that an audit compares a transcript with. Those of a protocol's messages are part of its
disclosure (`protocols.foundation.disclosure`, which explains the classes); those of the round loop are here.

Whatever is not declared is a finding: a message type that somebody adds must be declared before an audit passes.
"""

from collections.abc import Iterator
from typing import Final

from protocols.foundation import wire
from protocols.foundation.disclosure import NOTHING, Disclosure, Field, Fields
from protocols.registry import AGGREGATIONS, ALIGNMENTS
from protocols.session import conversation as talk
from protocols.session.control import RefuseShares
from protocols.session.disclosure import CHANNELS, GROUP_KEY
from protocols.sums.secagg.disclosure import MASKED_SUMS, PURPOSE
from secure_kg.federation.plan import messages as federation
from secure_kg.federation.plan.disclosed import Disclosed
from secure_kg.federation.plan.run_plan import RunPlan
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.queries.sessions import messages as questions

_OF_A_RUN: Final[Fields] = {
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
    federation.CountHolders: {},
    federation.Evaluate: {},
    federation.SharedRows: {
        "rows": Field("aggregate", "the mean of each shared row over its holders"),
        "averaged": Field("aggregate", "in which round a row was last averaged"),
    },
    federation.SharedBlock: {
        "block": Field("public", "the name of a shared block"),
        "rows": Field("aggregate", "the mean of a shared block over its contributors"),
        "averaged": Field("aggregate", "in which round a block was last averaged"),
    },
    federation.PackedRows: {
        "block": Field("public", "the name of a shared block, or none"),
        "width": Field("public", "how many numbers a shared row has"),
        "fraction_bits": Field("public", "the unit that means are rounded to"),
        "bits": Field("public", "how many bits a mean has"),
        "numbers": Field("aggregate", "the mean of each shared row over its holders"),
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
    talk.Regroup: {"reason": Field("public", "which client has come again, in words")},
    talk.LeaveOut: {},
    talk.Back: {},
    questions.Attend: {},
    questions.AskSession: {
        "answers": Field("public", "whether a member that asks answers others, too"),
        "statement": Field("public", "who asks, when and with which settings"),
        "signature": Field("public", "the asker's signature"),
    },
    questions.BeginSession: {
        "session": Field("public", "the number of a session"),
        "statement": Field("public", "who asks, when and with which settings"),
        "signature": Field("public", "the asker's signature"),
    },
    talk.Abandon: {"purpose": PURPOSE, "reason": Field("public", "why a sum was abandoned, in words")},
    RefuseShares: {
        "purpose": PURPOSE,
        "reason": Field("public", "why a sum was refused, in words"),
        "of": Field("public", "whose shares or signatures a client did not take"),
    },
}
"""Messages of every run, whatever its protocols."""

_GREETING: Final = (
    federation.Hello,
    federation.Welcome,
    federation.Ready,
    federation.TrainRound,
    federation.CountHolders,
    federation.Evaluate,
    federation.Verdict,
    federation.SaveCheckpoint,
    federation.Saved,
    federation.Finish,
    federation.Done,
    federation.Goodbye,
    talk.Failed,
    talk.Abort,
    talk.Regroup,
    talk.LeaveOut,
    talk.Back,
    talk.Abandon,
    RefuseShares,
)
_KEYS: Final = (CHANNELS, GROUP_KEY, MASKED_SUMS)
"""Protocols that have messages wherever clients have keys: the private set union is a masked sum, too."""


def field_of(message: type[wire.Message], name: str, config: RunConfig) -> Field | None:
    """What is declared of a field: by the protocols of these settings, else by any other. None: nothing is."""
    disclosed = Disclosed.of(config)
    # The count first: the total of one in clear is no total that only clients can read.
    used = (*disclosed.of_count, *disclosed.all, disclosed.sums.count.disclosure)
    declaring = (_OF_A_RUN, *_fields_of(*used), *_fields_of(*_every_protocol()))
    return next((fields[message][name] for fields in declaring if name in fields.get(message, {})), None)


def _fields_of(*disclosures: Disclosure) -> list[Fields]:
    return [fields for one in disclosures for fields in (one.fields, one.signed_fields)]


def _every_protocol() -> Iterator[Disclosure]:
    yield from _KEYS
    for sums in AGGREGATIONS.values():
        yield from (sums.disclosure, sums.count.disclosure)
    for alignment in ALIGNMENTS.values():
        yield alignment.disclosure


def allowed_kinds(config: RunConfig) -> frozenset[type[wire.Message]]:
    """The message types that may pass the server under these settings."""
    disclosed = Disclosed.of(config)
    kinds: set[type[wire.Message]] = set(_GREETING)
    used = (*disclosed.all, *(_KEYS if disclosed.has_keys else ()))
    for disclosure in used:
        kinds |= set(disclosure.fields)
        if config.adversary == "active":
            kinds |= set(disclosure.signed_fields)
    if config.sum_protocol.sealed:
        kinds |= {federation.Judged}
    plan = RunPlan(config, config.clients or 1)
    for block in plan.blocks:
        if AGGREGATIONS[block.aggregation].sealed:
            kinds |= {federation.LendTable, federation.LentTable}
        else:
            on_grid = plan.row_layout(block, 1).grid is not None
            shared = federation.SharedRows if block.aligned else federation.SharedBlock
            kinds |= {federation.PackedRows if on_grid else shared}
        if block.aligned:
            kinds |= {federation.Aligned}
    return frozenset(kinds)


def may_learn(config: RunConfig) -> list[str]:
    """In words: what the protocols of these settings mean the server to learn, and nothing else."""
    told = [one for one in Disclosed.of(config).statements() if one.server != NOTHING]
    return ["when each message comes", *(f"{one.heading}: {one.server}" for one in told)]
