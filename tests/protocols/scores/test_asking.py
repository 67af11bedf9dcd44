"""Asking: secrets of a batch that are fresh, bound and never shown."""

import pickle
from dataclasses import replace
from typing import Any

import pytest

from protocols.foundation import wire
from protocols.foundation.identifiers import SERVER, PartyId, RoundId
from protocols.scores import asking
from protocols.scores.asking import BatchSecrets
from protocols.scores.messages import MAX_QUERY_BYTES, PURPOSE, AskScores
from protocols.session.client_session import ClientSession
from protocols.session.conversation import Conversation
from protocols.transport.in_process import InProcessNetwork
from tests.support.group_keys import KINDS
from tests.support.in_threads import SESSION, soon
from tests.support.score_batches import terms_of
from tests.support.sum_conversations import everyone

TERMS = terms_of(4, 10)
ONE, TWO, THREE, FOUR = everyone(4)


def asker() -> tuple[ClientSession, Conversation]:
    """Client 1's session, and the server's end."""
    network = InProcessNetwork(4)
    server = Conversation(network.endpoint(SERVER), SESSION)
    return ClientSession(Conversation(network.endpoint(ONE), SESSION), soon()), server


def test_every_scorer_gets_its_own_secret_and_the_common_one() -> None:
    channels, (session, server) = KINDS["semi-honest"].sessions(everyone(4)), asker()
    drawn = asking.ask(session, channels[ONE], TERMS, b"queries")
    assert {*drawn} == {TWO, THREE, FOUR}
    assert len({one.own for one in drawn.values()} | {one.common for one in drawn.values()}) == 4
    sealed = server.receive(ONE, AskScores, RoundId(1), soon(), PURPOSE).sealed
    for scorer, secrets in drawn.items():
        opened = channels[scorer].open_from(ONE, "ask scores/1", sealed[int(scorer)])
        assert opened.startswith(TERMS.digest + secrets.own)
        assert opened.endswith(b"queries")
        assert len(opened) == 32 * 3 + len(b"queries")
        assert secrets.common not in opened, "it is bound to what was asked"
        assert secrets.own not in b"".join(sealed.values())


def test_a_scorer_without_a_channel_is_not_asked() -> None:
    channels, (session, server) = KINDS["semi-honest"].sessions(everyone(3)), asker()
    asking.ask(session, channels[ONE], TERMS, b"queries")
    assert {*server.receive(ONE, AskScores, RoundId(1), soon(), PURPOSE).sealed} == {2, 3}


def test_queries_that_are_too_long_are_refused_before_anything_is_sent() -> None:
    channels, (session, server) = KINDS["semi-honest"].sessions(everyone(4)), asker()
    with pytest.raises(ValueError, match="a batch may have"):
        asking.ask(session, channels[ONE], TERMS, bytes(MAX_QUERY_BYTES + 1))
    assert session.conversation.transport.traffic.total("sent").messages == 0
    asking.ask(session, channels[ONE], TERMS, bytes(MAX_QUERY_BYTES))
    server.admit(wire.MAX_FRAME_BYTES)
    sealed = server.receive(ONE, AskScores, RoundId(1), soon(), PURPOSE).sealed
    assert all(len(one) > MAX_QUERY_BYTES for one in sealed.values())


def test_keys_are_bound_to_batch_party_and_use() -> None:
    session, _ = asker()
    secret = bytes(32)
    keys = [
        asking.key_of(secret, session, TERMS, TWO, "a"),
        asking.key_of(secret, session, TERMS, THREE, "a"),
        asking.key_of(secret, session, TERMS, TWO, "b"),
        asking.key_of(bytes(31) + b"\1", session, TERMS, TWO, "a"),
        asking.key_of(secret, session, replace(TERMS, round=RoundId(2)), TWO, "a"),
        asking.key_of(secret, session, replace(TERMS, table=b"another"), TWO, "a"),
        asking.key_of(secret, session, replace(TERMS, asker=PartyId(4)), TWO, "a"),
    ]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("turn", [repr, str])
def test_secrets_are_not_shown(turn: Any) -> None:
    assert "A" * 8 not in turn(BatchSecrets(b"A" * 32, b"A" * 32))
    with pytest.raises(TypeError, match="not serialised"):
        pickle.dumps(BatchSecrets(b"A" * 32, b"A" * 32))
