"""A history as plain steps: what it begins with, how it is said in words, and what is left of it without a step."""

from dataclasses import dataclass, replace
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

    def without(self, number: int) -> "Tale":
        """The same without one step and all that need it."""
        gone = {number}
        for step in self.steps:
            if gone.intersection((*step.causes, step.target)):
                gone.add(step.number)
        kept = (step for step in self.steps if step.number not in gone)
        # A removal that names what is gone is not an honest one any more.
        return replace(
            self,
            steps=tuple(
                replace(step, known=None) if gone.intersection(end.number for end in step.ends) else step
                for step in kept
            ),
        )

    def describe(self) -> str:
        """One line for each step that is not the founding's."""
        said = (step for step in self.steps if step.number >= len(FOUNDING))
        names = ", ".join(sorted(self.malicious)) or "nobody"
        return "\n".join([f"malicious: {names}", *map(_in_words, said)])


def _in_words(step: Step) -> str:
    plain = Step(step.number, step.author, step.kind)
    fields = [name for name in Step.__dataclass_fields__ if name not in ("number", "author", "kind", "known")]
    said = [f"{name}={getattr(step, name)}" for name in fields if getattr(step, name) != getattr(plain, name)]
    return f"{step.number}: {step.author} {step.kind} {' '.join(said)}"
