"""Bit rot: one bit of a killed node's folder flips, or a file is cut off. What is noticed, and what comes back from a peer?

`python -m tests.powercut.bitrot --flips 2000 --seed 1` damages one file at a time, and prints one JSON object; exit code 1
where damage to the store went unnoticed. The kinds of files take turns, so that small ones are hit as often as large ones.
"""

import argparse
import json
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import trio
from trio.testing import MockClock

from node.care.fsck import check_store
from node.care.repair import repair_store
from node.content.files import FileService
from node.exports.export_worker import ExportRequest, write_export
from node.home.config import CONFIG_NAME
from node.home.folder_mark import MARK_NAME
from node.home.home import PSEUDONYM_KEY_NAME, create_home, load_pseudonym_key, lock_home, open_home, run_file
from node.home.identity import open_keys
from node.home.key_file import Keys
from node.home.private_files import KEYS_NAME
from node.ingest.acceptance import retry_kept
from node.ingest.replica import Replica
from node.runtime import logs
from node.runtime.errors import ServiceError
from node.sync.block_repair import BlockRepairer
from node.sync.feed_recovery import FeedRecovery
from protocol.crypto.keys import NodeSeed, UserSeed
from protocol.formats.text import id_text
from protocol.ids import BranchId, PeerId
from ravel.exports.checking import ExportError
from ravel.exports.schema import MANIFEST_NAME
from ravel.home import TOKEN_NAME
from storage.commits.commits import digest_timeline
from storage.commits.damaged import DamagedCount, count_damaged
from storage.engine.database import DATABASE_NAME, StorageError
from tests.powercut.looking import hash_files, in_memory, sharing_statements
from tests.support.builders import STORE_KEY
from tests.support.keys import no_passphrase
from tests.support.nodes import Node, connected, share, until_equal
from tests.support.read_exports import read_export

_NOW_MS: Final = 1_800_000_000_000
_HEAL_SECONDS: Final = 60
"""Of a clock that runs as fast as the work allows."""
_FILE_SIZES: Final = (1, 5_000, 300_000, 1_500_000)
_LOSS_NAME: Final = "lost-writes.json"
_CUT_OFF_SHARE: Final = 0.2
_EXAMPLES_MAX: Final = 5
_STORE: Final = ("database", "log", "packs", "keys")
"""What damage must never go unnoticed in."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What a node shows that started on a folder."""

    user: str
    timelines: Mapping[BranchId, tuple[str, int]]
    """Digest and length, by branch."""
    files: Mapping[str, str]
    others: Mapping[str, object]
    """Configuration, token, key of pseudonyms, export."""


@dataclass(slots=True)
class Outcome:
    """What came of one damage."""

    verdict: str  # healed, left, not started, harmless, unnoticed
    said: str = ""


@dataclass(slots=True)
class World:
    """A folder as a killed node left it, and a peer that has everything."""

    template: Path
    bob: Node
    seen: Seen
    kinds: Mapping[str, Sequence[str]] = field(default_factory=dict)


async def make_world(folder: Path) -> World:
    """Let two nodes share a branch with files, and copy the folder of one of them while its store is open."""
    keys = Keys(
        NodeSeed(b"alice".ljust(32, b"-")), UserSeed(b"user of " + b"alice".ljust(32, b"-")[:24]), STORE_KEY
    )
    home = folder / "alice"
    create_home(home, name="alice", keys=keys)
    load_pseudonym_key(home)
    alice, bob = Node(home, "alice"), Node(folder / "bob", "bob")
    await share(alice, bob)
    chance = random.Random(0)
    for number, size in enumerate(_FILE_SIZES):
        alice.write(alice.branch(), f"post {number}")
        await FileService(alice.hub, alice.author, alice.branch).add(
            "main", f"file {size}", _stream(chance.randbytes(size))
        )
    await _bring_files(alice, bob)
    alice.replica.close()  # what is there by now goes from the log into the database
    alice.open()
    _export(home)
    for number in range(4, 12):
        alice.write(alice.branch(), f"post {number}")
    await _bring_files(alice, bob)
    template = folder / "template"
    with lock_home(home), run_file(home, api="127.0.0.1:1", listen="127.0.0.1:2", peer="p", run="r"):
        shutil.copytree(home, template, ignore=shutil.ignore_patterns(MARK_NAME))  # copies stand for it
    alice.replica.close()
    shutil.copytree(template, folder / "whole")
    seen = look(folder / "whole")
    return World(template, bob, seen, _kinds_in(template))


async def _stream(content: bytes) -> AsyncGenerator[bytes]:
    await trio.lowlevel.checkpoint()
    yield content


