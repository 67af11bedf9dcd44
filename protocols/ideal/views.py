"""Views of one session's server, in a form in which real and simulated ones can be compared.

A view leaves out what is no part of the claim: times, and the order in which the answers of one step arrive. The latter
depends on the network, not on the protocol, so answers that arrive one after the other in one step are put in the order
of the clients' numbers, and answers that the server passes on one by one are put in that order with their copies.
Everything else is kept as it travelled, frame by frame.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import TypeAlias

from protocols.foundation import wire
from protocols.foundation.identifiers import PartyId, RoundId, SessionId
from protocols.foundation.wire import Frame
from protocols.transport.traffic import Direction


@dataclass(frozen=True, slots=True)
class SeenFrame:
    """One frame, as a record of `protocols.transport.tap` without its time."""

    direction: Direction
    peer: PartyId
    round: RoundId
    phase: str
    frame: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class SeenMessage:
    direction: Direction
    peer: PartyId
    round: RoundId
    message: wire.Message = field(repr=False)

    @property
    def kind(self) -> str:
        return type(self.message).__name__


Structure: TypeAlias = tuple[tuple[Direction, int, str, int, str, int], ...]
"""Of each frame: direction, peer, phase, round, kind of message, bytes."""


@dataclass(frozen=True, slots=True)
class View:
    """`frames` in canonical order (`canonical`)."""

    session: SessionId
    frames: tuple[SeenFrame, ...]

    def messages(self) -> Iterator[SeenMessage]:
        """Decoded; `DecodeError` if a frame is no message of the session."""
        for seen in self.frames:
            envelope = wire.decode(seen.frame, session=self.session)
            yield SeenMessage(seen.direction, seen.peer, envelope.round, envelope.message)

    def structure(self) -> Structure:
        """All of a view but the contents of its messages."""
        return tuple(
            (seen.direction, int(seen.peer), seen.phase, int(seen.round), decoded.kind, len(seen.frame))
            for seen, decoded in zip(self.frames, self.messages(), strict=True)
        )


def canonical(session: SessionId, frames: list[SeenFrame]) -> View:
    """The view of these frames, with answers that arrived in one step in the order of their senders."""
    ordered: list[SeenFrame] = []
    units = _with_copies(frames)
    for _, together in groupby(units, key=lambda unit: (unit[0].direction, unit[0].round, unit[0].phase, len(unit))):
        step = list(together)
        if step[0][0].direction == "received":
            step.sort(key=lambda unit: unit[0].peer)
        ordered += [seen for unit in step for seen in unit]
    return View(session, tuple(ordered))


def _with_copies(frames: list[SeenFrame]) -> list[list[SeenFrame]]:
    """Frames one by one, but for what arrived and was passed on at once: that stays together."""
    units: list[list[SeenFrame]] = []
    for seen in frames:
        if seen.direction == "sent" and units and _is_copy(seen, units[-1][0]) and not _gathered(units):
            units[-1].append(seen)
        else:
            units.append([seen])
    return units


def _is_copy(sent: SeenFrame, before: SeenFrame) -> bool:
    return before.direction == "received" and (before.phase, before.frame) == (sent.phase, sent.frame)


def _gathered(units: list[list[SeenFrame]]) -> bool:
    """Whether the last frame arrived in a step of which others had arrived before, and nothing was passed on."""
    if len(units) < 2 or len(units[-2]) > 1:
        return False
    before, last = units[-2][0], units[-1][0]
    return before.direction == "received" and (before.round, before.phase) == (last.round, last.phase)


class ViewRecorder:
    """A `protocols.transport.tap.Recorder` that keeps frames in memory."""

    def __init__(self) -> None:
        self._frames: list[SeenFrame] = []

    def write(self, direction: Direction, peer: PartyId, round_id: RoundId, phase: str, frame: Frame) -> None:
        self._frames.append(SeenFrame(direction, peer, round_id, phase, bytes(frame)))

    def close(self) -> None:
        """Nothing to release."""

    def view(self, session: SessionId) -> View:
        return canonical(session, self._frames)
