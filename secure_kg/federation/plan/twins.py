"""The one place where a word in the configuration becomes a protocol: each secure choice next to its plain twin."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import TypeAlias

from protocols.alignment import plain as plain_union
from protocols.alignment.interface import Positions, Union
from protocols.alignment.psu import names as union_names
from protocols.alignment.psu import union as private_union
from protocols.foundation.deadline import Deadline
from protocols.foundation.identifiers import PartyId
from protocols.holders.interface import HolderClient, HolderServer
from protocols.holders.plain import PlainHolderClient, PlainHolderServer
from protocols.holders.secret import SecretHolderClient, SecretHolderServer
from protocols.session import group_key
from protocols.session.conversation import Conversation
from protocols.session.credentials import Credentials
from protocols.session.group_key import GroupKey
from protocols.session.patience import Patience
from protocols.session.turns import Silent
from protocols.sums.interface import Collected, SumClient, SumServer
from protocols.sums.plain import PlainSumClient, PlainSumServer
from protocols.sums.secagg.openings import Openings
from protocols.sums.secagg.sums import SecAggSumClient, SecAggSumServer
from protocols.sums.secagg.vectors import VectorClient, VectorServer
from protocols.sums.secret.aggregation import SecretSumClient, SecretSumServer
from protocols.sums.totals import SumTotal
from secure_kg.federation.plan.settings import RunConfig

Result: TypeAlias = Collected | SumTotal
"""What the server gets of a sum: the numbers, or something for the clients to read."""


@dataclass(frozen=True, slots=True)
class ClientSession:
    """Channels to the other clients, and the key that all of them have."""

    vectors: VectorClient
    key: GroupKey

    @classmethod
    def open(
        cls,
        config: RunConfig,
        clients: Collection[PartyId],
        credentials: Credentials | None,
        openings: Openings,
        conversation: Conversation,
        deadline: Deadline,
    ) -> "ClientSession":
        vectors = VectorClient(clients, config.threat_model, config.min_participants, credentials, openings)
        vectors.setup(conversation, deadline)
        return cls(vectors, group_key.join(conversation, vectors.session, deadline))


@dataclass(frozen=True, slots=True)
class ServerSession:
    """The server's side of the same."""

    vectors: VectorServer
    commitment: bytes

    @classmethod
    def open(
        cls,
        config: RunConfig,
        clients: Collection[PartyId],
        conversation: Conversation,
        present: Collection[PartyId],
        patience: Patience,
        silent: Silent,
    ) -> "ServerSession":
        vectors = VectorServer(len(clients), config.threat_model, config.min_participants)
        vectors.setup(conversation, present, patience, silent)
        return cls(vectors, group_key.serve(conversation, present, patience, silent))


def reads_sums(aggregation: str) -> bool:
    """Whether the server reads the sums."""
    return aggregation != "secret"


def is_masked(aggregation: str) -> bool:
    """Whether sums are masked, and so need enough participants."""
    return aggregation != "plain"


def sum_client(aggregation: str, session: ClientSession | None) -> SumClient:
    match aggregation, session:
        case "secagg", ClientSession():
            return SecAggSumClient(session.vectors)
        case "secret", ClientSession():
            return SecretSumClient(session.vectors, session.key)
    return PlainSumClient()


def sum_server(aggregation: str, session: ServerSession | None, min_participants: int) -> SumServer[Result]:
    match aggregation, session:
        case "secagg", ServerSession():
            return SecAggSumServer(session.vectors)
        case "secret", ServerSession():
            return SecretSumServer(session.vectors)
    return PlainSumServer(min_participants)


def holder_client(config: RunConfig, session: ClientSession | None) -> HolderClient:
    if config.aggregation == "plain" or session is None:
        return PlainHolderClient()
    return SecretHolderClient(session.vectors, session.key)


def holder_server(config: RunConfig, session: ServerSession | None) -> HolderServer:
    if config.aggregation == "plain" or session is None:
        return PlainHolderServer(config.min_participants)
    return SecretHolderServer(session.vectors)


def align_as_client(
    config: RunConfig,
    session: ClientSession | None,
    conversation: Conversation,
    names: Collection[str],
    clients: tuple[PartyId, ...],
    state: bytes,
    deadline: Deadline,
) -> Positions:
    """`state`: this client's commitment to its names."""
    if config.alignment == "plain" or session is None:
        return plain_union.join(conversation, names, deadline)
    bound, objection = config.first_union_bound, union_names.objection(names) if config.reveal_names else ""
    return private_union.join(
        conversation, session.vectors, session.key, names, clients, bound, deadline, objection, state
    )


def align_as_server(
    config: RunConfig,
    session: ServerSession | None,
    conversation: Conversation,
    clients: tuple[PartyId, ...],
    present: Collection[PartyId],
    patience: Patience,
    silent: Silent,
) -> Union:
    if config.alignment == "plain" or session is None:
        return plain_union.serve(conversation, present, patience, silent)
    bound, commitment = config.first_union_bound, session.commitment
    return private_union.serve(conversation, session.vectors, commitment, clients, present, bound, patience, silent)
