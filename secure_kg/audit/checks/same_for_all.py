"""What the server sends to all must be the same for all, and must be what the sums give: rows, unions, totals.

A server that gives one client a model of its own learns from that client's answer alone.
"""

import numpy as np
import numpy.typing as npt

from protocols.identifiers import RoundId
from protocols.plain.union import ClearUnion
from protocols.psu.attempts import UnionPlaces
from protocols.sums import Collected
from protocols.totals import SumTotal
from protocols.transport.tap import frame_hash
from protocols.unions import Union
from secure_kg.audit.checks.base import Check
from secure_kg.audit.findings import Evidence, Finding
from secure_kg.audit.opening import OpenedSum
from secure_kg.audit.read import Observation
from secure_kg.federation.config import RunConfig
from secure_kg.federation.messages import Evaluate, SharedRows, TrainRound
from secure_kg.federation.row_sum import Rows
from secure_kg.federation.shared_table import ReadableTable

_BODY = 32
"""Bytes of a frame's header, which names the round in which something was sent again."""


class SameForAll(Check):
    id = "one-global-model"
    question = "Did clients get different versions of what is meant for all?"

    def __init__(self, config: RunConfig, clients: int) -> None:
        super().__init__(config, clients)
        self._session = self._sent = 0
        self._first: dict[tuple[int, str], tuple[str, int]] = {}
        self._has: dict[int, str] = {}
        """By client: the rows it was sent last."""
        self._different = Evidence()

    def begin_session(self) -> None:
        self._session += 1
        self._has = {}

    def observe(self, observation: Observation) -> None:
        if observation.direction != "sent":
            return
        party, digest = observation.peer, frame_hash(observation.frame[_BODY:])
        match observation.message:
            case SharedRows():
                self._sent += 1
                self._has[party] = digest
            case SumTotal(purpose=purpose, of_round=of_round):
                self._compare(f"sum of {purpose} of round {of_round}", party, digest)
                if purpose == "rows":
                    self._has[party] = digest
            case UnionPlaces(purpose=purpose):
                self._compare(f"places of {purpose}", party, digest)
            case ClearUnion():
                self._compare("the union", party, digest)
            # By what a client has when it begins: which of two versions is the newer one is the server's word.
            case TrainRound() | Evaluate() if party in self._has:
                self._compare(f"rows before {observation.kind} of round {observation.round}", party, self._has[party])

    def _compare(self, what: str, party: int, digest: str) -> None:
        self._sent += 1
        first, other = self._first.setdefault((self._session, what), (digest, party))
        if first != digest:
            self._different.add(f"{what}: client {other} got {first[:12]}, client {party} got {digest[:12]}")

    def findings(self) -> list[Finding]:
        if not self._different:
            return []
        return [
            Finding(
                "different-global-models",
                "high",
                "Clients were sent different versions of what is meant for all",
                self._different.told(),
                "A client that trains from rows made for it alone tells the server more about its own data than the "
                "mean of many would. (In our protocols such clients cannot add up; the sum is lost, not the secret.)",
            )
        ]

    @property
    def seen(self) -> int:
        return self._sent

    def looked_at(self) -> str:
        return f"{self._sent:,} messages, {len(self._first):,} versions expected to be the same for all"


class HonestTotals(Check):
    """The server's own part: what it sends on is what it was given."""

    id = "totals-sent-on"
    question = "Did the server send on other rows or totals than the sums give?"

    def __init__(self, config: RunConfig, clients: int) -> None:
        super().__init__(config, clients)
        self._session = 0
        self._table: ReadableTable | None = None
        self._expected: dict[tuple[int, str], str] = {}
        self._told: dict[tuple[int, str], str] = {}

    def begin_session(self) -> None:
        """A later session begins with rows from a checkpoint, which no transcript shows."""
        self._session += 1
        self._table = None

    def opened(self, total: OpenedSum) -> None:
        if total.vector is None:
            return
        key = self._session, f"sum of {total.purpose} of round {total.round}"
        self._expected[key] = frame_hash(np.ascontiguousarray(total.vector).tobytes())
        if total.purpose == "rows" and total.layout is not None and self._session == 1:
            opened = total.layout.decode(total.vector)
            if self._table is None:
                rows = len(opened.counts)
                self._table = ReadableTable(Union(rows, b""), total.layout.real_entries // max(rows, 1))
            self._table.add(RoundId(total.round), Collected(opened, frozenset()))
            self._expected[self._session, f"rows after round {total.round}"] = _digest(
                self._table.rows, self._table.averaged
            )

    def observe(self, observation: Observation) -> None:
        if observation.direction != "sent":
            return
        match observation.message:
            case SumTotal(purpose=purpose, of_round=of_round, vector=vector):
                key = self._session, f"sum of {purpose} of round {of_round}"
                self._told[key] = frame_hash(np.ascontiguousarray(vector).tobytes())
            case SharedRows(rows=rows, averaged=averaged) if self._session == 1:
                key = self._session, f"rows after round {int(averaged.max(initial=0))}"
                self._told[key] = _digest(rows, averaged)

    @property
    def seen(self) -> int:
        return len(self._told)

    def findings(self) -> list[Finding]:
        wrong = Evidence()
        for (session, what), digest in sorted(self._told.items()):
            expected = self._expected.get((session, what))
            if expected != digest:
                missing = "there is no such sum" if expected is None else "the sum gives something else"
                wrong.add(f"{what}: {missing}")
        if not wrong:
            return []
        return [
            Finding(
                "false-totals",
                "high",
                "The server sent on what no sum gives",
                wrong.told(),
                "Clients went on from rows or totals that are not those of their own contributions. A server can steer "
                "training in this way, and make clients answer to a model of its choice.",
            )
        ]

    def looked_at(self) -> str:
        return f"{len(self._told):,} versions of rows and totals that were sent, {len(self._expected):,} computed"


def _digest(rows: Rows, averaged: npt.NDArray[np.uint32]) -> str:
    return frame_hash(rows.astype("<f4").tobytes() + averaged.astype("<u4").tobytes())
