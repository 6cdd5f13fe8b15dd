"""Memory and processor time of processes: this one with all that it started, or others by number."""

import ctypes
import os
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_STATUS = Path("/proc/self/status")
_CLEAR_REFS = Path("/proc/self/clear_refs")
_SAMPLE_SECONDS: Final = 0.2
_PR_SET_CHILD_SUBREAPER: Final = 36  # of <sys/prctl.h>


@contextmanager
def peak_growth() -> Iterator[list[float]]:
    """Gives a list that has, in the end, MiB by which resident memory at its peak was above that at the start."""
    grown: list[float] = []
    _CLEAR_REFS.write_text("5")  # forgets the peak until now
    before = _kilobytes("VmRSS")
    yield grown
    grown.append((_kilobytes("VmHWM") - before) / 1024)


def _kilobytes(name: str) -> int:
    for line in _STATUS.read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1])
    raise RuntimeError(f"no {name}")


@contextmanager
def peak_of_all() -> Iterator[list[float]]:
    """Gives a list that has, in the end, the most MiB that this process and its descendants had resident together."""
    done = threading.Event()
    peak = [0.0]

    def sample() -> None:
        while not done.wait(_SAMPLE_SECONDS):
            peak[0] = max(peak[0], _resident())

    sampler = threading.Thread(target=sample)
    sampler.start()
    try:
        yield peak
    finally:
        done.set()
        sampler.join()


@contextmanager
def processor_time_of_all() -> Iterator[list[float]]:
    """Gives a list that has, in the end, the seconds that processors spent on this process and its descendants.

    What a process used that ended meanwhile counts where its parent has waited for it, or has ended itself: then it stays in
    /proc as a child of this process, which does not wait for it. Spark's Java outlives the command that started it.
    """
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    used: list[float] = []
    before = _processor_time()
    yield used
    used.append(_processor_time() - before)


def processor_seconds(pids: Iterable[int]) -> float:
    """Return what these processes have used of the processor so far, together, without those that they started."""
    stats = (Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in pids)
    return sum(int(fields[11]) + int(fields[12]) for fields in stats) / os.sysconf("SC_CLK_TCK")


def processor_seconds_of_daemon(pid: int) -> float:
    """Return what a daemon and the processes that it has started have used of the processor so far."""
    return processor_seconds([pid, *children_of(pid)])


def children_of(pid: int) -> list[int]:
    """Return the processes that a process has started and that run."""
    return [
        int(child)
        for task in Path(f"/proc/{pid}/task").glob("*/children")
        for child in task.read_text().split()
    ]


def _processor_time() -> float:
    above: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended meanwhile
        above[int(folder.name)] = int(fields[1])
        ticks[int(folder.name)] = sum(int(field) for field in fields[11:15])
    return sum(ticks.get(pid, 0) for pid in _ours(above)) / os.sysconf("SC_CLK_TCK")


def _ours(above: Mapping[int, int]) -> set[int]:
    """Return this process and its descendants, by each process's parent."""
    ours = {os.getpid()}
    while more := {pid for pid, parent in above.items() if parent in ours} - ours:
        ours |= more
    return ours


def _resident() -> float:
    above: dict[int, int] = {}
    sizes: dict[int, float] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            status = dict(
                line.split(":", 1) for line in (folder / "status").read_text().splitlines() if ":" in line
            )
        except OSError:
            continue  # it has ended meanwhile
        above[int(folder.name)] = int(status["PPid"])
        sizes[int(folder.name)] = int(status.get("VmRSS", "0 kB").split()[0]) / 1024
    return sum(sizes.get(pid, 0.0) for pid in _ours(above))
