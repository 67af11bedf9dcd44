"""Messages between server and clients around the sums."""

import struct
from typing import Any, TypeAlias

import numpy as np

from protocols.foundation import wire
from protocols.foundation.digests import digest
from protocols.foundation.frame_sizes import (
    LONGEST_NUMBER,
    array_bytes,
    binary_bytes,
    frame_bytes,
    number_bytes,
    text_bytes,
)
from protocols.foundation.identifiers import SESSION_BYTES
from protocols.session.channels import SEALED_OVERHEAD_BYTES
from protocols.sums.interface import WIDEST_GRID, MeanGrid
from protocols.sums.travelling import mean_bytes, pack_means, unpack_means
from secure_kg.federation.plan.row_sum import Rows

DIGEST_BYTES = 32
MAX_NAME = 255
MAX_ROUNDS = 1 << 31


@wire.message(0x1001)
class Hello(wire.Message, frozen=True):
    """Client to server, before there is a session: I am here, with these settings."""

    digest: bytes

    def __post_init__(self) -> None:
        wire.require(len(self.digest) == DIGEST_BYTES, "digest of wrong length")


@wire.message(0x1002)
class Welcome(wire.Message, frozen=True):
    """Server to client: the session, the server's settings, and the last round already done."""

    session: bytes
    digest: bytes
    rounds_done: int
    saved_by: list[int]
    """Which clients have written their part of that round's checkpoint; another one was absent then."""
    aligned: bytes
    """Digest of the alignment this run has already; empty if it has none yet."""
    run_name: str
    """Name of the run's folder; a client that was not told a folder keeps its own files under this name."""

    def __post_init__(self) -> None:
        wire.require(len(self.session) == SESSION_BYTES, "session of wrong length")
        wire.require(len(self.digest) == DIGEST_BYTES, "digest of wrong length")
        wire.require(0 <= self.rounds_done < MAX_ROUNDS, "a round out of range")
        wire.require(all(party > 0 for party in self.saved_by), "a party that is no client")
        wire.require(len(self.aligned) in (0, DIGEST_BYTES), "digest of wrong length")
        # The name becomes part of a path: it must not lead anywhere else.
        wire.require(len(self.run_name) <= MAX_NAME and "/" not in self.run_name, "run name that is no file name")
        wire.require(self.run_name.isprintable() and self.run_name.strip(".") != "", "run name that is no file name")

    @property
    def binding(self) -> bytes:
        """Digest of all that says from where a client goes on: clients that were told other things share no keys."""
        numbers = (self.rounds_done, len(self.saved_by), *sorted(self.saved_by))
        return digest(b"secure-kg/welcome/1", self.digest, struct.pack(f"<{len(numbers)}Q", *numbers), self.aligned)


@wire.message(0x100A)
class Ready(wire.Message, frozen=True):
    """Client to server: my data are read and my trainer stands."""


@wire.message(0x100E)
class Aligned(wire.Message, frozen=True):
    """Client to server: I have found my rows among the shared ones, and written down where they are."""


@wire.message(0x1013)
class TrainRound(wire.Message, frozen=True):
    """Server to participant: train, then contribute."""


@wire.message(0x101A)
class CountHolders(wire.Message, frozen=True):
    """Server to participant, before `TrainRound`: holders of rows are counted anew in this round. Without this word the
    last count stands.
    """


@wire.message(0x1014)
class Evaluate(wire.Message, frozen=True):
    """Server to every client: rank your validation part."""


@wire.message(0x100C, wire.MAX_FRAME_BYTES)
class SharedRows(wire.Message, frozen=True):
    """Server to client: the shared rows [union, width] as they are, and in which round each was last averaged [union].

    Zero stands for never: such a row is nobody's but its holders'. Where the server cannot read the sums, clients get
    these instead (`protocols.sums.totals.SumTotal`).
    """

    rows: np.ndarray[Any, Any]
    averaged: np.ndarray[Any, Any]

    def __post_init__(self) -> None:
        wire.require_array(self.rows, "<f4", ndim=2)
        wire.require_array(self.averaged, "<u4", ndim=1)
        wire.require(len(self.rows) == len(self.averaged), "rows and rounds of different number")
        wire.require(bool(np.isfinite(self.rows).all()), "rows that are not finite")


@wire.message(0x1018, wire.MAX_FRAME_BYTES)
class SharedBlock(wire.Message, frozen=True):
    """Server to client: a block that needs no alignment, as it is: `SharedRows` of one row under the block's name."""

    block: str
    rows: np.ndarray[Any, Any]
    averaged: np.ndarray[Any, Any]

    def __post_init__(self) -> None:
        wire.require(0 < len(self.block) <= MAX_NAME, "a block without a proper name")
        wire.require_array(self.rows, "<f4", ndim=2)
        wire.require_array(self.averaged, "<u4", ndim=1)
        wire.require(len(self.rows) == len(self.averaged), "rows and rounds of different number")
        wire.require(bool(np.isfinite(self.rows).all()), "rows that are not finite")


