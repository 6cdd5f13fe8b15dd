"""Runs the cases of a study in parallel as Spark tasks, one per task, and journals results.

What a run counts stands in OUT/runs.jsonl as soon as it is done, one line each, so that a study that was interrupted can
go on with the rest. A run follows from its case and the graphs alone; which machine ran it, and after what, changes nothing.
So a line ends with the digest of the graph, if it was no model's: a branch that has changed since is another one.
"""

import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any, Final

from blake3 import blake3
from pyspark import cloudpickle
from pyspark.core.broadcast import Broadcast
from pyspark.sql import SparkSession

from analytics.reading.shipping import ship_by_value
from analytics.study import edit_streams, tangle_models
from analytics.study.edit_streams import replay
from analytics.study.tangle_models import DELIVERIES, MODELS, Graph, deliver_in_order, two_feeds

AS_ARRIVED: Final = "as arrived"
"""The delivery of a real branch in the order in which its commits arrived at a node; the node follows."""

_AT_ONCE_MAX: Final = 256
"""Jobs at once: each is a thread of the driver. A cluster with more cores than that does not get more."""
_PROGRESS_SECONDS: Final = 10.0

# Plain tuples, since data of a task is pickled by the name of its class, which a cluster does not know.
Case = tuple[str, str, int, int, int]
"""Model, delivery, height, width, seed."""
Run = tuple[str, str, int, int, int, float, float, float, int, float, float]
"""The case; edits per commit as reference, net, waiting room; most that wait at once, ranks changed per commit, seconds."""
Real = tuple[Sequence[tuple[int, ...]], Sequence[int], Sequence[int], Mapping[str, Sequence[int]]]
"""Causes, feeds, names, and deliveries as nodes saw them."""
Lines = dict[tuple[Case, str], Run]
"""What a journal says: by the case and the digest of the graph that was replayed, "" of a model."""

_FIGURE_END: Final = 2**62
"""Numbers of a journal are below it."""


@dataclass(frozen=True, slots=True)
class Shipped:
    """A real branch where every task finds it."""

    real: Broadcast[Real]
    digest: str


Progress = Callable[[str], None]


def replay_all(
    spark: SparkSession,
    cases: Sequence[Case],
    real: Mapping[str, Shipped],
    journal: Path,
    *,
    resume: bool,
    progress: Progress,
) -> list[Run]:
    """Run all cases, begun in this order, but those that `resume` finds in the journal. Raises OSError, PySparkException.

    What the journal has of other cases stays there.
    """
    code = task_code()
    lines_before = _read_journal(journal) if resume else {}
    _write_journal(journal, lines_before)
    digests = {case: real[case[0]].digest if case[0] in real else "" for case in cases}
    done = {
        case: lines_before[case, digest] for case, digest in digests.items() if (case, digest) in lines_before
    }
    missing = [case for case in cases if case not in done]
    context = spark.sparkContext
    at_once = min(context.defaultParallelism, _AT_ONCE_MAX)
    progress(f"{len(missing):,} runs, {at_once} at once{f', {len(done):,} done before' if done else ''}")
    began = said = time.monotonic()
    is_over = Event()

    def replay_one(case: Case) -> Run | None:
        # A thread may begin the next case before the driver has heard that one failed, and cancelled the rest.
        if is_over.is_set():
            return None
        # Not the whole of `Shipped`, whose class a cluster does not know.
        shipped = real[case[0]].real if case[0] in real else None

        def replay_cases(part: Iterable[Case]) -> Iterator[Run]:
            for one in part:
                yield cloudpickle.loads(code)(one, shipped.value if shipped else None)

        try:
            return context.parallelize([case], 1).mapPartitions(replay_cases).collect()[0]
        except BaseException:  # whatever ended this run, no thread begins another
            is_over.set()
            raise

    with ThreadPoolExecutor(at_once) as pool, journal.open("a", encoding="utf-8") as lines:
        futures: list[Future[Run | None]] = [pool.submit(replay_one, case) for case in missing]
        try:
            for count, future in enumerate(as_completed(futures), start=1):
                run = future.result()
                if run is None:  # another failed, and comes yet
                    continue
                done[run[:5]] = run
                lines.write(_line(run, digests[run[:5]]))
                lines.flush()
                now = time.monotonic()
                if count == len(missing) or now - said >= _PROGRESS_SECONDS:
                    said = now
                    progress(
                        f"  {count:,}/{len(missing):,} runs ({now - began:.0f} s); "
                        f"{run[0]}, {run[1]}, {run[2]:,} commits, {run[3]:,} feeds"
                    )
        except BaseException:  # what stops one run, or the user, stops the others
            is_over.set()
            pool.shutdown(wait=False, cancel_futures=True)
            context.cancelAllJobs()
            raise
    return [done[case] for case in cases]


