"""Answers of queries that are known to be true, as kernels take them."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class Known(NamedTuple):
    """Those of query i are all[starts[i] : starts[i] + counts[i]]."""

    starts: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]
    all: npt.NDArray[np.int64]
