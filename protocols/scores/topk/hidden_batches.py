"""A batch of hidden queries from its first attempt to its end, as `protocols.scores.batches` has it for other backends.

Tables are masked once (`HiddenClient.begin`) and serve all attempts. What an attempt has of its own is fresh: seeds,
the mask of the queries and the shares of products belong to its round.
"""

import numpy as np
import numpy.typing as npt

from protocols.foundation.errors import SumAbandoned
from protocols.holders.interface import PURPOSE as HOLDERS
from protocols.scores import batches
from protocols.scores.messages import PURPOSE, BatchServed
from protocols.scores.ranking import Ranking
from protocols.scores.topk.hidden import HiddenBatch
from protocols.scores.topk.hidden_parties import HiddenClient, HiddenServer
from protocols.session.client_session import ClientSession
from protocols.session.server_session import ServerSession


def ask(
    client: HiddenClient, session: ClientSession, batch: HiddenBatch, queries: npt.NDArray[np.floating]
) -> Ranking:
    """The asker's side. `SumAbandoned` after the last attempt."""
    for terms, left in batches.attempts(batch.terms):
        session.conversation.begin(terms.round, HOLDERS, PURPOSE)  # either may be abandoned
        try:
            return client.ask(session, batch.attempt(terms), queries)
        except SumAbandoned:
            if not left:
                raise
    raise AssertionError("unreachable: there is at least one attempt")


def score(client: HiddenClient, session: ClientSession, batch: HiddenBatch) -> None:
    """A scorer's side. `SumAbandoned` after the last attempt."""
    for terms, left in batches.attempts(batch.terms):
        session.conversation.begin(terms.round, HOLDERS, PURPOSE)  # either may be abandoned
        try:
            client.score(session, batch.attempt(terms))
            with session.phase(terms.round, batches.SERVED):
                session.receive(BatchServed, terms.round, PURPOSE)
            return
        except SumAbandoned:
            if not left:
                raise


def serve(server: HiddenServer, session: ServerSession, batch: HiddenBatch) -> None:
    """The server's side. `SumAbandoned` after the last attempt."""
    for terms, left in batches.attempts(batch.terms):
        try:
            server.serve_hidden(session, batch.attempt(terms))
        except SumAbandoned as problem:
            batches.abandon(session, terms, str(problem))
            if not left:
                raise
            continue
        with session.phase(terms.round, batches.SERVED):
            session.broadcast(terms.scorers, BatchServed(PURPOSE), terms.round, batches.SERVED)
        return
