"""Peak memory of this process."""

import resource
import sys
from typing import Final

_UNIT: Final = 1 if sys.platform == "darwin" else 1024
"""Bytes in one unit of `ru_maxrss`."""


def peak_memory_mb() -> float:
    """In megabytes (10^6 bytes), with the interpreter and its libraries."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _UNIT / 1e6
