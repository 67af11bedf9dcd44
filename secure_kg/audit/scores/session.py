"""A recorded session of score queries as an auditor gets it."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from protocols.bundles import ScoreBackend
from protocols.foundation.errors import ProtocolError
from protocols.foundation.identifiers import SessionId
from protocols.lookup_registry import batch_kind
from protocols.scores.batches import ATTEMPTS
from protocols.scores.terms import ScoreTerms
from protocols.scores.topk.hidden import HiddenBatch
from protocols.sums.secagg.params import Server, ThreatModel
from secure_kg.audit.view.read import Recording
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.errors import UserError
from secure_kg.runs.recording import transcript_path
from secure_kg.runs.records.scores import ScoreSession
from secure_kg.runs.score_recording import read_session

_ADVERSARIES: Final = ("semi-honest", "active")
_MOST_PARTIES: Final = 1024
"""Of a session that came to no batch; a batch has fewer."""


@dataclass(frozen=True, slots=True)
class AuditedBatch:
    """One attempt of one batch: its terms, and how its scores were added up or compared."""

    terms: ScoreTerms
    backend: ScoreBackend
    hidden: HiddenBatch | None = None
    """Of queries that scorers do not see."""
    masks_tables: bool = False
    """Whether it is no batch, but the masking of tables before hidden ones."""
    tables_round: int = 0
    """Of a hidden batch: in which round its tables were masked."""

    @property
    def counts_holders(self) -> bool:
        """With hidden queries holders are counted once, before tables are masked."""
        return self.terms.least > 1 and (self.hidden is None or self.masks_tables)

    @property
    def widest(self) -> ScoreTerms:
        """For the sizes of messages."""
        return self.terms if self.hidden is None else self.hidden.widest


@dataclass(frozen=True)
class ScoredSession:
    """Public parameters and transcript. Rounds belong to batches; round 0 is the set-up."""

    path: Path
    record: ScoreSession
    recording: Recording

    @cached_property
    def number(self) -> SessionId:
        return SessionId(bytes.fromhex(self.record.session))

    @cached_property
    def greeting(self) -> bytes:
        """What keys of the session are bound to beside its own messages."""
        return bytes.fromhex(self.record.greeting)

    @cached_property
    def batches(self) -> dict[int, AuditedBatch]:
        """By round, every attempt that a batch may have, and the masking of tables."""
        found = dict[int, AuditedBatch]()
        for batch in self.record.batches:
            if (tables := batch.hidden_tables()) is not None:
                masking = AuditedBatch(tables.terms, batch_kind(batch.backend), tables, masks_tables=True)
                found.setdefault(int(tables.terms.round), masking)
            for attempt in range(ATTEMPTS):
                hidden = batch.hidden_batch(attempt)
                terms = batch.terms(attempt) if hidden is None else hidden.terms
                tables_round = batch.hidden.tables_round if batch.hidden is not None else 0
                kind = batch_kind(batch.backend)
                found[batch.round + attempt] = AuditedBatch(terms, kind, hidden, tables_round=tables_round)
        return found

    @property
    def backends(self) -> list[ScoreBackend]:
        """Those that the session has batches of, each once."""
        return [batch_kind(name) for name in dict.fromkeys(batch.backend for batch in self.record.batches)]

    @property
    def needs_keys(self) -> bool:
        """Whether it begins with keys between clients; whoever answers questions has them in any case."""
        return self.record.announced_by is not None or any(backend.needs_keys for backend in self.backends)

    @property
    def model(self) -> ThreatModel:
        server: Server = "active" if self.record.adversary == "active" else "semi-honest"
        return ThreatModel(self.record.max_corrupt, self.record.max_dropout, server)

    @property
    def config(self) -> RunConfig:
        """For checks of masked sums, which ask a run's settings whom it is meant to stand against."""
        active = self.record.adversary == "active"
        return RunConfig(
            clients=len(self.record.parties),
            adversary="active" if active else "semi-honest",
            keys="keys" if active else None,
            transcript=True,
        )


def open_session(path: Path) -> ScoredSession | None:
    """The session recorded in a folder; None if it holds none. `UserError` for one that cannot be audited."""
    record = read_session(path) if path.is_dir() else None
    if record is None:
        return None
    session = SessionId(bytes.fromhex(record.session))
    transcript = transcript_path(path, session)
    if not transcript.is_file():
        raise UserError(f"{transcript}: no such file, and without it there is nothing to audit")
    found = ScoredSession(path, record, Recording(transcript, session))
    if record.adversary not in _ADVERSARIES:
        raise UserError(f"{path}: an adversary '{record.adversary}' is not known")
    try:
        found.batches  # noqa: B018  refuses backends that there are not
        found.model  # noqa: B018  refuses shares that are none
        _require_possible(found)
    except (ProtocolError, ValueError) as problem:
        raise UserError(f"{path}: {problem}") from None
    return found


def _require_possible(session: ScoredSession) -> None:
    """`ValueError` for lists that no session has. A server writes them itself, and checks go by them."""
    record, taken = session.record, set[int]()
    parties = set(record.parties)
    if len(parties) != len(record.parties) or len(parties) > _MOST_PARTIES:
        raise ValueError("not a record of score queries (parties that are listed twice, or too many)")
    if record.batches and parties != {one for batch in record.batches for one in (*batch.clients, batch.asker)}:
        raise ValueError("not a record of score queries (other parties than its batches have)")
    for batch in record.batches:
        rounds = set(range(batch.round, batch.round + ATTEMPTS))
        if rounds & taken:
            raise ValueError(f"not a record of score queries (two batches of round {min(rounds & taken)})")
        taken |= rounds
    if any(batch.hidden is not None and batch.hidden.tables_round in taken for batch in record.batches):
        raise ValueError("not a record of score queries (tables that were masked in the round of a batch)")
    outside = [one.name for one in session.backends if one.own_process]
    if record.announced_by is not None and outside:
        raise ValueError(f"not a record of score queries (no question is asked under {', '.join(outside)})")
