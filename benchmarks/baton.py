"""Several training jobs at once, of which only one works at any time: whoever holds the baton.

Each job is an mpirun or a `benchmarks.links.job` of its own, whose server asks for turns over a Unix socket
(`secure_kg.federation.server.pacing`).
A job that dies, in its turn or while it waits, is noticed by the end of its socket and told with its own last line.
When the benchmark ends, in whatever way, all processes of the jobs end with it.

A client that waits under mpirun looks for messages some hundred times a second, which is little for one and too much
for twenty. So the clients of such a job are stopped (SIGSTOP) while it is not its turn; nothing is under way to or from
them then. Clients that are connected over links sleep until something comes, and a stopped one would lose its link.
"""

import contextlib
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

from launch.hosts import supervisor
from secure_kg.federation.server.pacing import MAX_LINE_BYTES, VARIABLE
from secure_kg.foundation.errors import UserError
from secure_kg.runs.records.summary import Summary
from secure_kg.runs.run_folder import read_record

_SECONDS_TO_START: Final = 600.0
_SECONDS_TO_END: Final = 60.0
_SECONDS_OF_QUIET: Final = 0.3
_QUIET_SHARE: Final = 0.1
_SECONDS_TO_COME_BACK: Final = 60.0
WARM_UP: Final = 2
"""So many rounds tell nothing: in the first one clients only agree on first rows, in the second one their inner loops
are compiled."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Turn:
    """What one piece of work has cost. `figures` are the server's, by kind and phase."""

    work: str
    round: int
    seconds: float
    server_cpu_seconds: float
    client_cpu_seconds: dict[int, float]
    """Of the clients' processes, while the turn lasted."""
    figures: dict[str, dict[str, float]]

    @property
    def seconds_in_vain(self) -> float:
        """Spent waiting for a client that had dropped out, and for nobody else."""
        return self.figures.get("in_vain", {}).get("seconds", 0.0)

    @property
    def dropouts(self) -> int:
        return int(self.figures.get("in_vain", {}).get("dropouts", 0))

    @property
    def abandoned(self) -> int:
        return int(self.figures.get("in_vain", {}).get("abandoned", 0))

    @property
    def working_seconds(self) -> float:
        return self.seconds - self.seconds_in_vain

    def total(self, kind: str) -> float:
        """Over all names of one kind of figure, as bytes over phases."""
        return sum(self.figures.get(kind, {}).values())


@dataclass(frozen=True, slots=True)
class Silence:
    """A client that is stopped in the midst of some rounds and goes on later."""

    client: int
    rounds: frozenset[int] = frozenset()
    """In each of these it is stopped half-way; it misses the round after as well."""

    @property
    def returns(self) -> frozenset[int]:
        """Before these it is woken."""
        return frozenset(number + 2 for number in self.rounds)


