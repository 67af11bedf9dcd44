"""Whole runs under narrow rings: audited, resumed, with bytes saved both ways, and with servers that lie about rows."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.byte_counts import Uploads
from protocols.foundation import wire
from protocols.foundation.errors import EncodingOverflow
from protocols.foundation.identifiers import RoundId, SessionId
from secure_kg.federation.plan.blocks import Block
from secure_kg.federation.plan.by_name import resolved
from secure_kg.federation.plan.messages import PackedRows, SharedRows, packed_rows_bytes
from secure_kg.federation.plan.run_plan import RunPlan
from secure_kg.federation.server import shared_table
from secure_kg.federation.server.set_up import check_feasible
from secure_kg.foundation.errors import UserError
from tests.support.audited_runs import audited, edited, ids, observed, recorded_run, replacing, resumed_run
from tests.support.federation_in_threads import nations, relation_rows, run_federation, small_config


@pytest.mark.parametrize("aggregation", ["secagg", pytest.param("secret", marks=pytest.mark.slow)])
def test_a_run_of_16_bits_has_nothing_for_an_audit_to_find(tmp_path: Path, aggregation: str) -> None:
    run = recorded_run(tmp_path / "run", aggregation=aggregation, strategy="fede", ring_bits=16)
    assert not ids(audited(run), "high", "medium")
    tables = [one.message for one in observed(run) if isinstance(one.message, SharedRows | PackedRows)]
    assert all(isinstance(table, PackedRows) for table in tables)
    assert bool(tables) == (aggregation == "secagg")


def test_an_audit_of_17_bits_finds_rows_that_no_sum_gives(tmp_path: Path) -> None:
    run = recorded_run(tmp_path / "run", strategy="fede", ring_bits=17)
    assert not ids(audited(run), "high", "medium")

    def changed(one: Any) -> wire.Message:
        message = one.message
        rows = message.rows.copy()
        rows[0, 0] += np.float32(1.0 / (1 << message.fraction_bits))
        return PackedRows.of(message.block, rows, message.averaged, message.grid)

    false = edited(run, tmp_path / "false", replacing(lambda one: isinstance(one.message, PackedRows), changed))
    assert "false-totals" in ids(audited(false), "high")


def test_a_run_that_is_resumed_is_as_one_that_was_not_broken(tmp_path: Path) -> None:
    config, graphs = small_config(ring_bits=17, rounds=4, checkpoint_every=2, clip=1.0), nations(3)
    whole = run_federation(config, graphs, tmp_path / "whole")
    run_federation(dataclasses.replace(config, rounds=2), graphs, tmp_path / "part")
    resumed = run_federation(config, graphs, tmp_path / "part", resume=True)
    assert resumed.done().test == whole.done().test
    for number, rows in relation_rows(whole).items():
        np.testing.assert_array_equal(rows, relation_rows(resumed)[number])


@pytest.mark.slow
def test_a_resumed_run_passes_its_audit(tmp_path: Path) -> None:
    assert not ids(audited(resumed_run(tmp_path / "run", ring_bits=16)), "high", "medium")


@pytest.mark.parametrize("ring_bits", [16, 32])
def test_rows_on_another_grid_than_the_settings_give_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ring_bits: int
) -> None:
    config = small_config(ring_bits=ring_bits, clients=3)
    other = RunPlan(dataclasses.replace(config, ring_bits=17), 3)
    grid = other.row_layout(other.blocks[0], 1).grid if ring_bits == 32 else None
    usual = shared_table.ReadableTable.__init__

    def begin(self: Any, block: Block, union: Any, _: Any = None) -> None:
        usual(self, block, union, grid)

    monkeypatch.setattr(shared_table.ReadableTable, "__init__", begin)
    run = run_federation(config, nations(3), tmp_path / "run")
    assert "on another grid" in " ".join(run.on_consoles)


@pytest.mark.parametrize(
    "change",
    [
        {"width": 0},
        {"width": 3},
        {"bits": 0},
        {"bits": 25},
        {"fraction_bits": -1},
        {"fraction_bits": 53},
        {"block": "x" * 256},
        {"numbers": np.zeros(9, dtype="<u1")},
        {"numbers": np.zeros(5, dtype="<u2")},
        {"numbers": np.full(10, 0xFF, dtype="<u1")},
        {"averaged": np.zeros(3, dtype="<u4")},
        {"averaged": np.zeros(2, dtype="<u8")},
    ],
    ids=str,
)
def test_packed_rows_that_are_none_are_no_message(change: dict[str, Any]) -> None:
    right = {"block": "", "width": 5, "fraction_bits": 4, "bits": 7, "numbers": np.zeros(9, dtype="<u1")}
    right |= {"averaged": np.zeros(2, dtype="<u4")}
    assert PackedRows(**right).rows.shape == (2, 5)
    if "numbers" in change and len(change["numbers"]) == 9 and change["numbers"].dtype == np.uint8:
        change = {"numbers": np.append(change["numbers"][:-1], np.uint8(0xFF))}
    with pytest.raises(ValueError, match=r"."):
        PackedRows(**{**right, **change})


@pytest.mark.parametrize("ring_bits", [16, 17, 24])
def test_the_size_of_packed_rows_is_counted_exactly(ring_bits: int) -> None:
    plan = RunPlan(small_config(ring_bits=ring_bits, clients=3), 3)
    block = plan.blocks[0]
    for rows in (1, 55, 5000):
        layout = plan.row_layout(block, rows)
        assert layout.grid is not None
        message = block.message(np.zeros((rows, block.width), "<f4"), np.zeros(rows, "<u4"), layout.grid)
        frame = wire.encode(message, SessionId(bytes(16)), RoundId(1))
        assert len(frame) == block.message_bytes(rows, layout.grid)
        assert len(frame) == packed_rows_bytes("", rows, block.width, layout.grid)


def test_a_narrow_ring_halves_the_bytes_both_ways(tmp_path: Path) -> None:
    """At FB15k-237's sizes, by the closed forms that other tests hold against real runs."""
    up = [sum(Uploads("secagg", 5, 1, 14_541, 128, bits).round().values()) for bits in (32, 16)]
    plans = [RunPlan(dataclasses.replace(small_config(clients=5), ring_bits=bits), 5) for bits in (32, 16)]
    block = Block("entity", 128, "secagg")
    down = [block.message_bytes(14_541, plan.row_layout(block, 14_541).grid) for plan in plans]
    assert up[1] <= 0.55 * up[0]
    assert down[1] <= 0.55 * down[0]


