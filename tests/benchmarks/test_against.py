"""This checkout next to a copy of itself: both sides train alike, and a folder that is none is refused."""

import json
import shutil
from pathlib import Path

import pytest

from benchmarks import kge
from benchmarks.against import ROOT, checkout_at, compare
from secure_kg.foundation.errors import UserError

pytestmark = pytest.mark.long
PARTS = ("benchmarks", "launch", "protocols", "secure_kg")
SMALL = ["--dataset", "nations", "--model", "rotate", "--dim", "4", "--negatives", "4", "--epochs", "2"]
ONCE = ["--repeats", "1"]


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("other")
    for part in PARTS:
        shutil.copytree(ROOT / part, folder / part)
    return folder


def test_two_checkouts_take_turns_on_the_same_work(copy: Path, tmp_path: Path) -> None:
    assert kge.main([*SMALL, *ONCE, "--against", str(copy), "--json", str(tmp_path / "kge.json")]) == 0
    report = json.loads((tmp_path / "kge.json").read_text())
    this, other = report["this"], report["other"]
    assert (this["loss"], this["mrr"]) == (other["loss"], other["mrr"])
    assert [len(this["turns"][work]) for work in ("train", "rank")] == [2, 2]
    assert report["train_cpu_seconds_ratio"] == pytest.approx(
        other["turns"]["train"][1]["cpu_seconds"] / this["turns"]["train"][1]["cpu_seconds"]
    )
    assert this["train_triples_per_s"] == report["train_triples"] / this["turns"]["train"][1]["seconds"]


def test_the_other_side_is_the_code_of_the_other_folder(copy: Path) -> None:
    """A checkout whose rows go elsewhere is seen to do so."""
    trainer = copy / "secure_kg" / "learning" / "kge.py"
    whole = trainer.read_text()
    trainer.write_text(whole.replace("self.config.lr * self", "0.0 * self"))
    options = {"dataset": "nations", "config": {"dim": 4, "lr": 0.1}, "seed": 0, "threads": 1}
    try:
        report = compare(copy, options, (2, 1), lambda text: None)
    finally:
        trainer.write_text(whole)
    assert report["this"]["loss"] != report["other"]["loss"]


def test_what_is_no_checkout_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="not a checkout of this project"):
        checkout_at(str(tmp_path))


def test_a_checkout_that_cannot_train_is_named(copy: Path, capfd: pytest.CaptureFixture[str]) -> None:
    options = {"dataset": "nosuch", "config": {}, "seed": 0, "threads": 1}
    with pytest.raises(UserError, match="has ended; its reason stands above"):
        compare(copy, options, (1, 1), lambda text: None)
    assert "nosuch" in capfd.readouterr().err
