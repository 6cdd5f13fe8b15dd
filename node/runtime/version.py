"""The version of this Ravel, as pyproject.toml has it."""

from typing import Final

VERSION: Final = "0.1.0"

RELEASED_AT: Final = 1_767_225_600
"""Unix seconds before which no right clock shows this version: 1 January 2026."""
