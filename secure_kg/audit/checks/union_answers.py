"""The server's answers to the tables of a private set union: each tag has a position of its own, and none is lost.

The auditor peels each table as the server did. Wrong places that are the same for all put different names into one row;
a failure that is none has clients add up their tables once more, perhaps without one of them.
"""

import numpy as np
import numpy.typing as npt

from protocols.alignment.psu.attempts import UnionPlaces
from protocols.alignment.psu.layout import TableLayout
from protocols.alignment.psu.places import places_of, positions_in
from protocols.alignment.psu.table import PeelFailed, peel_in_rounds
from protocols.foundation.errors import ProtocolError
from protocols.transport.tap import frame_hash
from secure_kg.audit.view.evidence import Check
from secure_kg.audit.view.findings import Evidence, Finding
from secure_kg.audit.view.opening import OpenedSum
from secure_kg.audit.view.read import Observation
from secure_kg.federation.plan.messages import TrainRound
from secure_kg.federation.plan.run_plan import UNION
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.words import counted, named_clients

_Read = tuple[npt.NDArray[np.uint64] | None, TableLayout]
"""The tags [m, 2] of a table, None if it cannot be peeled; and how it is laid out."""


class UnionAnswers(Check):
    id = "union-answers"
    question = "Are there places that are no places, or failed attempts at the union that did not fail?"

    def __init__(self, config: RunConfig, clients: int) -> None:
        super().__init__(config, clients)
        self._session = self._answers = self._names = 0
        self._tables: dict[str, _Read] = {}
        """By purpose, until training begins."""
        self._faults: dict[tuple[str, str], str] = {}
        """By purpose and fingerprint of an answer: what is wrong with it."""
        self._attempts: list[tuple[str, frozenset[int]]] = []
        self._false, self._repeated = Evidence(), Evidence()

    def begin_session(self) -> None:
        self._session += 1
        self._forget()

    def _forget(self) -> None:
        self._tables, self._faults = {}, {}

    def opened(self, total: OpenedSum) -> None:
        if total.attempt is None or total.vector is None or not total.purpose.startswith(UNION):
            return
        self._attempts.append((f"session {self._session}, {total.purpose}", total.contributors))
        layout, tags = total.attempt.layout, None
        try:
            peeled = peel_in_rounds(total.vector.astype(np.uint64, copy=False), layout)
            if peeled.size:
                places_of(peeled, layout)  # fails for weights that a client has chosen instead of drawn
            tags, _ = peeled.in_order()
        except PeelFailed:
            pass
        self._names += len(tags) if tags is not None else 0
        self._tables[total.purpose] = tags, layout

    def observe(self, observation: Observation) -> None:
        match observation.message:
            case UnionPlaces() as answer if observation.direction == "sent":
                self._answers += 1
                self._judge(observation, answer)
            case TrainRound():
                self._forget()

    def _judge(self, observation: Observation, answer: UnionPlaces) -> None:
        where = f"session {self._session}, {answer.purpose}, client {observation.peer}"
        if not answer.size:
            tags, _ = self._tables.get(answer.purpose, (None, None))
            if tags is not None:
                self._repeated.add(f"{where}: told to begin again, though the table gives {len(tags)} names")
            return
        name = answer.purpose, frame_hash(np.ascontiguousarray(answer.places).tobytes() + answer.size.to_bytes(8))
        if name not in self._faults:
            self._faults[name] = self._fault(answer)
        if self._faults[name]:
            self._false.add(f"{where}: {self._faults[name]}")

    def _fault(self, answer: UnionPlaces) -> str:
        if answer.purpose not in self._tables:
            return "places, though no table was opened"
        tags, layout = self._tables[answer.purpose]
        if tags is None:
            return "places, though the table cannot be peeled"
        if answer.size != len(tags):
            return f"a union of {answer.size} names, and the table has {len(tags)}"
        if len(answer.places) != layout.cells:
            return f"{len(answer.places)} places for a table of {layout.cells} cells"
        try:
            positions = positions_in(answer.places, answer.size, tags, layout)
        except (ProtocolError, IndexError) as problem:
            return f"places that cannot be read: {problem}"
        different = len(np.unique(positions))
        return "" if different == len(tags) else f"{len(tags)} names share {different} positions"

    def findings(self) -> list[Finding]:
        found = []
        if self._false:
            found.append(
                Finding(
                    "false-places",
                    "high",
                    "The server sent places that do not give each name a position of its own",
                    self._false.told(),
                    "Names that share a position share a row: what is averaged there belongs to neither. A server can "
                    "choose which names, as far as it can tell their tags apart.",
                )
            )
        if self._repeated:
            found.append(
                Finding(
                    "union-repeated",
                    "high",
                    "The server had the union computed again, though the table could be read",
                    self._repeated.told(),
                    "Each further table tells the size of another union. If a client is missing in one of them, the "
                    "difference is the number of names that only this client holds.",
                )
            )
        return [*found, *self._told_attempts()]

    def _told_attempts(self) -> list[Finding]:
        if len(self._attempts) < 2:
            return []
        differ = len({survivors for _, survivors in self._attempts}) > 1
        evidence = Evidence()
        for name, survivors in self._attempts:
            evidence.add(f"{name}: {named_clients(survivors)}")
        return [
            Finding(
                "union-attempts",
                "medium" if differ else "info",
                f"The union was computed in {len(self._attempts)} attempts"
                + (", over different clients" if differ else ""),
                evidence.told(),
                "A table that is too small, or bad luck, makes another attempt necessary. "
                + (
                    "The sizes of unions over different clients can be compared: the difference is the number of names "
                    "that only those missing hold, as far as a table that failed shows its size."
                    if differ
                    else "Over the same clients it shows nothing new."
                ),
            )
        ]

    @property
    def seen(self) -> int:
        return self._answers

    def looked_at(self) -> str:
        if not self._answers:
            return "no private set union"
        answers, attempts = counted(self._answers, "answer"), counted(len(self._attempts), "attempt")
        return f"{answers} to {attempts}, {counted(self._names, 'name')}"
