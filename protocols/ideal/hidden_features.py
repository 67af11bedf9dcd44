"""Numbers by which real views of hidden queries might be told from simulated ones.

They are what an attacker would look at who has chosen tables and queries, and knows them. Of everything that is masked:
bytes, repetitions, and what is left of it without the true values, within a batch and from one batch to the next. Of
the server's view, what it could compute with the masks that it has dealt, if tables and queries were not sealed.
"""

from collections.abc import Sequence
from itertools import combinations
from typing import Final

import numpy as np

from protocols.foundation.identifiers import PartyId
from protocols.ideal.hidden_queries import HiddenSession, SeenHidden
from protocols.ideal.opened import transcript_of
from protocols.ideal.rest_features import Features
from protocols.ideal.views import View
from protocols.primitives.prg import KEY_BYTES
from protocols.scores.messages import AskScores
from protocols.scores.topk import hidden
from protocols.scores.topk.dealing import Seed
from protocols.scores.topk.hidden import PURPOSE, HiddenBatch, PaddedTable
from protocols.scores.topk.messages import DealtSeed, MaskedTable
from protocols.scores.topk.words import Words

_NONCE_BYTES: Final = 12
_TAG_BYTES: Final = 16
_BEFORE_QUERIES: Final = 32 + 2 * KEY_BYTES
"""Bytes of an asking before the queries: a digest and two secrets."""
_SMALL: Final = 1 << 60
"""One in eight uniform words is as near to zero."""


def true_factors(session: HiddenSession) -> list[Words]:
    """[branches, dimensions] of each batch: what rows are multiplied with."""
    return [hidden.factors(batch.shape.queries(one, batch.bits), batch.shape) for batch, one in session.todo]


def true_tables(session: HiddenSession) -> dict[PartyId, Words]:
    """[positions, dimensions] of each scorer, in fixed point."""
    first = session.first
    return {scorer: PaddedTable.of(session.tables[scorer], first).words for scorer in first.terms.scorers}


def scorer_features(seen: SeenHidden, session: HiddenSession) -> Features:
    """Of what scorers see together."""
    truth, found = true_factors(session), Features()
    for number, (opened, true) in enumerate(zip(seen.opened, truth, strict=True)):
        found |= _of_words(f"batch {number}, queries", opened)
        found |= _of_rest(f"batch {number}, queries", opened - true)
    for (at, one), (to, other) in combinations(enumerate(seen.opened), 2):
        if one.shape == other.shape:
            found |= _of_rest(f"queries of batches {at} and {to}", (other - one) - (truth[to] - truth[at]))
    tables = true_tables(session)
    for number, (batch, _) in enumerate(session.todo):
        dealt = [seen.products[scorer][number] for scorer in batch.terms.scorers]
        found |= _of_words(f"batch {number}, products", np.stack(dealt))
        scored = np.stack([truth[number] @ tables[scorer].T for scorer in batch.terms.scorers])
        found |= _of_rest(f"batch {number}, products", np.stack(dealt) - scored)
        found |= _of_rest(f"batch {number}, two products", dealt[1] - dealt[0])
    for at, to in combinations(range(len(session.todo)), 2):
        for scorer, products in seen.products.items():
            if products[at].shape == products[to].shape:
                found |= _of_rest(f"products of {scorer} in batches {at} and {to}", products[to] - products[at])
    return found


def asker_features(seen: SeenHidden, session: HiddenSession) -> Features:
    """Of what the asker sees of the tables."""
    truth, found = true_tables(session), Features()
    for scorer, table in seen.tables.items():
        found |= _of_words(f"table of {scorer}", table)
        found |= _of_rest(f"table of {scorer}", table - truth[scorer])
        found |= _of_rest(f"rows of {scorer}", np.diff(table, axis=0) - np.diff(truth[scorer], axis=0))
        found[f"table of {scorer}: repeated rows"] = float(len(table) - len(np.unique(table, axis=0)))
    for one, other in combinations(sorted(seen.tables), 2):
        left = (seen.tables[other] - seen.tables[one]) - (truth[other] - truth[one])
        found |= _of_rest(f"tables of {one} and {other}", left)
    return found


def server_features(view: View, session: HiddenSession) -> Features:
    """Of what stands between nonce and tag, less the masks that the server has dealt."""
    first, messages = session.first, list(view.messages())
    seeds = {
        seen.peer: Seed(seen.message.seed, view.session, transcript_of(view), first.terms, seen.peer)
        for seen in messages
        if isinstance(seen.message, DealtSeed) and seen.message.purpose == PURPOSE
    }
    found, tables, factors = Features(), true_tables(session), true_factors(session)
    for seen in messages:
        if isinstance(seen.message, MaskedTable) and seen.direction == "received":
            masked = _unsealed(seen.message.sealed, 0, (first.terms.positions, first.shape.dimensions))
            mask = hidden.table_mask(seeds[seen.peer], 0, first.terms.positions, first)
            found |= _of_rest(f"dealt: table of {seen.peer}", masked - mask - tables[seen.peer])
    asked = [seen.message for seen in messages if isinstance(seen.message, AskScores)]
    for number, (batch, message) in enumerate(zip(_batches(session), asked, strict=True)):
        mask = hidden.query_mask(seeds[first.terms.asker], batch)
        for scorer, sealed in message.sealed.items():
            opened = _unsealed(sealed, _BEFORE_QUERIES, mask.shape)
            found |= _of_rest(f"dealt: queries {number} to {scorer}", opened - mask - factors[number])
    return found


def _batches(session: HiddenSession) -> Sequence[HiddenBatch]:
    return [batch for batch, _ in session.todo]


def _unsealed(sealed: bytes, skipped: int, shape: tuple[int, ...]) -> Words:
    plain = sealed[_NONCE_BYTES + skipped : -_TAG_BYTES]
    return np.frombuffer(plain, dtype="<u8").reshape(shape)


def _of_words(name: str, words: Words) -> Features:
    data = np.frombuffer(words.tobytes(), dtype=np.uint8)
    counts, expected = np.bincount(data, minlength=256), data.size / 256
    return {
        f"{name}: chi-square": float(((counts - expected) ** 2).sum() / expected / 255),
        f"{name}: zero bytes": float(counts[0] / data.size),
        f"{name}: mean byte": float((counts * np.arange(256)).sum() / data.size),
        f"{name}: repeated": float(words.size - len(np.unique(words))),
    }


def _of_rest(name: str, rest: Words) -> Features:
    """Of what is left without the true values."""
    signed = rest.reshape(-1).view(np.int64)
    return {
        f"{name}: zeros left": float((signed == 0).mean()),
        f"{name}: small ones left": float((np.abs(signed) < _SMALL).mean()),
        f"{name}: low bits left": float((signed & 1).mean()),
        f"{name}: sign left": float((signed < 0).mean()),
    }
