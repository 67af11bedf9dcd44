"""Alignment, minimum holders and names: what a run tells the server of who holds what, and what it keeps local."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from launch.results import show_results
from protocols.alignment.psu import union as private_union
from protocols.alignment.psu.attempts import UnionPlaces
from protocols.alignment.psu.vote import REFUSED
from protocols.foundation.identifiers import PartyId, RoundId
from protocols.holders import secret as holders
from protocols.primitives.group import PrimeField
from protocols.session.conversation import Abort, Failed
from protocols.sums.plain import ClearInput
from protocols.sums.secagg.messages import MaskedInput
from secure_kg.data.graph import ClientGraph
from secure_kg.federation.client.first_rows import first_rows, private_seed
from secure_kg.federation.plan.messages import SharedRows
from secure_kg.federation.plan.row_sum import row_layout
from secure_kg.federation.plan.sampling import participants
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.errors import UserError
from secure_kg.learning.kge import KgeLearner
from secure_kg.models.shapes import initial_range
from secure_kg.runs.run_folder import RunFolder
from secure_kg.runs.summary import summarise
from tests.support.federation_in_threads import nations, relation_rows, run_federation, small_config
from tests.support.transcripts import seen_by_server, vectors_in

pytestmark = pytest.mark.long


@pytest.mark.parametrize("alignment", ["psu", "plain"])
@pytest.mark.parametrize("aggregation", ["secagg", "secret", "plain"])
@pytest.mark.parametrize("strategy", ["fedr", "fede"])
def test_every_choice_of_protocols_gives_the_same_rows(
    tmp_path: Path, strategy: str, aggregation: Any, alignment: Any
) -> None:
    """Relations and entities are aligned and added up by the same code."""
    graphs = nations(3, by="entities")
    twin = small_config(strategy=strategy, aggregation="plain", alignment="plain", rounds=2)
    config = small_config(strategy=strategy, aggregation=aggregation, alignment=alignment, rounds=2)
    expected = run_federation(twin, graphs, tmp_path / "twin")
    run = run_federation(config, graphs, tmp_path / "run")
    names = {name for graph in graphs for name in (graph.relations if strategy == "fedr" else graph.entities)}
    assert run.done().union_size == expected.done().union_size == len(names)
    for number, trainer in expected.trainers.items():
        for table in ("relation", "entity"):
            np.testing.assert_array_equal(trainer.export_block(table), run.trainers[number].export_block(table))  # type: ignore[arg-type]


def test_a_private_alignment_shows_the_server_no_name_and_no_set_size(tmp_path: Path) -> None:
    graphs = nations(3, by="entities")
    run_federation(small_config(transcript=True, rounds=1), graphs, tmp_path / "run").done()
    assert len({len(graph.relations) for graph in graphs}) > 1
    seen = seen_by_server(tmp_path / "run")
    everything = b"".join(one.frame for one in seen)
    for name in {name for graph in graphs for name in (*graph.relations, *graph.entities)}:
        if len(name) > 4:
            assert name.encode() not in everything
    # Messages of one kind and purpose have the same size for all clients, whatever they hold.
    sizes: dict[tuple[str, str, str, int], set[int]] = {}
    for one in seen:
        if one.direction == "received":
            kind = type(one.message).__name__
            sizes.setdefault((kind, one.phase, getattr(one.message, "purpose", ""), one.round), set()).add(
                len(one.frame)
            )
    assert all(len(found) == 1 for key, found in sizes.items() if key[0] != "SealedGroupKeys")
    clear = run_federation(small_config(alignment="plain", transcript=True, rounds=1), graphs, tmp_path / "clear")
    clear.done()
    assert graphs[0].relations[0].encode() in b"".join(one.frame for one in seen_by_server(tmp_path / "clear"))


def test_revealed_names_are_the_union_and_nothing_more(tmp_path: Path) -> None:
    graphs = nations(3, by="entities")
    run_federation(small_config(reveal_names=True, rounds=1), graphs, tmp_path / "run").done()
    names = json.loads((tmp_path / "run/server/names.json").read_text())["names"]
    assert sorted(names) == sorted({name for graph in graphs for name in graph.relations})
    run_federation(small_config(rounds=1), graphs, tmp_path / "hidden").done()
    assert not (tmp_path / "hidden/server/names.json").exists()


def test_a_union_larger_than_expected_takes_another_attempt(tmp_path: Path) -> None:
    graphs = [_with_relations(graph, 500) for graph in nations(2)]
    config = small_config(union_bound=50, transcript=True, rounds=1)
    union = {name for graph in graphs for name in graph.relations}
    assert run_federation(config, graphs, tmp_path / "run").done().union_size == len(union)
    answers = [one.message for one in seen_by_server(tmp_path / "run") if isinstance(one.message, UnionPlaces)]
    assert answers[0].size == 0  # type: ignore[attr-defined]
    assert answers[-1].size == len(union)  # type: ignore[attr-defined]


def test_more_names_than_three_tables_hold_end_the_run(tmp_path: Path) -> None:
    run = run_federation(
        small_config(union_bound=1, rounds=1), [_with_relations(graph, 500) for graph in nations(2)], tmp_path / "run"
    )
    assert "3 tables could not be read, the last one for 16 names" in str(run.server_error)
    assert len(str(run.server_error).splitlines()) == 1


@pytest.mark.parametrize("asked", ["one position", "a long name"])
def test_an_alignment_that_a_client_objects_to_ends_in_one_line_that_tells_nothing(
    asked: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graphs, real = nations(3), private_union.answer_of
    config = small_config(reveal_names=asked == "a long name", transcript=True, rounds=1)
    if asked == "a long name":
        named = ("n" * 300, *graphs[1].relations[1:])
        graphs[1] = replace(graphs[1], relations=named)
    else:

        def all_on_one(total: Any, attempt: Any) -> UnionPlaces:
            answer = real(total, attempt)
            return UnionPlaces(answer.purpose, answer.size, np.zeros_like(answer.places))

        monkeypatch.setattr(private_union, "answer_of", all_on_one)
    run = run_federation(config, graphs, tmp_path / "run")
    assert str(run.server_error).endswith(f": {REFUSED}")
    assert len(str(run.server_error).splitlines()) == 1
    assert {str(error) for error in run.client_errors.values()} == {REFUSED}
    assert run.client_errors.keys() == {1, 2, 3}
    objections = {path.parent.name: path.read_text() for path in (tmp_path / "run").glob("clients/*/objection.txt")}
    if asked == "a long name":
        assert objections == {"2": "a name of 300 bytes is too long to be revealed, 255 are possible\n"}
    else:
        assert objections == dict.fromkeys("123", "two names of this client have the same position\n")
    reasons = {
        one.message.reason for one in seen_by_server(tmp_path / "run") if isinstance(one.message, Failed | Abort)
    }
    assert all(REFUSED in reason for reason in reasons)


def test_rows_of_one_holder_stay_local(tmp_path: Path) -> None:
    """Divided by relations, every relation has one holder: nothing is shared, and everybody trains on alone."""
    graphs = nations(3, by="relations")
    outcomes = {}
    for aggregation in ("plain", "secagg", "secret"):
        config = small_config(aggregation=aggregation, transcript=True)
        run = run_federation(config, graphs, tmp_path / aggregation)
        outcomes[aggregation] = run.done()
        held = sum(len(graph.relations) for graph in graphs)
        assert run.done().union_size == held
        assert run.done().rows_kept_local == (None if aggregation == "secret" else held)
        for number, graph in enumerate(graphs, start=1):
            result = json.loads((tmp_path / aggregation / f"clients/{number}/result.json").read_text())
            assert (result["rows_kept_local"], result["rows_averaged"]) == (len(graph.relations), 0)
        rows = [row.tobytes() for table in relation_rows(run).values() for row in table]
        everything = b"".join(one.frame for one in seen_by_server(tmp_path / aggregation))
        assert not any(row in everything for row in rows)
    assert outcomes["plain"].test == outcomes["secagg"].test
    tables = [one.message for one in seen_by_server(tmp_path / "secagg") if isinstance(one.message, SharedRows)]
    assert tables
    assert not any(table.rows.any() or table.averaged.any() for table in tables)  # type: ignore[attr-defined]


@pytest.mark.parametrize("least", [2, 3])
@pytest.mark.parametrize("fraction", [1.0, 0.6])
def test_no_row_is_added_up_of_fewer_than_the_minimum(tmp_path: Path, least: int, fraction: float) -> None:
    """Watched on the plain twin, where uploads can be read: in every round a row has no contributor, or enough."""
    graphs = nations(5, by="entities")
    config = small_config(
        aggregation="plain", client_fraction=fraction, min_holders=least, rounds=6, transcript=True, max_corrupt=0.0
    )
    outcome = run_federation(config, graphs, tmp_path / "run").done()
    layout = row_layout(outcome.union_size, config.training.dim, config.clip, 5, config.ring_bits)
    uploads: dict[int, list[Any]] = {}
    for one in seen_by_server(tmp_path / "run"):
        if isinstance(one.message, ClearInput) and one.message.purpose == "rows":
            uploads.setdefault(one.round, []).append(layout.decode(one.message.vector))
    clients = [PartyId(number) for number in range(1, 6)]
    for number, parts in uploads.items():
        drawn = participants(clients, fraction, 2, config.seed, RoundId(number))
        held = [name for party in drawn for name in graphs[party - 1].relations]
        enough = sum(held.count(name) >= least for name in set(held))
        contributors = sum(part.counts for part in parts)
        assert set(contributors) - {0} <= set(range(least, 6))
        assert (contributors > 0).sum() == enough
        assert enough > 0
        alone = contributors == 0
        assert all(not part.real.reshape(len(alone), -1)[alone].any() for part in parts)
    assert len(uploads) == 6


def test_a_row_shared_before_is_not_undone_by_a_round_without_enough_holders(tmp_path: Path) -> None:
    """With few clients drawn, a row may find enough holders in one round and not in the next; all modes agree on it."""
    graphs = nations(5, by="entities")
    rows = {}
    for aggregation in ("plain", "secagg", "secret"):
        config = small_config(aggregation=aggregation, client_fraction=0.4, rounds=8, max_corrupt=0.0, grace=5.0)
        run = run_federation(config, graphs, tmp_path / aggregation)
        run.done()
        rows[aggregation] = relation_rows(run)
    for number in rows["plain"]:
        np.testing.assert_array_equal(rows["plain"][number], rows["secagg"][number])
        np.testing.assert_array_equal(rows["plain"][number], rows["secret"][number])


def test_holder_counts_do_not_reach_the_server(tmp_path: Path) -> None:
    """Under secure sums the count it returns to the clients is noise to it; under the plain twin it is the counts."""
    graphs = nations(3)
    for aggregation, small in (("plain", True), ("secagg", False)):
        config = small_config(aggregation=aggregation, rounds=1, transcript=True)
        run_federation(config, graphs, tmp_path / aggregation).done()
        totals = [one for one in seen_by_server(tmp_path / aggregation) if one.phase == "holders"]
        assert totals
        for one in totals:
            (vector,) = vectors_in(one.message)
            assert (vector.max() <= 3) == small


def test_a_server_that_claims_more_holders_gets_no_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It adds to the total that tells a holder whether there are others; a lone holder would believe it."""
    original = holders.send_total

    def lie(session: Any, task: Any, contributors: Any, vector: Any) -> None:
        vector[:-1] = PrimeField().add(vector[:-1], np.ones(len(vector) - 1, dtype=np.uint64))
        original(session, task, contributors, vector)

    monkeypatch.setattr(holders, "send_total", lie)
    run = run_federation(small_config(transcript=True), nations(3, by="relations"), tmp_path / "run")
    assert run.outcome is None
    assert any("not that of what the clients have sent" in str(error) for error in run.client_errors.values())
    uploads = [one.message for one in seen_by_server(tmp_path / "run") if isinstance(one.message, MaskedInput)]
    assert {upload.purpose for upload in uploads} == {"union/0", "union vote", "holders"}  # type: ignore[attr-defined]


