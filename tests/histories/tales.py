"""A history as plain steps, and what it begins with."""

from dataclasses import dataclass
from typing import Final

from tests.support.reference_histories import Step

BRANCHES: Final = ("main", "side")
FOUNDING: Final = (
    Step(0, "ann", "found"),
    Step(1, "ann", "branch", acks=(0,), sequence=2, previous=0),
    Step(2, "ann", "start", "main", seen=(0,)),
    Step(3, "ann", "branch", acks=(1,), sequence=3, previous=1),
    Step(4, "ann", "start", "side", seen=(1,)),
)
"""What every history begins with; every node has it."""


@dataclass(frozen=True)
class Tale:
    """A history as told."""

    malicious: frozenset[str]
    steps: tuple[Step, ...]
