"""The one place that prints. Words of others are shown, and steer no terminal (`visible`)."""

import io
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from secure_kg.foundation.visible import visible, visible_line

if TYPE_CHECKING:
    from rich.table import Table

_NO_TERMINAL: Final = 100
"""Columns where there is no terminal."""


def say(text: str) -> None:
    """One message for the user, on standard output."""
    _write(visible(text))


def _write(text: str) -> None:
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        # What the terminal has no letters for is shown by its number.
        print(text.encode(encoding, "backslashreplace").decode(encoding), flush=True)
    except BrokenPipeError:  # the reader (head, less) has left: what is said no longer matters, the work still does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def fail(text: str) -> None:
    """One line "error: ..." on standard error; line breaks in `text` become blanks."""
    line = visible_line(" ".join(text.splitlines()))
    print(f"error: {line}", file=sys.stderr, flush=True)  # one piece: several ranks may write at once


@contextmanager
def progress_line() -> Iterator[Callable[[str], None]]:
    """Shows the last message on one line of a terminal's standard error, and takes it away at the end. Elsewhere, as
    in a file or a notebook, it shows nothing."""
    if not sys.stderr.isatty():
        yield lambda text: None
        return

    def show(text: str) -> None:
        width = shutil.get_terminal_size().columns - 1
        print(f"\r\x1b[2K{visible_line(text)[:width]}", end="", file=sys.stderr, flush=True)

    try:
        yield show
    finally:
        print("\r\x1b[2K", end="", file=sys.stderr, flush=True)


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str | int]]) -> None:
    """A table on standard output, 100 wide if that is no terminal; whole numbers to the right, thousands separated."""
    from rich.console import Console  # costs more than the rest of a small job's start, so only where it is needed

    # Square brackets in a path are not markup.
    console = Console(markup=False, emoji=False, highlight=False, width=None if sys.stdout.isatty() else _NO_TERMINAL)
    with console.capture() as capture:
        console.print(_drawn(title, columns, rows))
    _write(capture.get().removesuffix("\n"))  # with the styles of a terminal, which are this program's own


def table_text(title: str, columns: Sequence[str], rows: Sequence[Sequence[str | int]]) -> str:
    """The same table as text without styles, for whoever shows it by other means."""
    from rich.console import Console

    out = io.StringIO()
    Console(file=out, markup=False, emoji=False, highlight=False, width=_NO_TERMINAL, color_system=None).print(
        _drawn(title, columns, rows)
    )
    return out.getvalue().removesuffix("\n")


def _drawn(title: str, columns: Sequence[str], rows: Sequence[Sequence[str | int]]) -> "Table":
    from rich.table import Table

    drawn = Table(title=visible_line(title))
    for position, column in enumerate(columns):
        numbers = all(isinstance(row[position], int) for row in rows)
        drawn.add_column(visible_line(column), justify="right" if numbers else "left")
    for row in rows:
        drawn.add_row(*(f"{cell:,}" if isinstance(cell, int) else visible_line(cell) for cell in row))
    return drawn
