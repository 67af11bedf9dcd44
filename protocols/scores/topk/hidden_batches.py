"""Hidden queries behind the interface of all score backends, so that `protocols.scores.batches` carries their batches.

Tables are masked once (`HiddenClient.begin`) and serve all batches and attempts. What an attempt has of its own is
fresh: seeds, the mask of the queries and the shares of products belong to its round.
"""

import numpy as np
import numpy.typing as npt

from protocols.scores.interface import Answer, ScoreClient, ScoreQueries, Scores, ScoreServer, ScoringReport, Served
from protocols.scores.terms import ScoreTerms
from protocols.scores.topk.hidden import HiddenBatch
from protocols.scores.topk.hidden_parties import HiddenClient, HiddenServer
from protocols.scores.topk.hidden_shape import HiddenShape
from protocols.session.client_session import ClientSession
from protocols.session.server_session import ServerSession


def as_bytes(queries: npt.NDArray[np.floating]) -> bytes:
    """Queries [all branches, dimensions] as `HiddenScoreClient.ask` takes them; they never leave the asker so."""
    return queries.astype("<f8").tobytes()


class HiddenScoreClient(ScoreClient):
    """One client's part in batches of one shape. `client`: after its `begin`. Shortened rows count as clipped."""

    def __init__(self, client: HiddenClient, shape: HiddenShape) -> None:
        self._client, self._shape = client, shape

    def ask(self, session: ClientSession, terms: ScoreTerms, queries: bytes, own: Scores) -> Answer:
        """`own` is not used: the asker's own rows were given with its table."""
        rows = np.frombuffer(queries, dtype="<f8").reshape(-1, self._shape.dimensions)
        ranking = self._client.ask(session, HiddenBatch.of(terms, self._shape), rows)
        return Answer(ranking, ScoringReport(clipped=self._client.shortened))

    def score(self, session: ClientSession, terms: ScoreTerms, scoring: ScoreQueries) -> ScoringReport:
        """`scoring` is not called: a scorer has no query to call it with."""
        self._client.score(session, HiddenBatch.of(terms, self._shape))
        return ScoringReport(clipped=self._client.shortened)


class HiddenScoreServer(ScoreServer):
    """The server's part. `server`: after its `begin`."""

    def __init__(self, server: HiddenServer, shape: HiddenShape) -> None:
        super().__init__()
        self._server, self._shape = server, shape
        self.spent = server.spent

    def serve(self, session: ServerSession, terms: ScoreTerms) -> Served:
        self._server.serve_hidden(session, HiddenBatch.of(terms, self._shape))
        return Served(frozenset(terms.scorers))
