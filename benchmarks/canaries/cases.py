"""The code as it is and the code with each planted fault, for every path."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from benchmarks.canaries.insecure import (
    InsecureDoubleClip,
    InsecureLessNoise,
    InsecureQuietChoice,
    InsecureQuietTest,
    InsecureReusedNoise,
    InsecureSeededNoise,
    InsecureSeparateClips,
    InsecureTouchedRows,
)
from benchmarks.canaries.insecure_clients import (
    Bend,
    InsecureReusedShares,
    InsecureTouchedCells,
    no_noise,
    shares_of_all,
)
from benchmarks.canaries.watching import Clipping
from secure_kg.models.base import EmbeddingModel
from secure_kg.privacy.draws.noise import NoiseSource
from secure_kg.privacy.mechanisms.interface import Mechanism

Test = Literal["canaries", "steps", "runs"]
AS_IT_IS: Final = "the code as it is"


@dataclass(frozen=True, slots=True)
class Case:
    """One piece of code to audit. What is None is the real code's."""

    name: str
    found_by: Test | None = None
    """The test that has to find the fault; None: there is none to find, or, of a probe, nothing is asked."""
    probe: bool = False
    """A fault so small that it may stay unseen: run to say how small a fault can be seen."""


@dataclass(frozen=True, slots=True)
class TrainingCase(Case):
    """Of training in one place."""

    mechanism: Callable[[Mechanism], Mechanism] | None = None
    clipping: Callable[[EmbeddingModel, float], Clipping] | None = None
    """By model and clip."""
    source: Callable[[], NoiseSource] | None = None
    samples: Literal["secret", "public", "none"] = "secret"
    """What becomes of Poisson samples: drawn in secret, drawn by the public seed, or accounted for and not drawn."""
    added: float = 1.0
    """The part of the declared noise that is added, as the attacker knows."""


@dataclass(frozen=True, slots=True)
class SessionCase(Case):
    """Of a federation."""

    strategy: str = "all-rows"
    bends: Bend | None = None
    """What becomes of the noise of honest clients."""
    bent: Literal["all", "bystander"] = "all"
    """Whose: of all honest clients, or of the one without canaries."""
    bare_own_rows: bool = False
    """Whether rows that are not shared go without noise."""


def _less(part: float, name: str, *, probe: bool) -> TrainingCase:
    return TrainingCase(
        name,
        None if probe else "canaries",
        probe,
        mechanism=lambda inner: InsecureLessNoise(inner, part),
        added=part,
    )


CENTRAL: Final = (
    TrainingCase(AS_IT_IS),
    _less(0.5, "half the noise", probe=False),
    TrainingCase("double clip", "canaries", clipping=InsecureDoubleClip),
    TrainingCase("separate clips", "canaries", clipping=InsecureSeparateClips),
    TrainingCase("noise on touched rows only", "canaries", mechanism=InsecureTouchedRows),
    TrainingCase("reused noise", "steps", source=InsecureReusedNoise),
    TrainingCase("seeded noise", "runs", source=InsecureSeededNoise),
    _less(0.8, "0.8 of the noise", probe=True),
    _less(0.9, "0.9 of the noise", probe=True),
)
POISSON: Final = (
    TrainingCase(AS_IT_IS),
    _less(0.5, "half the noise", probe=False),
    TrainingCase("full batches accounted for as samples", "canaries", samples="none"),
    TrainingCase("samples by the public seed", "canaries", samples="public"),
    _less(0.8, "0.8 of the noise", probe=True),
)
ADAFEST: Final = (
    TrainingCase(AS_IT_IS),
    TrainingCase("choice without noise", "canaries", source=InsecureQuietChoice),
)
FLAMES: Final = (
    TrainingCase(AS_IT_IS),
    TrainingCase("test without noise", "canaries", source=InsecureQuietTest),
)
FEDERATED: Final = (
    SessionCase(AS_IT_IS),
    SessionCase("shares as if no client were corrupt", "canaries", bends=lambda: shares_of_all),
    SessionCase("no noise from one client", "canaries", bends=lambda: no_noise, bent="bystander"),
    SessionCase("noise of the round before", "steps", bends=InsecureReusedShares.of),
    SessionCase(f"{AS_IT_IS}, fede", strategy="fede"),
    SessionCase("relation rows without noise, fede", "canaries", strategy="fede", bare_own_rows=True),
)
COUNTS: Final = (
    SessionCase(AS_IT_IS, strategy="fede"),
    SessionCase("no noise on empty cells", "canaries", strategy="fede", bends=lambda: InsecureTouchedCells),
)
