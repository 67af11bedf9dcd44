"""A member that breaks the rules, or is gone for good, at any moment: it is a dropout, and the others go on."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from protocols.foundation.errors import LinkRefused
from protocols.foundation.identifiers import PartyId
from protocols.foundation.wire import MAX_FRAME_BYTES, Frame
from protocols.transport.https.client import HttpsClientTransport
from secure_kg.federation.client.take_part import Participation
from secure_kg.federation.plan.messages import Hello
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.learning.config import TrainingConfig
from tests.support import members_in_threads
from tests.support.members_in_threads import Killed, MembersInThreads, Mortal, Party
from tests.support.organisations import Organisations

HOSTILE: Final = 3
SETTINGS = RunConfig(
    dataset="nations", rounds=4, eval_every=2, checkpoint_every=2, grace=5.0, training=TrainingConfig(dim=4)
)
pytestmark = pytest.mark.timeout(120)
Bend = Callable[[bytes, random.Random], bytes]


def gone(frame: bytes, draws: random.Random) -> bytes:
    raise Killed


def other_bytes(frame: bytes, draws: random.Random) -> bytes:
    return draws.randbytes(50)


def cut_short(frame: bytes, draws: random.Random) -> bytes:
    return frame[: draws.randrange(len(frame))]


def too_large(frame: bytes, draws: random.Random) -> bytes:
    return bytes(MAX_FRAME_BYTES >> 3)


BROKEN: Final[dict[str, Bend]] = {"gone": gone, "other bytes": other_bytes, "cut short": cut_short, "large": too_large}


class Hostile(Mortal):
    """A member's link on which one frame is not what the member has sent."""

    def __init__(self, link: HttpsClientTransport, at: int, bend: Bend) -> None:
        super().__init__(link, 1 << 30, in_order=True)
        self._bend, self._until_then = bend, at

    def _post(self, to: PartyId, frame: Frame) -> None:
        self._until_then -= 1
        if self._until_then == -1:
            frame = self._bend(bytes(frame), random.Random(len(frame)))
        super()._post(to, frame)


def begin(path: Path, at: int, bend: Bend, monkeypatch: pytest.MonkeyPatch) -> tuple[Party, list[Party], Party]:
    """The server, honest members, and one whose frame of number `at` is bent."""
    run = MembersInThreads(Organisations.found(path, SETTINGS, members=4))
    server, honest = run.serve(come_again=1.0), [run.join(number) for number in (1, 2, 4)]
    monkeypatch.setattr(members_in_threads, "Mortal", lambda link, dies_at, in_order: Hostile(link, dies_at, bend))
    return server, honest, run.join(HOSTILE, dies_at=at)


def others_go_on(server: Party, honest: list[Party]) -> None:
    dropouts = server.result().summary.dropouts
    assert {one.client for one in dropouts} == {HOSTILE}, server.said
    assert {member.result() for member in honest} == {Participation.SOME_MISSING}


@pytest.mark.parametrize("at", [2, 6, 15])  # in the set-up, as an alignment is opened, in a round
def test_a_malformed_message_costs_its_sender_alone(tmp_path: Path, at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    server, honest, hostile = begin(tmp_path, at, other_bytes, monkeypatch)
    others_go_on(server, honest)
    with pytest.raises(LinkRefused, match="the server refuses this site: client 3 sent a malformed message"):
        hostile.result()
    cut = [line for line in server.said if "client 3 sent a malformed message" in line]
    assert len(cut) == 1
    assert cut[0].endswith("; it is cut off")


def test_a_member_that_says_other_settings_costs_nobody_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def other_settings(frame: bytes, draws: random.Random) -> bytes:
        return frame[: -len(SETTINGS.digest())] + bytes(len(SETTINGS.digest()))

    server, honest, hostile = begin(tmp_path, 0, other_settings, monkeypatch)
    others_go_on(server, honest)
    assert Hello(bytes(32)).digest == bytes(32)  # the digest is the end of the frame
    with pytest.raises(LinkRefused, match="client 3 was started with other settings"):
        hostile.result()


def test_a_member_that_never_comes_again_after_an_alignment_was_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, honest, hostile = begin(tmp_path, 6, gone, monkeypatch)
    others_go_on(server, honest)
    assert hostile.is_killed()


@pytest.mark.slow
@pytest.mark.parametrize("at", range(1, 36, 3))
@pytest.mark.parametrize("how", BROKEN)
def test_any_broken_message_costs_its_sender_alone(
    tmp_path: Path, how: str, at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    others_go_on(*begin(tmp_path, at, BROKEN[how], monkeypatch)[:2])