def test_a_bound_that_no_row_can_meet_is_refused(tmp_path: Path) -> None:
    run = run_federation(small_config(min_holders=4), nations(3), tmp_path / "run")
    assert isinstance(run.server_error, UserError)
    assert "--min-holders 4: only 3 clients take part in a round" in str(run.server_error)


def test_so_few_drawn_that_the_usual_bound_cannot_be_met_are_refused(tmp_path: Path) -> None:
    """Of 8 clients 2 may be corrupt, and with 3 of them drawn no row has 4 holders."""
    run = run_federation(small_config(clients=8, client_fraction=0.375), nations(8), tmp_path / "run")
    assert isinstance(run.server_error, UserError)
    assert str(run.server_error).startswith("--min-holders 4: only 3 clients take part in a round; raise --client-fra")


@pytest.mark.parametrize(("least", "kept"), [(None, 3), (2, 2)])
def test_by_default_a_row_of_an_honest_and_a_corrupt_holder_stays_local(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], least: int | None, kept: int
) -> None:
    """Four clients, of whom one may be corrupt. The run says which bound it had, and what a lower one opens."""
    config = small_config(clients=4, rounds=2, min_holders=least)
    outcome = run_federation(config, nations(4), tmp_path / "run").done()
    summary = summarise(config, outcome, RunFolder(tmp_path / "run"))
    assert (summary.settings.min_holders, summary.corrupt_clients) == (kept, 1)
    show_results(summary, tmp_path / "run")
    said = capsys.readouterr().out
    assert f"held by fewer than {kept} clients in every round" in said
    warning = "but a row of 2 holders may open to the server together with corrupt clients"
    assert (warning in said.replace("\n", " ")) == (least == 2)


