"""A session of score queries in one process for a server to cheat in: real clients and protocols, as threads.

What is watched, to judge a cheat by, is what the asker got, and why parties would not go on.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks.cheating.meddling import Cheat, Meddling
from protocols.foundation.deadline import Deadline
from protocols.foundation.errors import Aborted, LeftOut, PeerLost, ProtocolError, SumAbandoned
from protocols.foundation.identifiers import SERVER, PartyId, RoundId, new_session
from protocols.foundation.wire import Frame
from protocols.lookup_registry import batch_kind
from protocols.scores import batches
from protocols.scores.budget import Budget
from protocols.scores.interface import ScoreClient, Scores, ScoreServer
from protocols.scores.plain import in_clear
from protocols.scores.ranking import Ranking, rank
from protocols.scores.terms import ScoreTerms
from protocols.session.client_session import ClientSession
from protocols.session.conversation import MAX_REASON, Conversation, Failed
from protocols.session.credentials import Credentials
from protocols.session.identities import PublicIdentity, credentials, directory_text, new_identity, parse_directory
from protocols.session.patience import Patience
from protocols.session.server_session import ServerSession
from protocols.sums.secagg.keys import ClientKeys, ServerKeys
from protocols.sums.secagg.params import ThreatModel
from protocols.sums.secagg.vectors import VectorClient, VectorServer
from protocols.transport.base import Transport
from protocols.transport.in_process import InProcessNetwork, InProcessTransport
from secure_kg.foundation.seeds import generator
from secure_kg.runs.records.scores import ScoreBatch
from secure_kg.runs.score_recording import of_session, recorded

CLIENTS: Final = tuple(PartyId(number) for number in range(1, 6))
ASKER: Final = CLIENTS[0]
VICTIM: Final = CLIENTS[2]
POSITIONS: Final = 40
ACTIVE: Final = ThreatModel(0.0, 0.25, "active")
"""Of four scorers one may drop out."""
SEMI_HONEST: Final = ThreatModel(0.0, 0.25)
_SECONDS: Final = 60.0
MakeServer = Callable[[ServerKeys], ScoreServer]
MakeClient = Callable[[ClientKeys], ScoreClient]
MakeEnd = Callable[[InProcessNetwork], Transport]


def terms_of(number: int) -> ScoreTerms:
    """Of the batch with this number, from zero; attempts take rounds of their own."""
    return ScoreTerms(
        round=RoundId(1 + batches.ATTEMPTS * number),
        clients=CLIENTS,
        asker=ASKER,
        positions=POSITIONS,
        queries=2,
        top=5,
        table=b"table",
    )


@dataclass(frozen=True)
class Asked:
    """One batch: its terms, its queries, and everybody's scores of them."""

    terms: ScoreTerms
    queries: bytes
    scores: Mapping[PartyId, Scores] = field(repr=False)

    @classmethod
    def of(cls, terms: ScoreTerms, queries: bytes) -> "Asked":
        """Made-up scores that depend on the queries alone: the same queries have the same."""
        made = {}
        for party in terms.clients:
            draw = generator(0, f"scores of client {party} for {queries.hex()}")
            held = np.flatnonzero(draw.random(terms.positions) < 0.8)
            made[party] = Scores(held, draw.normal(0, 2, (terms.queries, len(held))))
        return cls(terms, queries, made)

    def truth(self, contributors: frozenset[int]) -> Ranking:
        """What the asker must read if these scorers contribute."""
        there = {party: one for party, one in self.scores.items() if party == self.terms.asker or party in contributors}
        return rank(in_clear(there, self.terms), contributors, self.terms)


@dataclass(frozen=True)
class Signers:
    """Fresh identities of all clients: what each has pinned, and what it signs with."""

    directory: Mapping[PartyId, bytes]
    credentials: Mapping[PartyId, Credentials] = field(repr=False)

    @classmethod
    def of(cls, clients: Sequence[PartyId]) -> "Signers":
        pairs = {party: new_identity() for party in clients}
        text = directory_text([PublicIdentity(party, pair.public) for party, pair in pairs.items()])
        return cls(
            {one.number: bytes.fromhex(one.public) for one in parse_directory(text)},
            {party: credentials(pair.private_pem, text, int(party)) for party, pair in pairs.items()},
        )


class _Gone(Exception):
    """A client is lost."""


class _Vanishing(InProcessTransport):
    """The end of a client that is lost as soon as it would send something in one step of one round."""

    def __init__(self, network: InProcessNetwork, party: PartyId, last: RoundId, step: str) -> None:
        super().__init__(network, party, [SERVER])
        self._last, self._step = last, step

    def _post(self, to: PartyId, frame: Frame) -> None:
        if self._round == self._last and self._phase.startswith(self._step):
            raise _Gone
        super()._post(to, frame)


