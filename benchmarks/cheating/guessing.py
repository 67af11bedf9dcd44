"""A server that looks for guessed names among the first rows: it computes the row of a guess and compares the means.

It follows the protocol in everything else. What it has is the run's seed, which is in everybody's settings, and the
program by which clients draw their first rows.
"""

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from benchmarks.cheating.entry import Played
from benchmarks.cheating.meddling import Cheat
from benchmarks.cheating.spoils import sums_read, total_of
from benchmarks.cheating.stage import Stage, stage_config
from secure_kg.data.graph import ClientGraph
from secure_kg.federation.client.first_rows import first_rows, private_seed
from secure_kg.federation.plan.run_plan import AGREEING_ROUND
from secure_kg.models.shapes import initial_range
from secure_kg.runs.alignment_files import load_aligned, load_positions

INVENTED: Final = 50
_NEAR: Final = 0.01
"""Of the range of first rows: so near, in all eight entries, is a mean of other rows in one of 10^12 cases at most."""

Places = dict[str, int]


def public_seed(seed: int) -> bytes:
    """What first rows could be drawn from if their seed were everybody's."""
    return hashlib.sha256(f"first rows/{seed}".encode()).digest()


def guessed_first_rows(path: Path) -> Played:
    """Its success: that it finds the position of a name that it has guessed, and so knows that somebody holds it."""
    stage = Stage(path, stage_config(rounds=2))
    session, truth = stage.perform(Cheat()), dict[str, int]()
    for number in range(1, len(stage.graphs) + 1):
        truth |= _places(stage, number)
    guesses = [*sorted(truth), *(f"zzz nobody has this {number}" for number in range(INVENTED))]
    read, found = total_of(sums_read(stage, session), "rows", AGREEING_ROUND), dict[str, int]()
    if read is not None:
        total = read[0]
        rows, some = total.real.reshape(len(total.counts), -1), np.flatnonzero(total.counts)
        found = located(guesses, some, rows[some] / total.counts[some, None], stage)
    right = sum(truth.get(name) == place for name, place in found.items())
    figures = {"guesses": len(guesses), "held": len(truth), "found": right, "found_wrongly": len(found) - right}
    return Played(stage, right > 0, {**figures, "rows_read": len(some) if read is not None else 0})


def located(
    guesses: Sequence[str], places: npt.NDArray[np.int64], means: npt.NDArray[np.float64], stage: Stage
) -> Places:
    """Of each guess the position whose mean is the row that the server has computed for it, if there is one."""
    training, found = stage.config.training, Places()
    span = initial_range(training.margin, training.dim)
    for seed in _seeds(stage.config.seed):
        for name, row in zip(guesses, first_rows(guesses, seed, means.shape[1], span), strict=True):
            errors = np.abs(means - row).max(axis=1)
            if errors.min() < _NEAR * span:
                found[name] = int(places[errors.argmin()])
    return found


def _seeds(seed: int) -> Iterator[bytes]:
    """What the server can compute: from the run's seed alone, and as clients do, from a graph that says nothing."""
    yield public_seed(seed)
    none = np.zeros((0, 3), dtype=np.int64)
    yield private_seed(ClientGraph((), (), none, none, none), seed)


def _places(stage: Stage, number: int) -> Places:
    aligned, names = load_aligned(stage.run / "server"), stage.graphs[number - 1].relations
    if aligned is None:
        return {}
    own = load_positions(stage.run / "clients" / str(number), aligned.union.digest, names).own
    return dict(zip(names, own.tolist(), strict=True))
