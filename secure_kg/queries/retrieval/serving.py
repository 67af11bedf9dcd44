"""The server: it passes on what the asker announces, carries each step, and may record what it sees."""

from dataclasses import dataclass
from itertools import count
from pathlib import Path

from protocols.foundation.deadline import Deadline
from protocols.foundation.errors import DeadlineExpired, ProtocolError, SumAbandoned
from protocols.foundation.identifiers import SETUP, PartyId
from protocols.holders.secret import SecretHolderServer
from protocols.lookup_registry import batch_kind
from protocols.lookups import steps
from protocols.scores import batches
from protocols.scores.interface import ScoreServer
from protocols.scores.topk.hidden_batches import HiddenScoreServer
from protocols.scores.topk.hidden_parties import HiddenServer
from protocols.session.conversation import Conversation
from protocols.session.patience import Patience
from protocols.session.server_session import OnDropout, ServerSession
from protocols.sums.secagg.keys import ServerKeys
from protocols.sums.secagg.params import ThreatModel
from protocols.sums.secagg.vectors import VectorServer
from secure_kg.queries.retrieval.terms import PlannedStep, PublicTerms
from secure_kg.runs.score_recording import SessionRecord, announced, of_session, recorded


@dataclass(frozen=True, slots=True)
class Serving:
    """What the server has of its own."""

    public: PublicTerms
    model: ThreatModel
    patience: Patience
    on_dropout: OnDropout
    record: Path | None = None
    """Where it records what it sees."""
    allow_extraction: bool = False
    here: frozenset[PartyId] | None = None
    """Who takes part from the beginning; None: all clients."""
    until: Deadline | None = None
    """After which no step begins any more: others wait for their turn."""

    @property
    def parties(self) -> frozenset[PartyId]:
        return frozenset(self.public.clients) if self.here is None else self.here


@dataclass(frozen=True, slots=True)
class Served:
    """How a session ended at its server."""

    present: frozenset[PartyId]
    """Clients that have not dropped out."""
    problem: str = ""
    """What ended it before its time, as everybody was told."""
    abandoned: bool = False
    """Whether a step was: messages of it, the refusals of several clients for instance, may be left unread."""


def serve(serving: Serving, conversation: Conversation) -> Served:
    """Until the asker says that there is no more to come. Whatever ends it earlier is told to everybody."""
    public = serving.public
    if serving.record is None:
        return _serve(serving, conversation, None)
    begun = of_session(
        conversation.session,
        public.clients,
        serving.model,
        [],
        dimensions=public.dim,
        allow_extraction=serving.allow_extraction,
    )
    announcing = announced(begun, public.asker, conversation.greeting)
    with recorded(serving.record, announcing, conversation.transport) as record:
        return _serve(serving, conversation, record)


def _serve(serving: Serving, conversation: Conversation, record: SessionRecord | None) -> Served:
    """The record of a session that was given up is whole as well: that is what has passed."""
    public = serving.public
    session = ServerSession(conversation, set(serving.parties), serving.patience, serving.on_dropout)
    try:
        keys = ServerKeys.agree(session, VectorServer(len(public.clients), serving.model))
        abandoned = _Server(public, session, keys, record).run(serving.until)
    except ProtocolError as problem:
        conversation.abort(serving.parties, str(problem), SETUP)
        return Served(session.present, str(problem))
    return Served(session.present, abandoned=abandoned)


class _Server:
    def __init__(
        self, public: PublicTerms, session: ServerSession, keys: ServerKeys, record: SessionRecord | None
    ) -> None:
        self._public, self._session, self._keys, self._record = public, session, keys, record
        self._servers: dict[str, ScoreServer] = {}

    def run(self, until: Deadline | None) -> bool:
        """Whether any step was abandoned."""
        abandoned = False
        for number in count():
            said = steps.relay(self._session, steps.round_of(number), self._public.asker)
            if said.kind == steps.END:
                break
            if until is not None and until.expired:
                raise DeadlineExpired("this session has taken its time, and others wait; ask the rest in another one")
            step = self._public.step(number, said)
            if self._record is not None:
                self._record.add(step.batch)
            server = self._server(step)
            try:
                batches.serve(server, self._session, step.terms)
            except SumAbandoned:
                abandoned = True  # everybody was told
        return abandoned

    def _server(self, step: PlannedStep) -> ScoreServer:
        if step.shape is not None:
            made = HiddenServer(SecretHolderServer(self._keys.vectors), step.tables)
            made.begin(self._session)
            return HiddenScoreServer(made, step.shape)
        if step.backend not in self._servers:
            self._servers[step.backend] = batch_kind(step.backend).server(self._keys)
        return self._servers[step.backend]
