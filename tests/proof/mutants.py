"""Changes one rule after another in the model, and tells which check fails first.

A mutant is a file of the model with one piece of its text replaced. Each must be caught by a theorem's proof, by the search
through all small histories, by a scenario, or by a history of which the product says otherwise. A check that does not end is
a catch too: the unchanged model takes seconds.
"""

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

from tests.proof import checker, epoch_oracle, oracle

PAGE: Final = checker.HERE / "mutants.txt"
HEAD: Final = re.compile(r"^== (\w+): (.*)\n", re.MULTILINE)
SECONDS_MAX: Final = 300
"""Time for one question to a mutant; the model answers each in at most ten."""
QUESTIONS: Final = {
    "Rules": ("circles 3", "undo 0", "safe 1 1", "safe-quorum 1 1"),
    "Epochs": ("hostile 0", "hostile 1", "epochs 2"),
    "Eager": ("eager 3", "eager 4"),
}
"""What the model is asked first, by the file that was changed."""
HISTORIES: Final = 3000


class Mutant(NamedTuple):
    """The file, what is changed, and the piece of text with what stands there instead."""

    file: str
    rule: str
    old: str
    new: str


def mutants() -> list[Mutant]:
    """Return the mutants of `mutants.txt`: a line `== file: rule`, the old piece, a line `--`, the new piece."""
    _, *parts = HEAD.split(PAGE.read_text(encoding="utf-8"))
    found = []
    for file, rule, pieces in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        old, new = pieces.split("\n--\n")
        found.append(Mutant(file, rule, old, new.removesuffix("\n")))
    return found


def change(folder: Path, mutant: Mutant) -> None:
    """Replace a mutant's piece in the sources of a folder. Raises ValueError where it does not stand there once."""
    path = folder / f"{mutant.file}.v"
    text = path.read_text(encoding="utf-8")
    if text.count(mutant.old) != 1:
        raise ValueError(f"{mutant.rule}: {text.count(mutant.old)} times in {mutant.file}.v")
    path.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")


def caught_by(folder: Path, mutant: Mutant) -> str | None:
    """Return the first check that fails with a mutant, or None."""
    checker.lay_out(folder)
    change(folder, mutant)
    if mutant.file == "Order":
        try:
            checker.compile_files(folder, ["Order"])
        except checker.ProofFailedError as error:
            return f"proof: {str(error).splitlines()[0]}"
        return None
    checker.compile_files(folder, checker.MODEL)
    program = checker.build(folder)
    try:
        for question in QUESTIONS[mutant.file]:
            checker.ask(program, question.split(), seconds=SECONDS_MAX)
        if wrong := next(oracle.wrong_scenarios(program), None):
            return f"scenario: {wrong.partition(':')[0]}"
        if wrong := next(oracle.wrong_zoo(program), None):
            return f"zoo: {wrong.partition(':')[0]}"
        traces = epoch_oracle.differences(program, ("1", "1"))
        if wrong := next((difference for _, difference in traces if difference), None):
            return f"product: {wrong}"
        random = Random(1)
        histories = [oracle.random_history(random, random.randint(6, 14)) for _ in range(HISTORIES)]
        wrong = next(oracle.differences(program, histories), None)
    except checker.ProofFailedError as error:
        return str(error).splitlines()[0]
    return f"product: {wrong}" if wrong else None


def table(folder: Path, processes: int) -> Iterator[tuple[str, bool]]:
    """Yield a line for each mutant, and whether it was caught."""
    all_of_them = mutants()
    with ThreadPoolExecutor(processes) as pool:
        caught = pool.map(lambda item: caught_by(folder / str(item[0]), item[1]), enumerate(all_of_them))
        for mutant, check in zip(all_of_them, caught, strict=True):
            yield f"{mutant.file}: {mutant.rule}: {check or 'NOT CAUGHT'}", check is not None
