"""The server's own program over the record of a score session (`secure_kg.audit.replay`).

Beyond the time that it waits, a server of score queries decides seeds of dealt randomness and, of totals under the
asker's key, a fresh encryption. Both are taken from what it has sent. That seeds are fresh is a check of its own
(`selections`), and whether a total is the sum of its ciphertexts nobody can tell who lacks the key (`totals`).
"""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeVar

from protocols.foundation import wire
from protocols.foundation.errors import DecodeError, PeerMisbehaved, ProtocolError, SumAbandoned, UnexpectedMessage
from protocols.foundation.identifiers import SETUP, PartyId, RoundId
from protocols.holders.secret import SecretHolderServer
from protocols.lookups import steps
from protocols.scores import batches
from protocols.scores.interface import ScoreServer
from protocols.scores.terms import ScoreTerms
from protocols.scores.topk.hidden import HiddenBatch
from protocols.scores.topk.hidden_batches import HiddenScoreServer
from protocols.scores.topk.hidden_parties import HiddenServer, HiddenServerAgain
from protocols.session.conversation import Conversation
from protocols.session.patience import Patience
from protocols.session.server_session import ServerSession
from protocols.sums.secagg.keys import ServerKeys
from protocols.sums.secagg.vectors import VectorServer
from protocols.transport.tap import Transcript
from secure_kg.audit.replay.again import SessionAgain
from secure_kg.audit.replay.record import Record
from secure_kg.audit.replay.wire import NotExplained, RecordedWire, RecordEnded, kind_name
from secure_kg.audit.scores.session import ScoredSession

M = TypeVar("M", bound=wire.Message)
_SMALL_BYTES: Final = 1024
_SMALL_BATCH: Final = 1 << 24
"""Bytes that are made room for in any case."""
_SECONDS: Final = 3600.0
"""Nobody waits: the record says who came too late."""
UNKNOWN_STEP: Final = "a step was announced that this party's settings do not know"
"""With which servers refuse a step (`secure_kg.queries.retrieval.terms`)."""


@dataclass(frozen=True, slots=True)
class ScoresAgain:
    """What became of a session."""

    session: SessionAgain
    ended: bool
    """Whether the program came to its end, or gave the session up; else the record ends before it."""
    cut: str = ""
    """Where the program was followed no further, though no backend is in the way."""


class _Sent:
    """Choices of a server, in what it has sent; a `protocols.scores.interface.Recorded`."""

    def __init__(self, session: ScoredSession, record: Record) -> None:
        self._number, self._record = session.number, record
        self._small: dict[tuple[type[wire.Message] | None, int, int], bytes] = {}
        self._rounds: set[int] = set()
        self._bytes = 0
        try:
            for event in Transcript(session.recording.path):
                self._rounds.add(int(event.round))
                self._bytes += len(event.frame)
                if event.direction == "sent" and len(event.frame) <= _SMALL_BYTES:
                    where = wire.kind_of(event.frame), int(event.round), int(event.peer)
                    self._small.setdefault(where, bytes(event.frame))
        except (DecodeError, OSError):  # another check tells that the record is damaged
            return

    def sent(self, kind: type[M], round_id: RoundId, party: PartyId) -> M | None:
        frame = self._small.get((kind, int(round_id), int(party)))
        try:
            message = wire.decode(frame, session=self._number).message if frame is not None else None
        except DecodeError:
            return None
        return message if isinstance(message, kind) else None

    def said(self, kind: type[M]) -> M | None:
        return self._record.said(kind)

    def any_of(self, first: int) -> bool:
        """Whether there is a message of the batch of this round."""
        return any(first + attempt in self._rounds for attempt in range(batches.ATTEMPTS))

    def could_hold(self, terms: ScoreTerms) -> bool:
        """Whether a batch of this size may have come to its vectors: a hostile record may have any size in its terms,
        and the program would make room for it."""
        return 4 * terms.cells <= max(self._bytes, _SMALL_BATCH)


class _Beyond(Exception):
    """The program can be followed no further: what comes next passes no recorded wire, or is larger than the record.

    With words for the second, of which an honest record gives no cause.
    """


def run_no_further(session: ScoredSession) -> str:
    """Why the program cannot be run over all of the record; empty if it can."""
    names = [one.name for one in session.backends if one.server_again is None]
    return f"up to the first batch of {', '.join(names)}, of which parts pass no recorded wire" if names else ""


