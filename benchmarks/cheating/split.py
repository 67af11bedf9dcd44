"""A server that has one state summed twice, over different clients, by asking half of them to open each sum.

In the first session its request to open a sum reaches one half only, whose answers are enough; then it is killed, and
its record lacks the answers. It goes on from the checkpoint, calls the victim slow, and asks the other half, which has
opened nothing. No client is in both halves, and all of it could have happened to an honest server. But those who have
helped say so to the others before the second sum (`protocols.sums.secagg.openings`).
"""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from benchmarks.cheating.entry import Played
from benchmarks.cheating.evaluations import figures_of_victim
from benchmarks.cheating.meddling import Cheat, ServerDied
from benchmarks.cheating.spoils import NOTHING, sums_read, total_of
from benchmarks.cheating.stage import Stage, stage_config
from protocols.foundation import wire
from protocols.foundation.errors import PeerLost
from protocols.foundation.identifiers import PartyId
from protocols.session.conversation import LeaveOut
from protocols.sums.secagg.messages import EncryptedShares, Survivors, UnmaskShares
from protocols.transport.tap import Tap, Transcript

VICTIM: Final = 1
FIRST, SECOND = frozenset({1, 2}), frozenset({3, 4})
_ROUND: Final = 2


class _Asks(Cheat):
    """Its request to open the results reaches `half`."""

    def __init__(self, half: frozenset[int]) -> None:
        super().__init__()
        self._half = half

    def send(self, to: PartyId, message: wire.Message) -> Iterable[wire.Message]:
        if isinstance(message, Survivors) and message.purpose == "valid" and to not in self._half:
            raise PeerLost(f"client {to} is called out of reach", to)
        return (message,)


class AsksFirstHalf(_Asks):
    """Is killed when it has the answers."""

    def __init__(self) -> None:
        super().__init__(FIRST)
        self._answers: set[PartyId] = set()

    def receive(self, sender: PartyId, message: wire.Message) -> wire.Message:
        if isinstance(message, UnmaskShares) and message.purpose == "valid":
            self._answers.add(sender)
            if self._answers >= self._half:
                raise ServerDied
        return message


class AsksSecondHalf(_Asks):
    """Calls the victim slow once keys are shared."""

    def __init__(self) -> None:
        super().__init__(SECOND)

    def send(self, to: PartyId, message: wire.Message) -> Iterable[wire.Message]:
        if to == VICTIM and isinstance(message, EncryptedShares) and message.purpose == "valid":
            self.unread.add(to)
        if isinstance(message, LeaveOut):
            self.unread.discard(to)
        return super().send(to, message)


def split_openings(path: Path, unrecorded_request: bool = False) -> Played:
    """Its success: the victim's validation figures, the difference of the two sums.

    `unrecorded_request`: its record ends before the last request, as that of a server that is killed while it sends.
    """
    settings = {"adversary": "semi-honest", "clients": 4, "max_corrupt": 0.0, "max_dropout": 0.5, "grace": 1.0}
    stage = Stage(path, stage_config(rounds=_ROUND, eval_every=_ROUND, checkpoint_every=0, **settings))
    first = stage.perform(AsksFirstHalf())
    _forget_answers(stage.run, unrecorded_request)
    second = stage.perform(AsksSecondHalf())
    with_it, without = (total_of(sums_read(stage, one), "valid", _ROUND) for one in (first, second))
    if with_it is None or without is None or VICTIM in without[1]:
        return Played(stage, False, NOTHING.record())
    spoils = figures_of_victim(with_it[0], without[0], first.trainers[VICTIM], "valid", 0)
    return Played(stage, spoils.got, spoils.record())


def split_requests(path: Path) -> Played:
    return split_openings(path, unrecorded_request=True)


def _forget_answers(run: Path, unrecorded_request: bool) -> None:
    """A record that ends before the last answers, or, without an end, before the last request that was taken."""
    (path,) = run.glob("transcript-*.bin")
    events = list(Transcript(path))
    path.unlink()
    while events[-1].direction == "received":
        events.pop()
    if unrecorded_request:
        while not (events[-1].peer == max(FIRST) and wire.kind_of(events[-1].frame) is Survivors):
            events.pop()
        events.pop()
    tap = Tap(path)
    for one in events:
        tap.write(one.direction, one.peer, one.round, one.phase, one.frame)
    without_end = path.stat().st_size
    tap.close()
    if unrecorded_request:
        os.truncate(path, without_end)
