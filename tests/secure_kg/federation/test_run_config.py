"""Settings: checked when made, the same after a trip through TOML, strict about what they do not know."""

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secure_kg.errors import UserError
from secure_kg.federation.config import RunConfig
from secure_kg.training.config import TrainingConfig

configs = st.builds(
    RunConfig,
    dataset=st.text(min_size=1),
    by=st.sampled_from(["triples", "relations", "entities"]),
    client_data=st.none() | st.text(min_size=1),
    strategy=st.sampled_from(["fedr", "local"]),
    aggregation=st.sampled_from(["plain", "secagg"]),
    rounds=st.integers(1, 10**6),
    client_fraction=st.floats(0.001, 1),
    ring_bits=st.sampled_from([32, 64]),
    seed=st.integers(0, 2**40),
    transcript=st.booleans(),
    deadline=st.integers(1, 100) | st.floats(0.1, 1e6),
    training=st.builds(TrainingConfig, lr=st.floats(1e-9, 1), dim=st.integers(1, 999)),
)


@given(configs)
def test_toml_keeps_everything(config: RunConfig) -> None:
    assert RunConfig.from_toml(config.to_toml(), "here") == config


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("rounds = 3\nround = 4\n", "unknown setting 'round'"),
        ("rounds = '3'\n", "'rounds' has the wrong type"),
        ("rounds = true\n", "'rounds' has the wrong type"),
        ("transcript = 1\n", "'transcript' has the wrong type"),
        ("ring_bits = 48\n", "--ring-bits"),
        ("[training]\nlearning_rate = 1.0\n", "unknown setting 'learning_rate'"),
        ("training = 3\n", "must be a table"),
        ("rounds = ", "not a TOML file"),
    ],
)
def test_toml_is_read_strictly(text: str, problem: str) -> None:
    with pytest.raises(UserError, match=problem):
        RunConfig.from_toml(text, "config.toml")


@pytest.mark.parametrize(
    "change",
    [
        {"rounds": 0},
        {"eval_every": 0},
        {"patience": 0},
        {"min_participants": 1},
        {"seed": -1},
        {"checkpoint_every": -1},
        {"client_fraction": 0.0},
        {"client_fraction": 1.1},
        {"client_fraction": float("nan")},
        {"clip": 0.0},
        {"clip": float("inf")},
        {"deadline": -1.0},
        {"strategy": "fedx"},
        {"aggregation": "none"},
        {"alignment": "none"},
        {"by": "names"},
    ],
)
def test_impossible_settings_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(UserError, match="--"):
        RunConfig(**change)


def test_digest_covers_what_parties_must_agree_on_and_nothing_else() -> None:
    base = RunConfig()
    for change in ({"seed": 1}, {"clip": 8.0}, {"aggregation": "plain"}, {"rounds": 7}, {"min_participants": 3}):
        assert dataclasses.replace(base, **change).digest() != base.digest()  # type: ignore[arg-type]
    assert dataclasses.replace(base, training=TrainingConfig(lr=0.5)).digest() != base.digest()
    for change in ({"device": "cpu"}, {"client_data": "x"}, {"deadline": 1.0}, {"transcript": True}):
        assert dataclasses.replace(base, **change).digest() == base.digest()  # type: ignore[arg-type]
