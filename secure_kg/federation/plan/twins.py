"""The one place where a word in the configuration becomes a protocol: each secure choice next to its plain twin."""

from collections.abc import Collection
from typing import TypeAlias

from protocols.alignment import plain as plain_union
from protocols.alignment.interface import Positions, Union
from protocols.alignment.psu import names as union_names
from protocols.alignment.psu import union as private_union
from protocols.alignment.psu.attempts import UnionTerms
from protocols.foundation.identifiers import PartyId
from protocols.holders.interface import HolderClient, HolderServer
from protocols.holders.plain import PlainHolderClient, PlainHolderServer
from protocols.holders.secret import SecretHolderClient, SecretHolderServer
from protocols.session.client_session import ClientSession
from protocols.session.credentials import Credentials
from protocols.session.server_session import ServerSession
from protocols.sums.interface import Collected, SumClient, SumServer
from protocols.sums.plain import PlainSumClient, PlainSumServer
from protocols.sums.secagg.keys import ClientKeys, ServerKeys
from protocols.sums.secagg.openings import Openings
from protocols.sums.secagg.sums import SecAggSumClient, SecAggSumServer
from protocols.sums.secagg.vectors import VectorClient, VectorServer
from protocols.sums.secret.aggregation import SecretSumClient, SecretSumServer
from protocols.sums.totals import SumTotal
from secure_kg.federation.plan.settings import RunConfig

Result: TypeAlias = Collected | SumTotal
"""What the server gets of a sum: the numbers, or something for the clients to read."""


def client_keys(
    config: RunConfig,
    clients: Collection[PartyId],
    credentials: Credentials | None,
    openings: Openings,
    session: ClientSession,
) -> ClientKeys:
    """Agree on the keys of the run with the other clients."""
    vectors = VectorClient(clients, config.threat_model, config.min_participants, credentials, openings)
    return ClientKeys.agree(session, vectors)


def server_keys(config: RunConfig, clients: Collection[PartyId], session: ServerSession) -> ServerKeys:
    """The server's side of the same."""
    return ServerKeys.agree(session, VectorServer(len(clients), config.threat_model, config.min_participants))


def reads_sums(aggregation: str) -> bool:
    """Whether the server reads the sums."""
    return aggregation != "secret"


def is_masked(aggregation: str) -> bool:
    """Whether sums are masked, and so need enough participants."""
    return aggregation != "plain"


def sum_client(aggregation: str, keys: ClientKeys | None) -> SumClient:
    match aggregation, keys:
        case "secagg", ClientKeys():
            return SecAggSumClient(keys.vectors)
        case "secret", ClientKeys():
            return SecretSumClient(keys.vectors, keys.key)
    return PlainSumClient()


def sum_server(aggregation: str, keys: ServerKeys | None, min_participants: int) -> SumServer[Result]:
    match aggregation, keys:
        case "secagg", ServerKeys():
            return SecAggSumServer(keys.vectors)
        case "secret", ServerKeys():
            return SecretSumServer(keys.vectors)
    return PlainSumServer(min_participants)


def holder_client(config: RunConfig, keys: ClientKeys | None) -> HolderClient:
    if config.aggregation == "plain" or keys is None:
        return PlainHolderClient()
    return SecretHolderClient(keys.vectors, keys.key)


def holder_server(config: RunConfig, keys: ServerKeys | None) -> HolderServer:
    if config.aggregation == "plain" or keys is None:
        return PlainHolderServer(config.min_participants)
    return SecretHolderServer(keys.vectors)


def align_as_client(
    config: RunConfig,
    session: ClientSession,
    keys: ClientKeys | None,
    clients: tuple[PartyId, ...],
    names: Collection[str],
    state: bytes,
) -> Positions:
    """`state`: this client's commitment to its names."""
    if config.alignment == "plain" or keys is None:
        return plain_union.join(session, names)
    terms = UnionTerms(clients, config.first_union_bound)
    objection = union_names.objection(names) if config.reveal_names else ""
    return private_union.join(session, keys, terms, names, objection, state)


def align_as_server(
    config: RunConfig, session: ServerSession, keys: ServerKeys | None, clients: tuple[PartyId, ...]
) -> Union:
    if config.alignment == "plain" or keys is None:
        return plain_union.serve(session)
    return private_union.serve(session, keys, UnionTerms(clients, config.first_union_bound))
