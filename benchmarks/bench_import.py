"""`ravel import` of a long history, whole commands against a real daemon: JSON Lines, and a git repository.

python -m benchmarks.bench_import [commits]

The histories are made first: one chain with a merge now and then. A git repository is made by `git fast-import`, whose rate
stands beside. Also the processor time of the command and of the daemon for each commit, and what a second run
takes that finds everything there.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from benchmarks.common import figure, libsodium_verifications_per_second, timed
from benchmarks.daemons import peak_megabytes, running
from benchmarks.memory import processor_time_of_all
from tests.e2e.cluster import Peer
from tests.support.processes import RAVEL

_BEGAN: Final = 1_600_000_000
_MERGE_EVERY: Final = 10
_TEXT: Final = "Change number {} of a history\n\nIt says in a few words what was changed and why."


def _parents(number: int) -> list[int]:
    """One before it; every tenth also merges what the one before that began."""
    return [number - 1, number - 3][: 2 if number % _MERGE_EVERY == 9 else 1] if number else []


def write_jsonl(path: Path, count: int) -> None:
    """Write a history as JSON Lines."""
    with path.open("w") as file:
        for number in range(count):
            line = {
                "id": f"{number:040x}",
                "parents": [f"{parent:040x}" for parent in _parents(number)],
                "author": f"Author {number % 7} <author@example.org>",
                "time": _BEGAN + number,
                "text": _TEXT.format(number),
            }
            file.write(json.dumps(line) + "\n")


def _git_stream(count: int) -> Iterator[bytes]:
    for number in range(count):
        text = _TEXT.format(number).encode()
        who = f"Author {number % 7} <author@example.org> {_BEGAN + number} +0000"
        lines = [
            "commit refs/heads/main",
            f"mark :{number + 1}",
            f"author {who}",
            f"committer {who}",
            f"data {len(text)}",
        ]
        yield "\n".join(lines).encode() + b"\n" + text + b"\n"
        for place, parent in enumerate(_parents(number)):
            yield f"{'merge' if place else 'from'} :{parent + 1}\n".encode()
        yield b"\n"


def make_repository(path: Path, count: int) -> float:
    """Return a git repository of the same history; commits in a second that git takes in."""
    subprocess.run(["git", "init", "-q", "-b", "main", str(path)], check=True)
    stream = b"".join(_git_stream(count))
    command = ["git", "-C", str(path), "fast-import", "--quiet"]
    return count / timed(lambda: subprocess.run(command, input=stream, check=True))


def _run(peer: Peer, arguments: Sequence[str]) -> None:
    command = [*RAVEL, "--home", str(peer.home), "import", *arguments, "--json"]
    subprocess.run(command, check=True, capture_output=True)


def _measure(peer: Peer, name: str, arguments: Sequence[str], count: int) -> None:
    branch = peer.client.create_branch("imports", name)["branch"]
    arguments = [*arguments, "--branch", branch]
    with processor_time_of_all() as used:
        seconds = timed(lambda: _run(peer, arguments))
    assert peer.client.list_branches("imports")["branches"][-1]["commits"] == count + 1
    rate = count / seconds
    figure(f"import_{name}", rate, "commits/s", commits=count, goal=6000)
    figure(f"import_{name}_cpu", used[0] / count * 1e6, "us", of="command and daemon")
    figure(f"import_{name}_to_bare_verification", rate / libsodium_verifications_per_second(), "ratio")
    figure(f"import_{name}_again", count / timed(lambda: _run(peer, arguments)), "commits/s", commits=count)


def main() -> None:
    """Print the figures."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_jsonl(folder / "history.jsonl", count)
        figure("git_fast_import", make_repository(folder / "git", count), "commits/s", commits=count)
        peer = Peer(folder / "home")
        with running(peer):
            peer.client.create_repo("imports")
            _measure(peer, "jsonl", ["jsonl", str(folder / "history.jsonl")], count)
            _measure(peer, "git", ["git", str(folder / "git")], count)
            figure("import_daemon_most", peak_megabytes(peer.pid), "MB")


if __name__ == "__main__":
    main()
