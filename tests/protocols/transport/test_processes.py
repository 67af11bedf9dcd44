"""Parties as processes: frames of any size both ways at once, limits, deaths, and how a part ended."""

import pytest

from protocols.foundation.identifiers import SERVER, PartyId
from protocols.transport.processes import Ended, run_parties
from tests.support import process_parts as parts

ONE, TWO = PartyId(1), PartyId(2)
SECONDS = 40.0
pytestmark = pytest.mark.long


def test_large_frames_cross() -> None:
    ended = run_parties(dict.fromkeys([SERVER, ONE, TWO], parts.send_large), SECONDS)
    assert ended[SERVER].value == {"1": [parts.LARGE, 1], "2": [parts.LARGE, 2]}
    assert ended[ONE].value == ended[TWO].value == {"0": [parts.LARGE, 0]}


def test_a_frame_beyond_the_limit_is_refused() -> None:
    ended = run_parties({SERVER: parts.hear_too_much, ONE: parts.send_too_much}, SECONDS)
    assert ended[SERVER] == Ended("refused")


def test_a_process_that_dies_is_lost_to_its_peer_and_said_to_have_ended() -> None:
    ended = run_parties({SERVER: parts.wait_for_the_dead, ONE: parts.die}, SECONDS)
    assert ended == {SERVER: Ended([1]), ONE: Ended(problem="ended without a word")}


def test_a_deadline_passes() -> None:
    waiting = dict.fromkeys([ONE, TWO], parts.wait_for_the_server)
    ended = run_parties({SERVER: parts.wait_in_vain, **waiting}, SECONDS)
    assert ended == {SERVER: Ended([[1, 2], []]), ONE: Ended("go"), TWO: Ended("go")}


def test_what_a_part_raises_is_told_and_one_that_hangs_is_killed() -> None:
    ended = run_parties({SERVER: parts.hang, ONE: parts.fail, TWO: parts.hang}, 3.0)
    assert ended[ONE] == Ended(problem="ValueError: a reason")
    assert ended[SERVER].problem == "PeerLost: client 1 has ended"
    assert ended[TWO].problem.startswith("PeerLost") or ended[TWO].problem == "not done in time"
