"""What all parties of one sum must agree on, and the keys and statements that are bound to it.

Every client computes its own terms from its own configuration and record. Whatever differs between two clients (the
session's channel keys, the participants, the parameters, the group, the length, the digest of the global model they
were sent) gives them different keys: shares do not open, signatures do not verify, and masks do not cancel.
"""

import hashlib
import struct
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from protocols.errors import PeerMisbehaved
from protocols.identifiers import SETUP, PartyId, RoundId, SessionId
from protocols.primitives.group import Group
from protocols.primitives.identity import IdentityKey, Statement, verify
from protocols.primitives.keys import KeyContext
from protocols.secagg.graph import MaskingGraph
from protocols.secagg.params import SumParameters

PROTOCOL: Final = "secure-kg/secagg"
VERSION: Final = 2


def digest(*parts: bytes) -> bytes:
    """SHA-256 of length-prefixed parts, so that no two lists of parts give the same input."""
    state = hashlib.sha256()
    for part in parts:
        state.update(struct.pack("<Q", len(part)))
        state.update(part)
    return state.digest()


def encode_parties(parties: Collection[PartyId]) -> bytes:
    return struct.pack(f"<{len(parties)}Q", *sorted(parties))


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


def channel_statement(session: SessionId, party: PartyId, channel_key: bytes) -> Statement:
    return Statement(PROTOCOL, VERSION, session, SETUP, party, "advertise channel", channel_key)


def setup_transcript(session: SessionId, channel_keys: Mapping[PartyId, bytes]) -> bytes:
    """One digest of the set-up as a party saw it. It holds the party's own fresh key, so no old session can return."""
    entries = [struct.pack("<Q", party) + key for party, key in sorted(channel_keys.items())]
    return digest(PROTOCOL.encode(), struct.pack("<Q", VERSION), session, *entries)


@dataclass(frozen=True)
class Terms:
    """One sum. `participants` may be more than those who will take part: some may have dropped out already."""

    session: SessionId
    transcript: bytes
    """Digest of the set-up (`setup_transcript`)."""
    round: RoundId
    purpose: str
    participants: tuple[PartyId, ...]
    parameters: SumParameters
    group: Group
    length: int
    model: bytes = b""
    """Digest of what the server sent everybody for this sum, e.g. the global model; empty if it sent nothing."""

    @property
    def graph(self) -> MaskingGraph:
        """Made anew: it is as large as the sum has participants, and a client needs its own neighbours only."""
        return MaskingGraph(self.participants, self.parameters.degree, self.digest)

    @cached_property
    def digest(self) -> bytes:
        figures = self.parameters
        least = (figures.min_survivors, figures.least_present)
        numbers = (self.round, figures.degree, figures.threshold, *least, self.length)
        return digest(
            self.transcript,
            struct.pack("<6Q", *numbers),
            self.purpose.encode(),
            encode_parties(self.participants),
            self.group.name.encode(),
            self.model,
        )

    def share_context(self, sender: PartyId, receiver: PartyId, mask_keys: Mapping[PartyId, bytes]) -> KeyContext:
        """For the key under which `sender` encrypts shares for `receiver`, and their associated data.

        It holds both mask keys: shares open only between clients that have each other's true key, so that a mask that
        would not cancel is noticed before any input is given.
        """
        return self._context(sender, receiver, "shares", digest(self.digest, mask_keys[sender], mask_keys[receiver]))

    def pairwise_context(self, party: PartyId, peer: PartyId, mask_keys: Mapping[PartyId, bytes]) -> KeyContext:
        """For the mask of a pair; the same for both of them."""
        low, high = sorted((party, peer))
        return self._context(low, high, "pairwise mask", digest(self.digest, mask_keys[low], mask_keys[high]))

    def self_mask_context(self, party: PartyId) -> KeyContext:
        return self._context(party, party, "self mask", self.digest)

    def seed_commitment(self, party: PartyId, seed: bytes) -> bytes:
        """Binding by collision resistance, hiding because the seed has 256 bits."""
        return digest(b"seed commitment", self.digest, struct.pack("<Q", party), seed)

    def peers_digest(self, party: PartyId, peers: Collection[PartyId]) -> bytes:
        """Of those with whom `party` shares masks."""
        return digest(b"peers", self.digest, struct.pack("<Q", party), encode_parties(peers))

    def advert_statement(self, party: PartyId, mask_key: bytes) -> Statement:
        return self._statement(party, "advertise keys", digest(self.digest, mask_key))

    def survivors_statement(self, party: PartyId, survivors: Collection[PartyId]) -> Statement:
        return self._statement(party, "consistency check", digest(self.digest, encode_parties(survivors)))

    def _context(self, first: PartyId, second: PartyId, use: str, binding: bytes) -> KeyContext:
        return KeyContext(
            PROTOCOL, VERSION, self.session, self.round, first, second, f"{use}/{self.purpose}", binding=binding
        )

    def _statement(self, party: PartyId, step: str, content: bytes) -> Statement:
        return Statement(PROTOCOL, VERSION, self.session, self.round, party, f"{step}/{self.purpose}", content)
