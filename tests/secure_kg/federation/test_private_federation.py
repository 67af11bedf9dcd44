"""Differentially private training in whole federations: the same bits in every twin, no input with noise twice."""

import dataclasses
import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from launch.results import show_results
from protocols.alignment.interface import Positions
from protocols.foundation.identifiers import PartyId, RoundId
from protocols.sums.noises import noise_of
from protocols.sums.pipeline import encode
from protocols.sums.terms import SumTerms
from secure_kg.audit.audit import audit
from secure_kg.audit.view.read import open_run
from secure_kg.data.graph import ClientGraph
from secure_kg.evaluation.ranking_metrics import RankingMetrics
from secure_kg.federation.client.first_rows import public_first_rows
from secure_kg.federation.client.own_rows import OwnRows
from secure_kg.federation.client.private_learner import PrivateLearner
from secure_kg.federation.plan.run_plan import RunPlan
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.errors import UserError
from secure_kg.learning.kge import KgeLearner
from secure_kg.privacy.release_record import FILE, ReleaseRecord
from secure_kg.report.page import run_report
from secure_kg.runs.alignment_files import load_aligned, load_positions
from secure_kg.runs.run_folder import RunFolder
from secure_kg.runs.summary import summarise
from tests.support import private_runs
from tests.support.federation_in_threads import Vanished, run_federation
from tests.support.private_runs import CLIENTS, give_secrets, graphs, private_config, private_learner, run_private, same

pytestmark = pytest.mark.long


def releases(path: Path, client: int) -> Counter[int]:
    """Lines of the client's record by round."""
    lines = (RunFolder(path).client(client) / FILE).read_text().splitlines()
    return Counter(json.loads(line)["round"] for line in lines)


def test_twins_agree_to_the_last_bit(tmp_path: Path) -> None:
    plain = run_private(private_config(), tmp_path / "plain")
    for aggregation in ("secagg", "secret"):
        other = run_private(private_config(aggregation=aggregation), tmp_path / aggregation)
        same(plain, other)
        assert other.done().rounds == 4
    assert releases(tmp_path / "plain", 1) == {2: 1, 3: 1, 4: 1}
    # Another secret, another run: the noise is there, and is nobody's but the client's own.
    give_secrets(tmp_path / "other")
    (RunFolder(tmp_path / "other").client(1) / "state.key").write_bytes(bytes(32))
    other = run_federation(private_config(), graphs(), tmp_path / "other", trainer_of=private_learner)
    assert (private_runs.tables(plain)[1] != private_runs.tables(other)[1]).all()


@pytest.mark.parametrize("strategy", ["fede", "fedr", "local"])
def test_tables_that_are_not_shared_have_noise_of_their_own(tmp_path: Path, strategy: str) -> None:
    config = private_config(strategy=strategy, rounds=3)
    run = run_private(config, tmp_path / "run")
    other = run_private(dataclasses.replace(config, aggregation="secagg"), tmp_path / "secagg")
    assert run.done().test == other.done().test
    for table in ("entity", "relation"):
        for number, learner in run.trainers.items():
            assert np.array_equal(learner.export_block(table), other.trainers[number].export_block(table))
    first = 1 if strategy == "local" else 2
    purposes = {"fede": ["own/relation", "rows"], "fedr": ["own/entity", "rows"]}
    lines = (RunFolder(tmp_path / "run").client(1) / FILE).read_text().splitlines()
    own = sorted(json.loads(line)["purpose"] for line in lines if json.loads(line)["round"] == first)
    assert own == purposes.get(strategy, ["own/entity", "own/relation"])


def breaking(number_of: int, round_of: int) -> Any:
    """Learners of which one cannot go on in a round."""

    def make(graph: ClientGraph, own: RunConfig, number: int) -> KgeLearner:
        made = private_learner(graph, own, number)
        train = made.train

        def broken(round: int) -> Any:
            if number == number_of and round == round_of:
                raise UserError("the disk is full")
            return train(round)

        made.train = broken  # type: ignore[method-assign]
        return made

    return make


