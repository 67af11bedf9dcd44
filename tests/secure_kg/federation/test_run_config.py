"""Settings: checked when made, the same after a trip through TOML, strict about what they do not know."""

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.errors import UserError
from secure_kg.learning.config import TrainingConfig

configs = st.builds(
    RunConfig,
    dataset=st.text(min_size=1),
    by=st.sampled_from(["triples", "relations", "entities"]),
    client_data=st.none() | st.text(min_size=1),
    strategy=st.sampled_from(["fedr", "local"]),
    aggregation=st.sampled_from(["plain", "secagg"]),
    clients=st.none() | st.integers(2, 50),
    min_holders=st.none() | st.integers(1, 9),
    rounds=st.integers(1, 10**6),
    client_fraction=st.floats(0.001, 1),
    ring_bits=st.integers(16, 64),
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
        ("ring_bits = 15\n", "--ring-bits must lie between 16 and 64"),
        ("ring_bits = 65\n", "--ring-bits must lie between 16 and 64"),
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
        {"min_holders": 0},
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


@pytest.mark.parametrize(
    ("settings", "least"),
    [
        ({}, 2),  # before anybody has said how many clients there are
        ({"clients": 3}, 2),
        ({"clients": 4}, 3),
        ({"clients": 5}, 3),
        ({"clients": 5, "aggregation": "secret"}, 3),
        ({"clients": 5, "aggregation": "plain"}, 3),
        ({"clients": 5, "client_fraction": 0.6}, 3),
        ({"clients": 10}, 4),
        ({"clients": 10, "max_corrupt": 0.0}, 2),
        ({"clients": 10, "max_corrupt": 0.3}, 5),
        ({"clients": 5, "min_holders": 2}, 2),
        ({"clients": 5, "min_holders": 1}, 1),
        ({"clients": 5, "min_holders": 4, "aggregation": "plain"}, 4),
        ({"clients": 5, "adversary": "active", "keys": "keys"}, 3),
    ],
)
def test_a_row_needs_two_more_holders_than_clients_are_declared_corrupt(settings: dict[str, Any], least: int) -> None:
    config = RunConfig(**settings)
    assert config.least_holders == least
    again = RunConfig.from_toml(config.to_toml(), "here")
    assert (again, again.least_holders, again.digest()) == (config, least, config.digest())


def test_parties_agree_on_the_bound_whether_or_not_it_was_said_aloud() -> None:
    silent, aloud, other = (RunConfig(clients=5, min_holders=least) for least in (None, 3, 2))
    assert silent.digest() == aloud.digest() != other.digest()


def test_too_few_drawn_clients_are_told_what_to_change() -> None:
    usual, told = RunConfig(clients=5), RunConfig(clients=5, min_holders=4)
    assert usual.too_few_drawn(2) == (
        "--min-holders 3: only 2 clients take part in a round; raise --client-fraction or lower --max-corrupt, or give "
        "--min-holders"
    )
    assert told.too_few_drawn(3) == (
        "--min-holders 4: only 3 clients take part in a round; raise --client-fraction or lower --min-holders"
    )
