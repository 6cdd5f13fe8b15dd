"""A git repository's history, read commit by commit as git names them: parents before children.

The repository is read, never written, and nothing of its configuration runs: no pager, no prompts, no transport that
would fetch what a partial clone lacks, no hook of a file system monitor. Commits are read as they are stored: neither
replace objects nor grafts change their parents. Bytes that are not UTF-8, and NUL, are replaced (U+FFFD), so any history
can be imported. Parents that a shallow clone lacks are left out, and counted.
"""

import codecs
import os
import re
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final

from node.importers.item import SourceItem, fit_name, fit_text
from node.runtime.errors import ServiceError
from protocol.limits.formats import ACK_COUNT_MAX, MIB
from protocol.limits.users import IMPORTED_SECONDS_MAX

_COMMIT_SIZE_MAX: Final = 16 * MIB
"""Bytes of one commit; git itself warns of messages far below."""
_LINE_SIZE_MAX: Final = 1024
"""Bytes of the line before a commit: its id, kind and size."""
_PIECE_SIZE: Final = 64 * 1024
_PROBLEM_SIZE_MAX: Final = 4096
"""Bytes kept of what git complains of: its last line is shown. The rest is read, since git would wait for a full pipe."""
_ENCODING_SIZE_MAX: Final = 40
_NO_ENCODINGS: Final = frozenset(
    {"idna", "punycode", "raw_unicode_escape", "undefined", "unicode_escape", "utf_7"}
)
"""Codecs of Python that no git writes, some of which take time that grows with the square of the text."""
_SETTING: Final = re.compile(r"GIT_CONFIG_(KEY|VALUE)_[0-9]+")
_ENVIRONMENT: Final = {
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_GRAFT_FILE": os.devnull,
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_PAGER": "cat",
    # A partial clone names a remote, and a remote may be a command: nothing is fetched, by no protocol.
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_SSH_COMMAND": "false",
    "LC_ALL": "C.UTF-8",
}
_ADVICE: Final = "give the path of a git repository that has commits"


@dataclass(slots=True)
class GitHistory:
    """One history. `commit_count` is known before it is read; `cut_parents` after."""

    path: Path
    revision: str = "HEAD"
    commit_count: int = 0
    cut_parents: int = 0
    _commit: str = ""
    _seen: set[str] = field(default_factory=set)

    def open(self) -> None:
        """Look whether there is a history, and how long it is. Raises ServiceError `bad_input`."""
        if not self.path.is_dir():
            raise _bad(f"{self.path} is not a folder")
        inside = self._ask("rev-parse", "--show-prefix")
        if inside:
            raise _bad(
                f"{self.path} is a folder inside of a git repository",
                f"its whole history is that of {self._ask('rev-parse', '--show-toplevel')}",
            )
        if self.revision.startswith("-"):
            raise _bad(f"{self.revision!r} is not a revision")
        self._commit = self._ask("rev-parse", "--verify", f"{self.revision}^{{commit}}")
        self.commit_count = int(self._ask("rev-list", "--count", self._commit, "--"))

    def resume(self, imported: set[str]) -> None:
        """Continue what was imported before: ids of commits, which this history goes on to change.

        Raises ServiceError `bad_input` where one of them was imported without a parent that is here now. Commits are never
        changed, so its parents could only be added beside it, as another beginning.
        """
        self._seen = imported
        with self._output(["rev-list", "--parents", self._commit, "--"]) as lines:
            while line := lines.readline(_COMMIT_SIZE_MAX):
                commit, *parents = line.decode("ascii", "replace").split()
                lacking = [one for one in parents if one not in imported] if commit in imported else []
                if lacking:
                    raise ServiceError(
                        "bad_input",
                        f"commit {commit} was imported without its parent {lacking[0]}, from a shallow clone",
                        "import the whole history into a new branch: `ravel branch create REPO NAME`",
                    )

    def items(self) -> Iterator[SourceItem]:
        """Read the commits, parents before children. Raises ServiceError `bad_input` when git fails on the way."""
        names = ["rev-list", "--topo-order", "--reverse", self._commit, "--"]
        with self._output(names, ["cat-file", "--batch", "--buffer"]) as commits:
            for commit, content in read_commits(commits):
                yield self.take(commit, content)

    def take(self, commit: str, content: bytes) -> SourceItem:
        """Return a commit as an item to import, and remember its id for its children."""
        head, _, message = content.partition(b"\n\n")
        headers: dict[bytes, list[bytes]] = {}
        for line in head.split(b"\n"):
            name, _, value = line.partition(b" ")  # lines of a signature begin with a space, and have no name
            headers.setdefault(name, []).append(value)
        parents = dict.fromkeys(one.decode("ascii", "replace") for one in headers.get(b"parent", ()))
        known = tuple(parent for parent in parents if parent in self._seen)[:ACK_COUNT_MAX]
        self.cut_parents += len(parents) - len(known)
        self._seen.add(commit)
        encoding = _encoding_of(headers)
        author, author_time = _split_person(headers.get(b"author", [b""])[0])
        _, commit_time = _split_person(headers.get(b"committer", [b""])[0])
        time = next((found for found in (author_time, commit_time) if found is not None), 0)
        text = _text(message, encoding).rstrip("\n")
        return SourceItem(commit, known, fit_name(_text(author, encoding)), time, fit_text(text))

    def _ask(self, *arguments: str) -> str:
        try:
            done = subprocess.run(
                self._command(arguments), capture_output=True, check=False, env=_environment()
            )
        except FileNotFoundError:
            raise ServiceError(
                "bad_input", "git is not installed", "install it: apt-get install git"
            ) from None
        if done.returncode != 0:
            raise _bad(f"{self.path} has no history to read: {_last_line(done.stderr)}")
        return done.stdout.decode("utf-8", "replace").strip()

    @contextmanager
    def _output(self, *commands: Sequence[str]) -> Iterator[IO[bytes]]:
        """Provide the output of a pipeline of git commands.

        Raises ServiceError `bad_input` at the end where one of them fails.
        """
        reading, writing = os.pipe()
        problems = _LastBytes(reading)
        running: list[subprocess.Popen[bytes]] = []
        try:
            for command in commands:
                before = running[-1].stdout if running else None
                running.append(
                    subprocess.Popen(
                        self._command(command),
                        stdin=before or subprocess.DEVNULL,
                        stdout=subprocess.PIPE,
                        stderr=writing,
                        env=_environment(),
                    )
                )
                if before is not None:
                    before.close()  # the command that reads it has its own: where that ends, the one before it does
            os.close(writing)
            writing = -1
            output = running[-1].stdout
            assert output is not None, "made with pipes"
            yield output
        finally:
            if writing >= 0:
                os.close(writing)
            for process in running:
                if process.stdout is not None:
                    process.stdout.close()
            codes = [process.wait() for process in running]
            problem = problems.finish()
        if any(codes):
            raise _bad(f"git stopped reading {self.path}: {_last_line(problem)}")

    def _command(self, arguments: Sequence[str]) -> list[str]:
        settings = ("core.fsmonitor=false", "core.sshCommand=false", "advice.graftFileDeprecated=false")
        overrides = [part for setting in settings for part in ("-c", setting)]
        return ["git", *overrides, "-C", str(self.path.resolve()), *arguments]


