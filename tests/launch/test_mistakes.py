"""The mistakes of a newcomer: each gets one line that says what to do, and exit code 2.

Jobs run in threads here, so that a mistake that only a client finds costs no start of processes.
"""

from pathlib import Path

import pytest

from launch import cli
from launch.hosts import environment
from launch.hosts.registry import HOSTS
from tests.support.jobs_in_threads import TOY, run_in_threads

Capture = pytest.CaptureFixture[str]
SMALL = ("--dataset", "nations", "--rounds", "2", "--eval-every", "1", "--dim", "8")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a finished run, one that is not finished, and files that are no triples."""
    folder = tmp_path_factory.mktemp("newcomer")
    done = run_in_threads(3, *SMALL, "--out", "runs/done", cwd=folder)
    assert done.code == 0, done.errors
    for name in ("empty", "foreign", "runs/begun", "runs/cqa"):
        (folder / name).mkdir()
    config = (folder / "runs/done/config.toml").read_text()
    (folder / "runs/begun/config.toml").write_text(config)
    (folder / "foreign/notes.txt").write_text("hello\n")
    (folder / "blanks.tsv").write_text("head relation tail\n")
    (folder / "one.tsv").write_text("usa\tembassy\tchina\n")
    (folder / "blanks.txt").write_text("usa embassy china\n")
    return folder


@pytest.fixture(autouse=True)
def here(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)


RUN = "runs/done"
MISTAKES: tuple[tuple[str, str], ...] = (
    # nothing, or something else, was typed
    ("feder", "unknown command feder; did you mean fedr?"),
    ("--rounds 5", "options come after a command"),
    ("fedr nations", "for a data set say --dataset nations"),
    ("fedr --round 5", "did you mean --rounds?"),
    ("fedr --rounds", "--rounds: a value is missing: --rounds INT"),
    ("fedr --rounds many", "--rounds many: must be a whole number"),
    ("fedr --lr fast", "--lr fast: must be a number"),
    ("fedr --aggregation secag", "--aggregation secag: choose one of secagg, secret, plain; did you mean secagg?"),
    ("fedr --model transx", "--model transx: not one of transe, rotate"),
    ("predict", "missing: RUN (folder of a finished run, or of launch.fuse)"),
    (f"audit {RUN}", "missing: --out DIR (where audit.html and audit.json go)"),
    (f"export {RUN} --client 1 --out x", "missing: --to pykeen|safetensors|word2vec|neo4j (the format)"),
    (f"ask {RUN}", "missing: one of --query, --file, --sparql"),
    ("keygen --out keys", "missing: one of --client, --clients, --collect"),
    ("partition --clients 3 --out parts", "missing: --dataset DATASET (name, folder or file"),
    # data
    ("fedr --dataset nation", "unknown data set nation; did you mean nations?"),
    ("fedr --dataset graph.tsv", "graph.tsv: no such file or folder"),
    ("fedr --dataset empty", "empty: no train file (such as train.tsv"),
    ("fedr --dataset blanks.tsv", "blanks.tsv, line 1: 1 field(s); expected head<TAB>relation<TAB>tail"),
    ("fedr --dataset one.tsv", "use fewer clients or another split"),
    ("fedr --client-data parts", "parts: no such folder"),
    ("partition --dataset nations --clients 3 --out runs", "runs: exists and is not empty; choose a new folder"),
    (f"evaluate {RUN} --client 1 --test nothing.tsv", "--test nothing.tsv: no such file"),
    # ranks and folders of runs
    (f"fedr --out {RUN}", "exists already; choose another folder or continue with --resume"),
    ("fedr --resume runs/dome", "runs/dome: no such run folder; did you mean runs/done?"),
    ("fedr --resume foreign", "foreign: no config.toml there, so it is no run folder; a run lies in runs/"),
    (f"fedr --resume {RUN} --dim 5", "was started with 8; leave it out, or start a new run with another --out"),
    ("predict done --client 1 --similar usa", "done: no such run folder; did you mean runs/done?"),
    ("predict runs/begun --client 1 --similar usa", "has not come to its end (secure-kg fedr --resume runs/begun"),
    (f"compare {RUN}", "give the folders of two runs or more"),
    (f"compare {RUN} runs/begun", "has not come to its end; secure-kg fedr --resume runs/begun continues it"),
    (f"compare {RUN} foreign", "foreign: no config.toml there, so it is no run folder"),
    (f"compare {RUN} {RUN}/", "is given twice"),
    # clients and names
    (f"predict {RUN} --similar usa", "has the models of clients 1, 2: say which (--client K)"),
    (f"predict {RUN} --client 9 --similar usa", "client 9: the run has clients 1 to 2"),
    (f"predict {RUN} --client 1 --similar uas", 'unknown entity "uas"; the nearest known: "usa"'),
    (f"predict {RUN} --client 1 --head usa", "two of them ask for the third, all three for a score"),
    # another kind of run is needed
    (f"audit {RUN} --out audits", "has no transcript; run the job again with --transcript"),
    (f"attack {RUN} --out attacks", "has no transcript; run the job again with --transcript"),
    (f"ask {RUN} --query ?x:embassy(?x,usa)", "has no model of queries; secure-kg fedcqa trains one"),
    (f"fuse {RUN} {RUN} --out fused", "not local; secure-kg local with the same options trains one"),
    ("fedr --adversary active", "needs --keys DIR: identities made with secure-kg keygen"),
    ("fedr --adversary active --keys keys", "--keys keys: no such folder; secure-kg keygen makes it"),
    ("fedr --dp sgd", "--dp needs a budget: --epsilon is missing"),
    # places to write to
    ("doctor --json foreign", "foreign: cannot be written (it is a folder)"),
    (f"compare {RUN} {RUN} --out runs", "runs: cannot be written (it is a folder)"),
)


@pytest.mark.parametrize(("typed", "line"), MISTAKES, ids=[typed for typed, _ in MISTAKES])
def test_a_mistake_is_answered_in_one_line_that_says_what_to_do(
    typed: str, line: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(HOSTS, "mpi", TOY)
    assert cli.main(typed.split()) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert said.count("\n") == 1
    assert line in said


def test_mistakes_that_are_found_before_any_process_is_started(capsys: Capture) -> None:
    assert cli.main(["fedr", "-n", "2"]) == 2
    assert capsys.readouterr().err == "error: 2 ranks: a job needs at least 3, 1 server and 2 clients\n"
    assert cli.main(["fedr", "--by", "whole"]) == 2
    assert "use secure-kg entire" in capsys.readouterr().err


def test_without_mpirun_the_line_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment.sys, "executable", "/nowhere/python")
    monkeypatch.setenv("PATH", "/nowhere")
    assert environment.find_mpirun() is None
    with pytest.raises(Exception, match="install the mpich wheel"):
        environment.mpirun_command(3, ["launch.fede"])
