"""Keys that were advertised ahead of their sum, looked at when the sum begins.

A client advertises the key of a sum to come right after what it says last in the sum before
(`protocols.sums.secagg.vectors`). An honest server keeps it until it begins that sum, and so does an audit: every check
sees the key where it counts, right after the words by which its client was asked for the sum. Nothing else is moved.
"""

from collections.abc import Callable

from protocols.foundation.identifiers import SETUP, RoundId
from protocols.session.conversation import LeaveOut
from protocols.sums.secagg.messages import AdvertiseKeys, KeyDirectory
from secure_kg.audit.view.read import Observation
from secure_kg.federation.plan.messages import Evaluate, Finish, TrainRound
from secure_kg.federation.plan.run_plan import RESULTS


class InTurn:
    """One session. `turn` gives the observations that an audit looks at now."""

    def __init__(self) -> None:
        self._asked: set[tuple[int, int, str]] = set()
        """Client, round, and the part of the round it was asked for: `valid`, `test`, or empty for blocks."""
        self._round = SETUP
        """Of what the server said last."""
        self._waiting: list[Observation] = []
        self._left: list[Observation] = []
        """Of dropouts: nothing came of it."""

    def turn(self, observation: Observation) -> list[Observation]:
        message, peer, number = observation.message, observation.peer, observation.round
        if observation.direction == "received":
            if isinstance(message, AdvertiseKeys) and not self._is_due(observation):
                self._waiting.append(observation)
                return []
            return [observation]
        self._round = max(self._round, RoundId(number))
        match message:
            case TrainRound():
                return [observation, *self._asks(peer, number, "")]
            case Evaluate():
                return [observation, *self._asks(peer, number, "valid")]
            case Finish():
                return [observation, *self._asks(peer, number, "test")]
            case LeaveOut():  # what a dropout has sent ahead is dropped with it
                self._left += [one for one in self._waiting if one.peer == peer]
                self._waiting = [one for one in self._waiting if one.peer != peer]
            case KeyDirectory():  # whoever is in it was asked, or the server has begun the sum unasked
                named = {peer, *message.mask_keys}
                of_sum = number, observation.purpose
                return [*self._release(lambda one: _sum(one) == of_sum and one.peer in named), observation]
        return [observation]

    def unasked(self) -> list[Observation]:
        """Keys of sums that did not come."""
        left, self._waiting, self._left = [*self._left, *self._waiting], [], []
        return left

    def _is_due(self, observation: Observation) -> bool:
        """What is of an earlier round is late, not early."""
        early = observation.round >= self._round and observation.round != SETUP
        return not early or (observation.peer, *_part(observation)) in self._asked

    def _asks(self, peer: int, number: int, part: str) -> list[Observation]:
        self._asked = {one for one in self._asked if one[1] >= number} | {(peer, number, part)}
        return self._release(self._is_due)

    def _release(self, due: Callable[[Observation], bool]) -> list[Observation]:
        now = [one for one in self._waiting if due(one)]
        self._waiting = [one for one in self._waiting if not due(one)]
        return now


def _sum(observation: Observation) -> tuple[int, str]:
    return observation.round, observation.purpose


def _part(observation: Observation) -> tuple[int, str]:
    return observation.round, observation.purpose if observation.purpose in RESULTS else ""
