"""From a Turtle file of one's own to a federated run and its model: in two commands, and through a partition."""

import json
import random
import tomllib
from pathlib import Path

import pytest

from launch import evaluate, fede, partition, predict
from tests.support.jobs_in_threads import run_in_threads
from tests.support.mpi_jobs import run_job

E = "http://example.org/"
TINY = ["--rounds", "2", "--dim", "8", "--negatives", "8", "--eval-every", "1"]


def graph(seed: int = 3) -> str:
    drawn = random.Random(seed)
    lines = [f"@prefix ex: <{E}> .", 'ex:e1 ex:label "one" .', "ex:e1 ex:r0 [ ex:r1 ex:e2 ] ."]
    lines += [f"ex:e{drawn.randrange(14)} ex:r{drawn.randrange(3)} ex:e{drawn.randrange(14)} ." for _ in range(300)]
    return "\n".join(lines)


@pytest.fixture
def turtle(tmp_path: Path) -> Path:
    (tmp_path / "my.ttl").write_text(graph())
    return tmp_path / "my.ttl"


def test_a_partition_tells_what_it_left_out(turtle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = turtle.parent / "parts"
    assert partition.main(["--dataset", str(turtle), "--clients", "3", "--out", str(out)]) == 0
    told = capsys.readouterr().out
    assert "left out: 1 triples with a literal" in told
    record = tomllib.loads((out / "partition.toml").read_text())
    assert record["left_out"] == {"literals": 1}
    assert tomllib.loads((out / "client-1" / "prefixes.toml").read_text()) == {"ex": E}
    arguments = ["--dataset", str(turtle), "--clients", "3", "--literals", "keep", "--out", str(turtle.parent / "kept")]
    assert partition.main(arguments) == 0
    assert "left out" not in capsys.readouterr().out
    kept = [(turtle.parent / "kept" / f"client-{client}" / "train.tsv").read_text() for client in (1, 2, 3)]
    assert sum('\t"one"\n' in text for text in kept) == 1


def test_named_graphs_are_clients(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    prefix, *lines = graph().split("\n")
    trig = "\n".join([prefix, f"<{E}g1> {{", *lines[::2], f"}} <{E}g2> {{", *lines[1::2], "} ex:a ex:b ex:c ."])
    (tmp_path / "my.trig").write_text(trig)
    arguments = ["--dataset", str(tmp_path / "my.trig"), "--by", "graph", "--out", str(tmp_path / "parts")]
    assert partition.main([*arguments, "--clients", "3"]) == 2
    assert "has 2 named graphs, one for each client, not 3" in capsys.readouterr().err
    assert partition.main([*arguments, "--clients", "2"]) == 0
    assert "left out: 1 triples with a literal; 1 triples of the default graph" in capsys.readouterr().out


def test_a_mistake_in_a_file_is_one_line(turtle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    turtle.write_text(graph() + "\nex:e1 ex:r0 SECRET .\n")
    assert partition.main(["--dataset", str(turtle), "--clients", "2", "--out", str(turtle.parent / "out")]) == 2
    error = capsys.readouterr().err
    assert error == f"error: {turtle}, line 304, column 13: not valid Turtle\n"
    assert not (turtle.parent / "out").exists()


@pytest.mark.long
def test_a_run_on_a_turtle_file_and_its_model(turtle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = turtle.parent
    ended = run_in_threads(3, "--dataset", "my.ttl", *TINY, "--out", "run", cwd=folder, launcher=fede.main)
    assert ended.code == 0, ended.errors
    result = json.loads((folder / "run" / "clients" / "1" / "result.json").read_text())
    assert '"left_out": {"literals": 1}' in json.dumps(result)
    run = [str(folder / "run"), "--client", "1"]
    capsys.readouterr()
    asked = ["--head", f"{E}e1", "--relation", f"{E}r0", "--top", "3", "--known", "keep"]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)  # the run names its data set as it was given
        assert predict.main([*run, *asked]) == 0
        shown = capsys.readouterr().out
        assert f"ex: is {E}" in shown
        assert " ex:e" in shown
        assert predict.main([*run, *(word.replace(E, "ex:") for word in asked)]) == 0  # names as the table shows them
        assert capsys.readouterr().out.partition("\n")[2] == shown.partition("\n")[2]
        for name in ("none:e1", "ex:e", "e1", "http:e1"):  # no part of another name, and none that it begins like
            assert predict.main([*run, "--head", name, "--relation", "ex:r0"]) == 2
            assert f'unknown entity "{name}"' in capsys.readouterr().err
        assert predict.main([*run, *asked, "--json", "-"]) == 0
        answers = json.loads(capsys.readouterr().out)["questions"][0]["answers"]
        assert all(one["name"].startswith((E, "_:")) for one in answers)
        (folder / "new.nt").write_text(f"<{E}e1> <{E}r0> <{E}e2> .\n_:b <{E}r0> <{E}e2> .\n<{E}e1> <{E}r0> \"x\" .\n")
        assert evaluate.main([*run, "--file", str(folder / "new.nt"), "--json", "-"]) == 0
        figures = json.loads(capsys.readouterr().out)
        assert (figures["triples"], figures["ranked"], figures["unknown_entities"]) == (2, 1, 1)


@pytest.mark.long
def test_clients_bring_files_of_their_own_formats(tmp_path: Path) -> None:
    rows = graph(4).split("\n")[3:]
    names = [[f"{E}{name[3:]}" for name in row.split()[:3]] for row in rows]
    (tmp_path / "own" / "client-1").mkdir(parents=True)
    (tmp_path / "own" / "client-2").mkdir()
    (tmp_path / "own" / "client-1" / "mine.ttl").write_text(graph())
    table = "\n".join(",".join(row) for row in names)
    (tmp_path / "own" / "client-2" / "mine.csv").write_text(f"head,relation,tail\n{table}\n")
    ended = run_in_threads(3, "--client-data", "own", *TINY, "--out", "run", cwd=tmp_path, launcher=fede.main)
    assert ended.code == 0, ended.errors
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["shared_rows"] == 15  # 14 entities that both know by name, and one blank node


@pytest.mark.mpi
@pytest.mark.slow
def test_two_commands_under_mpirun(turtle: Path) -> None:
    folder = turtle.parent
    direct = run_job(4, "--dataset", "my.ttl", *TINY, "--out", "direct", cwd=folder, module="launch.fede")
    assert direct.code == 0, direct.errors
    assert partition.main(["--dataset", str(turtle), "--clients", "3", "--out", str(folder / "parts")]) == 0
    own = run_job(4, "--client-data", "parts", *TINY, "--out", "own", cwd=folder, module="launch.fede")
    assert own.code == 0, own.errors
