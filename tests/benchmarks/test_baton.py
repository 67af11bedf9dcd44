"""Passing the baton among jobs: one works at a time, all in changing order, and a job that dies is told."""

import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from benchmarks.baton import Job, Turn, in_order, running
from benchmarks.estimates import median_with_interval
from benchmarks.overhead import silent_rounds
from secure_kg.foundation.errors import UserError

SERVER = """
import json, sys
from pathlib import Path
from secure_kg.federation.server.pacing import turns_of_environment
from secure_kg.foundation.errors import UserError
log, die_in = Path(sys.argv[1]), sys.argv[2]
turns = turns_of_environment()
try:
    for work, number in (("set-up", 0), ("round", 1), ("round", 2), ("results", 2)):
        with turns.turn(work, number, lambda: {"bytes_up": {"rows": 7.0 * (number + 1)}}):
            with log.open("a") as file:
                file.write(f"begin {sys.argv[3]}\\n")
            if die_in == f"{work} {number}":
                print("error: a mistake in the data", file=sys.stderr)
                sys.exit(2)
            with log.open("a") as file:
                file.write(f"end {sys.argv[3]}\\n")
except UserError as problem:
    print(f"error: {problem}", file=sys.stderr)
    sys.exit(2)
"""


def job(name: str, tmp_path: Path, die_in: str = "never") -> Job:
    """A server in a process of its own, without any clients."""
    command = [sys.executable, "-c", SERVER, str(tmp_path / "log"), die_in, name]
    return Job(name, command, tmp_path / name, tmp_path)


def test_only_one_works_at_any_time(tmp_path: Path) -> None:
    jobs = [job(name, tmp_path) for name in ("a", "b", "c")]
    with running(jobs):
        step = 0
        while waiting := [each for each in jobs if each.ask is not None]:
            for each in in_order(waiting, step):
                each.take_turn()
            step += 1
    lines = (tmp_path / "log").read_text().split("\n")[:-1]
    assert len(lines) == 3 * 4 * 2
    for begin, end in zip(lines[::2], lines[1::2], strict=True):
        assert (begin.split()[0], end.split()[0]) == ("begin", "end")
        assert begin.split()[1] == end.split()[1]
    for each in jobs:
        assert [(turn.work, turn.round) for turn in each.turns] == [
            ("set-up", 0), ("round", 1), ("round", 2), ("results", 2),
        ]  # fmt: skip
        assert each.turns[1].figures == {"bytes_up": {}}


def _take_turns_for_ever(jobs: list[Job]) -> None:
    while True:
        for each in jobs:
            each.take_turn()


@pytest.mark.parametrize("die_in", ["set-up 0", "round 2", "results 2"])
def test_a_job_that_dies_is_told_with_its_own_line(die_in: str, tmp_path: Path) -> None:
    jobs = [job("good", tmp_path), job("bad", tmp_path, die_in)]
    with running(jobs), pytest.raises(UserError) as told:
        _take_turns_for_ever(jobs)
    assert str(told.value) == "the bad run failed: a mistake in the data"
    for each in jobs:
        assert each._process.poll() is not None  # none is left behind


def test_a_job_that_never_asks(tmp_path: Path) -> None:
    silent = Job("silent", [sys.executable, "-c", "raise SystemExit(3)"], tmp_path / "run", tmp_path)
    with pytest.raises(UserError, match="the silent run failed: exit code 3"), running([silent]):
        pytest.fail("it never asked")


def test_a_job_ends_when_the_benchmark_lets_go(tmp_path: Path) -> None:
    kept = job("kept", tmp_path)
    with running([kept]):
        kept.take_turn()
    assert kept._process.poll() is not None


def test_everybody_is_first_and_nobody_follows_always_the_same() -> None:
    names = ["a", "b", "c", "d", "e"]
    rounds = [in_order(names, step) for step in range(20)]
    assert all(sorted(order) == names for order in rounds)
    assert Counter(order[0] for order in rounds).keys() == set(names)
    before = Counter(pair for order in rounds for pair in pairwise(order))
    for name in names:
        assert len([pair for pair in before if pair[1] == name]) >= 2


def test_working_seconds_are_without_waiting_in_vain() -> None:
    turn = Turn("round", 4, 12.0, 0.1, {}, {"in_vain": {"seconds": 10.0, "dropouts": 1.0}})
    assert turn.working_seconds == 2.0
    assert (turn.dropouts, turn.abandoned) == (1, 0)


@pytest.mark.parametrize(("dropouts", "rounds"), [(1, 9), (2, 12), (3, 30), (2, 60)])
def test_silences_leave_room_to_come_back(dropouts: int, rounds: int) -> None:
    chosen = sorted(silent_rounds(dropouts, rounds))
    assert len(chosen) == dropouts
    assert chosen[-1] + 2 <= rounds
    assert all(3 <= later - earlier <= 10 for earlier, later in pairwise(chosen))  # holders are counted after one


def test_medians_and_their_intervals() -> None:
    one = median_with_interval([1.5])
    assert (one.value, one.low, one.high, one.coverage) == (1.5, 1.5, 1.5, 0.0)
    few = median_with_interval([3.0, 1.0, 2.0])
    assert (few.value, few.low, few.high, few.coverage) == (2.0, 1.0, 3.0, 0.75)
    many = median_with_interval(list(range(1, 21)))  # tables: the 6th and the 15th of 20
    assert (many.value, many.low, many.high) == (10.5, 6, 15)
    assert 0.95 <= many.coverage < 0.97
