"""Batches of the backend `crypten` on one machine, started from one process: for measurements and tests.

A job under mpirun needs nothing of this: there every client has a process of its own and takes the backend from the
registry. Keys between clients are those of a session against a semi-honest server without collusion or dropouts.
"""

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from protocols.foundation.deadline import Deadline
from protocols.foundation.errors import SumAbandoned
from protocols.foundation.identifiers import SERVER, PartyId, SessionId, new_session
from protocols.holders.secret import SecretHolderClient, SecretHolderServer
from protocols.scores import batches
from protocols.scores.crypten.client import CryptenScoreClient
from protocols.scores.crypten.server import CryptenScoreServer
from protocols.scores.interface import Scores, no_scores
from protocols.scores.terms import ScoreTerms
from protocols.session.client_session import ClientSession
from protocols.session.conversation import Conversation
from protocols.session.patience import Patience
from protocols.session.server_session import ServerSession
from protocols.sums.secagg.keys import ClientKeys, ServerKeys
from protocols.sums.secagg.params import ThreatModel
from protocols.sums.secagg.vectors import VectorClient, VectorServer
from protocols.transport.base import Transport
from protocols.transport.processes import Ended, Part, run_parties

LOADED: Final = ("protocols.scores.crypten.group", "protocols.scores.crypten.selection")
"""What clients find loaded, so that torch and CrypTen are imported once for all of them."""
QUERIES: Final = b"queries"
"""What is asked: scores are given beforehand."""
_TRUSTING: Final = ThreatModel(0.0, 0.0)


@dataclass(frozen=True, slots=True)
class BatchJob:
    """Batches that follow each other in one session, all of the same clients."""

    terms: tuple[ScoreTerms, ...]
    scores: tuple[Mapping[PartyId, Scores], ...] = field(repr=False)
    """Of each batch, by client."""
    patience: float = 60.0
    """Seconds that the server waits for a step."""
    session: SessionId = field(default_factory=new_session)

    @property
    def parties(self) -> tuple[PartyId, ...]:
        """Clients, and askers that are none."""
        return tuple(sorted({party for terms in self.terms for party in (*terms.clients, terms.asker)}))


def run(job: BatchJob, seconds: float, instead: Mapping[PartyId, Part] | None = None) -> dict[PartyId, Ended]:
    """All parties of a job, each in its process; `instead`: what some of them do otherwise.

    A client's value is a list with one entry per batch: the positions that it read, if it asked, and what it cost. Of
    bytes, `sent_bytes` went through the toolkit's own transport and `group_bytes` from rank to rank.
    """
    parts: dict[PartyId, Part] = {SERVER: partial(server_part, job)}
    parts |= {party: partial(client_part, job) for party in job.parties}
    return run_parties(parts | dict(instead or {}), seconds, LOADED)


def client_part(job: BatchJob, transport: Transport) -> list[dict[str, Any]]:
    """A client's side of a job."""
    conversation = Conversation(transport, job.session)

    def session() -> ClientSession:
        return ClientSession(conversation, Deadline.after(2 * job.patience))

    keys = ClientKeys.agree(session(), VectorClient(job.parties, _TRUSTING))
    client = CryptenScoreClient(keys.vectors.session, SecretHolderClient(keys.vectors, keys.key))
    ended = []
    for terms, scores in zip(job.terms, job.scores, strict=True):
        mine, entry = scores.get(transport.party, no_scores(terms)), dict[str, Any]()
        started, cpu_started = time.perf_counter(), time.process_time()
        sent_before = transport.traffic.total(direction="sent").bytes
        if terms.asker == transport.party:
            answer = batches.ask(client, session(), terms, QUERIES, mine)
            entry["positions"] = [row.tolist() for row in answer.ranking.positions]
            entry["contributors"] = sorted(answer.ranking.contributors)
        elif transport.party in terms.clients:
            batches.score(client, session(), terms, partial(_given, mine))
        entry |= {"seconds": time.perf_counter() - started, "cpu_seconds": time.process_time() - cpu_started}
        entry["sent_bytes"] = transport.traffic.total(direction="sent").bytes - sent_before
        if client.last_group is not None and transport.party in terms.clients:
            entry |= {"rounds": client.last_group.rounds, "group_bytes": client.last_group.sent_bytes}
        ended.append(entry)
    return ended


def _given(scores: Scores, queries: bytes) -> Scores:
    return scores


def server_part(job: BatchJob, transport: Transport) -> dict[str, Any]:
    """The server's side of a job: who contributed to each batch, and who dropped out."""
    dropouts: list[list[int]] = []

    def note(parties: Collection[PartyId], step: str) -> None:
        dropouts.append(sorted(int(party) for party in parties))

    conversation = Conversation(transport, job.session)
    session = ServerSession(conversation, set(job.parties), Patience.fixed(job.patience), note)
    keys = ServerKeys.agree(session, VectorServer(len(job.parties), _TRUSTING))
    server = CryptenScoreServer(SecretHolderServer(keys.vectors))
    contributors: list[list[int] | None] = []
    for terms in job.terms:
        try:
            served = batches.serve(server, session, terms)
            contributors.append(sorted(int(party) for party in served.contributors))
        except SumAbandoned:
            contributors.append(None)
    return {"contributors": contributors, "dropouts": dropouts, "cpu_seconds": server.spent.cpu_seconds}
