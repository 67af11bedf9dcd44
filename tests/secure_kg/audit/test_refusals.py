"""A client that refuses a sum as opened before names an opening that the record has; else the record was cut."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from protocols.foundation.errors import SumAbandoned
from protocols.foundation.identifiers import PartyId, RoundId
from protocols.session.conversation import Abandon
from protocols.sums.secagg.messages import PEERS_BYTES, MaskedInput, Survivors
from protocols.sums.secagg.openings import Opening, Openings
from secure_kg.audit.checks.refusals import Refusals
from secure_kg.audit.view.read import Observation
from secure_kg.data.graph import ClientGraph
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.errors import UserError
from secure_kg.learning.kge import KgeLearner
from secure_kg.learning.learner import TrainStats
from tests.support.audited_runs import audited, audited_config, ids
from tests.support.dying_clients import VICTIM
from tests.support.federation_in_threads import Run, Vanished, nations, run_federation

pytestmark = pytest.mark.long

ALL, BUT_ONE = frozenset({1, 2, 3}), frozenset({1, 2})


def survivors(client: int, number: int = 4, purpose: str = "rows") -> Observation:
    return Observation(0, 0, "sent", client, number, "", Survivors(purpose, []), 0, b"")


def masked(client: int, number: int = 4, purpose: str = "rows") -> Observation:
    message = MaskedInput(purpose, np.zeros(1, dtype=np.uint32), bytes(PEERS_BYTES))
    return Observation(0, 0, "received", client, number, "", message, 0, b"")


def refused(client: int, number: int = 4, purpose: str = "rows", named: int = 4, run: str = "run") -> Observation:
    """In the words of a client that has opened the purpose in the round `named`, in a run of that name."""

    def opening(of_round: int, who: frozenset[int]) -> Opening:
        return Opening(RoundId(of_round), purpose, frozenset(map(PartyId, who)), {PartyId(1): b"state"}, run=run)

    with pytest.raises(SumAbandoned) as refusal:
        Openings([opening(named, ALL)], run="run").open(opening(number, BUT_ONE))
    message = Abandon(purpose, str(refusal.value))
    return Observation(0, 0, "received", client, number, "", message, 0, b"")


def looked_at(*sessions: list[Observation]) -> Refusals:
    check = Refusals(audited_config(4), 4)
    for session in sessions:
        check.begin_session()
        for one in session:
            check.observe(one)
    return check


def evidence(*sessions: list[Observation]) -> list[str]:
    return [line for finding in looked_at(*sessions).findings() for line in finding.evidence]


def test_what_an_earlier_session_shows_is_no_news() -> None:
    whole = [masked(1), masked(2), survivors(1), survivors(2)]
    again = [masked(1), masked(2), survivors(1), survivors(2), refused(1), refused(2)]
    check = looked_at(whole, again, again)
    assert check.findings() == []
    assert check.refusals == 4
    assert evidence([survivors(1, 3, "valid")], [refused(1, 5, "valid", named=3)]) == []
    assert evidence([survivors(1, 3, "valid"), refused(1, 5, "valid", named=3)]) == []  # in the same session


def test_what_no_session_shows_is_named() -> None:
    (line,) = evidence([], [masked(1), survivors(1), refused(1)])
    assert line == "session 2, round 4, rows: client 1 has helped to open rows of round 4"
    (finding,) = looked_at([], [refused(1)]).findings()
    assert (finding.id, finding.severity) == ("opening-not-recorded", "high")


def test_a_sum_that_was_refused_before_is_no_opening() -> None:
    again = [masked(1), masked(2), survivors(1), survivors(2), refused(1), refused(2)]
    assert len(evidence([], again, again)) == 2  # of each client once
    assert len(evidence([survivors(2)], again)) == 1


def test_a_server_that_is_killed_while_it_sends_the_survivors_is_not_accused() -> None:
    """It may have told one client, which it had the input of, and not recorded that. Two are too many."""
    begun = [masked(1), masked(2), masked(3)]
    assert evidence(begun, [refused(1)]) == []
    assert evidence([*begun, survivors(1)], [refused(1), refused(2)]) == []
    assert len(evidence(begun, [refused(1), refused(2)])) == 2
    assert len(evidence([masked(2)], [refused(1)])) == 1


def test_refusals_for_another_run_or_for_other_reasons_say_nothing() -> None:
    other = Observation(0, 0, "received", 1, 4, "", Abandon("rows", "a client dropped out after the count"), 0, b"")
    relayed = Observation(0, 0, "sent", 1, 4, "", refused(2).message, 0, b"")
    check = looked_at([refused(1, run="another"), other, relayed])
    assert check.findings() == []
    assert check.refusals == 0


def test_sums_of_the_set_up_are_left_to_other_checks() -> None:
    """A job that fails before its first round removes its folder, and clients know of its union."""
    assert evidence([refused(1, 0, "union/0", named=0)]) == []


# --- honest runs ------------------------------------------------------------------------------------------------------


def acting(at: int, act: Callable[[int], None]) -> Callable[[ClientGraph, RunConfig, int], KgeLearner]:
    """Trainers that do something else in round `at`."""

    def make(graph: ClientGraph, config: RunConfig, number: int) -> KgeLearner:
        trainer = KgeLearner(graph, config.training, torch.device("cpu"), config.seed, number)
        train = trainer.train

        def other(round: int) -> TrainStats:
            if round == at:
                act(number)
            return train(round)

        trainer.train = other  # type: ignore[method-assign]
        return trainer

    return make


def power_cut(number: int) -> None:
    raise UserError("power cut")


def vanish(number: int) -> None:
    if number == VICTIM:
        raise Vanished


@pytest.mark.parametrize("aggregation", ["secagg", "secret"])
def test_an_honest_job_that_is_resumed_without_a_client_is_not_accused(tmp_path: Path, aggregation: str) -> None:
    """Its clients refuse round 3, its evaluation and the test results by name, and the record has all of them."""
    run, changes = tmp_path / "run", {"aggregation": aggregation, "grace": 3.0, "eval_every": 3, "checkpoint_every": 2}
    first = run_federation(audited_config(4, rounds=5, **changes), nations(4), run, trainer_of=acting(4, power_cut))
    assert first.outcome is None
    resumed: Run = run_federation(
        audited_config(4, rounds=5, **changes), nations(4), run, resume=True, trainer_of=acting(3, vanish)
    )
    assert resumed.outcome is not None
    assert any("opened before over other clients" in one.reason for one in resumed.outcome.abandoned_sums)
    found = audited(run)
    assert ids(found, "high") == set()
    (check,) = (one for one in found.checks if one.id == Refusals.id)
    assert not check.looked_at.startswith("0 refusals")
