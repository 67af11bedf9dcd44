"""What the dealer adds: correlations hold over all shares, sizes are bounded before anything is drawn."""

import pickle
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from protocols.foundation.errors import PeerMisbehaved, UnexpectedMessage
from protocols.foundation.identifiers import SERVER, PartyId, RoundId, SessionId
from protocols.scores.topk.dealing import WORD_TYPES, Deal, Dealer, Seed, look_up_shift
from protocols.scores.topk.frames import most_dealt
from protocols.scores.topk.words import in_tree_order
from protocols.session.conversation import Conversation
from protocols.transport.in_process import InProcessNetwork
from tests.support.in_threads import SESSION
from tests.support.score_batches import terms_of

SETUP = bytes(range(32))
TERMS = terms_of(3, 6)
SEEDS = {party: Seed(bytes([party]) * 32, SESSION, SETUP, TERMS, party) for party in TERMS.clients}
ONE, TWO, THREE = SEEDS.values()
DEALER = Dealer(SEEDS, most_dealt(TERMS))


def test_and_of_every_width() -> None:
    for size, kind in WORD_TYPES.items():
        receiver, dealt = DEALER.deal(3, [Deal.AND, 20, size])
        lead = ONE.words(3, "and", 40, kind).reshape(2, 20)
        others = [seed.words(3, "and", 60, kind).reshape(3, 20) for seed in (TWO, THREE)]
        a, b = (lead[place] ^ others[0][place] ^ others[1][place] for place in (0, 1))
        c = np.frombuffer(dealt, dtype=kind) ^ others[0][2] ^ others[1][2]
        assert receiver == 1
        assert np.array_equal(c, a & b)


def test_products() -> None:
    dealt = np.frombuffer(DEALER.deal(4, [Deal.SCALE, 2, 5])[1], dtype="<u8")
    a, b = (sum(seed.words(4, what, size) for seed in SEEDS.values()) for what, size in (("a", 10), ("b", 5)))
    c = dealt + TWO.words(4, "c", 10) + THREE.words(4, "c", 10)
    assert np.array_equal(c.reshape(2, 5), np.asarray(a).reshape(2, 5) * b)


def test_bits_of_a_number() -> None:
    dealt = np.frombuffer(DEALER.deal(5, [Deal.SIGN, 7])[1], dtype="<u8")
    r = sum(seed.words(5, "r", 7) for seed in SEEDS.values())
    bits = dealt ^ TWO.words(5, "bits", 7) ^ THREE.words(5, "bits", 7)
    assert np.array_equal(in_tree_order(bits), r)


def test_unit_vectors() -> None:
    dealt = np.frombuffer(DEALER.deal(6, [Deal.LOOKUP, 5, 4])[1], dtype="<u8")
    unit = (dealt + TWO.words(6, "unit", 20) + THREE.words(6, "unit", 20)).reshape(4, 5)
    shift = sum(look_up_shift(seed, 6, 5, 4).astype(int) for seed in SEEDS.values()) % 4
    assert unit.tolist() == (np.arange(4)[:, None] == shift).astype(int).tolist()


def test_random_bits_as_numbers() -> None:
    dealt = np.frombuffer(DEALER.deal(7, [Deal.BIT, 9])[1], dtype="<u8")
    bits = np.bitwise_xor.reduce([seed.words(7, "bit", 9, np.uint8) & 1 for seed in SEEDS.values()])
    assert (dealt + TWO.words(7, "number", 9) + THREE.words(7, "number", 9)).tolist() == bits.tolist()


def test_permuted_masks_go_to_the_client_of_the_turn() -> None:
    receiver, dealt = DEALER.deal(8, [Deal.SHUFFLE, 2, 2, 3])
    given, kept = (ONE.words(8, what, 6) + THREE.words(8, what, 6) for what in ("a", "b"))
    order = TWO.permutations(8, 2, 3)
    assert receiver == 2
    assert np.array_equal(np.frombuffer(dealt, dtype="<u8") + kept, given[order])
    assert sorted(order[:3].tolist()) == [0, 1, 2]
    assert sorted(order[3:].tolist()) == [3, 4, 5]


@pytest.mark.parametrize("numbers", [[Deal.NOTHING], [Deal.ANSWER]], ids=["nothing", "answer"])
def test_nothing_is_dealt(numbers: list[int]) -> None:
    assert DEALER.deal(1, numbers) == (1, b"")


@pytest.mark.parametrize(
    "numbers",
    [
        [],
        [99],
        [Deal.AND],
        [Deal.NOTHING, 1],
        [Deal.ANSWER, 1],
        [Deal.AND, 5, 3],
        [Deal.AND, 5, 16],
        [Deal.AND, 0, 8],
        [Deal.LOOKUP, 5, 3],
        [Deal.LOOKUP, 5, 0],
        [Deal.LOOKUP, 1, 512],
        [Deal.SHUFFLE, 4, 1, 5],
        [Deal.SHUFFLE, 0, 1, 5],
        [Deal.SCALE, 0, 5],
        [Deal.SIGN, 2**63],
        [Deal.SIGN, 2**26],
        [Deal.SCALE, 2**40, 2**40],
        [Deal.SHUFFLE, 1, 2**62, 2**62],
        [Deal.LOOKUP, 2**62, 2**62],
        [Deal.BIT, 2**27],
        [Deal.SIGN, 2**20],
    ],
    ids=str,
)
def test_what_is_no_deal_of_this_batch_is_refused_before_anything_is_drawn(numbers: list[int]) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(PeerMisbehaved, match="no known kind"):
            DEALER.deal(1, numbers)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_every_step_batch_session_and_party_has_words_of_its_own() -> None:
    others = [
        ONE.words(2, "a", 4),
        ONE.words(1, "b", 4),
        TWO.words(1, "a", 4),
        replace(ONE, party=PartyId(2)).words(1, "a", 4),
        replace(ONE, session=SessionId(bytes(16))).words(1, "a", 4),
        replace(ONE, terms=replace(TERMS, round=RoundId(2))).words(1, "a", 4),
        replace(ONE, terms=replace(TERMS, table=b"other")).words(1, "a", 4),
    ]
    assert len({ONE.words(1, "a", 4).tobytes(), *(words.tobytes() for words in others)}) == len(others) + 1


def test_a_seed_is_neither_printed_nor_serialised() -> None:
    assert "\\x01\\x01" not in repr(ONE)
    with pytest.raises(TypeError, match="not serialised"):
        pickle.dumps(ONE)


def test_the_same_seed_in_another_session_of_the_same_number_is_other_randomness() -> None:
    """Clients make a fresh key in every set-up, so that a server cannot have the same set-up twice."""
    again = replace(ONE, setup=bytes(32))
    assert not np.array_equal(ONE.words(1, "and", 8), again.words(1, "and", 8))
    assert not np.array_equal(ONE.permutations(1, 1, 50), again.permutations(1, 1, 50))


def test_nothing_is_dealt_before_the_set_up() -> None:
    conversation = Conversation(InProcessNetwork(1).endpoint(SERVER), SESSION)
    with pytest.raises(UnexpectedMessage, match="after the set-up"):
        Seed.within(conversation, bytes(32), TERMS, PartyId(1))
