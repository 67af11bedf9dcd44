"""Faults of clients in a federation, for the audit to find. Each is a wrapper around the real code.

| name | fault |
|---|---|
| `shares_of_all` | shares of noise that add up only if no client is corrupt and none is missing |
| `no_noise` | a client that adds none |
| `InsecureReusedShares` | the noise of the first private round in every later one |
| `InsecureTouchedCells` | noise on cells that are not empty |
| `InsecureBareGrid` | no noise on rows that a client keeps to itself |
| `InsecureClient` | a client whose noise is one of the above |
"""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Self, TypeAlias

import numpy as np
import numpy.typing as npt
from torch import Tensor

from protocols.primitives.fixed_point import FixedPoint
from protocols.primitives.group import RingVector
from protocols.session.client_session import ClientSession
from protocols.session.credentials import Credentials
from protocols.sums.interface import Contribution, ContributionReport, MayOpen, SumClient, SumLayout
from protocols.sums.noise import NO_NOISE, Noise
from protocols.sums.noise_shares import NoiseShares
from protocols.sums.secagg.openings import Openings
from protocols.sums.terms import Layout, SumTerms
from protocols.transport.base import Transport
from secure_kg.federation.client.client import FederationClient
from secure_kg.federation.client.context import ClientContext
from secure_kg.federation.client.states import States
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.learning.learner import Learner
from secure_kg.privacy.draws.noise import Grid, NoiseSource

Bent: TypeAlias = Callable[[Noise], Noise]
"""From the noise of a contribution to what is added in its place."""
Bend: TypeAlias = Callable[[], Bent]
"""Made once for each client and run."""


def shares_of_all(noise: Noise) -> Noise:
    """Each client's share is one n-th of the variance, whoever may be corrupt or missing."""
    return _shares(noise, corrupt=0, dropouts=0)


def no_noise(noise: Noise) -> Noise:
    return NO_NOISE


def _shares(noise: Noise, **changes: int) -> NoiseShares:
    if not isinstance(noise, NoiseShares):
        raise TypeError("the fault is one of noise in shares")
    return dataclasses.replace(noise, **changes)  # type: ignore[arg-type]


class _Wrapped(Noise):
    """As the noise that it wraps, but for what is added."""

    def __init__(self, inner: Noise) -> None:
        self.inner = inner

    @property
    def bound(self) -> float:
        return self.inner.bound

    def add_to(self, vector: RingVector, codec: FixedPoint, terms: SumTerms[Layout]) -> None:
        raise NotImplementedError

    def drawn(self, vector: RingVector, codec: FixedPoint, terms: SumTerms[Layout]) -> npt.NDArray[np.signedinteger]:
        """What the real code would add, in units; the vector stays as it is."""
        noised = vector.copy()
        self.inner.add_to(noised, codec, terms)
        return (noised - vector).view(f"i{vector.itemsize}")


class InsecureTouchedCells(_Wrapped):
    """Leaves entries that are exactly zero without noise."""

    def add_to(self, vector: RingVector, codec: FixedPoint, terms: SumTerms[Layout]) -> None:
        noise: RingVector = np.where(vector == 0, 0, self.drawn(vector, codec, terms)).astype(codec.ring.dtype)
        codec.ring.add_into(vector, noise)


@dataclass(slots=True)
class InsecureReusedShares:
    """Keeps the first draws of a client, and scales them by the deviation that a round asks for."""

    first: tuple[npt.NDArray[np.float64], float] | None = None

    @classmethod
    def of(cls) -> Bent:
        return cls()

    def __call__(self, noise: Noise) -> Noise:
        return _Reused(noise, self)


class _Reused(_Wrapped):
    def __init__(self, inner: Noise, kept: InsecureReusedShares) -> None:
        super().__init__(inner)
        self._kept = kept

    def add_to(self, vector: RingVector, codec: FixedPoint, terms: SumTerms[Layout]) -> None:
        share = _shares(self.inner).share_in(terms.round)
        drawn = self.drawn(vector, codec, terms)
        if self._kept.first is None and drawn.any():
            self._kept.first = drawn.astype(np.float64), share
        if self._kept.first is not None:
            first, before = self._kept.first
            drawn = np.rint(first * (share / before)).astype(drawn.dtype)
        added: RingVector = drawn.astype(codec.ring.dtype)  # modulo the ring, negative numbers included
        codec.ring.add_into(vector, added)


@dataclass(frozen=True, slots=True)
class InsecureBareGrid(Grid):
    """Rounds, and adds nothing."""

    @classmethod
    def like(cls, grid: Grid) -> Self:
        return cls(grid.sensitivity, grid.coordinates)

    def noised(self, values: Tensor, multiplier: float, source: NoiseSource) -> Tensor:
        return (values.double() / self.unit).round() * self.unit


class InsecureClient(FederationClient):
    """`bent` stands between the client's noise and its sums."""

    def __init__(self, config: RunConfig, transport: Transport, clients: int, bent: Bent) -> None:
        super().__init__(config, transport, clients)
        self._bent = bent

    def _open_session(
        self, learner: Learner, folder: Path, states: States, credentials: Credentials | None, openings: Openings
    ) -> ClientContext:
        usual = super()._open_session(learner, folder, states, credentials, openings)
        usual.sums = {name: _BentSums(sums, self._bent) for name, sums in usual.sums.items()}
        return usual


class _BentSums(SumClient):
    def __init__(self, inner: SumClient, bent: Bent) -> None:
        self._inner, self._bent = inner, bent

    def setup(self, session: ClientSession) -> None:
        self._inner.setup(session)

    def prepare(self, session: ClientSession, terms: SumTerms[SumLayout]) -> None:
        self._inner.prepare(session, terms)

    def contribute(
        self,
        session: ClientSession,
        terms: SumTerms[SumLayout],
        contribution: Contribution,
        may_open: MayOpen | None = None,
    ) -> ContributionReport:
        if contribution.noise is not NO_NOISE:
            contribution = dataclasses.replace(contribution, noise=self._bent(contribution.noise))
        return self._inner.contribute(session, terms, contribution, may_open)
