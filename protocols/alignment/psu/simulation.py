"""One private set union of 2 to 10,000 clients in one process: what it costs each party, part by part.

Parties:     the functions and objects of a real job, one thread, no network; the masked sum is that of
             `protocols.sums.secagg.simulation`, with every message as a frame.
Adversary:   none: everybody is honest, and clients drop out where they are told to.
Not covered: the network; agreeing on the clients' key (`protocols.session.group_key`), once per session; the vote on
             the places (`protocols.alignment.psu.vote`), a sum of two entries.
Cost:        the sum of all parties' work. Memory is O(1) tables and the tags of all clients: a table is written,
             masked, added by the server and dropped before the next client's.

The result is checked against the names themselves: `AssertionError` if a position is wrong.
"""

import secrets
import time
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from protocols.alignment.psu.attempts import Attempt, UnionPlaces
from protocols.alignment.psu.places import places_of
from protocols.alignment.psu.table import PeelFailed, peel_in_rounds, write
from protocols.alignment.psu.tags import tags_of
from protocols.foundation import wire
from protocols.foundation.errors import PeerMisbehaved
from protocols.foundation.identifiers import SETUP, PartyId, SessionId, new_session
from protocols.primitives.group import FieldArray, PrimeField
from protocols.primitives.prg import KEY_BYTES
from protocols.session.group_key import GroupKey
from protocols.session.messages import COMMITMENT_BYTES
from protocols.sums.secagg.params import ThreatModel
from protocols.sums.secagg.server import Step
from protocols.sums.secagg.simulation import Progress, Scenario, SimulationResult, simulate
from protocols.sums.terms import VectorLayout

CLIENT_PARTS: Final = ("tagging", "writing", "masked sum", "lookup")
SERVER_PARTS: Final = ("masked sum", "peeling", "places")

FinalPositions: TypeAlias = Mapping[PartyId, npt.NDArray[np.int64]]


@dataclass(frozen=True, slots=True)
class UnionCost:
    """What one union took. Of a client: the mean over those that did the part; (de)serialisation is in no seconds."""

    union: int
    bound: int
    """Of the first attempt."""
    attempts: int
    survivors: frozenset[PartyId]
    """Whose names are in the union."""
    client_parts: Mapping[str, float]
    """Seconds for each of `CLIENT_PARTS`."""
    server_parts: Mapping[str, float]
    """Seconds for each of `SERVER_PARTS`, for all clients."""
    client_bytes_up: float
    client_bytes_down: float
    places_bytes: int
    """The part of `client_bytes_down` that is the same for all clients: the frame with the places."""

    @property
    def client_seconds(self) -> float:
        return sum(self.client_parts.values())

    @property
    def server_seconds(self) -> float:
        return sum(self.server_parts.values())


def simulate_union(
    names: Mapping[PartyId, Sequence[str]],
    bound: int,
    *,
    model: ThreatModel,
    dropped: Mapping[Step, Collection[PartyId]] | None = None,
    progress: Progress | None = None,
) -> UnionCost:
    """Clients 1 to n, each with its names, align them. `dropped`, `progress`: see
    `protocols.sums.secagg.simulation`.
    """
    if sorted(names) != list(range(1, len(names) + 1)):
        raise ValueError("clients are numbered from 1")
    return _Simulation(names, bound, model, dropped or {}, progress).run()


class _Simulation:
    def __init__(
        self,
        names: Mapping[PartyId, Sequence[str]],
        bound: int,
        model: ThreatModel,
        dropped: Mapping[Step, Collection[PartyId]],
        progress: Progress | None,
    ) -> None:
        self._names, self._bound, self._model, self._progress = names, bound, model, progress
        self._dropped = dropped
        self._session: SessionId = new_session()
        commitment = secrets.token_bytes(COMMITMENT_BYTES)  # stands for one: nobody here is sent a key to check
        self._key = GroupKey(secrets.token_bytes(KEY_BYTES), self._session, commitment)
        self._client: defaultdict[str, float] = defaultdict(float)
        self._server: defaultdict[str, float] = defaultdict(float)
        self._up = self._down = 0.0
        self._tags: dict[PartyId, FieldArray] = {}

    def run(self) -> UnionCost:
        for number in count():
            attempt = Attempt.of(number, self._bound, self._session, self._key.commitment)
            result = self._add_up(attempt)
            answer = self._answer(result, attempt)
            frame = wire.encode(answer, self._session, SETUP)
            self._down += len(frame)
            if answer.size:
                break
        positions = self._look_up(answer, attempt, result.survivors)
        _check(positions, self._names, answer.size)
        return UnionCost(
            answer.size,
            self._bound,
            attempt.number + 1,
            result.survivors,
            {part: self._client[part] for part in CLIENT_PARTS},
            {part: self._server[part] for part in SERVER_PARTS},
            self._up,
            self._down,
            len(frame),
        )

    def _add_up(self, attempt: Attempt) -> SimulationResult:
        """The masked sum of all tables, each written when it is its client's turn."""
        self._tags = {}
        seconds: defaultdict[str, float] = defaultdict(float)

        def table_of(party: PartyId) -> FieldArray:
            with _measured(seconds, "tagging"):
                tags = tags_of(self._names[party], attempt.tag_key(self._key))
            self._tags[party] = tags
            with _measured(seconds, "writing"):
                return write(tags, attempt.layout)

        layout = VectorLayout(PrimeField(), attempt.layout.entries)
        scenario = Scenario(len(self._names), layout, self._model, self._dropped)
        result = simulate(scenario, table_of, self._progress)
        for part in seconds:
            self._client[part] += seconds[part] / len(self._tags)
        self._client["masked sum"] += result.client_seconds
        self._server["masked sum"] += result.server_seconds
        self._up += result.client_bytes_up
        self._down += result.client_bytes_down
        return result

    def _answer(self, result: SimulationResult, attempt: Attempt) -> UnionPlaces:
        try:
            with _measured(self._server, "peeling"):
                peeled = peel_in_rounds(result.total.astype(np.uint64, copy=False), attempt.layout)
            if not peeled.size:
                raise PeerMisbehaved("no client has any name to align")
            with _measured(self._server, "places"):
                return UnionPlaces(attempt.purpose, peeled.size, places_of(peeled, attempt.layout))
        except PeelFailed:
            return attempt.again()

    def _look_up(self, answer: UnionPlaces, attempt: Attempt, survivors: Collection[PartyId]) -> FinalPositions:
        positions = {}
        for party in sorted(survivors):
            started = time.thread_time()
            looked_up = attempt.look_up(answer, self._tags[party])
            self._client["lookup"] += (time.thread_time() - started) / len(survivors)
            if looked_up.objection:
                raise AssertionError(f"client {party}: {looked_up.objection}")
            positions[party] = looked_up.positions.own
        return positions


def _check(positions: FinalPositions, names: Mapping[PartyId, Sequence[str]], size: int) -> None:
    """Names of the union and positions 0 to `size` - 1 correspond one to one, and all clients agree on how."""
    position_of: dict[str, int] = {}
    for party, own in positions.items():
        found = own.tolist()
        if list(map(position_of.setdefault, dict.fromkeys(names[party]), found)) != found:
            raise AssertionError(f"client {party} has other positions for names that others hold too")
    if len(position_of) != size or set(position_of.values()) != set(range(size)):
        raise AssertionError(f"{len(position_of)} names do not fill {size} positions one to one")


@contextmanager
def _measured(ledger: defaultdict[str, float], key: str) -> Iterator[None]:
    started = time.thread_time()
    try:
        yield
    finally:
        ledger[key] += time.thread_time() - started
