"""The round loop with everything real but MPI: exactness of the twins, averaging, sampling, stopping, resumption."""

import json
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from protocols.alignment import plain as plain_union
from protocols.alignment.interface import Union, list_digest
from protocols.alignment.plain import TAG_BYTES, ClearNames, ClearUnion, tag_of
from protocols.foundation import wire
from protocols.foundation.deadline import Deadline
from protocols.foundation.errors import Aborted, PeerFailed
from protocols.foundation.identifiers import NO_SESSION, SETUP, PartyId, RoundId
from protocols.session.server_session import ServerSession
from protocols.sums.plain import ClearInput
from protocols.sums.secagg.messages import MaskedInput
from protocols.transport.tap import read_transcript
from secure_kg.data.graph import ClientGraph
from secure_kg.federation.plan.messages import Hello, Welcome
from secure_kg.federation.plan.row_sum import row_layout
from secure_kg.federation.plan.sampling import participants
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.errors import TrainingDiverged, UserError
from secure_kg.learning.kge import KgeLearner
from secure_kg.models.shapes import initial_range
from secure_kg.runs.checkpoint import load_arrays
from tests.support.federation_in_threads import nations, relation_rows, run_federation, small_config

pytestmark = pytest.mark.long


_SLOW = [pytest.param(bits, marks=pytest.mark.slow) for bits in (24, 31, 48)]


@pytest.mark.parametrize("ring_bits", [16, 17, 32, 64, *_SLOW])
def test_secure_and_plain_twins_agree(tmp_path: Path, ring_bits: Any) -> None:
    graphs = nations(3)
    twin = small_config(aggregation="plain", alignment="plain", ring_bits=ring_bits)
    plain = run_federation(twin, graphs, tmp_path / "plain")
    secure = run_federation(small_config(aggregation="secagg", ring_bits=ring_bits), graphs, tmp_path / "secure")
    secret = run_federation(small_config(aggregation="secret", ring_bits=ring_bits), graphs, tmp_path / "secret")
    assert plain.done().test == secure.done().test
    assert secret.done().test is None
    for number, rows in relation_rows(plain).items():
        np.testing.assert_array_equal(rows, relation_rows(secure)[number])
        np.testing.assert_array_equal(rows, relation_rows(secret)[number])


def test_the_mean_is_that_of_the_clients_own_values_within_half_a_unit(tmp_path: Path) -> None:
    """What fixed point costs: the rows that clients trained, averaged in floats, against what they were sent."""
    trained: dict[int, np.ndarray[Any, Any]] = {}

    def remember(graph: ClientGraph, settings: RunConfig, number: int) -> KgeLearner:
        trainer = KgeLearner(graph, settings.training, torch.device("cpu"), settings.seed, number)
        train = trainer.train

        def and_remember(round: int) -> Any:
            stats = train(round)
            trained[number] = trainer.export_block("relation").astype(np.float64)
            return stats

        trainer.train = and_remember  # type: ignore[method-assign]
        return trainer

    graphs = nations(2)
    common = sorted({*graphs[0].relations} & {*graphs[1].relations})
    first, second = ([graph.relations.index(name) for name in common] for graph in graphs)
    config = small_config(rounds=2, eval_every=2)  # in the first round nobody trains
    run = run_federation(config, graphs, tmp_path / "run", trainer_of=remember)
    run.done()
    layout = row_layout(len(common), config.training.dim, config.clip, 2, config.ring_bits)
    error = np.abs(relation_rows(run)[1][first] - (trained[1][first] + trained[2][second]) / 2).max()
    assert 0 < error <= layout.codec.unit / 2 + np.abs(trained[1]).max() * 2.0**-24  # and rounding to 32-bit floats


def test_same_seed_same_result_and_another_seed_another(tmp_path: Path) -> None:
    graphs = nations(3)
    first = run_federation(small_config(), graphs, tmp_path / "a")
    second = run_federation(small_config(), graphs, tmp_path / "b")
    other = run_federation(small_config(seed=1), graphs, tmp_path / "c")
    assert first.done().test == second.done().test
    for number, rows in relation_rows(first).items():
        np.testing.assert_array_equal(rows, relation_rows(second)[number])
    assert not np.array_equal(relation_rows(first)[1], relation_rows(other)[1])


