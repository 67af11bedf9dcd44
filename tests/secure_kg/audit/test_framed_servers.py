"""What a client sends and an honest server drops accuses nobody, and ends no audit."""

import dataclasses
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.cheating import framing
from protocols.foundation import wire
from protocols.holders.interface import PURPOSE as HOLDERS
from protocols.session.conversation import Abandon, Back, LeaveOut
from protocols.sums.secagg.messages import AdvertiseKeys, EncryptedShares, KeyDirectory, ShareKeys, UnmaskShares
from secure_kg.audit.checks.completeness import Completeness
from secure_kg.audit.checks.keys import Keys
from secure_kg.audit.view.attending import Attending
from secure_kg.audit.view.directions import EITHER, OF_CLIENTS, OF_SERVERS, misdirected
from secure_kg.audit.view.read import Observation
from secure_kg.federation.plan.messages import CountHolders, Evaluate, Finish, TrainRound, Welcome
from secure_kg.federation.plan.run_plan import RunPlan
from tests.support.audited_runs import audited, audited_config, edited, ids

pytestmark = pytest.mark.long

CLIENTS = 4
OWN_MODULES = ("protocols.", "secure_kg.")


def test_every_message_goes_one_way_or_is_known_to_go_both() -> None:
    known = {kind for kind in wire._NUMBERS if kind.__module__.startswith(OWN_MODULES)}
    assert not OF_SERVERS & OF_CLIENTS
    assert known - OF_SERVERS - OF_CLIENTS == EITHER
    assert misdirected(TrainRound, "received")
    assert misdirected(Back, "sent")
    assert not any(misdirected(Abandon, way) for way in ("received", "sent"))


def keys(purpose: str = "rows") -> AdvertiseKeys:
    return AdvertiseKeys(purpose, bytes(32), bytes(32), b"")


def seen(message: wire.Message, peer: int = 1, direction: Any = "received", number: int = 2) -> Observation:
    return Observation(0, 0, direction, peer, number, "", message, 0, b"")


def told(message: wire.Message, peer: int = 1, number: int = 2) -> Observation:
    return seen(message, peer, "sent", number)


def attending(*before: Observation) -> Attending:
    found = Attending(RunPlan(audited_config(CLIENTS), CLIENTS))
    for one in before:
        found.observe(one)
    return found


COUNT, TRAIN = told(CountHolders()), told(TrainRound())
COUNTED = [seen(keys(HOLDERS)), seen(ShareKeys(HOLDERS, {}, bytes(32), b"", b""))]
OVER = told(Abandon("rows", "too few"))


@pytest.mark.parametrize(
    ("before", "message", "takes"),
    [
        ([TRAIN], seen(keys(HOLDERS)), True),
        ([TRAIN], seen(keys(HOLDERS), number=1), False),
        ([TRAIN, told(LeaveOut())], seen(keys(HOLDERS)), False),
        ([TRAIN, told(LeaveOut())], seen(keys(HOLDERS), number=3), False),
        ([TRAIN, told(LeaveOut())], seen(Back(), number=0), True),
        ([TRAIN, told(LeaveOut()), seen(Back())], seen(keys(HOLDERS)), True),
        ([TRAIN, told(LeaveOut(), 2)], seen(keys(HOLDERS)), True),
        ([TRAIN, seen(LeaveOut())], seen(keys(HOLDERS)), True),
        ([COUNT, TRAIN], seen(Abandon(HOLDERS, "no")), True),
        ([TRAIN], seen(Abandon(HOLDERS, "no")), False),
        ([TRAIN], seen(Abandon("rows", "no")), True),
        ([COUNT, TRAIN], seen(Abandon("rows", "no")), False),
        ([COUNT, TRAIN, *COUNTED], seen(Abandon("rows", "no")), True),
        ([COUNT, TRAIN, *COUNTED], seen(Abandon("rows", "no"), 2), False),
        ([told(Evaluate())], seen(Abandon("valid", "no")), True),
        ([told(Finish(1, True))], seen(Abandon("test", "no")), True),
        ([told(Finish(1, False))], seen(Abandon("test", "no")), False),
        ([TRAIN, *COUNTED, seen(keys()), OVER], seen(ShareKeys("rows", {}, bytes(32), b"", b"")), False),
        ([TRAIN, *COUNTED, OVER], seen(keys()), True),
        (
            [TRAIN, *COUNTED, seen(keys()), OVER, told(KeyDirectory("rows", {}, {}, {}), 2)],
            seen(ShareKeys("rows", {}, bytes(32), b"", b"")),
            True,
        ),
    ],
    ids=[
        *("in time", "earlier round", "dropout", "dropout, next round", "back", "after it is back"),
        *("another dropout", "a client leaves nobody out", "refuses what is awaited", "no count", "refuses rows"),
        "refuses what is to come",
        *("refuses in its turn", "not in another one's", "refuses results", "refuses test results", "not wanted"),
        *("sum is over", "sum was said to be over before it began", "sum that goes on after all"),
    ],
)
def test_what_an_honest_server_goes_by(before: list[Observation], message: Observation, takes: bool) -> None:
    assert attending(*before).takes(message) is takes


def test_a_sum_that_has_not_begun_cannot_be_over() -> None:
    found = attending(TRAIN, OVER)
    assert found.abandoned == set()
    found = attending(TRAIN, *COUNTED, seen(keys()), OVER)
    assert found.abandoned == {(2, "rows")}
    found.observe(told(EncryptedShares("rows", {}, {}, {}), 3))
    assert found.abandoned == set()