def test_nobody_else_can_compute_a_clients_first_rows(tmp_path: Path) -> None:
    """They follow from its own graph: another client, who knows the same names, starts from other rows."""
    graphs = nations(3)
    seed = private_seed(graphs[0], 0)
    assert private_seed(graphs[0], 1) != seed != private_seed(graphs[1], 0)
    other = ClientGraph(graphs[0].entities, graphs[0].relations, graphs[0].train[::-1], graphs[0].valid, graphs[0].test)
    assert private_seed(other, 0) != seed
    started: dict[int, np.ndarray[Any, Any]] = {}

    def remember(graph: ClientGraph, settings: RunConfig, number: int) -> KgeLearner:
        trainer = KgeLearner(graph, settings.training, torch.device("cpu"), settings.seed, number)
        put = trainer.load_block

        def remember_and_put(table: Any, rows: Any) -> None:
            started.setdefault(number, rows.copy())
            put(table, rows)

        trainer.load_block = remember_and_put  # type: ignore[method-assign]
        return trainer

    run_federation(small_config(rounds=1), graphs, tmp_path / "run", trainer_of=remember).done()
    common = sorted({*graphs[0].relations} & {*graphs[1].relations})
    first, second = (
        started[number][[graphs[number - 1].relations.index(name) for name in common]] for number in (1, 2)
    )
    assert abs(np.corrcoef(first.reshape(-1), second.reshape(-1))[0, 1]) < 5 / np.sqrt(first.size)
    public = KgeLearner(graphs[0], small_config().training, torch.device("cpu"), 0, 1).export_block("relation")
    assert not np.array_equal(started[1], public)  # what the run's public seed gives


