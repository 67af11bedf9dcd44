"""`--dp counts` in federations: one noised table, the same bits in every twin, and no second look at it."""

import dataclasses
import hashlib
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from launch import fede
from launch.counting import tail_mrr
from launch.options import parse
from launch.results import show_results
from protocols.foundation.identifiers import PartyId, RoundId
from protocols.sums.interface import Contribution
from protocols.sums.noise_shares import read_shares
from protocols.sums.pipeline import encode
from protocols.sums.terms import SumTerms
from secure_kg.audit.audit import audit
from secure_kg.audit.view.read import open_run
from secure_kg.data.graph import ClientGraph
from secure_kg.federation.client.count_learner import CountLearner
from secure_kg.federation.client.lineage import lineage
from secure_kg.federation.plan.count_plan import bucket
from secure_kg.federation.plan.run_plan import RunPlan
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.errors import UserError
from secure_kg.privacy.accounting.accountant import Release, epsilon_of
from secure_kg.privacy.release_record import FILE
from secure_kg.runs.run_folder import RunFolder
from secure_kg.runs.summary import summarise
from tests.support.federation_in_threads import Run, Vanished, run_federation
from tests.support.private_runs import (
    CLIENTS,
    counting_config,
    counting_learner,
    graphs,
    private_config,
    run_counting,
    run_private,
)


def learner(config: RunConfig, graph: ClientGraph | None = None) -> CountLearner:
    return CountLearner(config, graphs()[0] if graph is None else graph, 1, torch.device("cpu"))


def tables(run: Run) -> dict[int, np.ndarray[Any, Any]]:
    return {number: one.export_block("entity") for number, one in run.trainers.items()}


# --- the table and its noise ---


def test_a_triple_is_one_in_one_cell_and_encoded_exactly() -> None:
    config, graph = counting_config(), graphs()[0]
    whole = learner(config, graph).contributed_block("entity")
    without = learner(config, dataclasses.replace(graph, train=graph.train[1:])).contributed_block("entity")
    _, relation, tail = graph.train[0]
    difference = whole - without
    assert difference[tail, bucket(graph.relations[relation], 64)] == 1
    assert np.count_nonzero(difference) == 1
    assert whole.sum() == len(graph.train)
    plan = RunPlan(config, CLIENTS)
    layout = plan.row_layout(plan.blocks[0], len(graph.entities))
    terms = SumTerms(RoundId(1), "rows", tuple(map(PartyId, range(1, CLIENTS + 1))), layout)
    encoded = encode(terms, Contribution(whole.reshape(-1), np.ones(len(graph.entities), dtype=np.int64)))
    assert (encoded.max_error, encoded.clipped) == (0.0, 0)


@pytest.mark.parametrize("noise", ["shares", "full"])
def test_the_one_sum_has_the_noise_that_the_budget_asks_for(noise: str) -> None:
    plan = RunPlan(counting_config(dp_noise=noise, max_corrupt=0.25, max_dropout=0.25), CLIENTS)
    shares, private = read_shares(plan.blocks[0].noise), plan.private
    assert private is not None
    assert (shares.first_round, private.steps, shares.needed) == (1, 1, 1 if noise == "full" else 2)
    assert plan.trains(1)
    unit = plan.row_layout(plan.blocks[0], 7).codec.unit
    assert unit <= 1
    drawn = math.sqrt(shares.needed * (shares.share / unit) ** 2 - 4) * unit
    spent = epsilon_of([(Release(drawn), 1)], private.calibrated.delta_of_accountant)
    assert 7.95 < spent <= 8.0
    lines = private.statement(single_read=False).lines()
    assert any("one table of counts" in line and "times a clip of 1, 1 step" in line for line in lines)


def test_columns_are_public_and_collisions_are_the_clients_own_to_know() -> None:
    name = "relation 7"
    digest = hashlib.sha256(b"secure-kg/bucket of a relation/1\0" + name.encode()).digest()
    assert bucket(name, 64) == int.from_bytes(digest, "big") % 64
    relations = len(graphs()[0].relations)
    assert learner(counting_config(dp_count_width=1)).about()["colliding_relations"] == relations
    assert learner(counting_config(dp_count_width=2**14)).about()["colliding_relations"] == 0


