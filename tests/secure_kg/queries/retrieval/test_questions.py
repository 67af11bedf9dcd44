"""Whole questions over threads: twins, what nobody knows, rules and budgets of those who answer."""

from pathlib import Path
from typing import Any

import pytest

from protocols.scores.budget import Budget, MemoryRecord
from secure_kg.models.queries.shapes import Score
from secure_kg.queries.language.reading import read_question
from secure_kg.queries.retrieval.rules import Rules
from secure_kg.queries.retrieval.session import Budgets
from secure_kg.runs.score_budget import MeansRecord, atom_budget_of
from tests.support.retrieval import ENTITIES, SHARED, World, answers, ask, positions_of

CHAIN = '?x : cures(?y, ?x) & has("e01", ?y)'
UNION = '?x : likes(?x, "e03") | owns(?y, ?x) & cures(?y, "e12") & has(?y, "e00")'
OTHER = '?x : cures(?y, ?x) & has("e02", ?y)'
WAYS: list[dict[str, Any]] = [
    *({"backend": backend} for backend in ("topk", "masked", "plain")),
    {"backend": "topk", "hidden": True},
]


def names_of(found: list[tuple[int, str | None]]) -> list[str | None]:
    return [name for _, name in found]


@pytest.mark.parametrize(
    ("encoder", "score", "question"),
    [("gqe", "squared", UNION), ("gqe", "l2", CHAIN), ("q2p", "dot", UNION), ("tree-lstm", "dot", CHAIN)],
)
def test_all_ways_give_the_answers_of_one_party_that_has_everything(encoder: str, score: Score, question: str) -> None:
    world = World(encoder, score)
    expected = world.best(read_question(question), 5)
    for settings in WAYS:
        found = answers(ask(world, question, **settings))
        assert [position for position, _ in found] == expected, settings
        assert list(positions_of([name for _, name in found if name])) == expected


def test_a_negation_is_encoded_or_refused_before_anybody_is_asked() -> None:
    negated = '?x : likes(?x, "e03") & !has(?x, "e05")'
    assert len(answers(ask(World("q2p", "dot"), negated))) == 5
    session = ask(World(), negated, CHAIN)
    assert "no definition of a negation" in session.outcomes[0].problem
    assert session.outcomes[1].retrieved is not None
    assert [step.kind for step in session.outcomes[1].retrieved.steps].count("entities") == 1


@pytest.mark.parametrize("backend", ["topk", "masked", "plain"])
def test_twins_under_one_rule_of_holders(backend: str) -> None:
    """Entities of one client only are answers to nobody else under two holders."""
    world = World()
    found = names_of(answers(ask(world, UNION, backend=backend, least=2, top=14)))
    own = world.held(1).entities
    assert set(found) == {*own, *(name for name in ENTITIES[:SHARED:3])}
    assert found == names_of(answers(ask(world, UNION, backend="plain", least=2, top=14)))


def test_several_questions_in_one_session_and_another_asker() -> None:
    world, both = World(), (UNION, CHAIN)
    session = ask(world, *both, asker=2)
    for number, question in enumerate(both):
        assert [position for position, _ in answers(session, number)] == world.best(read_question(question), 5)


def test_what_is_asked_follows_from_the_question_and_not_from_what_the_asker_lacks() -> None:
    shapes = set()
    for asker in (1, 2, 3):
        outcome = ask(World(), UNION, asker=asker).outcomes[0]
        assert outcome.retrieved is not None
        shapes.add(outcome.retrieved.steps)
    assert len(shapes) == 1
    ((*steps,),) = shapes
    assert [(step.kind, step.sizes) for step in steps] == [
        ("entities", (3,)),
        ("projections", (3, 1)),
        ("projections", (1, 1)),
        ("scores", (2,)),
        ("names", (5,)),
    ]


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ('?x : like(?x, "e03")', 'the relation "like"'),
        ('?x : cured(?x, "e03")', 'the relation "cured"; the nearest known here: "cures"'),
        (f'?x : {"l" * 300}(?x, "e03")', "more than 255 bytes cannot be asked for"),
        ('?x : likes(?x, "e0")', 'the entity "e0"; the nearest known here: "e'),
    ],
)
def test_what_nobody_knows_is_one_line_and_the_session_goes_on(question: str, words: str) -> None:
    session = ask(World(), question, CHAIN)
    assert words in session.outcomes[0].problem
    assert "\n" not in session.outcomes[0].problem
    assert session.outcomes[0].retrieved is None
    assert len(answers(session, 1)) == 5


