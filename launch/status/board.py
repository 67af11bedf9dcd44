"""What a party knows of its run, gathered when somebody looks: `StatusBoard`."""

import re
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from launch.status.figures import TrafficReader
from protocols.transport.base import Transport
from secure_kg.federation.plan.disclosed import Disclosed
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.errors import UserError
from secure_kg.foundation.progress import Remaining
from secure_kg.report.live_status import LiveStatus, Peer, Stage, Who
from secure_kg.runs.records.client_result import Evaluation
from secure_kg.runs.records.summary import TITLES, shown
from secure_kg.runs.run_folder import RunFolder

LINES: Final = 12
"""Of the log that are shown."""
MOST_LETTERS: Final = 300
_FRESH_SECONDS: Final = 0.5
_DROPPED: Final = re.compile(
    r"client (\d+) (dropped out (?:in round \d+|during set-up) \(.*\)): going on with \d+ clients"
)
_BACK: Final = re.compile(r"client (\d+) is (back in round \d+)")
PAGES: Final = ("report.html", "audit.html")
"""Files of a run's folder that may be shown once the run is over; no other."""


class Work(Protocol):
    """A client's work as far as its page shows it; read from another thread."""

    @property
    def rounds_done(self) -> int: ...

    @property
    def seconds(self) -> Mapping[str, float]: ...


@dataclass(slots=True)
class _Noted:
    """What was said of the run; None where nothing was."""

    stage: Stage | None = None
    progress: int | None = None
    phase: str | None = None
    problem: str = ""
    missing: dict[int, str] = field(default_factory=dict)
    """Parties that are not there, and a note on each."""
    notes: dict[int, str] = field(default_factory=dict)


