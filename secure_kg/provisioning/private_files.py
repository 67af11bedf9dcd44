"""Private files: mode 0600 in a folder of mode 0700, both of this user and no links; refused otherwise.

Threat model: other users of the machine, who may read what the mode of a file lets them read, or put links and files
in the way where a folder lets them. In a folder that only its owner can enter, nobody else can exchange a file between
the check and its use.
"""

import fcntl
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from secure_kg.foundation.errors import UserError
from secure_kg.foundation.visible import shown
from secure_kg.runs.run_folder import write_whole

_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
_LARGEST: Final = 1 << 20
_PATIENCE: Final = 10.0
"""Seconds for which a command waits for another one; each holds a folder for as long as it takes to write files."""


def make_folder(folder: Path) -> None:
    """A new folder of mode 0700, or one that is empty and private already."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700)
    except FileExistsError:
        check_folder(folder)
        if any(folder.iterdir()):
            raise UserError(f"{shown(folder)}: exists already and is not empty; nothing in it was changed") from None
    except (OSError, ValueError) as problem:
        raise UserError(f"{shown(folder)}: cannot be created ({_reason(problem)})") from None


def check_folder(folder: Path) -> None:
    """`UserError` unless `folder` is a folder of this user, no link, which nobody else may enter."""
    try:
        found = folder.lstat()
    except (OSError, ValueError) as problem:
        raise UserError(f"{shown(folder)}: cannot be opened ({_reason(problem)})") from None
    if stat.S_ISLNK(found.st_mode):
        raise UserError(f"{shown(folder)}: a symbolic link; give the folder of private files itself")
    if not stat.S_ISDIR(found.st_mode):
        raise UserError(f"{shown(folder)}: no folder")
    _check_owner(folder, found)
    if found.st_mode & _OTHERS:
        raise UserError(f"{shown(folder)}: others than its owner may enter this folder of private files; chmod 700 it")


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """One command at a time changes what is in the folder: what it has read still holds when it writes."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as problem:
        raise UserError(f"{shown(folder)}: cannot be opened ({_reason(problem)})") from None
    try:
        end = time.monotonic() + _PATIENCE
        while not _locked(descriptor):
            if time.monotonic() > end:
                raise UserError(f"{shown(folder)}: another command is at work in this folder; try again")
            time.sleep(0.02)
        yield
    finally:
        os.close(descriptor)


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def check_private(path: Path) -> None:
    """`UserError` unless `path` is a regular file of this user alone. Its folder was checked before."""
    os.close(_opened(path))


def read_private(path: Path) -> bytes:
    """The content of a private file of reasonable size."""
    descriptor = _opened(path)
    with os.fdopen(descriptor, "rb") as file:
        content = file.read(_LARGEST + 1)
    if len(content) > _LARGEST:
        raise UserError(f"{shown(path)}: larger than any such file is")
    return content


def write_private(path: Path, content: bytes) -> None:
    """The whole file or, after a crash, the old one. A link in its place is replaced, not followed."""
    write_whole(path, content, private=True)


def write_new_private(path: Path, content: bytes) -> None:
    """A file that was not there, whole: a command that is killed leaves no empty key in its place. `UserError` if there
    is one, also of another command at the same time."""
    with held(path.parent):
        if path.is_symlink() or path.exists():
            raise UserError(f"{shown(path)}: cannot be written (File exists)")
        write_private(path, content)


def _opened(path: Path) -> int:
    # Not blocking: a pipe in the file's place would keep the command waiting for somebody to write.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        if path.is_symlink():
            raise UserError(f"{shown(path)}: a symbolic link in place of a private file")
        descriptor = os.open(path, flags)
    except (OSError, ValueError) as problem:
        raise UserError(f"{shown(path)}: cannot be read ({_reason(problem)})") from None
    try:
        found = os.fstat(descriptor)  # of what was opened, not of what the name means a moment later
        if not stat.S_ISREG(found.st_mode):
            raise UserError(f"{shown(path)}: no regular file")
        _check_owner(path, found)
        if found.st_nlink != 1:
            raise UserError(f"{shown(path)}: has a second name elsewhere (a hard link), so it may not be private")
        if found.st_mode & _OTHERS:
            raise UserError(f"{shown(path)}: others than its owner may use this private file; chmod 600 it")
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _check_owner(path: Path, found: os.stat_result) -> None:
    if found.st_uid != os.geteuid():
        raise UserError(f"{shown(path)}: belongs to another user, who can read and change it")


def _reason(problem: OSError | ValueError) -> str:
    return getattr(problem, "strerror", None) or "it is no name of a file"
