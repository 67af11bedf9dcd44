"""The page of a session of questions: whole, well-formed, self-contained, escaped, and in the words of disclosures."""

from collections.abc import Sequence
from typing import Any

import pytest

from protocols.foundation.identifiers import PartyId
from protocols.scores.budget import Standing
from secure_kg.queries.form import Anchor, Projection
from secure_kg.queries.language.places import Place
from secure_kg.queries.language.reading import Question, read_questions
from secure_kg.queries.retrieval.asking import AskedStep, Found, Retrieved, Stored
from secure_kg.queries.retrieval.learned import what_a_step_tells, who_learns_what
from secure_kg.queries.retrieval.parts import Outcome, Session
from secure_kg.queries.retrieval.rules import Exact
from secure_kg.queries.retrieval.terms import Kind, PublicTerms
from secure_kg.report.questions.page import FEW, PageSession, SpentBudgets, ask_page
from secure_kg.report.questions.question import MOST_AT_ONCE, PageQuestion
from tests.support.pages import Page, outward

HOSTILE = "<script>alert(1)</script>'\"&\n<img src=x onerror=alert(2)>\u202e"
STEPS = (
    AskedStep("entities", (2,)),
    AskedStep("projections", (2, 1)),
    AskedStep("scores", (1,)),
    AskedStep("names", (5,)),
)
TEXTS = 'first = ?x : likes(?x, ?y) & has("e01", ?y) | cures(?x, "e02")\n?x : likes("e03", ?x)\n?x : nobody(?x, "e01")'


def terms(**changes: Any) -> PublicTerms:
    clients = tuple(map(PartyId, (1, 2, 3)))
    given: dict[str, Any] = {"backend": "masked", "top": 5, "least": 2} | changes
    return PublicTerms(clients=clients, asker=clients[0], union=18, dim=6, score="squared", clip=16.0, **given)


def answered(means: bool = True, number: int = 3, name: str = "an answer") -> Outcome:
    found = tuple(Found(10 + at, f"{name} {at}" if at else None, -6.5 - at if means else None) for at in range(number))
    return Outcome(Retrieved(found, (2, 3), STEPS, clipped=4), "", 0.25, STEPS)


def page_of(questions: Sequence[PageQuestion], public: PublicTerms | None = None, **more: Any) -> str:
    session = Session([one.outcome for one in questions], 0.125, {PartyId(1): 46_158, PartyId(3): 1_234_567})
    given: dict[str, Any] = {"run": "a-run", "allow_extraction": False, **more}
    return ask_page(PageSession(public=public or terms(), session=session, questions=questions, **given))


def three(means: bool = True) -> list[PageQuestion]:
    problem = 'nobody knows, or tells of, the relation "nobody"'
    outcomes = answered(means), answered(means), Outcome(None, problem, 0.5, STEPS[:2])
    warned = ("unknown relation",)
    return [PageQuestion(one, warned, came) for one, came in zip(read_questions(TEXTS), outcomes, strict=True)]


@pytest.mark.parametrize("backend", ["masked", "topk"])
def test_the_page_is_well_formed_and_needs_nothing_from_outside(backend: str) -> None:
    page = Page(page_of(three(backend == "masked"), terms(backend=backend)))
    assert outward(page) == []
    anchors = page.values("id")
    assert len(anchors) == len(set(anchors))
    assert {link["href"].removeprefix("#") for link in page.all("a")} <= set(anchors)
    assert all(svg["aria-label"] for svg in page.all("svg"))
    assert page.tags.count(("th", {})) == 0


def test_everything_is_told_and_whose_it_is() -> None:
    budgets = [SpentBudgets(3, Standing(7, 1000), Standing(2, None))]
    text = Page(page_of(three(), budgets=budgets, record="recorded")).text
    assert text.index("This page belongs to client 1, the asker") < text.index("first")
    for words in ("2 of 3", "0.12 s", "46.2 kB", "1,234,567", "7 of 1,000", "recorded", "(not named)", "an answer 2"):
        assert words in text
    for words in ('likes(?x, ?x1) & has("e01", ?x1) | cures(?x, "e02")', "unknown relation", "-7.5000", "type 1p"):
        assert words in text
    assert "4 scores of the asker were too large" in text