class StatusBoard:
    """The status of party `number` in a run; any thread may use it.

    `config`: with its number of clients, for the rounds and the disclosures. `names`: of the sites, by number.
    """

    def __init__(
        self,
        number: int,
        config: RunConfig | None = None,
        *,
        names: Mapping[int, str] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._number, self._names, self._clock = number, dict(names or {}), clock
        self._lock = threading.Lock()
        self._lines: deque[str] = deque(maxlen=LINES)
        self._noted = _Noted()
        self._reader: TrafficReader | None = None
        self._carried: dict[int, tuple[int, int]] = {}
        self._spent: dict[str, float] = {}
        """Seconds of the transports before."""
        self._linked: Callable[[], Collection[int]] | None = None
        self._before, self._watched = 0, clock()
        self._folder: Path | None = None
        self._work: Work | None = None
        self._started = clock()
        self._ended: float | None = None
        self._remaining = Remaining(None, clock=clock)
        self._last: tuple[float, LiveStatus] | None = None
        self._config, self._disclosed = config, None if config is None else Disclosed.of(config)

    @property
    def folder(self) -> Path | None:
        """Of the run, once it is known."""
        return self._folder

    def report(self, line: str) -> None:
        """Take in a line of the log. On the server's board, dropouts and returns are read from it."""
        with self._lock:
            self._lines.append(" ".join(line.split())[:MOST_LETTERS])
            if self._number == 0:
                if dropped := _DROPPED.fullmatch(line):
                    self._noted.missing[int(dropped[1])] = dropped[2]
                elif back := _BACK.fullmatch(line):
                    self._noted.missing.pop(int(back[1]), None)
                    self._noted.notes[int(back[1])] = back[2]
            if self._reader is not None:
                self._sample(self._reader)

    def wrap(self, report: Callable[[str], None]) -> Callable[[str], None]:
        """A callable that hands every line to `report` and to this board."""

        def both(line: str) -> None:
            report(line)
            self.report(line)

        return both

    def watch(
        self,
        transport: Transport,
        folder: Path | None = None,
        work: Work | None = None,
        *,
        linked: Callable[[], Collection[int]] | None = None,
        done: int = 0,
    ) -> None:
        """Look at this transport and at the metrics in the run's folder from now on, whenever somebody looks here.

        A second transport takes the place of the first, whose bytes and seconds are kept. `work`: of a client, for its
        phases. `linked`: asked for the peers that have a connection at that moment; None: nobody knows. `done`: rounds
        that were over before.
        """
        with self._lock:
            if self._reader is not None:
                self._carried, self._spent = self._bytes(self._reader), self._times(self._reader)
            self._reader, self._watched = TrafficReader(transport), self._clock()
            self._folder, self._work, self._linked = folder or self._folder, work or self._work, linked
            self._before, self._remaining, self._last = done, self._begun(done), None

    def note(
        self,
        *,
        stage: Stage | None = None,
        progress: int | None = None,
        phase: str | None = None,
        present: Collection[int] | None = None,
        folder: Path | None = None,
    ) -> None:
        """Say what no counter tells. `progress`: rounds that are over; `present`: all peers that are there now."""
        with self._lock:
            noted = self._noted
            noted.stage, noted.phase = stage or noted.stage, phase if phase is not None else noted.phase
            noted.progress = progress if progress is not None else noted.progress
            self._folder = folder or self._folder
            if present is not None:
                missing = set(self._peers()) - {int(party) for party in present}
                noted.missing = {party: noted.missing.get(party, "not connected") for party in missing}
            if stage is not None:
                self._ended = self._clock() if stage.over else None
            self._last = None

    def work(self, work: Work) -> None:
        """A client's work has begun."""
        with self._lock:
            self._work = work

    def done(self, folder: Path | None = None) -> None:
        """The run is complete."""
        self.note(stage=Stage.DONE, folder=folder)

    def failed(self, problem: str) -> None:
        """The run has ended with an error, in one line."""
        with self._lock:
            self._noted.problem = " ".join(problem.split())[:MOST_LETTERS]
        self.note(stage=Stage.FAILED)

    def snapshot(self) -> LiveStatus:
        """The status now, or of half a second ago: many who look cost as much as one."""
        with self._lock:
            now = self._clock()
            if self._last is None or now - self._last[0] >= _FRESH_SECONDS:
                self._last = now, self._status(now)
            return self._last[1]

    def _status(self, now: float) -> LiveStatus:
        config, reader, noted = self._config, self._reader, self._noted
        sizes = dict(self._carried) if reader is None else self._bytes(reader)
        done, left = self._sample(reader) if reader is not None else (noted.progress or 0, None)
        stage = self._stage(reader)
        sealed = config is not None and config.sum_protocol.sealed
        metric, evaluations = self._evaluations(sealed)
        elapsed = self._until(now) - self._started
        linked = None if self._linked is None or stage.over else frozenset(self._linked())
        return LiveStatus(
            who=Who(self._number, self._names.get(self._number, "")),
            stage=stage,
            done=done,
            rounds=None if config is None else config.rounds,
            phase="" if stage.over else noted.phase or ("" if reader is None else reader.phase),
            elapsed=elapsed,
            left=None if stage.over else left,
            peers=tuple(self._peer(party, sizes.get(party, (0, 0)), linked) for party in self._peers()),
            up=sum(up for up, _ in sizes.values()),
            down=sum(down for _, down in sizes.values()),
            seconds=self._seconds(reader),
            metric=metric,
            evaluations=evaluations,
            sealed=sealed,
            disclosed=self._disclosed,
            log=tuple(self._lines),
            problem=noted.problem,
            pages=self._pages() if stage.over else (),
        )

    def _stage(self, reader: TrafficReader | None) -> Stage:
        if self._noted.stage is not None and self._noted.stage is not Stage.RUNNING:
            return self._noted.stage
        if reader is None:
            return self._noted.stage or Stage.WAITING
        begun = reader.round or (self._work is not None and self._work.rounds_done)
        return Stage.RUNNING if begun or self._noted.stage is not None else Stage.SETUP

    def _sample(self, reader: TrafficReader) -> tuple[int, float | None]:
        """Rounds that are over, and the seconds that are left. While set-up lasts the clock of the rounds waits."""
        reader.read()
        done = self._noted.progress
        if done is None:
            done = max(reader.round - 1, 0) if self._number == 0 or self._work is None else self._work.rounds_done
            done = max(done, self._before) if not reader.round else done
        first = max(reader.first - 1, self._before if not reader.first else 0)
        if done <= first and reader.round <= reader.first:
            self._remaining = self._begun(first)
        return done, self._remaining.seconds(done)

    def _begun(self, first: int) -> Remaining:
        return Remaining(None if self._config is None else self._config.rounds, first, self._clock)

    def _bytes(self, reader: TrafficReader) -> dict[int, tuple[int, int]]:
        """Of all transports watched so far, by peer."""
        sizes = dict(self._carried)
        for party, (up, down) in reader.read().items():
            before = sizes.get(int(party), (0, 0))
            sizes[int(party)] = before[0] + up, before[1] + down
        return sizes

    def _peers(self) -> list[int]:
        """Of the server all clients; a client knows of its connection to the server only."""
        if self._number:
            return [0]
        if self._reader is not None:
            return [int(party) for party in self._reader.transport.peers]
        clients = self._config.clients if self._config is not None else None
        return list(range(1, (clients or 0) + 1))

    def _peer(self, party: int, sizes: tuple[int, int], linked: Collection[int] | None) -> Peer:
        missing = self._noted.missing
        note = missing.get(party, self._noted.notes.get(party, ""))
        cut = linked is not None and party not in linked and party not in missing
        present = party not in missing and not cut
        return Peer(Who(party, self._names.get(party, "")), present, "no connection now" if cut else note, *sizes)

    def _until(self, now: float) -> float:
        return self._ended if self._ended is not None else now

    def _times(self, reader: TrafficReader) -> dict[str, float]:
        """Seconds of all transports watched so far. Between two of them nothing is computed."""
        told = reader.waits
        told["compute"] = max(self._until(self._clock()) - self._watched - sum(told.values()), 0.0)
        return {name: value + self._spent.get(name, 0.0) for name, value in told.items()}

    def _seconds(self, reader: TrafficReader | None) -> tuple[tuple[str, float], ...]:
        if reader is None:
            return ()
        told = (dict(self._work.seconds) if self._work is not None else {}) or self._times(reader)
        return tuple((name, value) for name, value in told.items() if value >= 0.005)

    def _evaluations(self, sealed: bool) -> tuple[str, tuple[tuple[int, float], ...]]:
        """The server's own lines of `metrics.jsonl`; a client has none, and a sealed run tells none."""
        if self._number or self._folder is None or sealed:
            return "", ()
        try:
            lines = RunFolder(self._folder).metrics()
        except (UserError, OSError):
            return "", ()
        return _metric(lines)

    def _pages(self) -> tuple[str, ...]:
        folder = self._folder
        return () if folder is None else tuple(name for name in PAGES if (folder / name).is_file())


def _metric(lines: Collection[Evaluation]) -> tuple[str, tuple[tuple[int, float], ...]]:
    """The first validation metric, which is the one that decides when to stop."""
    valid = [(line.round, line.figures["valid"]) for line in lines if line.figures.get("valid")]
    if not valid:
        return "", ()
    name = shown(valid[0][1])[0]
    points = tuple((number, float(figures[name])) for number, figures in valid if name in figures)
    return TITLES.get(name, name), points
