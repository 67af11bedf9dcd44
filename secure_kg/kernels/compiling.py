"""Compilation of kernels."""

from collections.abc import Callable
from typing import Any, Final, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., Any])

# Sums may be regrouped, or nothing could be vectorised. Not "nnan" and "ninf": a training that diverges must show.
_ALLOWED: Final = {"reassoc", "contract", "nsz", "arcp"}


def compiled(function: F) -> F:
    """The function as machine code, compiled when first called with a type and found again by later processes."""
    return cast(F, numba.njit(cache=True, nogil=True, fastmath=_ALLOWED, error_model="numpy")(function))


def inlined(function: F) -> F:
    """For a step inside a kernel: it becomes part of the loop that calls it."""
    return cast(F, numba.njit(inline="always", fastmath=_ALLOWED, error_model="numpy")(function))


def compiled_as_written(function: F) -> F:
    """The same without regrouped sums: every operation is the source's, so results are the same on any machine."""
    return cast(F, numba.njit(cache=True, nogil=True, error_model="numpy")(function))


def inlined_as_written(function: F) -> F:
    """For a step inside such a kernel."""
    return cast(F, numba.njit(inline="always", error_model="numpy")(function))