@pytest.mark.parametrize(
    ("aggregation", "changes"),
    [("secret", {}), pytest.param("secagg", {"dp_sampling": 0.5}, marks=pytest.mark.slow)],
)
def test_broken_and_resumed_it_ends_with_the_same_bits_and_no_further_release(
    tmp_path: Path, aggregation: str, changes: dict[str, Any]
) -> None:
    config = private_config(aggregation=aggregation, rounds=6, **changes)
    whole = run_private(config, tmp_path / "whole")
    give_secrets(tmp_path / "parts")
    broken = run_federation(config, graphs(), tmp_path / "parts", trainer_of=breaking(1, 6))
    assert any("the disk is full" in line for line in broken.on_consoles)
    assert releases(tmp_path / "parts", 2)[5] == 1
    resumed = run_private(config, tmp_path / "parts", resume=True)  # from round 4
    same(whole, resumed)
    assert all(releases(tmp_path / "parts", number) == dict.fromkeys(range(2, 7), 1) for number in (1, 2))


def test_an_input_in_another_state_is_a_release_and_the_budget_has_no_room_for_it(tmp_path: Path) -> None:
    config, path = private_config(rounds=6), tmp_path / "run"
    give_secrets(path)
    run_federation(config, graphs(), path, trainer_of=breaking(2, 6))
    changed = graphs()
    changed[1] = dataclasses.replace(changed[1], train=changed[1].train[1:])
    resumed = run_federation(config, changed, path, trainer_of=private_learner, resume=True)
    assert any("the privacy budget is spent, with 5 releases" in line for line in resumed.on_consoles)
    assert releases(path, 2) == {2: 1, 3: 1, 4: 1, 5: 2}
    assert not any("\n" in line for line in resumed.on_consoles)


def mortal(victim: int, round_of: int, seen: dict[int, np.ndarray[Any, Any]]) -> Any:
    """Learners of which one is gone from a round on. `seen`: the rows of the others, as they begin that round."""

    def make(graph: ClientGraph, own: RunConfig, number: int) -> KgeLearner:
        made = private_learner(graph, own, number)
        train = made.train

        def dying(round: int) -> Any:
            if round == round_of:
                if number == victim:
                    raise Vanished
                seen[number] = made.export_block("entity and relation")
            return train(round)

        made.train = dying  # type: ignore[method-assign]
        return made

    return make


@pytest.mark.parametrize("aggregation", ["secagg", "plain"])
def test_a_dropout_within_what_is_declared_costs_nothing(tmp_path: Path, aggregation: str) -> None:
    config = private_config(aggregation=aggregation, grace=1.0, max_dropout=0.25, max_corrupt=0.25, rounds=3)
    assert RunPlan(config, CLIENTS).least_participants == 3
    seen: dict[int, np.ndarray[Any, Any]] = {}
    run = run_federation(config, graphs(), tmp_path / "run", trainer_of=mortal(2, 3, seen))
    assert run.server_error is None
    assert run.outcome is not None
    assert run.outcome.abandoned_sums == []
    for number, rows in seen.items():
        assert (run.trainers[number].export_block("entity and relation") != rows).all()


@pytest.mark.parametrize("aggregation", ["secagg", "plain"])
def test_with_more_dropouts_than_declared_nothing_is_opened(tmp_path: Path, aggregation: str) -> None:
    changes: dict[str, Any] = {"max_dropout": 0.0, "max_corrupt": 0.25, "grace": 1.0, "deadline": 2.0, "rounds": 3}
    seen: dict[int, np.ndarray[Any, Any]] = {}
    told: list[str] = []
    make, config = mortal(2, 3, seen), private_config(aggregation=aggregation, **changes)
    run = run_federation(config, graphs(), tmp_path / "run", trainer_of=make, report=told.append)
    assert run.outcome is None or run.outcome.test is None  # without a client, there is no result either
    assert any("round 3: the sum of rows was abandoned" in line for line in told)
    for number, rows in seen.items():
        np.testing.assert_array_equal(run.trainers[number].export_block("entity and relation"), rows)


