"""The CSR of known answers against a dictionary."""

from collections import defaultdict

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from secure_kg.data.graph import Side
from secure_kg.evaluation.answers import KnownAnswers

triple = st.tuples(st.integers(0, 5), st.integers(0, 2), st.integers(0, 5))
sides = st.sampled_from(["tail", "head"])


Triples = list[tuple[int, int, int]]


@given(st.lists(triple, max_size=40), st.lists(triple, max_size=10), sides)
@settings(deadline=None)
def test_every_query_finds_its_answers_once(known: Triples, asked: Triples, side: Side) -> None:
    expected = defaultdict(set)
    for h, r, t in known:
        expected[(h, r) if side == "tail" else (t, r)].add(t if side == "tail" else h)
    index = KnownAnswers(np.array(known, dtype=np.int64).reshape(-1, 3), 3, side, torch.device("cpu"))
    rows, answers = index.look_up(torch.tensor(asked, dtype=torch.int64).reshape(-1, 3))
    found = sorted(zip(rows.tolist(), answers.tolist(), strict=True))
    queries = [(h, r) if side == "tail" else (t, r) for h, r, t in asked]
    assert found == sorted((i, answer) for i, query in enumerate(queries) for answer in expected[query])


@pytest.mark.parametrize("side", ["tail", "head"])
def test_entity_and_relation_do_not_mix_up(side: Side) -> None:
    triples = np.array([[0, 1, 4], [1, 0, 4], [4, 1, 0], [4, 0, 1]], dtype=np.int64)
    index = KnownAnswers(triples, 2, side, torch.device("cpu"))
    rows, answers = index.look_up(torch.from_numpy(triples))
    assert rows.tolist() == [0, 1, 2, 3]
    assert answers.tolist() == triples[:, 2 if side == "tail" else 0].tolist()
