"""Uploads of one round, decoded as if they were in clear: what a server takes for a client's rows.

Attacker: the server. It has the run's public settings and the messages it received. Of a plain sum (`ClearInput`) it
          decodes the fixed point and reads from the counts which rows the client contributed. A masked upload
          (`MaskedInput`) it decodes in the very same way: it tries, and gets noise.
Gains:    rows by position and, where alignment is plain, whose names stand at which position.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from protocols.alignment.plain import ClearNames, ClearUnion, tag_of
from protocols.registry import AGGREGATIONS
from protocols.sums.interface import SumLayout
from protocols.sums.plain import ClearInput
from protocols.sums.secagg.messages import MaskedInput
from protocols.sums.travelling import travelled
from secure_kg.audit.view.read import Observation
from secure_kg.federation.plan.row_sum import Rows
from secure_kg.federation.plan.run_plan import RunPlan
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.federation.plan.strategies import STRATEGIES, Shared
from secure_kg.foundation.errors import UserError
from secure_kg.foundation.seeds import generator

Places = npt.NDArray[np.int64]
"""Positions in the union, shape (n,)."""

Words = npt.NDArray[np.unsignedinteger]
_ROWS: Final = "rows"
_LARGEST: Final = np.uint64(2**63 - 1)


@dataclass(frozen=True, slots=True)
class RowUpload:
    """One client's upload of one round, as the server reads it."""

    client: int
    round: int
    rows: Rows = field(repr=False)
    """[union, width]."""
    counts: npt.NDArray[np.int64] = field(repr=False)
    """[union]: 1 where the client contributed. Under masks: any number."""
    masked: bool

    @property
    def positions(self) -> Places:
        """Where the client has contributed, for all the server can tell.

        Counts other than 0 and 1 are no counts of one client. Then the attacker has no way of telling and takes all.
        """
        if bool((self.counts > 1).any()):
            return np.arange(len(self.counts), dtype=np.int64)
        return np.flatnonzero(self.counts).astype(np.int64)

    def shuffled(self, seed: int) -> "RowUpload":
        """The same rows at positions that have nothing to do with them: what the attack gets by chance."""
        places, rows = self.positions, self.rows.copy()
        order = generator(seed, "shuffled upload", self.client, self.round).permutation(len(places))
        rows[places] = self.rows[places[order]]
        return RowUpload(self.client, self.round, rows, self.counts, self.masked)


@dataclass(frozen=True, slots=True)
class ServerView:
    """What attacks on rows work from: public settings and what the server received. Nothing of it is a client's word
    on the truth; that stands in `secure_kg.attacks.truth`."""

    config: RunConfig
    round: int
    """Of the uploads; 0 if there are none."""
    uploads: dict[int, RowUpload]
    """By client."""
    names: dict[int, tuple[str, ...]]
    """By client: the names it sent in clear. Empty unless alignment was plain."""
    name_at: tuple[str | None, ...]
    """[union]: the name of each position, where the server was told it. Empty unless alignment was plain."""

    @property
    def shared(self) -> Shared | None:
        """Which table the rows belong to."""
        return STRATEGIES[self.config.strategy].shared

    @property
    def masked(self) -> bool:
        return any(upload.masked for upload in self.uploads.values())


def read_view(config: RunConfig, observations: Iterable[Observation], round: int | None = None) -> ServerView:
    """One pass over the messages, of one session or of several after each other; two rounds at most are in memory.

    `round`: whose uploads to take; by default the last complete one, to which everybody who was due contributed, or if
    there is none the last of all.
    """
    chosen, names, tags = _Chosen(config, round), dict[int, tuple[str, ...]](), np.zeros((0, 0), dtype=np.uint8)
    for seen in observations:
        match seen.message:
            case ClearInput() | MaskedInput() as upload if upload.purpose == _ROWS and seen.direction == "received":
                chosen.take(seen.peer, seen.round, upload)
            case ClearNames():
                names[seen.peer] = tuple(seen.message.names)
            case ClearUnion():
                tags = seen.message.tags
    sent = sorted(chosen.uploads.items())
    uploads = {client: decoded_upload(config, client, chosen.round, upload) for client, upload in sent}
    return ServerView(config, chosen.round, uploads, names, _names_at(names, tags))


def upload_layout(config: RunConfig, length: int) -> SumLayout:
    """How the rows in a vector of this length are laid out; all of it follows from public settings."""
    plan = RunPlan(config, config.clients or 1)
    block = plan.aligned_block
    if block is None:
        raise UserError("the transcript has rows, and its run's settings share none")
    possible = AGGREGATIONS[block.aggregation].possible_entries(length)
    unions = [entries // (block.width + 1) for entries in possible if not entries % (block.width + 1)]
    if not unions:
        raise UserError("the transcript has rows of another width than its run's settings")
    return plan.row_layout(block, unions[0])


class _Chosen:
    """The uploads of the round looked for, while messages pass by."""

    def __init__(self, config: RunConfig, round: int | None) -> None:
        self._plan, self._wanted = RunPlan(config, config.clients or 0), round
        self._complete = False
        self._passing: tuple[int, dict[int, ClearInput | MaskedInput]] = (0, {})
        self._best: tuple[int, dict[int, ClearInput | MaskedInput]] = (0, {})

    def take(self, client: int, round: int, upload: ClearInput | MaskedInput) -> None:
        if self._wanted not in (None, round):
            return
        if round != self._passing[0]:
            self._passing = (round, {})
        self._passing[1][client] = upload
        complete = self._due(round) <= self._passing[1].keys()
        if complete or not self._complete:
            self._best, self._complete = self._passing, complete or self._complete

    def _due(self, round: int) -> frozenset[int]:
        return frozenset(int(party) for party in self._plan.participants(round))

    @property
    def round(self) -> int:
        return self._best[0]

    @property
    def uploads(self) -> dict[int, ClearInput | MaskedInput]:
        return self._best[1]


def decoded_upload(config: RunConfig, client: int, round: int, upload: ClearInput | MaskedInput) -> RowUpload:
    """An upload as the server reads it, masked or not."""
    layout, vector = upload_words(config, upload)
    rows = layout.codec.decode(vector[: layout.real_entries]).astype(np.float32)
    last = vector[layout.real_entries : layout.entries]
    counts = np.minimum(last.astype(np.uint64), _LARGEST).astype(np.int64)
    return RowUpload(client, round, rows.reshape(len(counts), -1), counts, isinstance(upload, MaskedInput))


def upload_words(config: RunConfig, upload: ClearInput | MaskedInput) -> tuple[SumLayout, Words]:
    """How the rows of an upload are laid out, and its elements: those of the checks that it may have come last."""
    try:
        vector = travelled(upload.vector, config.ring_bits)
    except ValueError:
        raise UserError("the transcript has rows of another ring than its run's settings") from None
    return upload_layout(config, len(vector)), vector


def _names_at(names: dict[int, tuple[str, ...]], tags: npt.NDArray[np.uint8]) -> tuple[str | None, ...]:
    named = {tag_of(name): name for sent in names.values() for name in sent}
    return tuple(named.get(tag.tobytes()) for tag in tags)
