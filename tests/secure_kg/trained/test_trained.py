"""Trained models used after a run: predictions by name, evaluation as recorded, exports that PyKEEN ranks alike."""

import contextlib
import io
import json
import re
import shutil
from pathlib import Path

import pytest

from launch import evaluate, export, predict
from secure_kg import load_run
from secure_kg.data.prefixes import Shortener
from secure_kg.foundation.errors import UserError
from secure_kg.runs.run_folder import RunFolder
from tests.support.jobs_in_threads import run_in_threads

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small run of two clients."""
    return trained(tmp_path_factory.mktemp("trained"), "transe")


def trained(folder: Path, model: str) -> Path:
    options = ["--dataset", "nations", "--model", model, "--rounds", "3", "--dim", "8", "--negatives", "8"]
    ended = run_in_threads(3, *options, "--out", "run", cwd=folder)
    assert ended.code == 0, ended.errors
    return folder / "run"


def test_a_folder_of_one_site_has_no_other_clients_model(run: Path, tmp_path: Path) -> None:
    """As after a run between organisations."""
    shutil.copytree(run / "clients/1", tmp_path / "clients/1")
    shutil.copy(run / "config.toml", tmp_path)
    assert load_run(tmp_path).client().number == 1
    with pytest.raises(UserError, match="has the model of client 1 only; client 2 is elsewhere"):
        load_run(tmp_path).client(2)


def test_answers_come_by_name_and_known_ones_are_left_out_or_marked(run: Path) -> None:
    model = load_run(run).client(1)
    head, relation, tail = model.graph.entities[0], model.graph.relations[0], ""
    for h, r, t in model.graph.train:
        head, relation, tail = model.graph.entities[h], model.graph.relations[r], model.graph.entities[t]
        break
    left_out = [one["name"] for one in model.predict_tails(head, relation, top=100).to_list()]
    kept = [one["name"] for one in model.predict_tails(head, relation, top=100, known="keep").to_list()]
    assert tail not in left_out
    assert tail in kept
    assert set(left_out) <= set(kept) == set(model.graph.entities)
    assert head in [one["name"] for one in model.predict_heads(relation, tail, top=100, known="mark").to_list()]
    assert len(model.predict_relations(head, tail, top=3).to_list()) <= 3
    assert head not in [one["name"] for one in model.similar_entities(head, top=100).to_list()]


def test_evaluation_gives_what_the_run_has_recorded(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert evaluate.main([str(run), "--client", "2", "--json", "-"]) == 0
    found = json.loads(capsys.readouterr().out)
    summary = RunFolder(run).summary()
    assert summary is not None
    recorded = next(line for line in summary.clients if line.client == 2)
    assert f"{recorded.figures['mrr']:.6f}"[:6] in json.dumps(found)


@pytest.mark.parametrize("model", ["transe", "distmult", "rotate", "complex"])
def test_pykeen_ranks_an_export_alike(model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The very lines of the export's README are run."""
    run = trained(tmp_path, model)
    assert export.main([str(run), "--client", "1", "--to", "pykeen", "--out", str(tmp_path / "out")]) == 0
    lines = re.findall(r"```python\n(.*?)```", (tmp_path / "out" / "README.md").read_text(), flags=re.S)
    monkeypatch.chdir(tmp_path / "out")
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec("".join(lines), {})
    summary = RunFolder(run).summary()
    assert summary is not None
    assert float(said.getvalue()) == pytest.approx(summary.clients[0].figures["mrr"], abs=1e-4)


@pytest.mark.parametrize("kind", ["safetensors", "word2vec", "neo4j"])
def test_other_exports_have_a_row_for_every_entity(kind: str, run: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert export.main([str(run), "--client", "1", "--to", kind, "--out", str(out)]) == 0
    entities = load_run(run).client(1).graph.entities
    texts = "".join(path.read_text() for path in out.iterdir() if path.suffix != ".safetensors")
    assert all(name in texts for name in entities)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["--client", "9", "--head", "usa", "--relation", "embassy"], "clients 1 to 2"),
        (["--client", "1", "--head", "us", "--relation", "embassy"], "unknown entity"),
        (["--client", "1", "--head", "usa"], "error"),
        (["--client", "1", "--queries", "missing.tsv"], "missing.tsv"),
    ],
)
def test_a_mistake_gets_one_line(
    options: list[str], word: str, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert predict.main([str(run), *options]) == 2
    said = capsys.readouterr().err.strip()
    assert word in said
    assert "\n" not in said


def test_a_cut_model_and_a_folder_that_is_no_run_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError):
        load_run(tmp_path)
    run = trained(tmp_path, "distmult")
    path = RunFolder(run).client(1) / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(UserError, match="model"):
        load_run(run).client(1)


def test_a_short_name_is_never_taken_for_another_one() -> None:
    """A name of an unknown prefix was looked up with its end doubled: GO:1 as GO:11."""
    shortener = Shortener({"ex": "http://x/", "e": "", "http": "http://evil/"})
    for name in ("GO:1", "urn:a", "http://x/e1", "ex:a:b", "e:http://x/e1", "ex"):
        assert shortener.full(name) == name
    assert shortener.full("ex:e1") == "http://x/e1"
