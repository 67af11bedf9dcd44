"""Declarations of a score session: which messages each of its batches has, and what the server sees in them."""

from collections.abc import Iterator

from protocols.foundation.disclosure import NOTHING, Disclosure, Field, Fields
from protocols.foundation.identifiers import SETUP
from protocols.lookup_registry import LOOKUPS, batch_kind
from protocols.lookups.disclosure import STEPS
from protocols.registry import SCORES, SECRETLY_COUNTED
from protocols.scores.topk.disclosure import HIDDEN_QUERIES
from protocols.session import conversation as talk
from protocols.session.control import RefuseShares
from protocols.session.disclosure import CHANNELS, GROUP_KEY
from protocols.sums.secagg.disclosure import MASKED_SUMS
from secure_kg.audit.ledger import Ledger
from secure_kg.audit.scores.session import ScoredSession
from secure_kg.audit.view.declarations import field_of
from secure_kg.audit.view.read import Observation

_ALWAYS = (talk.Failed, talk.Abort, talk.Abandon, RefuseShares)


class ScoreLedger(Ledger):
    """The ledger of a score session. A message is judged by the batch that its round belongs to."""

    def __init__(self, session: ScoredSession) -> None:
        super().__init__(session.config)
        self._session = session

    def observe(self, observation: Observation, *, heard: bool = True) -> None:
        """What a client sends unasked, of a kind that its round has no use for, is the client's doing."""
        if heard or observation.direction == "sent" or self._is_allowed(observation):
            super().observe(observation)

    def _purpose(self, observation: Observation) -> str:
        """With the backend: one message may be of another class under another one."""
        batch = self._session.batches.get(observation.round)
        return f"{observation.purpose}/{batch.backend.name}" if batch and observation.purpose else observation.purpose

    def _declared(self, observation: Observation, name: str) -> Field | None:
        kind = type(observation.message)
        known = [*(one.disclosure for one in (*SCORES.values(), *LOOKUPS.values())), HIDDEN_QUERIES, STEPS]
        ours = [*_disclosures(self._session, observation.round), *known]
        for fields in _fields(ours):
            if name in fields.get(kind, {}):
                return fields[kind][name]
        return field_of(kind, name, self._config)

    def _is_allowed(self, observation: Observation) -> bool:
        kind = type(observation.message)
        if observation.peer not in self._session.record.parties:
            return False
        if kind in _ALWAYS or (kind in STEPS.fields and self._session.record.announced_by is not None):
            return True
        signed = self._session.record.adversary == "active"
        used = _disclosures(self._session, observation.round)
        return any(kind in one.fields or (signed and kind in one.signed_fields) for one in used)


def _disclosures(session: ScoredSession, round_id: int) -> list[Disclosure]:
    """Of the protocols that have messages in a round; of a round that belongs to no batch nobody has any."""
    batch = session.batches.get(round_id)
    if batch is None:
        return [CHANNELS, GROUP_KEY] if round_id == SETUP and session.needs_keys else []
    counted = batch.counts_holders and batch.backend.needs_keys
    return [
        batch.backend.disclosure if batch.hidden is None else HIDDEN_QUERIES,
        *([SECRETLY_COUNTED.disclosure] if counted else []),
        *([MASKED_SUMS] if counted or batch.backend.masked_terms is not None else []),
    ]


def _fields(disclosures: list[Disclosure]) -> Iterator[Fields]:
    for one in disclosures:
        yield one.fields
        yield one.signed_fields


def may_learn(session: ScoredSession) -> list[str]:
    """In words: what the backends of a session mean the server to learn, and nothing else."""
    told = ["when each message comes"]
    open_ones = dict.fromkeys(batch.backend for batch in session.record.batches if batch.hidden is None)
    for name in open_ones:
        backend = batch_kind(name)
        allowed = session.record.allow_extraction and backend.unlimited is not None
        told += _told(name, backend.disclosures(allowed))
    if session.record.announced_by is not None:
        told += _told(STEPS.title, (STEPS,))
    if any(batch.hidden is not None for batch in session.record.batches):
        told += _told(HIDDEN_QUERIES.title, (HIDDEN_QUERIES,))
    return told


def _told(name: str, disclosures: tuple[Disclosure, ...]) -> list[str]:
    return [
        f"{name}, {subject.value}: {learned.server}"
        for one in disclosures
        for subject, learned in one.learned.items()
        if learned.server != NOTHING
    ]
