"""Settings of graph networks: refused in one line if they make no sense."""

from typing import Any

import pytest

from secure_kg.foundation.errors import UserError
from secure_kg.models.networks.kinds import NETWORKS, network_kind
from secure_kg.models.networks.noge_config import NogeConfig


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"dim": 0}, "--dim must be at least 1"),
        ({"dim": 130}, "--dim must be a multiple of 4"),
        ({"dim": 2**17}, "--dim must be at most"),
        ({"batch_size": 0}, "--batch-size must be at least 1"),
        ({"local_epochs": 0}, "--local-epochs must be at least 1"),
        ({"eval_megabytes": 0}, "--eval-megabytes must be at least 1"),
        ({"lr": float("nan")}, "--lr must be a positive number"),
        ({"lr_decay": 1.5}, "--lr-decay must lie above 0"),
        ({"max_norm": 0.0}, "--max-norm must be a positive number"),
        ({"dropout": 1.0}, "--dropout must be at least 0 and below 1"),
        ({"label_smoothing": -0.1}, "--label-smoothing must be at least 0"),
        ({"means_loaded": "never"}, "--means-loaded must be one of every-round, for-evaluation"),
        ({"moments": "half"}, "--moments must be one of anew, kept"),
    ],
)
def test_what_makes_no_sense_is_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError, match=words) as problem:
        NogeConfig(**given)
    assert "\n" not in str(problem.value)


def test_first_rows_are_smaller_the_wider_they_are() -> None:
    assert NogeConfig(dim=128).span == pytest.approx((6 / 4224) ** 0.5)
    assert NogeConfig(dim=512).span < NogeConfig(dim=128).span


def test_a_network_is_found_by_its_name() -> None:
    assert all(network_kind(name) is kind for name, kind in NETWORKS.items())
    with pytest.raises(UserError, match="choose one of NoGE"):
        network_kind("noge")
