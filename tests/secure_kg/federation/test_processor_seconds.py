"""Processor seconds and peak memory: in every result, and carried over a resumption, also from older checkpoints."""

from pathlib import Path
from typing import Any

import pytest

from protocols.foundation.spent import Spent
from secure_kg.runs import checkpoint
from secure_kg.runs.run_folder import RunFolder, read_json
from secure_kg.runs.stopwatch import PHASES, Stopwatch
from secure_kg.runs.summary import summarise
from tests.support.federation_in_threads import nations, run_federation, small_config


def test_every_result_has_them(tmp_path: Path) -> None:
    config = small_config(rounds=2)
    outcome = run_federation(config, nations(3), tmp_path / "run").done()
    summary = summarise(config, outcome, RunFolder(tmp_path / "run"))
    for number in (1, 2, 3):
        result = read_json(tmp_path / "run" / "clients" / str(number) / "result.json")
        assert result["seconds"].keys() == result["cpu_seconds"].keys() == set(PHASES)
        for phase in ("train", "mask", "holders", "take", "evaluate"):
            assert result["cpu_seconds"][phase] > 0
        assert result["peak_memory_mb"] > 10
        assert result["messages_received"] > 0
    assert summary.cpu_seconds.keys() == set(PHASES)
    assert summary.cpu_seconds["unmask"] == summary.cpu_seconds_server["unmask"] > 0
    assert summary.to_json()["peak_memory_mb"].keys() == {"server", "client_mean", "client_max"}


@pytest.mark.parametrize("old", [False, True])
def test_a_resumed_run_goes_on_counting(old: bool, tmp_path: Path) -> None:
    path, config = tmp_path / "run", small_config(rounds=2, checkpoint_every=2)
    run_federation(config, nations(3), path).done()
    for part in path.rglob("checkpoint-*.safetensors"):
        arrays, record = checkpoint.load_arrays(part)
        record["cpu_seconds"] |= {"unmask": 1000.0, "mask": 2000.0}
        checkpoint.save_arrays(part, arrays, _as_earlier_versions(record) if old else record)
    after = run_federation(small_config(rounds=4, checkpoint_every=2), nations(3), path, resume=True).done()
    result = read_json(path / "clients" / "1" / "result.json")
    assert (after.cpu_seconds["unmask"] > 1000) == (result["cpu_seconds"]["mask"] > 2000) == (not old)
    assert after.cpu_seconds["unmask"] > 0
    assert result["seconds"].keys() == set(PHASES)


def _as_earlier_versions(record: dict[str, Any]) -> dict[str, Any]:
    record.pop("cpu_seconds")
    record["seconds"] = {name: value for name, value in record["seconds"].items() if name not in ("holders", "take")}
    return record


def test_a_stopwatch_counts_also_what_fails() -> None:
    watch = Stopwatch()
    with pytest.raises(ValueError, match="invalid"), watch.measure("train"):
        int("x" * 100_000)
    assert watch.seconds["train"] > 0
    assert watch.cpu_seconds["train"] > 0
    watch.add("train", Spent(1.0, 2.0))
    assert watch.seconds["train"] > 1
    assert watch.cpu_seconds["train"] > 2
