"""The main job, end to end: two daemons, a git history, an invitation, a partition, a merge, an export, two engines.

    python examples/demo.py [--git PATH] [--home FOLDER] [--relay]

Everything is done with the commands that a person would type; each is printed before it runs. A daemon that dies on the
way (kill -9 one: the pids are printed) is started again and the step repeated; the result is the same. With --relay the
two never connect to each other, but to a relay that cannot read what it keeps.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

RAVEL: Final = [sys.executable, "-P", "-m", "node.cli.main"]
REPOSITORY: Final = Path(__file__).resolve().parent.parent
READY_SECONDS: Final = 60.0
STOP_SECONDS: Final = 10.0
EQUAL_SECONDS: Final = 240.0
EXIT_NOT_RUNNING: Final = 13
_ANY_PORT: Final = "127.0.0.1:0"
T = TypeVar("T")
JsonObject = dict[str, Any]


class DemoFailed(Exception):
    """Something did not do what it should."""


class CommandFailed(Exception):
    """A command ended with an exit code other than 0."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Daemon:
    """One peer: a folder, a config, and a process that a thread starts again whenever it dies."""

    def __init__(self, name: str, home: Path, advertise: str = "") -> None:
        self.name = name
        self.home = home
        self.log = home.parent / f"{name}.log"
        self.deaths = 0
        self._stopping = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._supervisor = threading.Thread(target=self._supervise, daemon=True)
        self.ravel("init", "--clear", "--name", name, "--listen", _ANY_PORT, "--api", _ANY_PORT)
        if advertise:
            self.ravel("config", "set", "network.advertise", advertise)

    def start(self) -> None:
        """Start the daemon and wait until it answers. A daemon that is started again listens where it did before."""
        self._supervisor.start()
        self.wait_ready()
        listen = str(self.insist(lambda: self.ravel("status", quiet=True))["listen"])
        config = self.home / "config.toml"
        config.write_text(config.read_text().replace(f'"{_ANY_PORT}"', f'"{listen}"', 1))

    def wait_ready(self) -> None:
        """Return when the daemon answers."""
        deadline = time.monotonic() + READY_SECONDS
        while time.monotonic() < deadline and self._supervisor.is_alive():
            try:
                self.ravel("status", quiet=True)
            except CommandFailed:
                time.sleep(0.1)
            else:
                return
        raise DemoFailed(f"{self.name}'s daemon does not get ready; see {self.log}")

    def stop(self) -> None:
        """Stop it as a person would."""
        self._stopping.set()
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        if self._supervisor.ident is not None:
            self._supervisor.join(STOP_SECONDS)
        if self._process is not None and self._process.poll() is None:
            self._process.kill()

    def _supervise(self) -> None:
        """Keep a daemon running: until it is told to stop, or ends by itself, which no daemon should."""
        code = -1
        # Else alice would find bob again while they are to be apart.
        run = [*RAVEL, "--home", str(self.home), "run", "--set", "network.introductions=false"]
        while code < 0 and not self._stopping.is_set():
            with self.log.open("ab") as log:
                self._process = subprocess.Popen(run, stdout=log, stderr=log, cwd=REPOSITORY)
            say(f"{self.name}'s daemon runs (pid {self._process.pid}), log in {self.log}")
            code = self._process.wait()
            if not self._stopping.is_set():
                self.deaths += 1
                say(f"{self.name}'s daemon died ({code}){': starting it again' if code < 0 else ''}")

    def ravel(self, *arguments: str, quiet: bool = False, progress: bool = False) -> JsonObject:
        """Run one command against this peer; gives its JSON."""
        if not quiet:
            print(
                f"    {self.name}$ ravel {' '.join(_shown(argument) for argument in arguments)}", flush=True
            )
        done = subprocess.run(
            [*RAVEL, "--home", str(self.home), *arguments, "--json"],
            stdout=subprocess.PIPE,
            stderr=None if progress else subprocess.PIPE,
            cwd=REPOSITORY,
            check=False,
        )
        if done.returncode != 0:
            raise CommandFailed(
                done.returncode, (done.stdout + (done.stderr or b"")).decode(errors="replace").strip()
            )
        answer: JsonObject = json.loads(done.stdout) if done.stdout.strip() else {}
        return answer

    def insist(self, step: Callable[[], T]) -> T:
        """Run a step that may be repeated, and repeat it when the daemon died meanwhile."""
        while True:
            deaths = self.deaths
            try:
                return step()
            except CommandFailed as error:
                time.sleep(0.3)  # the supervisor may be a moment behind the command
                if error.code != EXIT_NOT_RUNNING and deaths == self.deaths:
                    raise DemoFailed(f"{self.name}: {error}") from error
                self.wait_ready()


