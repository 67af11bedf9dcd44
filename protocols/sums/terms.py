"""The public parameters of a sum, whatever is added up and whether or not it is masked."""

from dataclasses import dataclass
from typing import Generic, Protocol, TypeAlias, TypeVar

from protocols.foundation.identifiers import PartyId, RoundId
from protocols.primitives.group import Group

SumKey: TypeAlias = tuple[RoundId, str]
"""Round and purpose: no session has two sums with the same."""


class Layout(Protocol):
    """The shape of what is added up: vectors of so many entries in one group."""

    @property
    def group(self) -> Group: ...

    @property
    def entries(self) -> int: ...


L = TypeVar("L", bound=Layout, covariant=True)


@dataclass(frozen=True, slots=True)
class VectorLayout:
    """Bare group elements: tables of names, votes, counts."""

    group: Group
    entries: int


@dataclass(frozen=True, slots=True)
class SumTerms(Generic[L]):
    """Public parameters of one sum; each party derives them from its own configuration."""

    round: RoundId
    purpose: str
    participants: tuple[PartyId, ...]
    """May be more than those who will take part: some may have dropped out already."""
    layout: L
    model: bytes = b""
    """Digest of what a client has applied of all that the server sent it. In a secure sum, clients that have applied
    different things cannot add up. The server's own terms may leave it empty; the plain twin does not look at it."""
    state: bytes = b""
    """A client's commitment to what its contribution depends on (`protocols.sums.secagg.openings`); likewise."""
    announced: bytes = b""
    """What a client has to tell the others of an earlier opening that its record of openings does not have
    (`protocols.sums.secagg.openings.announcement`); likewise."""
    counted: bytes = b""
    """Digest of an earlier round's count of holders that a client goes by in this sum (`protocols.holders.interface`);
    likewise."""

    @property
    def key(self) -> SumKey:
        return self.round, self.purpose
