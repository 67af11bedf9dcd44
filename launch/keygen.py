"""Identities of clients as files: `python -m launch.keygen --help`.

    client-K.key    private: PKCS8 PEM without encryption, mode 0600 from the first byte; it never leaves client K
    client-K.toml   public: the client's number and public key
    directory.toml  public: all of them, the same for every client

Threat model: an active server that may put its own keys in between, and other users of a client's machine who may
read what the mode of a file lets them read. Misuse: the directory says whom to trust, so whoever can change it on a
client's machine can be anyone to that client; and one that nobody has compared may already be the server's.
"""

import argparse
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from launch.command_line import OneLineParser, deliver, require_json, run_command
from protocols.foundation.identifiers import PartyId
from protocols.session.identities import (
    LARGEST_NUMBER,
    IdentityError,
    PublicIdentity,
    directory_text,
    new_identity,
    parse_directory,
    parse_public,
    public_text,
)
from secure_kg.data.triples import shown
from secure_kg.foundation.console import say, table
from secure_kg.foundation.errors import UserError
from secure_kg.foundation.invocation import command
from secure_kg.runs.key_files import DIRECTORY, named, private_file, public_file, read_text
from secure_kg.runs.run_folder import write_whole

_MOST_AT_ONCE: Final = 10_000
_DESCRIPTION = """\
Make the identities that a job with --adversary active needs, and put their public halves together.

All messages between clients pass through the server. One that does not keep to the protocol could put
its own keys in between and read what clients encrypt for each other. With --adversary active every client
therefore signs its key adverts and the survivor sets with an Ed25519 identity, and the others know its
public half beforehand from the key directory, which must not come from the server."""

_EXAMPLE = """\
example, in earnest (each client on its own machine; client-K.key never leaves it):
  python -m launch.keygen --client 1 --out keys
  then one of them gathers all clients' public files and everybody gets the result as keys/directory.toml:
  python -m launch.keygen --collect keys/client-1.toml client-2.toml --out keys
  Each client compares the fingerprints with the others over another channel, such as the telephone.

example, to try it out on one machine:
  python -m launch.keygen --clients 5 --out keys

The training job reads keys/client-K.key and keys/directory.toml with --adversary active --keys keys.
Files that exist are never overwritten."""


def main(argv: Sequence[str] | None = None) -> int:
    """0: written. 2: one line on standard error says what to mend."""
    return run_command(lambda: _run(make_parser().parse_args(argv)))


