"""Starts the interpreter anew with the hash seed of a run: orders of sets of ids follow from it.

It is the first seed of the run, so that each run has orders of its own. A history of a longer run is replayed with
PYTHONHASHSEED set to what the run prints.
"""

import argparse
import os
import sys
from typing import Final

_VARIABLE: Final = "PYTHONHASHSEED"
_SEEDS: Final = 2**32
"""Python takes no more."""


def hash_seed() -> str:
    """Return the hash seed of this process."""
    return os.environ[_VARIABLE]


def restart_with_hash_seed() -> None:
    """Become a process with a hash seed, unless this one was given one."""
    if os.environ.get(_VARIABLE, "").isdigit():
        return
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--start", type=int, default=1)
    options, _ = parser.parse_known_args()
    os.environ[_VARIABLE] = str((options.start if options.seed is None else options.seed) % _SEEDS)
    os.execv(sys.executable, [sys.executable, "-m", "tests.promise", *sys.argv[1:]])  # noqa: S606  # itself
