"""Checks the proofs, searches all small histories, and compares the model with the product: `make proof`."""

import argparse
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from tests.proof import checker, epoch_oracle, mutants, oracle


def main() -> int:
    """Run everything, or the table of mutants; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.proof", description=__doc__)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--count", type=int, default=4000, help="random histories for the model and the product"
    )
    parser.add_argument("--mutants", action="store_true", help="the table of mutants instead")
    arguments = parser.parse_args()
    if reason := checker.missing():
        print(reason, file=sys.stderr)
        return 1
    with TemporaryDirectory(prefix="ravel-proof-") as name:
        folder = Path(name)
        lines = (
            mutants.table(folder, arguments.processes)
            if arguments.mutants
            else _prove(folder, arguments.processes, arguments.count, arguments.seed)
        )
        failed = False
        try:
            for line, is_right in lines:
                print(line, flush=True)
                failed |= not is_right
        except checker.ProofFailedError as error:
            print(f"WRONG: {error}")
            failed = True
    return int(failed)


def _prove(folder: Path, processes: int, count: int, seed: int) -> Iterator[tuple[str, bool]]:
    began = time.monotonic()
    checker.lay_out(folder)
    if left_out := checker.admitted(folder):
        yield f"left out: {left_out}", False
    printed = checker.compile_files(folder, (*checker.MODEL, *checker.PROOFS))
    yield f"{checker.theorems(printed)} theorems rest on no axiom", True
    program = checker.build(folder)
    count = oracle.compare_all(program, Random(seed), count)
    yield f"{count} scenarios, traces and random histories of members: model and product say the same", True
    count = epoch_oracle.compare(program, ("2", "4"))
    yield f"{count} traces of epochs: model and product say the same", True
    with ThreadPoolExecutor(processes) as pool:
        for check, answer in pool.map(lambda one: (one, _answer(program, one)), checker.FULL):
            yield f"({check.about}) {' '.join(check.words)}: {answer}", answer.startswith("ok")
    yield f"{time.monotonic() - began:.0f} s", True


def _answer(program: Path, check: checker.Check) -> str:
    try:
        return checker.ask(program, check.words).strip()
    except checker.ProofFailedError as error:
        return str(error)


if __name__ == "__main__":
    sys.exit(main())
