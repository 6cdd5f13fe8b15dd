"""A git repository's history, read from `git log` as it streams: parents before children.

The repository is read, never written, and nothing of its configuration runs: no pager, no prompts, no transport that
would fetch what a partial clone lacks, no hook of a file system monitor; replace objects are not followed. Bytes that
are not UTF-8 are replaced (U+FFFD), so any history can be imported. In a shallow clone the parents that were cut off
are left out, and counted.
"""

import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final

from node.importers.item import SourceItem, fit_name, fit_text
from node.runtime.errors import ServiceError
from protocol.limits.formats import MIB
from protocol.limits.users import IMPORTED_SECONDS_MAX

_FIELD_SIZE_MAX: Final = 16 * MIB
"""Bytes of one field; git itself warns of messages far below."""
_READ_SIZE: Final = 64 * 1024
_FIELDS: Final = ("%H", "%P", "%an <%ae>", "%at", "%ct", "%B")
"""What git is asked for; with -z each field ends with a NUL byte, which none of them can hold."""
_SETTING: Final = re.compile(r"GIT_CONFIG_(KEY|VALUE)_[0-9]+")
_ENVIRONMENT: Final = {
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_PAGER": "cat",
    # A partial clone names a remote, and a remote may be a command: nothing is fetched, by no protocol.
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_SSH_COMMAND": "false",
    "LC_ALL": "C.UTF-8",
}


@dataclass(slots=True)
class GitHistory:
    """One history. `commit_count` is known before it is read; `cut_parents` after."""

    path: Path
    revision: str = "HEAD"
    commit_count: int = 0
    cut_parents: int = 0
    _seen: set[str] = field(default_factory=set)

    def open(self) -> None:
        """Look whether there is a history, and how long it is. Raises ServiceError `bad_input`."""
        if not self.path.is_dir():
            raise _bad(f"{self.path} is not a folder")
        if self.revision.startswith("-"):
            raise _bad(f"{self.revision!r} is not a revision")
        try:
            done = subprocess.run(
                self._command("rev-list", "--count", self.revision, "--"),
                capture_output=True,
                check=False,
                env=_environment(),
            )
        except FileNotFoundError:
            raise ServiceError(
                "bad_input", "git is not installed", "install it: apt-get install git"
            ) from None
        if done.returncode != 0:
            raise _bad(f"{self.path} has no history to read: {_last_line(done.stderr)}")
        self.commit_count = int(done.stdout)

    def items(self) -> Iterator[SourceItem]:
        """The commits, parents before children. Raises ServiceError `bad_input` when git fails on the way."""
        command = self._command(
            "log", "--topo-order", "--reverse", "--encoding=UTF-8", "--no-show-signature", "--no-color", "--no-notes",
            "-z", f"--format={'%x00'.join(_FIELDS)}", self.revision, "--",
        )  # fmt: skip
        with subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            env=_environment(),
        ) as process:
            assert process.stdout is not None, "made with pipes"
            assert process.stderr is not None, "made with pipes"
            try:
                record: list[str] = []
                for text in _texts(process.stdout):
                    record.append(text)
                    if len(record) == len(_FIELDS):
                        yield self._item(*record)
                        record.clear()
            finally:
                process.stdout.close()
                problem = process.stderr.read(MIB)
                code = process.wait()
        if code != 0:
            raise _bad(f"git stopped reading {self.path}: {_last_line(problem)}")

    def _command(self, *arguments: str) -> list[str]:
        settings = ("core.fsmonitor=false", "core.sshCommand=false", "log.showSignature=false")
        overrides = [part for setting in settings for part in ("-c", setting)]
        return ["git", *overrides, "-C", str(self.path.resolve()), *arguments]

    def _item(
        self, commit: str, parents: str, author: str, author_time: str, commit_time: str, message: str
    ) -> SourceItem:
        known = tuple(dict.fromkeys(parent for parent in parents.split() if parent in self._seen))
        self.cut_parents += len(set(parents.split())) - len(known)
        self._seen.add(commit)
        time = next(
            (found for text in (author_time, commit_time) if (found := _seconds(text)) is not None), 0
        )
        return SourceItem(commit, known, fit_name(author), time, fit_text(message.rstrip("\n")))


def _seconds(text: str) -> int | None:
    """Unix seconds; None for what old tools wrote instead of a date, which git shows as an empty text."""
    if re.fullmatch(r"-?[0-9]{1,13}", text) is None or abs(int(text)) > IMPORTED_SECONDS_MAX:
        return None
    return int(text)


def _texts(stream: IO[bytes]) -> Iterator[str]:
    """What ends with a NUL byte, one after another."""
    buffer = bytearray()
    while chunk := stream.read(_READ_SIZE):
        buffer += chunk
        *whole, rest = buffer.split(b"\0")
        yield from (text.decode("utf-8", "replace") for text in whole)
        buffer = bytearray(rest)
        if len(buffer) > _FIELD_SIZE_MAX:
            raise _bad(f"a message of more than {_FIELD_SIZE_MAX} bytes")


def _environment() -> dict[str, str]:
    """The caller's, without what would point git elsewhere; settings by count stay, some machines need safe.directory."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_") or name.startswith("GIT_CONFIG_COUNT") or _SETTING.fullmatch(name)
    }
    return {**kept, **_ENVIRONMENT}


def _last_line(output: bytes) -> str:
    lines = output.decode("utf-8", "replace").strip().splitlines()
    return lines[-1][:300] if lines else "git said nothing"


def _bad(problem: str) -> ServiceError:
    return ServiceError("bad_input", problem, "give the path of a git repository that has commits")
