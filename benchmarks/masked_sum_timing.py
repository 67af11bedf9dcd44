"""The measurements behind `benchmarks.secagg`: whole sums, a client's encoding and masking, sharing; each in turns with
the bare cipher and, where it is installed, Flower."""

import argparse
import random
import secrets
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from benchmarks import flower_peer
from protocols.foundation.identifiers import PartyId, new_session
from protocols.primitives.group import MODULUS, Group, GroupVector, Ring
from protocols.primitives.keys import AgreementKey
from protocols.primitives.prg import KEY_BYTES, combine_keystreams
from protocols.primitives.shamir import recombine, split
from protocols.session.pair_secrets import PairSecrets
from protocols.sums.interface import Contribution, SumLayout
from protocols.sums.secagg.client import SecAggClient
from protocols.sums.secagg.params import SumParameters, ThreatModel
from protocols.sums.secagg.server import Step
from protocols.sums.secagg.simulation import PURPOSE, ROUND, Inputs, Scenario, SimulationResult, simulate
from protocols.sums.secagg.states import Ready
from protocols.sums.secagg.terms import BoundTerms
from protocols.sums.terms import SumTerms, VectorLayout
from secure_kg.foundation.progress import Lines

_CHUNK_BYTES: Final = 1 << 19
"""The bare cipher is fastest if what it writes stays in the cache."""
_ZEROS: Final = bytes(_CHUNK_BYTES)
_ENOUGH_SECONDS: Final = 5.0


def bare_keystream(streams: int, length: int) -> float:
    """Seconds for AES-256-CTR alone: `streams` fresh keys, `length` bytes each, into a buffer that is used again."""
    keys = [secrets.token_bytes(KEY_BYTES) for _ in range(streams)]
    buffer = bytearray(_CHUNK_BYTES + 16)
    started = time.perf_counter()
    for key in keys:
        cipher = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()
        for start in range(0, length, _CHUNK_BYTES):
            cipher.update_into(_ZEROS[: length - start], buffer)
    return time.perf_counter() - started


def random_inputs(group: Group, length: int, seed: int) -> Inputs:
    """Uniform inputs, the same for the same seed."""
    limit = 1 << group.bits if isinstance(group, Ring) else MODULUS

    def input_of(party: PartyId) -> GroupVector:
        vector: GroupVector = np.random.default_rng((seed, party)).integers(0, limit, length, dtype=group.dtype)
        return vector

    return input_of


def drop_out(clients: int, fraction: float, seed: int) -> dict[Step, frozenset[PartyId]]:
    """floor(fraction n) clients that share their keys and then drop out: the place that costs the server most."""
    silent = ThreatModel(corrupt=0.0, dropout=fraction).dropouts_of(clients)
    drawn = random.Random(seed).sample(range(1, clients + 1), silent)
    return {Step.MASKED_INPUT: frozenset(PartyId(number) for number in drawn)}


_IN_A_ROW: Final = 3


