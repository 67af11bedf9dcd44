"""Sums of nearly the same inputs, over other clients: in another run of the same keys, and of clients that idle."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from protocols.foundation.identifiers import PartyId
from protocols.session.credentials import Credentials
from protocols.session.identities import PublicIdentity, credentials, directory_text, new_identity
from secure_kg.data.graph import ClientGraph
from secure_kg.federation.client.lineage import lineage
from secure_kg.federation.plan.run_plan import RunPlan
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.errors import UserError
from secure_kg.learning.config import TrainingConfig
from secure_kg.learning.kge import KgeLearner
from secure_kg.learning.learner import TrainStats
from secure_kg.runs import checkpoint
from secure_kg.runs.client_folder import read_openings
from secure_kg.runs.run_folder import RunFolder
from tests.support.dying_clients import VICTIM, dying_after
from tests.support.federation_in_threads import SMALL, Run, nations, run_federation, small_config

pytestmark = pytest.mark.long

CLIENTS = 4
NEARLY = TrainingConfig(dim=8, negatives=14, batch_size=256, local_epochs=1, lr=0.01 * (1 + 1e-6))


def settings(**changes: Any) -> RunConfig:
    """Where nobody dies, nobody may be taken for dead on a busy machine."""
    return small_config(**{"grace": 60.0, "adversary": "active", "keys": "keys", "checkpoint_every": 0, **changes})


@pytest.fixture(scope="module")
def identities() -> dict[int, Credentials]:
    pairs = {number: new_identity() for number in range(1, CLIENTS + 1)}
    text = directory_text([PublicIdentity(PartyId(number), pair.public) for number, pair in pairs.items()])
    return {number: credentials(pair.private_pem, text, number) for number, pair in pairs.items()}


@pytest.fixture(scope="module")
def done(identities: dict[int, Credentials], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Run]:
    """A run that came to its end, with the clients' records beside it."""
    path = tmp_path_factory.mktemp("done")
    return path, run_federation(
        settings(), nations(CLIENTS), path / "run", credentials=identities, records=path / "records"
    )


@pytest.fixture
def records(done: tuple[Path, Run], tmp_path: Path) -> Path:
    """What the clients know of that run."""
    for kept in (done[0] / "records").rglob("*.*"):
        if kept.is_file():
            copied = tmp_path / "records" / kept.relative_to(done[0] / "records")
            copied.parent.mkdir(parents=True, exist_ok=True)
            copied.write_bytes(kept.read_bytes())
    return tmp_path / "records"


# --- runs -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [{}, {"training": NEARLY}, {"strategy": "fede"}, {"rounds": 6, "patience": 9}],
    ids=["the same job", "a sweep", "another strategy", "more rounds"],
)
def test_with_all_clients_every_sum_of_another_run_opens(
    done: tuple[Path, Run], records: Path, identities: dict[int, Credentials], tmp_path: Path, changes: dict[str, Any]
) -> None:
    again = run_federation(
        settings(**changes), nations(CLIENTS), tmp_path / "run", credentials=identities, records=records
    )
    assert again.done().abandoned_sums == []
    assert again.done().test_clients == CLIENTS
    if not changes:
        assert again.done().test == done[1].done().test


def without_one(config: RunConfig, path: Path, own: dict[int, Credentials], records: Path) -> list[dict[str, Any]]:
    """The sums that a run has lost in which a client is missing from round 2 on."""
    run = run_federation(config, nations(CLIENTS), path, credentials=own, records=records, transport_of=dying_after(17))
    assert run.gone == {VICTIM}
    assert run.outcome is not None, run.server_error
    return [one for one in run.outcome.abandoned_sums if "in another run" in one.reason]


@pytest.mark.parametrize("training", [SMALL, NEARLY], ids=["the same rate", "nearly the same rate"])
def test_a_run_without_one_client_loses_its_sums(
    records: Path, identities: dict[int, Credentials], tmp_path: Path, training: TrainingConfig
) -> None:
    config = settings(training=training, grace=3.0)
    lost = without_one(config, tmp_path / "run", identities, records)
    assert {(3, "rows"), (4, "rows"), (4, "valid"), (5, "test")} <= {(one.round, one.purpose) for one in lost}
    assert all("another --seed" in one.reason for one in lost)


def test_another_seed_is_the_way_out(records: Path, identities: dict[int, Credentials], tmp_path: Path) -> None:
    assert without_one(settings(seed=1, grace=3.0), tmp_path / "run", identities, records) == []


def test_a_semi_honest_record_belongs_to_its_run(tmp_path: Path) -> None:
    config = small_config(grace=3.0, checkpoint_every=0)
    run_federation(config, nations(CLIENTS), tmp_path / "first").done()
    again = run_federation(config, nations(CLIENTS), tmp_path / "again", transport_of=dying_after(17))
    assert again.outcome is not None
    assert not any("in another run" in one.reason for one in again.outcome.abandoned_sums)


