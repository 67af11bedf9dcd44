"""Random batches of queries for property tests: holdings and scores of every kind that a ranking could stumble over."""

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import pytest
from hypothesis import strategies as st

from protocols.foundation.identifiers import PartyId
from protocols.registry import SCORES
from protocols.scores.interface import Scores
from protocols.scores.terms import ScoreTerms
from tests.support.score_batches import terms_of

OF_PROCESSES: Final = frozenset({"crypten"})
"""Packages that want a process for each party."""
THREADED: Final = [
    name
    for name, bundle in SCORES.items()
    if not OF_PROCESSES & {*bundle.packages} and all(map(importlib.util.find_spec, bundle.packages))
]
"""The backends whose parties may be threads and whose packages are there."""


every_backend = pytest.mark.parametrize(
    "backend", [pytest.param(name, marks=[pytest.mark.long] if SCORES[name].packages else []) for name in THREADED]
)
"""Those that draw keys of thousands of bits take seconds."""
sealed_backends = pytest.mark.parametrize(
    "backend",
    [
        pytest.param(name, marks=[pytest.mark.long] if SCORES[name].packages else [])
        for name in THREADED
        if SCORES[name].needs_keys
    ],
)


def examples(backend: str) -> int:
    """Of one property: fewer where keys of thousands of bits are drawn for each."""
    return 3 if SCORES[backend].packages else 20


@dataclass(frozen=True)
class Case:
    terms: ScoreTerms
    scores: Mapping[PartyId, Scores]


VALUES: Final = ("any", "negative", "ties", "equal", "at the bound")
HOLDINGS: Final = ("some", "all", "few", "one client holds nothing", "one client holds all", "nobody holds the first")


@st.composite
def cases(draw: st.DrawFn) -> Case:
    clients, positions = draw(st.integers(3, 6)), draw(st.sampled_from([1, 2, 3, 4, 5, 9, 33]))
    outside = draw(st.booleans())
    asker = PartyId(clients + 1 if outside else draw(st.integers(1, clients)))
    terms = terms_of(
        clients,
        positions,
        asker=asker,
        queries=draw(st.integers(1, 6)),
        top=draw(st.integers(1, positions + 3)),
        least=draw(st.integers(1, clients if outside else clients - 1)),
    )
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    values, holdings = draw(st.sampled_from(VALUES)), draw(st.sampled_from(HOLDINGS))
    return Case(terms, {party: _scores(terms, party, rng, values, holdings) for party in terms.clients})


def _scores(terms: ScoreTerms, party: PartyId, rng: np.random.Generator, values: str, holdings: str) -> Scores:
    chosen = terms.clients[-1]
    share = {"all": 1.0, "few": 0.2, "one client holds all": 0.0}.get(holdings, 0.6)
    if party == chosen:
        share = {"one client holds nothing": 0.0, "one client holds all": 1.0}.get(holdings, share)
    held = np.flatnonzero(rng.random(terms.positions) < share)
    if holdings == "nobody holds the first":
        held = held[held > 0]
    shape = (terms.queries, len(held))
    made = {
        "any": lambda: rng.normal(0, 4, shape),
        "negative": lambda: -1 - rng.random(shape),
        "ties": lambda: rng.integers(-1, 2, shape),
        "equal": lambda: np.full(shape, -2.5),
        "at the bound": lambda: rng.choice([-terms.bound, terms.bound], shape),
    }[values]()
    return Scores(held, np.clip(made, -terms.bound, terms.bound).astype(np.float32))
