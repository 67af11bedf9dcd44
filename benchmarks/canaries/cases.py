"""The code as it is and the code with each planted fault."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from benchmarks.canaries.insecure import (
    InsecureDoubleClip,
    InsecureHalfNoise,
    InsecureReusedNoise,
    InsecureSeededNoise,
    InsecureSeparateClips,
    InsecureTouchedRows,
)
from benchmarks.canaries.watching import Clipping
from secure_kg.models.base import EmbeddingModel
from secure_kg.privacy.draws.noise import NoiseSource
from secure_kg.privacy.mechanisms.interface import Mechanism

Test = Literal["canaries", "steps", "runs"]


@dataclass(frozen=True, slots=True)
class Case:
    """One piece of code to audit. What is None is the real code's."""

    name: str
    found_by: Test | None
    """The test that has to find the fault; None: there is none to find."""
    mechanism: Callable[[Mechanism], Mechanism] | None = None
    clipping: Callable[[EmbeddingModel, float], Clipping] | None = None
    """By model and clip."""
    source: Callable[[], NoiseSource] | None = None


CASES: Final = (
    Case("the code as it is", None),
    Case("half the noise", "canaries", mechanism=InsecureHalfNoise),
    Case("double clip", "canaries", clipping=InsecureDoubleClip),
    Case("separate clips", "canaries", clipping=InsecureSeparateClips),
    Case("noise on touched rows only", "canaries", mechanism=InsecureTouchedRows),
    Case("reused noise", "steps", source=InsecureReusedNoise),
    Case("seeded noise", "runs", source=InsecureSeededNoise),
)
