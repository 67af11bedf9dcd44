"""One question on the page of a session: its text and picture, its answers, and who was shown what in which step."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from secure_kg.queries.language.reading import Question
from secure_kg.queries.language.writing import to_text
from secure_kg.queries.naming import name_shown
from secure_kg.queries.retrieval.asking import AskedStep, Found, Stored
from secure_kg.queries.retrieval.learned import PartyLearns, what_a_step_tells
from secure_kg.queries.retrieval.parts import Outcome
from secure_kg.queries.retrieval.terms import SIZES, Kind, PublicTerms
from secure_kg.queries.structures import type_of
from secure_kg.report.html import Html, chip, details, quiet, section, table, tag
from secure_kg.report.query_picture import query_picture

MOST_AT_ONCE: Final = 20
"""Answers that are shown; the others are there on demand."""


@dataclass(frozen=True, slots=True)
class PageQuestion:
    """A question, what the asker was warned of, and what came of it."""

    question: Question
    warnings: tuple[str, ...]
    outcome: Outcome

    @property
    def text(self) -> str:
        return to_text(self.question.query, self.question.name)

    @property
    def answers(self) -> tuple[Found, ...]:
        """Ranked ones, or stored ones where no others were asked for."""
        retrieved = self.outcome.retrieved
        if retrieved is None:
            return ()
        return retrieved.answers or (retrieved.stored.answers if retrieved.stored is not None else ())

    @property
    def kind(self) -> str:
        """The name of its type, if the field has one."""
        return type_of(self.question.query) or ""


@dataclass(frozen=True, slots=True)
class _Column:
    """A column of the table of answers. It is there if it has a word for any of them."""

    head: str
    cell: Callable[[int, Found], str | None]


def written(text: str) -> Html:
    """A question in which no line ends inside of a variable."""
    parts = re.split(r"(\?x\d*)", text)
    whole = (tag("span", part, class_="whole") if number % 2 else part for number, part in enumerate(parts))
    return tag("code", *whole)


def anchor_of(number: int) -> str:
    return f"question-{number}"


def question_section(
    number: int, one: PageQuestion, public: PublicTerms, *, allow_extraction: bool, opened: bool
) -> Html:
    """`opened`: whether its steps are shown without being asked for."""
    steps = one.outcome.steps
    shown = [_timeline(steps, public, allow_extraction)] if steps else []
    told = f"Who was asked what: {_counted(len(steps), 'step')}"
    name = one.question.name
    return section(
        anchor_of(number),
        f"Question {number}" if name is None else f"Question {number}: {name}",
        tag("p", written(one.text), class_="question"),
        query_picture(one.question.query),
        *(tag("p", chip("warning", "medium"), " ", line) for line in one.warnings),
        *_result(one),
        quiet(_in_brief(one)),
        *(details(told, *shown, opened=opened) for _ in shown),
    )


def _result(one: PageQuestion) -> list[Html]:
    retrieved = one.outcome.retrieved
    if retrieved is None:
        return [tag("p", chip("no answer", "high"), " ", one.outcome.problem)]
    clipped = f"{retrieved.clipped} scores of the asker were too large and were clipped"
    warning = [tag("p", chip("warning", "medium"), " ", clipped)] if retrieved.clipped else []
    stored = [] if retrieved.stored is None else _stored(retrieved.stored)
    ranked = _answers(retrieved.answers) if retrieved.answers or retrieved.stored is None else []
    heading = [tag("p", "Ranked answers of the model:")] if stored and ranked else []
    return [*stored, *heading, *ranked, *warning]


def _stored(stored: Stored) -> list[Html]:
    """What the facts of all clients give, as far as they tell."""
    count, shown = len(stored.positions), len(stored.answers)
    told = f"Stored answers: {count}" + (f", of which {shown} are shown" if shown < count else "")
    body = [["", name_shown(one.name), str(one.position)] for one in stored.answers]
    return [tag("p", told), *([table(("", "stored answer", "position"), body, "answers")] if body else [])]


def _known(found: Found) -> str | None:
    return None if found.stored is None else "stored" if found.stored else "predicted"


def _answers(answers: Sequence[Found]) -> list[Html]:
    if not answers:
        return [quiet("Nobody has an answer.")]
    columns = [
        _Column("rank", lambda rank, found: str(rank)),
        _Column("answer", lambda rank, found: name_shown(found.name)),
        _Column("position", lambda rank, found: str(found.position)),
        _Column("mean score", lambda rank, found: None if found.mean is None else f"{found.mean:.4f}"),
        _Column("known", lambda rank, found: _known(found)),
        *_scale([found.mean for found in answers if found.mean is not None]),
    ]
    lines = [[column.cell(rank, found) for column in columns] for rank, found in enumerate(answers, start=1)]
    there = [place for place in range(len(columns)) if any(line[place] is not None for line in lines)]
    head = [columns[place].head for place in there]
    body = [[line[place] or "" for place in there] for line in lines]
    parts = [table(head, body[:MOST_AT_ONCE], "answers")]
    if more := body[MOST_AT_ONCE:]:
        parts.append(details(f"{_counted(len(more), 'more answer')}", table(head, more, "answers")))
    return parts


def _scale(means: Sequence[float]) -> list[_Column]:
    """Means as marks on a line from the lowest to the highest: bars would have to begin at zero."""
    if len(means) < 2 or min(means) == max(means):
        return []
    low, high = min(means), max(means)

    def mark(rank: int, found: Found) -> str | None:
        if found.mean is None:
            return None
        share = 100 * (found.mean - low) / (high - low)
        return tag("span", tag("b", style=f"left:{share:.1f}%"), class_="score")

    return [_Column(f"from {low:.2f} to {high:.2f}", mark)]


def _in_brief(one: PageQuestion) -> str:
    outcome = one.outcome
    told = [f"type {one.kind}"] if one.kind else []
    told += [f"{outcome.seconds:.2f} s", _counted(len(outcome.steps), "step")]
    if outcome.retrieved is not None and outcome.retrieved.contributors:
        told.append(f"scored by the asker and {_clients(outcome.retrieved.contributors)}")
    return "; ".join(told)


def _timeline(steps: Sequence[AskedStep], public: PublicTerms, allow_extraction: bool) -> Html:
    """The steps in their order. What is in a step is sealed; its announcement is not."""
    lines = []
    for step in steps:
        kind = Kind(step.kind)
        sizes = ", ".join(f"{what}: {size}" for size, what in zip(step.sizes, SIZES[kind], strict=True))
        parties = what_a_step_tells(kind, public, allow_extraction)
        head = tag("div", tag("b", step.kind), f" (announced to all; {sizes})")
        lines.append(tag("li", head, tag("dl", *map(_party, parties), class_="parties")))
    return tag("ol", *lines, class_="steps")


def _party(learns: PartyLearns) -> Html:
    words = [f"{subject}: {told}" for subject, told in learns.about.items()] or ["nothing"]
    return tag("div", tag("dt", f"{learns.party} learned of"), *(tag("dd", line) for line in words))


def _clients(numbers: Sequence[int]) -> str:
    return ("client " if len(numbers) == 1 else "clients ") + ", ".join(map(str, numbers))


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
