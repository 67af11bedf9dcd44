"""`python -m benchmarks.cheating_servers`: each cheat comes out as SECURITY.md promises, and the judge can tell."""

import dataclasses
import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from benchmarks.cheating import (
    again,
    apart,
    beginnings,
    comparisons,
    guessing,
    interpolating,
    lending,
    losses,
    sessions,
    tables,
    two_blocks,
)
from benchmarks.cheating.absences import NeverTold
from benchmarks.cheating.entry import Played, perform
from benchmarks.cheating.stage import CLIENTS, VICTIM, Stage, stage_config
from benchmarks.cheating.zoo import ZOO
from benchmarks.cheating_servers import main
from protocols.foundation import wire
from protocols.foundation.identifiers import PartyId, RoundId
from protocols.sums.secagg.openings import Openings
from protocols.sums.secret import aggregation as secret_aggregation
from secure_kg.audit.audit import audit
from secure_kg.audit.view.read import open_run
from secure_kg.federation.client import client, shared_blocks
from secure_kg.federation.client.client import FederationClient
from secure_kg.federation.client.lineage import lineage
from secure_kg.federation.client.own_count import OwnCount
from secure_kg.federation.client.own_rows import OwnRows
from secure_kg.federation.client.shared_blocks import SharedBlocks
from secure_kg.federation.client.states import States
from secure_kg.federation.plan.messages import SharedRows, Welcome
from secure_kg.federation.plan.run_plan import RunPlan

pytestmark = pytest.mark.long

FIELDS = {
    *(
        "name",
        "crashes",
        "party",
        "wants",
        "claims",
        "claim",
        "not_covered",
        "expected",
        "expected_findings",
        "why_unnamed",
        "why_unrefused",
        "also_expected",
        "outcome",
        "ok",
        "got",
        "refused_by",
    ),
    *("reasons", "audit_exit", "audit_high", "audit_other", "audit_problem", "server_ends", "evidence", "cpu_seconds"),
}


SLOW_CONTROLS = ("honest-resumed", "honest-without-common-rows", "honest-and-stalled")


def by_claim() -> Iterator[ParameterSet]:
    """Of the entries of one claim that come out alike `make test` plays the first, and `make test-all` all."""
    alike: Counter[object] = Counter()
    for name, entry in ZOO.items():
        kind = (entry.claims, entry.expected)
        alike[kind] += 1
        repeats = alike[kind] > 1 and entry.claims
        yield pytest.param(name, marks=pytest.mark.slow if repeats or name in SLOW_CONTROLS else ())


@pytest.mark.parametrize("name", list(by_claim()))
def test_comes_out_as_promised(name: str) -> None:
    for package in ZOO[name].packages:
        pytest.importorskip(package)
    record = perform(ZOO[name])
    assert record["ok"], record


def test_the_record_of_each_is_whole_and_the_exit_code_tells(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--json", str(tmp_path / "zoo.json"), "--only", "replaced-keys", "honest"]) == 0
    written = json.loads((tmp_path / "zoo.json").read_text())
    assert (written["version"], written["ok"]) == (1, True)
    assert [record["name"] for record in written["servers"]] == ["replaced-keys"]
    assert [record["name"] for record in written["controls"]] == ["honest"]
    assert all(record.keys() == FIELDS for record in (*written["servers"], *written["controls"]))
    assert written["servers"][0]["refused_by"] == ["3"]
    assert "key-replaced" in capsys.readouterr().out


def test_a_cheat_that_is_stopped_or_caught_has_a_finding_that_names_it_or_a_reason_why_none_can() -> None:
    for entry in ZOO.values():
        must_be_named = entry.expected in ("stopped", "caught") and not entry.unnamed
        assert bool(entry.findings) == must_be_named, entry.name


def test_what_an_audit_must_show_besides_is_looked_for() -> None:
    assert perform(ZOO["cut-receipts"])["audit_other"].count("receipt-cut") == 1
    assert not perform(dataclasses.replace(ZOO["honest"], shows=("receipt-cut",)))["ok"]


class Idle(tables.TwoTables):
    """Does not cheat, and computes what it would compute."""

    def send(self, to: PartyId, message: wire.Message) -> Iterable[wire.Message]:
        if isinstance(message, SharedRows) and self.round == self.target and self.true is None:
            self.true = message
        return (message,)


def test_the_judge_gives_a_server_nothing_that_does_not_cheat(tmp_path: Path) -> None:
    """The same computation on an honest sum: its error is measured, and is no success."""
    played = tables.two_tables(tmp_path, Idle(tables.BEYOND))
    assert not played.got
    assert played.evidence["entries"] > 0
    assert played.evidence["median_error"] > played.evidence["error_of_guessing"]


def test_without_the_digest_of_tables_the_loans_would_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OwnRows, "digest", property(lambda self: b""))
    played = lending.false_tables(tmp_path)
    assert played.got
    assert played.evidence["clients_that_took_the_table"] == len(lending.OTHERS)