def test_tails_are_ranked_by_counts_above_the_threshold_and_heads_are_level() -> None:
    config, graph = counting_config(epsilon=8.0), graphs()[0]
    made, entities = learner(config), len(graphs()[0].entities)
    counts = made.contributed_block("entity")
    made.load_block("entity", (counts / CLIENTS).astype(np.float32))
    ranked, triples = made._ranked(), torch.from_numpy(graph.train[:3])
    own = counts[:, [bucket(graph.relations[r], 64) for r in graph.train[:3, 1]]].T / CLIENTS
    level = read_shares(RunPlan(config, CLIENTS).blocks[0].noise).share / math.sqrt(CLIENTS)
    expected = np.where(own < level, 0.0, own).astype(np.float32)
    np.testing.assert_array_equal(ranked.scores(triples, "tail").numpy(), expected)
    assert not ranked.scores(triples, "head").any()
    made.load_block("entity", np.full((entities, 64), 1e-9, dtype=np.float32))
    assert not made._ranked().scores(triples, "tail").any()


def test_the_mechanism_says_how_many_rounds_there_are_and_another_lineage_what_it_is() -> None:
    arguments = ["--dp", "counts", "--epsilon", "4", "--delta", "1e-5"]
    config = parse(arguments, "job", "", "", fede.LAUNCHER.defaults).config
    assert (config.rounds, config.model, config.dim) == (1, "counts", 1024)
    assert RunConfig.from_toml(config.to_toml(), "a file") == config
    counts, rows = (RunPlan(one, CLIENTS) for one in (counting_config(), private_config(strategy="fede")))
    assert lineage(counts, "rows", 1, 0) == "fede/counts/64/0/rows/1"
    assert lineage(rows, "rows", 1, 0) == "fede/0/rows/1"


def test_a_ring_that_is_too_coarse_for_the_shares_is_refused_in_one_line() -> None:
    with pytest.raises(UserError, match="--ring-bits 64") as refused:
        counting_config(epsilon=20.0, clients=3000, max_dropout=0.25)
    assert "\n" not in str(refused.value)
    assert counting_config(epsilon=20.0, clients=3000, max_dropout=0.25, ring_bits=64).ring_bits == 64


# --- whole runs ---


@pytest.mark.long
@pytest.mark.parametrize("noise", ["shares", "full"])
def test_twins_agree_to_the_last_bit(tmp_path: Path, noise: str) -> None:
    runs = {
        name: run_counting(counting_config(aggregation=name, dp_noise=noise), tmp_path / name)
        for name in ("plain", "secagg", "secret")
    }
    exact: dict[str, Any] = {}
    for number, graph in enumerate(graphs(), start=1):
        rows = counting_learner(graph, counting_config(), number).contributed_block("entity")
        for name, row in zip(graph.entities, rows, strict=True):
            exact[name] = exact.get(name, 0) + row
    shares = read_shares(RunPlan(counting_config(dp_noise=noise), CLIENTS).blocks[0].noise)
    for run in runs.values():
        run.done()
        for number, table in tables(run).items():
            np.testing.assert_array_equal(table, tables(runs["plain"])[number])
            found = CLIENTS * table - np.array([exact[name] for name in graphs()[number - 1].entities])
            assert found.std() == pytest.approx(shares.share * math.sqrt(CLIENTS), rel=0.15)
    lines = (RunFolder(tmp_path / "plain").client(1) / FILE).read_text().splitlines()
    assert [(json.loads(line)["round"], json.loads(line)["purpose"]) for line in lines] == [(1, "rows")]


def mortal(victim: int, last_words: BaseException) -> Any:
    """Learners of which one is gone before it contributes."""

    def make(graph: ClientGraph, own: RunConfig, number: int) -> Any:
        made = counting_learner(graph, own, number)

        def dying(round: int) -> Any:
            raise last_words

        if number == victim:
            made.train = dying
        return made

    return make


