"""Compiles array functions on first call (numba `njit`), with types for mypy.

A loop of the replay takes some tens of nanoseconds instead of microseconds. A compiled function travels to Spark's
workers like any other: numba compiles it there once for each worker process, whatever the number of tasks.
"""

from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

Numbers = NDArray[np.int32]
"""Commits, ranks, places: all below 2^31."""
Entries = NDArray[np.int64]

Table = NDArray[np.int32]
"""Rows of numbers with a name each. One array: handing over a tuple of a dozen took longer than most functions do."""


def compiled(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Compile a function by numba. It may call other compiled ones. Nothing is checked at run time, not even an
    index."""
    return cast(Callable[Parameters, Result], numba.njit(function))
