"""Errors that end a job: those a user can mend, and faults of this program.

They end a job with one line on standard error and a non-zero exit code.
Their text names places (file, line, option), never contents: no entity, relation or value of a client's graph. A place
may tell of a client, too: what a server reads of it, `secure_kg.federation.client.reasons` says.
"""

import errno
import traceback
from pathlib import Path
from typing import Final, Self

_NO_STORAGE: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO})


class UserError(Exception):
    """Something the user can mend: a wrong option, a malformed file, a diverged training."""


class DataError(UserError):
    """A data set, a client folder or a split that cannot be used."""


class SettingsError(UserError):
    """Settings that do not fit each other, the machine or the data. The text names settings and numbers of them alone,
    so it may travel to the server."""


class StorageError(UserError):
    """A file of this party that cannot be written: its disk is full, for instance. What was written before stays, and a
    run goes on from it once there is room."""

    @classmethod
    def of(cls, problem: OSError, path: Path | None = None) -> Self:
        """`path`: the file, where the error itself does not name it."""
        return cls(f"{path or problem.filename or 'a file'}: cannot be written ({problem.strerror})")


def storage_error(problem: BaseException) -> StorageError | None:
    """What an error of the system is if it says that a disk takes nothing more."""
    if isinstance(problem, OSError) and problem.errno in _NO_STORAGE:
        return StorageError.of(problem)
    return None


class TrainingDiverged(UserError):
    """Local training produced a value that is not finite."""


class InternalError(Exception):
    """A fault of this program. The text is one line for the user and names the file that has the traceback."""

    @classmethod
    def recorded(cls, problem: BaseException, log: Path) -> Self:
        """Write the traceback of `problem` to `log`."""
        fault = f"internal error ({type(problem).__name__})"
        try:
            log.parent.mkdir(parents=True, exist_ok=True)
            log.write_text("".join(traceback.format_exception(problem)), encoding="utf-8")
        except OSError as trouble:
            return cls(f"{fault}; the details could not be written to {log} ({trouble.strerror})")
        return cls(f"{fault}; the details are in {log}")