@wire.message(0x1019, wire.MAX_FRAME_BYTES)
class PackedRows(wire.Message, frozen=True):
    """Server to client, of narrow rings: a `SharedRows` or, under a name, a `SharedBlock` whose means lie on a grid.

    `numbers`: how many units each mean is, as a stream of `bits` each (`protocols.sums.travelling`).
    """

    block: str
    width: int
    fraction_bits: int
    bits: int
    numbers: np.ndarray[Any, Any]
    averaged: np.ndarray[Any, Any]

    def __post_init__(self) -> None:
        wire.require(len(self.block) <= MAX_NAME, "a block without a proper name")
        wire.require(1 <= self.bits <= WIDEST_GRID and 0 <= self.fraction_bits <= 52, "no such grid")
        wire.require_array(self.numbers, "<u1", ndim=1)
        wire.require_array(self.averaged, "<u4", ndim=1)
        entries = len(self.averaged) * self.width
        wire.require(self.width > 0 and len(self.numbers) == mean_bytes(entries, self.grid), "rows of another number")
        used = entries * self.bits % 8
        wire.require(not used or not int(self.numbers[-1]) >> used, "bits behind the last row")

    @classmethod
    def of(cls, block: str, rows: Rows, averaged: np.ndarray[Any, Any], grid: MeanGrid) -> "PackedRows":
        return cls(block, rows.shape[1], grid.fraction_bits, grid.bits, pack_means(rows, grid), averaged)

    @property
    def grid(self) -> MeanGrid:
        return MeanGrid(self.fraction_bits, self.bits)

    @property
    def rows(self) -> Rows:
        """[union, width], as they are."""
        means = unpack_means(self.numbers, len(self.averaged) * self.width, self.grid)
        return means.reshape(len(self.averaged), self.width)


AnyRows: TypeAlias = SharedRows | SharedBlock | PackedRows
"""The shared rows of one block as the server reads them."""


def block_named(message: AnyRows) -> str:
    """Which block's; empty: the aligned one's."""
    return "" if isinstance(message, SharedRows) else message.block


@wire.message(0x1015)
class LendTable(wire.Message, frozen=True):
    """Server to client, under secret sums: encrypt the shared rows as you have applied them for the client `to`.

    That one has missed sums that the server no longer keeps, or that were of another session.
    """

    to: int

    def __post_init__(self) -> None:
        wire.require(self.to > 0, "a party that is no client")


@wire.message(0x1016, wire.MAX_FRAME_BYTES)
class LentTable(wire.Message, frozen=True):
    """Client to server, and on to the other client: the table of the client `by`, encrypted for its receiver."""

    by: int
    sealed: bytes

    def __post_init__(self) -> None:
        wire.require(self.by > 0, "a party that is no client")


@wire.message(0x100D)
class Judged(wire.Message, frozen=True):
    """Client to server, where the server cannot read results: whether this evaluation is the best so far.

    `evaluations`: how many this client has seen. The one that has seen most knows best.
    """

    improved: bool
    evaluations: int

    def __post_init__(self) -> None:
        wire.require(self.evaluations > 0, "a verdict without an evaluation")


@wire.message(0x1005)
class Verdict(wire.Message, frozen=True):
    """Server to every client: whether this evaluation is the best so far; if so, keep a copy of your model."""

    improved: bool


@wire.message(0x1006)
class SaveCheckpoint(wire.Message, frozen=True):
    """Server to every client: write down where you are."""


@wire.message(0x1007)
class Saved(wire.Message, frozen=True):
    """Client to server: my part of the checkpoint is on disk."""


@wire.message(0x1017)
class Finish(wire.Message, frozen=True):
    """Server to every client: go back to your best copy, that of `best_round`, and rank your test part.

    Zero: there is no best copy. A client whose copy is of another round takes no part in the sum of results, nor does
    one whose figures are not `wanted`, because the run's results were opened before without it.
    """

    best_round: int
    wanted: bool

    def __post_init__(self) -> None:
        wire.require(self.best_round >= 0, "negative round")


@wire.message(0x1009)
class Done(wire.Message, frozen=True):
    """Client to server: my results are written."""


@wire.message(0x100B)
class Goodbye(wire.Message, frozen=True):
    """Server to every client: the job is over. `complete`: nobody is missing."""

    complete: bool


def shared_rows_bytes(rows: int, width: int) -> int:
    """The size of a `SharedRows` frame."""
    return frame_bytes(array_bytes(rows * width, 4, axes=2), array_bytes(rows, 4))


def shared_block_bytes(name: str, rows: int, width: int) -> int:
    """The size of a `SharedBlock` frame."""
    return frame_bytes(text_bytes(name), array_bytes(rows * width, 4, axes=2), array_bytes(rows, 4))


def packed_rows_bytes(name: str, rows: int, width: int, grid: MeanGrid) -> int:
    """The size of a `PackedRows` frame."""
    numbers = [number_bytes(number) for number in (width, grid.fraction_bits, grid.bits)]
    stream = array_bytes(mean_bytes(rows * width, grid), 1)
    return frame_bytes(text_bytes(name), *numbers, stream, array_bytes(rows, 4))


def lent_table_bytes(rows: int, width: int) -> int:
    """The largest size of a `LentTable` frame: the rows and a round for each of them, encrypted."""
    return frame_bytes(LONGEST_NUMBER, binary_bytes(4 * rows * (width + 1) + SEALED_OVERHEAD_BYTES))
