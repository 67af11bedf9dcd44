"""Settings that cannot work are refused with the option's name."""

from typing import Any

import pytest

from secure_kg.foundation.errors import UserError
from secure_kg.learning.config import MAX_MATRIX_DIM, TrainingConfig


@pytest.mark.parametrize(
    ("field", "value", "option"),
    [
        ("model", "TransX", "--model"),
        ("dim", 0, "--dim"),
        ("negatives", 0, "--negatives"),
        ("batch_size", 0, "--batch-size"),
        ("local_epochs", -1, "--local-epochs"),
        ("margin", 0.0, "--margin"),
        ("margin", float("nan"), "--margin"),
        ("lr", -1e-3, "--lr"),
        ("lr", float("inf"), "--lr"),
        ("temperature", -1.0, "--temperature"),
        ("corrupt", "head", "--corrupt"),
        ("norm", 3, "--norm"),
        ("share_negatives", 0, "--share-negatives"),
        ("eval_megabytes", 0, "--eval-megabytes"),
        ("lr_decay", 0.0, "--lr-decay"),
        ("lr_decay", 1.01, "--lr-decay"),
        ("lr_decay", float("nan"), "--lr-decay"),
    ],
)
def test_bad_values_are_refused(field: str, value: Any, option: str) -> None:
    with pytest.raises(UserError, match=option):
        TrainingConfig(**{field: value})


def test_defaults_are_those_of_fedr() -> None:
    config = TrainingConfig()
    assert (config.dim, config.negatives, config.margin, config.temperature) == (128, 256, 10.0, 1.0)
    assert (config.lr, config.local_epochs, config.corrupt) == (1e-3, 3, "tail")


def test_rescal_relations_are_matrices_and_must_stay_small() -> None:
    assert TrainingConfig(model="RESCAL", dim=MAX_MATRIX_DIM).dim == MAX_MATRIX_DIM
    with pytest.raises(UserError, match="--dim must be at most 512 for RESCAL"):
        TrainingConfig(model="RESCAL", dim=MAX_MATRIX_DIM + 1)
