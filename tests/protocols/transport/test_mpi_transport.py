"""The MPI transport between real processes: one job of three ranks, each test looks at one act of it."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.mpi
ROOT = Path(__file__).parents[3]
LARGE = 20 * 2**20 + 3
"""As in `mpi_exchange.py`, which cannot be imported here: importing it starts MPI."""


@pytest.fixture(scope="module")
def findings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    path = tmp_path_factory.mktemp("mpi") / "findings.json"
    mpirun = Path(sys.executable).with_name("mpirun")
    command = [str(mpirun), "-n", "3", sys.executable, str(ROOT / "tests" / "support" / "mpi_exchange.py"), str(path)]
    # Without what a surrounding mpirun may have left.
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PMI", "OMPI", "HYDI"))}
    environment = inherited | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def test_small_frames_arrive_in_order(findings: dict[str, Any]) -> None:
    assert findings["small"] == {
        "1": ["one 1 back", " 1 back", "three 1 back"],
        "2": ["one 2 back", " 2 back", "three 2 back"],
    }


def test_large_frames_cross_without_blocking_each_other(findings: dict[str, Any]) -> None:
    assert findings["large"] == {"1": True, "2": True, "at 1": {"0": True}, "at 2": {"0": True}}


def test_large_frames_are_counted(findings: dict[str, Any]) -> None:
    reports = len(json.dumps({"0": True}))
    assert findings["traffic"] == {
        "0": [2 * LARGE, 2 * LARGE + 2 * reports],
        "1": [LARGE + reports, LARGE],
        "2": [LARGE + reports, LARGE],
    }


def test_a_deadline_passes(findings: dict[str, Any]) -> None:
    assert findings["deadline"] == {
        "0": "no message from client 1, client 2 in time",
        "1": "no message from the server in time",
        "2": "no message from the server in time",
    }


def test_a_frame_above_the_limit_is_refused(findings: dict[str, Any]) -> None:
    assert findings["too_large"] == {"refused": "client 1 sent 2,000 bytes where 1,000 are due at most", "taken": 1000}


def test_frames_in_a_cork_arrive_as_they_were_sent(findings: dict[str, Any]) -> None:
    assert findings["together"] == {"same": [True, True], "released": "before its work"}


def test_what_begins_like_a_packet_and_is_none_is_refused(findings: dict[str, Any]) -> None:
    assert findings["hostile_packets"] == [
        "client 1 sent a packet of 1 bytes",
        "client 1 sent not a packet of a known version",
        "client 1 sent a packet of 0 frames",
        "client 1 sent a packet of 90000 bytes",
        "after them",
    ]


def test_gather_returns_those_that_answered(findings: dict[str, Any]) -> None:
    assert findings["gather"] == [{"1": "here"}, {"2": "now"}]


def test_what_has_arrived_counts_and_strangers_do_not(findings: dict[str, Any]) -> None:
    assert findings["already_there"] == {
        "heard": ["early", "early"],
        "refused": "party 0 has no connection to party 3",
        "lost": [3],
    }


def test_one_that_floods_does_not_starve_the_others(findings: dict[str, Any]) -> None:
    assert findings["turns"] == {"first": [1, 1, 1, 2, 2, 2], "order": {"1": list(range(20)), "2": [0, 1, 2]}}


def test_a_peer_that_reads_nothing_is_dropped_and_blocks_nobody_else(findings: dict[str, Any]) -> None:
    assert findings["untaken"] == {
        "client 1": "there back",
        "busy": [2],
        "lost": [2],
        "second": "client 2 has not taken an earlier message",
        "first": "True",
    }


def test_an_idle_rank_uses_little_cpu_time(findings: dict[str, Any]) -> None:
    idle = findings["idle"]
    assert idle["seconds"] >= 3.0
    assert idle["server"] < 0.1 * idle["seconds"]
    assert idle["client 2"] < 0.1 * idle["seconds"]


def test_a_masked_sum_over_mpi_is_exact(findings: dict[str, Any]) -> None:
    found = findings["masked_sum"]
    assert found["error"] <= found["allowed"]
    assert found["counts"] == [3]
    assert found["contributors"] == [1, 2]


def test_a_client_that_was_left_out_over_mpi_comes_back(findings: dict[str, Any]) -> None:
    assert findings["left_out"] == {
        "silent": [[2, "input/rows"]],
        "contributors": [[1], [1, 2]],
        "counts": [[1], [3]],
        "late": 1,
    }