def test_without_the_check_of_secret_sums_clients_would_answer_what_results_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(secret_aggregation, "checks_of", lambda layout: 0)
    played = comparisons.read_by_comparisons(tmp_path)
    assert played.got
    assert played.evidence["answers"] == CLIENTS * (comparisons.EVALUATIONS - 1)


def test_without_their_record_of_openings_clients_would_open_a_round_again_from_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And an auditor sees that they have."""
    for name in ("open", "may_come"):
        monkeypatch.setattr(Openings, name, lambda self, *given: None)
    played = sessions.another_past_for_all(tmp_path)
    assert played.got
    found = audit(open_run(played.stage.run), None, played.stage.directory)
    assert "same-sum-from-other-states" in {one.id for one in found.findings if one.severity == "high"}


def test_if_clients_counted_evaluations_by_their_checkpoint_the_victims_loss_would_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And an auditor sees what the checkpoint does not know of."""
    monkeypatch.setattr(OwnCount, "_last", lambda self, round_id: self._evaluated)
    monkeypatch.setattr(OwnCount, "tells_loss", OwnCount.fresh)
    forget_states(monkeypatch)
    forget_lineages(monkeypatch)
    played = again.checkpoint_first(tmp_path)
    assert played.got
    assert played.evidence["largest_error"] == 0
    found = audit(open_run(played.stage.run), played.stage.run / "clients", played.stage.directory)
    (named,) = (one for one in found.findings if one.id == "evaluated-on-demand")
    assert named.severity == "high"
    assert f"asked for results after its checkpoint of round {again.SAVED}" in named.evidence[0]


def forget_states(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if clients committed to something new for every sum of results."""
    monkeypatch.setattr(States, "of_results", lambda self, parameters, part: os.urandom(32))


def forget_lineages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "lineage", lambda *_: "")


@pytest.mark.parametrize("play", [again.idle_results, again.nudged_idle_results])
def test_if_idle_clients_had_another_commitment_the_victims_figures_would_be_read(
    play: Callable[[Path], Played], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two guards stop it, and one of them is enough."""
    with monkeypatch.context() as patch:
        forget_states(patch)
        assert not play(tmp_path / "lineages").got
    with monkeypatch.context() as patch:
        forget_lineages(patch)
        assert not play(tmp_path / "states").got
    forget_states(monkeypatch)
    forget_lineages(monkeypatch)
    played = play(tmp_path / "neither")
    assert played.got
    assert played.evidence["largest_error"] < 1e-6


def test_if_idle_clients_committed_to_the_rows_they_were_sent_a_nudge_would_be_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The nudge, and not that idle clients are asked again: rows that stay give the same commitment."""
    forget_lineages(monkeypatch)
    monkeypatch.setattr(RunPlan, "sees_survivors", False)
    played = again.nudged_idle_results(tmp_path / "nudged")
    assert played.got
    assert played.evidence["largest_error"] < 1e-6
    assert not again.idle_results(tmp_path / "still").got


def test_without_lineages_a_run_with_nearly_the_same_settings_would_give_the_victims_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forget_lineages(monkeypatch)
    played = beginnings.nearly_the_same_job(tmp_path)
    assert played.got
    assert played.evidence["largest_error"] < 1e-4
    assert played.evidence["entries"] > 100


def test_if_lineages_of_first_rows_had_the_dimension_a_wider_run_would_give_the_victims(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def with_dimension(plan: RunPlan, purpose: str, round_id: int, trained: int) -> str:
        usual = lineage(plan, purpose, round_id, trained)
        return f"{plan.settings.training.dim}/{usual}" if usual else ""

    monkeypatch.setattr(client, "lineage", with_dimension)
    played = beginnings.wider_first_rows(tmp_path)
    assert played.got
    assert played.evidence["largest_error"] < 1e-4
    assert played.evidence["entries"] > 100


def test_if_clients_went_on_without_the_result_of_a_sum_the_victims_update_would_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Better than from tables that are sent, since every round begins at the same rows."""
    monkeypatch.setattr(SharedBlocks, "require_news", lambda self: None)
    played = interpolating.withheld_tables(tmp_path / "withheld")
    assert played.got
    assert played.evidence["client"] == VICTIM
    sent = interpolating.one_dropout(tmp_path / "sent")
    assert played.evidence["error"] < sent.evidence["error"]


@pytest.mark.slow  # whether the victim is back in time for the next round is a matter of luck on a busy machine
def test_if_blocks_were_committed_to_one_after_the_other_the_victims_rows_would_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def prepare(self: SharedBlocks, round_id: RoundId, *, counting: bool) -> None:
        for one in self._exchanges:
            one.rows.begin_round()
            one.prepare(round_id, counting=counting)

    monkeypatch.setattr(SharedBlocks, "prepare", prepare)
    with two_blocks.registered():
        played = two_blocks.first_of_two_blocks(tmp_path)
    assert played.got
    assert played.evidence["largest_error"] < 1e-6


def test_nothing_else_than_what_clients_know_names_a_record_that_was_cut() -> None:
    record = perform(ZOO["cut-and-resumed"])
    assert record["evidence"] == {"clients_poisoned": CLIENTS, "run_went_on": True}
    assert record["audit_high"] == ["opening-not-recorded"]


def test_if_first_rows_came_from_the_seed_and_the_name_names_would_be_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_blocks, "private_seed", lambda graph, seed: guessing.public_seed(seed))
    played = guessing.guessed_first_rows(tmp_path)
    assert played.got
    assert played.evidence["found"] == played.evidence["rows_read"] > 0
    assert played.evidence["found_wrongly"] == 0


