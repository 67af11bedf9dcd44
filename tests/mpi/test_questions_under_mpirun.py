"""Questions whose parties are processes: real jobs of mpirun, one with a run folder for each rank."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from launch import ask, fedcqa
from tests.support.jobs_in_threads import run_in_threads
from tests.support.mpi_jobs import MPIRUN, Ended, environment

pytestmark = pytest.mark.mpi

TINY = [
    *("--dataset", "nations", "--dim", "8", "--batch-size", "8", "--local-steps", "1", "--eval-queries", "2"),
    *("--test-types", "1p", "--eval-every", "2", "--checkpoint-every", "2", "--rounds", "2", "--grace", "1"),
]
SLEEPS = -1
"""In place of a victim: the server, before its first message."""
QUESTION = '?x : exports3(?x, ?y) & embassy("usa", ?y)'
SCRIPT = """
import os, signal, sys, time

from launch import ask
from launch.hosts import environment, questions
from protocols.session.conversation import Conversation

victim, dies_after, said = int(sys.argv[1]), int(sys.argv[2]), 0
mine = environment.rank()


def send(self, to, message, round_id):
    global said
    said += 1
    if victim == -1 and mine == 0 and said == 1:
        time.sleep(1.5)
    if mine == victim and said > dies_after:
        os.kill(os.getpid(), signal.SIGKILL)
    straight(self, to, message, round_id)


questions._SECONDS_OF_SILENCE = 0.5
straight, Conversation.send = Conversation.send, send
code = ask.main([sys.argv[3].replace("RANK", str(mine)), *sys.argv[4:]])
if mine == 0 and "torch" in sys.modules:
    print("the server has imported torch", file=sys.stderr)
sys.exit(code)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("questions")
    ended = run_in_threads(4, *TINY, "--out", "run", cwd=made, launcher=fedcqa.main)
    assert ended.code == 0, ended.errors
    return made


def asked(
    folder: Path, *options: str, run: str = "run", ranks: int = 4, victim: int = 9, after: int = 0
) -> Ended:
    script = folder / "ask.py"
    script.write_text(SCRIPT)
    job = [str(MPIRUN), "-n", str(ranks), sys.executable, str(script), str(victim), str(after), run, *options]
    done = subprocess.run(
        job, cwd=folder, capture_output=True, text=True, timeout=100, env=environment(), check=False
    )
    return Ended(done.returncode, done.stdout, done.stderr)


def test_ranks_that_have_their_own_folders_alone_give_the_answers_of_threads(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    settings = ["--query", QUESTION, "--client", "2", "--top-k", "4", "--name-policy", "all"]
    assert ask.main(["run", *settings, "--json", "threads.json"]) == 0, capsys.readouterr().err
    for rank in range(4):
        own, alone = f"clients/{rank}" if rank else "server", Path(f"run-{rank}")
        shutil.copytree(folder / "run" / own, alone / own)
        for public in ("config.toml", "summary.json"):
            shutil.copy(folder / "run" / public, alone)
    done = asked(folder, *settings, "--json", "ranks.json", "--record", "record", run="run-RANK")
    assert (done.code, done.errors) == (0, "")
    in_threads, in_ranks = (json.loads(Path(f"{name}.json").read_text()) for name in ("threads", "ranks"))
    assert in_ranks["questions"][0]["answers"] == in_threads["questions"][0]["answers"]
    assert in_ranks["bytes"] == {"2": in_threads["bytes"]["2"]}
    assert done.out.count("question: ") == 1
    assert next(Path("record").glob("scores-*.json"), None) is not None


def test_a_client_that_is_killed_in_the_middle_leaves_one_line(folder: Path) -> None:
    """Of three clients two are left, too few for a sum: the asker says so, the server who is gone."""
    (folder / "questions").write_text(f"{QUESTION}\n" * 4)
    done = asked(folder, "--file", "questions", victim=3, after=8)
    assert done.code == 2
    assert done.error_lines == [
        "error: 1 client has advertised keys, 2 are needed",
        "error: two questions in a row came to nothing for the same reason: 2 questions were not asked",
    ]
    assert "client 3 dropped out" in done.out


def test_a_budget_that_is_spent_is_one_line_and_so_is_a_server_that_is_silent(folder: Path) -> None:
    """Several clients refuse, and the server hears one of them; before that it sleeps."""
    done = asked(folder, "--query", QUESTION, "--atom-budget", "1", "--top-k", "4", victim=SLEEPS)
    assert (done.code, len(done.errors.splitlines())) == (2, 1), done.errors
    assert "go beyond the budget of 1" in done.errors
    assert "waiting: nothing has come from the server for a while" in done.out


@pytest.mark.slow
def test_of_five_clients_four_answer_without_one_that_is_killed(tmp_path: Path) -> None:
    ended = run_in_threads(6, *TINY, "--max-dropout", "0.25", "--out", "run", cwd=tmp_path, launcher=fedcqa.main)
    assert ended.code == 0, ended.errors
    done = asked(tmp_path, "--query", QUESTION, "--scores", "masked", ranks=6, victim=4, after=3)
    assert (done.code, done.errors) == (0, "")
    assert "client 4 dropped out" in done.out
    assert "mean score" in done.out


@pytest.mark.slow
@pytest.mark.parametrize(("victim", "words"), [(1, "the asker has dropped out"), (0, "the server's process was ended")])
def test_nor_do_the_others_wait_for_an_asker_or_a_server_that_is_killed(folder: Path, victim: int, words: str) -> None:
    done = asked(folder, "--query", QUESTION, victim=victim, after=6)
    assert done.code not in (0, None)
    (line,) = done.error_lines
    assert words in line


@pytest.mark.parametrize(
    ("ranks", "client"),
    [
        (2, "1"),  # the asker says it
        pytest.param(2, "3", marks=pytest.mark.slow),  # there is no asker: the server does
        pytest.param(1, "1", marks=pytest.mark.slow),
    ],
)
def test_another_number_of_ranks_is_one_line(folder: Path, ranks: int, client: str) -> None:
    done = asked(folder, "--query", QUESTION, "--client", client, ranks=ranks)
    assert done.code == 2
    (line,) = done.error_lines
    assert "the run has 3 clients, so its questions need mpirun -n 4" in line


@pytest.mark.slow
def test_what_one_rank_alone_finds_wrong_ends_all_with_one_line(folder: Path) -> None:
    done = asked(folder, "--query", "?x : a(?x", "--client", "3")
    assert (done.code, len(done.error_lines)) == (2, 1)
    assert "line 1, column" in done.errors
    model = folder / "run/clients/2/model.safetensors"
    model.rename(folder / "away")
    try:
        done = asked(folder, "--query", QUESTION)
    finally:
        (folder / "away").rename(model)
    assert (done.code, len(done.error_lines)) == (2, 1)
    assert "client 2: " in done.errors
