"""Settings that cannot work are refused with the option's name."""

from typing import Any

import pytest

from secure_kg.errors import UserError
from secure_kg.training.config import TrainingConfig


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
    ],
)
def test_bad_values_are_refused(field: str, value: Any, option: str) -> None:
    with pytest.raises(UserError, match=option):
        TrainingConfig(**{field: value})


def test_defaults_are_those_of_fedr() -> None:
    config = TrainingConfig()
    assert (config.dim, config.negatives, config.margin, config.temperature) == (128, 256, 10.0, 1.0)
    assert (config.lr, config.local_epochs, config.corrupt) == (1e-3, 3, "tail")
