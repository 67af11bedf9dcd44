"""Formulas: what they say, which bytes are none, and that something bounds their answers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.exact.formula import ATOM, BOTH, EITHER, NEGATED, Formula, formula_bytes
from protocols.foundation.errors import PeerMisbehaved

NOT_A = ATOM | NEGATED


@given(st.lists(st.booleans(), min_size=3, max_size=3))
def test_a_walk_says_what_the_formula_says(values: list[bool]) -> None:
    a, b, c = values
    said = {
        (ATOM, ATOM, BOTH, ATOM, EITHER): (a and b) or c,
        (ATOM, ATOM, ATOM, EITHER, BOTH): a and (b or c),
        (ATOM, NOT_A, BOTH, ATOM, BOTH): a and not b and c,
        (ATOM, ATOM, ATOM, EITHER | NEGATED, BOTH): a and not (b or c),
        (ATOM, NOT_A, BOTH, ATOM, EITHER | NEGATED, ATOM, BOTH): None,
    }
    for steps, expected in said.items():
        formula = Formula(steps)
        if expected is not None:
            assert formula.walk(values, lambda one, other: one and other, lambda one: not one) == expected
        assert len(formula.encode()) == formula_bytes(formula.atoms)
        assert Formula.read(formula.encode(), formula.atoms) == formula
        with pytest.raises(ValueError, match="sets for a formula"):
            formula.walk([*values, True, True], lambda one, other: one and other, lambda one: not one)


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        ((), "not one set"),
        ((ATOM, ATOM), "not one set"),
        ((BOTH,), "joins what is not there"),
        ((ATOM, BOTH, ATOM), "joins what is not there"),
        ((3,), "a step that is none"),
        ((ATOM, 8, BOTH), "a step that is none"),
        ((255,), "a step that is none"),
        ((NOT_A,), "nothing in it that bounds"),
        ((NOT_A, NOT_A, BOTH), "nothing in it that bounds"),
        ((ATOM, NOT_A, EITHER), "nothing in it that bounds"),
        ((ATOM, ATOM, BOTH | NEGATED), "nothing in it that bounds"),
    ],
)
def test_what_is_no_formula_is_refused(steps: tuple[int, ...], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Formula(steps)
    with pytest.raises(PeerMisbehaved, match=words):
        Formula.read(bytes(steps), 1)


def test_a_formula_of_another_number_of_atoms_is_refused() -> None:
    with pytest.raises(PeerMisbehaved, match="another number of atoms"):
        Formula.read(bytes([ATOM, ATOM, BOTH]), 3)
