"""Real daemons in processes of their own, on loopback, driven through their API as a person would by commands."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

from node.client import ApiClient
from node.errors import ServiceError

RAVEL = [sys.executable, "-P", "-m", "node.cli.main"]
READY_SECONDS = 30.0
POLL_SECONDS = 0.05
JsonObject = dict[str, Any]


class Peer:
    """One daemon: a folder and, while it runs, a process, which `environment` adds to the variables of."""

    def __init__(
        self,
        home: Path,
        *,
        listen: str | None = None,
        keys: Sequence[str] = ("--clear",),
        environment: Mapping[str, str] = MappingProxyType({}),
        stdin: str = "",
        introduces: bool = True,
        storage_url: str = "",
    ) -> None:
        """One that does not introduce connects to nobody but whom it is told to."""
        self.home = home
        self.storage_url = storage_url
        self.environment = environment
        self.listen = listen or f"127.0.0.1:{free_port()}"
        self._process: subprocess.Popen[bytes] | None = None
        self._client: ApiClient | None = None
        at = ("--name", home.name, "--listen", self.listen, "--api", "127.0.0.1:0")
        run_ravel(self, "init", *keys, *at, environment=environment, stdin=stdin)
        if not introduces:
            config = home / "config.toml"
            config.write_text(config.read_text().replace("introductions = true", "introductions = false"))
        if storage_url:
            self.keep_rows_in(storage_url)

    def keep_rows_in(self, url: str) -> None:
        """Have the configuration name this database, or none. Its rows are to be there."""
        config = self.home / "config.toml"
        lines = config.read_text().splitlines()
        config.write_text(
            "\n".join(f'url = "{url}"' if line.startswith("url = ") else line for line in lines)
        )
        self.storage_url = url

    @property
    def client(self) -> ApiClient:
        """The API of the running daemon."""
        if self._client is None:
            self._client = ApiClient.for_home(self.home)
        return self._client

    @property
    def pid(self) -> int:
        """The daemon's process."""
        assert self._process is not None
        return self._process.pid

    def start(self, *options: str) -> None:
        """Start, with more options of `run`, and wait until it answers."""
        with (self.home / "daemon.log").open("ab") as log:
            self._process = subprocess.Popen(
                [*RAVEL, "--home", str(self.home), "run", *options],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                env={**os.environ, **self.environment},
            )
        until(self._answers, f"{self.home.name} answers", READY_SECONDS)

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self.home / "daemon.log").read_text()
        try:
            return str(self.client.status()["node"]) != ""
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
        code = self._process.wait(10)
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
) -> subprocess.CompletedProcess[str]:
    """Run one command and hold it to its exit code."""
    done = subprocess.run(
        [*RAVEL, "--home", str(peer.home), *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "NO_COLOR": "1", **environment},
    )
    assert done.returncode == code, f"{arguments}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def until(holds: Callable[[], bool], what: str, seconds: float = 30.0) -> None:
    """Poll until it holds; fail with `what` when it does not in time."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"not in {seconds:.0f} s: {what}"
        # The state of another process can only be polled for.
        time.sleep(POLL_SECONDS)


def digest(peer: Peer, branch: str) -> JsonObject:
    """Digest of a branch's timeline, or an empty one while the peer does not know it."""
    try:
        return peer.client.digest(branch)
    except ServiceError as error:
        if error.code == "not_found":
            return {"digest": "", "commits": 0, "heads": []}
        raise


def until_equal(first: Peer, second: Peer, branch: str, seconds: float = 30.0) -> JsonObject:
    """Wait until both show the same timeline."""
    until(
        lambda: bool(digest(first, branch)["digest"] == digest(second, branch)["digest"] != ""),
        "both show the same timeline",
        seconds,
    )
    return digest(first, branch)


def free_port() -> int:
    """A port that was free a moment ago: a daemon that is restarted must find its own again."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def join(alice: Peer, bob: Peer, permission: str = "write") -> tuple[str, str]:
    """Alice creates a repo, bob joins it; gives (repo id, branch id)."""
    repo = str(alice.client.create_repo("shared")["repo"])
    branch = str(alice.client.list_branches(repo)["branches"][0]["branch"])
    link = alice.client.members.invite(repo, permission, 3600)["invitation"]
    bob.client.join(link)
    return repo, branch
