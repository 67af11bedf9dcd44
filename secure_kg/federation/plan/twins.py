"""Protocols of a run: the bundles that its configuration names (`protocols.registry`), with the keys of its session."""

from collections.abc import Collection
from dataclasses import dataclass

from protocols.alignment.interface import Positions, Union
from protocols.bundles import AlignmentTerms
from protocols.bundles import Result as Result
from protocols.foundation.deadline import Deadline
from protocols.foundation.identifiers import PartyId
from protocols.holders.interface import HolderClient, HolderServer
from protocols.registry import AGGREGATIONS
from protocols.session import group_key
from protocols.session.conversation import Conversation
from protocols.session.credentials import Credentials
from protocols.session.group_key import GroupKey
from protocols.session.patience import Patience
from protocols.session.turns import Silent
from protocols.sums.interface import SumClient, SumServer
from protocols.sums.secagg.openings import Openings
from protocols.sums.secagg.vectors import VectorClient, VectorServer
from secure_kg.federation.plan.settings import RunConfig


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


def sum_client(aggregation: str, session: ClientSession | None) -> SumClient:
    return AGGREGATIONS[aggregation].client(session)


def sum_server(aggregation: str, session: ServerSession | None, min_participants: int) -> SumServer[Result]:
    return AGGREGATIONS[aggregation].server(session, min_participants)


def holder_client(config: RunConfig, session: ClientSession | None) -> HolderClient:
    return config.sum_protocol.count.client(session)


def holder_server(config: RunConfig, session: ServerSession | None) -> HolderServer:
    return config.sum_protocol.count.server(session, config.min_participants)


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
    return config.alignment_protocol.join(session, conversation, _terms(config, clients), names, state, deadline)


def align_as_server(
    config: RunConfig,
    session: ServerSession | None,
    conversation: Conversation,
    clients: tuple[PartyId, ...],
    present: Collection[PartyId],
    patience: Patience,
    silent: Silent,
) -> Union:
    return config.alignment_protocol.serve(session, conversation, _terms(config, clients), present, patience, silent)


def _terms(config: RunConfig, clients: tuple[PartyId, ...]) -> AlignmentTerms:
    return AlignmentTerms(clients=clients, bound=config.first_union_bound, reveal_names=config.reveal_names)