def test_a_row_becomes_the_mean_over_its_holders(tmp_path: Path) -> None:
    """After two rounds, every client evaluates with the mean of what the holders of a relation trained."""
    graphs = nations(3, by="entities")
    config = small_config(
        rounds=2, eval_every=2, aggregation="plain", alignment="plain", min_holders=1, transcript=True
    )
    run = run_federation(config, graphs, tmp_path / "run")
    run.done()
    union = sorted({name for graph in graphs for name in graph.relations})
    layout = row_layout(len(union), config.training.dim, config.clip, 3, config.ring_bits)
    uploads = [layout.decode(upload.vector) for upload in _messages(tmp_path / "run", ClearInput, "rows")]
    assert len(uploads) == 6
    uploads = uploads[3:]  # of the second round
    tables = np.stack([upload.real.reshape(len(union), -1) for upload in uploads])
    held = np.stack([upload.counts for upload in uploads])
    assert held.sum(0).min() >= 1
    means = tables.sum(0) / held.sum(0)[:, None]
    for number, graph in enumerate(graphs, start=1):
        positions = [union.index(name) for name in graph.relations]
        np.testing.assert_allclose(relation_rows(run)[number], means[positions], atol=1e-6)
        assert held[number - 1].nonzero()[0].tolist() == sorted(positions)


def test_under_secagg_the_server_gets_no_row_in_clear(tmp_path: Path) -> None:
    """Rows of |value| < 4 fill a sliver of the ring when encoded; masked ones fill all of it."""
    graphs = nations(3)
    config = small_config(rounds=1, eval_every=1, transcript=True)
    run_federation(config, graphs, tmp_path / "run").done()
    uploads = _messages(tmp_path / "run", MaskedInput, "rows")
    assert len(uploads) == 3
    for upload in uploads:
        top_bits = np.bincount(upload.vector >> 28, minlength=16) / len(upload.vector)
        assert top_bits.min() > 0.02  # uniform would be 1/16; in clear nearly all would be 0 or 15
    clear = run_federation(small_config(rounds=1, eval_every=1), graphs, tmp_path / "clear")
    assert np.abs(relation_rows(clear)[1]).max() < 4
    assert not _messages(tmp_path / "run", ClearInput, "rows")


def test_metrics_reach_the_server_only_as_sums(tmp_path: Path) -> None:
    run_federation(small_config(transcript=True), nations(3), tmp_path / "run").done()
    assert len(_messages(tmp_path / "run", MaskedInput, "valid")) == 2 * 3
    assert len(_messages(tmp_path / "run", MaskedInput, "test")) == 3


def test_federation_metrics_are_the_clients_weighted_by_triples(tmp_path: Path) -> None:
    run = run_federation(small_config(), nations(4), tmp_path / "run")
    results = [json.loads(path.read_text()) for path in tmp_path.glob("run/clients/*/result.json")]
    assert len(results) == 4
    weights = np.array([result["test_triples"] for result in results])
    mrr = np.average([result["mrr"] for result in results], weights=weights)
    assert run.done().test.tail.metrics()["mrr"] == pytest.approx(mrr, abs=1e-6)
    assert run.done().test.tail.count == weights.sum()


def test_local_shares_nothing(tmp_path: Path) -> None:
    run = run_federation(small_config(strategy="local", transcript=True), nations(3), tmp_path / "run")
    assert run.done().union_size == 0
    assert not _messages(tmp_path / "run", MaskedInput, "rows")
    rows = relation_rows(run)
    assert not np.allclose(rows[1][:5], rows[2][:5])


def test_only_drawn_clients_train(tmp_path: Path) -> None:
    config = small_config(client_fraction=0.5, max_corrupt=0.0, rounds=5, transcript=True)
    run_federation(config, nations(4), tmp_path / "run").done()
    seen: dict[int, set[int]] = {}
    for record in read_transcript(next((tmp_path / "run").glob("transcript-*.bin"))):
        if record.direction == "received" and record.phase == "masked input/rows":
            seen.setdefault(record.round, set()).add(record.peer)
    clients = [PartyId(number) for number in range(1, 5)]
    assert seen == {number: set(participants(clients, 0.5, 2, config.seed, RoundId(number))) for number in range(1, 6)}
    assert len({frozenset(drawn) for drawn in seen.values()}) > 1


def test_stops_early_and_keeps_the_best(tmp_path: Path) -> None:
    """With a learning rate of nearly zero no later evaluation can be better than the first."""
    training = small_config().training
    still = type(training)(dim=8, negatives=14, batch_size=256, local_epochs=1, lr=1e-30)
    config = small_config(rounds=50, eval_every=1, patience=3, training=still)
    outcome = run_federation(config, nations(2), tmp_path / "run").done()
    assert outcome.rounds == 1 + 3
    assert outcome.best_round == 1


