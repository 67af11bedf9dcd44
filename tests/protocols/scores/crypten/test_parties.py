"""Client and server of the backend `crypten` without a group: messages that are forged, truncated or replayed, and
groups that must not be formed.

Clients run in the main thread, as they must. What the server would send them is in their mailbox before they begin.
"""

import threading
from collections.abc import Sequence

import numpy as np
import pytest

from protocols.foundation import wire
from protocols.foundation.errors import PeerMisbehaved, SumAbandoned
from protocols.foundation.identifiers import SERVER, PartyId
from protocols.holders.plain import PlainHolderClient, PlainHolderServer
from protocols.registry import SCORES
from protocols.scores.crypten import binding
from protocols.scores.crypten.client import CryptenScoreClient
from protocols.scores.crypten.messages import DIGEST_BYTES, GroupAnswer, GroupFormed, JoinGroup
from protocols.scores.crypten.position_keys import PositionKeys
from protocols.scores.crypten.server import CryptenScoreServer
from protocols.scores.interface import Answer, no_scores
from protocols.scores.messages import PURPOSE, AskScores, ScoresAsked
from protocols.scores.terms import ScoreTerms
from protocols.session.client_session import ClientSession
from protocols.session.conversation import Abandon, Conversation
from protocols.session.patience import Patience
from protocols.session.server_session import ServerSession
from protocols.sums.secagg.session import SecAggSession
from protocols.transport.in_process import InProcessNetwork
from tests.support.in_threads import SESSION, SHORT, at_once, soon
from tests.support.score_batches import TRUSTING, some_scores, terms_of
from tests.support.sum_conversations import everyone

TERMS = terms_of(3, 5, top=2, asker=PartyId(4))
"""Three scorers, and an asker outside."""
ONE, TWO, THREE, OUTSIDE = everyone(4)
KEYS = PositionKeys(TERMS)
WORDS = np.array([[8 + 7 - 3, 8 + 7 - 0]])
"""Positions 3 and 0."""


@pytest.fixture
def channels() -> dict[PartyId, SecAggSession]:
    return TRUSTING["semi-honest"].sessions(everyone(4))


@pytest.fixture
def network() -> InProcessNetwork:
    return InProcessNetwork(4)


def put(network: InProcessNetwork, to: PartyId, message: wire.Message, terms: ScoreTerms = TERMS) -> None:
    network.put(SERVER, to, bytes(wire.encode(message, SESSION, terms.round)))


def client_of(channels: SecAggSession) -> CryptenScoreClient:
    return CryptenScoreClient(channels, PlainHolderClient())


def session_of(network: InProcessNetwork, party: PartyId) -> ClientSession:
    return at_once(Conversation(network.endpoint(party), SESSION))


# --- the asker ------------------------------------------------------------------------------------------------------


def sealed_shares(
    channels: dict[PartyId, SecAggSession], terms: ScoreTerms = TERMS, group: Sequence[PartyId] = (ONE, TWO, THREE)
) -> dict[int, bytes]:
    """Those of an honest group."""
    shares = [np.array([[5, 6]]), np.array([[-7, 8]])]
    shares.append(WORDS ^ shares[0] ^ shares[1])
    head = binding.of_group(terms, group)
    return {
        int(party): channels[party].seal_for(OUTSIDE, binding.answer_use(terms), head + share.astype("<i8").tobytes())
        for party, share in zip(TERMS.clients, shares, strict=True)
    }


def asked(network: InProcessNetwork, channels: SecAggSession, answer: GroupAnswer) -> Answer:
    put(network, OUTSIDE, answer)
    return client_of(channels).ask(session_of(network, OUTSIDE), TERMS, b"queries", no_scores(TERMS))


def test_an_asker_outside_reads_positions(network: InProcessNetwork, channels: dict[PartyId, SecAggSession]) -> None:
    answer = asked(network, channels[OUTSIDE], GroupAnswer(PURPOSE, [1, 2, 3], sealed_shares(channels)))
    assert [row.tolist() for row in answer.ranking.positions] == [[3, 0]]
    assert answer.ranking.contributors == {1, 2, 3}
    assert answer.ranking.means is None