def run_again(session: ScoredSession) -> ScoresAgain | None:
    """None if what a backend needs is not installed here."""
    record = Record(session.recording.path)
    parties = [PartyId(number) for number in session.record.parties]
    wire_ = RecordedWire(parties, record, lambda position: None, whole=session.record.transcript is not None)
    conversation = Conversation(wire_, session.number, session.greeting)
    refused: int | None = None
    ended = True
    try:
        _serve(session, conversation, _Sent(session, record))
    except (PeerMisbehaved, UnexpectedMessage, DecodeError) as problem:
        refused = wire_.last
        _give_up(conversation, parties, problem)
    except ProtocolError as problem:
        _give_up(conversation, parties, problem)
    except (RecordEnded, NotExplained):
        ended = False
    except _Beyond as beyond:
        return ScoresAgain(SessionAgain(record.position, "", frozenset(wire_.passed), None), False, str(beyond))
    except ImportError:
        return None
    difference = _difference(record, wire_.wanted or "has come to its end")
    position = record.position
    if difference and refused is not None:  # a server that went on has not refused it: it differs from there on
        position, refused = refused, None
    passed = wire_.passed if refused is None else wire_.passed | {refused}
    return ScoresAgain(SessionAgain(position, difference, frozenset(passed), refused), ended)


def _serve(session: ScoredSession, conversation: Conversation, sent: _Sent) -> None:
    """All batches, one after the other. One that comes to nothing does not end the session."""
    record, keys = session.record, None
    parties = {PartyId(number) for number in record.parties}
    serving = ServerSession(conversation, parties, Patience.fixed(_SECONDS), lambda who, step: None)
    if session.needs_keys:
        keys = ServerKeys.agree(serving, VectorServer(len(parties), session.model, record.min_survivors))
    again = {one.name: one.server_again for one in session.backends}
    servers = {name: make(keys, sent) for name, make in again.items() if make is not None}
    hidden: dict[int, HiddenServer] = {}
    for number, batch in enumerate(record.batches):
        if batch.backend not in servers and not sent.any_of(batch.round):
            continue  # it never came
        if batch.backend not in servers:
            raise _Beyond
        if not sent.could_hold(session.batches[batch.round].widest):
            raise _Beyond(_too_large(batch.round))
        if not _another_step(session, serving, number):
            return
        for tables in _tables_due(session, batch.round):
            if int(tables.terms.round) not in hidden and keys is not None:
                hidden[int(tables.terms.round)] = _masked_tables(tables, serving, keys, sent)
        server: ScoreServer = servers[batch.backend]
        if batch.hidden is not None:
            server = HiddenScoreServer(hidden[batch.hidden.tables_round], batch.hidden.shape)
        with contextlib.suppress(SumAbandoned):
            batches.serve(server, serving, batch.terms())
    if record.announced_by is not None and _another_step(session, serving, len(record.batches)):
        # The server lists what it serves. It had passed this one on before it refused it: no frame that it dropped.
        raise ProtocolError(UNKNOWN_STEP)


def _another_step(session: ScoredSession, serving: ServerSession, number: int) -> bool:
    """Pass on what the asker says of its next batch, if batches follow from a question; False if there is none."""
    asker = session.record.announced_by
    return asker is None or steps.relay(serving, steps.round_of(number), PartyId(asker)).kind != steps.END


def _too_large(round_id: int) -> str:
    return f"round {round_id}: terms of more numbers than the whole transcript has"


def _tables_due(session: ScoredSession, before: int) -> Iterator[HiddenBatch]:
    """What tables are masked for before the batch of this round, of this one and of later batches."""
    for batch in session.record.batches:
        tables = batch.hidden_tables()
        if tables is not None and int(tables.terms.round) <= before:
            yield tables


def _masked_tables(tables: HiddenBatch, serving: ServerSession, keys: ServerKeys, sent: _Sent) -> HiddenServer:
    if not sent.could_hold(tables.widest):
        raise _Beyond(_too_large(int(tables.terms.round)))
    server = HiddenServerAgain(SecretHolderServer(keys.vectors), tables, sent)
    server.begin(serving)
    return server


def _give_up(conversation: Conversation, parties: list[PartyId], problem: ProtocolError) -> None:
    """Tell everybody who listens, as servers do. Where the record ends they could not, or did not come to it."""
    with contextlib.suppress(ProtocolError, RecordEnded, NotExplained):
        conversation.abort(parties, str(problem), SETUP)


def _difference(record: Record, wanted: str) -> str:
    event = record.next
    if event is None:
        return ""
    way = "to" if event.direction == "sent" else "from"
    return (
        f"message {record.position + 1:,} (round {event.round}): {kind_name(event.frame)} {event.direction}, {way} "
        f"client {event.peer}, where the program {wanted}"
    )
