"""Sums that no honest clients would open, put before the checks as if they had been."""

import dataclasses

import numpy as np
import pytest

from protocols.alignment.psu.attempts import Attempt
from protocols.alignment.psu.table import write
from protocols.foundation.identifiers import PartyId, SessionId
from protocols.sums.interface import Total
from secure_kg.audit.checks.evaluations import Evaluations
from secure_kg.audit.checks.participation import Differences
from secure_kg.audit.checks.repeated_sums import RepeatedSums
from secure_kg.audit.checks.union_answers import UnionAnswers
from secure_kg.audit.view.opening import OpenedSum
from secure_kg.audit.view.read import Observation
from secure_kg.audit.view.table_again import TableAgain
from secure_kg.evaluation.ranking_metrics import RankingMetrics
from secure_kg.federation.plan.messages import SharedRows, TrainRound
from tests.support.audited_runs import audited_config

ALL, BUT_ONE = frozenset({1, 2, 3, 4}), frozenset({1, 2, 3})


def results(number: int, purpose: str, contributors: frozenset[int]) -> OpenedSum:
    layout = RankingMetrics.layout(4)
    return OpenedSum(number, purpose, contributors, 3, np.zeros(layout.entries, dtype=np.uint64), layout)


def trained(number: int) -> Observation:
    return Observation(0, 0, "sent", 1, number, "train", TrainRound(), 0, b"")


def found(check: Evaluations | RepeatedSums | Differences | UnionAnswers) -> dict[str, str]:
    return {finding.id: finding.severity for finding in check.findings()}


@pytest.mark.parametrize("purpose", ["valid", "test"])
def test_results_added_up_again_without_training_are_the_servers_doing(purpose: str) -> None:
    config = audited_config(4)
    evaluations, differences = Evaluations(config, 4), Differences(config, 4)
    for check in (evaluations, differences):
        check.begin_session()
        check.opened(results(3, purpose, ALL))
        check.opened(results(3, purpose, BUT_ONE))
    assert found(evaluations) == {"evaluated-on-demand": "high"}
    (isolated,) = differences.findings()
    assert isolated.severity == "medium"
    assert "no dropout" in isolated.explanation


def test_results_after_training_over_those_who_are_left_are_not() -> None:
    config = audited_config(4)
    evaluations, differences = Evaluations(config, 4), Differences(config, 4)
    for check in (evaluations, differences):
        check.begin_session()
        check.opened(results(2, "valid", ALL))
        check.observe(trained(3))
        check.opened(results(3, "valid", BUT_ONE))
        check.opened(results(4, "test", ALL))
    assert found(evaluations) == {}
    (isolated,) = differences.findings()
    assert "Clients dropped out" in isolated.explanation


def test_a_sum_opened_again_over_other_clients() -> None:
    repeated = RepeatedSums(audited_config(4), 4)
    rows = OpenedSum(3, "rows", ALL, 3, np.zeros(8, dtype=np.uint32))
    for total in (rows, rows, dataclasses.replace(rows, round=4, contributors=BUT_ONE)):
        repeated.begin_session()
        repeated.opened(total)
    assert found(repeated) == {}
    repeated.opened(dataclasses.replace(rows, contributors=BUT_ONE))
    assert found(repeated) == {"same-sum-over-other-clients": "high"}
    (finding,) = repeated.findings()
    assert "once with and once without client 4" in finding.evidence[0]


@pytest.mark.parametrize(("second", "severity"), [(ALL, "info"), (BUT_ONE, "medium")])
def test_attempts_at_a_union_are_told(second: frozenset[int], severity: str) -> None:
    check = UnionAnswers(audited_config(4), 4)
    check.begin_session()
    for number, contributors in enumerate((ALL, second)):
        attempt = Attempt.of(number, 64, SessionId(bytes(16)), bytes(32))
        table = write(np.arange(20, dtype=np.uint64).reshape(10, 2), attempt.layout)
        task = attempt.terms(tuple(PartyId(party) for party in sorted(ALL)))
        check.opened(OpenedSum(0, task.purpose, contributors, 3, table, None, attempt))
    assert found(check) == {"union-attempts": severity}


def test_a_table_of_another_union_is_described_and_begun_anew() -> None:
    first = TableAgain().after(1, Total(np.ones(6), np.array([2, 0, 2])))
    assert first.fault(SharedRows(np.zeros((2, 2), np.float32), np.zeros(2, np.uint32)), 2, 1.0).startswith(
        "a table of shape (2, 2)"
    )
    second = first.after(2, Total(np.ones(4), np.array([1, 0])))
    assert second.rows is not None
    assert second.averaged is not None
    np.testing.assert_array_equal(second.rows, [[1, 1], [0, 0]])
    np.testing.assert_array_equal(second.averaged, [2, 0])