def main() -> int:
    """Run the demo; 0 when everything held."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--git", type=Path, default=REPOSITORY, help="git repository to import (default: this one)"
    )
    parser.add_argument("--home", type=Path, default=REPOSITORY / ".demo", help="folder for the two peers")
    parser.add_argument("--relay", action="store_true", help="let the peers meet at a relay only")
    options = parser.parse_args()
    began = time.monotonic()
    daemons: list[Daemon] = []
    try:
        report = run(options.git, options.home, daemons, with_relay=options.relay)
    except (DemoFailed, CommandFailed) as error:
        print(f"\ndemo FAILED: {error}", file=sys.stderr)
        return 1
    finally:
        for daemon in daemons:
            daemon.stop()
    print(f"\nEverything agreed, in {time.monotonic() - began:.0f} s. The report: {report}")
    return 0


def run(git: Path, folder: Path, daemons: list[Daemon], *, with_relay: bool) -> Path:
    """The steps. Gives the report's path."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700, parents=True)

    say("1. two peers")
    # With a relay, no link names alice: so nobody dials her.
    advertise = "nothing" if with_relay else ""
    for name in ("alice", "bob"):
        daemon = Daemon(name, folder / name, advertise)
        daemons.append(daemon)
        daemon.start()
    alice, bob = daemons
    meets_at = alice
    if with_relay:
        meets_at = _start_relay(folder)
        daemons.append(meets_at)
        meets_at.start()
        say("and a relay, which both will dial")
        alice.insist(lambda: alice.ravel("peer", "add", "--relay", *_address(meets_at)))

    say(f"2. alice creates a repo and imports the history of {git.resolve()}")
    repo = alice.insist(lambda: _create_repo(alice))
    branch = alice.insist(lambda: _main_branch(alice, repo))
    alice.insist(lambda: alice.ravel("import", "git", str(git.resolve()), "--branch", branch, progress=True))

    say("3. bob joins by an invitation and replicates; his node verifies every commit itself")
    link = alice.insist(lambda: alice.ravel("repo", "invite", "--local", repo, "--permission", "write"))[
        "invitation"
    ]
    bob.insist(lambda: bob.ravel("repo", "join", link))
    _until_equal(alice, bob, branch)
    _until(lambda: _permission(bob, repo) == "write", "bob is a member with write permission")

    say("4. both write while disconnected")
    address, peer = _address(meets_at)
    bob.insist(lambda: _disconnect(bob, peer))
    for number in (1, 2, 3):
        for daemon in (alice, bob):
            text = f"{daemon.name} writes offline, {number}"
            daemon.insist(lambda daemon=daemon, text=text: _write_once(daemon, branch, text))  # type: ignore[misc]  # bound now
    before = [_digest(daemon, branch) for daemon in (alice, bob)]
    if before[0]["digest"] == before[1]["digest"]:
        raise DemoFailed("the two timelines are equal although nothing was exchanged")

    say("5. they reconnect, and merge without anyone doing anything")
    bob.insist(lambda: bob.ravel("peer", "add", *(["--relay"] if with_relay else []), address, peer))
    _until_equal(alice, bob, branch)
    heads = len(_digest(alice, branch)["heads"])
    say(f"heads after the merge: {heads}")
    if heads != 2:
        raise DemoFailed(f"two writers apart make two heads, not {heads}")
    bob.insist(lambda: _write_once(bob, branch, "bob has seen both"))
    digest = _until_equal(alice, bob, branch)
    heads = len(_digest(alice, branch)["heads"])
    say(f"heads after the next commit: {heads}")
    if heads != 1:
        raise DemoFailed(f"the next commit acks both heads, so one is left, not {heads}")

    say("6. bob exports his store; Spark and DuckDB compute statistics and their own order")
    export = bob.insist(lambda: bob.ravel("export"))["path"]
    out = folder / "analysis"
    bob.ravel("analyze", export, "--out", str(out), progress=True)
    _compare_with_spark(out, branch, digest)
    beside = folder / "analysis-local"
    bob.ravel("analyze", export, "--out", str(beside), "--engine", "local", progress=True)
    _compare_engines(out, beside)
    return out / "report.html"


def say(text: str) -> None:
    """One line of the story."""
    print(f"\n== {text}" if text[:1].isdigit() else f"   {text}", flush=True)


