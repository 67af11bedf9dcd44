"""Sums of the plain and the masked twins on one stage."""

import pytest

from tests.support.sum_conversations import (
    EVERY_STEP,
    TWINS,
    everyone,
    layout_for,
    random_inputs,
    task_of,
)

CLIENTS = everyone(4)
ONE, TWO, THREE, FOUR = CLIENTS
LAYOUT = layout_for(4)
TASK = task_of(LAYOUT, CLIENTS)
INPUTS = random_inputs(LAYOUT, CLIENTS)
every_twin = pytest.mark.parametrize("twin", TWINS.values(), ids=TWINS)
every_step = pytest.mark.parametrize(("name", "step"), EVERY_STEP)
every_step_awaited = pytest.mark.parametrize(
    ("name", "step"), [one for one in EVERY_STEP if one[1] != "advertise keys"]
)
"""Without keys, which may come before their sum does."""
