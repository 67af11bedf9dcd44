"""Bytes of score batches counted in closed form are those that travel, to the byte."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from protocols.costs import score_bytes, selection_bytes
from protocols.costs.score_bytes import ScoreBatch, Sizes
from protocols.foundation import wire
from protocols.foundation.identifiers import SERVER, PartyId, RoundId, SessionId
from protocols.primitives.aead import OVERHEAD_BYTES
from protocols.scores.batches import ATTEMPTS
from protocols.scores.crypten import messages as crypten
from protocols.scores.encrypted.messages import AskerKey, EncryptedScores, EncryptedTotal
from protocols.scores.terms import ScoreTerms
from protocols.scores.topk import messages as topk
from protocols.scores.topk.dealing import Deal
from protocols.scores.topk.hidden import PURPOSE as HIDDEN
from protocols.session.conversation import Conversation
from protocols.sums.secagg.params import ThreatModel
from protocols.transport.base import Transport
from tests.support.encrypted_scores import BACKENDS, small_paillier
from tests.support.group_keys import Kind
from tests.support.in_threads import SESSION
from tests.support.score_batches import run_batches, some_scores, terms_of
from tests.support.sum_conversations import credentials

QUERY_BYTES = len(b"queries")
MODELS = {
    "semi-honest": Kind(ThreatModel(0.2, 0.0, server_apart=True), lambda me: None),
    "signed": Kind(ThreatModel(0.2, 0.0, "active"), credentials),
}
"""Under these everybody is everybody's neighbour, as the counts take it."""
KINDS = pytest.mark.parametrize("kind", MODELS)
SHAPES = [
    {"clients": 3, "positions": 1},
    {"clients": 4, "positions": 12, "queries": 2, "least": 2},
    {"clients": 6, "positions": 70, "queries": 1, "least": 3, "asker": PartyId(4)},
    {"clients": 3, "positions": 33, "queries": 3, "asker": PartyId(4)},
]
"""The last one has an asker outside."""


@dataclass
class Ends:
    """The parties' ends of one session, and what passed the server's."""

    of: dict[PartyId, Transport] = field(default_factory=dict)
    passed: list[tuple[str, PartyId, wire.Message]] = field(default_factory=list)

    def take(self, conversation: Conversation) -> Conversation:
        self.of[conversation.transport.party] = conversation.transport
        if conversation.transport.party == SERVER:
            conversation.transport.attach(self)
        return conversation

    def write(self, direction: str, peer: PartyId, round_id: RoundId, phase: str, frame: wire.Frame) -> None:
        self.passed.append((direction, peer, wire.decode(frame, session=SESSION).message))

    def close(self) -> None:
        """Nothing to release."""

    def up(self, party: PartyId) -> dict[str, int]:
        return _by_phase(self.of[party], SERVER)

    def down(self, party: PartyId) -> dict[str, int]:
        """Without the steps of masked sums and of the count of holders."""
        steps = ("advertise keys/", "share keys/", "masked input/", "consistency check/", "unmasking/", "holders")
        return {phase: size for phase, size in _by_phase(self.of[SERVER], party).items() if not phase.startswith(steps)}


def _by_phase(transport: Transport, to: PartyId) -> dict[str, int]:
    counts: dict[str, int] = defaultdict(int)
    for key, count in transport.traffic.counts.items():
        if key.direction == "sent" and key.round > 0 and key.peer == to:
            counts[key.phase] += count.bytes
    return counts


def carried(backend: str, terms: ScoreTerms, kind: str) -> Ends:
    ends = Ends()
    wrap = dict.fromkeys((SERVER, *terms.clients, terms.asker), ends.take)
    run_batches(backend, [(terms, some_scores(terms))], MODELS[kind], wrap=wrap)
    return ends


def of_shape(shape: dict[str, Any]) -> ScoreTerms:
    return terms_of(shape["clients"], shape["positions"], **{k: v for k, v in shape.items() if k not in _GIVEN})


_GIVEN = ("clients", "positions")


def parties_of(terms: ScoreTerms) -> list[PartyId]:
    return sorted({*terms.clients, terms.asker})


@KINDS
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("backend", ["plain", "masked"])
def test_added_scores(backend: str, shape: dict[str, Any], kind: str) -> None:
    terms = of_shape(shape)
    batch, ends = ScoreBatch(terms, QUERY_BYTES, kind == "signed"), carried(backend, terms, kind)
    up, down = (getattr(score_bytes, f"{backend}_{way}") for way in ("up", "down"))
    for party in parties_of(terms):
        assert ends.up(party) == up(batch, party)
        assert ends.down(party) == down(batch, party)


