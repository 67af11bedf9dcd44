"""Ranks of several answers of one query, counted in its scores."""

import numpy as np
import numpy.typing as npt

from secure_kg.kernels.compiling import compiled

Floats = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int32]
Offsets = npt.NDArray[np.int64]
Ranks = npt.NDArray[np.float64]

_FEW = 12
"""Answers of a query up to which counting each is faster than sorting all scores once."""


@compiled
def rank_answers(scores: Floats, easy: tuple[Offsets, Ids], hard: tuple[Offsets, Ids], ranks: Ranks) -> bool:
    """Ranks of the hard answers of every row of scores [b, n], larger being better; whether all scores are finite.

    Other answers of the query, easy or hard, do not count. Ties are shared: the mean of best and worst rank. The sets
    of row i are entities[starts[i] : starts[i + 1]]; `ranks` has a place for each hard answer. Scores are overwritten.
    """
    poison = np.float32(0)  # becomes NaN where a score is not finite
    for row in range(scores.shape[0]):
        line = scores[row]
        for value in line:
            poison += value * np.float32(0)
        begin, end = hard[0][row], hard[0][row + 1]
        own = line[hard[1][begin:end]]
        for sets in (easy, hard):
            for place in range(sets[0][row], sets[0][row + 1]):
                line[sets[1][place]] = -np.inf
        if end - begin > _FEW:
            line.sort()
            for number in range(end - begin):
                first, last = np.searchsorted(line, own[number]), np.searchsorted(line, own[number], side="right")
                ranks[begin + number] = 1.0 + (len(line) - last) + (last - first) / 2
        else:
            for number in range(end - begin):
                above, level, target = 0, 0, own[number]
                for value in line:
                    above += value > target
                    level += value == target
                ranks[begin + number] = 1.0 + above + level / 2
    return bool(poison == 0)
