"""Sums that end for some of their clients only, or without a reason, are found. So are results of another copy."""

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from protocols.foundation import wire
from protocols.session.conversation import Abandon, Abort, LeaveOut
from protocols.sums.secagg.messages import EncryptedShares, KeyDirectory, ShareKeys, Survivors, UnmaskShares
from secure_kg.audit.checks.abandoned_sums import AbandonedSums
from secure_kg.audit.checks.evaluations import Evaluations
from secure_kg.audit.checks.verdicts import Verdicts
from secure_kg.audit.view.opening import OpenedSum
from secure_kg.audit.view.read import Observation
from secure_kg.federation.plan.messages import Finish, SaveCheckpoint, Verdict, Welcome
from tests.support.audited_runs import audited, audited_config, edited, ids

pytestmark = pytest.mark.long

CLIENTS = 4
OVER = Abandon("rows", "too few clients are left")


def told(
    kind: type[wire.Message], others: Iterable[int], instead: wire.Message
) -> Callable[..., Iterator[Observation]]:
    """In place of a message of round 2, some are told something else."""

    def edit(observations: Iterable[Observation]) -> Iterator[Observation]:
        for one in observations:
            wanted = isinstance(one.message, kind) and (one.round, one.purpose) == (2, "rows")
            yield dataclasses.replace(one, message=instead) if wanted and one.peer in others else one

    return edit


@pytest.mark.parametrize("kind", [KeyDirectory, EncryptedShares, Survivors])
@pytest.mark.parametrize("alone", [1, 3])
def test_a_sum_that_goes_on_for_one_client_alone_is_found(
    secagg_run: Path, tmp_path: Path, kind: type[wire.Message], alone: int
) -> None:
    others = set(range(1, CLIENTS + 1)) - {alone}
    found = audited(edited(secagg_run, tmp_path / "run", told(kind, others, OVER)))
    assert "trained-apart" in ids(found, "high")
    (apart,) = (one for one in found.findings if one.id == "trained-apart")
    assert len(apart.evidence) == len(others)
    assert f"was told Abandon, where client {alone} got {kind.__name__}" in apart.evidence[0]


@pytest.mark.parametrize("instead", [LeaveOut(), Abort("over")])
def test_clients_that_were_lost_on_the_way_are_not(secagg_run: Path, tmp_path: Path, instead: wire.Message) -> None:
    found = audited(edited(secagg_run, tmp_path / "run", told(EncryptedShares, {2}, instead)))
    assert not ids(found) & {"trained-apart", "given-up-at-will"}


def seen(message: wire.Message, peer: int, direction: Any = "sent", number: int = 2) -> Observation:
    return Observation(0, 0, direction, peer, number, "", message, 0, b"")


def step(answering: Iterable[int], ended_for: Iterable[int], *before: Observation) -> list[Observation]:
    """All are sent keys; some answer, and some are told that it is over."""
    asked = [seen(KeyDirectory("rows", {}, {}, {}), number) for number in range(1, CLIENTS + 1)]
    answers = [seen(ShareKeys("rows", {}, bytes(32), b"", b""), number, "received") for number in answering]
    return [*asked, *answers, *before, *(seen(OVER, number) for number in ended_for)]


UNMASKED = [
    *(seen(Survivors("rows", []), number) for number in range(1, CLIENTS + 1)),
    *(seen(UnmaskShares("rows", {}, {}), number, "received") for number in range(1, CLIENTS + 1)),
]


@pytest.mark.parametrize(
    ("messages", "fault"),
    [
        (step([1, 2, 3, 4], [1, 2, 3, 4]), "though all had answered"),
        (step([1, 2], [1, 2, 3, 4]), "without waiting for client 3"),
        (step([1, 2], [1, 2]), ""),
        (step([1, 2], [1, 2, 3, 4], seen(OVER, 2, "received")), ""),
        (step([1, 2, 3, 4], [1, 2, 3, 4], *UNMASKED), ""),
    ],
    ids=["all answered", "not waited for", "too few", "refused", "false shares"],
)
def test_a_sum_is_given_up_for_a_reason(messages: list[Observation], fault: str) -> None:
    check = AbandonedSums(audited_config(CLIENTS), CLIENTS)
    check.begin_session()
    for one in messages:
        check.observe(one)
    found = {finding.id: " ".join(finding.evidence) for finding in check.findings()}
    assert found.keys() == ({"given-up-at-will"} if fault else set())
    assert fault in found.get("given-up-at-will", "")


# --- results ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("second", "found"), [({1, 2, 3, 4}, False), ({1, 2, 4}, True)])
def test_test_results_of_a_run_are_over_one_set_of_clients(second: set[int], found: bool) -> None:
    check = Evaluations(audited_config(CLIENTS), CLIENTS)
    for number, contributors in ((4, {1, 2, 3, 4}), (6, second)):
        check.begin_session()
        check.observe(seen(Welcome(bytes(16), bytes(32), 0, [], b"", "run"), 1, number=0))
        total = OpenedSum(number, "test", frozenset(contributors), 3, np.zeros(12, dtype=np.uint64))
        check.opened(total)
    told = [line for finding in check.findings() for line in finding.evidence if "as in session 1" in line]
    assert bool(told) == found


@pytest.mark.parametrize(("named", "fault"), [(2, False), (3, True), (0, True)])
def test_the_results_are_of_the_copy_that_was_called_best(named: int, fault: bool) -> None:
    """Under secret sums, where verdicts are the clients'. The second session goes on from a checkpoint."""
    check = Verdicts(audited_config(CLIENTS, aggregation="secret"), CLIENTS)
    check.begin_session()
    check.observe(seen(Welcome(bytes(16), bytes(32), 0, [], b"", "run"), 1, number=0))
    check.observe(seen(Verdict(True), 1))
    check.observe(seen(SaveCheckpoint(), 1))
    check.observe(seen(Verdict(True), 1, number=3))
    check.begin_session()
    check.observe(seen(Welcome(bytes(16), bytes(32), 2, [1], bytes(32), "run"), 1, number=0))
    check.observe(seen(Verdict(False), 1, number=3))
    check.observe(seen(Finish(named, wanted=True), 1, number=5))
    assert bool(check.findings()) == fault