@dataclass
class ScoreStage:
    """One session, its folder, and what became of it. `perform` holds it."""

    path: Path
    backend: str
    asked: Sequence[Asked]
    model: ThreatModel = ACTIVE
    budgets: Mapping[PartyId, Budget] = field(default_factory=dict)
    vectors: type[VectorServer] = VectorServer
    """The server's side of masked sums."""
    vanishes: tuple[PartyId, str] | None = None
    """A client that is lost in the second batch, and the beginning of the name of the step."""
    ends: dict[PartyId, MakeEnd] = field(default_factory=dict)
    """Ends of the wire of clients that cheat."""
    vectors_of: dict[PartyId, type[VectorClient]] = field(default_factory=dict)
    """The side of masked sums of clients that cheat."""
    clients: MakeClient | None = None
    """Of batches that are no scores; None: those of the backend."""
    directory: Mapping[PartyId, bytes] | None = None
    answers: dict[int, Ranking] = field(default_factory=dict)
    """By the number of the batch."""
    refused: dict[str, str] = field(default_factory=dict)
    """By client: why it would not go on, or not with a batch."""
    crashed: list[str] = field(default_factory=list)
    server_end: str = "done"

    def __post_init__(self) -> None:
        self._credentials: Mapping[PartyId, Credentials] = {}
        if self.model.server == "active":
            signers = Signers.of(CLIENTS)
            self.directory, self._credentials = signers.directory, signers.credentials

    @property
    def run(self) -> Path:
        return self.path / "run"

    def right(self, number: int) -> bool:
        """Whether the asker has read of a batch what its contributors have given."""
        answer = self.answers[number]
        truth = self.asked[number].truth(answer.contributors)
        return all(np.array_equal(a, b) for a, b in zip(answer.positions, truth.positions, strict=True))

    def perform(self, cheat: Cheat, server: MakeServer | None = None) -> None:
        """The session under `cheat`. `server`: the program that is run; None: the honest one."""
        self.run.mkdir()
        network, session = InProcessNetwork(len(CLIENTS)), new_session()
        bend = Meddling(network.endpoint(SERVER), cheat)
        listed = [ScoreBatch.of(self.backend, one.terms) for one in self.asked]
        record = of_session(session, CLIENTS, self.model, listed)
        parts: dict[PartyId, Callable[[], None]] = {
            party: partial(self._take_part, Conversation(self._end(network, party), session)) for party in CLIENTS
        }

        def serve() -> None:
            with recorded(self.run, record, bend):
                self._serve(Conversation(bend, session), server)

        parts[SERVER] = serve
        threads = [threading.Thread(target=self._guarded, args=(network, party, part)) for party, part in parts.items()]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(_SECONDS)
        if any(thread.is_alive() for thread in threads):
            raise RuntimeError("parties of a session of score queries did not come to an end")

    def _end(self, network: InProcessNetwork, party: PartyId) -> Transport:
        if party in self.ends:
            return self.ends[party](network)
        if self.vanishes is None or self.vanishes[0] != party:
            return network.endpoint(party)
        return _Vanishing(network, party, self.asked[1].terms.round, self.vanishes[1])

    def _guarded(self, network: InProcessNetwork, party: PartyId, part: Callable[[], None]) -> None:
        try:
            part()
        except _Gone:
            pass
        except Exception as problem:
            self.crashed.append(f"party {party}: {type(problem).__name__}: {problem}")
        finally:
            network.end(party)  # whoever still waits for it is not kept

    def _take_part(self, conversation: Conversation) -> None:
        me, bundle = conversation.transport.party, batch_kind(self.backend)
        session = ClientSession(conversation, Deadline.after(_SECONDS))
        keys = None
        if bundle.needs_keys:
            make = self.vectors_of.get(me, VectorClient)
            vectors = make(CLIENTS, self.model, credentials=self._credentials.get(me))
            keys = ClientKeys.agree(session, vectors)
        made = self.clients(keys) if self.clients is not None and keys is not None else None
        client = made or bundle.client(keys, self.budgets.get(me))
        for number, one in enumerate(self.asked):
            try:
                if me == one.terms.asker:
                    answer = batches.ask(client, session, one.terms, one.queries, one.scores[me])
                    self.answers[number] = answer.ranking
                else:
                    batches.score(client, session, one.terms, partial(_own, one.scores[me]))
            except (Aborted, LeftOut, PeerLost):
                return
            except SumAbandoned as problem:
                self.refused.setdefault(str(me), str(problem))
            except ProtocolError as problem:
                self.refused[str(me)] = f"{type(problem).__name__}: {problem}"
                conversation.send(SERVER, Failed(str(problem)[:MAX_REASON]), RoundId(0))
                return

    def _serve(self, conversation: Conversation, make: MakeServer | None) -> None:
        session = ServerSession(conversation, set(CLIENTS), Patience.fixed(_SECONDS), lambda parties, step: None)
        bundle, keys = batch_kind(self.backend), None
        if bundle.needs_keys:
            keys = ServerKeys.agree(session, self.vectors(len(CLIENTS), self.model))
        server = make(keys) if make is not None and keys is not None else bundle.server(keys)
        for one in self.asked:
            try:
                batches.serve(server, session, one.terms)
            except SumAbandoned as problem:
                self.server_end = str(problem)
            except ProtocolError as problem:
                self.server_end = str(problem)
                conversation.abort(CLIENTS, str(problem), RoundId(0))
                return


def _own(mine: Scores, queries: bytes) -> Scores:
    return mine