@pytest.mark.parametrize("fraction", [1.0, 0.5])
@pytest.mark.parametrize("stop_after", [1, 3, 5])
def test_a_broken_run_resumes_to_the_same_result(tmp_path: Path, fraction: float, stop_after: int) -> None:
    graphs = nations(4)
    config = small_config(rounds=6, client_fraction=fraction, max_corrupt=0.0)
    unbroken = run_federation(config, graphs, tmp_path / "unbroken")

    def break_off(graph: ClientGraph, settings: RunConfig, number: int) -> KgeLearner:
        trainer = KgeLearner(graph, settings.training, torch.device("cpu"), settings.seed, number)
        train = trainer.train

        def until(round: int) -> Any:
            if round > stop_after:
                raise UserError("power cut")
            return train(round)

        trainer.train = until  # type: ignore[method-assign]
        return trainer

    broken = run_federation(config, graphs, tmp_path / "broken", trainer_of=break_off)
    assert isinstance(broken.server_error, PeerFailed)
    resumed = run_federation(config, graphs, tmp_path / "broken", resume=True)
    assert resumed.done().test == unbroken.done().test
    assert resumed.done().best_round == unbroken.done().best_round
    for number, rows in relation_rows(unbroken).items():
        np.testing.assert_array_equal(rows, relation_rows(resumed)[number])
    lines = [json.loads(line)["round"] for line in (tmp_path / "broken/metrics.jsonl").read_text().splitlines()]
    assert lines == [2, 4, 6]


def test_more_rounds_after_the_end(tmp_path: Path) -> None:
    graphs = nations(3)
    whole = run_federation(small_config(rounds=6), graphs, tmp_path / "whole")
    run_federation(small_config(rounds=4), graphs, tmp_path / "parts").done()
    longer = run_federation(small_config(rounds=6), graphs, tmp_path / "parts", resume=True)
    assert longer.done().test == whole.done().test


def test_a_client_that_diverges_ends_the_run_with_its_reason(tmp_path: Path) -> None:
    training = type(small_config().training)(model="DistMult", dim=8, negatives=14, lr=1e30)
    run = run_federation(small_config(training=training), nations(3), tmp_path / "run")
    assert isinstance(run.server_error, PeerFailed)
    assert "not finite" in str(run.server_error)
    assert any(isinstance(error, TrainingDiverged) for error in run.client_errors.values())
    assert all(isinstance(error, TrainingDiverged | Aborted) for error in run.client_errors.values())


def test_settings_that_differ_are_refused_before_training(tmp_path: Path) -> None:
    odd = {2: small_config(seed=99)}
    run = run_federation(small_config(), nations(3), tmp_path / "run", client_config=odd)
    assert "other settings" in str(run.server_error)
    assert set(run.client_errors) == {1, 2, 3}
    assert not list(tmp_path.glob("run/clients/*/result.json"))


def test_values_beyond_the_clip_are_counted(tmp_path: Path) -> None:
    run_federation(small_config(clip=0.01), nations(2), tmp_path / "run").done()
    results = [json.loads(path.read_text()) for path in tmp_path.glob("run/clients/*/result.json")]
    assert all(result["clipped_values"] > 0 for result in results)


def test_a_server_that_gives_every_client_places_of_its_own_gets_no_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a list for each client it could make every row the row of one client, and its sum that client's own."""

    def lie(session: ServerSession) -> Union:
        lists = session.conversation.gather_all(session.present, ClearNames, SETUP, Deadline.after(30))
        width = max(len(answer.names) for answer in lists.values())
        tags = np.random.default_rng(0).integers(0, 256, (len(lists) * width, TAG_BYTES)).astype(np.uint8)
        for place, (party, answer) in enumerate(sorted(lists.items())):
            own = tags.copy()
            for index, name in enumerate(answer.names):
                own[place * width + index] = np.frombuffer(tag_of(name), dtype=np.uint8)
            session.conversation.send(party, ClearUnion(own), SETUP)
        return Union(len(tags), list_digest(tags))

    monkeypatch.setattr(plain_union, "serve", lie)
    run = run_federation(small_config(alignment="plain", transcript=True), nations(3), tmp_path / "run")
    outcome = run.done()
    assert any("cannot be opened" in one.reason for one in outcome.abandoned_sums)
    assert outcome.rows_kept_local == outcome.union_size
    assert _messages(tmp_path / "run", MaskedInput, "rows") == []
    assert outcome.test is None


