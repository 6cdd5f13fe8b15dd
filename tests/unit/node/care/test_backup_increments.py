"""Backups in one folder: only what is new is written, each stands alone, and what none names goes."""

import fcntl
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from node.care import backup as backup_module
from node.care import backup_folder, backup_pages
from node.care.backup import check_backups, create_backup, restore_backup
from node.care.backup_folder import MANIFEST_NAME, list_backups
from node.care.backup_pages import MAP_ENTRY_SIZE, MAP_NAME, NONE, PAGE_SIZE, BadPages, Last
from node.home.home import create_home
from node.runtime.errors import ServiceError
from protocol.crypto.keys import ConvergenceSecret
from protocol.formats.block import encrypt_block
from storage.engine.backup_rows import save_database
from tests.support.nodes import Node

NOW = 1_700_000_000
FIRST, SECOND = "1-2023-11-14", "2-2023-11-14"
KEY = b"k" * 32


def _node(folder: Path) -> Node:
    create_home(folder)
    node = Node(folder, "alice")
    _, branch = node.create_repo()
    for number in range(10):
        node.write(branch, f"post {number}")
    _add_pack(node, b"a")
    return node


def _add_pack(node: Node, byte: bytes) -> None:
    block, _ = encrypt_block(byte * 500_000, ConvergenceSecret(b"c" * 32))
    with node.replica.packs.draft() as draft:
        draft.put(block)
        draft.finish()
        with node.replica.database.write() as connection:
            draft.keep(connection)
        draft.is_kept = True


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    one = _node(tmp_path / "home")
    yield one
    one.replica.close()


def _back_up(tmp_path: Path, keep: int | None = None) -> backup_module.BackupSummary:
    return create_backup(tmp_path / "home", tmp_path / "all", NOW, keep=keep)


def _digest(tmp_path: Path, backup: Path) -> str:
    """Restore a backup, and return the digest of its branch."""
    restored = tmp_path / "restored"
    shutil.rmtree(restored, ignore_errors=True)
    restore_backup(backup, restored)
    again = Node(restored, "alice")
    try:
        return str(again.digest(again.branch()))
    finally:
        again.replica.close()


def _refusal(work: Callable[[], object]) -> ServiceError:
    with pytest.raises(ServiceError) as caught:
        work()
    return caught.value


