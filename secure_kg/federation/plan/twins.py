"""Protocols of a run: the bundles that its configuration names (`protocols.registry`), with the keys of its session."""

from collections.abc import Collection

from protocols.alignment.interface import Positions, Union
from protocols.bundles import AlignmentTerms, SaidNext
from protocols.bundles import Result as Result
from protocols.foundation.identifiers import PartyId
from protocols.holders.interface import HolderClient, HolderServer
from protocols.registry import AGGREGATIONS
from protocols.session.client_session import ClientSession
from protocols.session.credentials import Credentials
from protocols.session.server_session import ServerSession
from protocols.sums.interface import SumClient, SumServer
from protocols.sums.secagg.keys import ClientKeys, ServerKeys
from protocols.sums.secagg.openings import Openings
from protocols.sums.secagg.vectors import VectorClient, VectorServer
from secure_kg.federation.plan.settings import RunConfig


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


def sum_client(aggregation: str, keys: ClientKeys | None) -> SumClient:
    return AGGREGATIONS[aggregation].client(keys)


def sum_server(aggregation: str, keys: ServerKeys | None, min_participants: int) -> SumServer[Result]:
    return AGGREGATIONS[aggregation].server(keys, min_participants)


def holder_client(aggregation: str, keys: ClientKeys | None) -> HolderClient:
    return AGGREGATIONS[aggregation].count.client(keys)


def holder_server(aggregation: str, keys: ServerKeys | None, min_participants: int) -> HolderServer:
    return AGGREGATIONS[aggregation].count.server(keys, min_participants)


def align_as_client(
    config: RunConfig,
    session: ClientSession,
    keys: ClientKeys | None,
    clients: tuple[PartyId, ...],
    names: Collection[str],
    state: bytes,
) -> Positions:
    """`state`: this client's commitment to its names."""
    return config.alignment_protocol.join(session, keys, _terms(config, clients), names, state)


def align_as_server(
    config: RunConfig, session: ServerSession, keys: ServerKeys | None, clients: tuple[PartyId, ...]
) -> Union:
    return config.alignment_protocol.serve(session, keys, _terms(config, clients))


def align_as_server_again(
    config: RunConfig,
    session: ServerSession,
    keys: ServerKeys | None,
    clients: tuple[PartyId, ...],
    said: SaidNext,
) -> Union:
    """The same for an audit, by the record of a session."""
    again = config.alignment_protocol.serve_again
    if again is None:
        return align_as_server(config, session, keys, clients)
    return again(session, keys, _terms(config, clients), said)


def _terms(config: RunConfig, clients: tuple[PartyId, ...]) -> AlignmentTerms:
    return AlignmentTerms(clients=clients, bound=config.first_union_bound, reveal_names=config.reveal_names)
