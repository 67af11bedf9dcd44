"""Errors that end a job: those a user can mend, and faults of this program.

They end a job with one line on standard error and a non-zero exit code.
Their text names places (file, line, option), never contents: no entity, relation or value of a client's graph. A place
may tell of a client, too: what a server reads of it, `secure_kg.federation.client.reasons` says.
"""

import traceback
from pathlib import Path
from typing import Self


class UserError(Exception):
    """Something the user can mend: a wrong option, a malformed file, a diverged training."""


class DataError(UserError):
    """A data set, a client folder or a split that cannot be used."""


class SettingsError(UserError):
    """Settings that do not fit each other, the machine or the data. The text names settings and numbers of them alone,
    so it may travel to the server."""


class TrainingDiverged(UserError):
    """Local training produced a value that is not finite."""


class InternalError(Exception):
    """A fault of this program. The text is one line for the user and names the file that has the traceback."""

    @classmethod
    def recorded(cls, problem: BaseException, log: Path) -> Self:
        """Write the traceback of `problem` to `log`."""
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text("".join(traceback.format_exception(problem)), encoding="utf-8")
        return cls(f"internal error ({type(problem).__name__}); the details are in {log}")