def test_a_client_cannot_confirm_a_name_by_its_first_row(tmp_path: Path) -> None:
    """It computes the rows it would have started from for names of the others, and looks for them among the means."""
    graphs = nations(4, by="entities")
    training = type(small_config().training)(dim=256, negatives=14, batch_size=256, local_epochs=1, lr=1e-4)
    config = small_config(rounds=1, eval_every=1, transcript=True, training=training)
    run_federation(config, graphs, tmp_path / "run").done()
    (table, *_) = [one.message for one in seen_by_server(tmp_path / "run") if isinstance(one.message, SharedRows)]
    assert isinstance(table, SharedRows)
    means = table.rows[table.averaged > 0]

    def best_matches(names: list[str], seed: bytes) -> Any:
        guesses = first_rows(names, seed, training.dim, initial_range(training.margin, training.dim))
        norms = np.linalg.norm(guesses, axis=1)[:, None] * np.linalg.norm(means, axis=1)
        return (guesses @ means.T / norms).max(axis=1)

    held = [list(graph.relations) for graph in graphs]
    foreign = sorted({name for names in held[1:] for name in names} - set(held[0]))
    assert foreign
    assert best_matches(foreign, private_seed(graphs[0], config.seed)).max() < 0.35
    # The contrast: its own names it finds, since its own first rows are part of these means.
    assert best_matches(held[0], private_seed(graphs[0], config.seed)).max() > 0.4


def test_first_rows_follow_from_seed_and_name_alone() -> None:
    rows = first_rows(("a", "b", "ü", "\udc80"), b"1" * 32, 64, 0.5)
    np.testing.assert_array_equal(rows[1:], first_rows(("b", "ü", "\udc80"), b"1" * 32, 64, 0.5))
    assert not np.array_equal(rows, first_rows(("a", "b", "ü", "\udc80"), b"2" * 32, 64, 0.5))
    assert len(np.unique(rows)) == rows.size
    assert -0.5 <= rows.min() < -0.4
    assert 0.4 < rows.max() <= 0.5


def _with_relations(graph: ClientGraph, count: int) -> ClientGraph:
    """The same graph with more relation names than it uses."""
    more = tuple(sorted({*graph.relations, *(f"~{number}" for number in range(count))}))
    return ClientGraph(graph.entities, more, graph.train, graph.valid, graph.test)


def test_uploads_of_all_kinds_are_masked(tmp_path: Path) -> None:
    """What reaches the server in vectors is masked input and nothing else."""
    run_federation(small_config(transcript=True), nations(3), tmp_path / "run").done()
    carrying = {
        type(one.message)
        for one in seen_by_server(tmp_path / "run")
        if one.direction == "received" and vectors_in(one.message)
    }
    assert carrying == {MaskedInput}
