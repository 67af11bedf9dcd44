"""Leaks of known strength: how small one may be before the test of real against simulated views no longer sees it.

A gross control is caught on every view and says little about a test. These leaks grow smaller by steps:

    sessions   with probability s a session is the gross control, else it is sound. If sound views cannot be told from
               simulated ones, the best distinguisher looks for the fault alone and has advantage s, times that of the
               gross control, which is 1 up to 2^-200: the true advantage is known.
    entries    in every session a share s of each upload's entries has no mask. A single view gives that away to
               somebody who looks at these entries (advantage 1 up to 2^-32): what falls with s is how much of it the
               features show.

Of one curve all points are made of the same sound, broken and simulated views, so they are not independent of each
other. Each is a valid test by itself: its views are independent, and so are the coins that decide which are broken.
"""

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np

from benchmarks.insecure_variants import KEYSTREAM_USERS, Substitutions, insecure, substituted
from protocols.primitives.group import Group, GroupVector
from protocols.primitives.prg import combine_keystreams
from secure_kg.audit.indistinguishability.distinguisher import (
    ERROR,
    TOLD_APART,
    Distinction,
    distinguish,
    exact_interval,
    real_features,
    simulated_features,
)
from secure_kg.audit.indistinguishability.experiments import PROTOCOLS, Experiment
from secure_kg.audit.indistinguishability.view_features import Features
from secure_kg.foundation.console import say, table
from secure_kg.foundation.progress import Lines

Family = Literal["sessions", "entries"]


@dataclass(frozen=True)
class Graded:
    """A gross control and the way in which it is made smaller."""

    protocol: str
    variant: str
    family: Family
    strengths: tuple[float, ...]
    """From 1, the gross control, downwards."""

    @property
    def name(self) -> str:
        return f"{self.protocol}, {self.variant}, {self.family}"

    def advantage(self, strength: float) -> float:
        """The best that anybody can have."""
        return strength if self.family == "sessions" else 1.0


_HALVES: Final = tuple(2.0**-step for step in range(6))
GRADED: Final = (
    Graded("secagg", "no-masks", "sessions", _HALVES),
    Graded("secret", "reused-masks", "sessions", _HALVES),
    Graded("psu", "unit-weights", "sessions", _HALVES),
    Graded("secagg", "no-masks", "entries", (1.0, 1 / 4, 1 / 16, 1 / 64)),
)


@dataclass(frozen=True)
class Point:
    strength: float
    advantage: float
    """The true one."""
    found: Distinction

    @property
    def caught(self) -> bool:
        return self.found.verdict == TOLD_APART


@dataclass(frozen=True)
class Curve:
    graded: Graded
    points: tuple[Point, ...]
    """The strongest first."""

    @property
    def least_caught(self) -> float | None:
        """The smallest strength that was caught, with all above it."""
        least = None
        for point in self.points:
            if not point.caught:
                break
            least = point.strength
        return least

    def entry(self) -> dict[str, Any]:
        points = [
            {
                "strength": point.strength,
                "true_advantage": point.advantage,
                "right": point.found.right,
                "judged": point.found.judged,
                "accuracy": point.found.accuracy,
                "lower": point.found.lower,
                "upper": point.found.upper,
                "verdict": point.found.verdict,
            }
            for point in self.points
        ]
        control = {"protocol": self.graded.protocol, "variant": self.graded.variant, "family": self.graded.family}
        return {**control, "least_strength_caught": self.least_caught, "points": points}


