"""Real daemons in processes of their own, on loopback, driven through their API as a person would by commands.

No port is chosen before it is bound: a daemon takes any that is free, and says which. One that is started again takes the
same, which others know it by.
"""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

from node.runtime.errors import ServiceError
from ravel import Client, connect
from ravel.types.timelines import TimelineDigest
from tests.support.answers import CheckedHttpClient
from tests.support.machine import patience
from tests.support.processes import RAVEL, RavelProcess, run_command

POLL_SECONDS = 0.02
STOP_SECONDS = 10.0
ANY_PORT = "127.0.0.1:0"
_PORT_TAKEN = "Address already in use"
JsonObject = dict[str, Any]


class Peer:
    """One daemon: a folder and, while it runs, a process, which `environment` adds to the variables of."""

    forks: ClassVar[bool] = False
    """Whether daemons are forked, which is faster, or started in an interpreter of their own, as a person's are."""

    def __init__(
        self,
        home: Path,
        *,
        listen: str = ANY_PORT,
        keys: Sequence[str] = ("--clear",),
        environment: Mapping[str, str] = MappingProxyType({}),
        stdin: str = "",
        introduces: bool = True,
        storage_url: str = "",
    ) -> None:
        """One that does not introduce connects only to peers that it is told of."""
        self.home = home
        self.storage_url = storage_url
        self.environment = environment
        self._listen = ""
        self._process: RavelProcess | subprocess.Popen[bytes] | None = None
        self._client: Client | None = None
        at = ("--listen", listen, "--api", ANY_PORT)
        run_ravel(self, "init", *keys, *at, environment=environment, stdin=stdin)
        if not introduces:
            config = home / "config.toml"
            config.write_text(config.read_text().replace("introductions = true", "introductions = false"))
        if storage_url:
            self.keep_rows_in(storage_url)

    @property
    def listen(self) -> str:
        """host:port where other nodes reach it, from its first start on."""
        assert self._listen, "it was started"
        return self._listen

    def keep_rows_in(self, url: str) -> None:
        """Have the configuration name this database, or none. Its rows are to be there."""
        config = self.home / "config.toml"
        lines = config.read_text().splitlines()
        config.write_text(
            "\n".join(f'url = "{url}"' if line.startswith("url = ") else line for line in lines)
        )
        self.storage_url = url

    @property
    def client(self) -> Client:
        """The API of the running daemon."""
        if self._client is None:
            self._client = connect(self.home)
            # Real daemons are held to the table, too.
            self._client._http.__class__ = CheckedHttpClient
        return self._client

    @property
    def pid(self) -> int:
        """The daemon's process."""
        assert self._process is not None
        return self._process.pid

    def start(self, *options: str) -> None:
        """Start, with more options of `run`, and wait until it answers."""
        self._process = self._begin(options)
        until(lambda: self._answers(options), f"{self.home.name} answers")
        self._listen = str(self.client.show_status()["listen"])

    def _begin(self, options: Sequence[str]) -> "RavelProcess | subprocess.Popen[bytes]":
        log = self.home / "daemon.log"
        again = () if not self._listen or "--listen" in options else ("--listen", self._listen)
        command = ("--home", str(self.home), "run", *again, *options)
        if self.forks:
            return RavelProcess(command, output=log, errors=log, environment=self.environment)
        with log.open("ab") as stream:
            environment = {**os.environ, **self.environment}
            return subprocess.Popen(
                [*RAVEL, *command], stdin=subprocess.DEVNULL, stdout=stream, stderr=stream, env=environment
            )

    def _answers(self, options: Sequence[str]) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            log = (self.home / "daemon.log").read_text()
            # While it was away, another program may have been given its port for a moment.
            assert self._listen, log
            assert _PORT_TAKEN in log.rpartition("error: ")[2], log
            self._process = self._begin(options)
            return False
        try:
            return str(self.client.show_status()["node"]) != ""
        except ServiceError:
            self._forget_client()
            return False

    def _forget_client(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    def kill(self) -> None:
        """SIGKILL, as a power cut would."""
        self.stop(signal.SIGKILL)

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Stop it and give the exit code."""
        assert self._process is not None
        self._forget_client()
        self._process.send_signal(number)
        code = self._process.wait(patience(STOP_SECONDS))
        self._process = None
        return code

    def close(self) -> None:
        """Leave no process and no connection behind."""
        self._forget_client()
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()


@contextmanager
def peers(folder: Path, *names: str, introduces: bool = True, storage_url: str = "") -> Iterator[list[Peer]]:
    """Running peers, stopped at the end. A database is for the rows of the first."""
    made: list[Peer] = []
    try:
        for number, name in enumerate(names):
            url = "" if number else storage_url
            made.append(Peer(folder / name, introduces=introduces, storage_url=url))
            made[-1].start()
        yield made
    finally:
        for peer in made:
            peer.close()


def run_ravel(
    peer: Peer,
    *arguments: str | bytes,
    code: int = 0,
    stdin: str = "",
    environment: Mapping[str, str] = MappingProxyType({}),
    forks: bool | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run one command and hold it to its exit code; `forks` (as the peer does if None) as in `run_command`."""
    forks = peer.forks if forks is None else forks
    at_home = ("--home", str(peer.home), *arguments)
    done = run_command(at_home, stdin=stdin, environment=environment, forks=forks)
    assert done.returncode == code, f"{arguments}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def ask(peer: Peer, *command: str) -> JsonObject:
    """Run one command, and return what it answers as JSON."""
    answer: JsonObject = json.loads(run_ravel(peer, *command, "--json").stdout)
    return answer


def user_of(peer: Peer) -> str:
    """Return the id of a daemon's user."""
    return str(peer.client.show_status()["user"])


def permissions_of(peer: Peer) -> dict[str, str]:
    """Return what a daemon's user may do, by the names of its repos."""
    return {str(repo["name"]): str(repo["permission"]) for repo in peer.client.list_repos()["repos"]}


def permission_of(peer: Peer, user: str) -> str:
    """Return what a member of the repo "shared" may do there, as a daemon knows, or "none"."""
    members = {item["user"]: item["permission"] for item in peer.client.list_members("shared")["members"]}
    return str(members.get(user, "none"))


def persons_of(peer: Peer, repo: str) -> dict[str, str]:
    """Return whose device each member of a repo is, as a daemon knows."""
    return {item["user"]: item["person"] for item in peer.client.list_members(repo)["members"]}


def until(holds: Callable[[], bool], what: str, seconds: float = 30.0) -> None:
    """Poll until it holds; fail with `what` when it does not in the time that this machine may take."""
    deadline = time.monotonic() + patience(seconds)
    while not holds():
        assert time.monotonic() < deadline, f"not in {patience(seconds):.0f} s: {what}"
        # The state of another process can only be polled for.
        time.sleep(POLL_SECONDS)


def digest(peer: Peer, branch: str) -> TimelineDigest:
    """Digest of a branch's timeline, or an empty one while the peer does not know it."""
    try:
        return peer.client.show_digest(branch)
    except ServiceError as error:
        if error.code == "not_found":
            return {"digest": "", "commits": 0, "heads": [], "head_count": 0}
        raise


def until_equal(first: Peer, second: Peer, branch: str, seconds: float = 30.0) -> TimelineDigest:
    """Wait until both show the same timeline."""
    until(
        lambda: bool(digest(first, branch)["digest"] == digest(second, branch)["digest"] != ""),
        "both show the same timeline",
        seconds,
    )
    return digest(first, branch)


def join(alice: Peer, bob: Peer, permission: str = "write") -> tuple[str, str]:
    """Alice creates a repo, bob joins it; gives (repo id, branch id)."""
    repo = str(alice.client.create_repo("shared")["repo"])
    branch = str(alice.client.list_branches(repo)["branches"][0]["branch"])
    link = alice.client.create_invitation(repo, permission=permission, expires_seconds=3600)["invitation"]
    bob.client.join_repo(link)
    return repo, branch
