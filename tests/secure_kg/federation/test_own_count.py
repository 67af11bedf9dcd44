"""What a server may ask for follows from a client's own count."""

import pytest

from protocols.foundation.identifiers import PartyId
from secure_kg.federation.client.own_count import OwnCount
from secure_kg.federation.plan.run_plan import RunPlan
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.runs.records.checkpoints import CountRecord


def count(drawn: set[int] | None = None) -> OwnCount:
    """Of 20 rounds with an evaluation in every fifth; drawn for all rounds or for some."""
    plan = RunPlan(RunConfig(rounds=20, eval_every=5), clients=3)
    if drawn is not None:
        drawings = {number: (PartyId(1),) if number in drawn else (PartyId(2),) for number in range(30)}
        plan.participants = drawings.__getitem__  # type: ignore[method-assign]
    return OwnCount(plan, PartyId(1))


def test_one_evaluation_per_trained_round() -> None:
    mine = count()
    assert not mine.may_evaluate(5)  # drawn, and not trained yet
    mine.trained = 5
    assert mine.may_evaluate(5)
    mine.evaluated(5)
    for later in (5, 10, 15, 20):
        assert not mine.may_evaluate(later)
    mine.trained = 7  # it dropped out later, and is back
    assert mine.may_evaluate(10)


def test_a_client_that_was_drawn_for_no_round_has_nothing_to_train() -> None:
    mine = count({1, 2, 12})
    mine.trained = 2
    mine.evaluated(5)
    assert mine.may_evaluate(10)
    mine.evaluated(10)
    assert not mine.may_evaluate(15)  # drawn for round 12
    mine.trained = 12
    assert mine.may_evaluate(15)


def test_a_loss_is_told_in_the_first_evaluation_after_the_training_and_in_no_other() -> None:
    mine = count({1, 2})
    assert not mine.tells_loss(5)
    mine.trained = mine.added = 2
    assert mine.tells_loss(5)
    mine.evaluated(5)
    assert not mine.tells_loss(10)


def test_an_evaluation_that_is_repeated_tells_what_it_told_before() -> None:
    """Resumed from round 2, with evaluations of two rounds on record: the second had no loss in it."""
    later = count({1, 2})
    later.trained, later.added, later.opened = 2, 2, frozenset({5, 10})
    assert later.fresh(10)
    assert later.tells_loss(5)
    assert not later.tells_loss(10)


def test_an_evaluation_that_was_due_and_did_not_come_to_be_takes_the_loss_with_it() -> None:
    """Else a resumed session could leave it out, and the next one would be another one than before."""
    mine = count({1, 2})
    mine.trained = mine.added = 2
    assert not mine.tells_loss(10)


def test_the_loss_of_a_training_in_vain_is_not_told() -> None:
    mine = count({1, 2, 3})
    mine.trained, mine.added = 3, 2
    assert mine.tells_loss(5)  # that of round 2
    mine.evaluated(5)
    mine.trained = 6
    assert mine.may_evaluate(10)
    assert not mine.tells_loss(10)


def test_who_does_not_know_whether_a_sum_was_opened_takes_part_in_no_evaluation() -> None:
    mine = count({1, 2, 3})
    mine.trained = mine.opening = 3
    assert not mine.may_evaluate(5)
    again = count({1, 2, 3})
    again.restore(mine.record())
    assert not again.may_evaluate(5)
    again.added = 3
    assert again.may_evaluate(5)


def test_a_checkpoint_of_earlier_versions_was_written_after_sums_that_were_opened() -> None:
    mine = count({1, 2})
    mine.restore(CountRecord(trained=2))
    assert (mine.added, mine.may_evaluate(5), mine.tells_loss(5)) == (2, True, True)


@pytest.mark.parametrize(("number", "due"), [(5, True), (7, False), (20, True), (25, False), (0, False)])
def test_evaluations_are_due_by_the_own_settings(number: int, due: bool) -> None:
    assert RunPlan(RunConfig(rounds=20, eval_every=5), clients=3).evaluation_due(number) == due


def test_one_verdict_for_each_evaluation_and_none_for_others() -> None:
    mine = count()
    assert mine.judge(5)
    assert not mine.judge(5)
    assert not mine.judge(7)
    assert mine.judge(10)


def test_results_once_per_session() -> None:
    mine = count()
    assert not mine.finish(22)
    assert mine.finish(21)
    assert not mine.finish(21)


def test_counts_outlive_a_session() -> None:
    mine, later = count(), count()
    mine.trained, mine.refused = 5, 2
    mine.evaluated(5)
    mine.judge(5)
    later.restore(mine.record())
    assert later.record() == mine.record()
    assert not later.may_evaluate(10)
    assert not later.judge(5)
