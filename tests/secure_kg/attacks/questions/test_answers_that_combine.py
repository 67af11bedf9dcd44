"""What an asker computes from answers: it succeeds where nothing bounds it, and fails under rules and budgets."""

import dataclasses

import numpy as np
import pytest

from protocols.foundation.identifiers import PartyId
from secure_kg.attacks.questions import hidden_triples as hidden
from secure_kg.attacks.questions.curious import as_asker
from secure_kg.attacks.questions.name_guesses import attack_names, told_holders
from secure_kg.attacks.questions.opened_scores import attack_scores, chosen_points, opened, positions_in_clear
from secure_kg.attacks.questions.predicting import Interval, guessed
from secure_kg.attacks.questions.relation_rows import attack_rows, attack_within_budget
from secure_kg.queries.retrieval.rules import Rules
from tests.support.curious import Trained, parties_of
from tests.support.retrieval import DIM, ENTITIES, SHARED, UNION, World

LIKES = hidden.Trial(PartyId(1), PartyId(3), "likes")


def test_one_answer_gives_the_row_of_a_translation_unless_nobody_projects_along_it() -> None:
    parties = parties_of(World())
    found = attack_rows(parties, fit=False)
    assert (found.wanted, found.computed) == (4, 4)
    assert found.largest_error < 1e-6
    some = attack_rows(parties.under(Rules(no_atoms=frozenset({"has"}))), fit=False)
    assert (some.answered, some.computed) == (2, 2)
    assert attack_rows(parties.under(Rules(no_atoms=frozenset({"has", "likes"}))), fit=False).answered == 0


def test_a_budget_bounds_how_many_rows_and_not_how_well() -> None:
    found = attack_within_budget(parties_of(World()).with_atoms(6))
    assert (found.answered, found.computed) == (3, 3)  # a half, since two clients may ask


@pytest.mark.parametrize("encoder", ["q2p", "tree-lstm"])
def test_a_network_gives_no_row_by_difference_but_some_answers_do_by_least_squares(encoder: str) -> None:
    parties = parties_of(World(encoder, "dot"))
    assert attack_rows(parties, fit=False).computed == 0
    assert attack_rows(parties, 4, fit=True, most=1).computed == 1


def test_names_are_told_with_the_number_of_holders_unless_rules_or_budgets_are_in_the_way() -> None:
    parties, dictionary = parties_of(World()), [*ENTITIES, "nobody", "nothing"]
    lacks = set(ENTITIES) - set(World().held(1).entities)
    found = attack_names(parties, dictionary)
    assert (found.held, found.found, found.wrong, found.asked) == (len(lacks), len(lacks), 0, len(lacks) + 2)
    shared = attack_names(parties.under(Rules(anchors="shared")), dictionary)
    assert shared.found == len(lacks & set(ENTITIES[:SHARED]))
    assert attack_names(parties.under(Rules(anchors="none")), dictionary).found == 0
    assert attack_names(parties, dictionary, budget=4).asked == 2
    assert told_holders(parties.with_atoms(4), ["e00", "e03", "e06"]) == {}  # one more than its share


def test_means_give_rows_and_a_budget_of_means_does_not() -> None:
    parties = parties_of(World("gqe", "l2")).scored_by("masked", UNION, 2)
    found = attack_scores(parties, DIM + 16)
    assert found.computed == found.positions > 0
    assert found.computed_lacked == found.lacked > 0
    few = attack_scores(parties.with_means(2), DIM + 16)
    assert (few.queries, few.computed) == (2, 0)


def test_positions_computed_in_clear_are_those_of_sessions() -> None:
    parties, points = parties_of(World("gqe", "l2")), chosen_points(DIM, 6, 0)
    in_sessions = [one.positions[0].tolist() for one in opened(parties, points)]
    assert [one.tolist() for one in positions_in_clear(parties, points)] == in_sessions
    assert attack_scores(parties, 6).computed == 0


def test_a_hidden_relation_is_answered_neither_way_and_guessed_by_whoever_knows_triples_of_it() -> None:
    run = Trained().run
    told = hidden.answered(run.parties.under(Rules(no_atoms=frozenset({"likes"}))), ["e00"])
    assert {relation for relation, _ in told.relations} == {"has"}
    assert set(told.entities) == {"e00"}
    found = hidden.attack_relation(run, LIKES, (0, 1000)).found
    assert found["direct", 1].auc == 1.0
    assert found["degree", 0].auc < 0.9


def test_triples_that_the_asker_knows_give_the_others() -> None:
    """The asker has all rows, so that known pairs are worth the most they can be."""
    run, rows = Trained().run, Trained().whole.rows.detach().numpy().astype(np.float64)
    case = hidden.case_of(LIKES, run.graphs[LIKES.holder], ENTITIES, 0)
    far = hidden.Asked(dict(zip(ENTITIES, rows, strict=False)), {("has", False): 100 + rows[0]})
    near = dataclasses.replace(far, relations={("has", False): np.zeros(DIM)})
    wide = dataclasses.replace(case, hidden=case.true)
    assert hidden.by_known(wide, near).auc > 0.95
    assert hidden.by_known(dataclasses.replace(wide, known=()), far).auc < 0.9


def test_more_answers_are_more_rows_in_the_order_that_was_drawn() -> None:
    own = hidden.Asked({"a": np.zeros(2)}, {})
    answers = hidden.Asked({"b": np.ones(2), "c": np.ones(2)}, {("r", False): np.ones(2)})
    sizes = [hidden.series(own, answers, number, 0) for number in (0, 1, 2, 9)]
    assert [len(one.entities) + len(one.relations) for one in sizes] == [1, 2, 3, 4]


def test_hits_and_areas_with_ties_and_other_tails() -> None:
    scores = np.array([[3.0, 2.0, 1.0, -np.inf, -np.inf]])
    true = np.array([[True, False, True, False, False]])
    found = guessed(scores, true, true)
    assert found.auc == pytest.approx((1 + 2 / 3) / 2)
    assert found.hits == 1.0
    unknown = guessed(np.full((1, 21), -np.inf), np.eye(1, 21, dtype=bool), np.eye(1, 21, dtype=bool))
    assert (unknown.hits, unknown.auc) == (pytest.approx(10 / 21), 0.5)
    interval = Interval.of([0.0, 1.0] * 50)
    assert interval.low < 0.45 < 0.5 == interval.mean < 0.55 < interval.high


def test_what_ends_a_session_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        as_asker(parties_of(World()), lambda curious: 1 // 0)