@pytest.mark.parametrize("entry", [b"forged", b"replayed", b"swapped", b"other group", b"longer"])
def test_shares_that_are_not_the_scorers_own_are_refused(
    network: InProcessNetwork, channels: dict[PartyId, SecAggSession], entry: bytes
) -> None:
    sealed = sealed_shares(channels)
    if entry == b"forged":
        sealed[2] = sealed[2][:-1] + bytes([sealed[2][-1] ^ 1])
    elif entry == b"replayed":
        earlier = terms_of(3, 5, top=2, asker=OUTSIDE, round=TERMS.round + 1)
        sealed[2] = sealed_shares(channels, earlier)[2]
    elif entry == b"swapped":
        sealed[1], sealed[2] = sealed[2], sealed[1]
    elif entry == b"other group":
        sealed[2] = sealed_shares(channels, group=(ONE, TWO))[2]
    else:
        sealed[2] += bytes(8)
    with pytest.raises(PeerMisbehaved):
        asked(network, channels[OUTSIDE], GroupAnswer(PURPOSE, [1, 2, 3], sealed))


@pytest.mark.parametrize("participants", [[1, 2], [1, 2, 3, 4], [1, 3, 7]])
def test_an_answer_of_another_group_is_refused(
    network: InProcessNetwork, channels: dict[PartyId, SecAggSession], participants: list[int]
) -> None:
    sealed = {party: entry for party, entry in sealed_shares(channels).items() if party in participants}
    with pytest.raises(PeerMisbehaved):
        asked(network, channels[OUTSIDE], GroupAnswer(PURPOSE, participants, sealed))


def test_an_answer_without_one_scorers_shares_is_refused(
    network: InProcessNetwork, channels: dict[PartyId, SecAggSession]
) -> None:
    sealed = sealed_shares(channels)
    del sealed[3]
    with pytest.raises(PeerMisbehaved, match="other scorers"):
        asked(network, channels[OUTSIDE], GroupAnswer(PURPOSE, [1, 2, 3], sealed))


def test_an_abandoned_batch_is_said_so(network: InProcessNetwork, channels: dict[PartyId, SecAggSession]) -> None:
    put(network, OUTSIDE, Abandon(PURPOSE, "too few"))
    with pytest.raises(SumAbandoned, match="too few"):
        client_of(channels[OUTSIDE]).ask(session_of(network, OUTSIDE), TERMS, b"queries", no_scores(TERMS))


# --- a scorer -------------------------------------------------------------------------------------------------------


def formed(channels: dict[PartyId, SecAggSession], participants: list[int], digest: bytes = b"") -> GroupFormed:
    """As client 2 is to get it."""
    secret, use = (digest or TERMS.digest) + bytes(32), binding.ring_use(TERMS)
    known = {int(party): one for party, one in channels.items()}
    sealed = {name: known[name].seal_for(TWO, use, secret) for name in participants if name in known and name != TWO}
    return GroupFormed(PURPOSE, participants, bytes(range(32)), sealed, "127.0.0.1", 1)


def score(network: InProcessNetwork, channels: dict[PartyId, SecAggSession], message: wire.Message) -> None:
    use = f"ask scores/{TERMS.round}"
    asking = channels[OUTSIDE].seal_for(TWO, use, TERMS.digest + bytes(64) + b"queries")
    put(network, TWO, ScoresAsked(PURPOSE, asking))
    put(network, TWO, message)
    scores = some_scores(TERMS)[TWO]
    client_of(channels[TWO]).score(session_of(network, TWO), TERMS, lambda queries: scores)


@pytest.mark.parametrize(
    ("participants", "problem"),
    [
        ([1, 3], "without this client"),
        ([1, 2, 4], "no clients of the batch"),
        ([2, 3], "elsewhere"),
        ([1, 2, 9], "no clients of the batch"),
    ],
)
def test_a_group_that_is_none_is_refused(
    network: InProcessNetwork, channels: dict[PartyId, SecAggSession], participants: list[int], problem: str
) -> None:
    with pytest.raises(PeerMisbehaved, match=problem):
        score(network, channels, formed(channels, participants))


