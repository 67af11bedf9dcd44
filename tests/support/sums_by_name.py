"""One sum by any registered aggregation, as a conversation over threads, and what is read in the end."""

from typing import Any

from protocols.foundation.identifiers import SERVER, PartyId
from protocols.registry import AGGREGATIONS
from protocols.session.conversation import Conversation
from protocols.sums.interface import Collected, Contribution, ContributionReport, SumLayout, Total
from protocols.sums.secagg.keys import ClientKeys, ServerKeys
from protocols.sums.secagg.vectors import VectorClient, VectorServer
from protocols.sums.terms import SumTerms
from protocols.sums.totals import SumTotal, TotalReader
from tests.support.in_threads import Part, at_once, at_server, converse
from tests.support.sum_conversations import SEMI_HONEST, Foreseen, Silences


def sum_by(aggregation: str, task: SumTerms[SumLayout], inputs: dict[PartyId, Contribution]) -> dict[PartyId, Any]:
    """What the server reads, or what clients read, and the clients' reports."""
    protocol, clients = AGGREGATIONS[aggregation], list(task.participants)

    def serve(conversation: Conversation) -> Any:
        def session() -> Any:
            return at_server(conversation, clients, Foreseen(), Silences())

        keys = ServerKeys.agree(session(), VectorServer(len(clients), SEMI_HONEST)) if protocol.needs_keys else None
        server = protocol.server(keys, 1)
        server.prepare(session(), task)
        total = server.collect(session(), task)
        if isinstance(total, Collected):
            return total.total
        for party in clients:
            conversation.send(party, total, task.round)
        return None

    def take_part(conversation: Conversation) -> tuple[ContributionReport, Total | None]:
        vectors = VectorClient(clients, SEMI_HONEST)
        client = protocol.client(ClientKeys.agree(at_once(conversation), vectors) if protocol.needs_keys else None)
        client.prepare(at_once(conversation), task)
        report = client.contribute(at_once(conversation), task, inputs[conversation.transport.party])
        if not isinstance(client, TotalReader):
            return report, None
        return report, client.open(task, at_once(conversation).receive(SumTotal, *task.key))

    parts: dict[PartyId, Part] = {SERVER: serve}
    return converse(parts | dict.fromkeys(clients, take_part))


def opened(results: dict[PartyId, Any]) -> Total:
    """The total, whoever reads it."""
    total = results[SERVER]
    if total is None:
        total = next(found[1] for party, found in results.items() if party != SERVER)
    assert isinstance(total, Total)
    return total
