"""Questions between organisations: a server, sites with their own folders, real certificates; all on this machine."""

import threading
from pathlib import Path

import pytest

from launch import ask, fedcqa
from tests.mpi.test_questions_under_mpirun import QUESTION, TINY
from tests.support.jobs_in_threads import run_in_threads
from tests.support.question_sites import Distributed, answers_in, asked, live


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("questions")
    ended = run_in_threads(4, *TINY, "--out", "run", cwd=made, launcher=fedcqa.main)
    assert ended.code == 0, ended.errors
    return made / "run"


@pytest.fixture(scope="module")
def parties(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Distributed:
    return Distributed(tmp_path_factory.mktemp("organisations"), run)


def site(parties: Distributed, number: int) -> list[str]:
    return [str(parties.file), "--site", str(parties.path / f"site{number}")]


def test_the_answers_are_those_of_one_process(run: Path, parties: Distributed, tmp_path: Path) -> None:
    settings = ["--query", QUESTION, "--top-k", "4"]
    assert ask.main([str(run), "--client", "2", *settings, "--json", str(tmp_path / "threads.json")]) == 0
    with live(parties, 1, 3) as there:
        code, out, errors = asked(*site(parties, 2), *settings, "--json", str(tmp_path / "sites.json"))
        assert (code, errors) == (0, ""), (out, there.lines, there.said)
    assert answers_in(tmp_path / "sites.json") == answers_in(tmp_path / "threads.json")
    assert "answer" in out
    assert threading.active_count() < 20
