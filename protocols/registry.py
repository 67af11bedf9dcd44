"""Registry: the one place where a name in the configuration becomes a protocol.

To add a sum or an alignment: write its two classes and its disclosure, and register a bundle of them. Choices on the
command line, documents, reports and audits follow.
"""

from collections.abc import Collection
from typing import Final, TypeVar

from protocols.alignment import plain as plain_union
from protocols.alignment.interface import Positions, Union
from protocols.alignment.plain import PLAIN_UNION
from protocols.alignment.psu import names as union_names
from protocols.alignment.psu import union as private_union
from protocols.alignment.psu.disclosure import PRIVATE_UNION, UNION_NAMES
from protocols.bundles import (
    Aggregation,
    Alignment,
    AlignmentTerms,
    ClientKeys,
    HolderCount,
    Registry,
    ServerKeys,
    ServerReads,
)
from protocols.foundation.deadline import Deadline
from protocols.foundation.identifiers import PartyId
from protocols.holders import secret as secret_count
from protocols.holders.disclosure import PLAIN_COUNT, SECRET_COUNT
from protocols.holders.plain import PlainHolderClient, PlainHolderServer
from protocols.session.conversation import Conversation
from protocols.session.patience import Patience
from protocols.session.turns import Silent
from protocols.sums.plain import PLAIN_SUMS, PlainSumClient, PlainSumServer
from protocols.sums.secagg.disclosure import MASKED_SUMS
from protocols.sums.secagg.sums import SecAggSumClient, SecAggSumServer, vector_task
from protocols.sums.secret.aggregation import SecretSumClient, SecretSumServer, secret_vector_task
from protocols.sums.secret.check import checks_of, possible_entries
from protocols.sums.secret.disclosure import SECRET_SUMS

K = TypeVar("K", ClientKeys, ServerKeys)

AGGREGATIONS: Final = Registry[Aggregation]("aggregation")
ALIGNMENTS: Final = Registry[Alignment]("alignment")


def _needed(keys: K | None) -> K:
    """A protocol that needs keys never runs without: there is no falling back to one that does without."""
    if keys is None:
        raise ValueError("this protocol needs keys between clients, and there are none")
    return keys


def _secret_sum_client(keys: ClientKeys | None) -> SecretSumClient:
    return SecretSumClient(_needed(keys).vectors, _needed(keys).key)


def _secret_holder_client(keys: ClientKeys | None) -> secret_count.SecretHolderClient:
    return secret_count.SecretHolderClient(_needed(keys).vectors, _needed(keys).key)


SECRETLY_COUNTED: Final = HolderCount(
    client=_secret_holder_client,
    server=lambda keys, least: secret_count.SecretHolderServer(_needed(keys).vectors),
    masked_task=secret_count.vector_task,
    disclosure=SECRET_COUNT,
)
PLAINLY_COUNTED: Final = HolderCount(
    client=lambda keys: PlainHolderClient(),
    server=lambda keys, least: PlainHolderServer(least),
    masked_task=None,
    disclosure=PLAIN_COUNT,
)

AGGREGATIONS.register(
    Aggregation(
        name="secagg",
        client=lambda keys: SecAggSumClient(_needed(keys).vectors),
        server=lambda keys, least: SecAggSumServer(_needed(keys).vectors),
        count=SECRETLY_COUNTED,
        server_reads=ServerReads.TOTALS,
        needs_keys=True,
        stands_against_active=True,
        vector_task=vector_task,
        disclosure=MASKED_SUMS,
    )
)
AGGREGATIONS.register(
    Aggregation(
        name="secret",
        client=_secret_sum_client,
        server=lambda keys, least: SecretSumServer(_needed(keys).vectors),
        count=SECRETLY_COUNTED,
        server_reads=ServerReads.NOTHING,
        needs_keys=True,
        stands_against_active=True,
        vector_task=secret_vector_task,
        extra_entries=checks_of,
        possible_entries=possible_entries,
        disclosure=SECRET_SUMS,
    )
)
AGGREGATIONS.register(
    Aggregation(
        name="plain",
        client=lambda keys: PlainSumClient(),
        server=lambda keys, least: PlainSumServer(least),
        count=PLAINLY_COUNTED,
        server_reads=ServerReads.CONTRIBUTIONS,
        needs_keys=False,
        stands_against_active=False,
        vector_task=vector_task,
        disclosure=PLAIN_SUMS,
    )
)


def _join_privately(
    keys: ClientKeys | None,
    conversation: Conversation,
    terms: AlignmentTerms,
    names: Collection[str],
    state: bytes,
    deadline: Deadline,
) -> Positions:
    own, objection = _needed(keys), union_names.objection(names) if terms.reveal_names else ""
    return private_union.join(
        conversation, own.vectors, own.key, names, terms.clients, terms.bound, deadline, objection, state
    )


def _serve_privately(
    keys: ServerKeys | None,
    conversation: Conversation,
    terms: AlignmentTerms,
    present: Collection[PartyId],
    patience: Patience,
    silent: Silent,
) -> Union:
    own = _needed(keys)
    return private_union.serve(
        conversation, own.vectors, own.commitment, terms.clients, present, terms.bound, patience, silent
    )


ALIGNMENTS.register(
    Alignment(
        name="psu",
        join=_join_privately,
        serve=_serve_privately,
        server_reads_names=False,
        needs_keys=True,
        disclosure=PRIVATE_UNION,
        revealing=UNION_NAMES,
    )
)
ALIGNMENTS.register(
    Alignment(
        name="plain",
        join=lambda keys, talk, terms, names, state, deadline: plain_union.join(talk, names, deadline),
        serve=lambda keys, talk, terms, present, patience, silent: plain_union.serve(talk, present, patience, silent),
        server_reads_names=True,
        needs_keys=False,
        disclosure=PLAIN_UNION,
    )
)
