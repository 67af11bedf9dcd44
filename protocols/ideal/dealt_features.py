"""What a server could read of a selection with the randomness that it has dealt, if steps were not sealed.

The server knows every mask. It takes what stands between nonce and tag of every client's message for shares, adds them
up, removes the masks, and compares the outcome with the truth. Of sealed messages that gives noise.
"""

from typing import Final

import numpy as np

from protocols.foundation.identifiers import PartyId
from protocols.ideal.rest_features import Features
from protocols.ideal.scores import KnownBatch
from protocols.ideal.views import View
from protocols.scores.plain import in_clear
from protocols.scores.topk.dealing import Seed, look_up_shift
from protocols.scores.topk.keys import KeyLayout
from protocols.scores.topk.messages import DealtSeed, SelectionStep
from protocols.scores.topk.words import AnyWords

_NONCE_BYTES: Final = 12
_TAG_BYTES: Final = 16
_LOOK_UP, _SCALE = 1, 2


def dealt_features(view: View, batch: KnownBatch) -> Features:
    """Of the first two steps: counts of givers, and sums of scores."""
    terms = batch.terms
    seeds: list[Seed] = []
    said: dict[int, dict[PartyId, bytes]] = {_LOOK_UP: {}, _SCALE: {}}
    for seen in view.messages():
        if isinstance(seen.message, DealtSeed):
            seeds.append(Seed(seen.message.seed, view.session, terms, seen.peer))
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
    }


def _added(said: dict[PartyId, bytes], dtype: "np.dtype[np.unsignedinteger]") -> AnyWords:
    total: AnyWords = np.sum([np.frombuffer(one, dtype) for one in said.values()], axis=0, dtype=dtype)
    return total
