"""A whole run under secret aggregation: the server adds up, and never holds anything it could read."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from protocols.alignment.psu.attempts import UnionPlaces
from protocols.foundation.identifiers import RoundId
from protocols.session.group_key import GroupKey
from protocols.sums.secagg.messages import MaskedInput
from protocols.sums.secret.aggregation import SecretSumClient, open_total, secret_terms
from protocols.sums.totals import SumTotal
from secure_kg.data.graph import ClientGraph
from secure_kg.evaluation.ranking_metrics import RankingMetrics
from secure_kg.evaluation.sums import RankingSums
from secure_kg.federation.plan.messages import Done, Finish, SharedRows
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.federation.server.server import FederationServer
from secure_kg.foundation.errors import UserError
from secure_kg.learning.config import TrainingConfig
from secure_kg.learning.kge import KgeLearner
from secure_kg.runs.federation_record import append_evaluation, write_result
from secure_kg.runs.records.client_result import Evaluation
from secure_kg.runs.run_folder import RunFolder
from secure_kg.runs.summary import summarise
from tests.support.federation_in_threads import nations, relation_rows, run_federation, small_config
from tests.support.transcripts import seen_by_server, vectors_in

pytestmark = pytest.mark.long

SPREAD = 12.0**-0.5
"""Standard deviation of the uniform distribution on 0..1."""


def as_fractions(vector: npt.NDArray[Any], field: bool) -> npt.NDArray[np.float64]:
    """Entries as parts of the group they come from."""
    return vector / (2.0**61 - 1 if field else 2.0 ** (8 * vector.itemsize))


def test_everything_the_server_holds_looks_like_uniform_noise(tmp_path: Path) -> None:
    """Every upload, and every sum it made of them: mean 1/2 and standard deviation 1/sqrt(12) of the group."""
    run_federation(small_config(aggregation="secret", transcript=True), nations(4), tmp_path / "run").done()
    held: dict[tuple[str, str], list[npt.NDArray[np.float64]]] = {}
    for one in seen_by_server(tmp_path / "run"):
        if isinstance(one.message, UnionPlaces):
            continue  # numbers below the size of the union, of which the server made every one
        for vector in vectors_in(one.message):
            assert isinstance(one.message, MaskedInput | SumTotal)
            purpose = one.message.purpose
            # The tables of the union are masked in the field; what it adds up to is the union as tags.
            field = purpose == "holders" or purpose.startswith("union")
            kind = type(one.message).__name__
            held.setdefault((kind, purpose), []).append(as_fractions(vector, field))
    assert {purpose for kind, purpose in held if kind == "SumTotal"} == {
        *("union vote", "holders", "rows", "valid", "test")
    }
    for vectors in held.values():
        values = np.concatenate(vectors)
        # Sums go to several clients: values stand several times, so fewer are independent.
        error = 5 / np.sqrt(len(values) / 4)
        assert abs(values.mean() - 0.5) < error * SPREAD
        assert abs(values.std() - SPREAD) < error * SPREAD


def test_the_same_run_under_secagg_shows_the_server_sums(tmp_path: Path) -> None:
    """The contrast that the test above needs: there the server has the means in clear."""
    run_federation(small_config(transcript=True), nations(4), tmp_path / "run").done()
    tables = [one.message for one in seen_by_server(tmp_path / "run") if isinstance(one.message, SharedRows)]
    assert any(table.rows.any() for table in tables)  # type: ignore[attr-defined]


def test_without_the_group_key_no_aggregate_follows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sums of a real run as the server holds them, opened with the clients' key and with another one."""
    opened: dict[bytes, list[Any]] = {}  # each sum once: all clients open the same, which would count as more evidence
    original = SecretSumClient.open

    def and_try_another(self: SecretSumClient, task: Any, total: SumTotal) -> Any:
        key = self._group_key()
        other = GroupKey(b"\1" * 32, key._session, key.commitment)
        if task.purpose == "rows":
            entries = task.layout.entries  # without the checks, which are no small numbers
            read = [open_total(one, secret_terms(task), total)[:entries] for one in (key, other)]
            opened[total.vector.tobytes()] = [*read, total.vector[:entries]]
        return original(self, task, total)

    monkeypatch.setattr(SecretSumClient, "open", and_try_another)
    run_federation(small_config(aggregation="secret"), nations(3), tmp_path / "run").done()
    right, wrong, held = (
        np.concatenate(sums).astype(np.int32).astype(float) for sums in zip(*opened.values(), strict=True)
    )
    error = 5 / np.sqrt(len(right))
    # Rows are small: as signed numbers the true sums fill a sliver of the ring, and the others all of it.
    assert right.std() < 0.1 * 2.0**32 * SPREAD
    for noise in (wrong, held):
        assert noise.std() == pytest.approx(2.0**32 * SPREAD, rel=error / 2)  # of uniform numbers, by 0.45 / sqrt(n)
        assert abs(np.corrcoef(right, noise)[0, 1]) < error


