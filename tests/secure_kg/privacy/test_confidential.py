"""Confidential statements: marks, the schedule, what may depend on C, noise on all rows, tracing."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from secure_kg.data.graph import ClientGraph
from secure_kg.data.partition import load_client
from secure_kg.foundation.errors import UserError
from secure_kg.models.transm import TransM, relation_weights
from secure_kg.privacy.accounting.accountant import Budget
from secure_kg.privacy.confidential.arms import PRIVATE_ARMS, UNIT, Arm
from secure_kg.privacy.confidential.marking import Divided, by_file, by_fraction, by_relations
from secure_kg.privacy.confidential.printed import DpkgeAsPrintedUnsound
from secure_kg.privacy.confidential.schedule import Part, batches, steps_on
from secure_kg.privacy.confidential.tracing import Traced, raw_ranks, traced
from secure_kg.privacy.confidential.training import ConfidentialTraining, Source, public_clip
from secure_kg.privacy.mechanisms.interface import Mechanism
from secure_kg.privacy.mechanisms.no_noise import NoNoise
from secure_kg.privacy.mechanisms.sgd import Sgd
from secure_kg.privacy.training_config import PrivateTrainingConfig

SMALL = PrivateTrainingConfig(dim=8, negatives=4, steps=3, corrupt="both")


@pytest.fixture(scope="module")
def nations() -> ClientGraph:
    return load_client("nations", 1, 1, "whole", 0)


def test_a_coin_depends_on_its_statement_alone(nations: ClientGraph) -> None:
    parts = by_fraction(nations, 0.3, 5)
    assert len(parts.confidential) / len(nations.train) == pytest.approx(0.3, abs=0.05)
    fewer = by_fraction(replace(nations, train=nations.train[::2]), 0.3, 5)
    everything = {tuple(one) for one in parts.confidential.tolist()}
    assert {tuple(one) for one in fewer.confidential.tolist()} == everything & {
        tuple(one) for one in nations.train[::2].tolist()
    }
    twice = by_fraction(replace(nations, train=np.repeat(nations.train, 2, axis=0)), 0.3, 5)
    assert len(twice.confidential) == 2 * len(parts.confidential)
    assert not np.array_equal(by_fraction(nations, 0.3, 6).confidential, parts.confidential)


def test_the_guess_of_the_size_of_c_follows_u(nations: ClientGraph) -> None:
    parts = by_fraction(nations, 0.8, 5)
    assert parts.expected == pytest.approx(4 * len(parts.unrestricted))
    by_name = by_relations(nations, nations.relations[:2], None)
    assert by_name.expected == len(by_name.unrestricted)
    assert by_relations(nations, nations.relations[:2], 7.0).expected == 7


def test_marks_by_relation_and_by_file(nations: ClientGraph, tmp_path: Path) -> None:
    name = nations.relations[3]
    parts = by_relations(nations, [name], None)
    assert set(parts.confidential[:, 1]) == {3}
    assert 3 not in parts.unrestricted[:, 1]
    lines = [
        "\t".join((nations.entities[head], nations.relations[relation], nations.entities[tail]))
        for head, relation, tail in parts.confidential
    ]
    file = tmp_path / "secret.tsv"
    file.write_text("\n".join(lines) + "\n")
    assert np.array_equal(by_file(nations, file, None).confidential, parts.confidential)
    file.write_text(f"{lines[0]}\n\nusa\tloves\tnobody\n")
    with pytest.raises(UserError, match="statement 2 is not among the training statements"):
        by_file(nations, file, None)
    file.write_text(f"{lines[0]}\n{lines[1]}\n{lines[0]}\n")
    with pytest.raises(UserError, match="statement 3 is marked twice"):
        by_file(nations, file, None)
    with pytest.raises(UserError, match="no relation"):
        by_relations(nations, ["loves"], None)
    with pytest.raises(UserError, match="twice"):
        by_relations(nations, [name, name], None)
    for fraction in (-0.1, 1.1, float("nan")):
        with pytest.raises(UserError, match="from 0 to 1"):
            by_fraction(nations, fraction, 0)
    for expected in (0.0, float("nan"), float("inf")):
        with pytest.raises(UserError, match="above 0"):
            by_relations(nations, [name], expected)


@pytest.mark.parametrize(("rates", "sizes"), [((0.25, 0.25), (400, 100)), ((0.5, 0.1), (20, 1000))])
def test_the_schedule_is_that_of_algorithm_1(rates: tuple[float, float], sizes: tuple[int, int]) -> None:
    """The printed rule counts statements; passes give the same choices."""
    named: dict[Part, float] = {"U": rates[0], "C": rates[1]}
    used = {"U": 0.0, "C": 0.0}
    order = list(batches(4, named, 3))
    assert (order.count("U"), order.count("C")) == tuple(round(4 / rate) for rate in rates)
    for part in order[:-1]:
        left, right = used["U"] * sizes[1], used["C"] * sizes[0]  # m_U / m_C against |U| / |C|
        if left > right + 1e-6 and used["C"] < 4 * sizes[1] - 1e-6:
            assert part == "C"
        if left < right - 1e-6 and used["U"] < 4 * sizes[0] - 1e-6:
            assert part == "U"
        used[part] += named[part] * sizes[0 if part == "U" else 1]
    assert order == list(batches(4, named, 3))


def test_one_part_alone_has_all_batches() -> None:
    assert list(batches(3, {"C": 0.5}, 0)) == ["C"] * 6
    assert steps_on("C", 3, {"C": 0.5}) == 6
    assert steps_on("C", 3, {"U": 0.5}) == 0


def test_nothing_public_depends_on_c(nations: ClientGraph) -> None:
    parts = by_fraction(nations, 0.5, 1)
    other = Divided(parts.unrestricted, parts.confidential[:10], parts.expected)
    arms = [Arm("DPKGE", nations, one, replace(SMALL, model="TransM"), 10.0) for one in (parts, other)]
    scales = [{name: part.scale for name, part in arm.parts().items()} for arm in arms]
    assert scales[0] == scales[1]
    models = [ConfidentialTraining(arm.sizes, arm.parts(), arm.config, 0).model for arm in arms]
    assert all(isinstance(model, TransM) for model in models)
    weight = torch.from_numpy(relation_weights(parts.unrestricted, len(nations.relations)))
    assert all(torch.equal(model.weight, weight) for model in models if isinstance(model, TransM))
    full = Arm("FullDP", nations, parts, arms[0].config, 10.0)
    hidden = ConfidentialTraining(full.sizes, full.parts(), full.config, 0).model
    assert isinstance(hidden, TransM)
    assert bool((hidden.weight == 1).all())


def test_u_only_never_sees_c(nations: ClientGraph) -> None:
    parts = by_fraction(nations, 0.5, 1)
    other = Divided(parts.unrestricted, parts.confidential[:10], parts.expected)
    rows = [Arm("U-only", nations, one, SMALL, 10.0).trained(0).entity for one in (parts, other)]
    assert torch.equal(*rows)
    longer = Arm("U-twice", nations, parts, SMALL, 10.0).trained(0).entity
    assert not torch.equal(longer, rows[0])


@pytest.mark.parametrize(("mechanism", "all_move"), [(Sgd(1.0), True), (DpkgeAsPrintedUnsound(1.0), False)])
def test_noise_moves_rows_that_no_statement_touches(mechanism: Mechanism, all_move: bool) -> None:
    """As printed, whoever sees the rows before and after sees who is in C."""
    parts: dict[Part, Source] = {"C": Source(np.array([[3, 1, 5]]), 0.1, True)}
    training = ConfidentialTraining((30, 4), parts, replace(SMALL, steps=1), 0)
    before = training.model.entity.detach().clone()
    after = training.run(mechanism).entity
    moved = (after != before).any(1)
    assert bool(moved[[3, 5]].all())
    assert bool(moved.all()) is all_move
    if not all_move:
        assert int(moved.sum()) <= 2 + SMALL.negatives


def test_the_printed_mechanism_has_no_account() -> None:
    with pytest.raises(UserError, match="no sound privacy guarantee"):
        DpkgeAsPrintedUnsound(1.0).releases()
    assert DpkgeAsPrintedUnsound(1.0).scaled(0.5).noise == 0.5


def test_without_noise_and_clip_dpkge_is_training_without_privacy(nations: ClientGraph) -> None:
    """The same schedule and the same gradients: what differs is noise and clip alone."""
    parts = by_fraction(nations, 0.5, 1)
    config = replace(SMALL, clip=1e6)
    dpkge, clear = (Arm(name, nations, parts, config, 10.0) for name in ("DPKGE", "NDP"))
    private = ConfidentialTraining(dpkge.sizes, dpkge.parts(), config, 0).run(NoNoise())
    assert torch.allclose(private.entity, clear.trained(0).entity, atol=1e-4)
    with pytest.raises(UserError, match="need a mechanism"):
        dpkge.trained(0)


@pytest.mark.parametrize("name", PRIVATE_ARMS)
@pytest.mark.parametrize("sampling", [1.0, 0.25])
def test_the_statement_is_within_the_budget(nations: ClientGraph, name: str, sampling: float) -> None:
    arm = Arm(name, nations, by_fraction(nations, 0.5, 1), replace(SMALL, sampling=sampling), 10.0)
    said = arm.statement(Budget(2.0, 1e-5), "nothing")
    assert 1.9 < said.epsilon <= 2.0
    assert (said.steps, said.sampling) == (round(3 / sampling), sampling)
    assert (said.unit == UNIT) is (name == "DPKGE")
    assert ("unrestricted statements" in said.public) is (name == "DPKGE")
    assert any("clip" in one for one in said.outside) is (name == "FullDP")
    assert bool(arm.trained(0, Budget(2.0, 1e-5)).entity.isfinite().all())


def test_the_clip_comes_from_u(nations: ClientGraph) -> None:
    sizes = len(nations.entities), len(nations.relations)
    low, high = (public_clip(nations.train, SMALL, sizes, 0, quantile) for quantile in (0.2, 0.8))
    assert 0 < low < high
    assert public_clip(nations.train, SMALL, sizes, 0, 1.0) > high
    # Without U, random statements: about the same, and of no private value.
    assert public_clip(nations.train[:0], SMALL, sizes, 0, 0.2) == pytest.approx(low, rel=0.3)
    with pytest.raises(UserError, match="at most 1"):
        public_clip(nations.train, SMALL, sizes, 0, 1.1)


def test_tracing_of_made_up_ranks() -> None:
    better, worse = np.arange(1.0, 21.0), np.arange(101.0, 121.0)
    assert Traced(better, worse).auc == 1
    assert Traced(worse, better).auc == 0
    assert Traced(better, better).auc == 0.5
    assert Traced(better, worse).p < 1e-6
    assert Traced(worse, better).p > 0.999
    assert Traced(worse, better).papers_p(Traced(better, better)) < 1e-6


def test_ranks_are_means_of_both_sides(nations: ClientGraph) -> None:
    model = Arm("NDP", nations, by_fraction(nations, 0.5, 1), SMALL, 10.0).trained(0)
    triples = nations.test[:5]
    with torch.no_grad():
        tails, heads = (model.scores(torch.from_numpy(triples), side) for side in ("tail", "head"))
    expected = [
        (2 + int((tails[i] > tails[i, tail]).sum()) + int((heads[i] > heads[i, head]).sum())) / 2
        for i, (head, _, tail) in enumerate(triples)
    ]
    assert raw_ranks(model, triples) == pytest.approx(np.array(expected))


def test_the_papers_test_is_passed_by_a_model_that_never_saw_c() -> None:
    """Tracing by AUC finds members without privacy and none in U-only; the paper's p calls U-only well protected."""
    umls = load_client("umls", 1, 1, "whole", 0)
    parts = by_fraction(umls, 0.5, 0)
    config = replace(SMALL, dim=32, negatives=64, steps=60)
    found = {
        name: traced(Arm(name, umls, parts, config, 270.0).trained(0), parts.confidential[:1500], umls.test)
        for name in ("NDP", "U-only")
    }
    assert found["NDP"].auc > 0.57
    assert found["U-only"].auc == pytest.approx(0.5, abs=0.05)
    assert found["U-only"].papers_p(found["NDP"]) < 1e-10
