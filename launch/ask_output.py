"""Answers as `launch.ask` shows them, and as it writes them down."""

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from secure_kg.data.prefixes import short_names
from secure_kg.foundation.console import say, table
from secure_kg.queries.language.reading import Question
from secure_kg.queries.language.writing import to_text
from secure_kg.queries.naming import UnknownName, name_shown, unknown_names
from secure_kg.queries.retrieval.asking import AskedStep, Found, Stored
from secure_kg.queries.retrieval.learned import who_learns_what
from secure_kg.queries.retrieval.members import AskersView
from secure_kg.queries.retrieval.over_run import AskSettings
from secure_kg.queries.retrieval.parts import Outcome, Session
from secure_kg.queries.retrieval.rules import Exact

_WIDTH: Final = 100
_NO_PREFIXES: Final[Mapping[str, str]] = {}


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """A question, its names that the asker's own graph lacks, and what came of it."""

    question: Question
    unknown: tuple[UnknownName, ...]
    outcome: Outcome

    @property
    def text(self) -> str:
        return to_text(self.question.query, self.question.name)

    @property
    def warnings(self) -> list[str]:
        return [f"{one.warning()} (in the asker's own graph; others are asked)" for one in self.unknown]


def asked_question(run: AskersView, question: Question, outcome: Outcome) -> AskedQuestion:
    unknown = unknown_names(question.query, run.own.entities, run.own.relations)
    return AskedQuestion(question, tuple(unknown), outcome)


def show_question(run: AskersView, settings: AskSettings, one: AskedQuestion) -> None:
    """For people: a question, and what has come of it."""
    say(f"question: {one.text}")
    for warning in one.warnings:
        say(f"warning: {warning}")
    if one.outcome.retrieved is not None:
        if one.outcome.retrieved.stored is not None:
            _show_stored(one.outcome.retrieved.stored, run.own.prefixes, silent=settings.rules.exact == frozenset())
        if run.public.exact is not Exact.ONLY:
            _show_answers(one.outcome.retrieved.answers, run.own.prefixes)
        if one.outcome.retrieved.clipped:
            say(f"warning: {one.outcome.retrieved.clipped} scores of the asker were too large and were clipped")
    say(f"{_steps(one.outcome)}; {one.outcome.seconds:.2f} s")


def show_end(run: AskersView, settings: AskSettings, session: Session) -> None:
    """For people: what all questions together have told whom, and what they cost."""
    if not session.asked:
        say("no step was announced: nobody learned anything of these questions")
    for party in who_learns_what(run.public, settings.allow_extraction, session.asked) if session.asked else ():
        say(textwrap.fill(party.line(), _WIDTH, subsequent_indent="  "))
    own = session.traffic.get(run.public.asker, 0)
    others = [size for party, size in session.traffic.items() if party != run.public.asker]
    told = f", {max(others):,} by another client at most" if others else ""  # in processes of their own they count, too
    say(f"{session.setup_seconds:.2f} s of set-up; bytes sent and received: {own:,} by the asker{told}")
    if settings.record is not None:
        say(f"what the server saw: {settings.record} (python -m launch.audit {settings.record} --out DIR)")


def _show_answers(answers: tuple[Found, ...], prefixes: Mapping[str, str] = _NO_PREFIXES) -> None:
    names, legend = _names(answers, prefixes)
    means = any(answer.mean is not None for answer in answers)
    facts = any(answer.stored is not None for answer in answers)
    columns = ("rank", "answer", "position", *(["mean score"] if means else []), *(["known"] if facts else []))
    rows: list[list[str | int]] = [
        [
            rank,
            name,
            answer.position,
            *([f"{answer.mean:.4f}"] if answer.mean is not None else []),
            *(["stored" if answer.stored else "predicted"] if answer.stored is not None else []),
        ]
        for rank, (answer, name) in enumerate(zip(answers, names, strict=True), start=1)
    ]
    table("", columns, rows)
    for line in legend:
        say(line)


def _names(answers: Sequence[Found], prefixes: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """Names of answers as people read them, and what prefixes in them stand for."""
    named = [answer.name for answer in answers if answer.name is not None]
    short, legend = short_names(named, prefixes)
    known = dict(zip(named, short, strict=True))
    names = [name_shown(answer.name) for answer in answers]
    return [known[name] if name in known and known[name] != name else name for name in names], legend


def _show_stored(stored: Stored, prefixes: Mapping[str, str], *, silent: bool) -> None:
    if silent:
        say("warning: no client tells others of stored facts; --allow-exact lets them")
    count, shown = len(stored.positions), len(stored.answers)
    say(f"stored answers: {count}" + (f", of which {shown} are shown" if shown < count else ""))
    if shown:
        names, legend = _names(stored.answers, prefixes)
        places = [one.position for one in stored.answers]
        table("", ("stored answer", "position"), list(zip(names, places, strict=True)))
        for line in legend:
            say(line)


def _steps(outcome: Outcome) -> str:
    if outcome.retrieved is None:
        return f"no answer: {outcome.problem}"
    told = [f"{step.kind} ({', '.join(map(str, step.sizes))})" for step in outcome.retrieved.steps]
    return f"steps: {', '.join(told)}"


def to_json(run: AskersView, settings: AskSettings, session: Session, asked: list[AskedQuestion]) -> dict[str, Any]:
    """All of it. Without a record of the run's own settings: its folder has these."""
    public = run.public
    return {
        "asker": int(public.asker),
        "clients": [int(party) for party in public.clients],
        "scores": public.backend,
        "hide_query": public.hidden,
        "top_k": public.top,
        "min_holders": public.least,
        "name_policy": settings.rules.names,
        "exact": public.exact.value,
        "questions": [_question(one) for one in asked],
        "learned": {one.party: one.about for one in who_learns_what(public, settings.allow_extraction, session.asked)},
        "setup_seconds": session.setup_seconds,
        "bytes": {str(int(party)): size for party, size in sorted(session.traffic.items())},
    }


def _question(one: AskedQuestion) -> dict[str, Any]:
    retrieved = one.outcome.retrieved
    answers = retrieved.answers if retrieved is not None else ()
    return {
        "name": one.question.name,
        "question": one.text,
        "warnings": one.warnings,
        "problem": one.outcome.problem,
        "seconds": one.outcome.seconds,
        "answers": [
            {
                "rank": rank,
                "name": answer.name,
                "position": answer.position,
                "mean": answer.mean,
                "stored": answer.stored,
            }
            for rank, answer in enumerate(answers, start=1)
        ],
        "stored": _stored(retrieved.stored) if retrieved is not None else None,
        "contributors": list(retrieved.contributors) if retrieved is not None else [],
        "clipped": retrieved.clipped if retrieved is not None else 0,
        "steps": [_step(step) for step in retrieved.steps] if retrieved is not None else [],
    }


def _stored(stored: Stored | None) -> dict[str, Any] | None:
    """All positions, and names of those that are shown; None if stored facts were not asked for."""
    if stored is None:
        return None
    return {
        "count": len(stored.positions),
        "positions": list(stored.positions),
        "answers": [{"name": one.name, "position": one.position} for one in stored.answers],
    }


def _step(step: AskedStep) -> dict[str, Any]:
    """With the bytes that a lookup makes the asker, and each other client, send at most if nobody drops out."""
    sent = {"asker": step.sent.asker, "another": step.sent.another} if step.sent is not None else None
    return {"kind": step.kind, "sizes": list(step.sizes), "expected_bytes_sent": sent}
