"""Identities as people exchange them: a private PEM, a small public text for each client, and the key directory.

An active server hands on all messages, so it could give every client keys of its own and read what they encrypt for
each other. Clients therefore sign with identities, and each knows the others' public halves beforehand from the key
directory. This module is text and bytes in and out; files are its caller's business.

    version = 1                     version = 1
    number = 3
    public = "64 hex digits"        [[client]]
    name = "optional"               number, public, name: as on the left

Misuse: a directory is as good as the way it came. One that the server wrote, or whose fingerprints nobody compared
over another channel, stops no active server: it may hold keys the server made. The private PEM is not encrypted:
whoever reads it is this client. A name is what its owner wrote, and proves nothing.
"""

import re
import tomllib
from collections.abc import Iterable, Set
from dataclasses import dataclass, field
from typing import Any, Final

import tomli_w

from protocols.foundation.errors import ProtocolError
from protocols.foundation.identifiers import PartyId
from protocols.primitives.identity import IDENTITY_BYTES, IdentityKey, fingerprint
from protocols.session.credentials import Credentials

VERSION: Final = 1
LARGEST_NUMBER: Final = 2**31 - 1
LONGEST_NAME: Final = 40
_PUBLIC: Final = re.compile(f"[0-9a-f]{{{2 * IDENTITY_BYTES}}}")


class IdentityError(ProtocolError):
    """A key, a public file or a key directory that cannot be used. One line that quotes no private key."""


@dataclass(frozen=True, slots=True)
class Identity:
    """A fresh pair. Write `private_pem` only to a file that nobody but its owner can read, or the pair is spent."""

    private_pem: bytes = field(repr=False)
    public: str
    """64 hex digits."""

    @property
    def fingerprint(self) -> str:
        return fingerprint(bytes.fromhex(self.public))

    def __reduce__(self) -> str | tuple[object, ...]:
        raise TypeError("a private key is not serialised")


@dataclass(frozen=True, slots=True)
class PublicIdentity:
    """What the others may know of one client. Checked when made, so that every text made of it can be read again."""

    number: PartyId
    public: str
    """64 hex digits in lower case: one spelling for each key, so that equal keys are equal texts."""
    name: str | None = None

    def __post_init__(self) -> None:
        number: object = self.number  # its type is only a promise if it comes from a file; true is no number
        if type(number) is not int or not 1 <= number <= LARGEST_NUMBER:
            raise IdentityError(f"'number' must be a whole number from 1 to {LARGEST_NUMBER}")
        if not isinstance(self.public, str) or not _PUBLIC.fullmatch(self.public):
            raise IdentityError(f"'public' must be {2 * IDENTITY_BYTES} hex digits in lower case")
        if self.name is not None:
            # Printable: control characters could redraw the fingerprints on the terminal of whoever compares them.
            if not isinstance(self.name, str) or not self.name.isprintable() or not self.name.strip():
                raise IdentityError("'name' must be printable text")
            if len(self.name) > LONGEST_NAME:
                raise IdentityError(f"'name' must not be longer than {LONGEST_NAME} characters")

    @property
    def fingerprint(self) -> str:
        """For people to compare over another channel."""
        return fingerprint(bytes.fromhex(self.public))


def new_identity() -> Identity:
    """A fresh Ed25519 pair from the operating system's randomness."""
    key = IdentityKey.generate()
    return Identity(key.to_pem(), key.public.hex())


def public_text(client: PublicIdentity) -> str:
    """The public file of one client."""
    return f"version = {VERSION}\n{_entry(client)}"


def parse_public(text: str) -> PublicIdentity:
    """The client that `public_text` wrote; `IdentityError` for anything else."""
    values = _versioned(text)
    if "client" in values:
        raise IdentityError("a key directory, not the public file of one client")
    return _client(values)


def directory_text(clients: Iterable[PublicIdentity]) -> str:
    """The key directory in the order of the numbers: the same clients in any order give the same text."""
    ordered = _distinct(clients)
    return f"version = {VERSION}\n" + "".join(f"\n[[client]]\n{_entry(client)}" for client in ordered)


def parse_directory(text: str) -> tuple[PublicIdentity, ...]:
    """The clients of a key directory in the order of their numbers; `IdentityError` for anything else."""
    values = _versioned(text)
    _check_keys(values, required={"client"})
    tables = values["client"]
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise IdentityError("'client' must be a list of tables [[client]]")
    clients = []
    for position, table in enumerate(tables, start=1):
        try:
            clients.append(_client(table))
        except IdentityError as problem:
            raise IdentityError(f"[[client]] table {position}: {problem}") from None
    return _distinct(clients)


def credentials(private_pem: bytes, directory_text: str, client: int) -> Credentials:
    """What `client` signs and checks with. Refuses a directory in which its own entry is missing or not its key.

    Such a directory was made for another federation or by somebody who does not know this client: no other entry of
    it deserves trust either.
    """
    directory = {entry.number: bytes.fromhex(entry.public) for entry in parse_directory(directory_text)}
    try:
        identity = IdentityKey.from_pem(private_pem)
    except ValueError as problem:
        raise IdentityError(str(problem)) from None
    own = directory.get(PartyId(client))
    if own is None:
        raise IdentityError(f"client {client} is not in the key directory")
    if own != identity.public:
        raise IdentityError(f"the key directory has another public key for client {client} than this private key's")
    return Credentials(identity, directory)


def _entry(client: PublicIdentity) -> str:
    values: dict[str, Any] = {"number": client.number, "public": client.public}
    return tomli_w.dumps(values if client.name is None else values | {"name": client.name})


def _versioned(text: str) -> dict[str, Any]:
    """The table in `text` without its version."""
    if "PRIVATE KEY" in text:
        raise IdentityError("a private key, which its owner must not pass on; the public file ends in .toml")
    try:
        values = tomllib.loads(text)
    except (ValueError, RecursionError):  # numbers of thousands of digits, brackets in brackets
        raise IdentityError("not a TOML file") from None
    version = values.pop("version", None)
    if type(version) is not int or version != VERSION:
        raise IdentityError(f"'version' must be {VERSION}")
    return values


def _client(values: dict[str, Any]) -> PublicIdentity:
    _check_keys(values, required={"number", "public"}, optional={"name"})
    return PublicIdentity(**values)


def _check_keys(values: dict[str, Any], required: Set[str], optional: Set[str] = frozenset()) -> None:
    for key in values:
        if key not in required | optional:
            raise IdentityError(f"unknown key {key!r}")  # !r: a quoted key may hold control characters
    for key in sorted(required - values.keys()):
        raise IdentityError(f"'{key}' is missing")


def _distinct(clients: Iterable[PublicIdentity]) -> tuple[PublicIdentity, ...]:
    """By number. Two clients with one key could pass each other's signatures off as their own."""
    ordered = sorted(clients, key=lambda client: client.number)
    if len(ordered) < 2:
        raise IdentityError("a key directory needs at least two clients")
    numbers: set[PartyId] = set()
    owners: dict[str, PartyId] = {}
    for client in ordered:
        if client.number in numbers:
            raise IdentityError(f"client {client.number} stands there twice")
        if client.public in owners:
            raise IdentityError(f"clients {owners[client.public]} and {client.number} have the same public key")
        numbers.add(client.number)
        owners[client.public] = client.number
    return tuple(ordered)
