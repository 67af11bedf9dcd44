"""Another learner than embeddings in a whole federation: two blocks, metrics of its own, and no line elsewhere."""

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from launch.results import show_results
from protocols.foundation.disclosure import Subject
from secure_kg.audit.audit import audit
from secure_kg.audit.view.opening import OpenedSum
from secure_kg.audit.view.read import open_run
from secure_kg.federation.plan.disclosed import Disclosed
from secure_kg.federation.plan.run_plan import RunPlan
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.federation.plan.strategies import STRATEGIES
from secure_kg.report.page import run_report
from secure_kg.runs.records.summary import Summary
from secure_kg.runs.run_folder import RunFolder
from secure_kg.runs.summary import summarise
from tests.support import toy_learner
from tests.support.federation_in_threads import Run, nations, run_federation, small_config

pytestmark = pytest.mark.long

CLIENTS = 3


@pytest.fixture(autouse=True)
def toy() -> Iterator[None]:
    toy_learner.register()
    yield
    del STRATEGIES[toy_learner.NAME]


def toy_config(**changes: Any) -> RunConfig:
    defaults = {"strategy": "toy", "clients": CLIENTS, "max_corrupt": 0.0}
    return small_config(**{**defaults, **changes})


def run_toy(config: RunConfig, path: Path, *, resume: bool = False) -> Run:
    def learner(graph: Any, own: RunConfig, number: int) -> Any:
        return RunPlan(own, CLIENTS).learner.make(own, graph, number, None)

    run = run_federation(config, nations(CLIENTS, by="entities"), path, trainer_of=learner, resume=resume)
    run.done()
    return run


def values(run: Run) -> dict[int, dict[str, np.ndarray[Any, Any]]]:
    return {
        number: {block: learner.export_block(block) for block in ("entity", "dense")}
        for number, learner in run.trainers.items()
    }


def same(run: Run, other: Run) -> None:
    for number, blocks in values(run).items():
        for name, rows in blocks.items():
            np.testing.assert_array_equal(rows, values(other)[number][name])


def test_each_block_has_sums_of_its_own() -> None:
    plan = RunPlan(toy_config(aggregation="secret"), CLIENTS)
    assert [(block.purpose, block.aggregation, block.aligned) for block in plan.blocks] == [
        ("rows", "secret", True),
        ("rows/dense", "secagg", False),
    ]


def test_a_second_aligned_block_is_refused() -> None:
    """Names are aligned once in a run."""
    one = toy_learner.blocks(toy_config(), toy_learner.STRATEGY)[0]
    other = dataclasses.replace(one, name="other")
    twice = dataclasses.replace(toy_learner.KIND, blocks=lambda settings, strategy: (one, other))
    toy_learner.register(twice)
    with pytest.raises(ValueError, match="one at most is aligned"):
        RunPlan(toy_config(), CLIENTS).blocks  # noqa: B018


def test_twins_agree_to_the_last_bit(tmp_path: Path) -> None:
    plain = run_toy(toy_config(aggregation="plain", alignment="plain"), tmp_path / "plain")
    secagg = run_toy(toy_config(aggregation="secagg"), tmp_path / "secagg")
    secret = run_toy(toy_config(aggregation="secret"), tmp_path / "secret")
    same(plain, secagg)
    same(plain, secret)
    dense = values(plain)[1]["dense"]
    assert (dense > 0).all()
    assert plain.done().test == secagg.done().test


def test_a_dense_block_is_averaged_over_all_participants(tmp_path: Path) -> None:
    """Each round but the first adds client / 16 to the common vector: 2 / 16 on average."""
    run = run_toy(toy_config(rounds=5, eval_every=5, patience=5), tmp_path / "run")
    for learner in run.trainers.values():
        np.testing.assert_allclose(learner.export_block("dense"), 4 * 2 / 16, atol=1 / 8)


def test_results_are_named_by_the_learner(tmp_path: Path) -> None:
    run = run_toy(toy_config(), tmp_path / "run")
    folder = RunFolder(tmp_path / "run")
    assert all(set(line.figures["valid"]) == {"error"} for line in folder.metrics())
    result = json.loads((folder.client(1) / "result.json").read_text())
    assert result["metrics"] == {"error": "mean squared error of the values"}
    assert isinstance(run.done().test, toy_learner.Errors)


@pytest.mark.parametrize("aggregation", ["secagg", "secret"])
def test_broken_and_resumed_it_ends_alike(tmp_path: Path, aggregation: str) -> None:
    whole = run_toy(toy_config(aggregation=aggregation, rounds=6), tmp_path / "whole")
    run_toy(toy_config(aggregation=aggregation, rounds=4), tmp_path / "parts")
    resumed = run_toy(toy_config(aggregation=aggregation, rounds=6), tmp_path / "parts", resume=True)
    same(whole, resumed)


@pytest.mark.parametrize("aggregation", ["secagg", "secret"])
def test_an_audit_computes_its_sums_again(tmp_path: Path, aggregation: str) -> None:
    run_toy(toy_config(aggregation=aggregation, transcript=True), tmp_path / "run")
    opened: list[OpenedSum] = []
    found = audit(open_run(tmp_path / "run"), when_opened=opened.append)
    assert [finding.id for finding in found.findings if finding.severity == "high"] == []
    assert {total.purpose for total in opened} >= {"rows", "rows/dense", "valid", "test"}
    assert all(total.vector is not None for total in opened)


def finished(path: Path, config: RunConfig) -> Summary:
    """A run with its summary, read back from the file."""
    run, folder = run_toy(config, path), RunFolder(path)
    folder.write_summary(summarise(config, run.done(), folder))
    summary = folder.summary()
    assert summary is not None
    return summary


@pytest.mark.parametrize("aggregation", ["secagg", "secret"])
def test_closing_lines_and_report_show_its_own_figures(
    tmp_path: Path, aggregation: str, capsys: pytest.CaptureFixture[str]
) -> None:
    summary = finished(tmp_path / "run", toy_config(aggregation=aggregation))
    show_results(summary, tmp_path / "run")
    said = capsys.readouterr().out
    assert "error" in said
    assert "MRR" not in said
    page = run_report(summary, RunFolder(tmp_path / "run").all_metrics(), "")
    assert "error" in page
    assert "MRR" not in page


def test_a_block_that_needs_no_alignment_is_disclosed_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    dense = toy_learner.blocks(toy_config(), toy_learner.STRATEGY)[1:]
    kind = dataclasses.replace(toy_learner.KIND, blocks=lambda *_: dense)
    monkeypatch.setitem(STRATEGIES, "toy", dataclasses.replace(toy_learner.STRATEGY, shared=None, learner=kind))
    summary = finished(tmp_path / "run", toy_config())
    disclosed = Disclosed.of_summary(summary.settings)
    assert (disclosed.shared, disclosed.aligned) == ("dense", False)
    assert Subject.ROWS in {told.subject for told in disclosed.statements()}
    assert Subject.NAMES not in {told.subject for told in disclosed.statements()}
    show_results(summary, tmp_path / "run")
    assert "aggregation was" in capsys.readouterr().out
