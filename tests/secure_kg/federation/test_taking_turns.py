"""A server that works only in its turns: what it asks, what it tells, and what happens when the other end is gone."""

import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from secure_kg.federation.server.pacing import VARIABLE, GivenTurns, Turns, growth, turns_of_environment
from secure_kg.foundation.errors import UserError
from tests.support.federation_in_threads import nations, run_federation, small_config


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    giver, server = socket.socketpair()
    with giver, server:
        yield giver, server


class Giver(threading.Thread):
    """Says go `turns` times, then hangs up."""

    def __init__(self, end: socket.socket, turns: int) -> None:
        super().__init__()
        self._end, self._turns = end, turns
        self.heard: list[dict[str, Any]] = []

    def run(self) -> None:
        with self._end, self._end.makefile("rb") as lines:
            for line in lines:
                self.heard.append(json.loads(line))
                if "ask" in self.heard[-1]:
                    if not self._turns:
                        self._end.shutdown(socket.SHUT_RDWR)
                        return
                    self._turns -= 1
                    self._end.sendall(b'{"go": true}\n')


def test_a_federation_asks_before_each_piece_of_work(tmp_path: Path, ends: tuple[socket.socket, socket.socket]) -> None:
    giver = Giver(ends[0], turns=100)
    giver.start()
    config = small_config(rounds=3, eval_every=2, checkpoint_every=0)
    paced = run_federation(config, nations(3), tmp_path / "paced", turns=GivenTurns(ends[1])).done()
    ends[1].shutdown(socket.SHUT_RDWR)
    giver.join(10)
    asked = [(told["ask"], told["round"]) for told in giver.heard if "ask" in told]
    done = [told for told in giver.heard if "done" in told]
    assert asked == [
        ("set-up", 0), ("round", 1), ("round", 2), ("evaluation", 2), ("round", 3), ("evaluation", 3), ("results", 3),
    ]  # fmt: skip
    assert asked == [(told["done"], told["round"]) for told in done]
    assert sum(sum(told["figures"]["bytes_up"].values()) for told in done) <= sum(paced.bytes_up.values())
    last_round = done[4]["figures"]
    assert last_round["bytes_up"].keys() == last_round["messages_up"].keys()
    assert last_round["messages_up"]["masked input/rows"] == 3
    assert last_round["bytes_up_per_client"].keys() == {"1", "2", "3"}
    assert last_round["cpu_seconds"]["unmask"] > 0
    unpaced = run_federation(config, nations(3), tmp_path / "unpaced").done()
    assert paced.test == unpaced.test


def test_a_giver_that_is_gone_ends_the_run(tmp_path: Path, ends: tuple[socket.socket, socket.socket]) -> None:
    giver = Giver(ends[0], turns=2)
    giver.start()
    run = run_federation(small_config(), nations(3), tmp_path / "run", turns=GivenTurns(ends[1]))
    giver.join(10)
    assert isinstance(run.server_error, UserError)
    assert str(run.server_error) == "whoever gave out turns to this job is gone"
    assert len(run.client_errors) == 3  # they were told that the session is over


@pytest.mark.parametrize("answer", [b"", b"\n", b"no\n", b'{"go": false}\n', b"[1]\n"])
def test_anything_but_go_is_refused(answer: bytes, ends: tuple[socket.socket, socket.socket]) -> None:
    ends[0].sendall(answer)
    ends[0].shutdown(socket.SHUT_WR)
    with pytest.raises(UserError, match="gone"), GivenTurns(ends[1]).turn("round", 1, dict):
        pytest.fail("worked without a turn")


def test_work_that_fails_is_not_told_as_done(ends: tuple[socket.socket, socket.socket]) -> None:
    ends[0].sendall(b'{"go": true}\n')
    with pytest.raises(ValueError, match="broken"), GivenTurns(ends[1]).turn("round", 1, dict):
        raise ValueError("broken")
    ends[1].shutdown(socket.SHUT_WR)
    assert [json.loads(line) for line in ends[0].makefile("rb")] == [{"ask": "round", "round": 1}]


def test_without_the_variable_nobody_is_asked() -> None:
    turns = turns_of_environment({})
    assert type(turns) is Turns
    with turns.turn("round", 1, lambda: pytest.fail("figures that nobody wants")):
        pass


def test_a_variable_that_leads_nowhere(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="nobody gives out turns there"):
        turns_of_environment({VARIABLE: str(tmp_path / "nothing")})
    with pytest.raises(UserError, match="nobody gives out turns there"):
        turns_of_environment({VARIABLE: "/" + "x" * 200})


def test_growth() -> None:
    before = {"bytes": {"a": 1.0, "b": 2.0}}
    after = {"bytes": {"a": 1.0, "b": 5.0, "c": 4.0}, "more": {"d": 1.0}}
    assert growth(before, after) == {"bytes": {"b": 3.0, "c": 4.0}, "more": {"d": 1.0}}