def test_what_parties_learned_is_in_the_words_of_disclosures() -> None:
    public = terms()
    text = Page(page_of(three(), public, allow_extraction=True)).text
    for party in who_learns_what(public, allow_extraction=True):
        assert party.line() in text
    for kind in (Kind.ENTITIES, Kind.PROJECTIONS, Kind.SCORES, Kind.NAMES):
        for party in what_a_step_tells(kind, public, allow_extraction=True):
            assert all(f"{subject}: {words}" in text for subject, words in party.about.items())
    assert "projections (announced to all; projections: 2, points in each: 1)" in text
    for one in (*public.bundle.disclosures(True),):
        assert one.not_covered in text
    assert "means without a limit" not in page_of(three(), public)


def test_steps_tell_of_their_own_protocol_only() -> None:
    server, others, asker = what_a_step_tells(Kind.NAMES, terms(), allow_extraction=False)
    assert server.about["queries"] == "who asks, when, and for how many names"
    assert others.about["queries"] == "for which positions"
    assert "scores of positions" not in asker.about
    hidden = terms(backend="topk", hidden=True)
    _, others, _ = what_a_step_tells(Kind.HIDDEN, hidden, allow_extraction=False)
    assert others.about["queries"] == "the same"


def test_scores_are_shown_where_the_asker_reads_them() -> None:
    assert "mean score" in page_of(three())
    marks = [style for style in Page(page_of(three()[:1])).values("style") if style.startswith("left:")]
    assert marks == ["left:100.0%", "left:50.0%", "left:0.0%"]
    without = page_of(three(means=False), terms(backend="topk"))
    assert "mean score" not in without
    assert "left:" not in "".join(Page(without).values("style"))


def test_stored_answers_are_told_from_predicted_ones() -> None:
    found = Found(10, "both", None, True), Found(11, "one", None, False)
    question = read_questions(TEXTS)[1]
    steps = (*STEPS, AskedStep("exact", (1,)))
    stored = Stored((10, 12), (Found(10, "both"),))
    beside = PageQuestion(question, (), Outcome(Retrieved(found, (2, 3), steps, stored=stored), "", 0.1, steps))
    text = Page(page_of([beside], terms(backend="topk", exact=Exact.BESIDE))).text
    for words in ("known", "predicted", "Stored answers: 2, of which 1 are shown", "stored facts beside them"):
        assert words in text
    alone = PageQuestion(question, (), Outcome(Retrieved((), (), steps[-1:], stored=stored), "", 0.1, steps[-1:]))
    text = Page(page_of([alone] * 2, terms(backend="topk", exact=Exact.ONLY))).text
    assert "from stored facts only" in text
    assert "Nobody has an answer." not in text
    assert "predicted" not in text.split("What each party learned")[0]


def test_a_question_that_came_to_nothing_is_there_with_its_line_and_its_steps() -> None:
    page = Page(page_of(three()[2:]))
    assert 'no answer nobody knows, or tells of, the relation "nobody"' in page.text
    assert "Who was asked what: 2 steps" in page.text
    assert 'nobody(?x, "e01")' in page.text
    never = PageQuestion(read_questions(TEXTS)[0], (), Outcome(None, "was not asked"))
    assert "Who was asked what" not in Page(page_of([never])).text


def test_hostile_words_stay_words() -> None:
    question = Question(Projection(HOSTILE, Anchor(HOSTILE)), HOSTILE, Place(1, 1))
    questions = [
        PageQuestion(question, (HOSTILE,), answered(name=HOSTILE)),
        PageQuestion(question, (), Outcome(None, HOSTILE)),
    ]
    source = page_of(questions, run=HOSTILE, record=HOSTILE)
    page = Page(source)
    assert not {"script", "img"} & {tag for tag, _ in page.tags}
    assert not [attributes for _, attributes in page.tags if any(name.startswith("on") for name in attributes)]
    assert outward(page) == []
    assert "\u202e" not in source
    assert "<script>alert(1)</script>" in page.text


def test_a_hundred_questions_begin_with_a_table_and_keep_their_steps_folded() -> None:
    page = Page(page_of(three()[:1] * 100))
    assert [link["href"] for link in page.all("a")] == [f"#question-{number}" for number in range(1, 101)]
    assert not [one for one in page.all("details") if "open" in one]
    few = Page(page_of(three()[:1] * FEW))
    assert len([one for one in few.all("details") if "open" in one]) == FEW
    assert not Page(page_of(three()[:1])).all("a")


def test_many_answers_are_folded() -> None:
    many = [PageQuestion(read_questions(TEXTS)[1], (), answered(number=MOST_AT_ONCE + 3))]
    assert "3 more answers" in Page(page_of(many)).text
    nobody = [PageQuestion(read_questions(TEXTS)[1], (), answered(number=0))]
    assert "Nobody has an answer." in Page(page_of(nobody)).text