class MeasuredSum:
    """One simulated sum with its plain twin, and the bare keystream just before and after the server unmasks."""

    def __init__(
        self,
        options: argparse.Namespace,
        parameters: SumParameters,
        model: ThreatModel,
        group: Group,
        tell: Lines,
        number: int,
    ) -> None:
        self._inputs = random_inputs(group, options.dim, options.seed)
        self._group, self._plain = group, group.zeros(options.dim)
        self._tell, self._what = tell, f"sum {number}/{options.repeat}"
        # Long enough to be measured, short next to the sum.
        self._streams = max(1, min(100, (1 << 26) // self._plain.nbytes))
        self._bare: list[float] = []
        dropped = drop_out(options.clients, options.dropout, options.seed)
        scenario = Scenario(options.clients, VectorLayout(group, options.dim), model, dropped, parameters)
        self.result: SimulationResult = simulate(scenario, self._input, self._progress)
        self._measure_bare()
        self.exact = bool(np.array_equal(self.result.total, self._plain))
        close = self.result.steps[-1].server_close_seconds
        self.step_over_keystream = close / self.result.expansions / statistics.fmean(self._bare)

    def _input(self, party: PartyId) -> GroupVector:
        vector = self._inputs(party)
        self._group.add_into(self._plain, vector)  # only survivors are asked for their input
        return vector

    def _progress(self, step: str, done: int, of: int) -> None:
        self._tell(f"{self._what}: {step}", done, of)
        if step == Step.UNMASKING.value and done == of:
            self._measure_bare()

    def _measure_bare(self) -> None:
        self._bare.append(bare_keystream(self._streams, self._plain.nbytes) / self._streams)


@dataclass
class Masking:
    """A client's encoding and masking (`SecAggClient.set_input`), the bare keystream, and Flower's, in turns."""

    parameters: SumParameters
    group: Group
    dim: int
    flower: flower_peer.FlowerPeer | None
    bare: list[float] = field(default_factory=list)
    encode: list[float] = field(default_factory=list)
    mask: list[float] = field(default_factory=list)
    unmask: list[float] = field(default_factory=list)
    flower_seconds: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        parties = tuple(PartyId(number) for number in range(1, self.parameters.participants + 1))
        self.party = parties[len(parties) // 2]  # adds about as many masks as it subtracts
        terms = SumTerms(ROUND, PURPOSE, parties, VectorLayout(self.group, self.dim))
        self._terms = BoundTerms(new_session(), bytes(32), self.parameters, terms)
        self._peers = self._terms.graph.neighbours(self.party)
        self._values = np.random.default_rng(0).normal(0.0, 1.0, self.dim).astype(np.float32)
        self._layout = (
            SumLayout(self.dim, 0, flower_peer.CLIPPING_RANGE, 0, len(parties), self.group.bits)
            if isinstance(self.group, Ring)
            else None
        )
        self._vector = self.group.zeros(self.dim)  # used again every time, as by a client with many rounds
        self._vector[:] = 1
        self._measure_bare()

    @property
    def streams(self) -> int:
        return len(self._peers) + 1

    @property
    def mask_over_keystream(self) -> float:
        return self._over_bare(self.mask)

    @property
    def unmask_over_keystream(self) -> float:
        return self._over_bare(self.unmask)

    def _over_bare(self, seconds: list[float]) -> float:
        around = zip(self.bare, self.bare[1:], strict=False)
        return statistics.median(own / statistics.fmean(pair) for own, pair in zip(seconds, around, strict=True))

    @property
    def flower_speedup(self) -> float | None:
        if not self.flower_seconds:
            return None
        ours = [encode + mask for encode, mask in zip(self.encode, self.mask, strict=True)]
        return statistics.median(theirs / own for theirs, own in zip(self.flower_seconds, ours, strict=True))

    def measure(self) -> None:
        """The best of a few in a row on each side, as is usual for short work: the first finds cold caches."""
        own = [self._encode_and_mask() for _ in range(_IN_A_ROW)]
        self.mask.append(min(mask for _, mask in own))
        if self._layout is not None:
            self.encode.append(min(encode for encode, _ in own))
        self.unmask.append(min(self._unmask() for _ in range(_IN_A_ROW)))
        self._measure_bare()
        if self.flower is not None and self._layout is not None:
            self.flower_seconds.append(min(self._flower(self.flower) for _ in range(_IN_A_ROW)))

    def _encode_and_mask(self) -> tuple[float, float]:
        client = self._ready_client()
        started = time.perf_counter()
        if self._layout is None:  # fixed point is for the rings
            vector = random_inputs(self.group, self.dim, 0)(self.party)
        else:
            contribution = Contribution(self._values, np.zeros(0, dtype=np.int64))
            vector = self._layout.encode(contribution, into=self._vector).vector
        encoded = time.perf_counter()
        client.set_input(vector)
        return encoded - started, time.perf_counter() - encoded

    def _unmask(self) -> float:
        """The server takes as many masks from its sum as a client has added: all of them are its to subtract or add."""
        keys = [secrets.token_bytes(KEY_BYTES) for _ in range(self.streams)]
        return _seconds(lambda: combine_keystreams(self._vector, self.group, subtracted=keys))

    def _flower(self, flower: flower_peer.FlowerPeer) -> float:
        keys = {peer: secrets.token_bytes(KEY_BYTES) for peer in self._peers}
        added = [key for peer, key in keys.items() if peer < self.party]
        subtracted = [key for peer, key in keys.items() if peer > self.party]
        seed = secrets.token_bytes(KEY_BYTES)
        return _seconds(lambda: flower.encode_and_mask(self._values, seed, added, subtracted))

    def _measure_bare(self) -> None:
        length = self.dim * self.group.element_bytes
        self.bare.append(min(bare_keystream(self.streams, length) for _ in range(_IN_A_ROW)))

    def _ready_client(self) -> SecAggClient:
        """A client that waits for its input, with fresh keys in place of agreed ones."""
        channels = PairSecrets(AgreementKey(), {}, self._terms.session)
        client = SecAggClient(self.party, self._terms, channels, None)
        masks = {peer: secrets.token_bytes(KEY_BYTES) for peer in self._peers}
        client.state = Ready(masks, secrets.token_bytes(KEY_BYTES), b"", {})
        return client


@dataclass
class Sharing:
    """Sharing a secret of 32 bytes among a client's neighbourhood and recombining it, and Flower's, in turns."""

    parameters: SumParameters
    flower: flower_peer.FlowerPeer | None
    seconds: list[float] = field(default_factory=list)
    flower_seconds: list[float] = field(default_factory=list)

    def measure(self, number: int) -> None:
        secret = secrets.token_bytes(KEY_BYTES)
        threshold, holders = self.parameters.threshold, self.parameters.degree + 1
        # Other points every time: what is remembered of earlier ones must not help.
        points = range(number, number + holders)

        def ours() -> None:
            shares = split(secret, points, threshold)
            recombine({point: shares[point] for point in points[:threshold]}, threshold)

        self.seconds.append(_seconds(ours))
        # Among a thousand holders Flower takes minutes: one such figure is enough.
        if self.flower is not None and max(self.flower_seconds, default=0.0) < _ENOUGH_SECONDS:
            flower = self.flower
            self.flower_seconds.append(_seconds(lambda: flower.share_and_recombine(secret, threshold, holders)))

    @property
    def flower_speedup(self) -> float | None:
        if not self.flower_seconds:
            return None
        return statistics.median(a / b for a, b in zip(self.flower_seconds, self.seconds, strict=False))


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started