@pytest.mark.long
@pytest.mark.parametrize("aggregation", ["secagg", pytest.param("plain", marks=pytest.mark.slow)])
def test_dropouts_up_to_what_is_declared_leave_a_table_and_more_leave_none(tmp_path: Path, aggregation: str) -> None:
    changes: dict[str, Any] = {"grace": 1.0, "deadline": 2.0, "max_corrupt": 0.25, "aggregation": aggregation}
    make = mortal(2, Vanished())
    allowed = run_counting(counting_config(max_dropout=0.25, **changes), tmp_path / "allowed", trainer_of=make)
    assert allowed.server_error is None
    assert all(tables(allowed)[number].any() for number in (1, 3, 4))
    told: list[str] = []
    config = counting_config(max_dropout=0.0, **changes)
    beyond = run_counting(config, tmp_path / "beyond", trainer_of=make, report=told.append)
    # Secure sums wait for the dropout in vain; plain ones need nobody else, and the run ends with nothing.
    assert beyond.server_error is not None or beyond.done().test is None
    assert any("round 1: the sum of rows was abandoned" in line for line in told)
    assert not any(table.any() for table in tables(beyond).values())


@pytest.mark.long
def test_resumed_it_repeats_its_noise_and_other_triples_are_refused(tmp_path: Path) -> None:
    config, path = counting_config(aggregation="secagg"), tmp_path / "run"
    whole = run_counting(config, tmp_path / "whole")
    ended = run_counting(config, path, trainer_of=mortal(1, UserError("the disk is full")))
    assert any("the disk is full" in line for line in ended.on_consoles)
    released = (RunFolder(path).client(2) / FILE).read_text()
    changed = graphs()
    changed[1] = dataclasses.replace(changed[1], train=changed[1].train[1:])
    refused = run_federation(config, changed, path, trainer_of=counting_learner, resume=True)
    assert any("the privacy budget is spent, with 1 releases" in line for line in refused.on_consoles)
    resumed = run_counting(config, path, resume=True)
    for number, table in tables(whole).items():
        np.testing.assert_array_equal(table, tables(resumed)[number])
    assert (RunFolder(path).client(2) / FILE).read_text() == released


def finished(run: Run, config: RunConfig, path: Path) -> Any:
    folder = RunFolder(path)
    folder.write_summary(summarise(config, run.done(), folder))
    return folder.summary()


@pytest.mark.long
def test_closing_lines_compare_with_counting_under_the_same_budget(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trained = private_config(rounds=2, public_evaluation=True)
    summary = finished(run_private(trained, tmp_path / "sgd"), trained, tmp_path / "sgd")
    show_results(summary, tmp_path / "sgd")
    alone = " ".join(capsys.readouterr().out.split())
    assert "compare with counting: python -m launch.fede --dp counts --epsilon 8 --delta 1e-05" in alone
    counts = counting_config(aggregation="secagg", alignment="psu", transcript=True, public_evaluation=True)
    other = finished(run_counting(counts, tmp_path / "counts"), counts, tmp_path / "counts")
    dearer = counting_config(epsilon=9.0)
    finished(run_counting(dearer, tmp_path / "another budget"), dearer, tmp_path / "another budget")
    for one, name in ((summary, "sgd"), (other, "counts")):
        show_results(one, tmp_path / name)
        both = " ".join(capsys.readouterr().out.split())
        assert "fede, counts shares" in both
        assert "all-rows, sgd shares" in both
        assert "another budget" not in both
        counted, learned = tail_mrr(other), tail_mrr(summary)
        assert counted is not None
        assert learned is not None
        assert f"{'counting' if counted >= learned else 'training'} wins: tail MRR {counted:.4f} by counting" in both
    assert "both sides" not in both
    assert "FedE on nations by triples, counts, 4 clients" in both
    found = audit(open_run(tmp_path / "counts"))
    assert [one.id for one in found.findings if one.severity == "high"] == []
