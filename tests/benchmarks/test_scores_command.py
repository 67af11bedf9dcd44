"""`python -m benchmarks.scores`: figures of real batches, wrong rankings noticed, mistakes in one line."""

import json
import statistics
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import scores
from benchmarks.scoring import backends, carriers
from benchmarks.scoring.figures import Repetition, ratios, repetitions
from benchmarks.scoring.party import MODEL, BatchCost, Measured, schedule
from benchmarks.scoring.peers import over_unpacked, unpacked_phe
from benchmarks.scoring.workload import Truth, Workload
from launch import audit
from protocols.registry import SCORES
from protocols.scores.budget import Helpers, default_limit
from protocols.scores.interface import Answer, ScoringReport
from tests.support.mpi_jobs import run_job

SMALL = ("--entities", "80", "--clients", "3", "--repeat", "2")
FIELDS = {"seconds_per_query", "cpu_seconds_per_query", "bytes_per_client", "rounds", "max_abs_error", "same_ranking"}
ROOT = Path(__file__).parents[2]
"""Benchmarks are not installed: they are run from the project's folder."""
WORK = Workload(entities=60, clients=3, queries=2, top=5, share=0.7, seed=1)


def measured(capsys: pytest.CaptureFixture[str], options: Sequence[str]) -> dict[str, Any]:
    assert scores.main([*SMALL, *options, "--json", "-"]) == 0
    report: dict[str, Any] = json.loads(capsys.readouterr().out)
    return report


def test_every_backend_of_threads_gives_figures(capsys: pytest.CaptureFixture[str]) -> None:
    names = ["plain", "masked", "bfv", "topk"]
    report = measured(capsys, ["--queries", "2", "--backends", *names, "--hide-query", "--dimensions", "8"])
    assert list(report["backends"]) == [*names, "topk-hidden"]
    for name, one in report["backends"].items():
        assert one.keys() >= FIELDS, name
        assert one["same_ranking"] is True
        assert one["cpu_seconds_per_query"] > 0
        assert one["max_abs_error"] < 1e-6
    topk, masked, plain = (report["backends"][name] for name in ("topk", "masked", "plain"))
    assert topk["rounds"] > masked["rounds"] > plain["rounds"] == 1
    # 2 queries of 80 positions: 4 bytes a score and a byte a count, from a scorer in clear.
    assert 80 * 4 + 40 <= plain["parties"]["scorer"]["sent_bytes"] < 80 * 4 + 40 + 60
    assert masked["parties"]["scorer"]["sent_bytes"] > plain["parties"]["scorer"]["sent_bytes"]
    for what, one in report["ratios"].items():
        pairs = zip(topk[f"all_{what}"], plain[f"all_{what}"], strict=True)
        assert one["topk"]["plain"] == statistics.median(ours / theirs for ours, theirs in pairs)