def test_a_union_too_large_for_one_sum_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "MAX_FRAME_BYTES", 1000)
    run = run_federation(small_config(), nations(2), tmp_path / "run")
    assert any("too many for one sum" in str(error) for error in run.client_errors.values())


def test_the_transcript_starts_with_the_greeting(tmp_path: Path) -> None:
    run_federation(small_config(transcript=True), nations(2), tmp_path / "run").done()
    records = list(read_transcript(next((tmp_path / "run").glob("transcript-*.bin"))))
    first = [type(wire.decode(record.frame, session=NO_SESSION).message) for record in records[:4]]
    assert first == [Hello, Hello, Welcome, Welcome]


def test_a_foreign_checkpoint_is_refused(tmp_path: Path) -> None:
    run_federation(small_config(), nations(3), tmp_path / "run").done()
    run = run_federation(small_config(rounds=6), nations(3, by="entities"), tmp_path / "run", resume=True)
    assert "it cannot go on; the details are with the client" in str(run.server_error)
    assert any("names have changed since the run began" in str(error) for error in run.client_errors.values())


def _messages(folder: Path, kind: type[Any], purpose: str) -> list[Any]:
    """What the server received of one kind, in the order of the clients."""
    found = []
    for record in read_transcript(next(folder.glob("transcript-*.bin"))):
        session = bytes(record.frame[8:24])
        message = wire.decode(record.frame, session=session).message  # type: ignore[arg-type]
        if record.direction == "received" and isinstance(message, kind) and message.purpose == purpose:
            found.append((record.round, record.peer, message))
    return [message for _, _, message in sorted(found, key=lambda entry: entry[:2])]


def test_a_draw_that_may_be_corrupt_but_for_one_is_refused_at_once(tmp_path: Path) -> None:
    run = run_federation(small_config(client_fraction=0.5), nations(4), tmp_path / "run")
    assert isinstance(run.server_error, UserError)
    assert "2 clients of which 1 may be corrupt" in str(run.server_error)


@pytest.mark.parametrize("aggregation", ["secagg", "secret", "plain"])
@pytest.mark.parametrize("strategy", ["fedr", "fede"])
def test_the_first_round_makes_first_rows_common_and_trains_nothing(
    strategy: str, aggregation: Any, tmp_path: Path
) -> None:
    graphs, trained = nations(3), []

    def watch(graph: ClientGraph, settings: RunConfig, number: int) -> KgeLearner:
        trainer = KgeLearner(graph, settings.training, torch.device("cpu"), settings.seed, number)
        trainer.train = trained.append  # type: ignore[method-assign, assignment]
        return trainer

    config = small_config(rounds=1, eval_every=1, strategy=strategy, aggregation=aggregation)
    run = run_federation(config, graphs, tmp_path / "run", trainer_of=watch)
    run.done()
    assert not trained
    table: Any = "relation" if strategy == "fedr" else "entity"
    names = [graph.relations if strategy == "fedr" else graph.entities for graph in graphs]
    common = sorted(set(names[0]) & set(names[1]) & set(names[2]))
    rows = [
        load_arrays(tmp_path / "run" / "clients" / str(number) / "model.safetensors")[0][table][
            [own.index(name) for name in common]
        ]
        for number, own in enumerate(names, start=1)
    ]
    np.testing.assert_array_equal(rows[0], rows[1])
    np.testing.assert_array_equal(rows[0], rows[2])
    span = initial_range(config.training.margin, config.training.dim)
    np.testing.assert_allclose(np.sqrt(np.square(rows[0]).mean(1)), span / math.sqrt(3), rtol=1e-5)
    spread = np.corrcoef(rows[0])  # different names have different rows
    assert np.abs(spread - np.eye(len(common))).max() < 0.999


def test_a_first_round_without_epochs_does_not_make_the_server_impatient(tmp_path: Path) -> None:
    """What takes no time in the first round takes long in the second, for everybody: nobody may be left out for it."""

    def slow(graph: ClientGraph, settings: RunConfig, number: int) -> KgeLearner:
        trainer = KgeLearner(graph, settings.training, torch.device("cpu"), settings.seed, number)
        train = trainer.train

        def and_sleep(round: int) -> Any:
            time.sleep(3.0)
            return train(round)

        trainer.train = and_sleep  # type: ignore[method-assign]
        return trainer

    config = small_config(rounds=2, eval_every=2, grace=0.5)
    outcome = run_federation(config, nations(3), tmp_path / "run", trainer_of=slow).done()
    assert outcome.dropouts == []
    assert outcome.abandoned_sums == []