def test_a_refusal_ends_a_sum_whatever_the_server_says() -> None:
    found = attending(COUNT, TRAIN, seen(Abandon(HOLDERS, "no")), told(KeyDirectory(HOLDERS, {}, {}, {}), 3))
    assert found.abandoned == {(2, HOLDERS), (2, "rows")}


# --- whole runs -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("back", [True, False])
def test_a_dropout_that_is_not_back_accuses_nobody(tmp_path: Path, back: bool) -> None:
    played = framing.as_dropout(tmp_path, back)
    assert not played.got, played.evidence


def inserted(*messages: Observation) -> Any:
    """Right after the server's first word of round 3."""

    def edit(observations: Iterable[Observation]) -> Iterator[Observation]:
        done = False
        for one in observations:
            yield one
            if not done and isinstance(one.message, TrainRound) and one.round == 3:
                done = True
                yield from (dataclasses.replace(one, **_changes(message)) for message in messages)

    return edit


def _changes(message: Observation) -> dict[str, Any]:
    names = ("direction", "peer", "round", "message")
    return {name: getattr(message, name) for name in names}


def test_words_of_a_server_from_a_client_change_no_finding(secagg_run: Path, tmp_path: Path) -> None:
    """Under an earlier round, and read where the server awaits something else of this client."""
    words = [seen(word, number=1) for word in framing.words_of_a_server() if not isinstance(word, Welcome)]

    def edit(observations: Iterable[Observation]) -> Iterator[Observation]:
        done = False
        for one in observations:
            if not done and (one.direction, one.peer, one.round) == ("received", 1, 3):
                done = True
                yield from (dataclasses.replace(one, **_changes(word)) for word in words)
            yield one

    found = audited(edited(secagg_run, tmp_path / "run", edit))
    assert ids(found, "high") == set()
    (dropped,) = (one for one in found.findings if one.id == "frames-ignored")
    assert any("LeaveOut, which only a server says" in line for line in dropped.evidence)


def test_words_of_a_client_from_the_server_are_a_finding(secagg_run: Path, tmp_path: Path) -> None:
    """Else it could show an auditor a key of its own as a client's."""
    found = audited(edited(secagg_run, tmp_path / "run", inserted(told(keys(), 2, 3))))
    (finding,) = (one for one in found.findings if one.id == "out-of-order")
    assert finding.severity == "high"
    assert "client 2 was told AdvertiseKeys, which only clients say" in finding.evidence[0]
    assert "key-changed" not in ids(found)


def test_a_server_that_goes_back_to_an_earlier_round_is_found(secagg_run: Path, tmp_path: Path) -> None:
    """Else answers that it reads would pass for late ones."""
    found = audited(edited(secagg_run, tmp_path / "run", inserted(told(LeaveOut(), 2, 99))))
    assert "out-of-order" in ids(found, "high")


def test_late_answers_open_a_sum_that_nobody_counts_on(secagg_run: Path, tmp_path: Path) -> None:
    """A server that has waited in vain never had it: no table lacks, and yet it is among those that it could read."""

    def late(observations: Iterable[Observation]) -> Iterator[Observation]:
        fallen = False
        for one in observations:
            opens = isinstance(one.message, UnmaskShares) and (one.round, one.purpose) == (3, "rows")
            if opens and not fallen:
                fallen = True
                for peer in range(1, CLIENTS + 1):
                    yield dataclasses.replace(one, direction="sent", peer=peer, message=LeaveOut())
            yield one

    found = audited(edited(secagg_run, tmp_path / "run", late))
    (total,) = (one for one in found.sums.sums if (one.round, one.purpose) == (3, "rows"))
    assert total.abandoned
    assert not total.problem
    assert "tables-withheld" not in ids(found)


# --- checks that fail -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["begin_session", "observe", "opened", "findings"])
def test_a_check_that_fails_is_a_finding_and_the_others_go_on(
    secagg_run: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    clean = audited(secagg_run)

    def fails(self: Keys, *what: Any) -> None:
        raise ZeroDivisionError("not foreseen")

    monkeypatch.setattr(Keys, method, fails)
    found = audited(secagg_run)
    (failed,) = (one for one in found.findings if one.severity == "high")
    assert (failed.id, failed.evidence) == ("check-failed", ("identity-keys: ZeroDivisionError: not foreseen",))
    assert found.exit_code == 3
    others = [{one.id: one.status for one in audit.checks if one.id != Keys.id} for audit in (clean, found)]
    assert others[0] == others[1]
    assert "failed on this record" in next(one.looked_at for one in found.checks if one.id == Keys.id)


def test_a_round_that_is_far_away_costs_an_audit_nothing() -> None:
    """Neither a client's nor a server's: checks that count rounds would else count four thousand million."""
    far, config = 2**32 - 1, audited_config(CLIENTS)
    check = Completeness(config, CLIENTS, None)
    check.observe(Observation(0, 0, "sent", 1, 1, "", TrainRound(), 0, b""))
    check.observe(Observation(1, 0, "sent", 2, 1, "", LeaveOut(), 0, b""))
    check.observe(Observation(2, 0, "received", 2, far, "", Back(), 0, b""))
    check.observe(Observation(3, 0, "sent", 1, far, "", TrainRound(), 0, b""))
    check.findings()
    assert check.seen == 2
