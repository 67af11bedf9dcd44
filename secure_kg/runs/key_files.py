"""A client's identity as files, in the folder that `--keys` names; `launch.keygen` makes them.

    client-K.key    private: PKCS8 PEM without encryption, mode 0600; it never leaves client K
    client-K.toml   public: the client's number and public key
    directory.toml  public: all of them, the same for every client
    client-K.record the record of the sums that client K has helped to open, for all of its runs

Threat model: other users of a client's machine, who may read what the mode of a file lets them read. Misuse: the
directory says whom to trust, so whoever can change it on a client's machine can be anyone to that client.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from protocols.session.credentials import Credentials
from protocols.session.identities import IdentityError, credentials, parse_directory
from secure_kg.data.triples import shown
from secure_kg.foundation.errors import UserError
from secure_kg.foundation.invocation import command

DIRECTORY: Final = "directory.toml"


def private_file(folder: Path, client: int) -> Path:
    return folder / f"client-{client}.key"


def public_file(folder: Path, client: int) -> Path:
    return folder / f"client-{client}.toml"


def record_folder(folder: Path, client: int) -> Path:
    """The place of the record of a client's openings: beside its identity, so that it holds for all its runs."""
    return folder / f"client-{client}.record"


def load_credentials(folder: Path, client: int) -> Credentials:
    """What client `client` signs and checks with, from its private key and the key directory in `folder`.

    `UserError` for files that are missing, malformed or do not fit together, and for a private key that others on
    this machine can read: they may have it already.
    """
    if not folder.is_dir():
        raise UserError(f"--keys {shown(folder)}: no such folder; {command('launch.keygen')} makes it")
    where = folder / DIRECTORY
    text = read_text(where)
    with named(where):
        parse_directory(text)  # here, so that the line names the file that is wrong
    where = private_file(folder, client)
    pem = _read_private(where)
    with named(where):
        return credentials(pem, text, client)


def read_text(path: Path) -> str:
    with _readable(path):
        return path.read_text(encoding="utf-8")


@contextmanager
def named(path: Path) -> Iterator[None]:
    """Say of which file an `IdentityError` speaks."""
    try:
        yield
    except IdentityError as problem:
        raise UserError(f"{shown(path)}: {problem}") from None


def _read_private(path: Path) -> bytes:
    with _readable(path), path.open("rb") as file:
        mode = os.fstat(file.fileno()).st_mode  # of what was opened, not of what the name means a moment later
        if mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise UserError(f"{shown(path)}: others than its owner may use this private key; chmod 600 it")
        return file.read()


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        raise UserError(f"{shown(path)}: cannot be read ({problem.strerror})") from None
    except UnicodeDecodeError:
        raise UserError(f"{shown(path)}: not a text file in UTF-8") from None
