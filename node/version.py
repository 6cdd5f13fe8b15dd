"""The version of this Ravel, as pyproject.toml has it."""

from typing import Final

VERSION: Final = "0.1.0"
