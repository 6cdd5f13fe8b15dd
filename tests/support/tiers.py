"""Which parameters of a test belong to the quick tier."""

from collections.abc import Iterable

import pytest
from _pytest.mark import ParameterSet


def in_tiers(values: Iterable[object], *, quick: int) -> list[object | ParameterSet]:
    """Parameters, of which all but the first `quick` are left to the second tier."""
    return [
        value if number < quick else pytest.param(value, marks=pytest.mark.extended)
        for number, value in enumerate(values)
    ]
