"""A run that a client goes on with on another machine: it comes to its end, and no sum is opened again otherwise."""

from pathlib import Path
from typing import Any

import pytest

from secure_kg.data.graph import ClientGraph
from secure_kg.federation.client.moved import moved
from secure_kg.federation.client.site import Equipment, OwnSite
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.errors import UserError
from secure_kg.learning import device
from secure_kg.learning.kge import KgeLearner
from secure_kg.runs.client_folder import read_openings, run_id
from tests.support.federation_in_threads import nations, run_federation, small_config

GPU, CPU = "GPU of a kind, torch 2", "CPU of a kind, torch 2"
CONFIG = small_config(rounds=8, checkpoint_every=4)
BROKE_OFF = 7


def breaks_off(graph: ClientGraph, config: RunConfig, number: int) -> KgeLearner:
    trainer = KgeLearner(graph, config.training, device.CPU, config.seed, number)
    train = trainer.train

    def until(round: int) -> Any:
        if round >= BROKE_OFF:
            raise UserError("power cut")
        return train(round)

    trainer.train = until  # type: ignore[method-assign]
    return trainer


@pytest.fixture
def broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run that broke off in round 7, three rounds after its checkpoint."""
    on(monkeypatch, GPU)
    assert run_federation(CONFIG, nations(3), tmp_path / "run", trainer_of=breaks_off).server_error is not None
    return tmp_path / "run"


def on(monkeypatch: pytest.MonkeyPatch, first: str, others: str = GPU) -> None:
    """On what client 1 and the others compute."""
    made = Equipment.__init__

    def equip(self: Equipment, learner: KgeLearner, *given: Any, **named: Any) -> None:
        made(self, learner, *given, **{**named, "computed": first if learner._client == 1 else others})

    monkeypatch.setattr(Equipment, "__init__", equip)


def test_the_same_machine_loses_no_sum(broken: Path) -> None:
    assert run_federation(CONFIG, nations(3), broken, resume=True).done().abandoned_sums == []


def test_another_machine_is_in_no_sum_that_may_have_been_opened(broken: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    on(monkeypatch, CPU)
    outcome = run_federation(CONFIG, nations(3), broken, resume=True).done()
    lost = outcome.abandoned_sums
    assert {one.round for one in lost} == {5, 6, BROKE_OFF}
    assert {"valid", "holders"} <= {one.purpose for one in lost}
    assert all("computed on another machine" in one.reason for one in lost)
    own = read_openings(broken / "clients/1")
    assert [one.computed for one in own if one.purpose == "rows" and one.round == 8] == [CPU]
    assert len({(one.round, one.purpose, one.computed) for one in own}) == len({one.name for one in own})


def test_the_client_says_what_comes_of_it(broken: Path) -> None:
    folder = broken / "clients/1"
    known, run = read_openings(folder), run_id(folder)
    line = moved(known, run, CPU)
    assert line is not None
    assert f"was computed on {GPU} up to round 6 and goes on on {CPU}" in line
    assert "in no sum up to round 7" in line
    assert "from round 8 on are as always" in line
    for silent in ((known, run, GPU), (known, "another run", CPU), (known, run, ""), ([], run, CPU)):
        assert moved(*silent) is None


def test_a_site_says_it_when_it_is_equipped(broken: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    said: list[str] = []
    site = OwnSite(config=CONFIG, number=1, clients=3, runs=broken, out=broken, resume=True, report=said.append)
    equipment = site.equip(site.folder("run"))
    assert equipment.computed == device.computed_on(device.CPU)
    assert [line.partition(":")[0] for line in said] == ["client 1"]
    assert f"goes on on {equipment.computed}" in said[0]