def test_the_table_and_the_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "scores.json"
    assert scores.main([*SMALL, "--backends", "plain", "masked", "--json", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "80 entities, 3 clients" in shown
    assert json.loads(path.read_text())["backends"].keys() == {"plain", "masked"}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--backends", "nope"], "--backends nope: there are plain, masked"),
        (["--clients", "2"], "at least 3"),
        (["--entities", "0"], "positions of a batch: 0"),
        (["--top", "1001"], "not in 1..1000"),
        (["--min-holders", "5"], "1 to 4"),
        (["--backends", "paillier", "--paillier-bits", "512"], "Paillier keys of 512 bits"),
        (["--backends", "plain", "--paillier-bits", "2048"], "paillier is not among the backends that are measured"),
        (["--share", "0"], "--share above 0"),
        (["--repeat", "0"], "--repeat"),
        (["--json", "/proc/nowhere/x.json"], "cannot be written"),
        (["--bakends"], "did you mean --backends?"),
        (["--hide-query", "l1"], "--hide-query: a hidden query cannot be scored by 'l1': there are inner, squared"),
    ],
)
def test_a_mistake_gets_one_line(options: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert scores.main(options) == 2
    told = capsys.readouterr()
    assert told.err.count("\n") == 1
    assert said in told.err
    assert told.out == ""


def test_a_missing_package_is_an_error_if_asked_for_and_a_line_if_not(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lacking = {"tenseal", "phe", "gmpy2", "crypten"}
    find = backends.importlib.util.find_spec
    monkeypatch.setattr(backends.importlib.util, "find_spec", lambda name: None if name in lacking else find(name))
    assert scores.main(["--backends", "bfv"]) == 2
    assert "pip install 'secure-kg[bfv]'" in capsys.readouterr().err
    assert scores.main(["--backends", "crypten"]) == 2
    assert "pip install --no-deps crypten" in capsys.readouterr().err
    assert scores.main([*SMALL[:-1], "1", "--queries", "1"]) == 0
    shown = capsys.readouterr().out
    assert shown.count("left out: ") == 3
    assert "topk" in shown


def test_a_wrong_ranking_is_an_error(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    honest = carriers.take_part

    def bent(*arguments: Any) -> list[BatchCost]:
        return [_flipped(cost) for cost in honest(*arguments)]

    monkeypatch.setattr(carriers, "take_part", bent)
    assert scores.main([*SMALL, "--backends", "plain"]) == 1
    assert "not the ranking that was computed in clear: plain" in capsys.readouterr().err


def _flipped(cost: BatchCost) -> BatchCost:
    return BatchCost(**{**_fields(cost), "same_ranking": False}) if cost.same_ranking else cost


def _fields(cost: BatchCost) -> dict[str, Any]:
    return {name: getattr(cost, name) for name in cost.__struct_fields__}


def test_truth_notices_another_order_and_an_error_of_means() -> None:
    terms = WORK.terms(SCORES["plain"])
    truth = Truth.of(WORK, terms)
    right = Answer(truth.ranking, ScoringReport())
    assert truth.same_ranking(right)
    assert 0 < truth.error(right) <= terms.codec.unit
    assert truth.ranking.means is not None
    swapped = tuple(np.concatenate([row[1::-1], row[2:]]) for row in truth.ranking.positions)
    assert not truth.same_ranking(Answer(replace(truth.ranking, positions=swapped), ScoringReport()))
    shifted = tuple(row + 0.25 for row in truth.ranking.means)
    assert truth.error(Answer(replace(truth.ranking, means=shifted), ScoringReport())) == pytest.approx(0.25, rel=1e-5)
    positions_only = replace(truth.ranking, means=None)
    assert truth.error(Answer(positions_only, ScoringReport())) <= 2 * terms.codec.unit
    assert truth.error(Answer(replace(positions_only, positions=swapped), ScoringReport())) > 0


def test_backends_take_turns_and_rounds_are_never_used_twice() -> None:
    batches = schedule(["a", "b"], 2)
    assert [(one.backend, one.repetition) for one in batches] == [(b, r) for r in range(3) for b in ("a", "b")]
    rounds = [int(WORK.terms(SCORES["plain"], one.number).round) for one in batches]
    assert np.diff(rounds).min() >= 3


def cost(party: int, seconds: float, **more: Any) -> BatchCost:
    given: dict[str, Any] = {"backend": "x", "repetition": 1, "sent_bytes": 10, "received_bytes": 20}
    given |= {"sent_messages": party + 1, "received_messages": 1, "cpu_seconds": seconds, "seconds": seconds}
    return BatchCost(**(given | {"process_seconds": 2 * seconds, "shared_process_seconds": 9.0, "party": party} | more))


def test_costs_of_a_batch_by_who_shares_a_process() -> None:
    costs = {party: cost(party, 1.0 + party) for party in range(3)}
    apart, together = Repetition(costs, shared_process=False), Repetition(costs, shared_process=True)
    assert (apart.seconds, apart.cpu_seconds, apart.background_seconds, apart.rounds) == (2.0, 12.0, 6.0, 3)
    assert (together.cpu_seconds, together.background_seconds) == (9.0, 3.0)
    helped = Repetition(costs | {0: cost(0, 1.0, helper_seconds=4.0)}, shared_process=False)
    assert helped.cpu_seconds == 16.0


def test_ratios_are_between_neighbours_in_time() -> None:
    figures = {
        "a": {"carrier": "threads", "all_seconds": [1.0, 10.0, 3.0], "all_cpu_seconds": [1.0, 1.0, 1.0]},
        "b": {"carrier": "threads", "all_seconds": [0.5, 5.0, 1.0], "all_cpu_seconds": [4.0, 4.0, 4.0]},
        "c": {"carrier": "processes", "all_seconds": [1.0, 1.0, 1.0], "all_cpu_seconds": [1.0, 1.0, 1.0]},
    }
    found = ratios(figures)
    assert found["seconds"]["a"].keys() == {"b"}  # the others were not there at the same time
    assert found["seconds"]["c"] == {}
    assert found["seconds"]["a"]["b"] == 2.0
    assert found["cpu_seconds"]["a"]["b"] == 0.25


@pytest.mark.long
def test_unpacked_phe_is_extrapolated_from_what_was_measured() -> None:
    found = unpacked_phe(WORK, 1, lambda _: None)
    steps = found["cpu_seconds_per_score"]
    of_a_score = 2 * steps["encrypt"] + steps["add"] + steps["decrypt"]
    assert found["cpu_seconds_per_query"] == pytest.approx(60 * of_a_score)
    packed = {
        "cpu_seconds_per_query": found["cpu_seconds_per_query"] / 10,
        "background_cpu_seconds_per_query": found["cpu_seconds_per_query"] / 20,
        "first_batch": {"cpu_seconds": found["cpu_seconds_per_query"]},
    }
    over = over_unpacked(found, packed, queries=3)
    assert over == pytest.approx({"nothing_precomputed": 3.0, "tables_kept": 10.0, "computed_ahead": 20.0})


def test_a_party_that_fails_ends_the_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_arguments: Any) -> list[BatchCost]:
        raise RuntimeError("a party is broken")

    monkeypatch.setattr(carriers, "serve", broken)
    with pytest.raises(RuntimeError, match="a party is broken"):
        carriers.in_threads(Measured(WORK, {"plain": SCORES["plain"]}, 1))


def test_repetitions_are_told_apart() -> None:
    costs = carriers.in_threads(Measured(WORK, {"plain": SCORES["plain"]}, 2))
    found = repetitions(costs, "plain", True)
    assert [one.costs.keys() for one in found] == [{0, 1, 2, 3}] * 3


@pytest.mark.mpi
def test_under_mpirun_every_party_has_a_rank(tmp_path: Path) -> None:
    json_file, recorded = str(tmp_path / "out.json"), str(tmp_path / "recorded")
    options = ("--entities", "60", "--repeat", "1", "--backends", "plain", "masked", "topk", "--json", json_file)
    ended = run_job(4, *options, "--record", recorded, cwd=ROOT, module="benchmarks.scores")
    assert (ended.code, ended.errors) == (0, "")
    report = json.loads((tmp_path / "out.json").read_text())
    assert report["clients"] == 3
    assert all(one["same_ranking"] and one["carrier"] == "ranks" for one in report["backends"].values())
    assert audit.main([str(tmp_path / "recorded"), "--out", str(tmp_path / "audit")]) == 3
    found = json.loads((tmp_path / "audit/audit.json").read_text())["findings"]
    assert {one["id"] for one in found if one["severity"] == "high"} == {"clear-scores", "clear-queries"}


@pytest.mark.mpi
def test_a_mistake_under_mpirun_gets_one_line() -> None:
    ended = run_job(4, "--clients", "5", cwd=ROOT, module="benchmarks.scores")
    assert ended.code == 2
    assert ended.error_lines == ["error: --clients 5: needs mpirun -n 6, a server and its clients, not 4"]


def test_what_rank_0_alone_can_tell_ends_all_ranks() -> None:
    options = ("--entities", "20", "--backends", "plain", "--record", "/proc/nowhere")
    ended = run_job(4, *options, cwd=ROOT, module="benchmarks.scores")
    assert ended.code == 2
    assert ended.error_lines == ["error: /proc/nowhere: cannot be made (No such file or directory)"]


@pytest.mark.long
def test_crypten_is_measured_in_processes(capsys: pytest.CaptureFixture[str]) -> None:
    small = ["--entities", "8", "--clients", "3", "--repeat", "1", "--top", "1"]
    assert scores.main([*small, "--backends", "crypten", "plain", "--json", "-"]) == 0
    report = json.loads(capsys.readouterr().out)
    crypten, plain = report["backends"]["crypten"], report["backends"]["plain"]
    assert (crypten["carrier"], plain["carrier"]) == ("processes", "threads")
    assert crypten["same_ranking"]
    assert crypten["parties"]["scorer"]["group_bytes"] > 0


# --- budgets, and recorded sessions -----------------------------------------------------------------------------------


def test_more_queries_than_the_budget_need_an_option(capsys: pytest.CaptureFixture[str]) -> None:
    options = [*SMALL, "--queries", "5", "--dimensions", "8", "--backends", "masked"]
    assert scores.main(options) == 2
    told = capsys.readouterr().err
    limit = default_limit(8, Helpers.of(int(SMALL[SMALL.index("--clients") + 1]), MODEL))
    assert 0 < limit < 4, "what one client allows, so that all of them together allow 4"
    assert f"budget of {limit} queries" in told
    assert "--allow-extraction" in told
    assert scores.main([*options, "--allow-extraction"]) == 0
    assert scores.main([*options[:-1], "topk"]) == 0  # which opens no means


def test_scorers_refuse_by_their_own_budget(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also if the command does not look beforehand."""
    monkeypatch.setattr(scores, "_refuse_extraction", lambda *of: None)
    assert scores.main([*SMALL, "--queries", "5", "--dimensions", "8", "--backends", "masked"]) == 2
    assert "say --allow-extraction" in capsys.readouterr().err


def test_a_session_can_be_recorded_and_audited(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = ["--record", str(tmp_path / "recorded")]
    assert scores.main([*SMALL, "--backends", "masked", "topk", *record]) == 0
    assert audit.main([str(tmp_path / "recorded"), "--out", str(tmp_path / "audit")]) == 0
    report = json.loads((tmp_path / "audit/audit.json").read_text())
    assert report["settings"]["backends"] == ["masked", "topk"]
    assert len(report["settings"]["batches"]) == 6
    capsys.readouterr()
    assert scores.main([*SMALL, "--backends", "masked", *record]) == 2
    assert "holds a session of score queries already" in capsys.readouterr().err


@pytest.mark.long
def test_parties_in_processes_are_recorded_by_themselves(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = ["--record", str(tmp_path / "recorded")]
    assert scores.main([*SMALL, "--carrier", "processes", "--backends", "plain", *record]) == 0
    assert audit.main([str(tmp_path / "recorded"), "--out", str(tmp_path / "audit")]) == 3
    capsys.readouterr()
    assert scores.main([*SMALL, "--peers", "--backends", "plain", "topk", "--record", str(tmp_path / "other")]) == 2
    assert "topk would be a session of its own" in capsys.readouterr().err
