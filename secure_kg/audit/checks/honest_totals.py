"""Check of everything the server sends on: every table and total is what the sums give, in every session.

The auditor adds up the sums as the record goes by and compares what is sent at once. A later session begins with the
tables at the checkpoint that it goes on from. Where the record has no such checkpoint, which is a finding of its own
(`resuming`), the first table sent of each block is taken for it. A sum that the server abandons changes no table, also
if it was opened, which is a finding of its own (`abandoned_sums`).
"""

import numpy as np

from protocols.session.conversation import Abandon
from protocols.sums.totals import SumTotal
from protocols.transport.tap import frame_hash
from secure_kg.audit.view.elements import elements
from secure_kg.audit.view.evidence import Check
from secure_kg.audit.view.findings import Evidence, Finding
from secure_kg.audit.view.lending import Lending
from secure_kg.audit.view.opening import OpenedSum
from secure_kg.audit.view.read import Observation
from secure_kg.audit.view.snapshots import Snapshots
from secure_kg.audit.view.table_again import TableAgain
from secure_kg.federation.plan.blocks import purpose_of
from secure_kg.federation.plan.messages import (
    AnyRows,
    LentTable,
    PackedRows,
    SaveCheckpoint,
    SharedBlock,
    SharedRows,
    Welcome,
)
from secure_kg.federation.plan.run_plan import RunPlan
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.words import counted

_Tables = dict[str, TableAgain | None]
"""By the purpose of their sums. None: not known."""


class HonestTotals(Check):
    id = "totals-sent-on"
    question = "Did the server send on other rows or totals than the sums give?"

    def __init__(self, config: RunConfig, clients: int) -> None:
        super().__init__(config, clients)
        self._session = self._sent = self._computed = 0
        self._tables: _Tables = {}
        self._before: dict[tuple[int, str], TableAgain] = {}
        """By round and purpose of the last sums: the tables without them."""
        self._saved: Snapshots[_Tables] = Snapshots({})
        self._blocks = RunPlan(config, clients).blocks
        self._rows = {block.purpose for block in self._blocks}
        self._greeted = False
        self._totals: dict[tuple[int, str], tuple[str, frozenset[int]]] = {}
        """Of this session, by round and purpose: fingerprint and contributors of the sum."""
        self._lending = Lending(clients, self._blocks)
        self._wrong, self._needless = Evidence(), Evidence()

    def begin_session(self) -> None:
        self._session += 1
        self._greeted, self._tables, self._before, self._totals = False, {}, {}, {}
        self._lending = Lending(self.clients, self._blocks)

    def opened(self, total: OpenedSum) -> None:
        if total.vector is None or total.abandoned:
            return
        self._computed += 1
        digest = frame_hash(np.ascontiguousarray(total.vector).tobytes())
        self._totals[total.round, total.purpose] = digest, total.contributors
        before = self._tables.get(total.purpose, TableAgain())
        if total.purpose in self._rows and total.layout is not None and before is not None:
            table = before.after(total.round, total.layout.decode(total.vector))
            self._tables = {**self._tables, total.purpose: table}
            self._before = {key: one for key, one in self._before.items() if key[0] == total.round}
            self._before[total.round, total.purpose] = before

    def observe(self, observation: Observation) -> None:
        if fault := self._lending.fault_of_request(observation):
            where = f"session {self._session}, round {observation.round}"
            self._needless.add(f"{where}: client {observation.peer} was {fault}")
        self._lending.observe(observation)
        if observation.direction != "sent":
            return
        match observation.message:
            case LentTable() as lent:
                fits = self._lending.reached_its_receiver(observation, lent)
                self._compare(observation, f"table of client {lent.by}", "" if fits else "not what it has lent for it")
            case Welcome(rounds_done=done) if not self._greeted:
                known = self._saved.go_on_from(done)
                self._greeted, self._tables = True, known if known is not None else dict.fromkeys(self._rows)
            case Abandon(purpose=purpose) if (key := (observation.round, purpose)) in self._before:
                self._tables = {**self._tables, purpose: self._before.pop(key)}
            case SaveCheckpoint():
                self._saved.save(observation.round, self._tables)
            case SumTotal() as total:
                self._compare(observation, f"sum of {total.purpose} of round {total.of_round}", self._fault(total))
            case SharedRows() | SharedBlock() | PackedRows() as sent:
                self._compare_table(observation, purpose_of(sent), sent)

    def _compare_table(self, observation: Observation, purpose: str, sent: AnyRows) -> None:
        """A table whose beginning is not known is taken as it is first sent."""
        table = self._tables.get(purpose, TableAgain())
        if table is None:
            table = TableAgain(sent.rows, sent.averaged)
            self._tables = {**self._tables, purpose: table}
        self._compare(observation, purpose, table.fault(sent, observation.round, self.config.clip))

    def _fault(self, total: SumTotal) -> str:
        expected = self._totals.get((total.of_round, total.purpose))
        if expected is None:
            return "there is no such sum"
        digest, contributors = expected
        if contributors != set(total.contributors):
            return "the sum is over other clients"
        vector, _ = elements(total.vector, self.config)
        same = digest == frame_hash(np.ascontiguousarray(vector).tobytes())
        return "" if same else "the sum gives something else"

    def _compare(self, observation: Observation, what: str, fault: str) -> None:
        self._sent += 1
        if fault:
            where = f"session {self._session}, round {observation.round}"
            self._wrong.add(f"{where}, client {observation.peer}, {what}: {fault}")

    @property
    def seen(self) -> int:
        return self._sent

    def findings(self) -> list[Finding]:
        found = []
        if self._wrong:
            found.append(
                Finding(
                    "false-totals",
                    "high",
                    "The server sent on what no sum gives",
                    self._wrong.told(),
                    "Clients were sent rows or totals that are not those of their own contributions. A server can "
                    "steer training in this way, and make clients answer to a model of its choice, unless they refuse.",
                )
            )
        if self._needless:
            found.append(
                Finding(
                    "lent-without-need",
                    "high",
                    "Clients were asked to lend the table to others that had it",
                    self._needless.told(),
                    "What one client lends another is hidden from the server and from an auditor. A server that has a "
                    "client on its side can bring others a table of its choice in this way. (Clients that have applied "
                    "different tables cannot add up; the sum is lost, not the secret.)",
                )
            )
        return found

    def looked_at(self) -> str:
        return f"{counted(self._sent, 'message')} with tables or totals, {counted(self._computed, 'sum')} computed"