def test_a_client_follows_no_relation_that_its_rules_exclude_but_may_ask_itself() -> None:
    world, rules = World(), {3: Rules("all", frozenset({"likes"}))}
    both_ways = ('?x : likes(?x, "e03")', '?x : likes("e03", ?x)')
    for outcome in ask(world, *both_ways, rules=rules).outcomes:
        assert 'nobody knows, or tells of, the relation "likes"' in outcome.problem
    assert len(answers(ask(world, *both_ways, rules=rules, asker=3), 1)) == 5


@pytest.mark.parametrize("policy", ["all", "shared", "none"])
def test_rows_by_the_rules_of_those_who_hold_them(policy: Any) -> None:
    """Client 1 lacks e00, which both others hold, and e11, which client 2 holds alone."""
    rules = dict.fromkeys((2, 3), Rules("all", anchors=policy))
    told = ask(World(), '?x : cures("e00", ?x)', '?x : cures("e11", ?x)', rules=rules).outcomes
    assert [outcome.retrieved is not None for outcome in told] == [policy != "none", policy == "all"]
    (own,) = ask(World(), '?x : cures("e11", ?x)', rules=rules, asker=2).outcomes
    assert own.retrieved is not None


@pytest.mark.parametrize("policy", ["all", "shared", "none"])
def test_names_by_the_rules_of_those_who_hold_them(policy: Any) -> None:
    world = World()
    found = names_of(answers(ask(world, UNION, rules=dict.fromkeys((2, 3), Rules(policy)), top=14)))
    named = {"all": set(ENTITIES), "shared": set(ENTITIES[:SHARED]), "none": set()}[policy]
    assert set(found) - {None} == named | set(world.held(1).entities)


def test_the_budget_of_vectors_lasts_and_its_end_is_one_line(tmp_path: Path) -> None:
    def budgets() -> dict[int, Budgets]:
        table = World().knowledge(2, Rules()).table
        return {2: Budgets(atom_budget_of(tmp_path, 6, table, limit=7))}

    assert len(answers(ask(World(), CHAIN, OTHER, budgets=budgets()), 1)) == 5  # three vectors for each
    outcome = ask(World(), CHAIN, budgets=budgets()).outcomes[0]
    assert outcome.retrieved is None
    assert "7 vectors of this model were looked up, and 1 more go beyond the budget of 7" in outcome.problem


def test_a_step_that_comes_to_nothing_keeps_no_other_session_waiting(tmp_path: Path) -> None:
    """Client 3 refuses; client 2 has announced by then over whom it opened before, and holds its record for it."""
    table = World().knowledge(2, Rules()).table
    kept = {one: Budgets(atom_budget_of(tmp_path / str(one), 6, table, limit=1000 * (3 - one))) for one in (2, 3)}
    session = ask(World(), CHAIN, budgets=kept)
    assert "go beyond the budget of 0" in session.outcomes[0].problem
    assert (tmp_path / "2" / "atoms.lock").exists()
    assert MeansRecord(tmp_path / "2", "atoms.jsonl").covered(table) == frozenset()
    assert kept[2].atoms is not None, "its record is still there"


def test_an_asker_uses_up_its_share_and_nobody_elses(tmp_path: Path) -> None:
    table = World().knowledge(1, Rules()).table

    def asked(asker: int, question: str, askers: int) -> str:
        """What came of a question over clients whose budget of six vectors is for so many askers."""
        budgets = {
            one: Budgets(atom_budget_of(tmp_path / str(one), 6, table, limit=6, askers=askers)) for one in (1, 2, 3)
        }
        return ask(World(), question, budgets=budgets, asker=asker).outcomes[0].problem

    assert asked(1, CHAIN, 2) == ""  # three vectors
    assert "3 vectors of this model were looked up by this asker, and 1 more go beyond the share" in asked(1, OTHER, 2)
    assert asked(2, CHAIN, 2) == ""
    assert "beyond the budget of 6" in asked(2, OTHER, 1)


def test_without_shares_one_asker_can_use_up_everything(tmp_path: Path) -> None:
    table = World().knowledge(1, Rules()).table

    def asked(asker: int, question: str) -> str:
        budgets = {3: Budgets(atom_budget_of(tmp_path, 6, table, limit=6))}
        return ask(World(), question, budgets=budgets, asker=asker).outcomes[0].problem

    assert [asked(1, CHAIN), asked(1, OTHER)] == ["", ""]
    assert "beyond the budget of 6" in asked(2, CHAIN)


def test_the_budget_of_means() -> None:
    budgets = {2: Budgets(means=Budget(MemoryRecord(), 1))}
    session = ask(World(), CHAIN, OTHER, budgets=budgets, backend="masked")
    assert len(answers(session)) == 5
    assert "beyond the budget of 1" in session.outcomes[1].problem
