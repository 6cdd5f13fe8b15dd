"""How much memory this process, or all that it started, has needed at most while something ran."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_STATUS = Path("/proc/self/status")
_CLEAR_REFS = Path("/proc/self/clear_refs")
_SAMPLE_SECONDS: Final = 0.2


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
    ours = {int(Path("/proc/self").resolve().name)}
    while more := {pid for pid, parent in above.items() if parent in ours} - ours:
        ours |= more
    return sum(sizes.get(pid, 0.0) for pid in ours)
