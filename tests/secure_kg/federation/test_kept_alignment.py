"""What a run keeps of its alignment: a resumption goes on from it, and damage is refused."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from protocols.alignment.interface import Positions, Union
from protocols.alignment.psu.attempts import UnionPlaces
from protocols.foundation.identifiers import PartyId
from protocols.foundation.wire import Frame
from protocols.transport.base import Transport
from protocols.transport.in_process import InProcessNetwork, InProcessTransport
from secure_kg.federation.server import server
from secure_kg.foundation.errors import UserError
from secure_kg.runs.alignment_files import (
    AlignedRun,
    load_aligned,
    load_positions,
    save_aligned,
    save_positions,
)
from secure_kg.runs.checkpoint import load_arrays, save_arrays
from tests.support.federation_in_threads import Vanished, nations, run_federation, small_config
from tests.support.transcripts import seen_by_server

pytestmark = pytest.mark.long


def test_a_resumed_run_keeps_its_alignment(tmp_path: Path) -> None:
    """A second union over other clients would show how many names one of them alone holds."""
    graphs = nations(3)
    run_federation(small_config(rounds=2, transcript=True), graphs, tmp_path / "run").done()
    again = run_federation(small_config(rounds=4, transcript=True), graphs, tmp_path / "run", resume=True)
    again.done()
    unions = [one for one in seen_by_server(tmp_path / "run") if isinstance(one.message, UnionPlaces)]
    assert len(unions) == 3
    assert (tmp_path / "run/clients/1/alignment.safetensors").exists()
    (tmp_path / "run/clients/2/alignment.safetensors").unlink()
    broken = run_federation(small_config(rounds=6), graphs, tmp_path / "run", resume=True)
    assert "without it this client cannot go on with the run" in str(broken.client_errors[2])


def test_a_checkpoint_without_its_alignment_is_refused(tmp_path: Path) -> None:
    """Aligned anew, the rows of the checkpoint would belong to other names."""
    run_federation(small_config(rounds=2), nations(2), tmp_path / "run").done()
    (tmp_path / "run/server/alignment.json").unlink()
    again = run_federation(small_config(rounds=4), nations(2), tmp_path / "run", resume=True)
    assert isinstance(again.server_error, UserError)
    assert "alignment.json is missing" in str(again.server_error)


@pytest.mark.parametrize("damage", ["out of range", "negative", "twice", "too short", "floats", "absent"])
def test_damaged_positions_are_refused(tmp_path: Path, damage: str) -> None:
    names = ("a", "b", "c")
    save_positions(tmp_path, Positions(5, np.array([4, 0, 2]), b"d" * 32), names)
    assert load_positions(tmp_path, b"d" * 32, names).own.tolist() == [4, 0, 2]
    _, record = load_arrays(tmp_path / "alignment.safetensors")
    own = {
        "out of range": np.array([4, 0, 5]),
        "negative": np.array([4, 0, -1]),
        "twice": np.array([4, 0, 4]),
        "too short": np.array([4, 0]),
        "floats": np.array([4.0, 0.0, 2.0]),
    }
    save_arrays(tmp_path / "alignment.safetensors", {"positions": own[damage]} if damage in own else {}, record)
    with pytest.raises(UserError, match="not the positions of this client's names"):
        load_positions(tmp_path, b"d" * 32, names)


@pytest.mark.parametrize("change", [{"size": -7}, {"size": 0}, {"digest": "ab"}, {"clients": []}, {"clients": "x"}])
def test_a_damaged_record_of_the_alignment_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    save_aligned(tmp_path, Union(5, b"d" * 32), [1, 2])
    assert load_aligned(tmp_path) == AlignedRun(Union(5, b"d" * 32), (1, 2))
    record = json.loads((tmp_path / "alignment.json").read_text())
    (tmp_path / "alignment.json").write_text(json.dumps(record | change))
    with pytest.raises(UserError, match="not a record of an alignment"):
        load_aligned(tmp_path)


def test_a_client_that_dies_before_it_has_written_its_positions_does_not_spoil_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_SETUP_GRACE", 2.0)
    graphs = nations(4)
    last_word = 7  # of set-up: Aligned
    first = run_federation(
        small_config(rounds=2, grace=2.0), graphs, tmp_path / "run", transport_of=_dying(3, after=last_word)
    )
    assert first.gone == {3}
    assert json.loads((tmp_path / "run/server/alignment.json").read_text())["clients"] == [1, 2, 4]
    again = run_federation(small_config(rounds=4, grace=2.0), graphs, tmp_path / "run", resume=True)
    assert again.gone == {3}
    assert not again.client_errors


def test_a_client_of_another_run_is_refused(tmp_path: Path) -> None:
    graphs = nations(2)
    for name in ("one", "two"):
        run_federation(small_config(rounds=2), graphs, tmp_path / name).done()
    foreign = (tmp_path / "two/clients/1/alignment.safetensors").read_bytes()
    (tmp_path / "one/clients/1/alignment.safetensors").write_bytes(foreign)
    run = run_federation(small_config(rounds=4), graphs, tmp_path / "one", resume=True)
    assert "of another run than the server's" in str(run.client_errors[1])


def test_a_client_that_missed_the_alignment_stays_out_after_a_resumption(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_SETUP_GRACE", 2.0)
    graphs = nations(4)
    config = small_config(rounds=2, grace=2.0)
    first = run_federation(config, graphs, tmp_path / "run", transport_of=_dying(3, after=3))
    assert first.gone == {3}
    again = run_federation(small_config(rounds=4, grace=2.0), graphs, tmp_path / "run", resume=True)
    assert again.gone == {3}
    assert again.outcome is not None
    assert again.outcome.rounds == 4
    assert {dropout.client for dropout in again.outcome.dropouts} == {3}


def _dying(victim: int, after: int) -> Callable[[InProcessNetwork, int], Transport]:
    class Dying(InProcessTransport):
        left = after

        def _post(self, to: PartyId, frame: Frame) -> None:
            if self.left == 0:
                raise Vanished
            self.left -= 1
            super()._post(to, frame)

    def transport(network: InProcessNetwork, number: int) -> Transport:
        party = PartyId(number)
        return Dying(network, party, [PartyId(0)]) if number == victim else network.endpoint(party)

    return transport
