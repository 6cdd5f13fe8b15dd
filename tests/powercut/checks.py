"""What must hold of a folder in which the power went: a node starts on it, has what was acknowledged, and goes on."""

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from node.authoring.author import Author
from node.care.backup import restore_backup
from node.care.backup_folder import list_backups
from node.care.fsck import check_store
from node.home.home import create_home, lock_home, open_home
from node.home.identity import open_keys, read_keys
from node.home.key_file import Keys
from node.home.private_files import KEYS_NAME
from node.ingest.acceptance import retry_kept
from node.ingest.replica import Replica
from node.runtime.errors import ServiceError
from protocol.formats.content import Post
from protocol.formats.text import id_text, parse_id
from protocol.ids import BranchId
from ravel.exports.checking import ExportError
from ravel.exports.schema import MANIFEST_NAME, TABLES
from storage.engine.copies import drop_open_copies
from storage.engine.database import StorageError
from tests.powercut.disk import State
from tests.powercut.looking import find_ids, hash_files
from tests.support.delta_logs import read_delta
from tests.support.older_stores import SMALL_COUNT, upgrade_and_count
from tests.support.read_exports import read_export

PASSPHRASE: Final = b"a passphrase of tests"
HOME: Final = "nodes/alice"
EXPORTS: Final = f"{HOME}/exports"
BACKUPS: Final = "backups"
OLDER_STORES: Final = "older"
NOW_MS: Final = 4_000_000_000_000
"""Later than anything that is recorded."""
_SMALL: Final = 1 << 16
"""Bytes of files that are looked through for secrets; keys take less than one KiB."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a node that started on a folder has."""

    commits: frozenset[str] = frozenset()
    files: Mapping[str, str] = field(default_factory=dict)
    """BLAKE3 of the content by name."""
    user: str = ""
    protection: str = ""
    problems: tuple[str, ...] = ()


@dataclass(slots=True)
class Ledger:
    """What was promised by one place in a record."""

    user: str = ""
    branch: str = ""
    commits: dict[str, None] = field(default_factory=dict)  # in their order
    files: dict[str, str] = field(default_factory=dict)
    protection: str = ""  # empty: being changed
    backups: set[str] = field(default_factory=set)
    older: set[str] = field(default_factory=set)
    """Stores that an older Ravel left."""
    exported: int = 0
    """Commits that the export holds."""

    def note(self, promise: Mapping[str, Any]) -> None:
        """One more promise, or the end of one: a file that is about to be removed."""
        match promise:
            case {"user": str(user)}:
                self.user, self.protection = user, "none"
            case {"branch": str(branch)}:
                self.branch = branch
            case {"commit": str(commit)}:
                self.commits[commit] = None
            case {"file": str(name), "hash": str(content)}:
                self.files[name] = content
            case {"removing": str(name)}:
                del self.files[name]
            case {"protection": str(protection)}:
                self.protection = protection
            case {"backup": str(name)}:
                self.backups.add(name)
            case {"older": str(name)}:
                self.older.add(name)
            case {"exported": int(count)}:
                self.exported = count
            case _:
                raise AssertionError(promise)