@dataclass
class Job:
    """One federation. `ask` is what its server wants to do next; None once it has its results."""

    name: str
    command: Sequence[str]
    folder: Path
    """Its run folder."""
    scratch: Path
    silence: Silence | None = None
    linked: bool = False
    """Whether its parties are connected over links (`benchmarks.links.job`) and not under mpirun."""
    ask: tuple[str, int] | None = None
    asleep: set[int] = field(default_factory=set)
    """Clients that have dropped out and are not woken with the others."""
    turns: list[Turn] = field(default_factory=list)

    def start(self) -> None:
        path = self.scratch / f"{self.name}.socket"
        self._door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._door.bind(str(path))
        except OSError as problem:
            raise UserError(f"{path}: no socket can be made there ({problem.strerror or problem})") from None
        self._door.listen(1)
        self._errors = self.scratch / f"{self.name}.errors"
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                self.command,
                env={**os.environ, VARIABLE: str(path)},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                start_new_session=True,
                preexec_fn=supervisor.die_with_parent,
            )

    def wait_for_server(self) -> None:
        """Until it has asked for its first turn."""
        self._door.settimeout(0.1)
        limit = time.monotonic() + _SECONDS_TO_START
        while True:
            try:
                self._server, _ = self._door.accept()
                break
            except TimeoutError:
                if self._process.poll() is not None or time.monotonic() > limit:
                    raise self._failed() from None
        self._server.settimeout(None)
        self._lines = self._server.makefile("rb")
        self._take_ask()
        self._signal_clients(signal.SIGSTOP)

    def take_turn(self) -> Turn:
        """Let the server do what it has asked for; returns when it has done it and asks for more, or is through."""
        if self.ask is None:
            raise RuntimeError("the job is through")
        work, round_id = self.ask
        self._signal_clients(signal.SIGCONT)
        silence = self.silence if work == "round" else None
        if silence is not None and round_id in silence.returns:
            self._wake(silence.client)
        before = self._client_cpu()
        self._say_go()
        if silence is not None and round_id in silence.rounds:
            self._stop_midway(silence.client)
        told = self._hear("done")
        used = {client: seconds - before.get(client, 0.0) for client, seconds in self._client_cpu().items()}
        turn = Turn(work, round_id, float(told["seconds"]), float(told["cpu_seconds"]), used, told["figures"])
        self.turns.append(turn)
        if work == "results":
            self.ask = None
            self._end()
        else:
            self._take_ask()
            self._signal_clients(signal.SIGSTOP)
        return turn

    def summary(self) -> Summary:
        return read_record(self.folder / "summary.json", Summary)

    def kill(self) -> None:
        """Whatever it is doing. Idempotent."""
        for name in ("_server", "_door"):
            if hasattr(self, name):
                getattr(self, name).close()
        if hasattr(self, "_process") and self._process.poll() is None:
            self._process.kill()  # the ranks end with mpirun
            self._process.wait()

    def _say_go(self) -> None:
        try:
            self._server.sendall(json.dumps({"go": True}).encode() + b"\n")
        except OSError:
            raise self._failed() from None

    def _take_ask(self) -> None:
        told = self._hear("ask")
        self.ask = str(told["ask"]), int(told["round"])

    def _hear(self, what: str) -> dict[str, Any]:
        try:
            line = self._lines.readline(MAX_LINE_BYTES)
            told = json.loads(line) if line else None
        except (OSError, ValueError):
            told = None
        if not isinstance(told, dict) or what not in told:
            raise self._failed()
        return told

    def _end(self) -> None:
        """Its files are written and its ranks gone before anybody else works."""
        try:
            code = self._process.wait(_SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            raise UserError(f"the {self.name} run does not end") from None
        if code != 0:
            raise self._failed()

    def _failed(self) -> UserError:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(10.0)
        self.kill()
        lines = [line for line in self._errors.read_text(encoding="utf-8", errors="replace").splitlines() if line]
        own = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
        reason = (own or lines or [f"exit code {self._process.returncode}"])[-1]
        return UserError(f"the {self.name} run failed: {reason}")

    def _client_cpu(self) -> dict[int, float]:
        """So far, of those clients that have a process."""
        used: dict[int, float] = {}
        for client, pid in self._pids().items():
            with contextlib.suppress(OSError, ValueError):
                used[client] = _cpu_seconds(pid)
        return used

    def _signal_clients(self, number: signal.Signals) -> None:
        if self.linked:
            return
        for client in self._pids().keys() - self.asleep:
            self._signal(client, number)

    def _signal(self, client: int, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, KeyError):
            os.kill(self._pids()[client], number)

    def _pids(self) -> dict[int, int]:
        """Of the clients that have begun."""
        paths = self.folder.glob("clients/*/pid")
        return {int(path.parent.name): int(path.read_text(encoding="utf-8")) for path in paths}

    def _stop_midway(self, client: int) -> None:
        """Stop a client when half of a usual round has passed, in which it trains."""
        usual = sorted(turn.working_seconds for turn in self.turns if turn.work == "round" and turn.round > WARM_UP)
        time.sleep(usual[len(usual) // 2] / 2 if usual else 0.0)
        self._signal(client, signal.SIGSTOP)
        self.asleep.add(client)

    def _wake(self, client: int) -> None:
        """Let a client go on and finish what it was doing, while nobody else works."""
        self.asleep.discard(client)
        self._signal(client, signal.SIGCONT)
        limit, before = time.monotonic() + _SECONDS_TO_COME_BACK, self._client_cpu().get(client, 0.0)
        while time.monotonic() < limit:
            time.sleep(_SECONDS_OF_QUIET)
            before, earlier = self._client_cpu().get(client, 0.0), before
            if before - earlier < _QUIET_SHARE * _SECONDS_OF_QUIET:
                break


def _cpu_seconds(pid: int) -> float:
    """Of all threads of a process, the one that moves frames included, as Linux counts them: to the nanosecond."""
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(path.read_text(encoding="utf-8").split()[0]) for path in threads) / 1e9


@contextlib.contextmanager
def running(jobs: Sequence[Job]) -> Iterator[None]:
    """Start all, and leave none behind."""
    try:
        for job in jobs:
            job.start()
        for job in jobs:
            job.wait_for_server()
        yield
    finally:
        for job in jobs:
            job.kill()


def in_order(items: Sequence[T], step: int) -> list[T]:
    """Who is when in turn: another one begins each time, and every other time backwards.

    So nobody always comes first, and nobody always follows the same one.
    """
    start = step // 2 % len(items)
    rotated = [*items[start:], *items[:start]]
    return rotated[::-1] if step % 2 else rotated
