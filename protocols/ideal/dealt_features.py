"""What a server could read of a selection with the randomness that it has dealt.

The server knows every mask. It takes what stands between nonce and tag of every client's message for shares, adds them
up, removes the masks, and compares the outcome with the truth. Of sealed messages that gives noise.

It also knows in which order its seeds put the keys. It runs the selection on the true keys in that order, and compares
the number of comparisons of each step with what clients have asked randomness for. With a common order on top that it
lacks, the two are two draws of the same kind.
"""

from collections.abc import Mapping
from typing import Final

import numpy as np

from protocols.foundation.identifiers import PartyId
from protocols.ideal.opened import transcript_of
from protocols.ideal.rest_features import Features
from protocols.ideal.scores import KnownBatch, Selections
from protocols.ideal.selection_features import true_keys
from protocols.ideal.views import View
from protocols.scores.plain import in_clear
from protocols.scores.topk.dealing import Deal, Seed, look_up_shift
from protocols.scores.topk.keys import KeyLayout
from protocols.scores.topk.messages import DealtSeed, SelectionStep
from protocols.scores.topk.words import AnyWords

_NONCE_BYTES: Final = 12
_TAG_BYTES: Final = 16
_LOOK_UP, _SCALE = 1, 2


def dealt_features(view: View, batch: KnownBatch) -> Features:
    """Counts of givers and sums of scores, from the first two steps; and the comparisons of all others."""
    terms = batch.terms
    seeds: list[Seed] = []
    said: dict[int, dict[PartyId, bytes]] = {_LOOK_UP: {}, _SCALE: {}}
    for seen in view.messages():
        if isinstance(seen.message, DealtSeed):
            seeds.append(Seed(seen.message.seed, view.session, transcript_of(view), terms, seen.peer))
        if isinstance(seen.message, SelectionStep) and seen.message.step in said:
            said[seen.message.step][seen.peer] = seen.message.to_all[_NONCE_BYTES:-_TAG_BYTES]
    if not seeds:
        return {}
    size, truth = KeyLayout.of_scores(terms).table_size, in_clear(dict(batch.scores), terms)
    counts = _added(said[_LOOK_UP], np.dtype("<u1"))
    scores = _added(said[_SCALE], np.dtype("<u8"))[: terms.cells]
    for seed in seeds:
        counts = counts - look_up_shift(seed, _LOOK_UP, terms.positions, size)
        scores = scores + seed.words(_SCALE, "a", terms.cells)
    return {
        "dealt: counts as in truth": float((counts % size == truth.counts).mean()),
        "dealt: sums as in truth": float((scores.view(np.int64) == truth.sums.reshape(-1)).mean()),
    } | _in_dealt_order(view, batch, {seed.party: seed for seed in seeds})


def _in_dealt_order(view: View, batch: KnownBatch, seeds: Mapping[PartyId, Seed]) -> Features:
    """Numbers of comparisons against those of the true keys in the order that the seeds give."""
    lead, terms = min(seeds), batch.terms
    at, counts = np.arange(terms.cells), list[int]()
    for seen in view.messages():
        if not isinstance(seen.message, SelectionStep) or seen.peer != lead:
            continue
        match seen.message.deal:
            case [Deal.SHUFFLE, turn, queries, positions]:
                at = at[seeds[PartyId(turn)].permutations(seen.message.step, queries, positions)]
            case [Deal.SIGN, count]:
                counts.append(count)
    keys = true_keys(batch).reshape(-1)[at].reshape(terms.queries, terms.positions)
    steps = Selections(terms).steps(lambda query, one, other: keys[query][one] > keys[query][other])
    due = [sum(len(bits) for _, _, bits in compared.values()) for compared in steps]
    return {
        "dealt: all steps as in the dealt order": float(counts == due),
        "dealt: comparisons as in the dealt order": float(np.mean([a == b for a, b in zip(counts, due, strict=False)])),
        "dealt: comparisons beside the dealt order": float(abs(sum(counts) - sum(due))),
    }


def _added(said: dict[PartyId, bytes], dtype: "np.dtype[np.unsignedinteger]") -> AnyWords:
    total: AnyWords = np.sum([np.frombuffer(one, dtype) for one in said.values()], axis=0, dtype=dtype)
    return total
