"""FedCQA in a whole federation: twins, resumption, what stays local, and the strategies it is compared with."""

import dataclasses
import html
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import launch.audit
from launch.results import show_results
from secure_kg.audit.audit import audit
from secure_kg.audit.view.read import open_run
from secure_kg.data.pooling import pool
from secure_kg.federation.client.lineage import lineage
from secure_kg.federation.plan.run_plan import RunPlan
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.federation.plan.strategies import STRATEGIES
from secure_kg.federation.pooled import run_pooled
from secure_kg.foundation.errors import UserError
from secure_kg.learning.config import TrainingConfig
from secure_kg.learning.query_config import QueryConfig
from secure_kg.report.page import run_report
from secure_kg.runs.records.summary import Summary
from secure_kg.runs.run_folder import RunFolder
from secure_kg.runs.summary import comparable, summarise
from tests.support.federation_in_threads import Run, nations, run_federation, small_config

pytestmark = pytest.mark.long

CLIENTS = 3
SMALL = QueryConfig(dim=4, batch_size=8, local_steps=2, negatives=8, eval_queries=3, test_types="1p,2i,up")
BLOCKS = "entity and relation", "operators"


def query_config(**changes: Any) -> RunConfig:
    queries = dataclasses.replace(SMALL, **changes.pop("queries", {}))
    defaults: dict[str, Any] = {"strategy": "fedcqa", "aggregation": "secret", "clients": CLIENTS, "max_corrupt": 0.0}
    defaults |= {"training": TrainingConfig(), "by": "relations"}
    return small_config(**{**defaults, "queries": queries, **changes})


def run_queries(config: RunConfig, path: Path, *, resume: bool = False) -> Run:
    def learner(graph: Any, own: RunConfig, number: int) -> Any:
        return RunPlan(own, CLIENTS).learner.make(own, graph, number, torch.device("cpu"))

    run = run_federation(config, nations(CLIENTS, by="relations"), path, trainer_of=learner, resume=resume)
    run.done()
    return run


def finished(config: RunConfig, path: Path) -> Summary:
    run, folder = run_queries(config, path), RunFolder(path)
    folder.write_summary(summarise(config, run.done(), folder))
    summary = folder.summary()
    assert summary is not None
    return summary


def same(run: Run, other: Run) -> None:
    for number, learner in run.trainers.items():
        for block in BLOCKS:
            np.testing.assert_array_equal(learner.export_block(block), other.trainers[number].export_block(block))


def test_weighted_operators_are_summed_where_the_server_cannot_read_the_weights() -> None:
    for weights, aggregation in (("equal", "secagg"), ("triples", "secret")):
        config = query_config(queries={"operator_weights": weights})
        rows, operators = RunPlan(config, CLIENTS).blocks
        assert (rows.aggregation, operators.aggregation) == ("secret", aggregation)


@pytest.mark.parametrize("changes", [{}, {"step": 2.0, "operator_weights": "triples"}])
def test_twins_agree_to_the_last_bit(tmp_path: Path, changes: dict[str, Any]) -> None:
    runs = [
        run_queries(query_config(aggregation=sums, alignment=names, queries=changes), tmp_path / sums)
        for sums, names in (("plain", "plain"), ("secret", "psu"))
    ]
    same(*runs)
    read = RunFolder(tmp_path / "secret").read_by_clients()
    test = runs[0].done().test
    assert read is not None
    assert test is not None
    assert read.figures == test.figures()


def test_broken_and_resumed_it_ends_alike(tmp_path: Path) -> None:
    step = {"step": 1.5}
    whole = run_queries(query_config(rounds=6, queries=step), tmp_path / "whole")
    run_queries(query_config(rounds=4, queries=step), tmp_path / "parts")
    same(whole, run_queries(query_config(rounds=6, queries=step), tmp_path / "parts", resume=True))


def test_operators_and_entities_are_common_and_relations_of_one_holder_stay_with_it(tmp_path: Path) -> None:
    run = run_queries(query_config(), tmp_path / "run")
    one, other = run.trainers[1], run.trainers[2]
    np.testing.assert_array_equal(one.export_block("operators"), other.export_block("operators"))
    mine, theirs = (
        dict(zip(each.block_names(BLOCKS[0]), each.export_block(BLOCKS[0]), strict=True)) for each in (one, other)
    )
    common = mine.keys() & theirs.keys()
    assert common
    assert all(name.startswith("entity ") for name in common)
    assert all(np.array_equal(mine[name], theirs[name]) for name in common)
    read = RunFolder(tmp_path / "run").read_by_clients()
    relations = sum(len(each.graph.relations) for each in run.trainers.values())
    assert read is not None
    assert run.done().union_size - read.rows_averaged == 2 * relations


