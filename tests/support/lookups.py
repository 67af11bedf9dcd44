"""Lookups as conversations over threads."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from protocols.exact.circuit import Sets
from protocols.exact.client import ExactClient
from protocols.exact.formula import Formula
from protocols.foundation.errors import Aborted, SumAbandoned
from protocols.foundation.identifiers import SERVER, PartyId, RoundId
from protocols.holders.secret import SecretHolderClient
from protocols.lookup_registry import LOOKUPS
from protocols.lookups import vectors
from protocols.lookups.names import NamesClient
from protocols.lookups.vectors import Vectors, VectorTerms
from protocols.scores import batches
from protocols.scores.budget import Budget
from protocols.scores.masked import MaskedScoreClient
from protocols.scores.terms import ScoreTerms
from protocols.session.conversation import MAX_REASON, Conversation, Failed
from protocols.session.patience import Patience
from protocols.session.server_session import ServerSession
from protocols.sums.secagg.keys import ClientKeys, ServerKeys
from secure_kg.runs.records.scores import ScoreBatch
from secure_kg.runs.score_recording import of_session, recorded
from tests.support.group_keys import Kind
from tests.support.in_threads import PATIENCE, at_once, converse
from tests.support.score_batches import TRUSTING, Wrap
from tests.support.sum_conversations import Stopped

REQUEST = b"the request"


@dataclass(frozen=True)
class VectorsAsked:
    """One batch of vectors, and everybody's answers."""

    terms: VectorTerms
    answers: Mapping[PartyId, Vectors]
    request: bytes = REQUEST


@dataclass(frozen=True)
class NamesAsked:
    """Names of positions, and what everybody is willing to name."""

    terms: ScoreTerms
    positions: Sequence[int]
    named: Mapping[PartyId, Mapping[int, str]]


@dataclass(frozen=True)
class ExactAsked:
    """A formula, and everybody's stored answers of its atoms."""

    terms: ScoreTerms
    formula: Formula
    sets: Mapping[PartyId, Sets]
    request: bytes = REQUEST


Lookup = VectorsAsked | NamesAsked | ExactAsked


@dataclass
class Looked:
    """What came of a session."""

    found: list[Any] = field(default_factory=list)
    problems: dict[PartyId, Exception] = field(default_factory=dict)
    seen: dict[PartyId, list[bytes | list[int]]] = field(default_factory=dict)
    """What each of the others was asked."""


def look_up(
    lookups: Sequence[Lookup],
    kind: Kind = TRUSTING["semi-honest"],
    wrap: Mapping[PartyId, Wrap] | None = None,
    budgets: Mapping[PartyId, Budget] | None = None,
    patience: Patience | None = None,
    record: Path | None = None,
) -> Looked:
    """One session; whoever cannot go on says so, and the server ends it all."""
    parties, result, wraps = lookups[0].terms.clients, Looked(), wrap or {}

    def client_part(straight: Conversation) -> None:
        me = straight.transport.party
        keys = ClientKeys.agree(at_once(straight), kind.client(parties, me))
        conversation = wraps[me](straight) if me in wraps else straight
        masked = MaskedScoreClient(
            keys.vectors, SecretHolderClient(keys.vectors, keys.key), (budgets or {}).get(me)
        )
        names, exact = NamesClient(keys.vectors), ExactClient(keys.vectors, (budgets or {}).get(me))
        try:
            for lookup in lookups:
                if isinstance(lookup, ExactAsked):
                    _take_part_exactly(lookup, conversation, exact, result)
                else:
                    _take_part(lookup, conversation, masked, names, result)
        except Stopped:
            return
        except Exception as problem:
            result.problems[me] = problem
            if not isinstance(problem, SumAbandoned | Aborted):
                straight.send(SERVER, Failed(str(problem)[:MAX_REASON]), RoundId(0))

    def server_part(straight: Conversation) -> None:
        if record is None:
            serve(straight)
            return
        record.mkdir(exist_ok=True)
        made = [ScoreBatch.of(*_recorded_as(lookup)) for lookup in lookups]
        with recorded(record, of_session(straight.session, parties, kind.model, made), straight.transport):
            serve(straight)

    def serve(straight: Conversation) -> None:
        session = ServerSession(straight, set(parties), patience or Patience.fixed(PATIENCE), lambda who, step: None)
        keys = ServerKeys.agree(session, kind.server(parties))
        if SERVER in wraps:
            session = replace(session, conversation=wraps[SERVER](straight))
        try:
            for lookup in lookups:
                name, terms = _recorded_as(lookup)
                batches.serve(LOOKUPS[name].server(keys), session, terms)
        except Exception as problem:
            result.problems[SERVER] = problem
            straight.abort(parties, str(problem), RoundId(0))

    converse({SERVER: server_part, **dict.fromkeys(parties, client_part)})
    return result


def _recorded_as(lookup: Lookup) -> tuple[str, ScoreTerms]:
    if isinstance(lookup, VectorsAsked):
        return "vectors", lookup.terms.scores
    return ("exact" if isinstance(lookup, ExactAsked) else "names"), lookup.terms


def _take_part(
    lookup: VectorsAsked | NamesAsked,
    conversation: Conversation,
    masked: MaskedScoreClient,
    names: NamesClient,
    result: Looked,
) -> None:
    me, session = conversation.transport.party, at_once(conversation)
    seen = result.seen.setdefault(me, [])
    match lookup:
        case VectorsAsked(terms=terms, answers=answers) if me == terms.asker:
            result.found.append(vectors.ask(masked, session, terms, lookup.request, answers[me]))
        case VectorsAsked(terms=terms, answers=answers):
            vectors.answer(masked, session, terms, _noting(seen, lambda request: answers[me]))
        case NamesAsked(terms=terms, positions=positions) if me == terms.asker:
            result.found.append(names.ask(session, terms, positions))
        case NamesAsked(terms=terms, named=named):
            names.answer(session, terms, _noting(seen, lambda positions: named.get(me, {})))


def _take_part_exactly(lookup: ExactAsked, conversation: Conversation, exact: ExactClient, result: Looked) -> None:
    me, session = conversation.transport.party, at_once(conversation)
    seen = result.seen.setdefault(me, [])
    if me == lookup.terms.asker:
        result.found.append(exact.ask(session, lookup.terms, lookup.formula, lookup.request, lookup.sets[me]))
    else:
        exact.answer(session, lookup.terms, _noting(seen, lambda request: lookup.sets[me]))


def _noting(seen: list[Any], answering: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def note(request: Any) -> Any:
        seen.append(request)
        return answering(request)

    return note