# --- lineages ---------------------------------------------------------------------------------------------------------


def test_a_lineage_has_what_changes_inputs_altogether_and_nothing_else() -> None:
    def of(purpose: str = "rows", number: int = 3, trained: int = 2, **changes: Any) -> str:
        return lineage(RunPlan(small_config(**changes), CLIENTS), purpose, number, trained)

    unrelated = [
        of(),
        of(number=4),
        of("valid"),
        of("valid", trained=3),
        of("test"),
        of(seed=1),
        of(strategy="fede"),
        of(training=TrainingConfig(dim=16)),
        of(training=TrainingConfig(dim=8, model="RotatE")),
    ]
    assert len(set(unrelated)) == len(unrelated)
    for changes in ({"training": NEARLY}, {"rounds": 9}, {"eval_every": 1}, {"client_fraction": 0.5}, {"clip": 8.0}):
        assert of(**changes) == of()
    assert of("valid", number=9) == of("valid")  # a client that was not drawn since has the same results
    assert of("test", number=9) == of("test")  # a server chooses when a run ends
    assert {of(purpose) for purpose in ("holders", "union/0", "names", "vote")} == {""}


def test_where_clients_see_their_neighbours_only_results_have_none() -> None:
    """They are others in every sum: no evaluation would be opened after the first."""
    plan = RunPlan(small_config(max_corrupt=0.1, max_dropout=0.1), 200)
    assert not plan.sees_survivors
    assert lineage(plan, "valid", 4, 2) == ""
    assert lineage(plan, "rows", 4, 2) != ""


# --- clients that idle ------------------------------------------------------------------------------------------------


def idle_settings(**changes: Any) -> RunConfig:
    """Two of five clients are drawn for a round, and all are evaluated after each."""
    sampled = {"client_fraction": 0.4, "max_corrupt": 0.0, "min_holders": 2, "eval_every": 1, "checkpoint_every": 2}
    return small_config(**{"rounds": 6, "patience": 99, **sampled, **changes})


def breaking_off(graph: ClientGraph, config: RunConfig, number: int) -> KgeLearner:
    """Nobody trains round 6."""
    trainer = KgeLearner(graph, config.training, torch.device("cpu"), config.seed, number)
    train = trainer.train

    def other(round: int) -> TrainStats:
        if round == 6:
            raise UserError("power cut")
        return train(round)

    trainer.train = other  # type: ignore[method-assign]
    return trainer


def figures(path: Path) -> dict[int, dict[str, Any]]:
    """Of each evaluation, by round."""
    lines = [json.loads(line) for line in (path / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    measured = ("seconds", "bytes_up", "bytes_down")
    return {line["round"]: {name: value for name, value in line.items() if name not in measured} for line in lines}


def test_evaluations_of_idle_clients_are_repeated_after_a_resume_to_the_last_bit(tmp_path: Path) -> None:
    """Round 5 was evaluated before the job broke off, and is again: with the same losses in it, too."""
    path = tmp_path / "run"
    run_federation(idle_settings(), nations(5), path, trainer_of=breaking_off)
    assert checkpoint.last_complete(path).round == 4
    before = figures(path)
    assert set(before) == {1, 2, 3, 4, 5}
    resumed = run_federation(idle_settings(), nations(5), path, resume=True)
    assert resumed.done().abandoned_sums == []
    after = figures(path)
    assert {number: after[number] for number in before} == before
    unbroken = run_federation(idle_settings(), nations(5), tmp_path / "unbroken")
    assert resumed.done().test == unbroken.done().test
    assert after == figures(tmp_path / "unbroken")


def test_an_idle_client_has_the_commitment_of_its_last_results(tmp_path: Path) -> None:
    """Whatever rows it was sent since. One that has trained has a new one."""
    run_federation(idle_settings(), nations(5), tmp_path / "run").done()
    plan = RunPlan(idle_settings(), 5)
    opened = {one.round: one for one in read_openings(RunFolder(tmp_path / "run").client(1)) if one.purpose == "valid"}
    assert set(opened) == set(range(1, 7))
    for number in range(2, 7):
        for party in plan.clients:
            same = opened[number].states[party] == opened[number - 1].states[party]
            assert same == (party not in plan.participants(number))


def test_checkpoints_of_earlier_versions_are_gone_on_from(tmp_path: Path) -> None:
    path = tmp_path / "run"
    run_federation(idle_settings(), nations(5), path, trainer_of=breaking_off)
    for number in range(1, 6):
        folder = RunFolder(path).client(number)
        arrays, record = checkpoint.load_part(folder, 4)
        del record["trained"]
        checkpoint.save_part(folder, 4, {name: np.array(array) for name, array in arrays.items()}, record)
        (folder / "openings.jsonl").unlink()  # these have other commitments
    assert run_federation(idle_settings(), nations(5), path, resume=True).done().rounds == 6