@pytest.mark.parametrize("strategy", ["fedcqa-fede", "fedcqa-fedr", "fedcqa-local"])
def test_variants_share_less(tmp_path: Path, strategy: str) -> None:
    config = query_config(strategy=strategy, aggregation="plain", alignment="plain")
    run = run_queries(config, tmp_path / "run")
    names = [block.name for block in RunPlan(config, CLIENTS).blocks]
    shared = STRATEGIES[strategy].shared
    assert names == ([] if shared is None else [shared, "operators"])
    operators = [run.trainers[number].export_block("operators") for number in (1, 2)]
    assert np.array_equal(*operators) == (shared is not None)


def test_pooled_it_is_compared_with_the_others(tmp_path: Path) -> None:
    config = query_config(strategy="fedcqa-central", aggregation="plain", min_participants=1)
    trainer = STRATEGIES[config.strategy].learner.make_pooled(
        config, pool(nations(CLIENTS, by="relations")), torch.device("cpu")
    )
    folder = RunFolder.create(tmp_path / "pool", config)
    summary = summarise(config, run_pooled(config, trainer, folder, lambda line: None), folder)
    assert sum(one.examples for one in summary.clients) == summary.test_queries  # and not of their triples
    assert [one.figures["mrr"] > 0 for one in summary.clients] == [True] * CLIENTS
    assert comparable(summary, finished(query_config(), tmp_path / "federated"))


@pytest.mark.parametrize("aggregation", ["secagg", "secret"])
def test_closing_lines_and_report_tell_of_types(
    tmp_path: Path, aggregation: str, capsys: pytest.CaptureFixture[str]
) -> None:
    summary = finished(query_config(aggregation=aggregation), tmp_path / "run")
    show_results(summary, tmp_path / "run")
    said = capsys.readouterr().out
    for word in ("FedCQA", "gqe", "2i", "up", "MRR", "hard answers", "entity and relation"):
        assert word in said
    page = run_report(summary, RunFolder(tmp_path / "run").all_metrics(), "")
    for word in ("FedCQA", "gqe", "2i", "hard answers"):
        assert word in page
    assert "tail side" not in said + page
    assert "training loss, mean over these clients' queries" in html.unescape(page)
    told, queries = summary.to_json(), sum(summary.figures["queries"].values())
    assert (told["test_triples"], told["test_queries"], summary.number_of_examples) == (None, queries, queries)
    earlier = Summary.from_json({**told, "test_triples": queries} | {"test_queries": None}, "summary.json")
    assert earlier.number_of_examples == queries


def test_an_audit_computes_its_sums_again(tmp_path: Path) -> None:
    run_queries(query_config(transcript=True), tmp_path / "run")
    found = audit(open_run(tmp_path / "run"))
    assert [finding.id for finding in found.findings if finding.severity == "high"] == []
    clients, out = tmp_path / "run" / "clients", tmp_path / "audit"
    assert launch.audit.main([str(tmp_path / "run"), "--truth", str(clients), "--out", str(out)]) == 0
    assert "this run trained on queries" in (out / "audit.html").read_text()


def test_strategies_for_queries_are_one_lineage() -> None:
    """Rows under the same names begin alike, so sums of two such runs over other clients would tell a client's."""
    plans = [RunPlan(query_config(strategy=strategy), CLIENTS) for strategy in ("fedcqa", "fedcqa-fede")]
    for number in (1, 2):
        assert len({lineage(plan, "rows", number, 0) for plan in plans}) == 1
    assert lineage(RunPlan(query_config(queries={"dim": 5}), CLIENTS), "rows", 2, 0) != lineage(plans[0], "rows", 2, 0)


def test_settings_of_queries_are_part_of_a_runs_settings() -> None:
    config = query_config()
    assert RunConfig.from_toml(config.to_toml(), "here") == config
    assert "[queries]" in config.to_toml()
    assert "[training]" not in config.to_toml()
    assert config.digest() != query_config(queries={"step": 2.0}).digest()
    assert "queries" not in small_config().to_toml()
    with pytest.raises(UserError, match="trains on triples"):
        query_config(strategy="fedr")
    with pytest.raises(UserError, match="unknown setting 'margin'"):
        RunConfig.from_toml(config.to_toml() + "margin = 3\n", "here")
