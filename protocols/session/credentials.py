"""A client's signing key and the pinned identities of the others: what a client needs against an active server."""

from collections.abc import Mapping
from dataclasses import dataclass

from protocols.foundation.errors import PeerMisbehaved
from protocols.foundation.identifiers import PartyId
from protocols.primitives.identity import IdentityKey, Statement, verify


@dataclass(frozen=True, slots=True)
class Credentials:
    """A client's own signing key and the pinned identities of all clients: needed against an active server."""

    identity: IdentityKey
    directory: Mapping[PartyId, bytes]

    def __post_init__(self) -> None:
        if len(set(self.directory.values())) != len(self.directory):
            raise ValueError("two clients have the same identity key in the key directory")

    def sign(self, statement: Statement) -> bytes:
        return self.identity.sign(statement.encode())

    def check(self, statement: Statement, signature: bytes) -> None:
        """Raise `PeerMisbehaved` unless the statement's party has signed it with its pinned identity."""
        check_signed(self.directory, statement, signature)


def check_signed(directory: Mapping[PartyId, bytes], statement: Statement, signature: bytes) -> None:
    """Raise `PeerMisbehaved` unless the statement's party has signed it with its identity in `directory`."""
    pinned = directory.get(statement.party)
    if pinned is None:
        raise PeerMisbehaved(f"client {statement.party} is not in the key directory")
    try:
        verify(pinned, statement.encode(), signature)
    except PeerMisbehaved:
        raise PeerMisbehaved(f"client {statement.party}'s message is not signed by its pinned identity") from None
