"""A source of discrete Gaussian noise that a seed repeats: for tests only. Nothing that it is added to is private."""

import numpy as np
import numpy.typing as npt


class InsecureSeededNoise:
    """Rounded normal draws; remembers what was asked of it."""

    def __init__(self, seed: int = 0, scale: float = 1.0) -> None:
        self._random, self._scale = np.random.default_rng(seed), scale
        self.asked: list[tuple[float, tuple[int, ...]]] = []

    def integers(self, sigma: float, shape: tuple[int, ...]) -> npt.NDArray[np.int64]:
        self.asked.append((sigma, shape))
        return np.rint(self._scale * self._random.normal(0.0, sigma, shape)).astype(np.int64)


class InsecureNoNoise(InsecureSeededNoise):
    """Zeros: what a mechanism does without its noise."""

    def __init__(self) -> None:
        super().__init__(0, 0.0)
