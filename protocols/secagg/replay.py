"""A masked sum computed again from what its server has recorded: what the server knew, an auditor knows.

The steps are those of `protocols.secagg.server`, on messages that were recorded instead of messages that arrive. Who
was in which step is read from what the server sent at its end, for an answer that came too late stands in a record like
any other. Nothing secret is needed: a server has no secrets, and what it opened was given to it.
"""

from dataclasses import dataclass, field

from protocols.errors import ProtocolError
from protocols.identifiers import PartyId
from protocols.primitives.group import GroupVector
from protocols.secagg.messages import (
    AdvertiseKeys,
    EncryptedShares,
    KeyDirectory,
    MaskedInput,
    ShareKeys,
    SignedSurvivors,
    Survivors,
    SurvivorSignature,
    UnmaskShares,
)
from protocols.secagg.server import SecAggServer
from protocols.secagg.terms import Terms


@dataclass(slots=True)
class RecordedSum:
    """The messages of one sum: those of clients by sender, and what the server told each client."""

    adverts: dict[PartyId, AdvertiseKeys] = field(default_factory=dict)
    directories: dict[PartyId, KeyDirectory] = field(default_factory=dict)
    shares: dict[PartyId, ShareKeys] = field(default_factory=dict)
    relayed: dict[PartyId, EncryptedShares] = field(default_factory=dict)
    inputs: dict[PartyId, MaskedInput] = field(default_factory=dict)
    survivors: dict[PartyId, Survivors] = field(default_factory=dict)
    signatures: dict[PartyId, SurvivorSignature] = field(default_factory=dict)
    signed: dict[PartyId, SignedSurvivors] = field(default_factory=dict)
    openings: dict[PartyId, UnmaskShares] = field(default_factory=dict)

    @property
    def advertised(self) -> frozenset[PartyId]:
        """Who was in the sum after the first step, by what the server made of it."""
        named = {PartyId(peer) for directory in self.directories.values() for peer in directory.mask_keys}
        return frozenset(named | self.directories.keys())

    @property
    def shared(self) -> frozenset[PartyId]:
        named = {PartyId(peer) for relayed in self.relayed.values() for peer in relayed.sealed}
        return frozenset(named | self.relayed.keys())

    @property
    def dropped(self) -> frozenset[PartyId]:
        """Whom the server has named as dropped to anybody."""
        return frozenset(PartyId(peer) for told in self.survivors.values() for peer in told.dropped)

    @property
    def contributors(self) -> frozenset[PartyId]:
        """Whose inputs are in the sum."""
        return (self.shared - self.dropped) if self.survivors else frozenset()

    @property
    def answered(self) -> bool:
        """Whether everybody who was asked has helped to open it."""
        asked = self.signed.keys() if self.signed else self.survivors.keys()
        return bool(asked) and asked <= self.openings.keys()


@dataclass(frozen=True, slots=True)
class OpenedVector:
    """What the server got of a sum, and the secrets it was given on the way."""

    contributors: frozenset[PartyId]
    vector: GroupVector = field(repr=False)
    seeds: dict[PartyId, bytes] = field(repr=False)
    """Of the self masks of the contributors."""
    mask_keys: dict[PartyId, bytes] = field(repr=False)
    """Of clients that dropped out."""


class _Recording(SecAggServer):
    """Keeps the secrets that are rebuilt."""

    def __init__(self, terms: Terms, present: frozenset[PartyId], signed: bool) -> None:
        super().__init__(terms, present, signed)
        self.rebuilt: dict[str, dict[PartyId, bytes]] = {}

    def _rebuild(self, shares: dict[PartyId, dict[int, bytes]], party: PartyId, what: str) -> bytes:
        secret = super()._rebuild(shares, party, what)
        self.rebuilt.setdefault(what, {})[party] = secret
        return secret


def open_again(terms: Terms, recorded: RecordedSum, signed: bool) -> OpenedVector:
    """The sum that the server has opened. `ProtocolError` if these messages open none under these terms."""
    server = _Recording(terms, recorded.advertised, signed)
    try:
        for party in sorted(recorded.advertised):
            server.receive(party, recorded.adverts[party])
        server.close()
        for party in sorted(recorded.shared):
            server.receive(party, recorded.shares[party])
        server.close()
        for party in sorted(recorded.contributors):
            server.receive(party, recorded.inputs[party])
        server.close()
        if signed:
            for party in sorted(recorded.signatures.keys() & recorded.contributors):
                server.receive(party, recorded.signatures[party])
            server.close()
        for party in sorted(recorded.openings.keys() & server.awaited):
            server.receive(party, recorded.openings[party])
        server.close()
    except KeyError as missing:
        raise ProtocolError(f"a message of client {missing} is not in the record") from None
    seeds, mask_keys = (server.rebuilt.get(what, {}) for what in ("self mask", "mask key"))
    return OpenedVector(server.survivors, server.total(), seeds, mask_keys)
