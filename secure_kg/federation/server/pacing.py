"""Turns: a server that works only when it is told to, so that several federations can be measured side by side.

Times of two runs one after the other differ by what the machine did meanwhile. So `python -m benchmarks.overhead` runs
all settings at once and passes a baton: before each piece of work (set-up, a round, an evaluation, the results) the
server asks for its turn and sleeps until it gets it; its clients sleep in their transports meanwhile. Afterwards it
tells what the turn has cost. Only one of the federations works at any time, and the machine's noise hits all alike.

The environment variable `SECURE_KG_TURNS` names the Unix socket of whoever gives out turns. Without it nothing is asked
and nothing is told. One line of JSON per message:

    server   {"ask": "round", "round": 3}
    giver    {"go": true}
    server   {"done": "round", "round": 3, "seconds": 0.41, "cpu_seconds": 0.02, "figures": {...}}

A giver that is gone ends the job with one line; a server that is gone closes its end, which the giver notices. Figures
are the server's own: nothing of what clients hold travels here.
"""

import json
import os
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, TypeAlias

from secure_kg.foundation.errors import UserError

VARIABLE: Final = "SECURE_KG_TURNS"
MAX_LINE_BYTES: Final = 1 << 20

Figures: TypeAlias = Mapping[str, Mapping[str, float]]
"""Running totals by kind and name."""


class Turns:
    """Of a server that need not ask: it works on."""

    @contextmanager
    def turn(self, work: str, round_id: int, figures: Callable[[], Figures]) -> Iterator[None]:
        """The block is one piece of work. `figures`: totals whose growth is what the work has cost."""
        yield


class GivenTurns(Turns):
    """Of a server that waits for each turn."""

    def __init__(self, giver: socket.socket) -> None:
        self._giver, self._lines = giver, giver.makefile("rb")

    @contextmanager
    def turn(self, work: str, round_id: int, figures: Callable[[], Figures]) -> Iterator[None]:
        self._say({"ask": work, "round": round_id})
        self._wait()
        before, spent = figures(), {"seconds": time.perf_counter(), "cpu_seconds": time.process_time()}
        yield
        now = {"seconds": time.perf_counter(), "cpu_seconds": time.process_time()}
        spent = {clock: now[clock] - since for clock, since in spent.items()}
        self._say({"done": work, "round": round_id, **spent, "figures": growth(before, figures())})

    def _say(self, message: dict[str, Any]) -> None:
        try:
            self._giver.sendall(json.dumps(message).encode() + b"\n")
        except OSError:
            raise _gone() from None

    def _wait(self) -> None:
        try:
            line = self._lines.readline(MAX_LINE_BYTES)
            said = json.loads(line) if line else None
        except (OSError, ValueError):
            said = None
        if said != {"go": True}:
            raise _gone()


def turns_of_environment(environment: Mapping[str, str] = os.environ) -> Turns:
    """What the environment asks for; `UserError` if nobody gives out turns there."""
    path = environment.get(VARIABLE)
    if path is None:
        return Turns()
    giver = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        giver.connect(path)
    except OSError as problem:
        giver.close()
        raise UserError(f"{VARIABLE}={path}: nobody gives out turns there ({problem.strerror or problem})") from None
    return GivenTurns(giver)


def growth(before: Figures, after: Figures) -> dict[str, dict[str, float]]:
    """What was added to each total; those that stayed as they were are left out."""
    grown = {
        kind: {name: value - before.get(kind, {}).get(name, 0) for name, value in values.items()}
        for kind, values in after.items()
    }
    return {kind: {name: value for name, value in values.items() if value} for kind, values in grown.items()}


def _gone() -> UserError:
    return UserError("whoever gave out turns to this job is gone")
