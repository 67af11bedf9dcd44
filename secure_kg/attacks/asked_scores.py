"""Answers that an asker really gets: the parties of a score backend in threads, over a table that scorers share.

Three clients: the first asks and holds nothing, the two others hold every row. The protocol, its messages and its
rounding are those of a job.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np

from protocols.foundation.deadline import Deadline
from protocols.foundation.errors import SumAbandoned
from protocols.foundation.identifiers import SERVER, PartyId, RoundId, SessionId, new_session
from protocols.registry import SCORES
from protocols.scores import batches
from protocols.scores.budget import Budget, MemoryRecord
from protocols.scores.interface import Scores, no_scores
from protocols.scores.ranking import Ranking
from protocols.scores.terms import ScoreTerms
from protocols.session.client_session import ClientSession
from protocols.session.conversation import Conversation
from protocols.session.patience import Patience
from protocols.session.server_session import ServerSession
from protocols.sums.secagg.keys import ClientKeys, ServerKeys
from protocols.sums.secagg.params import ThreatModel
from protocols.sums.secagg.vectors import VectorClient, VectorServer
from protocols.transport.in_process import InProcessNetwork
from secure_kg.attacks.extraction import Queries, Rows, Similarity, scores_of
from secure_kg.runs.records.scores import ScoreBatch, ScoreSession
from secure_kg.runs.score_recording import of_session, recorded

ASKER: Final = PartyId(1)
CLIENTS: Final = (ASKER, PartyId(2), PartyId(3))
MODEL: Final = ThreatModel(0.0, 0.0)
_BOUND: Final = 64.0
_SECONDS: Final = 120.0


@dataclass(frozen=True)
class Asking:
    """One batch of queries to one backend. `limit`: queries that scorers help to open the means of; None: any."""

    backend: str
    rows: Rows = field(repr=False)
    queries: Queries = field(repr=False)
    similarity: Similarity
    top: int
    limit: int | None = None

    @property
    def terms(self) -> ScoreTerms:
        return ScoreTerms(
            round=RoundId(1),
            clients=CLIENTS,
            asker=ASKER,
            positions=len(self.rows),
            queries=len(self.queries),
            top=self.top,
            bound=_BOUND,
            least=2,
            table=b"extraction",
        )

    def score(self, queries: bytes) -> Scores:
        """A scorer's own work."""
        asked = np.frombuffer(queries, dtype=np.float64).reshape(self.queries.shape)
        return Scores(np.arange(len(self.rows)), scores_of(self.rows, asked, self.similarity))

    def answered(self, record: Path | None = None) -> Ranking:
        """What the asker reads; `SumAbandoned` if scorers refuse. `record`: where the server records what it sees."""
        network, session = InProcessNetwork(len(CLIENTS)), new_session()
        read, failures = list[Ranking](), list[Exception]()

        def party(number: PartyId) -> None:
            conversation = Conversation(network.endpoint(number), session)
            try:
                if number != SERVER:
                    read.extend(self._take_part(conversation))
                elif record is None:
                    self._serve(conversation)
                else:
                    with recorded(record, self._recorded_as(session), conversation.transport):
                        self._serve(conversation)
            except Exception as problem:
                failures.append(problem)

        _in_threads([partial(party, number) for number in (SERVER, *CLIENTS)])
        for problem in failures:
            if not isinstance(problem, SumAbandoned):
                raise problem
        if failures:
            raise failures[0]
        return read[0]

    def _take_part(self, conversation: Conversation) -> list[Ranking]:
        bundle, me, keys = SCORES[self.backend], conversation.transport.party, None
        session = ClientSession(conversation, Deadline.after(_SECONDS))
        if bundle.needs_keys:
            keys = ClientKeys.agree(session, VectorClient(CLIENTS, MODEL))
        client = bundle.client(keys, None if self.limit is None else Budget(MemoryRecord(), self.limit))
        if me == ASKER:
            asked = self.queries.astype(np.float64).tobytes()
            return [batches.ask(client, session, self.terms, asked, no_scores(self.terms)).ranking]
        batches.score(client, session, self.terms, self.score)
        return []

    def _recorded_as(self, session: SessionId) -> ScoreSession:
        batch, width = ScoreBatch.of(self.backend, self.terms), self.queries.shape[1]
        return of_session(
            session, CLIENTS, MODEL, [batch], dimensions=width, allow_extraction=self.limit is None
        )

    def _serve(self, conversation: Conversation) -> None:
        bundle = SCORES[self.backend]
        session = ServerSession(conversation, set(CLIENTS), Patience.fixed(_SECONDS), lambda parties, step: None)
        keys = ServerKeys.agree(session, VectorServer(len(CLIENTS), MODEL)) if bundle.needs_keys else None
        batches.serve(bundle.server(keys), session, self.terms)


def _in_threads(works: list[Callable[[], None]]) -> None:
    threads = [threading.Thread(target=work, daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def means_of(ranking: Ranking, positions: int) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """[queries, positions]: opened means by position; every position must have been opened."""
    if ranking.means is None:
        raise ValueError("this backend opens no means")
    table = np.full((len(ranking.positions), positions), np.nan)
    for row, found, means in zip(table, ranking.positions, ranking.means, strict=True):
        row[found] = means
    if np.isnan(table).any():
        raise ValueError("means of some positions were not opened")
    return table