@pytest.mark.parametrize("play", [apart.trained_alone, apart.past_for_one])
def test_if_clients_went_on_from_sums_given_up_the_victim_would_be_read(
    play: Callable[[Path], Played], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By half of the error that the mean of the sum has, after ten rounds alone."""
    monkeypatch.setattr(OwnRows, "begin_round", lambda self: None)
    played = play(tmp_path)
    assert played.got
    assert played.evidence["median_error"] < 0.6 * played.evidence["error_of_guessing"]


def test_if_losses_of_trainings_in_vain_were_told_the_victims_would_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train = FederationClient._train_locally

    def counted(self: FederationClient, round_id: RoundId) -> None:
        train(self, round_id)
        self._results.added(round_id)

    monkeypatch.setattr(FederationClient, "_train_locally", counted)
    played = losses.trained_for_loss(tmp_path)
    assert played.got
    assert played.evidence["largest_error"] < 1e-2


def test_if_clients_evaluated_without_knowing_the_end_of_a_sum_the_victims_loss_would_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(OwnCount, "opening", property(lambda self: 0, lambda self, number: None), raising=False)
    played = losses.signatures_for_one(tmp_path)
    assert played.got
    assert played.evidence["largest_error"] < 1e-2


def test_a_cheat_that_nobody_refuses_is_stopped_only_where_a_reason_is_given() -> None:
    assert all(entry.expected == "stopped" for entry in ZOO.values() if entry.unrefused)
    assert not perform(dataclasses.replace(ZOO["loss-twice"], unrefused=""))["ok"]


def test_all_are_listed_without_running_any(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    assert "two-tables" in capsys.readouterr().out


def test_a_mistake_gets_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for argv in (["--only", "no-such-cheat"], ["--json", str(tmp_path / "no" / "such" / "folder"), "--list", "--x"]):
        assert main(argv) == 2
        assert capsys.readouterr().err.count("\n") == 1


def test_a_client_lost_while_it_is_greeted_damages_no_transcript(tmp_path: Path) -> None:
    """It is left out before it has a session, and others have theirs."""
    stage = Stage(tmp_path, stage_config(rounds=1, eval_every=1))
    stage.perform(NeverTold(Welcome, 0))
    recording = open_run(stage.run).recordings[0]
    told = [one.kind for one in recording if one.peer == VICTIM and one.direction == "sent"]
    assert told[0] == "LeaveOut"
    assert recording.damage is None
    assert stage.last.outcome is not None
    found = audit(open_run(stage.run), stage.run / "clients", stage.directory)
    assert [one.id for one in found.findings if one.severity == "high"] == []