def task_code() -> bytes:
    """Return a task's code by value, so that a cluster needs no copy of Ravel; numba sends its compiled functions so.

    It is made once for all tasks: numba's functions may not be pickled by two threads at once.
    """
    ship_by_value(tangle_models, edit_streams, sys.modules[__name__])
    return bytes(cloudpickle.dumps(_replay_case))  # type: ignore[no-untyped-call]  # Spark ships it without annotations


def _replay_case(case: Case, real: Real | None) -> Run:
    small = two_feeds(4, 4, 0)
    replay(small, deliver_in_order(small, 0))  # compiled, once in a process, before the clock starts
    began = time.perf_counter()
    model, delivery, height, width, seed = case
    graph = MODELS[model](height, width, seed) if real is None else Graph(*real[:3])
    is_log = real is not None and delivery in real[3]
    order = real[3][delivery] if real is not None and is_log else DELIVERIES[delivery](graph, seed)
    counts = replay(graph, order)
    total = counts.commits
    return (
        *case,
        counts.reference / total,
        counts.net / total,
        counts.waiting_room / total,
        counts.most_waiting,
        counts.ranks_changed / total,
        time.perf_counter() - began,
    )


def digest_of(real: Real) -> str:
    """BLAKE3 (hex) of all that a replay of a real branch follows from."""
    causes, feeds, names, received = real
    logs = {delivery: list(order) for delivery, order in received.items()}
    return blake3(json.dumps([list(causes), list(feeds), list(names), logs]).encode()).hexdigest()


def _read_journal(journal: Path) -> Lines:
    """Runs that are in a journal, whichever study they were for. A line that was cut is no run."""
    found: Lines = {}
    if not journal.exists():
        return found
    with journal.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            try:
                run, digest = _parse(json.loads(line))
            except (TypeError, ValueError, RecursionError):
                continue
            found[run[:5], digest] = run
    return found


def _parse(values: Any) -> tuple[Run, str]:  # noqa: ANN401  # what JSON holds
    """Return what `_line` wrote. Raises TypeError, ValueError."""
    model, delivery, *numbers, digest = values
    height, width, seed, reference, net, waiting, most_waiting, changed, seconds = numbers
    if not all(type(text) is str for text in (model, delivery, digest)):
        raise ValueError("a name that is none")
    if not all(type(count) is int for count in (height, width, seed, most_waiting)):
        raise ValueError("a count that is none")
    # Infinity and what is not a number, which Python reads in JSON, are not below anything either.
    if not all(type(number) in (int, float) and 0 <= number < _FIGURE_END for number in numbers):
        raise ValueError("a figure that is none")
    figures = (float(reference), float(net), float(waiting), most_waiting, float(changed), float(seconds))
    return (model, delivery, height, width, seed, *figures), digest


def _write_journal(journal: Path, lines: Lines) -> None:
    """Begin a journal with these runs, in one piece: what is added to a line that was cut would be lost with it."""
    journal.parent.mkdir(parents=True, exist_ok=True)
    part = journal.with_name(f"{journal.name}.part")
    text = "".join(_line(run, digest) for (_, digest), run in lines.items())
    part.write_text(text, encoding="utf-8")
    part.replace(journal)


def _line(run: Run, digest: str) -> str:
    return json.dumps([*run, digest]) + "\n"
