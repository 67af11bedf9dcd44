"""Sums called abandoned before they begin, clients sent home before the others, and records in another order."""

from pathlib import Path
from typing import Any

import pytest

from benchmarks.cheating import too_early
from benchmarks.cheating.entry import Played
from benchmarks.cheating.spoils import sums_read
from protocols.foundation import wire
from protocols.session.conversation import Abandon, Conversation
from protocols.sums.secagg.messages import AdvertiseKeys
from secure_kg.audit.audit import Audit, audit
from secure_kg.audit.checks.abandoned_sums import AbandonedSums
from secure_kg.audit.checks.passed_over import PassedOver
from secure_kg.audit.view.read import Observation, open_run
from secure_kg.federation.client.judge import Judge
from secure_kg.federation.client.own_count import OwnCount
from secure_kg.federation.client.shared_blocks import SharedBlocks
from secure_kg.federation.plan.messages import Evaluate, Finish, Goodbye, TrainRound
from secure_kg.federation.plan.run_plan import RunPlan
from secure_kg.federation.plan.settings import RunConfig
from tests.support.audited_runs import audited_config, ids

pytestmark = pytest.mark.long

CLIENTS = 4
OVER = "too few clients are left"


def told_of(played: Played) -> Audit:
    return audit(open_run(played.stage.run), played.stage.run / "clients", played.stage.directory)


@pytest.fixture
def credulous(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients that take any word of an abandoned sum, as the audit must not."""
    monkeypatch.setattr(Conversation, "begun", lambda self, round_id, purpose: True)
    monkeypatch.setattr(OwnCount, "abandoned", lambda self, round_id, purpose: True)
    monkeypatch.setattr(SharedBlocks, "excuse", lambda self, round_id, purpose: self._awaited.pop(purpose, None))


@pytest.mark.usefixtures("credulous")
@pytest.mark.parametrize("play", [too_early.abandoned_beforehand, too_early.excused_by_next_round])
def test_the_audit_finds_what_credulous_clients_let_pass(tmp_path: Path, play: Any) -> None:
    played = play(tmp_path)
    assert played.got, "without their refusal the server has the update"
    assert not played.stage.refused
    found = told_of(played)
    assert "given-up-at-will" in ids(found, "high")
    (finding,) = (one for one in found.findings if one.id == "given-up-at-will")
    assert any("before it had begun" in line for line in finding.evidence)
    assert not any(one.abandoned for one in sums_read(played.stage, played.stage.last))


@pytest.mark.parametrize(
    ("play", "words"),
    [
        (too_early.abandoned_beforehand, "abandons a sum of round 3 that has not begun here"),
        (too_early.excused_by_next_round, "the server sent Abandon of round 3 after round 2"),
    ],
)
def test_clients_refuse_it(tmp_path: Path, play: Any, words: str) -> None:
    played = play(tmp_path)
    assert not played.got
    assert played.stage.refused
    assert all(words in reason for reason in played.stage.refused.values())


def test_a_record_in_another_order_is_found_by_receipts_and_without(tmp_path: Path) -> None:
    played = too_early.reordered(tmp_path)
    assert played.got
    assert played.evidence["moved"]
    assert {"transcript-differs", "given-up-at-will", "out-of-order"} <= ids(told_of(played), "high")
    alone = audit(open_run(played.stage.run), None, played.stage.directory)
    assert {"given-up-at-will", "out-of-order"} <= ids(alone, "high")


def test_a_client_does_not_go_home_in_the_middle(tmp_path: Path) -> None:
    played = too_early.sent_home_midway(tmp_path)
    assert played.stage.refused == {3: "UnexpectedMessage: the server sent Finish of round 3 after round 2"}
    assert "passed-over" in ids(told_of(played), "high")


# --- by itself --------------------------------------------------------------------------------------------------------


def seen(message: wire.Message, peer: int = 1, direction: Any = "sent", number: int = 2) -> Observation:
    return Observation(0, 0, direction, peer, number, "", message, 0, b"")


def begins(purpose: str) -> Observation:
    return seen(AdvertiseKeys(purpose, bytes(32), bytes(32), b""), direction="received")


def ends(purpose: str) -> Observation:
    return seen(Abandon(purpose, OVER))


@pytest.mark.parametrize(
    ("messages", "fault"),
    [
        ([ends("rows")], True),
        ([begins("holders"), ends("rows")], True),
        ([begins("rows"), ends("rows")], False),
        ([begins("holders"), ends("holders"), ends("rows")], False),
        ([ends("valid")], False),
        ([ends("valid"), begins("valid")], True),
        ([begins("valid"), ends("valid")], False),
    ],
    ids=[
        *("nothing has begun", "only the count has", "it has", "with the count"),
        *("nobody to ask for results", "results all the same", "results"),
    ],
)
def test_a_sum_is_not_over_before_it_has_begun(messages: list[Observation], fault: bool) -> None:
    check = AbandonedSums(audited_config(CLIENTS), CLIENTS)
    check.begin_session()
    for one in messages:
        check.observe(one)
    lines = [line for finding in check.findings() for line in finding.evidence]
    assert any("before it had begun" in line for line in lines) == fault
    assert bool(lines) == fault


def everybody(message: wire.Message, *peers: int) -> list[Observation]:
    return [seen(message, peer) for peer in peers or range(1, CLIENTS + 1)]


HOME = Finish(1, wanted=False)


@pytest.mark.parametrize(
    ("messages", "fault"),
    [
        ([*everybody(TrainRound()), *everybody(HOME), *everybody(Goodbye(True))], False),
        ([*everybody(TrainRound(), 1, 2, 3), *everybody(HOME, 1, 2, 3), *everybody(Goodbye(False))], False),
        ([*everybody(HOME, 4), *everybody(TrainRound(), 1, 2, 3), *everybody(Goodbye(True))], True),
        ([*everybody(HOME, 4), *everybody(Evaluate(), 1, 2, 3)], True),
    ],
    ids=["all at once", "one is lost", "one before training", "one before results"],
)
def test_everybody_is_sent_home_at_once(messages: list[Observation], fault: bool) -> None:
    check = PassedOver(audited_config(CLIENTS), CLIENTS)
    check.begin_session()
    for one in messages:
        check.observe(one)
    assert {one.id for one in check.findings()} == ({"passed-over"} if fault else set())


@pytest.mark.parametrize(
    ("verdicts", "done", "resumed", "over"),
    [
        ({}, 9, False, True),
        ({}, 8, False, True),
        ({}, 3, False, False),
        ({2: True}, 4, False, False),
        ({2: True, 4: False}, 6, False, True),
        ({2: True, 4: True}, 6, False, False),
        ({2: True, 4: True}, 6, True, True),
        ({2: True, 4: True}, 5, True, False),
    ],
)
def test_training_is_over_with_the_last_round_or_where_it_may_have_stopped(
    tmp_path: Path, verdicts: dict[int, bool], done: int, resumed: bool, over: bool
) -> None:
    """Verdicts that the client has missed may have been worse: a dropout does not refuse to stop with the others."""
    judge = Judge(RunPlan(RunConfig(rounds=9, eval_every=2, patience=2), CLIENTS), tmp_path)
    for number, improved in verdicts.items():
        judge.take_verdict(number, improved)
    assert judge.may_end(done, resumed=resumed) is over