def least_advantage_seen(judged: int) -> float:
    """The true advantage from which on the best classifier there is tells apart, if it is as right as expected."""
    needed = next(right for right in range(judged // 2, judged + 1) if exact_interval(right, judged, ERROR)[0] > 0.5)
    return 2 * needed / judged - 1


def show_graded(report: dict[str, Any]) -> None:
    """The curves as a table, and what was caught."""
    rows: list[list[str | int]] = [
        [
            f"{curve['protocol']}, {curve['variant']}",
            curve["family"],
            strength_said(point["strength"]),
            strength_said(point["true_advantage"]),
            f"{point['accuracy']:.3f}",
            f"{point['lower']:.3f}-{point['upper']:.3f}",
            point["verdict"],
        ]
        for curve in report["curves"]
        for point in curve["points"]
    ]
    title = f"leaks of known strength, {report['samples']} samples of each kind"
    table(title, ("control", "leak by", "strength", "true advantage", "accuracy", "interval", "verdict"), rows)
    for curve in report["curves"]:
        least = curve["least_strength_caught"]
        what = "not even at strength 1" if least is None else f"down to strength {strength_said(least)}"
        say(f"{curve['protocol']}, {curve['variant']}, by {curve['family']}: caught {what}")
    say(
        f"with {report['samples']} samples nobody's classifier is believed below a true advantage of "
        f"{report['least_advantage_seen']:.2f}"
    )


def strength_said(strength: float) -> str:
    return "1" if strength == 1 else f"1/{1 / strength:g}"


def graded_report(curves: Sequence[Curve], samples: int) -> dict[str, Any]:
    judged = curves[0].points[0].found.judged
    return {
        "samples": samples,
        "least_advantage_seen": least_advantage_seen(judged),
        "curves": [curve.entry() for curve in curves],
    }


class Gradings:
    """Curves with as many samples each; views that several of them need are made once."""

    def __init__(self, samples: int, seed: int, tell: Lines | None = None) -> None:
        self._samples, self._seed, self._tell = samples, seed, tell or Lines(quiet=True)
        self._made: dict[tuple[str, str], list[Features]] = {}

    def curve(self, graded: Graded) -> Curve:
        experiment = PROTOCOLS[graded.protocol](self._seed)
        simulated = self._views(experiment, "simulated")
        measured = []
        for strength in graded.strengths:
            found = distinguish(self._leaking(experiment, graded, strength), simulated, self._seed)
            measured.append(Point(strength, graded.advantage(strength), found))
        return Curve(graded, tuple(measured))

    def _leaking(self, experiment: Experiment, graded: Graded, strength: float) -> list[Features]:
        if graded.family == "entries" and strength < 1:
            return self._views(experiment, f"{strength:g} of entries unmasked", unmasked_entries(strength))
        gross = self._views(experiment, graded.variant, insecure(graded.variant))
        if strength == 1:
            return gross
        sound = self._views(experiment, "sound")
        # One coin per view for all strengths: the weaker leak is a part of the stronger one.
        coins = np.random.default_rng([self._seed, self._samples]).random(self._samples)
        return [leak if coin < strength else none for coin, leak, none in zip(coins, gross, sound, strict=True)]

    def _views(
        self, experiment: Experiment, kind: str, broken: AbstractContextManager[None] | None = None
    ) -> list[Features]:
        key = experiment.name, kind
        if key not in self._made:
            make = simulated_features if kind == "simulated" else real_features
            with broken or substituted(()):
                self._made[key] = make(
                    experiment,
                    self._samples,
                    lambda done: self._tell(f"{experiment.name}, {kind}", done, self._samples),
                )
        return self._made[key]


def unmasked_entries(share: float) -> AbstractContextManager[None]:
    """The first entries of every vector get no mask, as many as the share says and one at least."""

    def insecure_keystreams(
        vector: GroupVector, group: Group, added: Sequence[bytes], subtracted: Sequence[bytes] = ()
    ) -> None:
        bare = vector[: max(1, math.floor(share * len(vector)))].copy()
        combine_keystreams(vector, group, added, subtracted)
        vector[: len(bare)] = bare

    pieces: Substitutions = tuple((module, "combine_keystreams", insecure_keystreams) for module in KEYSTREAM_USERS)
    return substituted(pieces)
