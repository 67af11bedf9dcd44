"""The benchmark of one masked sum on small sizes, and its mistakes. Times are never compared."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import flower_peer, masked_sum_timing, secagg
from benchmarks.flower_peer import FlowerPeer
from protocols.foundation.identifiers import PartyId
from protocols.sums.secagg.server import Step
from protocols.sums.secagg.simulation import SimulationResult, simulate

SMALL = ["--clients", "5", "--dim", "50", "--dropout", "0.2", "--repeat", "2"]


@pytest.fixture
def no_flower(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flower_peer, "load", lambda: None)


@pytest.mark.usefixtures("no_flower")
def test_writes_the_figures_and_shows_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert secagg.main([*SMALL, "--json", str(tmp_path / "deep" / "secagg.json")]) == 0
    report = json.loads((tmp_path / "deep" / "secagg.json").read_text())
    assert report["sum_is_exact"] is True
    assert (report["survivors"], report["degree"], report["threshold"]) == (4, 4, 4)
    for name in ("mask_over_keystream", "unmask_over_keystream", "client_seconds", "server_seconds", "encode_seconds"):
        assert report[name] > 0
    assert report["unmask_expansions"] == 4 + 4
    assert report["client_bytes_up"] > 4 * 50
    assert report["expansion"] == pytest.approx(report["client_bytes_up"] / 200, rel=0.01)
    for name in ("flower_speedup", "flower_encode_mask_speedup", "flower_share_speedup", "flower_version"):
        assert report[name] is None
    names = [phase["name"] for phase in report["phases"]]
    assert names == ["set-up", "advertise keys", "share keys", "masked input", "unmasking"]
    assert report["phases"][3]["all_bytes_up"] == 4 * report["phases"][3]["client_bytes_up"]
    assert report["published"]["server_seconds"] == 181
    shown = capsys.readouterr().out
    assert "sum exact" in shown
    assert "flwr is not installed" in shown
    assert "another machine and another language" in " ".join(shown.split())


@pytest.mark.usefixtures("no_flower")
@pytest.mark.parametrize(
    ("options", "entry_bytes"),
    [(["--group", "64"], 8), (["--group", "field"], 8), (["--graph", "complete"], 4), (["--server", "active"], 4)],
)
def test_json_to_standard_output(options: list[str], entry_bytes: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert secagg.main([*SMALL, *options, "--json", "-"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["sum_is_exact"] is True
    assert report["graph"] == "complete"  # so few clients leave no other choice
    assert report["client_bytes_up"] > entry_bytes * 50


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (["--clients", "1"], "--clients"),
        (["--dim", "0"], "--dim"),
        (["--repeat", "0"], "--repeat"),
        (["--seed", "-1"], "--seed"),
        (["--dropout", "1"], "--dropout"),
        (["--dropout", "nan"], "--dropout"),
        (["--corrupt", "1.5"], "corrupt"),
        (["--corrupt", "0.8", "--dropout", "0.2"], "honest survivors"),
        (["--server", "active", "--graph", "sparse"], "complete graph"),
        (["--group", "16"], "--group"),
        (["--nonsense"], "--nonsense"),
    ],
)
def test_a_mistake_gets_one_line(options: list[str], part: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert secagg.main(options) == 2
    errors = capsys.readouterr().err.splitlines()
    assert len(errors) == 1
    assert errors[0].startswith("error: ")
    assert part in errors[0]


def test_a_file_that_cannot_be_written_is_noticed_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    for target in (tmp_path, tmp_path / "file" / "secagg.json"):
        assert secagg.main(["--json", str(target)]) == 2
        output = capsys.readouterr()
        assert output.out == ""
        assert len(output.err.splitlines()) == 1
        assert "cannot be written" in output.err


def test_a_wrong_sum_is_not_a_success(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def off_by_one(*arguments: Any, **named: Any) -> SimulationResult:
        result = simulate(*arguments, **named)
        return replace(result, total=result.total + np.uint32(1))

    monkeypatch.setattr(masked_sum_timing, "simulate", off_by_one)
    monkeypatch.setattr(flower_peer, "load", lambda: None)
    assert secagg.main([*SMALL, "--json", "-"]) == 1
    output = capsys.readouterr()
    assert json.loads(output.out)["sum_is_exact"] is False
    assert len(output.err.splitlines()) == 1


def masks(_seed: bytes, _modulus: int, shapes: list[tuple[int, ...]]) -> list[np.ndarray[Any, Any]]:
    return [np.ones(shape, dtype=np.int64) for shape in shapes]


STAND_INS = {
    "quantize": lambda vectors, _clip, _range: [np.zeros(len(vector), dtype=np.int32) for vector in vectors],
    "factor_combine": lambda factor, vectors: [np.array([factor]), *vectors],
    "parameters_addition": lambda left, right: [a + b for a, b in zip(left, right, strict=True)],
    "parameters_subtraction": lambda left, right: [a - b for a, b in zip(left, right, strict=True)],
    "parameters_mod": lambda vectors, modulus: [vector & (modulus - 1) for vector in vectors],
    "pseudo_rand_gen": masks,
    "create_shares": lambda secret, _threshold, holders: [secret] * holders,
    "combine_shares": lambda shares: shares[0],
}


def test_the_peer_masks_like_a_client_of_flower() -> None:
    peer = FlowerPeer("0", STAND_INS)
    masked = peer.encode_and_mask(np.zeros(3, dtype=np.float32), bytes(32), [bytes(32)] * 3, [bytes(32)])
    assert masked.tolist() == [1 + 3 - 1] * 3
    assert peer.share_and_recombine(b"secret", 2, 3) == b"secret"


def test_compares_with_flower_where_it_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(flower_peer, "load", lambda: FlowerPeer("1.0-test", STAND_INS))
    assert secagg.main([*SMALL, "--json", str(tmp_path / "secagg.json")]) == 0
    report = json.loads((tmp_path / "secagg.json").read_text())
    assert report["flower_speedup"] == report["flower_encode_mask_speedup"] > 0
    assert report["flower_share_speedup"] > 0
    assert report["flower_version"] == "1.0-test"
    assert "Flower 1.0-test" in capsys.readouterr().out
    # The field has no fixed-point encoding to compare.
    assert secagg.main([*SMALL, "--group", "field", "--json", "-"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["flower_speedup"] is None
    assert report["flower_share_speedup"] > 0


def test_without_flower_there_is_no_peer(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "flwr"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "flwr", None)  # as if it were not installed
    assert flower_peer.load() is None


def test_the_seed_decides_who_drops_out_and_what_is_added() -> None:
    group, party = secagg.GROUPS["field"], PartyId(1)
    vectors = [masked_sum_timing.random_inputs(group, 8, seed)(party) for seed in (1, 1, 2)]
    assert np.array_equal(vectors[0], vectors[1])
    assert not np.array_equal(vectors[0], vectors[2])
    dropped = [masked_sum_timing.drop_out(20, 0.2, seed)[Step.MASKED_INPUT] for seed in (1, 1, 2)]
    assert dropped[0] == dropped[1] != dropped[2]
    assert {len(who) for who in dropped} == {4}
