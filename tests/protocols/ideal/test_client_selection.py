"""What all clients but one see of a selection, real and simulated: of one form, with one answer."""

import numpy as np
import pytest

from protocols.foundation.identifiers import PartyId, RoundId
from protocols.ideal.client_selection import SeenSelection, seen_by_others, simulate_seen
from protocols.ideal.real import Parties
from protocols.ideal.scores import KnownBatch, ScoreSession
from protocols.ideal.selection_features import features_of, true_answer, true_keys
from protocols.scores.topk.keys import KeyLayout
from protocols.sums.secagg.params import ThreatModel
from tests.support.score_batches import expected, some_scores, terms_of

PARTIES = Parties.of(4, ThreatModel(0.0, 0.0))
TODO = [
    KnownBatch(terms, b"queries", some_scores(terms, 5, share=0.3))
    for terms in (terms_of(4, 16, queries=2, top=4), terms_of(4, 16, queries=2, top=4, round=RoundId(4)))
]
TOGETHER = ScoreSession.topk(PARTIES, TODO)


def form(seen: SeenSelection) -> object:
    return (
        {kind: [(part.dtype, len(part)) for part in parts] for kind, parts in seen.opened.items()},
        [len(bits) for bits in seen.bits],
        [len(words) for words in (*seen.handed, *seen.orders, *seen.common, *seen.low, *seen.answer)],
    )


def answer_of(seen: SeenSelection, batch: KnownBatch) -> list[int]:
    return (seen.answer[0] & np.uint64((1 << KeyLayout.of_scores(batch.terms).low_bits) - 1)).tolist()


@pytest.mark.parametrize("honest", [2, 3, 4])
def test_real_and_simulated_views_have_one_form_and_the_true_answer(honest: int) -> None:
    """All pairs are compared at once, so no size is left to chance."""
    for seen, batch in zip(seen_by_others(TOGETHER, PartyId(honest)), TODO, strict=True):
        simulated = simulate_seen(batch.terms, true_answer(batch), PartyId(honest))
        assert form(seen) == form(simulated)
        assert answer_of(seen, batch) == answer_of(simulated, batch) == true_answer(batch).tolist()


def test_the_true_answer_is_the_ranking_in_clear() -> None:
    for batch in TODO:
        layout, low = KeyLayout.of_scores(batch.terms), true_answer(batch).reshape(2, -1)
        ranking = expected(batch.scores, batch.terms)
        assert [layout.answer(row).tolist() for row in low] == [found.tolist() for found in ranking.positions]
        assert all(len(np.unique(row)) == batch.terms.positions for row in true_keys(batch))


def test_features_know_the_truth_but_for_the_honest_permutation() -> None:
    """Bits that a simulator makes of the true keys, unshuffled, agree with them everywhere."""
    batch = TODO[0]
    seen = simulate_seen(batch.terms, true_answer(batch), PartyId(4))
    first, second = np.triu_indices(16, 1)
    at = np.arange(32)
    for order in (*seen.orders, *seen.common):
        at = at[order]
    stands = at.reshape(2, 16) % 16
    bits = [keys[place[first]] > keys[place[second]] for keys, place in zip(true_keys(batch), stands, strict=True)]
    seen.bits[:] = [np.packbits(np.concatenate(bits))]
    found = features_of([seen], [batch])
    assert [found[f"batch 0: query {query}: as in truth"] for query in (0, 1)] == [1.0, 1.0]
    assert found["batch 0: query 0: comparisons"] == 120
    best = expected(batch.scores, batch.terms).positions
    assert [found[f"batch 0: query {query}: best stands"] for query in (0, 1)] == [float(one[0]) for one in best]
