"""How much memory this process has needed at most while something ran."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_STATUS = Path("/proc/self/status")
_CLEAR_REFS = Path("/proc/self/clear_refs")


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
