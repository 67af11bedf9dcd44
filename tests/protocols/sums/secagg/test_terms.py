"""The terms of sums, to the last bit: every party, of this version and of others, must derive the same from them."""

from hashlib import sha256
from typing import Any

import numpy as np
import pytest

from protocols.alignment.psu.attempts import Attempt
from protocols.alignment.psu.names import names_terms
from protocols.alignment.psu.vote import _factor, vote_terms
from protocols.foundation.identifiers import SETUP, PartyId, RoundId, SessionId
from protocols.holders.interface import CountTask
from protocols.holders.secret import count_terms, held_vector
from protocols.primitives.group import PrimeField
from protocols.session.group_key import GroupKey
from protocols.sums.interface import SumLayout
from protocols.sums.secagg.params import SumParameters
from protocols.sums.secagg.terms import BoundTerms
from protocols.sums.secret.aggregation import mask_key, secret_terms
from protocols.sums.secret.check import with_checks
from protocols.sums.terms import Layout, SumTerms, VectorLayout
from tests.support.vectors import vectors

SESSION = SessionId(bytes(range(16)))
TRANSCRIPT = bytes(range(32, 64))
CLIENTS = tuple(PartyId(number) for number in (1, 2, 3, 5))
ME, PEER = CLIENTS[1], CLIENTS[3]
MASK_KEYS = {party: bytes([party]) * 32 for party in CLIENTS}
STATES = {party: bytes([party + 100]) * 32 for party in CLIENTS}
KEY = GroupKey(bytes(range(32)), SESSION, b"c" * 32)
LAYOUT = SumLayout(6, 3, bound=4.0, max_count=10, parties=4, ring_bits=64)
ROWS = SumTerms(RoundId(7), "rows", CLIENTS, LAYOUT, b"model", b"s" * 32, counted=b"counted")
TABLES = SumTerms(SETUP, "union/1", CLIENTS, VectorLayout(PrimeField(), 1000))
ATTEMPT = Attempt.of(1, 10, SESSION, KEY.commitment)
COUNT = CountTask(RoundId(3), CLIENTS, 8, b"union", 3)
SUMS: dict[str, tuple[SumParameters, SumTerms[Layout]]] = {
    "rows": (SumParameters(4, 3, 3, 2), ROWS),
    "sparse": (SumParameters(4, 2, 2, 2, 3), TABLES),
}


def derived(terms: BoundTerms) -> dict[str, Any]:
    return {
        "digest": terms.digest.hex(),
        "graph": [list(terms.graph.neighbours(party)) for party in CLIENTS],
        "share_context": terms.share_context(PEER, ME, MASK_KEYS, STATES[PEER]).encode().hex(),
        "pairwise_context": terms.pairwise_context(PEER, ME, MASK_KEYS).encode().hex(),
        "self_mask_context": terms.self_mask_context(ME).encode().hex(),
        "seed_commitment": terms.seed_commitment(ME, bytes(range(100, 132))).hex(),
        "peers_digest": terms.peers_digest(ME, CLIENTS[2:]).hex(),
        "advert_statement": terms.advert_statement(ME, MASK_KEYS[ME]).encode().hex(),
        "state_statement": terms.state_statement(ME, MASK_KEYS[ME], STATES[ME]).encode().hex(),
        "survivors_statement": terms.survivors_statement(ME, CLIENTS[:3]).encode().hex(),
    }


@pytest.mark.parametrize("reordered", [False, True], ids=["in order", "reordered"])
@pytest.mark.parametrize("name", SUMS)
def test_what_is_derived_from_the_terms_of_a_sum_stays_the_same(name: str, reordered: bool) -> None:
    parameters, terms = SUMS[name]
    if reordered:
        turned = tuple(reversed(terms.participants))
        given = terms.model, terms.state, terms.announced, terms.counted
        terms = SumTerms(terms.round, terms.purpose, turned, terms.layout, *given)
    bound = BoundTerms(SESSION, TRANSCRIPT, parameters, terms)
    assert derived(bound) == vectors("sum_terms")["sums"][name]
    assert bound.participants == CLIENTS


def of_vectors(terms: SumTerms[Layout]) -> dict[str, Any]:
    layout, key = terms.layout, mask_key(KEY, terms, ME).hex()
    return {"purpose": terms.purpose, "length": layout.entries, "model": terms.model.hex(), "mask_key": key}


def test_secret_sums_have_the_same_masks_and_checks() -> None:
    terms = secret_terms(ROWS)
    checked = with_checks(KEY, terms, np.arange(9, dtype=np.uint64))
    assert vectors("sum_terms")["derived"]["secret sum"] == {
        "length": terms.layout.entries,
        "group": terms.layout.group.name,
        "mask_key": mask_key(KEY, terms, ME).hex(),
        "with_checks": sha256(checked.tobytes()).hexdigest(),
    }
    assert (terms.key, terms.participants, terms.model, terms.state) == (ROWS.key, CLIENTS, b"model", b"s" * 32)
    assert terms.counted == ROWS.counted == b"counted"


def test_unions_have_the_same_terms_and_keys() -> None:
    known, tables = vectors("sum_terms")["derived"], of_vectors(ATTEMPT.terms(CLIENTS))
    tables.pop("mask_key")
    assert known["union"] == {**tables, "tag_key": ATTEMPT.tag_key(KEY).hex()}
    vote = vote_terms(CLIENTS, b"d" * 32)
    assert known["vote"] == {**of_vectors(vote), "factor": int(_factor(vote, KEY)[0])}
    assert known["names"] == of_vectors(names_terms(CLIENTS, 12, b"d" * 32))


def test_counts_have_the_same_terms_and_checks() -> None:
    own = np.arange(8, dtype=np.uint64).reshape(4, 2)
    held = held_vector(np.array([2, 5]), own, COUNT, KEY)
    known = {**of_vectors(count_terms(COUNT)), "held_vector": sha256(held.tobytes()).hexdigest()}
    assert vectors("sum_terms")["derived"]["count"] == known


def test_a_sum_is_known_by_its_round_and_purpose() -> None:
    assert ROWS.key == (RoundId(7), "rows")