def _create_repo(alice: Daemon) -> str:
    repos = alice.ravel("repo", "list", quiet=True)["repos"]
    repo = repos[0] if repos else alice.ravel("repo", "create", "demo")
    return str(repo["repo"])


def _main_branch(alice: Daemon, repo: str) -> str:
    branches = alice.ravel("branch", "list", repo)["branches"]
    branch = branches[0] if branches else alice.ravel("branch", "create", repo, "main")
    return str(branch["branch"])


def _start_relay(folder: Path) -> Daemon:
    relay = Daemon("relay", folder / "relay")
    config = relay.home / "config.toml"
    config.write_text(config.read_text().replace("enabled = false", "enabled = true"))
    return relay


def _address(daemon: Daemon) -> tuple[str, str]:
    """Where it listens, and its key."""
    status = daemon.insist(lambda: daemon.ravel("status", quiet=True))
    return str(status["listen"]), str(status["node"])


def _permission(daemon: Daemon, repo: str) -> str:
    repos = daemon.insist(lambda: daemon.ravel("repo", "list", quiet=True))["repos"]
    return next((str(item["permission"]) for item in repos if item["repo"] == repo), "none")


def _disconnect(bob: Daemon, peer: str) -> None:
    if any(item["peer"] == peer for item in bob.ravel("peer", "list", quiet=True)["peers"]):
        bob.ravel("peer", "remove", peer)


def _write_once(daemon: Daemon, branch: str, text: str) -> None:
    """Write, unless a try before the daemon died has written it."""
    tail = daemon.ravel("log", branch, "--limit", "20", quiet=True)["items"]
    if not any(item["text"] == text for item in tail):
        daemon.ravel("write", branch, text)


def _digest(daemon: Daemon, branch: str) -> JsonObject:
    return daemon.insist(lambda: daemon.ravel("log", branch, "--digest", quiet=True))


def _until_equal(alice: Daemon, bob: Daemon, branch: str) -> str:
    """Wait until both show the same timeline; print both digests."""
    deadline = time.monotonic() + EQUAL_SECONDS
    shown = 0.0
    while time.monotonic() < deadline:
        try:
            digests = [_digest(daemon, branch) for daemon in (alice, bob)]
        except DemoFailed:
            time.sleep(0.3)  # bob does not know the branch yet
            continue
        if digests[0]["digest"] == digests[1]["digest"]:
            for daemon, answer in zip((alice, bob), digests, strict=True):
                say(f"{daemon.name:>5}: {answer['commits']} commits, timeline {answer['digest']}")
            return str(digests[0]["digest"])
        if time.monotonic() - shown > 2:
            shown = time.monotonic()
            say(f"bob has {digests[1]['commits']} of {digests[0]['commits']} commits")
        time.sleep(0.2)
    raise DemoFailed(f"the timelines are not equal after {EQUAL_SECONDS:.0f} s")


def _until(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline:
        if holds():
            say(what)
            return
        time.sleep(0.2)
    raise DemoFailed(f"after {READY_SECONDS:.0f} s still not: {what}")


def _compare_with_spark(out: Path, branch: str, digest: str) -> None:
    computed = json.loads((out / "digests.json").read_text())[branch]
    say(f"Spark: {computed['commits']} commits, timeline {computed['digest']}")
    if computed["digest"] != digest:
        raise DemoFailed("Spark's order is not the nodes' order")
    say("Spark's order equals the node's for every commit")


def _compare_engines(spark: Path, local: Path) -> None:
    """Both engines ran the same definitions: rows are equal, whatever order they stand in."""
    names = sorted(folder.name for folder in (spark / "tables").iterdir())
    if names != sorted(folder.name for folder in (local / "tables").iterdir()):
        raise DemoFailed("Spark and the local engine write other tables")
    for name in names:
        rows = [sorted(map(repr, _read_rows(out / "tables" / name))) for out in (spark, local)]
        if rows[0] != rows[1]:
            raise DemoFailed(f"Spark and the local engine differ in the table {name}")
    say(f"Spark and the local engine agree on every row of {len(names)} tables")


def _read_rows(table: Path) -> list[JsonObject]:
    import pyarrow.parquet as pq  # takes a second to import

    rows: list[JsonObject] = [
        row for part in table.glob("*.parquet") for row in pq.read_table(part).to_pylist()
    ]
    return rows


def _shown(argument: str) -> str:
    short = argument if len(argument) < 60 else f"{argument[:40]}..."
    return f"'{short}'" if " " in short else short


if __name__ == "__main__":
    os.chdir(REPOSITORY)
    sys.exit(main())
