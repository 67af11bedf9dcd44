"""adafest and flames in federations: every client chooses rows and adds all noise by itself, in one release a step."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from protocols.alignment.interface import Positions
from protocols.foundation.identifiers import PartyId, RoundId
from protocols.sums.pipeline import encode
from protocols.sums.terms import SumTerms
from secure_kg.data.graph import ClientGraph
from secure_kg.federation.client import private_learner as module
from secure_kg.federation.client.own_rows import OwnRows
from secure_kg.federation.client.private_learner import PrivateLearner
from secure_kg.federation.plan.run_plan import RunPlan
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.privacy.accounting.accountant import Release, epsilon_of
from secure_kg.privacy.accounting.spending import BudgetSpent
from secure_kg.privacy.mechanisms.interface import Mechanism
from secure_kg.privacy.release_record import FILE, ReleaseRecord, StepNoise, terms_of
from secure_kg.runs.run_folder import RunFolder
from tests.support.private_runs import CLIENTS, graphs, private_config, run_private, same

BOTH = "entity and relation"


class QuietNoise:
    """The same numbers whatever they are added to: neighbours can be compared byte for byte."""

    def __init__(self, *_: Any) -> None: ...

    def integers(self, sigma: float, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
        return np.arange(np.prod(shape, dtype=np.int64)).reshape(shape) % 7 - 3


def learner(config: RunConfig, folder: Path, graph: ClientGraph | None = None, most: int = 1) -> PrivateLearner:
    folder.mkdir(exist_ok=True)
    made = PrivateLearner(config, graphs()[0] if graph is None else graph, 1, torch.device("cpu"))
    made.entrust(ReleaseRecord(bytes(32), folder, most, b"terms"))
    return made


def mechanism(made: PrivateLearner) -> Mechanism:
    assert made._mechanism is not None
    return made._mechanism


def neighbour(graph: ClientGraph) -> ClientGraph:
    """Without its first triple."""
    return dataclasses.replace(graph, train=graph.train[1:])


# --- one release ---


@pytest.mark.parametrize(("dp", "draws"), [("adafest", 3), ("flames", 4)])
def test_all_draws_of_a_step_are_one_release_and_repeat(tmp_path: Path, dp: str, draws: int) -> None:
    config = private_config(dp=dp)
    first = learner(config, tmp_path)
    first.train(2)
    again = learner(config, tmp_path)
    again.train(2)
    np.testing.assert_array_equal(first.contributed_block(BOTH), again.contributed_block(BOTH))
    lines = [json.loads(line) for line in (tmp_path / FILE).read_text().splitlines()]
    assert [line["purpose"] for line in lines] == [f"own/{number}" for number in range(1, draws + 1)]
    assert len({line["tag"] for line in lines}) == draws


@pytest.mark.parametrize("dp", ["adafest", "flames"])
def test_a_repeated_round_with_another_input_or_another_choice_is_charged(tmp_path: Path, dp: str) -> None:
    config = private_config(dp=dp)
    learner(config, tmp_path).train(2)
    with pytest.raises(BudgetSpent, match="with 1 releases"):
        learner(config, tmp_path, neighbour(graphs()[0])).train(2)
    if dp == "adafest":  # the same triples, and another rule by which rows are chosen
        other = private_config(dp=dp, dp_row_threshold=3.0)
        with pytest.raises(BudgetSpent):
            learner(other, tmp_path).train(2)


def test_draws_of_one_shape_in_one_step_have_nothing_in_common(tmp_path: Path) -> None:
    source = StepNoise(ReleaseRecord(bytes(32), tmp_path, 1, b"terms"), 2, "own", b"content")
    one, two = source.integers(1000.0, (64,)), source.integers(1000.0, (64,))
    assert (one != two).mean() > 0.9


# --- what leaves a client ---


@pytest.mark.parametrize("dp", ["adafest", "flames"])
def test_rows_that_were_not_chosen_leave_as_they_were_for_both_of_two_neighbours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dp: str
) -> None:
    """A triple more changes sums of rows that are not chosen, and not a byte of what is sent of them."""
    monkeypatch.setattr(module, "StepNoise", QuietNoise)
    # Noise that is nearly nothing against thresholds for real noise: no row passes but those of the candidates.
    config = private_config(dp=dp, epsilon=0.01, **({"dp_row_threshold": 1e6} if dp == "adafest" else {}))
    plan, sent, moved = RunPlan(config, CLIENTS), [], []
    block = plan.blocks[0]
    assert (block.noise, block.public) == ("none", True)
    for number, graph in enumerate((graphs()[0], neighbour(graphs()[0]))):
        made = learner(config, tmp_path / str(number), graph)
        size = len(graph.entities) + len(graph.relations)
        own = OwnRows(Positions(size, np.arange(size), b"u"), block, made, plan.row_layout(block, size))
        own.start_public(np.linspace(-1, 1, size * block.width, dtype=np.float32).reshape(size, -1))
        before = made.export_block(BOTH)
        sample = torch.from_numpy(graph.train)
        moved.append(made._gradients.sums(sample, made._drawn(2), 0.3, "tail").entity.numpy())
        made.train(2)
        contribution = own.contribution(None)
        unchosen = np.setdiff1d(np.arange(len(graph.entities)), made._drawn(2).numpy())
        rows = contribution.real.reshape(size, -1)
        assert rows[unchosen].tobytes() == before[unchosen].astype(np.float64).tobytes()
        assert (rows[made._drawn(2).numpy()] != before[made._drawn(2).numpy()]).any()
        terms = SumTerms(RoundId(2), block.purpose, tuple(map(PartyId, range(1, CLIENTS + 1))), own.layout)
        vector = encode(terms, contribution).vector[: own.layout.real_entries].reshape(size, -1)
        sent.append(vector[unchosen].tobytes())
    assert sent[0] == sent[1]
    assert (moved[0][unchosen] != moved[1][unchosen]).any()  # the triple was in one of these rows


@pytest.mark.parametrize("dp", ["adafest", "flames"])
@pytest.mark.parametrize("sampling", [1.0, pytest.param(0.5, marks=pytest.mark.slow)])
def test_a_step_costs_what_the_budget_allows(tmp_path: Path, dp: str, sampling: float) -> None:
    config = private_config(dp=dp, rounds=11, dp_sampling=sampling)
    plan = RunPlan(config, CLIENTS).private
    assert plan is not None
    found = mechanism(learner(config, tmp_path))
    (release,) = found.releases()
    assert release.sampling == sampling
    delta = plan.statement(single_read=True).delta
    assert delta.total == pytest.approx(1e-5, rel=1e-9)
    assert delta.test == pytest.approx(1e-6 if dp == "flames" else 0.0)
    assert plan.steps * found.delta <= delta.test * (1 + 1e-12)
    spent = epsilon_of([(Release(release.noise, sampling), 10)], delta.accountant)
    assert (7.8 if sampling == 1 else 7.0) < spent <= 8.0


def test_noise_of_a_client_that_chooses_is_its_own_and_the_statement_says_so() -> None:
    plan = RunPlan(private_config(dp="flames", dp_noise="auto"), CLIENTS)
    assert plan.private is not None
    assert plan.settings.privacy is not None
    assert plan.settings.privacy.dp_noise == "full"
    assert plan.least_participants == 2
    lines = plan.private.statement(single_read=True).lines()
    assert any("tests of rows 1e-06" in line for line in lines)
    assert any("chosen by noised gaps between norms, all of it by every client" in line for line in lines)
    assert not any("the server" in line for line in lines)


# --- whole runs ---


@pytest.mark.long
@pytest.mark.parametrize(
    ("dp", "strategy"), [("adafest", "all-rows"), ("flames", "fede"), ("adafest", "fedr"), ("flames", "local")]
)
def test_twins_agree_to_the_last_bit(tmp_path: Path, dp: str, strategy: str) -> None:
    config = private_config(dp=dp, strategy=strategy, rounds=3)
    plain = run_private(config, tmp_path / "plain")
    plain.done()
    for aggregation in ("secagg", "secret")[: 1 if strategy == "local" else 2]:
        other = run_private(dataclasses.replace(config, aggregation=aggregation), tmp_path / aggregation)
        other.done()
        same(plain, other)
    lines = (RunFolder(tmp_path / "plain").client(1) / FILE).read_text().splitlines()
    first = 1 if strategy == "local" else 2
    assert {json.loads(line)["round"] for line in lines} == set(range(first, 4))
    private = RunPlan(config, CLIENTS).private
    terms = terms_of((bytes([1]) * 16).hex(), private)
    assert ReleaseRecord(bytes(32), RunFolder(tmp_path / "plain").client(1), 3, terms).releases == 4 - first