def test_a_second_backup_writes_what_is_new_and_each_is_restored_by_itself(
    tmp_path: Path, node: Node
) -> None:
    first = _back_up(tmp_path)
    digests = [str(node.digest(node.branch()))]
    node.write(node.branch(), "one more")
    _add_pack(node, b"b")
    second = _back_up(tmp_path)
    digests.append(str(node.digest(node.branch())))
    packs = list((tmp_path / "all" / "packs").iterdir())
    assert len(packs) == 2
    assert first.written is not None
    assert second.written is not None
    assert second.written < min(first.written, 500_000 + (second.size - 1_000_000) // 2)
    assert [one.path.name for one in (first, second)] == [FIRST, SECOND]
    found = [_digest(tmp_path, tmp_path / "all" / name) for name in (FIRST, SECOND)]
    assert found == digests
    assert _digest(tmp_path, tmp_path / "all") == digests[1], "the newest"
    shutil.rmtree(tmp_path / "all" / FIRST)
    assert _digest(tmp_path, tmp_path / "all" / SECOND) == digests[1]
    again = _back_up(tmp_path)
    assert again.written is not None
    assert again.written < 40 * PAGE_SIZE, "nothing has changed"


def test_a_clock_that_went_back_does_not_make_an_older_backup_the_newest(tmp_path: Path, node: Node) -> None:
    _back_up(tmp_path)
    node.write(node.branch(), "later")
    made = create_backup(tmp_path / "home", tmp_path / "all", 0)
    assert made.path.name == "2-1970-01-01"
    assert _digest(tmp_path, tmp_path / "all") == str(node.digest(node.branch()))


def test_older_backups_go_with_all_that_they_alone_needed(tmp_path: Path, node: Node) -> None:
    for number in range(3):
        node.write(node.branch(), f"more {number}")
        _back_up(tmp_path)
    assert len(list_backups(tmp_path / "all")) == 3
    left = tmp_path / "all" / "packs" / ("0" * 32)
    left.write_bytes(b"of a run that was cut")
    foreign = tmp_path / "all" / "packs" / "notes.txt"
    foreign.write_bytes(b"of somebody else")
    _back_up(tmp_path, keep=1)
    assert [one.name for one in list_backups(tmp_path / "all")] == ["4-2023-11-14"]
    assert (left.exists(), foreign.exists()) == (False, True)
    assert not (tmp_path / "all" / ".gone").exists()
    manifest = json.loads((tmp_path / "all" / "4-2023-11-14" / MANIFEST_NAME).read_bytes())
    assert {path.name for path in (tmp_path / "all" / "pages").iterdir()} == set(manifest["pages"])
    named = set(_places(tmp_path / "all" / "4-2023-11-14" / MAP_NAME))
    for path in (tmp_path / "all" / "pages").iterdir():
        content = path.read_bytes()
        for place in range(len(content) // PAGE_SIZE):
            if (int(path.name), place) not in named:
                assert not any(content[place * PAGE_SIZE :][:PAGE_SIZE]), "nothing of it can be read"
    assert _digest(tmp_path, tmp_path / "all") == str(node.digest(node.branch()))
    assert [one.problems for one in check_backups(tmp_path / "all")] == [[]]


def test_a_backup_that_was_renamed_keeps_what_it_needs(tmp_path: Path, node: Node) -> None:
    _back_up(tmp_path)
    digest = str(node.digest(node.branch()))
    (tmp_path / "all" / FIRST).rename(tmp_path / "all" / "before the move")
    with node.replica.database.write() as connection:
        connection.exec_driver_sql("DELETE FROM packs")
    for number in range(2):
        node.write(node.branch(), f"more {number}")
        _back_up(tmp_path, keep=1)
    assert _digest(tmp_path, tmp_path / "all" / "before the move") == digest


def _places(path: Path) -> list[tuple[int, int]]:
    return [page[1:] for page in backup_pages.read_map(path)]


def test_a_backup_that_cannot_be_read_keeps_all_that_is_there(tmp_path: Path, node: Node) -> None:
    first = _back_up(tmp_path)
    _back_up(tmp_path)
    before = {path.name for path in (tmp_path / "all" / "pages").iterdir()}
    left = tmp_path / "all" / "packs" / ("0" * 32)
    left.write_bytes(b"may be named by it")
    shutil.rmtree(tmp_path / "all" / FIRST)
    (tmp_path / "all" / SECOND / MANIFEST_NAME).write_text("{}")
    made = _back_up(tmp_path)
    assert left.exists()
    assert before < {path.name for path in (tmp_path / "all" / "pages").iterdir()}
    assert None not in (made.written, first.written)
    assert (made.written or 0) > (first.written or 0) - 510_000, (
        "no page of what cannot be read is gone on with"
    )
    assert [bool(one.problems) for one in check_backups(tmp_path / "all")] == [True, False]


def test_a_run_that_was_cut_is_gone_on_with(
    tmp_path: Path, node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(backup_module, "finish_backup", fail)
    with pytest.raises(KeyboardInterrupt):
        _back_up(tmp_path)
    monkeypatch.undo()
    (pack,) = (tmp_path / "all" / "packs").iterdir()
    inode = pack.stat().st_ino
    assert not (tmp_path / "all" / ".part").exists()
    assert "there is none" in _refusal(lambda: restore_backup(tmp_path / "all", tmp_path / "no")).message
    # As a kill leaves it, with pages that got their name.
    (tmp_path / "all" / ".part").mkdir()
    (tmp_path / "all" / ".part" / "pages").write_bytes(b"half")
    (tmp_path / "all" / "pages" / "1").write_bytes(b"half")
    made = _back_up(tmp_path)
    assert made.path.name == SECOND, "a number is used once"
    assert made.written is not None
    assert made.written < made.size - 500_000 + PAGE_SIZE * 8, "the pack was whole"
    assert pack.stat().st_ino == inode
    assert _digest(tmp_path, tmp_path / "all") == str(node.digest(node.branch()))


@pytest.mark.parametrize("names, is_ours", [([], True), (["backups.json"], True), (["notes.txt"], False)])
def test_a_first_run_that_was_killed_at_once_leaves_a_folder_that_can_be_used(
    tmp_path: Path, node: Node, names: list[str], *, is_ours: bool
) -> None:
    draft = tmp_path / "all" / ".part"
    draft.mkdir(parents=True)
    for name in names:
        (draft / name).write_bytes(b"half")
    if is_ours:
        assert _back_up(tmp_path).path.name == FIRST
    else:
        assert "holds other files" in _refusal(lambda: _back_up(tmp_path)).message
        assert (draft / "notes.txt").exists()


def test_a_folder_that_another_node_takes_meanwhile_is_refused(
    tmp_path: Path, node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    def take(folder: Path) -> None:
        folder.mkdir()
        (folder / "backups.json").write_text(json.dumps({"format": "ravel-backup2", "node": "another"}))

    monkeypatch.setattr(backup_folder, "make_folder", take)
    assert "backups of another node" in _refusal(lambda: _back_up(tmp_path)).message
    assert [path.name for path in (tmp_path / "all").iterdir()] == ["backups.json"]


def test_a_pack_of_the_right_size_that_is_another_is_written_again(tmp_path: Path, node: Node) -> None:
    (name,) = (path.name for path in (tmp_path / "home" / "packs").iterdir())
    size = (tmp_path / "home" / "packs" / name).stat().st_size
    _back_up(tmp_path)
    shutil.rmtree(tmp_path / "all" / FIRST)
    (tmp_path / "all" / "packs" / name).write_bytes(bytes(size))
    _back_up(tmp_path)
    assert [one.problems for one in check_backups(tmp_path / "all")] == [[]]


@pytest.mark.parametrize("what", ["pages", "packs"])
def test_what_is_missing_is_named_and_written_again(tmp_path: Path, node: Node, what: str) -> None:
    _back_up(tmp_path)
    _back_up(tmp_path)
    path = min((tmp_path / "all" / what).iterdir())
    path.unlink()
    message = _refusal(lambda: restore_backup(tmp_path / "all", tmp_path / "no")).message
    assert f"{what}/{path.name} is not there" in message
    assert not (tmp_path / "no").exists()
    found = check_backups(tmp_path / "all")
    assert all(f"{what}/{path.name}" in one.problems[0] for one in found)
    assert len(found) == 2
    _back_up(tmp_path)
    # A pack has one content; pages that are gone were of earlier moments.
    wanted = [False] * 3 if what == "packs" else [True, True, False]
    assert [bool(one.problems) for one in check_backups(tmp_path / "all")] == wanted
    assert _digest(tmp_path, tmp_path / "all") == str(node.digest(node.branch()))


@pytest.mark.parametrize("name", ["pages/1", f"{FIRST}/{MAP_NAME}", f"{FIRST}/keys.json", "packs"])
def test_a_check_finds_a_flipped_bit(tmp_path: Path, node: Node, name: str) -> None:
    _back_up(tmp_path)
    _back_up(tmp_path)
    path = tmp_path / "all" / name
    (path,) = path.iterdir() if path.is_dir() else (path,)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    found = {one.path.name: one.problems for one in check_backups(tmp_path / "all")}
    assert path.name in found[FIRST][0]
    assert bool(found[SECOND]) == (FIRST not in name)
    assert [one.path.name for one in check_backups(tmp_path / "all" / FIRST)] == [FIRST]


@pytest.mark.parametrize("is_there", [True, False])
def test_a_list_that_is_damaged_is_not_gone_on_with(tmp_path: Path, node: Node, *, is_there: bool) -> None:
    for _ in range(3):
        _back_up(tmp_path)
    shutil.rmtree(tmp_path / "all" / FIRST)
    path = tmp_path / "all" / "3-2023-11-14" / MAP_NAME
    content = bytearray(path.read_bytes())
    content[backup_pages.HASH_SIZE + 7] ^= 1  # place of the first page
    path.unlink()
    if is_there:
        path.write_bytes(content)
    _back_up(tmp_path)
    assert [bool(one.problems) for one in check_backups(tmp_path / "all")] == [False, True, False]


@pytest.mark.parametrize("what", ["pages", "packs"])
def test_links_in_a_folder_of_backups_are_not_followed(tmp_path: Path, node: Node, what: str) -> None:
    for number in range(2):
        _back_up(tmp_path)
        node.write(node.branch(), f"post {number}")
    link = min((tmp_path / "all" / what).iterdir())
    target = tmp_path / "of-somebody-else"
    link.rename(target)
    link.symlink_to(target)
    before = target.read_bytes()
    shutil.rmtree(tmp_path / "all" / FIRST)  # pages that it alone needed are overwritten
    made = _back_up(tmp_path)
    assert target.read_bytes() == before
    assert _digest(tmp_path, made.path) == str(node.digest(node.branch()))
    shutil.rmtree(tmp_path / "all" / what)
    (tmp_path / "others").mkdir()
    (tmp_path / "others" / link.name).write_bytes(before)
    (tmp_path / "all" / what).symlink_to(tmp_path / "others")
    assert f"{what} is a link" in _refusal(lambda: _back_up(tmp_path)).message
    assert (tmp_path / "others" / link.name).read_bytes() == before


@pytest.mark.parametrize(
    "name", ["backups.json", f"{FIRST}/{MANIFEST_NAME}", f"{FIRST}/{MAP_NAME}", "pages/1", "packs/"]
)
def test_a_pipe_in_a_folder_of_backups_is_named_and_never_opened(
    tmp_path: Path, node: Node, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A pipe may keep its reader waiting for ever, and a device may do anything when it is opened."""
    _back_up(tmp_path)
    path = tmp_path / "all" / name
    if path.is_dir():
        [path] = path.iterdir()
    path.unlink()
    os.mkfifo(path)
    opened: list[str] = []
    open_ = os.open

    def note(one: os.PathLike[str] | str, flags: int, *rest: int) -> int:
        opened.append(os.fspath(one))
        return open_(one, flags | os.O_NONBLOCK, *rest)

    monkeypatch.setattr(os, "open", note)
    if name == "backups.json":
        said = _refusal(lambda: _back_up(tmp_path)).message
    else:
        [checked] = check_backups(tmp_path / "all")
        assert len(checked.problems) == (2 if name.endswith(MAP_NAME) else 1)
        said = checked.problems[-1]
        assert _refusal(lambda: restore_backup(tmp_path / "all", tmp_path / "restored")).code in (
            "bad_input",
            "storage_failed",
        )
        with suppress(ServiceError):
            _back_up(tmp_path)
    assert f"{path} is not a file" in said
    assert str(path) not in opened


def test_a_folder_that_others_could_open_is_closed_to_them(tmp_path: Path, node: Node) -> None:
    (tmp_path / "all").mkdir()
    (tmp_path / "all").chmod(0o777)
    _back_up(tmp_path)
    assert (tmp_path / "all").stat().st_mode & 0o777 == 0o700
    (tmp_path / "all").chmod(0o755)
    _back_up(tmp_path)
    assert (tmp_path / "all").stat().st_mode & 0o777 == 0o700


def test_a_node_with_more_files_than_a_manifest_names_is_told_before_anything_is_written(
    tmp_path: Path, node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its backup would be one that no restore reads."""
    first = _back_up(tmp_path)
    monkeypatch.setattr(backup_module, "BACKUP_FILE_COUNT_MAX", first.files)
    _back_up(tmp_path)
    _add_pack(node, b"b")
    refused = _refusal(lambda: _back_up(tmp_path))
    assert (refused.code, refused.advice) == ("too_large", "stop the daemon and copy its folder")
    assert len(list((tmp_path / "all" / "packs").iterdir())) == 1
    assert [one.name for one in list_backups(tmp_path / "all")] == [FIRST, SECOND]


def test_few_files_of_pages_are_open_at_once(
    tmp_path: Path, node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        _back_up(tmp_path)
        node.write(node.branch(), f"post {number}")
    monkeypatch.setattr(backup_pages, "_OPEN_MAX", 2)
    open_, most = backup_pages.PageReader._open, 0

    def count(reader: backup_pages.PageReader, number: int) -> int:
        nonlocal most
        handle = open_(reader, number)
        most = max(most, len(reader._files))
        return handle

    monkeypatch.setattr(backup_pages.PageReader, "_open", count)
    assert [one.problems for one in check_backups(tmp_path / "all")] == [[]] * 5
    assert most == 2


def test_a_copy_of_the_folder_that_shares_its_files_stays_whole(tmp_path: Path, node: Node) -> None:
    for number in range(2):
        _back_up(tmp_path)
        node.write(node.branch(), f"post {number}")
    shutil.copytree(tmp_path / "all", tmp_path / "copy", copy_function=os.link)
    _back_up(tmp_path, keep=1)
    assert [one.problems for one in check_backups(tmp_path / "copy")] == [[], []]


def test_one_process_writes_at_a_time_and_none_while_another_reads(tmp_path: Path, node: Node) -> None:
    _back_up(tmp_path)
    with backup_folder.lock_folder(tmp_path / "all", fcntl.LOCK_SH):
        assert _refusal(lambda: _back_up(tmp_path)).code == "already_running"
        assert check_backups(tmp_path / "all")
    with backup_folder.lock_folder(tmp_path / "all", fcntl.LOCK_EX):
        assert _refusal(lambda: check_backups(tmp_path / "all")).code == "already_running"


@pytest.mark.sqlite
@pytest.mark.parametrize("free", [0, 1 << 40])
def test_the_passing_copy_lies_where_there_is_room_and_leaves_nothing(
    tmp_path: Path, node: Node, monkeypatch: pytest.MonkeyPatch, free: int
) -> None:
    places: list[str] = []
    unlocked: list[str] = []

    def note(home: Path, url: str, path: Path) -> None:
        with path.open("rb") as file, suppress(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            unlocked.append(path.parent.name)
        places.append(path.parent.name)
        save_database(home, url, path)

    monkeypatch.setattr(backup_module, "save_database", note)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(free, 0, free))
    (tmp_path / "home" / f"people.json.{'0' * 16}.new").write_bytes(b"of a daemon, which will lock it")
    before = {path.name for path in (tmp_path / "home").iterdir()} | {"content.lock"}
    (tmp_path / "home" / f"ravel.sqlite.{'0' * 16}.new").write_bytes(b"of a run that was killed")
    _back_up(tmp_path)
    assert places == ["home" if free else ".part"]
    assert unlocked == ([] if free else [".part"]), "a lock on a network drive would shut SQLite out"
    assert {path.name for path in (tmp_path / "home").iterdir()} == before
    assert {path.name for path in (tmp_path / "all").iterdir()} == {"backups.json", "packs", "pages", FIRST}


def _write(folder: Path, number: int, content: bytes, last: Last) -> dict[int, int]:
    """Write pages as a backup does, into a folder for each and one of pages."""
    (folder / "database").write_bytes(content)
    draft = folder / str(number)
    draft.mkdir()
    source = os.open(folder / "database", os.O_RDONLY)
    try:
        counts = backup_pages.write_pages(source, draft, number, KEY, last, lambda _: None)
    finally:
        os.close(source)
    (draft / "pages").rename(folder / "pages" / str(number))
    return counts


def _read(folder: Path, number: int) -> bytes:
    handle = os.open(folder / "read", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    try:
        backup_pages.read_pages(folder / "pages", folder / str(number) / MAP_NAME, KEY, handle)
    finally:
        os.close(handle)
    return (folder / "read").read_bytes()


def test_any_history_of_pages_is_read_back_and_takes_at_most_twice_its_room(tmp_path: Path) -> None:
    chance = Random(7)
    (tmp_path / "pages").mkdir()
    content, last = bytearray(chance.randbytes(100 * PAGE_SIZE)), NONE
    kept: dict[int, bytes] = {}
    for number in range(1, 22):
        for _ in range(chance.randrange(15)):
            place = chance.randrange(len(content) // PAGE_SIZE) * PAGE_SIZE
            content[place : place + 16] = chance.randbytes(16)
        content += chance.randbytes(chance.randrange(3) * PAGE_SIZE)
        if number % 10 == 0:
            del content[-20 * PAGE_SIZE :]
        before = sum(path.stat().st_size for path in (tmp_path / "pages").iterdir())
        counts = _write(tmp_path, number, bytes(content), last)
        assert sum(counts.values()) * PAGE_SIZE == len(content)  # no two are equal
        last = Last(tmp_path / str(number) / MAP_NAME, backup_pages.usable_files(tmp_path / "pages", counts))
        assert (tmp_path / str(number) / MAP_NAME).stat().st_size == sum(counts.values()) * MAP_ENTRY_SIZE
        kept[number] = bytes(content)
        taken = sum((tmp_path / "pages" / str(one)).stat().st_size for one in last.files)
        assert taken <= 2 * len(content)
        written = sum(path.stat().st_size for path in (tmp_path / "pages").iterdir()) - before
        assert number == 1 or written < len(content)
    assert {number: _read(tmp_path, number) for number in kept} == kept


def test_pages_that_moved_are_found_near_their_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backup_pages, "_MOVED_MAX", 4)
    (tmp_path / "pages").mkdir()
    pages = [number.to_bytes(PAGE_SIZE, "big") for number in range(60)]
    last = NONE
    for number, (moved, written) in enumerate(((0, 60), (3, 3), (7, 7), (20, 71)), 1):
        fresh = [bytes([number, one]) * (PAGE_SIZE // 2) for one in range(moved)]
        content = b"".join(fresh + pages)
        counts = _write(tmp_path, number, content, last)
        assert counts[number] == written, "one that moved by 13 is found near the end alone"
        last = Last(tmp_path / str(number) / MAP_NAME, backup_pages.usable_files(tmp_path / "pages", counts))
        assert _read(tmp_path, number) == content


def test_a_check_of_a_file_with_holes_takes_no_memory_for_them(tmp_path: Path) -> None:
    (tmp_path / "pages").mkdir()
    _write(tmp_path, 1, bytes(PAGE_SIZE), NONE)
    os.truncate(tmp_path / "pages" / "1", 1_000_000 * PAGE_SIZE)
    listed = tmp_path / "1" / MAP_NAME
    (page,) = backup_pages.read_map(listed)
    listed.write_bytes(page[0] + (1).to_bytes(4, "big") + (999_999).to_bytes(4, "big"))
    with backup_pages.PageReader(tmp_path / "pages") as reader:
        reader.check(listed, KEY)
        assert sum(map(len, reader._checked.values())) == 0


def test_many_small_files_of_pages_become_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backup_pages, "BACKUP_PAGES_COUNT_MAX", 6)
    (tmp_path / "pages").mkdir()
    content, last, most = bytearray(Random(7).randbytes(40 * PAGE_SIZE)), NONE, 0
    for number in range(1, 31):
        content[number * PAGE_SIZE] ^= 1
        counts = _write(tmp_path, number, bytes(content), last)
        most = max(most, len(counts))
        last = Last(tmp_path / str(number) / MAP_NAME, backup_pages.usable_files(tmp_path / "pages", counts))
    assert most == 6
    assert _read(tmp_path, 30) == content


def test_pages_are_erased_only_where_all_lists_are_what_they_were(tmp_path: Path) -> None:
    (tmp_path / "pages").mkdir()
    shared = b"".join(bytes([number]) * PAGE_SIZE for number in b"abc")
    contents = [bytes([number]) * PAGE_SIZE + shared for number in range(1, 4)]
    last, hashes = NONE, {}
    for number, content in enumerate(contents, 1):
        _write(tmp_path, number, content, last)
        path = tmp_path / str(number) / MAP_NAME
        last = Last(path, dict.fromkeys((1, 2, 3), 1000))
        hashes[path] = backup_module.hash_file(path).blake3
    listed = tmp_path / "2" / MAP_NAME
    backup_pages.erase_unnamed(tmp_path / "pages", {listed: "0" * 64})
    assert _read(tmp_path, 1) == contents[0]
    backup_pages.erase_unnamed(tmp_path / "pages", {listed: hashes[listed]})
    assert _read(tmp_path, 2) == contents[1]
    for number in (1, 3):
        with pytest.raises(BadPages, match=f"pages/{number} is not what it was"):
            _read(tmp_path, number)
    assert (tmp_path / "pages" / "1").read_bytes() == bytes(PAGE_SIZE) + contents[0][PAGE_SIZE:]
    assert (tmp_path / "pages" / "3").read_bytes() == bytes(PAGE_SIZE)
