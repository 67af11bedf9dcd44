"""Clients that die, sleep or dawdle at every point of a run: the others go on, and the summary says who was missing."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from protocols.foundation.identifiers import PartyId, RoundId
from protocols.session.identities import PublicIdentity, credentials, directory_text, new_identity
from protocols.transport.base import Transport
from protocols.transport.in_process import InProcessNetwork
from secure_kg.data.graph import ClientGraph
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.federation.server import server
from secure_kg.foundation.errors import TrainingDiverged, UserError
from secure_kg.learning.kge import KgeLearner
from secure_kg.learning.learner import TrainStats
from secure_kg.runs import checkpoint
from secure_kg.runs.client_folder import read_openings
from tests.support.dying_clients import VICTIM, DyingTransport, dying_after
from tests.support.federation_in_threads import (
    Run,
    Told,
    Vanished,
    nations,
    relation_rows,
    run_federation,
    small_config,
)

pytestmark = pytest.mark.long

GRACE = 1.0
"""Seconds; what the others need for a step of these tiny runs is far less."""


def quick(**changes: Any) -> RunConfig:
    return small_config(**{"rounds": 3, "eval_every": 2, "checkpoint_every": 2, "grace": GRACE, **changes})


@pytest.fixture(autouse=True)
def _short_setup(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_SETUP_GRACE", 3.0)


def survivors_agree(run: Run) -> None:
    """Who is still there has the same mean in every row that all of them hold."""
    assert run.server_error is None, run.server_error
    assert not run.client_errors, run.client_errors
    assert run.outcome is not None


# Hello, Ready, AdvertiseChannel; four messages each of the sum behind the union and of the vote; Aligned. Round 1:
# AdvertiseKeys and ShareKeys for the count of holders and for the rows, then MaskedInput and UnmaskShares for each. The
# keys of a later sum are advertised ahead: with the round whose sum they are for. Round 2: a sum; an evaluation is one
# more; Saved. Results: a sum and Done.
SETUP_MESSAGES, FIRST_ROUND_MESSAGES, SUM_MESSAGES = 3 + 4 + 4 + 1, 8, 4
ENDS = list(np.cumsum([SETUP_MESSAGES, FIRST_ROUND_MESSAGES, 2 * SUM_MESSAGES + 1, SUM_MESSAGES + 1]))
"""Of set-up, rounds 1 and 2, results."""
MESSAGES_OF_A_RUN = int(ENDS[-1])
AFTER_BEING_COUNTED = {1: [5, 6], 2: [0, 1, 2]}
"""By round: messages at which a client is lost that was counted, then or in the round before, and whose rows are not in
the sum.
"""


MOMENTS = [
    *(0, 2, ENDS[0] - 1, ENDS[0]),
    *(ENDS[number - 1] + place for number, places in AFTER_BEING_COUNTED.items() for place in places),
    *(ENDS[1] + 4, ENDS[2] - 1, ENDS[3] - 1),
]
"""One of each stage: before and after the greeting, alignment, count, rows, evaluation and results."""


@pytest.mark.parametrize(
    "messages",
    [
        pytest.param(number, marks=[] if number in MOMENTS else [pytest.mark.slow], id=str(number))
        for number in range(MESSAGES_OF_A_RUN)
    ],
)
def test_a_client_that_dies_at_any_message_costs_that_client_only(tmp_path: Path, messages: int) -> None:
    run = run_federation(quick(rounds=2), nations(4), tmp_path / "run", transport_of=dying_after(messages))
    survivors_agree(run)
    assert run.gone == {VICTIM}
    assert run.outcome is not None
    (dropout,) = run.outcome.dropouts
    assert dropout.client == VICTIM
    assert dropout.returned is None
    round_id = next(number for number, end in enumerate(ENDS) if messages < end)
    assert dropout.round == round_id
    assert run.outcome.rounds == 2
    assert run.outcome.test is not None
    in_round = messages - ENDS[round_id - 1] if round_id in (1, 2) else None
    if in_round in AFTER_BEING_COUNTED.get(round_id, []):
        (abandoned,) = run.outcome.abandoned_sums
        assert (abandoned.round, abandoned.purpose) == (round_id, "rows")
        assert "dropped out after holders were counted" in abandoned.reason
    else:
        assert run.outcome.abandoned_sums == []
    everybody = sum(len(graph.test) for graph in nations(4))
    counted = run.outcome.test.tail.count
    # Its results are in the sum if its input arrived, whatever became of it afterwards.
    assert counted == (everybody if messages >= MESSAGES_OF_A_RUN - 2 else everybody - len(nations(4)[VICTIM - 1].test))


def test_a_run_has_as_many_messages_as_the_test_above_believes(tmp_path: Path) -> None:
    run = run_federation(quick(rounds=2), nations(4), tmp_path / "run", transport_of=dying_after(MESSAGES_OF_A_RUN))
    run.done()
    assert run.gone == set()


@pytest.mark.parametrize("aggregation", ["secagg", "secret", "plain"])
def test_the_first_client_is_replaced_if_it_draws_no_group_key(tmp_path: Path, aggregation: Any) -> None:
    leader, messages = 1, 3

    def transport(network: InProcessNetwork, number: int) -> Transport:
        party = PartyId(number)
        return DyingTransport(network, party, messages) if number == leader else network.endpoint(party)

    run = run_federation(quick(aggregation=aggregation), nations(4), tmp_path / "run", transport_of=transport)
    survivors_agree(run)
    assert run.gone == {leader}
    assert run.outcome is not None
    (dropout,) = run.outcome.dropouts
    assert (dropout.client, dropout.step) == (leader, "group key")
    assert run.outcome.rounds == 3


def test_plain_and_secure_go_on_alike(tmp_path: Path) -> None:
    """A client that dies while training leaves the same federation behind, with masks and without."""

    def mortal(graph: ClientGraph, config: RunConfig, number: int) -> KgeLearner:
        return _trainer_that(graph, config, number, at=2, act=_vanish if number == VICTIM else None)

    rows = {}
    for aggregation in ("plain", "secagg", "secret"):
        config = quick(aggregation=aggregation, rounds=4)
        run = run_federation(config, nations(4), tmp_path / aggregation, trainer_of=mortal)
        survivors_agree(run)
        rows[aggregation] = relation_rows(run)
    for number in (1, 3, 4):
        np.testing.assert_array_equal(rows["plain"][number], rows["secagg"][number])
        np.testing.assert_array_equal(rows["plain"][number], rows["secret"][number])


def test_a_slow_client_comes_back(tmp_path: Path) -> None:
    """It misses round 3, and its rows of that round are used by nobody; later it takes part and is evaluated again."""

    told = Told()

    def others_take_their_time() -> None:
        if told.said("client 2 dropped out in round 3"):
            told.wait_for("client 2 is back", seconds=GRACE / 4)

    def dawdling(graph: ClientGraph, config: RunConfig, number: int) -> KgeLearner:
        if number == VICTIM:
            return _trainer_that(
                graph, config, number, at=3, act=lambda: told.wait_for("client 2 dropped out in round 3")
            )
        return _trainer_that(graph, config, number, at=None, act=others_take_their_time)

    config = quick(rounds=16, eval_every=16, patience=100)
    run = run_federation(config, nations(4), tmp_path / "run", trainer_of=dawdling, report=told)
    survivors_agree(run)
    assert run.gone == set()
    assert run.outcome is not None
    (dropout,) = run.outcome.dropouts
    assert (dropout.client, dropout.round, dropout.step) == (VICTIM, 3, "masked input/rows")
    assert dropout.returned is not None
    assert 3 < dropout.returned <= 16
    assert run.outcome.test.tail.count == sum(len(graph.test) for graph in nations(4))
    assert told.said("client 2 dropped out in round 3", "client 2 is back")


def test_too_few_left_ends_the_job_with_a_line_and_a_checkpoint(tmp_path: Path) -> None:
    def mortal(graph: ClientGraph, config: RunConfig, number: int) -> KgeLearner:
        return _trainer_that(graph, config, number, at=3, act=_vanish if number in (1, 2) else None)

    config = quick(rounds=6, deadline=1.0)
    run = run_federation(config, nations(4), tmp_path / "run", trainer_of=mortal)
    assert isinstance(run.server_error, UserError)
    assert "2 of 4 clients are left in round 4, 3 are needed" in str(run.server_error)
    assert checkpoint.last_complete(tmp_path / "run") == checkpoint.Complete(2, (1, 2, 3, 4))
    again = run_federation(quick(rounds=6), nations(4), tmp_path / "run", resume=True)
    assert again.done().rounds == 6


def test_a_sum_with_too_few_survivors_is_abandoned_and_nothing_else(tmp_path: Path) -> None:
    """Two of four are slow in round 2, one more than declared: no sum in that round, but in the next ones."""
    config, told = quick(rounds=4, eval_every=4), Told()

    def until_lost() -> None:
        told.wait_for("client 1 dropped out", "client 2 dropped out")

    def dawdling(graph: ClientGraph, settings: RunConfig, number: int) -> KgeLearner:
        return _trainer_that(graph, settings, number, at=2, act=until_lost if number <= 2 else None)

    run = run_federation(config, nations(4), tmp_path / "run", trainer_of=dawdling, report=told)
    survivors_agree(run)
    assert run.outcome is not None
    (abandoned,) = run.outcome.abandoned_sums
    assert (abandoned.round, abandoned.purpose) == (2, "rows")
    assert "2 clients have sent an input, 3 are needed" in abandoned.reason
    assert {dropout.client for dropout in run.outcome.dropouts} == {1, 2}
    assert all(dropout.returned is not None for dropout in run.outcome.dropouts)


def test_a_client_absent_at_the_checkpoint_can_resume(tmp_path: Path) -> None:
    """It goes on from its own last part, or from the start if it has none; a client that lost its part may not."""
    config = quick(rounds=4)
    run = run_federation(config, nations(4), tmp_path / "run", transport_of=dying_after(ENDS[1] + 1))  # in round 2
    survivors_agree(run)
    assert checkpoint.last_complete(tmp_path / "run") == checkpoint.Complete(4, (1, 3, 4))
    resumed = run_federation(quick(rounds=6), nations(4), tmp_path / "run", resume=True)
    assert resumed.done().rounds == 6
    assert resumed.done().dropouts[0].client == VICTIM  # that of the first part of the run
    for part in (tmp_path / "run/clients/1").glob("checkpoint-*"):
        part.unlink()
    broken = run_federation(quick(rounds=8), nations(4), tmp_path / "run", resume=True)
    assert "not a readable checkpoint" in str(broken.client_errors[1])


def test_a_resumed_round_is_not_summed_over_other_clients(tmp_path: Path) -> None:
    """The same inputs over all clients and over all but one would show that one's rows by subtraction.

    The first run breaks off after the sum of round 3; the resumed one begins again after round 2, without client 2.
    """

    def stopping(graph: ClientGraph, config: RunConfig, number: int) -> KgeLearner:
        return _trainer_that(graph, config, number, at=4, act=_diverge)

    first = run_federation(quick(rounds=6), nations(4), tmp_path / "run", trainer_of=stopping)
    assert first.outcome is None
    assert checkpoint.last_complete(tmp_path / "run").round == 2
    assert _opened(tmp_path / "run/clients/1")[3, "rows"] == {1, 2, 3, 4}

    def mortal(graph: ClientGraph, config: RunConfig, number: int) -> KgeLearner:
        return _trainer_that(graph, config, number, at=3, act=_vanish if number == VICTIM else None)

    resumed = run_federation(quick(rounds=6), nations(4), tmp_path / "run", resume=True, trainer_of=mortal)
    survivors_agree(resumed)
    assert resumed.outcome is not None
    (abandoned,) = resumed.outcome.abandoned_sums
    assert (abandoned.round, abandoned.purpose) == (3, "rows")
    assert "opened before over other clients" in abandoned.reason
    assert resumed.outcome.rounds == 6
    assert _opened(tmp_path / "run/clients/1")[4, "rows"] == {1, 3, 4}


def test_a_resumed_round_over_the_same_clients_is_summed_again(tmp_path: Path) -> None:
    def stopping(graph: ClientGraph, config: RunConfig, number: int) -> KgeLearner:
        return _trainer_that(graph, config, number, at=4, act=_diverge)

    run_federation(quick(rounds=6), nations(4), tmp_path / "run", trainer_of=stopping)
    resumed = run_federation(quick(rounds=6), nations(4), tmp_path / "run", resume=True)
    unbroken = run_federation(quick(rounds=6), nations(4), tmp_path / "unbroken")
    assert resumed.done().abandoned_sums == []
    assert resumed.done().test == unbroken.done().test


def test_identities_against_an_active_server(tmp_path: Path) -> None:
    """The same result as without them, dropouts included: one client dies in round 2, before it shares keys."""
    pairs = {number: new_identity() for number in range(1, 6)}
    directory = _directory({number: pair.public for number, pair in pairs.items()})
    own = {number: credentials(pair.private_pem, directory, number) for number, pair in pairs.items()}
    active = quick(adversary="active", keys="keys", rounds=4)
    signed = run_federation(active, nations(5), tmp_path / "active", transport_of=dying_after(25), credentials=own)
    survivors_agree(signed)
    plain = run_federation(quick(rounds=4), nations(5), tmp_path / "trusting", transport_of=dying_after(21))
    survivors_agree(plain)
    assert signed.outcome is not None
    assert plain.outcome is not None
    assert signed.outcome.test == plain.outcome.test


def test_a_false_identity_ends_the_job_before_any_row_leaves(tmp_path: Path) -> None:
    pairs = {number: new_identity() for number in range(1, 4)}
    directory = _directory({number: pair.public for number, pair in pairs.items()})
    own = {number: credentials(pair.private_pem, directory, number) for number, pair in pairs.items()}
    impostor = new_identity()
    changed = _directory({1: pairs[1].public, 2: impostor.public, 3: pairs[3].public})
    own[2] = credentials(impostor.private_pem, changed, 2)
    run = run_federation(quick(adversary="active", keys="keys"), nations(3), tmp_path / "run", credentials=own)
    assert any("not signed by its pinned identity" in str(error) for error in run.client_errors.values())
    assert run.outcome is None


def _directory(publics: dict[int, str]) -> str:
    return directory_text([PublicIdentity(PartyId(number), public) for number, public in publics.items()])


def _opened(folder: Path) -> dict[tuple[int, str], frozenset[PartyId]]:
    return {opening.name: opening.survivors for opening in read_openings(folder)}


def _diverge() -> None:
    raise TrainingDiverged("made to stop here")


def _vanish() -> None:
    raise Vanished


def _trainer_that(
    graph: ClientGraph, config: RunConfig, number: int, *, at: int | None, act: Callable[[], Any] | None
) -> KgeLearner:
    """A trainer that does something before it trains round `at`, or before every round."""
    trainer = KgeLearner(graph, config.training, torch.device("cpu"), config.seed, number)
    train = trainer.train

    def act_and_train(round_id: RoundId) -> TrainStats:
        if act is not None and at in (None, round_id):
            act()
        return train(round_id)

    trainer.train = act_and_train  # type: ignore[assignment,method-assign]
    return trainer
