"""What is done to a node while its files are recorded: commands and a daemon, in processes of their own.

Each act ends with a promise in the record: what the command or the API had answered by then.
"""

import json
import os
import random
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar, Final

from blake3 import blake3

from node.home.folder_mark import MARK_NAME
from node.home.identity import open_keys
from node.runtime.errors import ServiceError
from protocol.crypto.signing import public_key
from protocol.formats.text import id_text
from ravel import Client, connect
from tests.e2e.cluster import Peer
from tests.powercut.checks import BACKUPS, EXPORTS, HOME, OLDER_STORES, PASSPHRASE, lay_out
from tests.powercut.disk import Disk, State
from tests.powercut.recording import Recording
from tests.support.read_exports import read_export

SHORT: Final = ("start", "post", "post", "file 5000", "file 300000", "post", "kill", "seal")
"""Names, rows, a pack, a log that nobody has taken up again, keys."""
LONG: Final = (
    *(
        "start",
        *["post"] * 20,
        "file 5000",
        "file 300000",
        "file 2000000",
        "post",
        "export",
        "post",
        "export",
    ),
    *("backup", "upgrade", "kill", "start", "import 100", "file 900000", "post", "stop", "backup"),
    *(
        "seal",
        "start",
        "post",
        "file 400000",
        "remove",
        "remove",
        "stop",
        "gc",
        "start",
        *["post"] * 5,
        "kill",
        "start",
    ),
    *("export", "stop", "unseal", "seal", "reseal", "start", "post", "remove", "cut"),
    *("unseal", "start", "post", "stop", "gc", "backup", "start", "log 34", *["post"] * 3, "stop"),
)
_FILE_OF_ROWS: Final = 250_000
"""Bytes of a file that goes into rows, and so into the log."""
_SIZES: Final = (1, 5_000, 300_000)
_ANSWERS: Final = 3
"""Posts that are acknowledged before the power is cut."""
_ANSWER_SECONDS: Final = 240.0
"""Time for one of them on a machine that is busy: an answer that takes longer never comes."""
_RAVEL: Final = [sys.executable, "-P", "-m", "node.cli.main"]


class _RecordedPeer(Peer):
    """One whose processes load the library that records: an interpreter of its own does, and a fork does not."""

    forks: ClassVar[bool] = False


