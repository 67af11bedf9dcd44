"""The one place where a word in the configuration becomes a protocol: each secure choice next to its plain twin."""

from collections.abc import Collection

from protocols.conversation import Conversation
from protocols.identifiers import PartyId
from protocols.patience import Patience
from protocols.plain import union as plain_union
from protocols.plain.sums import PlainSumClient, PlainSumServer
from protocols.secagg.openings import Openings
from protocols.secagg.sums import SecAggSumClient, SecAggSumServer
from protocols.secagg.terms import Credentials
from protocols.sums import Silent, SumClient, SumServer
from protocols.transport.deadline import Deadline
from protocols.unions import Positions, Union
from secure_kg.federation.config import RunConfig


def sum_client(
    config: RunConfig, clients: Collection[PartyId], credentials: Credentials | None, openings: Openings
) -> SumClient:
    match config.aggregation:
        case "plain":
            return PlainSumClient()
        case "secagg":
            return SecAggSumClient(clients, config.threat_model, config.min_participants, credentials, openings)


def sum_server(config: RunConfig, clients: Collection[PartyId]) -> SumServer:
    match config.aggregation:
        case "plain":
            return PlainSumServer(config.min_participants)
        case "secagg":
            return SecAggSumServer(len(clients), config.threat_model, config.min_participants)


def align_as_client(
    config: RunConfig, conversation: Conversation, names: Collection[str], deadline: Deadline
) -> Positions:
    match config.alignment:
        case "plain":
            return plain_union.join(conversation, names, deadline)


def align_as_server(
    config: RunConfig, conversation: Conversation, present: Collection[PartyId], patience: Patience, silent: Silent
) -> Union:
    match config.alignment:
        case "plain":
            return plain_union.serve(conversation, present, patience, silent)
