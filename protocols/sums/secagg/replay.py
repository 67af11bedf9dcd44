"""A masked sum computed again from what its server has recorded: what the server knew, an auditor knows.

The steps are those of `protocols.sums.secagg.server`, on messages that were recorded instead of messages that arrive.
Who was in which step is read from what the server sent at its end, for an answer that came too late stands in a record
like any other. Nothing secret is needed: a server has no secrets, and what it opened was given to it.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields

from protocols.foundation import wire
from protocols.foundation.errors import ProtocolError
from protocols.foundation.identifiers import PartyId
from protocols.primitives.group import GroupVector
from protocols.sums.secagg.messages import (
    STATE_BYTES,
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
from protocols.sums.secagg.server import SecAggServer
from protocols.sums.secagg.terms import BoundTerms


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

    def note(self, party: PartyId, message: wire.Message) -> None:
        """A message from or to a client. Of a client's own ones the first of a kind stands, as at the server."""
        match message:
            case AdvertiseKeys():
                self.adverts.setdefault(party, message)
            case KeyDirectory():
                self.directories[party] = message
            case ShareKeys():
                self.shares.setdefault(party, message)
            case EncryptedShares():
                self.relayed[party] = message
            case MaskedInput():
                self.inputs.setdefault(party, message)
            case Survivors():
                self.survivors[party] = message
            case SurvivorSignature():
                self.signatures.setdefault(party, message)
            case SignedSurvivors():
                self.signed[party] = message
            case UnmaskShares():
                self.openings.setdefault(party, message)

    def state_of(self, party: PartyId) -> bytes:
        """Its commitment to what its input depends on; in records of format 3 and earlier it stands in the advert."""
        shared, advert = self.shares.get(party), self.adverts.get(party)
        state = (shared.state if shared is not None else b"") or (advert.state if advert is not None else b"")
        return state[:STATE_BYTES]

    def copy(self) -> "RecordedSum":
        return RecordedSum(**{one.name: dict(getattr(self, one.name)) for one in fields(self)})

    @property
    def advertised(self) -> frozenset[PartyId]:
        """Who was in the sum after the first step, by what the server made of it."""
        return _taken({to: one.mask_keys for to, one in self.directories.items()})

    @property
    def shared(self) -> frozenset[PartyId]:
        return _taken({to: one.sealed for to, one in self.relayed.items()})

    @property
    def dropped(self) -> frozenset[PartyId]:
        """The clients that the server has named as dropouts to anybody."""
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

    def __init__(self, terms: BoundTerms, present: frozenset[PartyId], signed: bool) -> None:
        super().__init__(terms, present, signed)
        self.rebuilt: dict[str, dict[PartyId, bytes]] = {}

    def _rebuild(self, shares: dict[PartyId, dict[int, bytes]], party: PartyId, what: str) -> bytes:
        secret = super()._rebuild(shares, party, what)
        self.rebuilt.setdefault(what, {})[party] = secret
        return secret


def open_again(terms: BoundTerms, recorded: RecordedSum, signed: bool) -> OpenedVector:
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


@dataclass(frozen=True, slots=True)
class Withheld:
    """A client of a sum whose keys or shares the server withheld from a neighbour in the same sum."""

    of: PartyId
    to: PartyId
    what: str


def withheld(terms: BoundTerms, recorded: RecordedSum) -> Iterator[Withheld]:
    """Keys and shares that were not passed on to everybody for whom they were.

    By the public graph of the sum, and among those whom the server went on with: one that dropped out before a step was
    over is shown to nobody, and one that can no longer be reached is shown to the others all the same.
    """
    graph = terms.graph
    for what, named, answered in (
        ("keys", {to: one.mask_keys.keys() for to, one in recorded.directories.items()}, recorded.adverts.keys()),
        ("shares", {to: one.sealed.keys() for to, one in recorded.relayed.items()}, recorded.shares.keys()),
    ):
        taken = _taken(named) & answered & frozenset(terms.participants)
        for to in sorted(named.keys() & taken):
            for of in sorted(frozenset(graph.neighbours(to)) & taken - named[to]):
                yield Withheld(of, to, what)


def _taken(named: Mapping[PartyId, Iterable[int]]) -> frozenset[PartyId]:
    """Whom the server went on with: those whom it sent something, and those whom it named to anybody."""
    return frozenset(named) | frozenset(PartyId(peer) for peers in named.values() for peer in peers)
