"""Trained graph networks used after a run, by their encoded rows; what is for embeddings refuses them."""

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from launch import entire, evaluate, export, fuse, predict
from secure_kg import load_run, simulate
from secure_kg.foundation.errors import UserError
from secure_kg.runs.checkpoint import save_arrays
from secure_kg.runs.run_folder import RunFolder
from tests.support.jobs_in_threads import run_in_threads
from tests.support.mpi_jobs import run_job

pytestmark = pytest.mark.long

OPTIONS = ["--dataset", "nations", "--model", "noge", "--rounds", "3", "--eval-every", "2", "--dim", "8"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small run of two clients."""
    return trained(tmp_path_factory.mktemp("networks"), "run")


def trained(folder: Path, name: str, *options: str) -> Path:
    ended = run_in_threads(3, *OPTIONS, *options, "--out", name, cwd=folder)
    assert ended.code == 0, ended.errors
    return folder / name


def test_evaluation_gives_what_the_run_has_recorded(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert evaluate.main([str(run), "--client", "2"]) == 0
    assert "as recorded at the end of the run" in capsys.readouterr().out


def test_answers_come_by_name_in_the_order_of_their_scores(run: Path) -> None:
    model = load_run(run).client(1)
    head, relation = model.graph.entities[0], model.graph.relations[0]
    scores = [one["score"] for one in model.predict_tails(head, relation, top=100, known="keep").to_list()]
    assert len(scores) == len(model.graph.entities)
    assert scores == sorted(scores, reverse=True)
    first = model.predict_tails(head, relation, top=1, known="keep").to_list()[0]
    assert model.scorer.name == "NoGE"
    alike = [one["name"] for one in model.similar_entities(first["name"], top=100).to_list()]
    assert len(alike) == len(model.graph.entities) - 1
    assert len(model.predict_heads(relation, head, top=3).to_list()) <= 3


def test_one_question_scores_as_a_whole_evaluation_does(run: Path) -> None:
    """Encoded rows were saved: they, and not the graph, decide."""
    model = load_run(run).client(1)
    arrays = load_file(RunFolder(run).client(1) / "model.safetensors")
    np.testing.assert_array_equal(model.scorer.tables()["entity"], arrays["encoded.entity"])
    np.testing.assert_array_equal(model.scorer.tables()["relation"], arrays["encoded.relation"])


@pytest.mark.parametrize("kind", ["safetensors", "word2vec", "neo4j"])
def test_exports_have_a_row_for_every_entity(kind: str, run: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert export.main([str(run), "--client", "1", "--to", kind, "--out", str(out)]) == 0
    texts = "".join(path.read_text() for path in out.iterdir() if path.suffix != ".safetensors")
    assert all(name in texts for name in load_run(run).client(1).graph.entities)
    if kind == "safetensors":
        about = json.loads((out / "model.json").read_text())
        assert about["model"] == "NoGE"
        assert "Hamilton" in about["score"]


def test_a_pool_is_evaluated_by_each_members_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "pool")
    assert entire.main(["-n", "3", *OPTIONS, "--out", out]) == 0
    assert evaluate.main([out, "--client", "1"]) == 0
    assert "as recorded at the end of the run" in capsys.readouterr().out


def test_what_is_for_embeddings_refuses_it_in_one_line(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    alone, out = trained(tmp_path, "alone", "--strategy", "local"), str(tmp_path / "out")
    for command, words in (
        ([export.main, str(run), "--client", "1", "--to", "pykeen", "--out", out], "PyKEEN has no NoGE"),
        ([fuse.main, str(run), str(alone), "--out", out], "only embeddings fuse"),
    ):
        main, *arguments = command
        assert main(arguments) == 2  # type: ignore[operator]
        said = capsys.readouterr().err.strip()
        assert words in said
        assert "\n" not in said


@pytest.mark.parametrize("name", ["encoded.entity", "encoded.relation"])
def test_a_model_without_its_rows_or_with_others_is_refused(name: str, tmp_path: Path) -> None:
    run = trained(tmp_path, "run")
    path = RunFolder(run).client(1) / "model.safetensors"
    arrays = {key: array.copy() for key, array in load_file(path).items()}
    save_arrays(path, {**arrays, name: arrays[name][:-1]}, {})
    with pytest.raises(UserError, match="rows are"):
        load_run(run).client(1)
    save_arrays(path, {other: array for other, array in arrays.items() if other != name}, {})
    with pytest.raises(UserError, match="no encoded"):
        load_run(run).client(1)


def test_a_question_is_predicted_on_the_command_line(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graph = load_run(run).client(1).graph
    given = ["--head", graph.entities[0], "--relation", graph.relations[0]]
    assert predict.main([str(run), "--client", "1", *given, "--top", "3"]) == 0
    assert "3 of" in capsys.readouterr().out


def test_it_is_simulated_by_keyword() -> None:
    assert simulate("nations", clients=2, model="noge", rounds=2, dim=8, dropout=0.25).summary.settings.model == "NoGE"
    with pytest.raises(UserError, match=r"margin: .* has no such setting"):
        simulate("nations", clients=2, model="noge", margin=3.0)


@pytest.mark.mpi
def test_processes_and_threads_end_with_the_same_bits(run: Path, tmp_path: Path) -> None:
    ended = run_job(3, *OPTIONS, "--out", "processes", cwd=tmp_path)
    assert ended.code == 0, ended.errors
    for client in (1, 2):
        folders = (RunFolder(path).client(client) for path in (run, tmp_path / "processes"))
        one, other = (load_file(folder / "model.safetensors") for folder in folders)
        assert one.keys() == other.keys()
        assert all(np.array_equal(one[name], other[name]) for name in one)