def test_a_neighbour_under_other_terms_is_refused(
    network: InProcessNetwork, channels: dict[PartyId, SecAggSession]
) -> None:
    with pytest.raises(PeerMisbehaved, match="other terms"):
        score(network, channels, formed(channels, [1, 2, 3], bytes(DIGEST_BYTES)))


def test_a_ring_key_of_somebody_else_is_refused(
    network: InProcessNetwork, channels: dict[PartyId, SecAggSession]
) -> None:
    entry = channels[THREE].seal_for(TWO, binding.ring_use(TERMS), TERMS.digest + bytes(32))
    sealed = {1: entry, 3: entry}
    message = GroupFormed(PURPOSE, [1, 2, 3], bytes(range(32)), sealed, "127.0.0.1", 1)
    with pytest.raises(PeerMisbehaved, match="does not open"):
        score(network, channels, message)


def test_one_scorer_alone_is_no_group() -> None:
    with pytest.raises(PeerMisbehaved, match="1 scorers"):
        binding.require_participants([ONE, TWO], terms_of(3, 5, asker=ONE))
    with pytest.raises(PeerMisbehaved, match="without the asker"):
        binding.require_participants([TWO, THREE], terms_of(3, 5, asker=ONE))


# --- the server -----------------------------------------------------------------------------------------------------


def serve(network: InProcessNetwork, terms: ScoreTerms, joining: dict[PartyId, JoinGroup]) -> None:
    asked = AskScores(PURPOSE, dict.fromkeys(map(int, terms.scorers), bytes(100)))
    messages: list[tuple[PartyId, wire.Message]] = [(terms.asker, asked)]
    for party, message in (*messages, *joining.items()):
        network.put(party, SERVER, bytes(wire.encode(message, SESSION, terms.round)))
    conversation = Conversation(network.endpoint(SERVER), SESSION)
    session = ServerSession(conversation, set(everyone(4)), Patience.fixed(SHORT), lambda who, step: None)
    CryptenScoreServer(PlainHolderServer(2)).serve(session, terms)


def join(*peers: int) -> JoinGroup:
    return JoinGroup(PURPOSE, bytes(range(32)), dict.fromkeys(peers, bytes(92)), "127.0.0.1", 1)


@pytest.mark.parametrize(
    ("joining", "problem"),
    [
        ({}, "0 scorers have joined"),
        ({ONE: join(2, 3)}, "1 scorers have joined"),
        ({ONE: join(2), TWO: join(3)}, "no channel"),
    ],
)
def test_too_small_or_broken_rings_are_abandoned(
    network: InProcessNetwork, joining: dict[PartyId, JoinGroup], problem: str
) -> None:
    with pytest.raises(SumAbandoned, match=problem):
        serve(network, TERMS, joining)


def test_a_batch_whose_asker_has_dropped_out_is_abandoned(network: InProcessNetwork) -> None:
    terms = terms_of(4, 5, asker=ONE)
    with pytest.raises(SumAbandoned, match="asker has dropped out"):
        serve(network, terms, {TWO: join(3, 4), THREE: join(2, 4)})


# --- where it runs --------------------------------------------------------------------------------------------------


def test_a_client_in_a_thread_is_refused_in_one_line(channels: dict[PartyId, SecAggSession]) -> None:
    problems: list[str] = []

    def begin() -> None:
        try:
            client_of(channels[ONE])
        except RuntimeError as problem:
            problems.append(str(problem))

    thread = threading.Thread(target=begin)
    thread.start()
    thread.join(soon().remaining())
    assert problems == ["the backend 'crypten' needs a process per client: run it under mpirun, not in threads"]


def test_the_registry_knows_what_it_needs() -> None:
    bundle = SCORES["crypten"]
    assert bundle.packages == ("crypten",)
    assert not bundle.stands_against_active
    assert bundle.reads_all_with_a_client
    with pytest.raises(ValueError, match="needs keys"):
        bundle.client(None)
