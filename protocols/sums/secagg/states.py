"""States of a client in one masked sum, and what each holds. They hold secrets, and live in memory only.

Parties, adversary, what is revealed, assumed and not covered: see the package, `protocols.sums.secagg`.
"""

from dataclasses import dataclass, field
from typing import TypeAlias

from protocols.foundation.identifiers import PartyId
from protocols.primitives.keys import AgreementKey
from protocols.sums.secagg.messages import UnmaskShares


class _NotSerialised:
    """States hold secrets: they live in memory only."""

    __slots__ = ()

    def __reduce__(self) -> str | tuple[object, ...]:
        raise TypeError("a client's state is not serialised")


@dataclass(frozen=True, slots=True)
class HeldShares(_NotSerialised):
    """What a peer has entrusted to this client. One of the two may leave it, never both."""

    mask_key: bytes = field(repr=False)
    seed: bytes = field(repr=False)


Held: TypeAlias = dict[PartyId, HeldShares]


@dataclass(frozen=True, slots=True)
class KeyAhead(_NotSerialised):
    """A mask key that was advertised before its sum began. It is used for that sum or for none."""

    mask_key: AgreementKey
    terms: bytes
    """Digest of the public terms it was advertised for (`BoundTerms.digest`)."""


@dataclass(frozen=True, slots=True)
class New(_NotSerialised):
    name = "new"


@dataclass(frozen=True, slots=True)
class Advertised(_NotSerialised):
    name = "advertise keys"
    mask_key: AgreementKey


@dataclass(frozen=True, slots=True)
class Shared(_NotSerialised):
    name = "share keys"
    mask_keys: dict[PartyId, bytes]
    """Public ones of the neighbours that advertised, and its own."""
    agreed: dict[PartyId, bytes] = field(repr=False)
    """The secret that each of them and this client's mask key, now forgotten, agree on."""
    seed: bytes = field(repr=False)
    own_seed_share: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Ready(_NotSerialised):
    name = "ready for input"
    masks: dict[PartyId, bytes] = field(repr=False)
    """The key of the mask shared with each peer that sent shares."""
    self_mask: bytes = field(repr=False)
    own_seed_share: bytes = field(repr=False)
    held: Held = field(repr=False)


@dataclass(frozen=True, slots=True)
class Masked(_NotSerialised):
    name = "masked input"
    own_seed_share: bytes = field(repr=False)
    held: Held = field(repr=False)


@dataclass(frozen=True, slots=True)
class Signed(_NotSerialised):
    name = "consistency check"
    survivors: frozenset[PartyId]
    answer: UnmaskShares = field(repr=False)


@dataclass(frozen=True, slots=True)
class Answered(_NotSerialised):
    name = "unmasking"


@dataclass(frozen=True, slots=True)
class Aborted(_NotSerialised):
    name = "aborted"
    reason: str


State: TypeAlias = New | Advertised | Shared | Ready | Masked | Signed | Answered | Aborted
