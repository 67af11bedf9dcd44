"""A two-sample test: can a trained classifier tell real views of a protocol from simulated ones?

N views of each kind are made with the same public figures and the same inputs. A random forest is trained on one half
of each and judged on the other half, which it has not seen. It is right with probability 1/2 if the two distributions
are the same, whatever it has learned; its accuracy less 1/2, doubled, is its advantage as a distinguisher.

What the interval means. Given the trained forest, the judged views are independent, so the number of right answers is
a sum of independent trials. The interval is that of Clopper and Pearson, exact for the binomial distribution, and by
Hoeffding (1956) wider than needed where the two kinds are judged right with different probabilities. It misses the
forest's true accuracy with probability `ERROR` = 5 * 10^-5 at most. So a protocol whose views cannot be told apart is
called "told apart" once in 20,000 times at most. That holds for one test that was fixed beforehand (features, forest,
number of samples, bound); whoever repeats it until it says something else, or looks at the result before deciding on N,
does another test. The seed fixes inputs, halves and forest. Views do not repeat: their randomness is the operating
system's, as in a real run.

Its upper end bounds the advantage of this forest on these features, and of no other distinguisher. That no efficient
one does better is a theorem under assumptions (`protocols.ideal`), not a measurement.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from protocols.ideal.views import View
from secure_kg.audit.indistinguishability.client_views import ClientExperiment
from secure_kg.audit.indistinguishability.experiments import Experiment
from secure_kg.audit.indistinguishability.view_features import Features, features_of
from secure_kg.foundation.errors import UserError

ERROR: Final = 5e-5
LARGEST: Final = 0.8
"""An interval that reaches beyond this accuracy says too little to be called a result."""
FEWEST: Final = 16
"""Samples of each kind below which even a perfect classifier could not be believed."""
TREES: Final = 200
_MISSING: Final = -2.0
"""Stands for a feature that a view does not have. Counts, shares and correlations are all from -1 up."""

TOLD_APART: Final = "told apart"
NOT_TOLD_APART: Final = "not told apart"
TOO_FEW: Final = "too few samples"

Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Distinction:
    """The result of one test."""

    samples: int
    """Views of each kind; half of them were judged."""
    right: int
    """How many of the `judged` views were put where they belong."""
    judged: int
    lower: float
    upper: float
    telling: tuple[str, ...]
    """The features that the forest has used most, the most used first."""

    @property
    def accuracy(self) -> float:
        return self.right / self.judged

    @property
    def advantage_at_most(self) -> float:
        """Of this classifier, at the interval's confidence."""
        return max(0.0, 2 * self.upper - 1, 1 - 2 * self.lower)

    @property
    def verdict(self) -> str:
        if self.lower > 0.5 or self.upper < 0.5:
            return TOLD_APART
        return NOT_TOLD_APART if self.upper <= LARGEST and self.lower >= 1 - LARGEST else TOO_FEW


def distinguish(real: Sequence[Features], simulated: Sequence[Features], seed: int) -> Distinction:
    """As many real as simulated views, each as features."""
    from sklearn.ensemble import RandomForestClassifier  # takes seconds to import, so only where it is needed

    count = len(real)
    if count != len(simulated):
        raise ValueError(f"{count} real and {len(simulated)} simulated views")
    if count < FEWEST:
        raise UserError(f"{count} samples of each kind are too few: {FEWEST} at least")
    names = sorted({name for found in (*real, *simulated) for name in found})
    rows = _matrix([*real, *simulated], names)
    labels = np.repeat([1, 0], count)
    rng = np.random.default_rng(seed)
    train = np.zeros(2 * count, dtype=np.bool_)
    for start in (0, count):
        train[start + rng.permutation(count)[: count // 2]] = True
    forest = RandomForestClassifier(TREES, max_features=0.3, random_state=seed, n_jobs=1)
    forest.fit(rows[train], labels[train])
    judged = int((~train).sum())
    right = int((forest.predict(rows[~train]) == labels[~train]).sum())
    lower, upper = exact_interval(right, judged, ERROR)
    most = np.argsort(forest.feature_importances_)[::-1][:3]
    return Distinction(count, right, judged, lower, upper, tuple(names[index] for index in most))


def exact_interval(right: int, judged: int, error: float) -> tuple[float, float]:
    """Clopper and Pearson, Biometrika 1934: both ends are missed with probability `error` / 2 at most."""
    from scipy.stats import beta

    lower = 0.0 if right == 0 else float(beta.ppf(error / 2, right, judged - right + 1))
    upper = 1.0 if right == judged else float(beta.ppf(1 - error / 2, right + 1, judged - right))
    return lower, upper


def real_features(
    experiment: Experiment | ClientExperiment, samples: int, progress: Progress = lambda done: None
) -> list[Features]:
    """Of as many sessions, each held anew."""
    if isinstance(experiment, ClientExperiment):
        return _features(experiment.real, samples, progress)
    return _features(_of_views(experiment, experiment.session.view), samples, progress)


def simulated_features(
    experiment: Experiment | ClientExperiment, samples: int, progress: Progress = lambda done: None
) -> list[Features]:
    if isinstance(experiment, ClientExperiment):
        return _features(experiment.simulated, samples, progress)
    return _features(_of_views(experiment, experiment.simulate), samples, progress)


def _of_views(experiment: Experiment, make: Callable[[], View]) -> Callable[[], Features]:
    def features() -> Features:
        view = make()
        return features_of(view, experiment.known(view)) | experiment.more(view)

    return features


def _features(make: Callable[[], Features], samples: int, progress: Progress) -> list[Features]:
    found = []
    for number in range(samples):
        found.append(make())
        progress(number + 1)
    return found


def _matrix(rows: Sequence[Features], names: Sequence[str]) -> npt.NDArray[np.float64]:
    """A feature that a view does not have is `_MISSING`."""
    return np.array([[row.get(name, _MISSING) for name in names] for row in rows])