def test_the_usual_clip_of_a_narrow_ring_follows_the_range_of_first_rows() -> None:
    def clip(**given: Any) -> float:
        return resolved({"dataset": "umls", **given}, {}, of_queries=False).clip

    assert clip() == clip(ring_bits=32) == clip(ring_bits=25) == 16.0
    assert clip(ring_bits=16) == clip(ring_bits=24) == 0.25  # a margin of 2 in 256 dimensions: first rows in 1/64
    assert clip(ring_bits=16, clip=3.0) == 3.0
    assert clip(ring_bits=16, dim=8) == 8.0
    assert clip(ring_bits=16, dim=2) == 16.0


def test_what_does_not_fit_is_refused_in_one_line() -> None:
    with pytest.raises(UserError, match=r"^--clip 1e\+06: .* do not fit 16 bits$"):
        check_feasible(RunPlan(small_config(ring_bits=16, clip=1e6, clients=3), 3))
    layout = RunPlan(small_config(ring_bits=16, clients=3), 3).row_layout(Block("relation", 8, "secagg"), 4)
    with pytest.raises(EncodingOverflow):
        dataclasses.replace(layout, parties=1 << 15)


def test_noise_and_networks_have_no_room_in_a_narrow_ring() -> None:
    with pytest.raises(UserError, match=r"^--ring-bits 31: --dp: noise has no room below 32 bits$"):
        resolved({"dataset": "umls", "dp": "sgd", "epsilon": 4.0, "delta": 1e-5, "ring_bits": 31}, {}, of_queries=False)
    with pytest.raises(UserError, match=r"^--ring-bits 16: networks that are shared need finer values below 32 bits$"):
        resolved({"ring_bits": 16, "strategy": "fedcqa"}, {}, of_queries=True)
