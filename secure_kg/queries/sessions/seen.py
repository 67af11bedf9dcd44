"""Statements that a site has begun a session for, in its private folder: none begins another one, and no asker floods.

A number is written down before the session begins, so that it outlives this process. What is older than the window is
forgotten, and from then on nothing of that time or before is taken: a clock that is set back opens nothing again.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from secure_kg.foundation.errors import UserError
from secure_kg.foundation.parsing import json_of
from secure_kg.foundation.visible import shown
from secure_kg.provisioning.private_files import held, read_private, write_private
from secure_kg.queries.sessions.statement import WINDOW_SECONDS, Statement, StatementRefused

_FILE: Final = "asked.json"


@dataclass(frozen=True, slots=True)
class SeenStatements:
    """The record in `folder`, for one process at a time."""

    folder: Path

    def begin(self, statement: Statement, now: float, most: int) -> None:
        """Note it; `StatementRefused` for one that was seen, is of another time, or is one too many of its asker."""
        if abs(now - statement.time) > WINDOW_SECONDS:
            minutes = WINDOW_SECONDS // 60
            raise StatementRefused(f"a session that was asked for more than {minutes} minutes from now, by its clock")
        with held(self.folder):
            horizon, seen = self._read()
            if statement.time <= horizon or any(number == statement.number for _, _, number in seen):
                raise StatementRefused("a session that was begun before")
            old = int(now) - 2 * WINDOW_SECONDS
            horizon = max([horizon, *(time for time, _, _ in seen if time < old)])
            seen = [one for one in seen if one[0] >= old]
            recent = int(now) - WINDOW_SECONDS
            if sum(asker == statement.asker and time > recent for time, asker, _ in seen) >= most:
                raise StatementRefused(f"{most} sessions of client {statement.asker} in {WINDOW_SECONDS // 60} minutes")
            seen.append((statement.time, statement.asker, statement.number))
            content = {"forgotten": horizon, "seen": seen}
            write_private(self.folder / _FILE, json.dumps(content).encode() + b"\n")

    def _read(self) -> tuple[int, list[tuple[int, int, str]]]:
        path = self.folder / _FILE
        if not path.is_symlink() and not path.exists():
            return 0, []
        try:
            values: Any = json_of(read_private(path))
            found = [(time, asker, number) for time, asker, number in values["seen"]]
            if type(values["forgotten"]) is not int or not all(
                type(time) is int and type(asker) is int and isinstance(number, str) for time, asker, number in found
            ):
                raise ValueError
        except (ValueError, TypeError, KeyError):
            raise UserError(f"{shown(path)}: not a record of sessions; what it stood for could begin again") from None
        return values["forgotten"], found