def test_every_client_adds_to_every_row_and_noise_to_all_of_it(tmp_path: Path) -> None:
    """Rows that a client does not hold go into the sum as they are applied, with noise: none tells of holdings."""
    config, graph = private_config(), graphs()[0]
    plan = RunPlan(config, CLIENTS)
    block, held = plan.blocks[0], len(graph.entities) + len(graph.relations)
    size = held + 5
    learner = PrivateLearner(config, graph, 1, torch.device("cpu"))
    record = ReleaseRecord(bytes(32), tmp_path, 3, b"terms")
    learner.entrust(record)
    positions = Positions(size, np.arange(5, size, dtype=np.int64), b"u")
    own = OwnRows(positions, block, learner, plan.row_layout(block, size), record.key_of)
    table = np.linspace(-1, 1, size * block.width, dtype=np.float32).reshape(size, -1)
    own.start_public(table)
    learner.train(2)
    contribution = own.contribution(None)
    assert (contribution.counts == 1).all()
    spread = contribution.real.reshape(size, -1)
    np.testing.assert_array_equal(spread[:5], table[:5])
    assert (spread[5:] != table[5:]).any()
    terms = SumTerms(RoundId(2), block.purpose, tuple(map(PartyId, range(1, CLIENTS + 1))), own.layout)
    drawn = own.layout.codec.decode(encode(terms, contribution).vector[: own.layout.real_entries]) - contribution.real
    deviation = noise_of(block.noise).bound / 12
    for part in (drawn[: 5 * block.width], drawn[5 * block.width :]):
        assert (np.abs(part) > 2 * own.layout.codec.unit).mean() > 0.9
        assert part.std() == pytest.approx(deviation, rel=6 / np.sqrt(2 * len(part)))
    again = own.layout.codec.decode(encode(terms, contribution).vector[: own.layout.real_entries])
    np.testing.assert_array_equal(again, drawn + contribution.real)
    assert record.releases == 1


def test_a_step_of_the_mean_is_a_step_of_the_whole_sum(tmp_path: Path) -> None:
    """Without noise to speak of, two rounds take the rows along the sum of all clients' clipped gradients."""
    config = private_config(rounds=2, epsilon=20.0, dp_clip=0.5, dp_step=0.1, max_dropout=0.0, max_corrupt=0.0)
    private = RunPlan(config, CLIENTS).private
    assert private is not None
    assert private.step_at(2) == 0.1
    run = run_private(config, tmp_path / "run")
    run.done()
    # All shares are there, also that of the client that is reckoned as corrupt.
    deviation = private.shares().deviation / CLIENTS * math.sqrt(CLIENTS / (CLIENTS - private.corrupt))
    by_name: dict[str, Any] = {}
    firsts: dict[str, Any] = {}
    for number, graph in enumerate(graphs(), start=1):
        learner = private_learner(graph, config, number)
        record = ReleaseRecord(bytes(32), tmp_path / f"again {number}", 3, b"terms")
        (tmp_path / f"again {number}").mkdir()
        learner.entrust(record)
        start = _started(tmp_path / "run", number, learner)
        learner.train(2)
        moved = learner.contributed_block("entity and relation") - start
        for name, row, first in zip(learner.block_names("entity and relation"), moved, start, strict=True):
            by_name[name] = by_name.get(name, 0) + row / CLIENTS
            firsts[name] = first
    for number, learner in run.trainers.items():
        expected = np.array([firsts[name] + by_name[name] for name in learner.block_names("entity and relation")])
        found = learner.export_block("entity and relation") - expected
        assert found.std() == pytest.approx(deviation, rel=0.3), number


def _started(path: Path, number: int, learner: KgeLearner) -> np.ndarray[Any, Any]:
    """The rows that the run began with, by position, loaded into another learner."""
    config, folder = private_config(), RunFolder(path)
    aligned = load_aligned(folder.server)
    assert aligned is not None
    names = learner.block_names("entity and relation")
    positions = load_positions(folder.client(number), aligned.union.digest, names)
    block = RunPlan(config, CLIENTS).blocks[0]
    first = public_first_rows(positions.union_size, config.seed, block.width, block.span)[positions.own]
    learner.load_block("entity and relation", first)
    return first


def test_the_statement_is_in_summary_closing_lines_and_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = private_config(aggregation="secagg", alignment="psu", transcript=True)
    run, folder = run_private(config, tmp_path / "run"), RunFolder(tmp_path / "run")
    folder.write_summary(summarise(config, run.done(), folder))
    summary = folder.summary()
    assert summary is not None
    statement = summary.statement
    assert statement is not None
    assert (statement.epsilon, statement.steps, statement.clients, statement.spare) == (8.0, 3, 4, 2)
    assert 0 < statement.delta.total <= 1e-5
    assert not any("server" in line for line in statement.outside)
    show_results(summary, folder.path)
    said = " ".join(capsys.readouterr().out.split())
    assert "Epsilon 8, delta 1e-05" in said
    assert "no test figures: evaluation triples are private" in said
    assert "one triple of one client" in run_report(summary, folder.all_metrics(), "")
    found = audit(open_run(folder.path))
    assert [finding.id for finding in found.findings if finding.severity == "high"] == []


