"""Progress of what lasts: how far it has come, and about how long it still takes.

On a terminal it is a bar, which goes away at its end. Elsewhere it is a line at steps of 10 %, or every 30 seconds, and
nothing for what is over in a few seconds. It is silent unless the process that talks to the user has asked for it
(`shown`): a library, a client's process and `--json -` show nothing.
"""

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self, TypeVar

from secure_kg.foundation.console import say
from secure_kg.foundation.visible import visible_line
from secure_kg.foundation.words import seconds_text

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

T = TypeVar("T")

_STEPS: Final = 10
_SECONDS_WITHOUT_A_LINE: Final = 30.0
_SECONDS_BETWEEN_STEPS: Final = 3.0
"""What is quicker needs no line at every tenth."""
_SECONDS_BETWEEN_DRAWINGS: Final = 0.1
_SECONDS_BETWEEN_LINES: Final = 10.0
_SAMPLES: Final = 100

_is_shown = False
_current: "Progress | None" = None


@contextmanager
def shown(yes: bool = True) -> Iterator[None]:
    """For its time progress is shown, or not."""
    global _is_shown
    before, _is_shown = _is_shown, yes
    try:
        yield
    finally:
        _is_shown = before
        if _current is not None and not before:  # an error has ended what was going on
            _current.close()


def silence() -> None:
    """Show nothing up to the end of the surrounding `shown`."""
    global _is_shown
    _is_shown = False


class Remaining:
    """An estimate of the seconds that are left, from the speed of the latter half of what is done.

    The first part is often slow: code is compiled, files come from a disk.
    """

    def __init__(self, total: int | None, done: int = 0, clock: Callable[[], float] = time.monotonic) -> None:
        self.total, self._first, self._clock = total, done, clock
        self._seen = [(done, clock())]

    def seconds(self, done: int) -> float | None:
        """None while nothing is known."""
        if self.total is None or done <= self._first:
            return None
        half, now = self._first + (done - self._first) / 2, self._clock()
        while len(self._seen) > 1 and self._seen[1][0] <= half:
            self._seen.pop(0)
        before, then = self._seen[0]
        if done - self._seen[-1][0] >= max(self.total // _SAMPLES, 1):
            self._seen.append((done, now))
        return (now - then) / max(done - before, 1) * max(self.total - done, 0)

    def words(self, done: int) -> str:
        """Empty while nothing is known."""
        left = self.seconds(done)
        return "" if left is None else f"about {seconds_text(max(left, 1.0) if left < 10 else left)} left"


class Progress:
    """One thing that lasts, as a context. It is called with how much is done; `total` is None where nobody knows it.

    Inside of another one it is silent.
    """

    def __init__(
        self, what: str, total: int | None = None, unit: str = "", clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._what, self._total, self._unit, self._clock = visible_line(what), total, unit, clock
        self.done = 0

    def __enter__(self) -> Self:
        global _current
        self._speaks = _is_shown and _current is None
        if self._speaks:
            _current = self
        self._remaining = Remaining(self._total, clock=self._clock)
        self._last = self._clock()
        self._step = 0
        self._bar = _bar(self._what, self._total) if self._speaks and _on_terminal() else None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        global _current
        if _current is self:
            _current = None
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, done: int, what: str | None = None) -> None:
        """`what`: a new name of the part that is being done."""
        self.done = max(done, self.done)
        self._what = self._what if what is None else visible_line(what)
        if not self._speaks:
            return
        now = self._clock()
        if self._bar is not None:
            if now - self._last >= _SECONDS_BETWEEN_DRAWINGS:
                self._last = now
                self._bar.update(self._bar.task_ids[0], completed=self.done, description=self._what, left=self._told())
        elif self._line_is_due(now - self._last):
            self._last = now
            say(f"{self._what}: {self._told()}")

    def advance(self, by: int = 1) -> None:
        self(self.done + by)

    def _line_is_due(self, seconds: float) -> bool:
        step = _STEPS * self.done // self._total if self._total else 0
        due = seconds >= _SECONDS_WITHOUT_A_LINE or (self._step < step < _STEPS and seconds >= _SECONDS_BETWEEN_STEPS)
        self._step = step if due else self._step
        return due

    def _told(self) -> str:
        left = self._remaining.words(self.done)
        if not self._total:
            return f"{self.done:,} {self._unit}".rstrip()
        return f"{min(100 * self.done // self._total, 100)} %" + (f", {left}" if left else "")


class Lines:
    """Lines now and then on work of many parts, on terminals too. It is called with a part and how far that is."""

    def __init__(self, quiet: bool = False, clock: Callable[[], float] = time.monotonic) -> None:
        self._quiet, self._clock, self._last = quiet, clock, clock()
        self._part, self._remaining = "", Remaining(None, clock=clock)

    def __call__(self, part: str, done: int = 0, of: int | None = None) -> None:
        """`of`: None for a part that is told by its name alone."""
        if part != self._part:
            self._part, self._remaining = part, Remaining(of, done, self._clock)
        left = self._remaining.words(done)
        if not self._quiet and _is_shown and self._clock() - self._last >= _SECONDS_BETWEEN_LINES:
            self._last = self._clock()
            counted = "" if of is None else f": {done:,} of {of:,}"
            say(part + counted + (f", {left}" if left else ""))


def tracked(items: Iterable[T], what: str) -> Iterator[T]:
    """The same items, with progress."""
    with Progress(what, len(items) if isinstance(items, Sized) else None) as progress:
        for item in items:
            yield item
            progress.advance()


@contextmanager
def reading(path: Path) -> Iterator[Progress]:
    """For readers of large files: to be called with how many bytes of the file have been read."""
    try:
        size: int | None = path.stat().st_size
    except (OSError, ValueError):  # whoever opens it says why it cannot
        size = None
    with Progress(f"reading {path.name}", size, "bytes") as progress:
        yield progress


def _on_terminal() -> bool:
    return bool(sys.stdout.isatty()) and os.environ.get("TERM") not in (None, "", "dumb")


def _bar(what: str, total: int | None) -> "Bar":
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bar

    what_for, left = (TextColumn(text, markup=False) for text in ("{task.description}", "{task.fields[left]}"))
    bar = Bar(what_for, BarColumn(), left, console=Console(markup=False, emoji=False, highlight=False), transient=True)
    bar.add_task(what, total=total, left="")
    bar.start()
    return bar
