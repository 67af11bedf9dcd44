"""The privacy statement: complete, honest in words, the same after a file."""

import json
from typing import Any

import pytest

from secure_kg.foundation.errors import UserError
from secure_kg.privacy.statement import Delta, Statement

FIELDS: dict[str, Any] = {
    "epsilon": 4.0,
    "delta": Delta(accountant=1e-5, sampler=1e-15, tails=1e-20),
    "mechanism": "Gaussian noise on clipped gradients, in shares under masked sums",
    "accountant": "exact composition of Gaussians",
    "noise": 10.8,
    "steps": 100,
    "sampling": 1.0,
    "clip": 0.1,
    "clients": 5,
    "spare": 1,
    "tuned_on": "public validation triples",
}


def made(**changes: Any) -> Statement:
    return Statement(**FIELDS | changes)


def test_the_lines_say_everything() -> None:
    assert made(sampling=0.25).lines() == [
        "Whoever sees all that was released, and knows every other triple, guesses whether one given triple was in the "
        "training data right in at most 98.2 % of cases, where a coin is right in 50 %; by itself this bound promises "
        "little.",
        "Unit of privacy: one triple, added or removed.",
        "Epsilon 4, delta 1e-05 (accountant 1e-05, sampler 1e-15, cut tails 1e-20).",
        "Mechanism: Gaussian noise on clipped gradients, in shares under masked sums; noise 10.8 times a clip of 0.1, "
        "100 steps, Poisson samples at rate 0.25.",
        "Accountant: exact composition of Gaussians.",
        "Clients: 5, of which 1 may be corrupt or drop out.",
        "Assumed public: entity and relation sets, settings, evaluation triples.",
        "Outside epsilon: alignment, settings, which were tuned on public validation triples.",
    ]
    assert "full batches" in "\n".join(made().lines())


def test_the_sentence_promises_no_more_than_epsilon_does() -> None:
    assert made(epsilon=1.0).best_guess == pytest.approx(0.7311, abs=1e-4)
    assert "73.11 % of cases, where a coin is right in 50 %." in made(epsilon=1.0).in_words()
    assert made(epsilon=1e-9).best_guess == pytest.approx(0.5, abs=1e-5)
    assert made(epsilon=800.0).best_guess == 1.0
    assert "promises little" in made(epsilon=16.0).in_words()


def test_a_statement_is_the_same_after_a_file() -> None:
    one = made(outside=("alignment", "counts of holders"))
    assert Statement.from_json(json.loads(json.dumps(one.to_json())), "summary.json") == one


@pytest.mark.parametrize("wrong", [{"epsilon": "4"}, {"steps": 0}, {"colour": 1}, {"delta": {"accountant": 2.0}}])
def test_what_is_no_statement_is_refused_in_one_line(wrong: dict[str, Any]) -> None:
    with pytest.raises(UserError, match=r"^summary\.json: not a privacy statement") as caught:
        Statement.from_json(made().to_json() | wrong, "summary.json")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "wrong",
    [
        *({"epsilon": value} for value in (0.0, float("inf"), float("nan"))),
        *({"sampling": value} for value in (0.0, 1.5)),
        {"spare": 5},
        {"noise": 0.0},
        {"clip": -1.0},
    ],
)
def test_a_statement_of_nonsense_cannot_be_made(wrong: dict[str, Any]) -> None:
    with pytest.raises(UserError):
        made(**wrong)


def test_parts_of_delta_add_up() -> None:
    assert Delta(accountant=0.25, sampler=0.125, tails=0.125).total == 0.5
    with pytest.raises(UserError):
        Delta(accountant=0.0)
