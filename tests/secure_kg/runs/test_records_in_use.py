"""A client's folder, and its record of opened sums, serve one session at a time."""

import multiprocessing
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from multiprocessing.connection import Connection
from multiprocessing.context import ForkProcess
from pathlib import Path

import pytest

from secure_kg.data.graph import ClientGraph
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.errors import UserError
from secure_kg.learning.kge import KgeLearner
from secure_kg.privacy.release_record import ReleaseRecord
from secure_kg.runs import client_folder
from secure_kg.runs.client_folder import alone
from secure_kg.runs.run_folder import RunFolder
from tests.support.federation_in_threads import run_federation
from tests.support.private_runs import graphs, private_config, private_learner

_FORK = multiprocessing.get_context("fork")  # a new interpreter would load torch first


def _spend(folder: Path, said: Connection) -> None:
    """In another process: a session that spends one of two releases and then stays; what it said is told."""
    try:
        with alone(folder):
            ReleaseRecord(bytes(32), folder, 2, b"terms").key_of(2, "rows", b"input")
            said.send("spent")
            threading.Event().wait(600)
    except UserError as problem:
        said.send(str(problem))


@contextmanager
def spending(folder: Path) -> Iterator[tuple[ForkProcess, str]]:
    """Such a process, and what it said."""
    ours, theirs = _FORK.Pipe()
    process = _FORK.Process(target=_spend, args=(folder, theirs), daemon=True)
    process.start()
    try:
        assert ours.poll(60)
        yield process, ours.recv()
    finally:
        process.kill()
        process.join()


def test_a_second_session_is_refused_in_one_line_and_comes_after_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_folder, "_ENDING_SECONDS", 0.1)
    with alone(tmp_path / "client-1.record"):
        with pytest.raises(UserError, match="takes part in another session"), alone(tmp_path / "client-1.record"):
            pass
        with alone(tmp_path / "client-2.record"):
            pass
    with alone(tmp_path / "client-1.record"):
        pass


def test_one_that_is_just_ending_is_waited_for(tmp_path: Path) -> None:
    taken, leave = threading.Event(), threading.Event()

    def first() -> None:
        with alone(tmp_path):
            taken.set()
            leave.wait(10)

    thread = threading.Thread(target=first)
    thread.start()
    taken.wait(10)
    threading.Timer(0.2, leave.set).start()
    with alone(tmp_path):
        assert leave.is_set()
    thread.join()


def test_two_processes_do_not_spend_one_budget_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_folder, "_ENDING_SECONDS", 0.1)
    with spending(tmp_path) as (first, said):
        assert said == "spent"
        with spending(tmp_path) as (_, refused):
            assert refused == f"{tmp_path}: this client takes part in another session; start this one after it"
        first.kill()
        first.join()
        with alone(tmp_path):  # the system has let go of it
            assert ReleaseRecord(bytes(32), tmp_path, 2, b"terms").releases == 1


@pytest.mark.long
def test_a_run_whose_record_lies_elsewhere_holds_the_folder_of_its_releases_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_folder, "_ENDING_SECONDS", 0.1)
    config, path = private_config(rounds=2), tmp_path / "run"
    with ExitStack() as others:

        def learner(graph: ClientGraph, own: RunConfig, number: int) -> KgeLearner:
            if number == 2:
                others.enter_context(spending(RunFolder(path).client(number)))
            return private_learner(graph, own, number)

        run = run_federation(config, graphs(), path, trainer_of=learner, records=tmp_path / "records")
    assert any("takes part in another session" in line for line in run.on_consoles)
    assert not any("\n" in line for line in run.on_consoles)
    assert ReleaseRecord(bytes(32), RunFolder(path).client(2), 2, b"terms").releases == 1
