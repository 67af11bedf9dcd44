"""Hidden queries as conversations over threads, and what they must come to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from protocols.foundation.errors import Aborted, SumAbandoned
from protocols.foundation.identifiers import SERVER, PartyId, RoundId
from protocols.holders.secret import SecretHolderClient, SecretHolderServer
from protocols.scores import batches
from protocols.scores.interface import no_scores
from protocols.scores.ranking import Ranking
from protocols.scores.terms import ScoreTerms
from protocols.scores.topk.hidden import HiddenBatch, HiddenTable
from protocols.scores.topk.hidden_batches import HiddenScoreClient, HiddenScoreServer, as_bytes
from protocols.scores.topk.hidden_parties import HiddenClient, HiddenServer
from protocols.scores.topk.hidden_shape import HiddenShape, Similarity
from protocols.session.client_session import ClientSession
from protocols.session.conversation import MAX_REASON, Conversation, Failed
from protocols.session.patience import Patience
from protocols.session.server_session import ServerSession
from protocols.sums.secagg.keys import ClientKeys, ServerKeys
from tests.support.in_threads import PATIENCE, at_once, converse
from tests.support.score_batches import TRUSTING, Wrap, terms_of
from tests.support.sum_conversations import Stopped

Queries = npt.NDArray[np.floating[Any]]


def shape_of(
    branches: Sequence[int], similarity: Similarity = Similarity.INNER, dimensions: int = 4, norm: float = 4.0
) -> HiddenShape:
    return HiddenShape(
        similarity=similarity, dimensions=dimensions, row_norm=norm, query_norm=norm, branches=tuple(branches)
    )


def batch_of(clients: int, positions: int, shape: HiddenShape, **more: Any) -> HiddenBatch:
    return HiddenBatch.of(terms_of(clients, positions, queries=len(shape.branches), **more), shape)


def within(rng: np.random.Generator, count: int, shape: HiddenShape) -> Queries:
    """Vectors no longer than is declared, some of them exactly so long."""
    made = rng.normal(0, 1, (count, shape.dimensions))
    lengths = np.minimum(rng.random((count, 1)) * 1.5, 1.0) * shape.row_norm
    return made / np.maximum(np.linalg.norm(made, axis=1, keepdims=True), 1e-9) * lengths * (1 - 1e-12)


def some_tables(batch: HiddenBatch, seed: int = 0, share: float = 0.6) -> dict[PartyId, HiddenTable]:
    rng = np.random.default_rng(seed)
    made = {}
    for party in batch.terms.clients:
        held = np.flatnonzero(rng.random(batch.terms.positions) < share)
        made[party] = HiddenTable(held, within(rng, len(held), batch.shape))
    return made


@dataclass
class Hidden:
    """What came of a session."""

    rankings: list[Ranking] = field(default_factory=list)
    problems: dict[PartyId, Exception] = field(default_factory=dict)


def run_hidden(
    first: HiddenBatch,
    tables: Mapping[PartyId, HiddenTable],
    todo: Sequence[tuple[HiddenBatch, Queries]],
    wrap: Mapping[PartyId, Wrap] | None = None,
    patience: Patience | None = None,
    again: bool = False,
) -> Hidden:
    """One session. Whoever cannot go on says so, and the server ends it all. `again`: a batch has several attempts."""
    asking = _ask if again else HiddenClient.ask
    scoring = _score if again else HiddenClient.score
    serving = _serve if again else HiddenServer.serve_hidden
    kind, parties, result, wraps = TRUSTING["semi-honest"], first.terms.clients, Hidden(), wrap or {}

    def client_part(straight: Conversation) -> None:
        me = straight.transport.party
        keys = ClientKeys.agree(at_once(straight), kind.client(parties, me))
        conversation = wraps[me](straight) if me in wraps else straight
        client = HiddenClient(keys.vectors, SecretHolderClient(keys.vectors, keys.key), first)
        try:
            client.begin(at_once(conversation), tables[me])
            for batch, queries in todo:
                if me == first.terms.asker:
                    result.rankings.append(asking(client, at_once(conversation), batch, queries))
                else:
                    scoring(client, at_once(conversation), batch)
        except Stopped:
            return
        except Exception as problem:
            result.problems[me] = problem
            if not isinstance(problem, SumAbandoned | Aborted):
                straight.send(SERVER, Failed(str(problem)[:MAX_REASON]), RoundId(0))

    def server_part(straight: Conversation) -> None:
        waiting = patience or Patience.fixed(PATIENCE)
        session = ServerSession(straight, set(parties), waiting, lambda who, step: None)
        keys = ServerKeys.agree(session, kind.server(parties))
        if SERVER in wraps:
            session = replace(session, conversation=wraps[SERVER](straight))
        server = HiddenServer(SecretHolderServer(keys.vectors), first)
        try:
            server.begin(session)
            for batch, _ in todo:
                serving(server, session, batch)
        except Exception as problem:
            result.problems[SERVER] = problem
            straight.abort(parties, str(problem), RoundId(0))

    converse({SERVER: server_part, **dict.fromkeys(parties, client_part)})
    return result


def _unbound(batch: HiddenBatch) -> ScoreTerms:
    """Terms as a batch is asked under, before they are bound to the shape."""
    return replace(batch.terms, table=b"")


def _ask(client: HiddenClient, session: ClientSession, batch: HiddenBatch, queries: Queries) -> Ranking:
    terms, ours = _unbound(batch), HiddenScoreClient(client, batch.shape)
    return batches.ask(ours, session, terms, as_bytes(queries), no_scores(terms)).ranking


def _score(client: HiddenClient, session: ClientSession, batch: HiddenBatch) -> None:
    terms, ours = _unbound(batch), HiddenScoreClient(client, batch.shape)
    batches.score(ours, session, terms, lambda queries: no_scores(terms))


def _serve(server: HiddenServer, session: ServerSession, batch: HiddenBatch) -> None:
    batches.serve(HiddenScoreServer(server, batch.shape), session, _unbound(batch))
