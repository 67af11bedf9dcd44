"""Questions between organisations with a process for each party, and kill -9 of each of them."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from launch import ask, fedcqa, keygen
from launch.federation_settings import settings_of
from tests.mpi.test_questions_under_mpirun import QUESTION, TINY
from tests.support.jobs_in_threads import run_in_threads
from tests.support.organisations import ended_well, organisations
from tests.support.question_sites import Distributed, answers_in

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[3]


class Processes:
    """Commands of the parties, each with its output in a file."""

    def __init__(self, parties: Distributed) -> None:
        self.parties, self.running = parties, list[tuple[subprocess.Popen[bytes], Path]]()

    def start(self, command: str, folder: str, *options: str) -> int:
        log = self.parties.path / f"{len(self.running)}-{command}.log"
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "NO_PROXY": "127.0.0.1", "PYTHONUNBUFFERED": "1"}
        arguments = [str(self.parties.file), "--site", str(self.parties.path / folder), *options]
        with log.open("wb") as file:
            process = subprocess.Popen(
                [sys.executable, "-m", f"launch.{command}", *arguments], stdout=file, stderr=file, env=environment,
                cwd=self.parties.path, stdin=subprocess.DEVNULL,
            )  # fmt: skip
        self.running.append((process, log))
        return len(self.running) - 1

    def serve(self) -> int:
        return self.start(
            "serve", "coordinator", "--questions", "--listen", f"127.0.0.1:{self.parties.port}",
            "--out", str(self.parties.run),
        )  # fmt: skip

    def answer(self, number: int) -> int:
        return self.start("join", f"site{number}", "--answer")

    def ask(self, number: int, *options: str) -> int:
        return self.start("ask", f"site{number}", *(options or ("--query", QUESTION)))

    def code(self, which: int) -> int:
        return self.running[which][0].wait(120)

    def text(self, which: int) -> str:
        return self.running[which][1].read_text()

    def said(self, which: int, words: str) -> None:
        until = time.monotonic() + 60
        while words not in self.text(which):
            assert time.monotonic() < until, (words, self.logs())
            time.sleep(0.02)

    def kill(self, which: int) -> None:
        self.running[which][0].send_signal(signal.SIGKILL)
        self.running[which][0].wait(60)

    def logs(self) -> str:
        return "\n".join(f"--- {log.name}\n{log.read_text()}" for _, log in self.running)

    def end(self) -> None:
        for which, (process, _) in enumerate(self.running):
            if process.poll() is None:
                self.kill(which)


@contextmanager
def processes(parties: Distributed) -> Iterator[Processes]:
    made = Processes(parties)
    try:
        yield made
    finally:
        made.end()


def trained(folder: Path, *options: str) -> Path:
    ended = run_in_threads(4, *TINY, *options, "--out", "run", cwd=folder, launcher=fedcqa.main)
    assert ended.code == 0, ended.errors
    return folder / "run"


def error_lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("error: ")]


def test_whoever_is_killed_ends_one_session_and_no_other(tmp_path: Path) -> None:
    run = trained(tmp_path)
    parties = Distributed(tmp_path / "organisations", run)
    (tmp_path / "many").write_text(f"{QUESTION}\n" * 60)
    with processes(parties) as there:
        server, first, third = there.serve(), there.answer(1), there.answer(3)
        asking = there.ask(2, "--query", QUESTION, "--json", str(tmp_path / "sites.json"))
        assert there.code(asking) == 0, there.logs()
        assert ask.main([str(run), "--client", "2", "--query", QUESTION, "--json", str(tmp_path / "one.json")]) == 0
        assert answers_in(tmp_path / "sites.json") == answers_in(tmp_path / "one.json")

        asking = there.ask(2, "--file", str(tmp_path / "many"))
        there.said(asking, "question: ")
        there.kill(third)
        assert there.code(asking) == 2
        assert len(error_lines(there.text(asking))) >= 1, there.logs()
        assert "Traceback" not in there.logs()

        there.answer(3)
        asking = there.ask(2, "--file", str(tmp_path / "many"))
        there.said(asking, "question: ")
        there.kill(asking)
        asking = there.ask(2)
        assert there.code(asking) == 0, there.logs()

        asking = there.ask(2, "--file", str(tmp_path / "many"))
        there.said(asking, "question: ")
        there.kill(server)
        server = there.serve()
        assert there.code(asking) == 2
        assert len(error_lines(there.text(asking))) == 1, there.logs()
        asking = there.ask(2)
        assert there.code(asking) == 0, there.logs()
        assert there.running[first][0].poll() is None
        assert "Traceback" not in there.logs()
        there.running[first][0].send_signal(signal.SIGTERM)
        assert there.code(first) == 143


def test_against_an_active_server_sites_sign_with_their_identities(tmp_path: Path) -> None:
    assert keygen.main(["--clients", "3", "--out", str(tmp_path / "keys")]) == 0
    run = trained(tmp_path, "--adversary", "active", "--keys", str(tmp_path / "keys"))
    parties = Distributed(tmp_path / "organisations", run)
    with processes(parties) as there:
        there.serve(), there.answer(1), there.answer(3)
        asking = there.ask(2, "--query", QUESTION, "--scores", "masked", "--json", str(tmp_path / "sites.json"))
        assert there.code(asking) == 0, there.logs()
    found = json.loads((tmp_path / "sites.json").read_text())
    assert found["questions"][0]["answers"]


def test_from_the_data_of_each_site_to_answers(tmp_path: Path) -> None:
    """Trained by serve and join, then asked over the files that these have left."""
    settings = settings_of("fedcqa", [*TINY, "--grace", "10"])
    with organisations(tmp_path / "organisations", settings) as there:
        ended_well([there.serve(), *(there.join(number) for number in (1, 2, 3))])
        serving = there.serve("--questions")
        for number in (1, 3):
            there._start("join", f"answers{number}", str(there.coordinator.path), "--answer", "--site",
                         str(there.path / f"site{number}"))  # fmt: skip
        asking = there._start("ask", "asks2", str(there.coordinator.path), "--query", QUESTION, "--site",
                              str(there.path / "site2"))  # fmt: skip
        ended_well([asking])
        assert "question: " in asking.text
        assert "has come to its end" in serving.text, there.logs()
