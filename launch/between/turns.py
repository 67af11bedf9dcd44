"""Turns of the processes of one site: its link is one process's at a time, and whoever asks goes first.

A second process with the same certificate would end the first one's link, again and again. Locks are those of the
system: one that a killed process held is free.

    session.lock      held by whoever has the link: the process that trains, answers or asks
    asking.lock       held by a process that wants to ask, or does
    answering.lock    held by the process that answers, for as long as it runs
"""

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from secure_kg.foundation.errors import UserError
from secure_kg.foundation.visible import shown
from secure_kg.runs.client_folder import LOCK

_ASKING: Final = "asking.lock"
_ANSWERING: Final = "answering.lock"
_LOOK_SECONDS: Final = 0.1
_MOST_SECONDS: Final = 1800.0
_NOTE_SECONDS: Final = 3.0
_PATIENCE: Final = 10.0
"""A process that was killed may take a moment to end."""


class SiteTurns:
    """The locks in the private folder of a site."""

    def __init__(self, site: Path) -> None:
        self._site = site

    def somebody_asks(self) -> bool:
        """Whether a process of this site wants the link."""
        return self._is_held(_ASKING)

    def somebody_answers(self) -> bool:
        """Whether a process of this site answers, or will again after the asking."""
        return self._is_held(_ANSWERING)

    @contextmanager
    def answering(self) -> Iterator[None]:
        """For the whole of a process that answers. `UserError` if there is one already."""
        with self._held(_ANSWERING, 0.0, "another process of this site answers already"):
            yield

    @contextmanager
    def linked(self) -> Iterator[None]:
        """While a process that answers has the link."""
        with self._held(LOCK, _PATIENCE, "this site takes part in another session; start this one after it"):
            yield

    @contextmanager
    def asking(self, note: Callable[[str], None]) -> Iterator[None]:
        """While a process asks, after whoever asked before and the session that this site answers."""
        busy = "another process of this site asks, or trains"
        with self._held(_ASKING, _MOST_SECONDS, busy, lambda: note("waiting: another process of this site asks")):
            answers = self.somebody_answers()
            seconds, wait = (_MOST_SECONDS if answers else _PATIENCE), "waiting: this site answers others just now"
            with self._held(LOCK, seconds, "this site takes part in another session; ask after it", lambda: note(wait)):
                yield

    def _is_held(self, name: str) -> bool:
        descriptor = self._open(name)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
        return False

    @contextmanager
    def _held(self, name: str, seconds: float, problem: str, note: Callable[[], None] = lambda: None) -> Iterator[None]:
        descriptor = self._open(name)
        try:
            self._wait(descriptor, seconds, problem, note)
            yield
        finally:
            os.close(descriptor)

    def _wait(self, descriptor: int, seconds: float, problem: str, note: Callable[[], None]) -> None:
        began, noted = time.monotonic(), False
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                waited = time.monotonic() - began
                if waited > max(seconds, 2 * _LOOK_SECONDS):  # somebody may just have looked (`_is_held`)
                    raise UserError(f"{shown(self._site)}: {problem}") from None
                if waited > _NOTE_SECONDS and not noted:
                    note()
                    noted = True
            time.sleep(_LOOK_SECONDS)

    def _open(self, name: str) -> int:
        path = self._site / name
        try:
            return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError as problem:
            raise UserError(f"{shown(path)}: cannot be used ({problem.strerror})") from None
