"""Snapshots of an auditor's state at a run's checkpoints: a later session goes on from one of them."""

from typing import Final, Generic, TypeVar

S = TypeVar("S")
_KEPT: Final = 3
"""A server goes on from its last checkpoint, or from the one before if it died while the last was written."""


class Snapshots(Generic[S]):
    """States by the round of their checkpoint, the last few. Round 0 is the beginning."""

    def __init__(self, beginning: S) -> None:
        self._beginning = beginning
        self._states: dict[int, S] = {}

    def save(self, number: int, state: S) -> None:
        """Of the checkpoint of round `number`; one of the same round is replaced."""
        self._states.pop(number, None)
        self._states[number] = state
        for old in sorted(self._states)[:-_KEPT]:
            del self._states[old]

    def go_on_from(self, number: int) -> S | None:
        """The state to go on from, None if it is not known. What was saved after it is forgotten."""
        self._states = {saved: state for saved, state in self._states.items() if saved <= number}
        return self._beginning if number == 0 else self._states.get(number)