class Scenario:
    """One node, and what is done to it."""

    def __init__(self, root: Path, scratch: Path, seed: int) -> None:
        """Make the node: `ravel init`."""
        self._seed = seed
        self._outages = 0
        self._chance = random.Random(seed)
        self._scratch = scratch
        self._names = 0
        self._files: list[str] = []
        self._branch = ""
        self._passphrase = scratch / "passphrase"
        self._passphrase.touch(mode=0o600)
        self._passphrase.write_bytes(PASSPHRASE)
        self.recording: Final = Recording(root, scratch)
        self._home = root / HOME
        environment = {
            **self.recording.environment,
            "RAVEL_PASSPHRASE_FILE": str(self._passphrase),
            "RAVEL_EXPORT_FORMAT": "delta",  # all that an export writes
        }
        self._environment: Mapping[str, str] = MappingProxyType(environment)
        # Without a passphrase in use the file is not read.
        self._peer = _RecordedPeer(self._home, environment=self._environment)
        keys = open_keys(self._home, lambda: PASSPHRASE)
        self.seeds: Final = (keys.node_seed, keys.user_seed)
        self.recording.promise(user=id_text(public_key(keys.user_seed)))

    def play(self, acts: Sequence[str]) -> None:
        """Do these, one after the other."""
        for act in acts:
            name, _, number = act.partition(" ")
            getattr(self, f"_{name}")(*([int(number)] if number else []))

    def close(self) -> None:
        """Leave no process behind."""
        self._peer.close()

    # --- the daemon ---

    def _start(self) -> None:
        self._peer.start()
        if not self._branch:
            repo = str(self._peer.client.create_repo("shared")["repo"])
            self._branch = str(self._peer.client.list_branches(repo)["branches"][0]["branch"])
            self.recording.promise(branch=self._branch)

    def _stop(self) -> None:
        assert self._peer.stop() == 0

    def _kill(self) -> None:
        self._peer.kill()

    def _cut(self) -> None:
        """Cut the power while something is written, and lay out what chance left: the next start takes that up."""
        answered = threading.Semaphore(0)

        def work() -> None:
            with suppress(ServiceError), closing(connect(self._home)) as api:
                while True:
                    self._post(api)
                    answered.release()
                    self._file(self._chance.choice(_SIZES), api)

        writer = threading.Thread(target=work)
        writer.start()
        for _ in range(_ANSWERS):
            assert answered.acquire(timeout=_ANSWER_SECONDS), "no answer"
        self._peer.kill()
        writer.join()
        disk, root = Disk(), self.recording.root
        for event in self.recording.events():
            disk.apply(event)
        self._outages += 1
        seed = self._seed + self._outages
        state = disk.cut(seed)
        # What is laid out are other files; where the power went they were the same, which the mark says.
        files = {path: found for path, found in state.files.items() if Path(path).name != MARK_NAME}
        for path in root.iterdir():
            shutil.rmtree(path)
        lay_out(State(files, state.folders), root)
        self.recording.outage(seed, {path: (root / path).stat().st_ino for path in files})

    def _post(self, api: Client | None = None) -> None:
        commit = (api or self._peer.client).write_post(self._branch, "x" * self._chance.randint(1, 2000))[
            "commit"
        ]
        self.recording.promise(commit=commit)

    def _import(self, count: int) -> None:
        items = [
            {"id": str(number), "parents": [], "author": "a", "time": 1, "text": "x" * 50}
            for number in range(count)
        ]
        self._peer.client.import_commits(self._branch, items, "cut")
        for item in self._peer.client.show_timeline(self._branch, after_position=-1, limit=1000)["items"]:
            self.recording.promise(commit=item["commit"])

    def _file(self, size: int, api: Client | None = None) -> None:
        self._names += 1
        name, content = f"file {self._names}", self._chance.randbytes(size)
        added = (api or self._peer.client).add_file(self._branch, [content], name=name)
        self._files.append(name)
        self.recording.promise(commit=added["commit"])
        self.recording.promise(file=name, hash=blake3(content).hexdigest())

    def _remove(self) -> None:
        name = self._files.pop(0)
        self.recording.promise(removing=name)
        removed = self._peer.client.remove_file(self._branch, name)
        self.recording.promise(commit=removed["commit"])

    def _log(self, size: int) -> None:
        """Add files of rows until so many MiB went through the log, which is then written into the database."""
        for _ in range((size << 20) // _FILE_OF_ROWS):
            self._file(_FILE_OF_ROWS)

    def _export(self) -> None:
        self._peer.client.export_store()
        self.recording.promise(exported=read_export(self.recording.root / EXPORTS).rows)

    # --- commands ---

    def _backup(self) -> None:
        made = self._run("backup", "--json", str(self.recording.root / BACKUPS))
        self.recording.promise(backup=Path(json.loads(made)["path"]).name)

    def _upgrade(self) -> None:
        """Upgrade another store, which an older Ravel left."""
        self._names += 1
        name = str(self._names)
        folder = self.recording.root / OLDER_STORES / name
        for act in ("make", "open"):
            subprocess.run(
                [sys.executable, "-m", "tests.support.older_stores", act, str(folder)],
                check=True,
                env={**os.environ, **self._environment},
            )
            self.recording.promise(older=name)

    def _gc(self) -> None:
        self._run("gc", "--removed")

    def _seal(self) -> None:
        self._protect("passphrase", "key", "seal", "--new-passphrase-file", str(self._passphrase))

    def _reseal(self) -> None:
        self._protect(
            "passphrase", "key", "change-passphrase", "--new-passphrase-file", str(self._passphrase)
        )

    def _unseal(self) -> None:
        self._protect("none", "key", "unseal")

    def _protect(self, protection: str, *command: str) -> None:
        self.recording.promise(protection="")
        self._run(*command)
        self.recording.promise(protection=protection)

    def _run(self, *command: str) -> str:
        done = subprocess.run(
            [*_RAVEL, "--home", str(self._home), *command],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, **self._environment},
        )
        assert done.returncode == 0, f"{command}: {done.stderr}"
        return done.stdout


@contextmanager
def record(folder: Path, acts: Sequence[str], seed: int) -> Iterator[Scenario]:
    """Play acts on a new node in a folder that is empty; what they wrote is recorded."""
    root, scratch = folder / "root", folder / "scratch"
    root.mkdir()
    scratch.mkdir()
    scenario = Scenario(root, scratch, seed)
    try:
        scenario.play(acts)
        yield scenario
    finally:
        scenario.close()