async def _bring_files(alice: Node, bob: Node) -> None:
    """Let bob have all that alice has, the content of files too."""
    async with connected(bob, alice):
        await until_equal(alice, bob)
        await until_equal(alice, bob, "root")
        files = FileService(bob.hub, bob.author, bob.branch)
        for size in _FILE_SIZES:
            file = await files.open("main", f"file {size}")
            assert sum([len(part) async for part in files.read(file, 0, file.size)]) == size


def _kinds_in(template: Path) -> dict[str, list[str]]:
    """Files that have something to damage, by kind."""
    kinds: dict[str, list[str]] = {}
    for path in sorted(template.rglob("*")):
        if path.is_file() and path.stat().st_size:
            name = str(path.relative_to(template))
            kinds.setdefault(_kind_of(name), []).append(name)
    return kinds


def _kind_of(name: str) -> str:
    names = {
        DATABASE_NAME: "database",
        f"{DATABASE_NAME}-wal": "log",
        f"{DATABASE_NAME}-shm": "index of the log",
        KEYS_NAME: "keys",
        CONFIG_NAME: "configuration",
        TOKEN_NAME: "token",
        PSEUDONYM_KEY_NAME: "key of pseudonyms",
        f"exports/{MANIFEST_NAME}": "export's manifest",
    }
    folder = name.partition("/")[0]
    return names.get(name) or {"packs": "packs", "exports": "export's parts"}.get(folder, name)


def damage(path: Path, chance: random.Random) -> str:
    """Flip a bit of a file, or cut it off; gives what was done."""
    size = path.stat().st_size
    if chance.random() < _CUT_OFF_SHARE:
        length = chance.randrange(size)
        os.truncate(path, length)
        return f"cut off to {length} of {size} bytes"
    place, bit = chance.randrange(size), chance.randrange(8)
    with path.open("r+b") as file:
        file.seek(place)
        byte = file.read(1)[0]
        file.seek(place)
        file.write(bytes([byte ^ 1 << bit]))
    return f"bit {bit} of byte {place} of {size}"


def look(home: Path) -> Seen:
    """Do what `ravel run` does before it serves anybody, and see what it would show. Raises ServiceError, StorageError."""
    opened = open_home(home)
    token = opened.api_token
    with lock_home(home):
        keys = open_keys(home, no_passphrase)
        replica = Replica(home, keys.store_key)
        try:
            retry_kept(replica, _NOW_MS)
            with replica.database.read() as connection:
                timelines = {
                    one.branch_id: digest_timeline(connection, one.num) for one in replica.branches.values()
                }
            files = {
                name: found for one in replica.branches.values() for name, found in hash_files(replica, one)
            }
        finally:
            replica.close()
    others = {
        "configuration": opened.config,
        "token": token,
        "key of pseudonyms": load_pseudonym_key(home),
        "export": _read_manifest(home / "exports"),
    }
    return Seen(keys.user_seed.hex(), timelines, files, others)


def _read_manifest(folder: Path) -> object:
    """What an export says, of which all parts are as it says. Raises ExportError."""
    read_export(folder)
    return json.loads((folder / MANIFEST_NAME).read_bytes())


async def try_out(world: World, name: str, chance: random.Random, scratch: Path) -> tuple[str, Outcome]:
    """Damage one file of a copy; gives what was done, and what came of it."""
    started, checked = scratch / "started", scratch / "checked"
    for folder in (started, checked):
        shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(world.template, started)
    done = damage(started / name, chance)
    shutil.copytree(started, checked)
    said = _check(checked)
    is_refused = False
    try:
        seen = look(started)
        if (started / _LOSS_NAME).exists():
            said = said or "the start says that writes were lost"
    except (ServiceError, StorageError, ExportError) as error:
        seen, said, is_refused = None, f"start: {error}", not isinstance(error, ExportError)
    except Exception as error:  # a traceback is what is looked for
        return done, Outcome("traceback", f"start: {type(error).__name__}: {error}")
    if not said:
        if seen == world.seen:
            return done, Outcome("harmless")
        return done, Outcome("unnoticed", _difference(world.seen, seen))
    try:
        problem = await _heal(world, checked)
    except (ServiceError, StorageError, ExportError) as error:
        return done, Outcome("not started" if is_refused else "left", f"{said}; healing: {error}")
    except Exception as error:  # as above
        return done, Outcome("traceback", f"healing: {type(error).__name__}: {error}")
    return done, Outcome("left" if problem else "healed", f"{said}; {problem}")


def _difference(wanted: Seen, seen: Seen | None) -> str:
    assert seen is not None, "it started"
    said = [name for name in ("user", "timelines", "files") if getattr(wanted, name) != getattr(seen, name)]
    said += [name for name, value in wanted.others.items() if seen.others[name] != value]
    return f"another {', '.join(said)}"


