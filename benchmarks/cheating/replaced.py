"""A server and an organisation on its side, which takes the number of another one for a second run under one seed."""

from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from benchmarks.cheating.entry import Played
from benchmarks.cheating.meddling import Cheat
from benchmarks.cheating.spoils import NOTHING, Spoils, compared, held_rows, sums_read, total_of
from benchmarks.cheating.stage import VICTIM, Rows, Stage, nations, stage_config
from secure_kg.federation.plan.run_plan import AGREEING_ROUND
from secure_kg.models.shapes import initial_range

_OTHER_SPLIT: Final = 7
"""The seed of the split that the newcomer's graph is of."""


def run_with_a_newcomer(path: Path) -> Played:
    """A job that came to its end, and once more with rows of one number more and another organisation in one place.

    The first sums of both are over the same numbers, and of the same rows to scale but for those of the two. The
    newcomer tells the server its own. Its success: the rows of the organisation that was there before.
    """
    config = stage_config(alignment="plain", rounds=2, checkpoint_every=0)
    done = Stage(path / "done", config)
    done.perform(Cheat())
    graphs = list(done.graphs)
    graphs[VICTIM - 1] = nations(len(graphs), replace(config, seed=_OTHER_SPLIT))[VICTIM - 1]
    wider = replace(config, training=replace(config.training, dim=config.training.dim + 1))
    stage = Stage(path / "wider", wider, graphs, earlier=done)
    stage.replace(VICTIM)
    stage.perform(Cheat())
    spoils = _rows_before(done, stage)
    return Played(stage, spoils.got, spoils.record())


def _rows_before(done: Stage, stage: Stage) -> Spoils:
    """Names are in clear here, so positions are the same in both runs."""
    read = [total_of(sums_read(one, one.last), "rows", AGREEING_ROUND) for one in (done, stage)]
    before, newcomer = (_first_rows(one) for one in (done, stage))
    if read[0] is None or read[1] is None or before is None or newcomer is None:
        return NOTHING
    spans = [initial_range(one.config.training.margin, one.config.training.dim) for one in (done, stage)]
    (places, truth), (known, told) = before, newcomer
    then, now = (one[0].real.reshape(len(one[0].counts), -1).astype(np.float64) for one in read if one is not None)
    now[known] -= told
    left = then - now[:, : then.shape[1]] * (spans[0] / spans[1])
    return compared(left[places], truth, then[places] / np.maximum(read[0][0].counts, 1)[places, None])


def _first_rows(stage: Stage) -> tuple[npt.NDArray[np.int64], Rows] | None:
    """Of whoever has the victim's number, with their positions."""
    trainer = stage.last.trainers.get(VICTIM)
    return held_rows(stage, VICTIM, trainer.put[0]) if trainer is not None and trainer.put else None
