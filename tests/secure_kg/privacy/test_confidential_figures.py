"""Figures of confidential statements: nothing or everything confidential, clusters, neighbouring graphs."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from secure_kg.data.graph import ClientGraph
from secure_kg.data.partition import load_client
from secure_kg.foundation.errors import UserError
from secure_kg.privacy.accounting.accountant import Budget
from secure_kg.privacy.confidential.arms import Arm
from secure_kg.privacy.confidential.clustering import Clusterings, agreement, labels
from secure_kg.privacy.confidential.figures import Judged, Work, arm_figures
from secure_kg.privacy.confidential.marking import PER_ENTITY, by_fraction
from secure_kg.privacy.confidential.neighbours import neighbour_rows
from secure_kg.privacy.training_config import PrivateTrainingConfig

SMALL = PrivateTrainingConfig(dim=8, negatives=4, steps=3, corrupt="both")
BUDGET = Budget(2.0, 1e-5)


@pytest.fixture(scope="module")
def nations() -> ClientGraph:
    return load_client("nations", 1, 1, "whole", 0)


def test_where_nothing_is_confidential_dpkge_is_training_without_privacy(nations: ClientGraph) -> None:
    parts = by_fraction(nations, 0.0, 1)
    assert len(parts.confidential) == 0
    assert not parts.protects
    clear, dpkge, full = (Arm(name, nations, parts, SMALL, 10.0) for name in ("NDP", "DPKGE", "FullDP"))
    rows = clear.trained(0).entity
    assert torch.equal(dpkge.trained(0, BUDGET).entity, rows)
    assert dpkge.noised_steps == 0
    assert full.noised_steps == 3
    assert not torch.equal(full.trained(0, BUDGET).entity, rows)
    found, _ = arm_figures(Work(nations, parts, SMALL, 10.0, [0]), [BUDGET], Judged())
    named = {row["arm"]: row for row in found}
    assert named["DPKGE"]["mrr"] == named["NDP"]["mrr"]
    assert (named["DPKGE"]["epsilon"], named["DPKGE"]["tracing_auc"]) == (None, None)
    assert named["FullDP"]["epsilon"] == 2.0


def test_where_everything_is_confidential_u_only_trains_nothing(nations: ClientGraph) -> None:
    parts = by_fraction(nations, 1.0, 1)
    fewer = by_fraction(replace(nations, train=nations.train[1:]), 1.0, 1)
    assert parts.expected == fewer.expected == PER_ENTITY * len(nations.entities)  # not by the size of C
    assert by_fraction(nations, 1.0, 1, expected=7.0).expected == 7
    u_only, dpkge = (Arm(name, nations, parts, SMALL, 10.0) for name in ("U-only", "DPKGE"))
    twice = Arm("U-twice", nations, parts, SMALL, 10.0)
    assert torch.equal(u_only.trained(0).entity, twice.trained(0).entity)
    assert list(dpkge.parts()) == ["C"]
    assert not torch.equal(dpkge.trained(0, BUDGET).entity, u_only.trained(0).entity)
    assert dpkge.statement(BUDGET, "nothing").epsilon <= 2.0


def test_the_bound_on_noise_covers_both_parts_of_fulldp(nations: ClientGraph) -> None:
    """Noise moves rows by about the same in all with one noised part and with two."""
    parts = by_fraction(nations, 0.5, 1)
    weights = {}
    for name in ("DPKGE", "FullDP"):
        weights[name] = Arm(name, nations, parts, replace(SMALL, steps=200), 1e6)._weight_under(50.0, 0)
    assert weights["DPKGE"] / weights["FullDP"] == pytest.approx(2**0.5, rel=0.02)
    half = Arm("DPKGE", nations, parts, replace(SMALL, steps=200), 1e6, most_noise=0.5)
    assert half._weight_under(50.0, 0) == pytest.approx(weights["DPKGE"] / 2)
    for wrong in ({"rate": float("nan")}, {"rate": 0.0}, {"most_noise": 0.0}):
        with pytest.raises(UserError, match="positive number"):
            replace(half, **wrong)


def test_clusters_agree_with_those_of_the_same_rows() -> None:
    draw = np.random.default_rng(0)
    rows = np.concatenate((draw.normal(0, 0.1, (20, 3)), draw.normal(5, 0.1, (20, 3)))).astype(np.float32)
    noise = {seed: draw.normal(0, 1, (40, 3)).astype(np.float32) for seed in (0, 1, 2)}
    assert agreement(labels(rows, 2), 1 - labels(rows, 2)) == pytest.approx(1.0)
    found = Clusterings([2])
    found.add("NDP", None, {seed: rows + 0.01 * noise[seed] for seed in noise})
    found.add("DPKGE", 1.0, noise)
    clear, private = found.rows()
    assert (clear["nmi"], clear["pairs"], clear["same_seed_nmi"]) == (pytest.approx(1.0), 3, None)
    assert (private["pairs"], private["epsilon"]) == (6, 1.0)
    assert private["nmi"] < 0.3
    with pytest.raises(UserError, match="clusters"):
        labels(rows, 41)


def test_ranks_with_and_without_a_statement(nations: ClientGraph) -> None:
    parts = by_fraction(nations, 0.5, 1)
    config = replace(SMALL, steps=20)
    clear = neighbour_rows(Arm("NDP", nations, parts, config, 100.0), None, 4, 0)
    assert len(clear["ranks"]) == 4
    assert clear["moved_by_noise"] == 0  # the same training twice
    assert any(line["with"] != line["without"] for line in clear["ranks"])
    private = neighbour_rows(Arm("DPKGE", nations, parts, config, 10.0), Budget(0.1, 1e-5), 2, 0)
    assert private["epsilon"] == 0.1
    assert any(line["again"] != line["with"] for line in private["ranks"])
    with pytest.raises(UserError, match="neighbouring graphs"):
        neighbour_rows(Arm("NDP", nations, parts, config, 10.0), None, 10**6, 0)


def test_settings_are_chosen_without_a_look_at_test_statements(nations: ClientGraph) -> None:
    model = Arm("NDP", nations, by_fraction(nations, 0.5, 1), SMALL, 10.0).trained(0)
    blind = replace(nations, test=nations.test[:0])
    judged = (Judged(part="valid"), nations), (Judged(part="valid"), blind), (Judged(part="test"), nations)
    ranks = [one.ranking(graph).rank(model, nations.valid, "both").metrics()["mrr"] for one, graph in judged]
    assert ranks[0] == ranks[1]
    assert ranks[0] < ranks[2]  # whoever knows more true answers leaves them out of ranks
