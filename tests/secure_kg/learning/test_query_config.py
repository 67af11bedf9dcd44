"""Settings of training on queries: refused in one line if they make no sense."""

from typing import Any

import pytest

from secure_kg.foundation.errors import UserError
from secure_kg.learning.query_config import QueryConfig
from secure_kg.models.queries.shapes import operator_width


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"encoder": "box"}, "--encoder must be one of gqe, q2p, tree-lstm"),
        ({"score": "l1"}, "--score must be one of"),
        ({"answers": "degree"}, "--answers must be one of edges, entities"),
        ({"encoder": "tree-lstm", "published": True}, "no other tree-LSTM"),
        ({"train_types": "1p,1p"}, "different types"),
        ({"train_types": ""}, "different types"),
        ({"test_types": "4i"}, "--test-types must be some of"),
        ({"test_types": "1p,2in"}, "no definition of a negation"),
        ({"step": 0.0}, "--step"),
        ({"lr": float("nan")}, "--lr"),
        ({"lr_decay": 1.5}, "--lr-decay"),
        ({"weight_decay": -1.0}, "--weight-decay"),
        ({"dim": 0}, "--dim must be at least 1"),
        ({"particles": 65}, "--particles must be at most 64"),
    ],
)
def test_what_makes_no_sense_is_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError, match=words) as problem:
        QueryConfig(**given)
    assert "\n" not in str(problem.value)


def test_query2particles_takes_negations() -> None:
    config = QueryConfig(encoder="q2p", train_types="1p, 2in", test_types="pni")
    assert config.trained == ("1p", "2in")
    assert config.operators == operator_width("q2p", config.shape)
