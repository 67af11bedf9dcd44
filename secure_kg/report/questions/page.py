"""The page of a session of questions, for the asker: it holds the questions and their answers.

Names come from whoever wrote the question and from other clients. They are text on the page and nothing else
(`secure_kg.report.html`). What parties learned is in the words of the disclosures of the protocols.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from protocols.scores.budget import Standing
from secure_kg.queries.language.writing import to_text
from secure_kg.queries.naming import name_shown
from secure_kg.queries.retrieval.learned import protocols_of, who_learns_what
from secure_kg.queries.retrieval.parts import Session
from secure_kg.queries.retrieval.rules import Exact
from secure_kg.queries.retrieval.terms import PublicTerms
from secure_kg.report.html import Html, cards, details, document, megabytes, quiet, section, stacked_table, table, tag
from secure_kg.report.questions.question import PageQuestion, anchor_of, question_section, written

FEW: Final = 3
"""Questions of which everything is shown at once."""
_SHORT: Final = 90


@dataclass(frozen=True, slots=True)
class SpentBudgets:
    """What a client that answers has given so far of its budgets; None: there is no such budget."""

    client: int
    vectors: Standing | None
    means: Standing | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PageSession:
    """Everything that the page is made from."""

    run: str
    public: PublicTerms
    allow_extraction: bool
    session: Session
    questions: Sequence[PageQuestion]
    budgets: Sequence[SpentBudgets] = ()
    """Empty where they are not at hand."""
    record: str | None = None
    """Where the server's record is."""
    one_process: bool = True


def ask_page(told: PageSession) -> str:
    title = f"Questions over {told.run}"
    opened = len(told.questions) <= FEW
    return document(
        title,
        tag("p", _whose(told), class_="warning"),
        tag("h1", title),
        quiet(_subtitle(told.public)),
        cards(_figures(told)),
        *_summary(told.questions),
        *(
            question_section(number, one, told.public, allow_extraction=told.allow_extraction, opened=opened)
            for number, one in enumerate(told.questions, start=1)
        ),
        section("learned", "What each party learned", *_learned(told)),
        section("limits", "What is not covered", *_not_covered(told)),
        section("costs", "Costs", *_costs(told)),
    )


def _whose(told: PageSession) -> str:
    return (
        f"This page belongs to client {told.public.asker}, the asker: it holds its questions and their answers. "
        "Handle it as you would handle them."
    )


def _subtitle(public: PublicTerms) -> str:
    asks = f"client {public.asker} of {len(public.clients)} asks; at most {public.top} answers"
    if public.exact is Exact.ONLY:
        return f"{asks}; from stored facts only"
    hidden = ", hidden queries" if public.hidden else ""
    stored = "; stored facts beside them" if public.exact is Exact.BESIDE else ""
    scored = f"an entity is scored if {public.least} or more others hold it"
    return f"{asks}; scores by {public.backend}{hidden}; {scored}{stored}"


def _figures(told: PageSession) -> list[tuple[str, str]]:
    questions, traffic = told.questions, told.session.traffic
    answered = sum(one.outcome.retrieved is not None for one in questions)
    others = [size for party, size in traffic.items() if party != told.public.asker]
    return [
        (f"{answered} of {len(questions)}", "questions with answers"),
        (f"{told.session.setup_seconds:.2f} s", "set-up"),
        (f"{sum(one.outcome.seconds for one in questions):.2f} s", "questions"),
        (megabytes(traffic.get(told.public.asker, 0)), "sent and received by the asker"),
        (megabytes(max(others, default=0)), "by another client at most"),
    ]


def _summary(questions: Sequence[PageQuestion]) -> list[Html]:
    """A table of contents, if there is more than one."""
    if len(questions) < 2:
        return []
    body = [
        [
            tag("a", str(number), href=f"#{anchor_of(number)}"),
            one.question.name or "",
            written(_cut(to_text(one.question.query))),
            one.kind,
            _best(one),
            str(len(one.outcome.steps)),
            f"{one.outcome.seconds:.2f}",
        ]
        for number, one in enumerate(questions, start=1)
    ]
    head = ("", "name", "question", "type", "best answer", "steps", "seconds")
    there = [place for place in range(len(head)) if place == 0 or any(line[place] for line in body)]
    shown = stacked_table([head[place] or "number" for place in there], [[line[at] for at in there] for line in body])
    return [section("questions", "Questions", shown)]


def _best(one: PageQuestion) -> str:
    if one.outcome.retrieved is not None and not one.answers:
        return "none"
    if one.answers:
        return name_shown(one.answers[0].name)
    return tag("span", _cut(one.outcome.problem), class_="missing")


def _cut(text: str) -> str:
    return text if len(text) <= _SHORT else text[: _SHORT - 1] + "…"


def _learned(told: PageSession) -> list[Html]:
    parties = who_learns_what(told.public, told.allow_extraction, told.session.asked)
    subjects = dict.fromkeys(subject for party in parties for subject in party.about)
    body = [[subject, *(party.about.get(subject, "nothing") for party in parties)] for subject in subjects]
    everything = stacked_table(("", *(party.party for party in parties)), body)
    process = "All parties were threads of one process. Whoever ran it could read everything, whatever stands here."
    return [
        *(tag("p", party.line()) for party in parties),
        *([quiet(process)] if told.one_process else []),
        details("All subjects, with participation and holders", everything),
    ]


def _not_covered(told: PageSession) -> list[Html]:
    head = ("", "stands against", "what a client on the server's side opens to it", "assumes", "not covered")
    used = protocols_of(told.public, told.allow_extraction)
    body = [[one.title, one.against, one.with_a_client, one.assumes, one.not_covered] for one in used]
    answers = "A predicted answer is no better than the model."
    return [tag("p", answers), stacked_table(head, body)]


def _costs(told: PageSession) -> list[Html]:
    asker = told.public.asker
    spent = {one.client: one for one in told.budgets}
    vectors = any(one.vectors is not None for one in told.budgets)
    means = any(one.means is not None for one in told.budgets)
    head = ["", "bytes", *(["vectors of its budget"] * vectors), *(["means of its budget"] * means)]
    body = []
    for party, size in sorted(told.session.traffic.items()):
        budgets = spent.get(int(party))
        line = [f"client {party}, the asker" if party == asker else f"client {party}", f"{size:,}"]
        line += [_standing(None if budgets is None else budgets.vectors)] * vectors
        line += [_standing(None if budgets is None else budgets.means)] * means
        body.append(line)
    recorded = f"What the server saw is recorded in {told.record}, for an audit (launch.audit)."
    given = "Budgets: what a client has helped to find or to open of this model so far, in all sessions."
    notes = ["Bytes are those sent and received.", *([given] if spent else [])]
    return [table(head, body), quiet(" ".join(notes)), *([quiet(recorded)] if told.record is not None else [])]


def _standing(standing: Standing | None) -> str:
    if standing is None:
        return ""
    return f"{standing.spent:,}" if standing.limit is None else f"{standing.spent:,} of {standing.limit:,}"