def test_the_server_has_no_result_and_the_clients_have(tmp_path: Path) -> None:
    secure = run_federation(small_config(), nations(3), tmp_path / "secagg")
    secret = run_federation(small_config(aggregation="secret"), nations(3), tmp_path / "secret")
    outcome, expected = secret.done(), secure.done()
    assert outcome.test is None
    assert outcome.valid_mrr is None
    assert outcome.best_round == expected.best_round
    lines = [json.loads(line) for line in (tmp_path / "secret/metrics.jsonl").read_text().splitlines()]
    assert [line["round"] for line in lines] == [2, 4]
    assert not any("valid" in line or "loss" in line for line in lines)
    assert expected.test is not None
    read = [json.loads((tmp_path / f"secret/clients/{number}/federation.json").read_text()) for number in (1, 2, 3)]
    assert read[0] == read[1] == read[2]
    assert read[0]["mrr"] == expected.test.tail.metrics()["mrr"]
    assert read[0]["valid_mrr"] == expected.valid_mrr
    folder = RunFolder(tmp_path / "secret")
    summary = summarise(small_config(aggregation="secret"), outcome, folder)
    twin = summarise(small_config(), expected, RunFolder(tmp_path / "secagg"))
    told, expected_of = summary.to_json(), twin.to_json()
    assert told.keys() == expected_of.keys()
    for figure in ("mrr", "hits@10", "both_sides", "test_triples", "test_clients", "valid_mrr", "rows_kept_local"):
        assert told[figure] == expected_of[figure]
    secagg_lines = [json.loads(line) for line in (tmp_path / "secagg/metrics.jsonl").read_text().splitlines()]
    assert [line.figures["valid"] for line in folder.all_metrics()] == [line["valid"] for line in secagg_lines]
    for path in tmp_path.glob("secret/clients/*/federation.json*"):
        path.unlink()
    elsewhere = summarise(small_config(aggregation="secret"), outcome, folder)
    assert elsewhere.to_json()["mrr"] is None
    assert elsewhere.test_clients == 3


@pytest.mark.parametrize("fraction", [1.0, 0.5])
@pytest.mark.parametrize("checkpoint_every", [2, 3])
def test_a_broken_run_resumes_to_the_same_result(tmp_path: Path, fraction: float, checkpoint_every: int) -> None:
    """No later session can read the sums of an earlier one: clients take what they lack before they save."""
    graphs = nations(4)
    config = small_config(
        aggregation="secret", rounds=6, client_fraction=fraction, max_corrupt=0.0, checkpoint_every=checkpoint_every
    )
    unbroken = run_federation(config, graphs, tmp_path / "unbroken")
    unbroken.done()

    def break_off(graph: ClientGraph, settings: RunConfig, number: int) -> KgeLearner:
        trainer = KgeLearner(graph, settings.training, torch.device("cpu"), settings.seed, number)
        train = trainer.train

        def until(round: int) -> Any:
            if round > 4:
                raise UserError("power cut")
            return train(round)

        trainer.train = until  # type: ignore[method-assign]
        return trainer

    run_federation(config, graphs, tmp_path / "broken", trainer_of=break_off)
    resumed = run_federation(config, graphs, tmp_path / "broken", resume=True)
    resumed.done()
    for number, rows in relation_rows(unbroken).items():
        np.testing.assert_array_equal(rows, relation_rows(resumed)[number])
    whole, parts = (
        json.loads((tmp_path / name / "clients/1/federation.json").read_text()) for name in ("unbroken", "broken")
    )
    assert whole == parts
    rounds = [line.round for line in RunFolder(tmp_path / "broken").all_metrics()]
    assert rounds == [2, 4, 6]


def test_stops_early_by_the_clients_word(tmp_path: Path) -> None:
    config = small_config(aggregation="secret", rounds=50, eval_every=1, patience=3, training=_still())
    outcome = run_federation(config, nations(2), tmp_path / "run").done()
    assert outcome.rounds == 1 + 3
    assert outcome.best_round == 1


def test_the_result_is_that_of_the_client_that_has_seen_most(tmp_path: Path) -> None:
    """One that was away when the best evaluation was made does not know it."""
    metrics = RankingMetrics(RankingSums(2, 1.0, 0, 1, 2), RankingSums(4, 1.0, 0, 1, 2))
    for number, evaluations, best, averaged in ((1, 3, -1.0, 7), (2, 9, 0.25, 8), (3, 9, 0.25, 8)):
        folder = tmp_path / f"clients/{number}"
        folder.mkdir(parents=True)
        write_result(folder, metrics, 3, best, averaged, evaluations)
        append_evaluation(folder, 10 * number, metrics)
    read = RunFolder(tmp_path).read_by_clients()
    assert read is not None
    assert (read.valid_mrr, read.rows_averaged) == (0.25, 8)
    for number in (1, 2, 3):
        RunFolder(tmp_path).append_metrics(Evaluation(round=10 * number))
    assert all("valid" in line.figures for line in RunFolder(tmp_path).all_metrics())


def test_results_are_given_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that asks for them again, over other clients, would get one client's by subtraction."""
    original = FederationServer._finish

    def twice(self: FederationServer, done: RoundId) -> Any:
        self._people.round = RoundId(done + 1)
        self._people.tell(self._clients, Finish(self._stopping.best_round, wanted=True))
        self._add_up_results(RoundId(done + 1), "test", self._people.present)
        self._people.gather(Done, "results")
        return original(self, RoundId(done + 1))

    monkeypatch.setattr(FederationServer, "_finish", twice)
    config = small_config(rounds=4, eval_every=1, patience=1, training=_still())
    run = run_federation(config, nations(3), tmp_path / "run")
    assert run.outcome is None
    assert any("sent Finish" in str(error) for error in run.client_errors.values())


def _still() -> TrainingConfig:
    """With a learning rate of nearly zero no later evaluation can be better than the first."""
    return TrainingConfig(dim=8, negatives=14, batch_size=256, local_epochs=1, lr=1e-30)


def test_local_results_are_secret_too(tmp_path: Path) -> None:
    config = small_config(strategy="local", aggregation="secret", transcript=True)
    run = run_federation(config, nations(3), tmp_path / "run")
    assert run.done().test is None
    totals = {one.message.purpose for one in seen_by_server(tmp_path / "run") if isinstance(one.message, SumTotal)}
    assert totals == {"valid", "test"}
