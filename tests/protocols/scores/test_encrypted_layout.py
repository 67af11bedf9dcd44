"""The layout of encrypted scores: what is read back is what was put in, and what does not fit is refused."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocols.foundation.errors import EncodingOverflow, PeerMisbehaved
from protocols.primitives.group import Ring
from protocols.primitives.residues import Residues
from protocols.scores.encrypted.bfv import COEFFICIENT_BITS, DEGREE, PLAIN_MODULUS
from protocols.scores.encrypted.layout import EncryptedLayout
from protocols.scores.interface import encode
from protocols.scores.ranking import ScoreSums
from protocols.scores.terms import MOST_CLIENTS
from tests.support.score_batches import some_scores, terms_of

GROUPS = [Ring(32), Residues(PLAIN_MODULUS)]


@given(st.sampled_from(GROUPS), st.integers(3, 12), st.integers(1, 9), st.integers(1, 3), st.integers(0, 2**16))
@settings(deadline=None, max_examples=60)
def test_sums_are_read_back(group: Ring | Residues, clients: int, positions: int, queries: int, seed: int) -> None:
    terms = terms_of(clients, positions, queries=queries)
    layout = EncryptedLayout(terms, group)
    encoded = [encode(one, terms) for party, one in some_scores(terms, seed).items() if party in terms.scorers]
    total = group.zeros(layout.entries)
    for one in encoded:
        group.add_into(total, layout.vector(one))
    expected = ScoreSums(
        sum(one.cells.astype(np.int64) for one in encoded),  # type: ignore[arg-type]
        sum(one.held.astype(np.int64) for one in encoded),  # type: ignore[arg-type]
    )
    read = layout.read(total)
    assert np.array_equal(read.sums, expected.sums)
    assert np.array_equal(read.counts, expected.counts)


@pytest.mark.parametrize("bound", [1e-3, 16.0, 1e6])
@pytest.mark.parametrize("clients", [3, MOST_CLIENTS])
def test_the_largest_scores_fit_every_group(bound: float, clients: int) -> None:
    terms = terms_of(clients, 3, bound=bound)
    scores = some_scores(terms, share=1.0)
    for sign in (1, -1):
        for group in GROUPS:
            layout, total = EncryptedLayout(terms, group), group.zeros(4)
            for party in terms.scorers:
                full = encode(type(scores[party])(scores[party].held, np.full((1, 3), sign * bound)), terms)
                group.add_into(total, layout.vector(full))
            unit = round(terms.codec.largest_value * terms.codec.scale)
            assert (layout.read(total).sums == sign * unit * len(terms.scorers)).all()


@pytest.mark.parametrize("modulus", [40961, (1 << 20) - 3, 16777259])
def test_scores_that_a_plain_modulus_does_not_hold_are_refused(modulus: int) -> None:
    with pytest.raises(EncodingOverflow, match=f"do not fit a plain modulus of {modulus}"):
        EncryptedLayout(terms_of(5, 3), Residues(modulus))


def test_the_plain_modulus_is_the_largest_of_its_kind() -> None:
    def prime(number: int) -> bool:
        return all(number % divisor for divisor in range(2, 65536))

    assert PLAIN_MODULUS % (2 * DEGREE) == 1
    assert prime(PLAIN_MODULUS)
    assert not any(prime(number) for number in range(PLAIN_MODULUS + 2 * DEGREE, 1 << 32, 2 * DEGREE))
    # The homomorphic encryption standard, 2018, table 1: classical security of 128 bits at degree 4096.
    assert sum(COEFFICIENT_BITS) <= 109


def test_impossible_counts_are_refused() -> None:
    layout = EncryptedLayout(terms_of(3, 4), Ring(32))
    total = layout.group.zeros(layout.entries)
    total[-1] = 0x00000300
    with pytest.raises(PeerMisbehaved, match="none of these contributors"):
        layout.read(total)