class Checker:
    """Checks states, each part of one once, however often it comes back."""

    def __init__(self, scratch: Path, seeds: tuple[bytes, ...] = ()) -> None:
        """`seeds`: of the node and the user, which must not lie in the clear where keys are sealed."""
        self._scratch = scratch
        self._names = 0
        self._seeds = [form for seed in seeds for form in (seed, seed.hex().encode())]
        self._opened: dict[bytes, Keys] = {}
        self._homes: dict[bytes, Found] = {}
        self._backups: dict[bytes, list[str]] = {}
        self._exports: dict[bytes, tuple[int, str]] = {}
        self._older: dict[bytes, str] = {}
        self.started = 0
        """Nodes that were started."""

    def check(self, state: State, ledger: Ledger) -> list[str]:
        """What is wrong with a state, of which this was promised; each begins with its kind."""
        problems = [*self._check_home(state, ledger), *self.check_copies(state, ledger)]
        problems += [
            f"backup lost: {name}"
            for name in sorted(ledger.backups)
            if f"{BACKUPS}/{name}" not in state.folders
        ]
        return problems + [
            problem for name in sorted(ledger.older) if (problem := self._check_older(state, name))
        ]

    def check_copies(self, state: State, ledger: Ledger) -> list[str]:
        """What is wrong with the backups and the export that are there."""
        return self._check_backups(state) + self._check_export(state, ledger)

    def _check_home(self, state: State, ledger: Ledger) -> list[str]:
        if not ledger.user and not self._is_initialised(state):
            return self._check_init(state)
        found = self.start(state, ledger.branch)
        problems = list(found.problems)
        if ledger.user and found.user and found.user != ledger.user:
            problems.append(f"keys: of {found.user} instead of {ledger.user}")
        if ledger.protection and found.protection and found.protection != ledger.protection:
            problems.append(f"keys: their protection is {found.protection} instead of {ledger.protection}")
        if problems and not found.user:  # it did not start, which is one problem and not three
            return problems
        lacking = ledger.commits.keys() - found.commits
        if lacking:
            problems.append(f"commits lost: {len(lacking)} of {len(ledger.commits)}")
        for name, content in ledger.files.items():
            if found.files.get(name) != content:
                problems.append(f"file lost: {name} ({found.files.get(name, 'is not there')})")
        return problems

    @staticmethod
    def _is_initialised(state: State) -> bool:
        return {f"{HOME}/config.toml", f"{HOME}/{KEYS_NAME}"} <= state.files.keys()

    def _check_init(self, state: State) -> list[str]:
        """`ravel init` was cut: it can be given again."""
        key = state.digest(HOME)
        if key not in self._homes:
            self.started += 1
            with self._laid_out(state.part(HOME)) as home:
                try:
                    create_home(home)
                    open_keys(home, lambda: PASSPHRASE)
                    self._homes[key] = Found()
                except ServiceError as error:
                    self._homes[key] = Found(problems=(f"init again: {error}",))
        return list(self._homes[key].problems)

    def start(self, state: State, branch: str) -> Found:
        """What a node has that starts on a state."""
        key = state.digest(HOME) + branch.encode()
        if key not in self._homes:
            self.started += 1
            with self._laid_out(state.part(HOME)) as home:
                self._homes[key] = self._run(home, branch)
        return self._homes[key]

    def _run(self, home: Path, branch: str) -> Found:
        """What `ravel run` does before it serves anybody, then a write, then `ravel fsck`."""
        try:
            url = open_home(home).storage_url
            with lock_home(home):
                keys = self._open_keys(home)
                replica = Replica(home, keys.store_key, url)
                try:
                    protection = read_keys(home).protection
                    if protection != "none":
                        drop_open_copies(home)
                    retry_kept(replica, NOW_MS)
                    found = self._look(home, replica, keys, branch, protection)
                finally:
                    replica.close()
            findings = check_store(home, keys.store_key, url)
        except (ServiceError, StorageError) as error:  # what is wrong, in words
            return Found(problems=(f"does not start: {type(error).__name__}: {error}",))
        except Exception as error:  # whatever it is, nobody has a node then
            return Found(problems=(f"does not start, by a defect: {type(error).__name__}: {error}",))
        fsck = tuple(f"fsck: {one.kind} {one.about}: {one.detail}" for one in findings.problems[:3])
        return Found(found.commits, found.files, found.user, found.protection, (*found.problems, *fsck))

    def _look(self, home: Path, replica: Replica, keys: Keys, branch_text: str, protection: str) -> Found:
        author = Author(replica, keys.user_seed, lambda: NOW_MS)
        problems: list[str] = []
        if protection != "none":
            problems += [f"secret in the clear: {path.name}" for path in self._find_clear(home)]
        commits: frozenset[str] = frozenset()
        files: dict[str, str] = {}
        branch = None
        if branch_text:
            branch_id = BranchId(parse_id(branch_text))
            branch = next((one for one in replica.branches.values() if one.branch_id == branch_id), None)
        if branch is not None:
            commits = frozenset(id_text(one) for one in find_ids(replica, branch))
            files = dict(hash_files(replica, branch))
        try:
            if branch is None:
                author.founding.create_repo("another")
            else:
                author.write(branch, Post("after the cut"))
        except (ServiceError, StorageError) as error:
            problems.append(f"next write: {error}")
        return Found(commits, files, id_text(author.user), protection, tuple(problems))

    def _open_keys(self, home: Path) -> Keys:
        """A passphrase takes half a second: each file is opened once."""
        content = (home / KEYS_NAME).read_bytes()
        if content not in self._opened:
            self._opened[content] = open_keys(home, lambda: PASSPHRASE)
        return self._opened[content]

    def _find_clear(self, home: Path) -> Iterator[Path]:
        for path in home.iterdir():
            if path.is_file() and path.stat().st_size <= _SMALL:
                content = path.read_bytes()
                if any(seed in content for seed in self._seeds):
                    yield path

    def _check_backups(self, state: State) -> list[str]:
        """Under its name there is a whole backup or none, whatever became of those after it."""
        key = state.digest(BACKUPS)
        if key not in self._backups:
            self._backups[key] = []
            with self._laid_out(state.part(BACKUPS)) as folder:
                for backup in list_backups(folder):
                    self.started += 1
                    if problem := self._restore(backup.path):
                        self._backups[key].append(f"backup: {backup.name}: {problem}")
        return self._backups[key]

    def _restore(self, backup: Path) -> str:
        restored = backup.parent.with_name(f"{backup.parent.name} {backup.name} restored")
        try:
            restore_backup(backup, restored, "")
            findings = check_store(restored, self._open_keys(restored).store_key)
            return "; ".join(f"{one.kind} {one.about}: {one.detail}" for one in findings.problems[:3])
        except (ServiceError, StorageError, OSError) as error:
            return str(error)
        finally:
            shutil.rmtree(restored, ignore_errors=True)

    def _check_export(self, state: State, ledger: Ledger) -> list[str]:
        """What a manifest names is there and whole; what was acknowledged is in it."""
        if f"{EXPORTS}/{MANIFEST_NAME}" not in state.files:
            return ["export lost: it has no manifest"] if ledger.exported else []
        key = state.digest(EXPORTS)
        if key not in self._exports:
            with self._laid_out(state.part(EXPORTS)) as folder:
                try:
                    self._exports[key] = (read_export(folder).rows, _check_delta(folder))
                except ExportError as error:
                    self._exports[key] = (0, str(error).replace(str(folder), "exports"))
        rows, problem = self._exports[key]
        if problem:
            return [f"export: {problem}"]
        return [] if rows >= ledger.exported else [f"export lost: {rows} of {ledger.exported} commits"]

    def _check_older(self, state: State, name: str) -> str:
        """Say what is wrong with an older Ravel's store, upgraded or not, once this Ravel opens it."""
        path = f"{OLDER_STORES}/{name}"
        key = state.digest(path)
        if key not in self._older:
            self.started += 1
            with self._laid_out(state.part(path)) as folder:
                try:
                    count = upgrade_and_count(folder)
                    self._older[key] = "" if count == SMALL_COUNT else f"upgrade: {count} peers are left"
                except StorageError as error:
                    self._older[key] = f"upgrade: {error}"
        return self._older[key]

    @contextmanager
    def _laid_out(self, state: State) -> Iterator[Path]:
        """A state as a real folder; the same path is never used twice, for what is remembered by paths."""
        self._names += 1
        folder = self._scratch / f"state {self._names}"
        folder.mkdir(mode=0o700)
        try:
            lay_out(state, folder)
            yield folder
        finally:
            with suppress(OSError):
                shutil.rmtree(folder)


def _check_delta(folder: Path) -> str:
    """What is wrong with the tables of Delta Lake in an export."""
    names = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    try:
        for table in TABLES:
            read_delta(table, names, lambda name: (folder / name).read_bytes())
    except (AssertionError, ValueError, OSError) as error:
        return f"Delta: {error}".replace(str(folder), "exports")
    return ""


def lay_out(state: State, folder: Path) -> None:
    """Make a state's files in a folder that is empty."""
    for path in sorted(state.folders):
        (folder / path).mkdir(mode=0o700)
    for path, (mode, content) in state.files.items():
        handle = os.open(folder / path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(handle, "wb", buffering=0) as file:
            file.write(content)
