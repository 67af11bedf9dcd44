"""Numbers by which the other clients' real view of a selection might be told from a simulated one.

They are what an attacker would look at. Of everything that is opened or handed over: bytes, zeros, repetitions, and
what comes again in the next batch. Of the comparison bits: how often the first key of a pair is the larger one, and how
often a bit agrees with the true order of the keys, if the honest client had left everything in its place. Of the
answer: where it stood, and what the honest client's shares of it look like. That it is the true one is no feature:
it is the output, and the same on both sides.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from protocols.ideal.client_selection import SeenSelection
from protocols.ideal.rest_features import Features
from protocols.ideal.scores import KnownBatch, Larger, Selections
from protocols.scores.plain import in_clear
from protocols.scores.ranking import keys_of
from protocols.scores.terms import ScoreTerms
from protocols.scores.topk.keys import KeyLayout
from protocols.scores.topk.selection import Places
from protocols.scores.topk.words import AnyWords, Words

Keys = npt.NDArray[np.int64]
_SMALL: Final = 1 << 61
"""One in eight uniform words is below."""


def true_keys(batch: KnownBatch) -> Keys:
    """[queries, positions]: what is compared, computed from all scores in one place."""
    sums, layout = in_clear(dict(batch.scores), batch.terms), KeyLayout.of_scores(batch.terms)
    means = keys_of(sums, batch.terms).view(np.uint64)
    return layout.keys(means, (sums.counts > 0).astype(np.uint64), leads=True).view(np.int64)


def true_answer(batch: KnownBatch) -> Words:
    """The lowest bits of the largest keys, one query after the other: the ideal output."""
    low = (1 << KeyLayout.of_scores(batch.terms).low_bits) - 1
    best = -np.sort(-true_keys(batch), axis=1)[:, : batch.terms.top]
    return (best & low).astype(np.uint64).reshape(-1)


def features_of(seen: Sequence[SeenSelection], todo: Sequence[KnownBatch]) -> Features:
    found: Features = {}
    for number, (one, batch) in enumerate(zip(seen, todo, strict=True)):
        found |= {f"batch {number}: {name}": value for name, value in _of_batch(one, batch).items()}
    words = [np.concatenate([*one.opened["SIGN"], *one.opened["SCALE"], *one.handed]) for one in seen]
    found["words of two batches"] = float(sum(map(len, words)) - len(np.unique(np.concatenate(words))))
    return found


def _of_batch(seen: SeenSelection, batch: KnownBatch) -> Features:
    found: Features = {}
    for kind, parts in seen.opened.items():
        found |= _of_words(kind, np.concatenate([part.view(np.uint8) for part in parts]))
    for kind in ("SIGN", "SCALE"):
        found |= _of_sizes(kind, np.concatenate(seen.opened[kind]))
    found |= _of_words("handed", np.concatenate(seen.handed).view(np.uint8))
    found |= _of_bits(seen, batch)
    low = (1 << KeyLayout.of_scores(batch.terms).low_bits) - 1
    found["shares of the answer: mean"] = float(seen.low[0].mean() / low)
    found["shares of the answer: low bits"] = float((seen.low[0] & np.uint64(1)).mean())
    return found


def _of_words(name: str, data: npt.NDArray[np.uint8]) -> Features:
    counts = np.bincount(data, minlength=256)
    values = counts[counts > 0] if name == "LOOKUP" else counts
    expected = data.size / len(values)
    return {
        f"{name}: chi-square": float(((values - expected) ** 2).sum() / expected / max(1, len(values) - 1)),
        f"{name}: zero bytes": float(counts[0] / data.size),
        f"{name}: mean byte": float((counts * np.arange(256)).sum() / data.size),
        f"{name}: low bits": float(counts[1::2].sum() / data.size),
    }


def _of_sizes(name: str, words: AnyWords) -> Features:
    return {
        f"{name}: small": float((np.abs(words.view(np.int64)) < _SMALL).mean()),
        f"{name}: repeated": float(len(words) - len(np.unique(words))),
    }


def _of_bits(seen: SeenSelection, batch: KnownBatch) -> Features:
    """Of each query: its bits against the true order, with the honest client's permutation taken for none."""
    terms, keys, stands = batch.terms, true_keys(batch), _stands(seen, batch.terms)
    agreed: dict[int, list[Larger]] = {query: [] for query in range(terms.queries)}
    told: dict[int, list[Larger]] = {query: [] for query in range(terms.queries)}
    selections = Selections(terms)
    for compared in selections.steps(_Reader(seen)):
        for query, (first, second, bits) in compared.items():
            place = stands[query]
            agreed[query].append(bits == (keys[query][place[first]] > keys[query][place[second]]))
            told[query].append(bits)
    found: Features = {"steps of comparisons": float(len(seen.bits))}
    for query in range(terms.queries):
        best: Places = selections.found[query]
        found[f"query {query}: first is larger"] = float(np.concatenate(told[query]).mean())
        found[f"query {query}: as in truth"] = float(np.concatenate(agreed[query]).mean())
        found[f"query {query}: comparisons"] = float(sum(map(len, told[query])))
        found[f"query {query}: best stands"] = float(stands[query][best[0]])
        found[f"query {query}: best stand"] = float(stands[query][best].mean())
    return found


def _stands(seen: SeenSelection, terms: ScoreTerms) -> npt.NDArray[np.int64]:
    """[queries, positions]: which position is at each place, as far as the others know."""
    at = np.arange(terms.cells)
    for order in (*seen.orders, *seen.common):
        at = at[order]
    return at.reshape(terms.queries, terms.positions) % terms.positions


class _Reader:
    """The bits that were opened, in the order in which a selection asks for them."""

    def __init__(self, seen: SeenSelection) -> None:
        self._bits: Iterator[AnyWords] = iter(seen.bits)
        self._step: npt.NDArray[np.bool_] = np.zeros(0, dtype=np.bool_)
        self._last = -1

    def __call__(self, query: int, first: Places, second: Places) -> Larger:
        if query <= self._last or self._last < 0:  # queries are asked in order: a new step has begun
            self._step = np.unpackbits(next(self._bits)).astype(np.bool_)
        self._last = query
        mine, self._step = self._step[: len(first)], self._step[len(first) :]
        return mine