def _check(home: Path) -> str:
    """What `ravel fsck` says; empty where it says that all is well."""
    try:
        findings = check_store(home, STORE_KEY)
    except (ServiceError, StorageError) as error:
        return f"fsck: {error}"
    return "; ".join(f"fsck: {one.kind} {one.about}: {one.detail}" for one in findings.problems[:2])


async def _heal(world: World, home: Path) -> str:
    """`ravel fsck --repair`, then a start beside the peer, then an export where that was hit; gives what is still wrong."""
    open_keys(open_home(home).path, no_passphrase)
    repair_store(home, STORE_KEY)
    alice = Node(home, "alice")
    bob = world.bob
    try:
        retry_kept(alice.replica, _NOW_MS)
        with trio.move_on_after(_HEAL_SECONDS):
            async with connected(alice, bob), trio.open_nursery() as nursery:
                nursery.start_soon(BlockRepairer(alice.hub).run)
                nursery.start_soon(FeedRecovery(alice.hub).run)
                while True:
                    if _is_equal(alice, bob) and not alice.replica.own_feeds.uncertain:
                        break
                    await trio.sleep(1)
                files = FileService(alice.hub, alice.author, alice.branch)
                for size in _FILE_SIZES:
                    file = await files.open("main", f"file {size}")
                    async for _ in files.read(file, 0, file.size):
                        pass
                nursery.cancel_scope.cancel()
        if not _is_equal(alice, bob):
            return "it is not equal to its peer"
    finally:
        alice.replica.close()
    try:
        read_export(home / "exports")
    except ExportError:
        shutil.rmtree(home / "exports")
        _export(home)
    if said := _check(home):
        return said
    seen = look(home)
    wanted = world.seen
    if (seen.user, seen.timelines, seen.files) != (wanted.user, wanted.timelines, wanted.files):
        return _difference(wanted, seen)
    return ""


def _is_equal(alice: Node, bob: Node) -> bool:
    with alice.replica.database.read() as connection:
        if count_damaged(connection) != DamagedCount(0, 0):
            return False
    mine, theirs = (
        {branch.branch_id: node.digest(branch) for branch in node.replica.branches.values()}
        for node in (alice, bob)
    )
    return mine == theirs


def _export(home: Path) -> None:
    write_export(
        ExportRequest(
            home=str(home),
            destination=str(home / "exports"),
            options={},
            node=id_text(PeerId(bytes(32))),
            created_at=_NOW_MS // 1000,
            keep_seconds=0,
            parts_max=10,
            has_bodies=False,
            has_blocks=False,
            pseudonym_key="",
            storage_url="",
            store_key=STORE_KEY.hex(),
            quotas=None,
        )
    )


async def play(scratch: Path, flips: int, seed: int, kinds: Sequence[str] = ()) -> dict[str, Any]:
    """Damage so many copies, in files of these kinds (all by default); gives the report."""
    began = time.monotonic()
    world = await make_world(scratch)
    kinds = kinds or list(world.kinds)
    counts: dict[str, Counter[str]] = {kind: Counter() for kind in kinds}
    examples: list[dict[str, str]] = []
    shown: Counter[tuple[str, str]] = Counter()
    for number in range(flips):
        kind = kinds[number % len(kinds)]
        chance = random.Random(f"{seed} {number}")
        name = chance.choice(world.kinds[kind])
        done, outcome = await try_out(world, name, chance, scratch)
        counts[kind][outcome.verdict] += 1
        shown[kind, outcome.verdict] += 1
        if outcome.verdict not in ("harmless", "healed") and shown[kind, outcome.verdict] <= _EXAMPLES_MAX:
            said = outcome.said.replace(str(scratch), "")
            examples.append({"file": name, "damage": done, "verdict": outcome.verdict, "said": said[:500]})
    world.bob.replica.close()
    return {
        "seed": seed,
        "flips": flips,
        "seconds": round(time.monotonic() - began, 1),
        "kinds": {kind: dict(count) for kind, count in counts.items()},
        "examples": examples,
    }


def run(flips: int, seed: int, kinds: Sequence[str] = ()) -> dict[str, Any]:
    """The same, in memory and with a clock that does not wait."""
    with tempfile.TemporaryDirectory(dir=in_memory()) as scratch, sharing_statements():
        return trio.run(play, Path(scratch), flips, seed, kinds, clock=MockClock(autojump_threshold=0))


def main() -> None:
    """Damage the copies of a seed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--flips", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--kinds", nargs="*", default=(), help="of files: database, log, packs; all by default"
    )
    arguments = parser.parse_args()
    logs.configure("critical")
    with suppress(KeyboardInterrupt):
        found = run(arguments.flips, arguments.seed, arguments.kinds)
        print(json.dumps(found, indent=1))
        bad = sum(
            found["kinds"].get(kind, {}).get(verdict, 0)
            for kind in _STORE
            for verdict in ("unnoticed", "traceback")
        )
        sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
