"""Bytes of each message to the server, counted without sending it.

Lengths follow from the wire format alone (`protocols.foundation.frame_sizes`). The counts are exact for every size; a
test compares them with what really travels. Where numbers of parties stand in a message they have one byte up to 127,
so the counts ask for the numbers and not only for how many there are.

Not covered: what the server sends, and which clients are neighbours in a sparse graph (`protocols.sums.secagg.graph`).
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from protocols.alignment.psu.layout import TableLayout
from protocols.alignment.psu.vote import ENTRIES as VOTE_ENTRIES
from protocols.alignment.psu.vote import PURPOSE as UNION_VOTE
from protocols.foundation.frame_sizes import binary_bytes, frame_bytes, list_head_bytes, map_bytes, text_bytes
from protocols.foundation.identifiers import PartyId
from protocols.holders.interface import PURPOSE as HOLDERS
from protocols.primitives.aead import OVERHEAD_BYTES
from protocols.primitives.identity import SIGNATURE_BYTES
from protocols.primitives.keys import PUBLIC_KEY_BYTES
from protocols.primitives.prg import KEY_BYTES
from protocols.primitives.shamir import SHARE_BYTES
from protocols.session.messages import COMMITMENT_BYTES
from protocols.sums.plain import clear_input_bytes
from protocols.sums.secagg.messages import ANNOUNCED_BYTES, SEALED_SHARES_BYTES, STATE_BYTES, masked_input_bytes

COUNT_BYTES: Final = 4
"""Of an entry of a plain count of holders."""
FIELD_BYTES: Final = 8
"""Of an element of the field in which secret counts and tables of the union are added."""


def clear_input(purpose: str, entries: int, entry_bytes: int) -> dict[str, int]:
    """`protocols.sums.plain`, per step."""
    return {f"input/{purpose}": clear_input_bytes(purpose, entries, entry_bytes)}


@dataclass(frozen=True, slots=True)
class MaskedSum:
    """One sum of `protocols.sums.secagg` as one client sees it, in which everybody has shared keys."""

    purpose: str
    entries: int
    entry_bytes: int
    party: PartyId
    neighbours: frozenset[PartyId]
    dropped: frozenset[PartyId] = frozenset()
    """Those of them that have sent no input."""
    signed: bool = False
    """Against an active server."""
    guarded: bool = False
    """Whether clients commit to the state of their input."""
    announced: bool = False
    """Whether this client has helped to open a sum of the same inputs before, and says so behind its state."""

    def bytes_up(self) -> dict[str, int]:
        """Per step. A dropout changes nothing but whose share travels: one for each neighbour, and the own one."""
        purpose, signature = text_bytes(self.purpose), binary_bytes(SIGNATURE_BYTES if self.signed else 0)
        survivors = (self.neighbours - self.dropped) | {self.party}
        state = (STATE_BYTES if self.guarded else 0) + (ANNOUNCED_BYTES if self.announced else 0)
        steps = {
            "advertise keys": frame_bytes(purpose, binary_bytes(PUBLIC_KEY_BYTES), binary_bytes(0), signature),
            "share keys": frame_bytes(
                purpose,
                map_bytes(self.neighbours, SEALED_SHARES_BYTES),
                binary_bytes(COMMITMENT_BYTES),
                binary_bytes(state),
                signature,
            ),
            "masked input": masked_input_bytes(self.purpose, self.entries, self.entry_bytes),
        }
        if self.signed:
            steps["consistency check"] = frame_bytes(purpose, signature)
        steps["unmasking"] = frame_bytes(
            purpose, map_bytes(self.dropped, SHARE_BYTES), map_bytes(survivors, SHARE_BYTES)
        )
        return {f"{step}/{self.purpose}": size for step, size in steps.items()}


def clear_count(rows: int) -> dict[str, int]:
    """`protocols.holders.plain`, per step."""
    return clear_input(HOLDERS, rows, COUNT_BYTES)


def secret_count(
    rows: int, party: PartyId, neighbours: frozenset[PartyId], least: int = 2, signed: bool = False
) -> MaskedSum:
    """`protocols.holders.secret`: so many entries per row as the bound needs, and the check."""
    return MaskedSum(HOLDERS, rows * (least - 1) ** 2 + 1, FIELD_BYTES, party, neighbours, signed=signed)


def clear_names(names: Collection[str]) -> int:
    """`protocols.alignment.plain`."""
    return frame_bytes(list_head_bytes(len(names)) + sum(map(text_bytes, names)))


def private_union(
    bound: int, party: PartyId, neighbours: frozenset[PartyId], attempt: int = 0, signed: bool = False
) -> MaskedSum:
    """`protocols.alignment.psu`, one attempt for a union of at most `bound` names."""
    entries = TableLayout.for_bound(bound).entries
    return MaskedSum(f"union/{attempt}", entries, FIELD_BYTES, party, neighbours, signed=signed, guarded=True)


def union_vote(party: PartyId, neighbours: frozenset[PartyId], signed: bool = False) -> MaskedSum:
    """`protocols.alignment.psu.vote`: once for a union that was found."""
    return MaskedSum(UNION_VOTE, VOTE_ENTRIES, FIELD_BYTES, party, neighbours, signed=signed)


def channel_advert(signed: bool = False) -> int:
    """Once per session."""
    return frame_bytes(binary_bytes(PUBLIC_KEY_BYTES), binary_bytes(SIGNATURE_BYTES if signed else 0))


def group_key(others: Collection[PartyId]) -> int:
    """Once per session, by the one client that draws it."""
    return frame_bytes(binary_bytes(COMMITMENT_BYTES), map_bytes(others, KEY_BYTES + OVERHEAD_BYTES))
