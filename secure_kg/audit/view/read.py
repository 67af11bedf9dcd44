"""Transcripts as typed observations: what the server received and sent, message by message.

A run has one transcript for each session, that is, for each start of its job. Reading is lazy and can be repeated: a
transcript may be larger than memory. Damage does not raise here; it ends the reading and is told (`Recording.damage`),
because an audit must report it beside everything that could be read.
"""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from protocols.alignment import plain as plain_union
from protocols.alignment.psu import attempts
from protocols.foundation import wire
from protocols.foundation.errors import DecodeError
from protocols.foundation.identifiers import NO_SESSION, SessionId
from protocols.session import conversation, group_key
from protocols.sums import plain as plain_sums
from protocols.sums import totals
from protocols.sums.secagg import messages as secagg_messages
from protocols.transport.tap import CutShort, Seal, Transcript, TranscriptRecord
from protocols.transport.traffic import Direction
from secure_kg.federation.plan import messages as federation_messages
from secure_kg.federation.plan.messages import Hello, Welcome
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.errors import UserError
from secure_kg.runs.next_step import no_run_there
from secure_kg.runs.recording import settings_path
from secure_kg.runs.records.summary import Summary
from secure_kg.runs.run_folder import RunFolder

# Imported for their message types: a frame of an unknown kind cannot be read.
_MESSAGE_MODULES = (
    attempts,
    conversation,
    federation_messages,
    group_key,
    plain_sums,
    plain_union,
    secagg_messages,
    totals,
)

_BEFORE_SESSION = Hello | Welcome | conversation.LeaveOut | conversation.Failed
"""What passes outside a session: greetings, and the end of them for a client that dropped out, or failed, before it
had its `Welcome`, while others had theirs."""


class Unreadable(wire.Message, frozen=True):
    """In place of what a client has sent that is no message. No honest server goes by it."""

    problem: str


@dataclass(frozen=True, slots=True)
class Observation:
    """One message at the server's end."""

    index: int
    """Its number in the transcript, from zero."""
    time_ns: int
    direction: Direction
    """From the server's side: `received` from a client, or `sent` to it."""
    peer: int
    round: int
    """0: set-up. The round after the last one is that of the test results."""
    phase: str
    message: wire.Message = field(repr=False)
    size: int
    """Bytes of the frame, header included."""
    frame: bytes = field(repr=False)

    @property
    def kind(self) -> str:
        return type(self.message).__name__

    @property
    def purpose(self) -> str:
        """Of which sum it is a part; empty if of none."""
        return str(getattr(self.message, "purpose", ""))


class Recording:
    """The observations of one session. Iterate as often as needed; `damage` and `seal` are known after a whole pass."""

    def __init__(self, path: Path, opened_as: SessionId | None = None) -> None:
        """`opened_as`: the session, of a transcript that begins without a greeting."""
        self.path, self._opened_as = path, opened_as
        self.damage: str | None = None
        """Why the reading ended before the end, in one line; what was read until then is as it was recorded."""
        self.seal: Seal | None = None
        """None: the transcript has no end."""

    def __iter__(self) -> Iterator[Observation]:
        self.damage = self.seal = None
        transcript, session = Transcript(self.path), self._opened_as
        try:
            for index, record in enumerate(transcript):
                envelope = _decoded(record, session)
                if isinstance(envelope.message, Welcome) and record.direction == "sent":
                    session = SessionId(envelope.message.session)
                yield Observation(
                    index,
                    record.time_ns,
                    record.direction,
                    int(record.peer),
                    int(envelope.round),
                    record.phase,
                    envelope.message,
                    len(record.frame),
                    record.frame,
                )
        except CutShort:
            pass  # it has no end, as that of a server which was killed while it wrote
        except (DecodeError, OSError) as problem:
            self.damage = problem.strerror or str(problem) if isinstance(problem, OSError) else str(problem)
        self.seal = transcript.seal

    @cached_property
    def session(self) -> SessionId | None:
        """None if the transcript ends before the session was opened."""
        if self._opened_as is not None:
            return self._opened_as
        for observation in Recording(self.path):
            if isinstance(observation.message, Welcome) and observation.direction == "sent":
                return SessionId(observation.message.session)
        return None


def read(transcript: Path) -> Recording:
    """The observations in a transcript file, to iterate over: `for one in read(path): ...`."""
    return Recording(transcript)


def _decoded(record: TranscriptRecord, session: SessionId | None) -> wire.Envelope:
    """Before its session is known, a transcript holds greetings only; later ones are of clients that are behind.

    A client may send anything. What a server has sent is a message.
    """
    try:
        return _as_now(wire.decode(record.frame, session=session if session is not None else NO_SESSION))
    except DecodeError as problem:
        with contextlib.suppress(DecodeError):
            greeting = wire.decode(record.frame, session=NO_SESSION)
            if isinstance(greeting.message, _BEFORE_SESSION):
                return greeting
        if record.direction == "sent":
            raise
        return wire.Envelope(session or NO_SESSION, record.round, Unreadable(str(problem)))


def _as_now(envelope: wire.Envelope) -> wire.Envelope:
    """Messages of earlier formats as those that say the same today."""
    match envelope.message:
        case secagg_messages.ShareKeysWithoutState() | secagg_messages.EncryptedSharesWithoutStates() as before:
            return replace(envelope, message=before.as_now())
    return envelope


@dataclass(frozen=True, slots=True)
class AuditedRun:
    """A run as an auditor gets it: its public parameters, the server's transcripts, and what the run says of them."""

    path: Path
    config: RunConfig
    recordings: tuple[Recording, ...]
    summary: Summary | None
    """None if the run did not come to its end."""

    @property
    def clients(self) -> int:
        return self.config.clients or 0


def open_run(path: Path) -> AuditedRun:
    """`UserError` if there is nothing to audit."""
    if not path.is_dir():
        raise UserError(no_run_there(path))
    try:
        text = (path / "config.toml").read_text(encoding="utf-8")
    except OSError:
        raise UserError(no_run_there(path)) from None
    except UnicodeDecodeError:
        raise UserError(f"{path / 'config.toml'}: not a text file") from None
    config = RunConfig.from_toml(text, str(path / "config.toml"))
    transcripts = sorted(path.glob("transcript-*.bin"), key=_start)
    if not transcripts:
        raise UserError(f"{path}: has no transcript; run the job again with --transcript")
    summary, recordings = RunFolder(path).summary(), tuple(Recording(transcript) for transcript in transcripts)
    opened = [recording.session for recording in recordings if recording.session is not None]
    if opened and recordings[-1].session is None:  # config.toml is of a later start, in which nobody was greeted
        config = session_settings(path, opened[-1]) or config
    return AuditedRun(path, config, recordings, summary)


def session_settings(run: Path, session: SessionId) -> RunConfig | None:
    """What the server had in a session, by its own word; None if it has left no such file."""
    path = settings_path(run, session)
    try:
        return RunConfig.from_toml(path.read_text(encoding="utf-8"), str(path))
    except (OSError, UnicodeDecodeError):
        return None


def _start(transcript: Path) -> tuple[int, str]:
    """When its first message passed: sessions of a run are audited in their order."""
    for observation in Recording(transcript):
        return observation.time_ns, transcript.name
    return 0, transcript.name