def test_a_later_batch_of_the_same_table_says_over_whom_the_first_was_opened() -> None:
    terms, ends = of_shape(SHAPES[1]), Ends()
    later = replace(terms, round=RoundId(terms.round + ATTEMPTS))
    wrap = dict.fromkeys((SERVER, *terms.clients, terms.asker), ends.take)
    run_batches("masked", [(one, some_scores(one)) for one in (terms, later)], MODELS["semi-honest"], wrap=wrap)
    for party in parties_of(terms):
        both = [score_bytes.masked_up(ScoreBatch(terms, QUERY_BYTES, announced=told), party) for told in (False, True)]
        assert ends.up(party) == {step: both[0][step] + both[1][step] for step in both[0]}


@pytest.fixture(scope="module", autouse=True)
def _short_keys() -> Iterator[None]:
    with small_paillier():
        yield


@pytest.mark.parametrize("shape", [SHAPES[1], SHAPES[3]], ids=str)
@pytest.mark.parametrize("backend", BACKENDS)
def test_encrypted_scores(backend: str, shape: dict[str, Any]) -> None:
    pytest.importorskip("tenseal" if backend == "bfv" else "phe")
    terms = of_shape(shape)
    batch, ends = ScoreBatch(terms, QUERY_BYTES), carried(backend, terms, "semi-honest")
    (key,) = {len(one.key) for _, _, one in ends.passed if isinstance(one, AskerKey)}
    (total,) = [list(map(len, one.ciphertexts)) for _, _, one in ends.passed if isinstance(one, EncryptedTotal)]
    scores = {peer: list(map(len, one.ciphertexts)) for _, peer, one in ends.passed if isinstance(one, EncryptedScores)}
    for party in parties_of(terms):
        sizes = Sizes(key, scores.get(party, []), total)
        assert ends.up(party) == score_bytes.encrypted_up(batch, party, sizes)
        assert ends.down(party) == score_bytes.encrypted_down(batch, party, sizes)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_selection_that_compares_all_at_once(shape: dict[str, Any]) -> None:
    terms = of_shape(shape)
    assert_selected(terms, selection_bytes.compared_at_once(terms) if terms.positions <= 64 else None)


def test_a_selection_over_many_positions() -> None:
    terms = terms_of(3, 400, queries=2)
    with pytest.raises(ValueError, match="depends on how they were shuffled"):
        selection_bytes.compared_at_once(terms)
    assert_selected(terms, None)


def assert_selected(terms: ScoreTerms, compared: list[int] | None) -> None:
    """`compared`: None if it is to be read from what clients asked for."""
    batch, ends = ScoreBatch(terms, QUERY_BYTES), carried("topk", terms, "semi-honest")
    said = [one for _, peer, one in ends.passed if isinstance(one, topk.SelectionStep) and peer == terms.clients[0]]
    signs = [one.deal[1] for one in said if one.deal[0] == Deal.SIGN]
    assert compared is None or compared == signs
    steps = list(selection_bytes.steps(terms, signs))
    assert [list(step.deal) for step in steps] == [one.deal for one in said]
    for party in parties_of(terms):
        assert ends.up(party) == selection_bytes.selection_up(batch, party, signs)
        assert ends.down(party) == selection_bytes.selection_down(batch, party, signs)


def framed(message: wire.Message) -> int:
    return len(wire.encode(message, SessionId(bytes(16)), RoundId(1)))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_messages_around_a_group_of_processes(shape: dict[str, Any]) -> None:
    terms, host, port = of_shape(shape), "10.0.0.1", 40123
    words, everyone = bytes(crypten.sealed_words_bytes(terms)), [int(party) for party in terms.clients]
    ring = bytes(crypten.RING_KEY_BYTES)
    joining = crypten.JoinGroup("scores", bytes(32), {one: ring for one in everyone if one != 2}, host, port)
    others = {one: ring for one in everyone if one != 2}
    formed = crypten.GroupFormed("scores", everyone, bytes(32), others, host, port)
    answer = crypten.GroupAnswer("scores", everyone, {int(party): words for party in terms.scorers})
    assert framed(joining) == score_bytes.join_group(terms, PartyId(2), host, port)
    assert framed(formed) == score_bytes.group_formed(terms, PartyId(2), host, port)
    assert framed(crypten.AnswerShares("scores", words)) == score_bytes.answer_shares(terms)
    assert framed(answer) == score_bytes.group_answer(terms)


@pytest.mark.parametrize("positions", [1, 7, 300, 9000])
def test_messages_of_hidden_queries(positions: int) -> None:
    terms = terms_of(3, positions)
    table = topk.MaskedTable(HIDDEN, 2, bytes(8 * positions * 5 + OVERHEAD_BYTES))
    assert framed(table) == selection_bytes.masked_table(terms, 5, PartyId(2))
    product = topk.DealtProduct("scores", bytes(8 * 3 * positions))
    assert framed(product) == selection_bytes.dealt_product(terms, 3)
    assert framed(topk.DealtSeed(HIDDEN, bytes(32))) == selection_bytes.dealt_seed(HIDDEN)