def read_commits(stream: IO[bytes]) -> Iterator[tuple[str, bytes]]:
    """Parse ids and contents from the output of `git cat-file --batch`. Raises ServiceError `bad_input`."""
    while line := stream.readline(_LINE_SIZE_MAX):
        commit, kind, size = (*line.decode("ascii", "replace").split(), "", "", "")[:3]
        if kind != "commit" or re.fullmatch("[0-9]{1,12}", size) is None:
            raise _bad(f"commit {commit} cannot be read: it is {kind or 'no commit'}")
        if int(size) > _COMMIT_SIZE_MAX:
            raise _bad(f"commit {commit} has more than {_COMMIT_SIZE_MAX} bytes")
        content = stream.read(int(size) + 1)
        if len(content) <= int(size):
            return  # git has stopped: its exit code says so
        yield commit, content[:-1]


class _LastBytes:
    """Reads a pipe to its end, in a thread, and keeps the last bytes."""

    def __init__(self, handle: int) -> None:
        self._handle = handle
        self._kept = b""
        self._thread = threading.Thread(target=self._read, name="git's complaints", daemon=True)
        self._thread.start()

    def finish(self) -> bytes:
        """Return the last bytes once all who write have closed the pipe."""
        self._thread.join()
        return self._kept

    def _read(self) -> None:
        with open(self._handle, "rb", buffering=0) as pipe:
            while piece := pipe.read(_PIECE_SIZE):
                self._kept = (self._kept + piece)[-_PROBLEM_SIZE_MAX:]


def _split_person(line: bytes) -> tuple[bytes, int | None]:
    """Split a line into NAME <ADDRESS> and unix seconds; None if old tools wrote something else as the date."""
    name, _, rest = line.partition(b"<")
    address, _, _ = rest.partition(b">")
    found = re.match(rb" *(-?[0-9]{1,13})(?: |$)", line[line.rfind(b">") + 1 :])
    seconds = None if found is None else int(found[1])
    if seconds is not None and abs(seconds) > IMPORTED_SECONDS_MAX:
        seconds = None
    return b"%s <%s>" % (name.strip(), address.strip()), seconds


def _encoding_of(headers: dict[bytes, list[bytes]]) -> str:
    """Return the encoding that a commit states, as Python names it; UTF-8 if it states none that git may write."""
    stated = headers.get(b"encoding", [b""])[0].strip()
    if not 0 < len(stated) <= _ENCODING_SIZE_MAX:
        return "utf-8"
    try:
        name = codecs.lookup(stated.decode("ascii", "replace")).name
    except (LookupError, ValueError):
        return "utf-8"
    return "utf-8" if name.replace("-", "_") in _NO_ENCODINGS else name


def _text(raw: bytes, encoding: str) -> str:
    try:
        text = raw.decode(encoding, "replace")
    except (LookupError, ValueError):  # a codec of other things than texts
        text = raw.decode("utf-8", "replace")
    # Some codecs give halves of pairs, which are no text.
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").replace("\0", "\ufffd")


def _environment() -> dict[str, str]:
    """Return the caller's environment without what would point git elsewhere; some machines need safe.directory of it."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_") or name.startswith("GIT_CONFIG_COUNT") or _SETTING.fullmatch(name)
    }
    return {**kept, **_ENVIRONMENT}


def _last_line(output: bytes) -> str:
    lines = output.decode("utf-8", "replace").strip().splitlines()
    return lines[-1][:300] if lines else "git said nothing"


def _bad(problem: str, advice: str = _ADVICE) -> ServiceError:
    return ServiceError("bad_input", problem, advice)
