"""Whole jobs as a user starts them: what they print, and what they leave in their folders.

They run in threads: under mpirun nearly all of their time would be the start of ranks. `make test-all` runs them there
as well. Jobs whose subject is mpirun are in `tests/mpi`.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from safetensors.numpy import load_file

from launch import keygen, partition
from tests.support.jobs_in_threads import run_in_threads
from tests.support.leaky_archive import write_archive
from tests.support.mpi_jobs import TINY, run_job

pytestmark = pytest.mark.long


def summary(folder: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((folder / "summary.json").read_text())
    return loaded


@pytest.fixture(
    params=[
        pytest.param(run_in_threads, id="threads"),
        pytest.param(run_job, id="mpirun", marks=[pytest.mark.mpi, pytest.mark.slow]),
    ]
)
def run(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that others are compared with."""
    root = tmp_path_factory.mktemp("jobs")
    ended = run_in_threads(3, *TINY, "--out", "secure", cwd=root)
    assert ended.code == 0, ended.errors
    return root / "secure"


def test_every_client_reads_only_its_own_folder(run: Any, secure: Path, tmp_path: Path) -> None:
    """With their own folders, under relative names, and no data set named: the same result as from the public set."""
    split = ["--dataset", "nations", "--clients", "2", "--by", "triples", "--seed", "0", "--out", str(tmp_path / "own")]
    assert partition.main(split) == 0
    options = [*TINY[2:], "--seed", "0", "--preset", "small"]
    assert run(3, *options, "--client-data", "own", "--out", "folders", cwd=tmp_path).code == 0
    assert summary(tmp_path / "folders")["mrr"] == summary(secure)["mrr"]


def test_rows_of_one_holder_stay_local_and_are_counted(run: Any, tmp_path: Path) -> None:
    ended = run(3, *TINY, "--by", "relations", "--transcript", "--out", "run", cwd=tmp_path)
    assert ended.code == 0, ended.errors
    result = summary(tmp_path / "run")
    assert result["rows_kept_local"] == result["shared_rows"] > 0
    rows = result["shared_rows"]
    assert f"kept local: {rows} of {rows} rows, held by fewer than 2 clients in every round" in ended.out
    assert (tmp_path / "run/report.html").read_text().startswith("<!doctype html>")
    (transcript,) = (tmp_path / "run").glob("transcript-*.bin")
    seen = transcript.read_bytes()
    for model in (tmp_path / "run/clients").glob("*/model.safetensors"):
        for row in load_file(model)["relation"]:
            assert row.tobytes() not in seen


def test_secret_sums_are_read_from_the_clients_folders(run: Any, secure: Path, tmp_path: Path) -> None:
    """The same results as under sums that the server reads, and none of them on the server's way there."""
    ended = run(3, *TINY, "--aggregation", "secret", "--out", "secret", cwd=tmp_path)
    assert ended.code == 0, ended.errors
    assert summary(tmp_path / "secret")["mrr"] == summary(secure)["mrr"]
    assert "the server added up what only clients can read" in ended.out
    assert "valid MRR" not in ended.out.split("test, tail side")[0]


def test_a_broken_neighbour_does_not_matter(run: Any, secure: Path, tmp_path: Path) -> None:
    for name, content in {"a": "{", "b": "{}", "c": "[]"}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "summary.json").write_text(content)
    shutil.copytree(secure, tmp_path / "run")
    (tmp_path / "run/summary.json").write_text("{}")  # and a summary that is none is written anew
    again = run(3, "--resume", "run", cwd=tmp_path)
    assert again.code == 0, again.errors
    assert summary(tmp_path / "run")["rounds"] == 4


@pytest.mark.parametrize(("ranks", "fraction"), [(6, "0.8"), (8, "0.5")])
def test_a_client_fraction_draws_some_in_turns(run: Any, tmp_path: Path, ranks: int, fraction: str) -> None:
    ended = run(ranks, *TINY, "--client-fraction", fraction, "--model", "rotate", "--out", "run", cwd=tmp_path)
    assert ended.code == 0, ended.errors
    sizes = {client["bytes_up"] for client in summary(tmp_path / "run")["clients"]}
    assert len(sizes) > 1  # not everybody was drawn equally often


def test_a_leaky_split_is_trained_on_only_if_asked_for_and_then_told_first(run: Any, tmp_path: Path) -> None:
    write_archive(tmp_path / "fed2.npz", 2)
    options = [*TINY, "--dataset", "fed2.npz", "--out", "run"]
    refused = run(3, *options, cwd=tmp_path)
    assert refused.code == 2
    (line,) = refused.error_lines
    assert "fed2.npz: damaged split, refused without --allow-leaky-split: 5 of " in line
    assert not (tmp_path / "run").exists()
    done = run(3, *options, "--allow-leaky-split", cwd=tmp_path)
    assert done.code == 0, done.errors
    result = summary(tmp_path / "run")
    assert next(iter(result)) == "leaky_split"
    assert result["leaky_split"]["test_trained_on"] == 8
    told = done.out.index(f"LEAKY SPLIT: 8 of {result['test_triples']} test triples were trained on, ")
    assert told < done.out.index("Hits@10")
    again = run(None, "--resume", "run", cwd=tmp_path)
    assert again.out.split("\n")[1].startswith("LEAKY SPLIT: 8 of ")


def test_identities_made_by_keygen_serve_a_job(run: Any, tmp_path: Path) -> None:
    assert keygen.main(["--clients", "3", "--out", str(tmp_path / "keys")]) == 0
    active = [*TINY, "--adversary", "active", "--keys", "keys"]
    done = run(4, *active, "--out", "run", cwd=tmp_path)
    assert done.code == 0, done.errors
    assert summary(tmp_path / "run")["config"]["adversary"] == "active"
    (tmp_path / "keys/client-2.key").chmod(0o644)
    refused = run(4, *active, "--out", "again", cwd=tmp_path)
    assert refused.code == 2
    (line,) = refused.error_lines
    assert "chmod 600" in line
