"""Widths by model name, without torch."""

import subprocess
import sys

import pytest

from secure_kg.foundation.errors import UserError
from secure_kg.models.shapes import MODELS, entity_width, initial_range, relation_width

WIDTHS = {
    "TransE": (8, 8),
    "RotatE": (16, 8),
    "DistMult": (8, 8),
    "ComplEx": (16, 16),
    "TransM": (8, 8),
    "RESCAL": (8, 64),
}


@pytest.mark.parametrize("model", MODELS)
def test_widths(model: str) -> None:
    assert (entity_width(model, 8), relation_width(model, 8)) == WIDTHS[model]


def test_initial_range_has_the_epsilon_of_fede() -> None:
    assert initial_range(10.0, 128) == 12.0 / 128


@pytest.mark.parametrize("width", [entity_width, relation_width])
def test_unknown_model_names_the_choices(width: type) -> None:
    with pytest.raises(UserError, match="TransE, RotatE, DistMult, ComplEx"):
        width("transe", 8)


@pytest.mark.parametrize(
    "module",
    ["secure_kg.models.shapes", "secure_kg.evaluation.sums", "secure_kg.learning.config", "secure_kg.foundation.seeds"],
)
def test_what_a_server_imports_leaves_torch_out(module: str) -> None:
    code = f"import sys, {module}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
