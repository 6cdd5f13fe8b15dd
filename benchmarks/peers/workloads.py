"""The workloads that members of each system do, and what they took."""

import random
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Final

from mnemonic import Mnemonic

from benchmarks.bench_epochs import exclude_one_of
from benchmarks.peers.git_member import GitMember
from benchmarks.peers.members import Member, NodeMember
from benchmarks.peers.ravel_member import RavelMember

SYSTEMS: Final[dict[str, Callable[[Path], Member]]] = {
    "ravel": RavelMember,
    "ssb": lambda folder: NodeMember("ssb", folder),
    "automerge": lambda folder: NodeMember("automerge", folder),
    "hypercore": lambda folder: NodeMember("hypercore", folder),
    "autobase": lambda folder: NodeMember("autobase", folder),
    "git": GitMember,
}
"""Each system by the name that `systems.toml` has for it, and how a member of it is made in a folder."""
UNITS: Final = {
    "first_posts": "s",
    "first_sync": "s",
    "first_to_last": "s",
    "first_sync_processor": "us",
    "catch_up": "s",
    "meet": "s",
    "exclude": "ms",
    "newest": "ms",
    "stored": "bytes",
    "memory": "MB",
}
"""Unit of each figure."""
_ALL_AT_ONCE: Final = ("automerge", "autobase", "git")
"""Systems that show nothing before all is there."""
_NEWEST: Final = 50
_READS: Final = 20
_MEMBERS: Final = 100


def texts(begin: int, count: int, by: str = "") -> list[str]:
    """Return texts of posts of twelve words, some 80 bytes: the same for each system."""
    rng = random.Random(f"{by}{begin}")  # noqa: S311  # the same posts in every run
    words = Mnemonic("english").wordlist
    return [f"{number} {by} {' '.join(rng.choices(words, k=12))}" for number in range(begin, begin + count)]


def measure(system: str, count: int) -> dict[str, float]:
    """Have two members and a newcomer do all that this system can do; return the figures by name."""
    found: dict[str, float] = {}
    made: list[Member] = []

    def member(name: str) -> Member:
        made.append(SYSTEMS[system](Path(folder) / name))
        return made[-1]

    with TemporaryDirectory() as folder:
        try:
            founder, other, newcomer = member("founder"), member("other"), member("newcomer")
            ticket = founder.found()
            founder.write(texts(0, count))
            began = time.perf_counter()
            newcomer.look(ticket)
            found["first_posts"] = time.perf_counter() - began
            newcomer.close()
            empty = _size(other.folder)
            found |= _first_sync(founder, other, ticket, count)
            if system in _ALL_AT_ONCE:
                del found["first_to_last"]
            found |= _reading(other)
            founder.admit(other.name())
            away = max(1, count // 50)
            found |= _apart(founder, other, ticket, count, away)
            for one in made:
                one.close()
            found["stored"] = (_size(other.folder) - empty) / (count + 3 * away)
        finally:
            for one in made:
                one.close()
        if system == "ravel":
            seconds = exclude_one_of(_MEMBERS, Path(folder) / "members")
            found["exclude"] = (seconds.excluding + seconds.starting) * 1e3
    return found


def _first_sync(founder: Member, other: Member, ticket: object, count: int) -> dict[str, float]:
    used = founder.processor() + other.processor()
    began = time.perf_counter()
    other.join(ticket)
    other.until(1)
    first = time.perf_counter()
    other.until(count)
    last = time.perf_counter()
    used = founder.processor() + other.processor() - used
    return {
        "first_sync": last - began,
        "first_to_last": last - first,
        "first_sync_processor": used / count * 1e6,
    }


def _reading(other: Member) -> dict[str, float]:
    """Read the newest entries again and again, and see what memory the member takes."""
    other.newest(_NEWEST)  # some systems make an index when they are first asked
    seconds = []
    for _ in range(_READS):
        began = time.perf_counter()
        assert other.newest(_NEWEST) == _NEWEST
        seconds.append(time.perf_counter() - began)
    sizes = [_resident(pid) for pid in other.processes()]
    return {"newest": median(seconds) * 1e3} | ({"memory": sum(sizes)} if sizes else {})


def _apart(founder: Member, other: Member, ticket: object, count: int, away: int) -> dict[str, float]:
    """Catch up with what the founder wrote meanwhile; then both write without each other, and meet."""
    other.leave()
    founder.write(texts(count, away))
    began = time.perf_counter()
    other.join(ticket)
    other.until(count + away)
    caught_up = time.perf_counter() - began
    other.leave()
    founder.write(texts(count + away, away))
    other.write(texts(count + away, away, "other"))
    began = time.perf_counter()
    other.join(ticket)
    for one in (founder, other):
        one.until(count + 3 * away)
    return {"catch_up": caught_up, "meet": time.perf_counter() - began}


def _resident(pid: int) -> float:
    """Return the memory of a process in MB; what several share counts in parts."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise RuntimeError("no Pss")


def _size(folder: Path) -> int:
    """Return the bytes of a folder's files. Some take more of the disk while they are open, to grow without waiting."""
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file())
