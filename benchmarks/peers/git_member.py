"""A member that shares a git history: an entry is a commit without files, fetched from `git daemon` on the loopback."""

import os
import resource
import shutil
import socketserver
import subprocess
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from benchmarks.peers.members import FIRST

_BRANCH: Final = "refs/heads/main"
_ENVIRONMENT: Final = {
    **os.environ,
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    **{
        f"GIT_{role}_{what}": value
        for role in ("AUTHOR", "COMMITTER")
        for what, value in (("NAME", "member"), ("EMAIL", "member@example.org"))
    },
}


class GitMember:
    """The founder has a bare repository and serves it; who joins has a clone, pulls and pushes."""

    def __init__(self, folder: Path) -> None:
        """Make the folder."""
        self.folder = folder
        folder.mkdir(parents=True)
        self._url = ""
        self._server: socketserver.ThreadingTCPServer | None = None
        self._before = resource.getrusage(resource.RUSAGE_CHILDREN)

    def found(self) -> str:
        """Return the URL."""
        self._git("init", "--quiet", "--bare", "--initial-branch=main", ".")
        self._git("config", "daemon.receivepack", "true")
        self._server = _serve(self.folder)
        return f"git://127.0.0.1:{self._server.server_address[1]}/{self.folder.name}"

    def join(self, ticket: str) -> None:
        """Clone; a member that has a clone pulls, merges and pushes, as this program's users do."""
        if self._url:
            self._git("pull", "--quiet", "--no-rebase", "--no-edit")
            self._git("push", "--quiet", "origin", "main")
            return
        self._url = ticket
        self._git("clone", "--quiet", ticket, ".")

    def look(self, ticket: str) -> None:
        """Clone the newest commits alone, which git calls shallow."""
        self._git("clone", "--quiet", f"--depth={FIRST}", ticket, ".")
        assert self.newest(FIRST) == FIRST

    def name(self) -> None:
        """Return nothing: who reaches the server may write."""

    def admit(self, _name: None) -> None:
        """Do nothing: who reaches the server may write."""

    def write(self, texts: Sequence[str]) -> None:
        """Write commits as an import does, for one command each would take three milliseconds."""
        head = subprocess.run(
            ["git", "rev-parse", "--quiet", "--verify", _BRANCH],
            cwd=self.folder, env=_ENVIRONMENT, capture_output=True, text=True, check=False,
        ).stdout.strip()  # fmt: skip
        lines = []
        for number, text in enumerate(texts):
            said = text.encode()
            lines.append(f"commit {_BRANCH}\ncommitter member <member@example.org> now\n".encode())
            lines.append(b"data %d\n%s\n" % (len(said), said))
            if head and number == 0:
                lines.append(f"from {head}\n".encode())
        self._git("fast-import", "--quiet", "--date-format=now", "--done", given=b"".join(lines) + b"done\n")

    def until(self, count: int) -> None:
        """Assert that they are here: each command has ended."""
        assert int(self._git("rev-list", "--count", "--no-merges", "main")) >= count

    def newest(self, count: int) -> int:
        """Read by `git log`."""
        return len(self._git("log", f"--max-count={count}", "--format=%s", "main").splitlines())

    def leave(self) -> None:
        """Do nothing: no connection stays."""

    def processes(self) -> Iterable[int]:
        """Return nothing: none stays."""
        return ()

    def processor(self) -> float:
        """Return what all ended commands of this program used, those of the server too: asked of one side alone."""
        if self._server is not None:
            return 0.0
        now = resource.getrusage(resource.RUSAGE_CHILDREN)
        return now.ru_utime + now.ru_stime - self._before.ru_utime - self._before.ru_stime

    def close(self) -> None:
        """End the server."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def _git(self, *arguments: str, given: bytes = b"") -> str:
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.folder,
            env=_ENVIRONMENT,
            input=given,
            capture_output=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"git {arguments}: {done.stderr.decode()}")
        return done.stdout.decode()


def _serve(folder: Path) -> socketserver.ThreadingTCPServer:
    """Serve a repository on any free port: `git daemon` itself takes one that is named alone."""
    git = shutil.which("git")
    assert git is not None
    command = [git, "daemon", "--inetd", "--export-all", f"--base-path={folder.parent}", str(folder)]

    class Answer(socketserver.BaseRequestHandler):
        """One connection."""

        def handle(self) -> None:
            """Give the socket to the command."""
            end = self.request.fileno()
            subprocess.run(
                command, stdin=end, stdout=end, stderr=subprocess.DEVNULL, env=_ENVIRONMENT, check=False
            )

    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Answer)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server
