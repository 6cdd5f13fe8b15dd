"""Runs histories by their seeds, several processes at a time, and shrinks those that break the promise."""

import argparse
import signal
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from itertools import count, islice
from multiprocessing import get_context
from time import monotonic
from types import FrameType
from typing import Final

from tests.promise.draw import History, draw_history
from tests.promise.hash_seed import hash_seed
from tests.promise.mutants import run_mutants
from tests.promise.play import Hung, Outcome, play
from tests.promise.shrink import shrink
from tests.promise.vectors import judge_vectors
from tests.support.stores import share_compiled_statements, share_new_tables

_HUNG_SECONDS: Final = 120
"""Of the processor, after which a history has hung."""


def _stop(_number: int, _frame: FrameType | None) -> None:
    raise Hung


def play_one(history: History) -> Outcome:
    """Play a history in this process."""
    signal.signal(signal.SIGPROF, _stop)
    signal.setitimer(signal.ITIMER_PROF, _HUNG_SECONDS)
    try:
        return play(history)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _play_seed(seed: int) -> Outcome:
    return play_one(draw_history(seed))


def play_seeds(seeds: Iterator[int], processes: int, until: float) -> Iterator[Outcome]:
    """Play histories until the seeds or the time are over."""
    if processes == 1:
        for seed in seeds:
            if monotonic() >= until:
                return
            yield _play_seed(seed)
        return
    with ProcessPoolExecutor(processes, mp_context=get_context("fork")) as pool:
        running: set[Future[Outcome]] = set()
        try:
            while True:
                room = processes - len(running) if monotonic() < until else 0
                running |= {pool.submit(_play_seed, seed) for seed in islice(seeds, room)}
                if not running:
                    return
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for one in done:
                    yield one.result()
        finally:
            pool.shutdown(cancel_futures=True)


def main() -> int:
    """Run; 1 where a history breaks the promise."""
    parser = argparse.ArgumentParser(prog="python -m tests.promise", description=__doc__)
    parser.add_argument("--seed", type=int, help="replay one history, and print its steps")
    parser.add_argument("--start", type=int, default=1, help="the first seed")
    parser.add_argument("--count", type=int, help="how many; 20 if no budget is given")
    parser.add_argument("--budget", type=float, help="seconds after which no further history is begun")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument(
        "--verbose",
        action="store_true",
        help="print a line for each history, and how often each act was done",
    )
    parser.add_argument(
        "--stop", action="store_true", help="stop at the first that breaks the promise, and do not shrink it"
    )
    parser.add_argument("--vectors", action="store_true", help="judge the vectors of verdicts instead")
    parser.add_argument(
        "--mutants", nargs="*", metavar="NAME", help="take out one rule after another, all or some"
    )
    options = parser.parse_args()
    share_compiled_statements()
    share_new_tables()
    if options.mutants is not None:
        return run_mutants(options.mutants, options.start, options.count or 100, options.processes)
    if options.vectors:
        return judge_vectors()
    seeds: Iterator[int]
    first = options.start if options.seed is None else options.seed
    if options.seed is not None:
        seeds, options.verbose = iter([options.seed]), True
    elif options.count is None and options.budget is not None:
        seeds = count(options.start)
    else:
        seeds = iter(range(options.start, options.start + (options.count or 20)))
    began, spent, acts = monotonic(), 0.0, Counter[str]()
    until = began + options.budget if options.budget is not None else float("inf")
    failed: list[int] = []
    played = 0
    for outcome in play_seeds(seeds, options.processes, until):
        played += 1
        spent += outcome.seconds
        acts.update(outcome.done)
        if options.verbose or outcome.check:
            print(outcome.describe(), flush=True)
        if options.seed is not None:
            print("\n".join([outcome.history.describe(), *outcome.log]))
        if outcome.check:
            failed.append(outcome.history.seed)
            print(
                f"replay: PYTHONHASHSEED={hash_seed()} python -m tests.promise --seed {outcome.history.seed}"
            )
            if options.stop:
                break
            print(shrink(outcome, play_one), flush=True)
    if options.verbose:
        print(", ".join(f"{act} {number}" for act, number in sorted(acts.items())))
    print(
        f"{played} histories from seed {first}, hash seed {hash_seed()}, {spent / max(played, 1):.2f} s each: "
        + (f"the promise is broken by seeds {' '.join(map(str, failed))}" if failed else "the promise holds")
    )
    return bool(failed)