def make_parser() -> argparse.ArgumentParser:
    """The options of this command."""
    parser = OneLineParser(
        prog=command("launch.keygen"),
        usage=f"{command('launch.keygen')} (--client K | --clients N | --collect FILE ...) --out DIR [--json FILE]",
        description=_DESCRIPTION,
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    uses = parser.add_mutually_exclusive_group(required=True)
    uses.add_argument("--client", type=int, metavar="K", help="make the pair of client K, numbered from 1")
    uses.add_argument("--clients", type=int, metavar="N", help="make all pairs and the directory, to try it out")
    uses.add_argument(
        "--collect", type=Path, nargs="+", metavar="FILE", help="put these public files together into a key directory"
    )
    parser.add_argument(
        "--out", required=True, type=Path, metavar="DIR", help="folder; with --collect also a file that ends in .toml"
    )
    parser.add_argument("--json", metavar="FILE", help="write the public halves to FILE; - for standard output")
    return parser


def _run(options: argparse.Namespace) -> int:
    out: Path = options.out
    require_json(options.json)
    if options.collect is not None:
        made = _collect(options.collect, out)
    elif options.client is not None:
        made = _make_one(options.client, out)
    else:
        made = _make_all(options.clients, out)
    clients = [{"number": one.number, "name": one.name, "public": one.public, "fingerprint": one.fingerprint}
               for one in made.clients]  # fmt: skip
    deliver({"out": str(out), "clients": clients}, options.json, lambda _: made.show())
    return 0


@dataclass(frozen=True, slots=True)
class _Made:
    """Public halves that were made or collected, and what is told of them."""

    clients: Sequence[PublicIdentity]
    lines: Sequence[str]
    with_table: bool = True

    def show(self) -> None:
        if self.with_table:
            _table(self.clients)
        for line in self.lines:
            say(line)


def _make_one(number: int, folder: Path) -> _Made:
    if not 1 <= number <= LARGEST_NUMBER:
        raise UserError(f"--client {number}: clients are numbered from 1 to {LARGEST_NUMBER}")
    (client,) = _make([number], folder, with_directory=False)
    lines = (
        f"client {number}'s fingerprint, to compare over another channel: {client.fingerprint}",
        f"{shown(private_file(folder, number))} is private: it must not leave client {number}",
        f"{shown(public_file(folder, number))} is public: pass it on to whoever makes the key directory",
    )
    return _Made([client], lines, with_table=False)


def _make_all(count: int, folder: Path) -> _Made:
    if count < 2:
        raise UserError(f"--clients {count}: at least 2 are needed")
    if count > _MOST_AT_ONCE:
        raise UserError(f"--clients {count}: at most {_MOST_AT_ONCE} at once, to try it out")
    lines = (
        f"written to {shown(folder)}, for trying it out: whoever reads this folder can sign for every client",
        "In earnest every client makes its own pair with --client K and passes on nothing but client-K.toml.",
    )
    return _Made(_make(range(1, count + 1), folder, with_directory=True), lines)


def _collect(files: Sequence[Path], out: Path) -> _Made:
    clients = []
    for path in files:
        text = read_text(path)
        with named(path):
            clients.append(parse_public(text))
    try:
        text = directory_text(clients)
    except IdentityError as problem:
        raise UserError(f"--collect: {problem}") from None
    where = out if out.suffix == ".toml" and not out.is_dir() else out / DIRECTORY
    _write_new({}, {where: text})
    lines = (
        f"written to {shown(where)}: every client needs it as {DIRECTORY} beside its own private key",
        "Before that, compare each fingerprint with the one its client was shown, over another channel.",
    )
    return _Made(list(parse_directory(text)), lines)


def _make(numbers: Iterable[int], folder: Path, with_directory: bool) -> list[PublicIdentity]:
    private: dict[Path, bytes] = {}
    public: dict[Path, str] = {}
    clients = []
    for number in numbers:
        pair = new_identity()
        client = PublicIdentity(PartyId(number), pair.public)
        private[private_file(folder, number)] = pair.private_pem
        public[public_file(folder, number)] = public_text(client)
        clients.append(client)
    if with_directory:
        public[folder / DIRECTORY] = directory_text(clients)
    _write_new(private, public)
    return clients


def _table(clients: Sequence[PublicIdentity]) -> None:
    if any(client.name for client in clients):
        rows = [(str(client.number), client.name or "", client.fingerprint) for client in clients]
        table("key directory", ("client", "name", "fingerprint"), rows)
    else:
        table("key directory", ("client", "fingerprint"), [(str(one.number), one.fingerprint) for one in clients])


# --- files ----------------------------------------------------------------------------------------------------------


def _write_new(private: Mapping[Path, bytes], public: Mapping[Path, str]) -> None:
    """All of these files or none: half a set would keep the mended command from using the same names."""
    for path in (*private, *public):
        if os.path.lexists(path):
            raise UserError(f"{shown(path)}: exists already and is not overwritten")
    for folder in {path.parent for path in (*private, *public)}:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise UserError(f"{shown(folder)}: cannot be created ({problem.strerror})") from None
    made: list[Path] = []
    try:
        # Private files first: each is taken exclusively, so of two commands at once only one goes on to public files.
        for path, pem in private.items():
            _write_private(path, pem, made)
        for path, text in public.items():
            write_whole(path, text.encode())
            made.append(path)
    except BaseException:
        for path in made:
            path.unlink(missing_ok=True)
        raise


def _write_private(path: Path, pem: bytes, made: list[Path]) -> None:
    """Not written and then narrowed: in between, others could open the file and read on."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        made.append(path)
        with os.fdopen(descriptor, "wb") as file:
            file.write(pem)
            file.flush()
            os.fsync(file.fileno())
    except OSError as problem:
        raise UserError(f"{shown(path)}: cannot be written ({problem.strerror})") from None


if __name__ == "__main__":
    sys.exit(main())