def test_plain_sums_keep_the_server_outside_of_the_statement() -> None:
    private = RunPlan(private_config(), CLIENTS).private
    assert private is not None
    assert any("the server" in line for line in private.statement(single_read=True).outside)
    alone = RunPlan(private_config(dp_noise="full"), CLIENTS).private
    assert alone is not None
    statement = alone.statement(single_read=True)
    assert statement.spare == CLIENTS - 1
    assert not any("the server" in line for line in statement.outside)


def test_public_evaluation_chooses_a_round_and_tells_no_loss(tmp_path: Path) -> None:
    run = run_private(private_config(public_evaluation=True), tmp_path / "run")
    assert run.done().best_round in (2, 4)
    assert [line.figures["loss"] for line in RunFolder(tmp_path / "run").metrics()] == [0.0, 0.0]


def test_all_rows_are_shared_without_noise_too(tmp_path: Path) -> None:
    config = dataclasses.replace(private_config(min_holders=None), privacy=None, max_corrupt=0.0)
    same(
        run_federation(config, graphs(), tmp_path / "plain"),
        run_federation(dataclasses.replace(config, aggregation="secagg"), graphs(), tmp_path / "secagg"),
    )


def test_a_repeated_round_is_not_opened_over_other_clients(tmp_path: Path) -> None:
    """Their inputs have the same noise as before: two such sums would differ by one client's input and its share."""
    config = private_config(aggregation="secagg", grace=1.0, max_dropout=0.25, max_corrupt=0.25, rounds=9)
    path, told = tmp_path / "run", list[str]()
    give_secrets(path)
    run_federation(config, graphs(), path, trainer_of=breaking(1, 6))  # the sum of round 5 is opened, over all four
    make = mortal(4, 5, {})
    run_federation(config, graphs(), path, trainer_of=make, resume=True, report=told.append)
    assert "continuing after round 4" in told
    abandoned = [line for line in told if "round 5: the sum of rows was abandoned" in line]
    assert len(abandoned) == 1
    assert "opened" in abandoned[0]


def told(learner: Any) -> RankingMetrics:
    found = learner.told_results("test", learner.evaluate("test"))
    assert isinstance(found, RankingMetrics)
    return found


@pytest.mark.parametrize("aggregation", ["plain", "secagg", "secret"])
def test_without_public_evaluation_no_result_leaves_a_client(tmp_path: Path, aggregation: str) -> None:
    run = run_private(private_config(aggregation=aggregation), tmp_path)
    outcome = run.done()
    assert outcome.test is None
    assert outcome.test_clients == 0
    assert all((RunFolder(tmp_path).client(number) / "result.json").exists() for number in range(1, CLIENTS + 1))


def test_told_results_do_not_depend_on_train_triples() -> None:
    config = private_config(public_evaluation=True)
    graph = graphs()[0]
    fewer = dataclasses.replace(graph, train=graph.train[:5])
    assert told(private_learner(graph, config, 1)) == told(private_learner(fewer, config, 1))
    own, other = (private_learner(one, config, 1).evaluate("test") for one in (graph, fewer))
    assert own != other  # a client's own results do


@pytest.mark.parametrize("public", [False, True])
def test_a_summary_tells_nothing_of_a_client_that_has_no_noise(tmp_path: Path, public: bool) -> None:
    config = private_config(rounds=2, public_evaluation=public)
    outcome, folder = run_private(config, tmp_path / "run").done(), RunFolder(tmp_path / "run")
    kept = folder.client_results()
    assert all(result.about["train_triples"] and result.figures["mrr"] for result in kept)
    written = summarise(config, outcome, folder).to_json()
    assert "train_triples" not in json.dumps(written)
    assert written["clipped_values"] is None
    assert written["max_fixed_point_error"] is None
    assert not any("mrr" in line for line in written["clients"])  # its ranks leave out train triples
    assert (written["mrr"] is not None) == public  # of the sums that were told, whose ranks do not
