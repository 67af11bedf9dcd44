"""The tournament on numbers in clear: one rank, whose shares are the numbers. Real groups are in `test_batches`."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from protocols.scores.crypten.position_keys import PositionKeys
from protocols.scores.crypten.selection import Selection, Share, comparisons
from tests.support.score_batches import terms_of


class InClear(Selection):
    """Counts what it compares."""

    compared = steps = 0

    def _positive(self, numbers: Share) -> Share:
        self.compared += numbers.numel()
        self.steps += 1
        return (numbers > 0).long()

    def _product(self, one: Share, other: Share) -> Share:
        return one * other


@given(st.integers(1, 70), st.integers(1, 80), st.integers(1, 3), st.integers(0, 2**32))
def test_the_best_come_first(positions: int, top: int, queries: int, seed: int) -> None:
    keys = PositionKeys(terms_of(3, positions, top=top, queries=queries))
    rng = np.random.default_rng(seed)
    values = np.stack([rng.permutation(positions) for _ in range(queries)]) - positions // 2
    selection = InClear(keys, 0, 1)
    best = selection.best(torch.from_numpy(values)).numpy()
    assert np.array_equal(best, np.sort(values)[:, ::-1][:, : keys.answers])
    compared, steps = comparisons(positions, keys.answers)
    assert (selection.compared, selection.steps) == (queries * compared, steps)


@given(st.integers(3, 6), st.lists(st.integers(0, 63), min_size=1, max_size=6))
def test_weights_are_the_common_multiple_over_the_count(clients: int, held: list[int]) -> None:
    """With values for shares there is one rank only: it takes the bits of the others in turn."""
    terms = terms_of(clients, len(held))
    bits = [torch.tensor([(word >> rank) & 1 for word in held]) for rank in range(clients)]

    class OfAllRanks(InClear):
        """Takes the next rank's bits where a rank would take its own."""

        def _product(self, one: Share, other: Share) -> Share:
            self.next += 1
            return bits[self.next].expand_as(other) * other

        next = 0

    weights, nobody = OfAllRanks(PositionKeys(terms), 0, clients)._weights(bits[0])
    counts = torch.stack(bits).sum(dim=0).tolist()
    assert nobody.tolist() == [int(count == 0) for count in counts]
    assert weights.tolist() == [terms.common_multiple // count if count else 0 for count in counts]
