"""Garbage: what nothing names goes, whatever a commit or file needs stays, and a dry run changes nothing."""

from pathlib import Path

import pytest
from sqlalchemy import text

from node.authoring.drafting import Draft
from node.care.fsck import check_store
from node.content import files as node_files
from protocol.crypto.keys import ConvergenceSecret
from protocol.formats.block import encrypt_block, has_children
from protocol.formats.content import FileEntry, Files
from protocol.formats.object import build_object
from protocol.ids import BlockId, CommitId
from storage.blobs import garbage_collection
from storage.blobs.garbage_collection import Collection, Garbage, collect_garbage, find_garbage
from storage.blobs.pack_moves import remove_packs
from storage.engine.database import Database, StorageError
from storage.repos.deletion import forget_repo
from storage.repos.repos import Branch
from tests.support.builders import STORE_KEY
from tests.support.nodes import Node

NOTHING = Garbage(0, 0, (), 0, 0)
BESIDE = bytes(reversed(range(256))) * 16_000
SMALL, LARGE = b"small" * 100, bytes(range(256)) * 12_000


def _add(node: Node, branch: Branch, name: str, content: bytes) -> CommitId:
    """Add a file; gives the id of its commit."""
    reference, blocks = build_object(content, node.epoch().convergence_secret)
    with node.replica.packs.draft() as draft:
        for block in blocks:
            draft.put(block)
        draft.finish()
        entry = Files((FileEntry(name, len(content)),))
        added = Draft(entry, files=(reference,))
        written, _ = node.author.write(branch, added, after=lambda connection, _: draft.keep(connection))
        draft.is_kept = True
    return written.commit_id


def _node(folder: Path) -> Node:
    node = Node(folder, "alice")
    _, branch = node.create_repo()
    for name, content in (("small", SMALL), ("large", LARGE)):
        _add(node, branch, name, content)
    return node


def _leave_beside(node: Node, numbers: list[int], name: str = "beside", beside: bytes = BESIDE) -> int:
    """Add a file whose pack also has so many blocks that nothing names; return the bytes of these."""
    branch, blocks = (
        node.branch(),
        [encrypt_block(bytes([number]) * 1_000_000, ConvergenceSecret(b"c" * 32))[0] for number in numbers],
    )
    reference, needed = build_object(beside, node.epoch().convergence_secret)
    with node.replica.packs.draft() as draft:
        for block in [*blocks, *needed]:
            draft.put(block)
        draft.finish()
        added = Draft(Files((FileEntry(name, len(beside)),)), files=(reference,))
        node.author.write(branch, added, after=lambda connection, _: draft.keep(connection))
        draft.is_kept = True
    return sum(len(block.encoded) for block in blocks)


async def _content(node: Node, name: str) -> bytes:
    files = node_files.FileService(node.hub, node.author, lambda _: node.branch())
    file = await files.open("main", name)
    return b"".join([part async for part in files.read(file, 0, file.size)])


def _leave_unneeded(node: Node) -> int:
    """Leave a row and a pack that nothing names; return their bytes."""
    blocks = [
        encrypt_block(bytes([number]) * 300_000, ConvergenceSecret(b"c" * 32))[0] for number in range(3)
    ]
    with node.replica.packs.draft() as draft:
        for block in blocks[:2]:
            draft.put(block)
        draft.finish()
        with node.replica.database.write() as connection:
            draft.keep(connection)
        draft.is_kept = True
    with node.replica.packs.draft() as draft:
        draft.put(encrypt_block(b"row", ConvergenceSecret(b"c" * 32))[0])
        draft.finish()
        with node.replica.database.write() as connection:
            draft.keep(connection)
        draft.is_kept = True
    return sum(len(block.encoded) for block in blocks[:2])


@pytest.mark.slow
async def test_what_is_needed_stays_and_the_rest_goes(tmp_path: Path) -> None:
    node = _node(tmp_path)
    node.replica.close()
    assert find_garbage(tmp_path, keep_removed=True) == NOTHING
    node.open()
    size = _leave_unneeded(node)
    before = node.digest(node.branch())
    node.replica.close()
    packs = set((tmp_path / "packs").iterdir())
    found = find_garbage(tmp_path, keep_removed=True)
    assert (found.blocks, len(found.packs), found.pack_size, found.dead_size) == (1, 1, size, 0)
    assert set((tmp_path / "packs").iterdir()) == packs, "a dry run takes nothing"
    assert collect_garbage(tmp_path, keep_removed=True) == found
    assert {path.name for path in packs} - {path.name for path in (tmp_path / "packs").iterdir()} == {
        *found.packs
    }
    assert find_garbage(tmp_path, keep_removed=True) == NOTHING
    assert check_store(tmp_path, STORE_KEY).problems == []
    node.open()
    assert node.digest(node.branch()) == before
    assert (await _content(node, "small"), await _content(node, "large")) == (SMALL, LARGE)
    node.replica.close()


@pytest.mark.slow
def test_content_of_removed_files_goes_when_asked_for(tmp_path: Path) -> None:
    node = _node(tmp_path)
    adder = _add(node, node.branch(), "other", LARGE[::-1])
    reference, _ = build_object(LARGE[::-1], node.epoch().convergence_secret)
    node.author.write(node.branch(), Draft(Files(()), deps=(adder,), removed_files=(reference.object_id,)))
    node.replica.close()
    assert find_garbage(tmp_path, keep_removed=True) == NOTHING
    taken = collect_garbage(tmp_path, keep_removed=False)
    assert len(taken.packs) == 1
    assert taken.pack_size > len(LARGE)
    findings = check_store(tmp_path, STORE_KEY)
    assert (findings.problems, findings.checked["files_incomplete"]) == ([], 1)


@pytest.mark.slow
@pytest.mark.parametrize("unneeded", [1, 3])
async def test_a_pack_of_which_a_quarter_is_not_needed_is_written_anew(tmp_path: Path, unneeded: int) -> None:
    node = _node(tmp_path)
    size = _leave_beside(node, [*range(unneeded)])
    node.replica.close()
    found = find_garbage(tmp_path, keep_removed=True)
    names = {path.name for path in (tmp_path / "packs").iterdir()}
    assert collect_garbage(tmp_path, keep_removed=True) == found
    left = {path.name for path in (tmp_path / "packs").iterdir()}
    if unneeded == 1:
        assert (found.packs, found.dead_size, left) == ((), size, names)
    else:
        assert (names - left, len(left), found.pack_size) == ({*found.packs}, len(names), size)
        assert find_garbage(tmp_path, keep_removed=True) == NOTHING
    assert check_store(tmp_path, STORE_KEY).problems == []
    node.open()
    assert await _content(node, "beside") == BESIDE
    node.replica.close()


def _names(folder: Path) -> set[str]:
    return {path.name for path in (folder / "packs").iterdir()}


def _steps(node: Node) -> int:
    """Collect all garbage, and return in how many steps."""
    collection = Collection(node.replica.database, node.replica.packs)
    collection.mark_all(keep_removed=True)
    steps = 0
    while collection.step():
        steps += 1
    remove_packs(node.folder, collection.retired)
    return steps


@pytest.mark.slow
@pytest.mark.sqlite
async def test_a_step_takes_several_small_packs(tmp_path: Path) -> None:
    """There is a pause after each, and there may be very many packs."""
    node = Node(tmp_path, "alice")
    node.create_repo()
    for number in range(6):
        with node.replica.packs.draft() as draft:
            draft.put(encrypt_block(bytes([number]) * 500_000, ConvergenceSecret(b"c" * 32))[0])
            draft.finish()
            with node.replica.database.write() as connection:
                draft.keep(connection)
            draft.is_kept = True
    assert _steps(node) == 1
    assert list((tmp_path / "packs").iterdir()) == []
    for number in range(6):
        _leave_beside(node, [number], f"file {number}", bytes([number]) * 700_000)
    before = _names(tmp_path)
    assert _steps(node) == 2, "one moves what is needed, and one takes the packs"
    assert len(_names(tmp_path) - before) == len(_names(tmp_path)) == 1
    assert await _content(node, "file 5") == bytes([5]) * 700_000
    node.replica.close()
    assert check_store(tmp_path, STORE_KEY).problems == []
    assert find_garbage(tmp_path, keep_removed=True) == NOTHING


@pytest.mark.slow
@pytest.mark.sqlite
async def test_many_tiny_packs_are_joined_in_steps_though_all_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(garbage_collection, "_TINY_SIZE", 1 << 20)
    monkeypatch.setattr(garbage_collection, "_STEP_SIZE", 4 * 310_000)
    node = _node(tmp_path)
    [large] = _names(tmp_path)

    def add(number: int) -> None:
        _add(node, node.branch(), f"file {number}", bytes([number]) * 300_000)

    for number in range(7):
        add(number)
    before = _names(tmp_path)
    assert _steps(node) == 0, "few tiny ones stay"
    add(7)
    assert _steps(node) == 4, "half of them are moved, and their packs go; then the others"
    after = _names(tmp_path)
    assert (len(after), after & before) == (3, {large}), "a large one stays"
    assert [await _content(node, f"file {number}") for number in range(8)] == [
        bytes([number]) * 300_000 for number in range(8)
    ]
    assert _steps(node) == 0, "what was joined is not joined again"
    node.replica.close()
    assert check_store(tmp_path, STORE_KEY).problems == []
    assert find_garbage(tmp_path, keep_removed=True) == NOTHING


@pytest.mark.slow
@pytest.mark.sqlite
def test_a_damaged_pack_among_small_ones_stays_alone(tmp_path: Path) -> None:
    node = _node(tmp_path)
    [large] = _names(tmp_path)
    for number in range(3):
        before = _names(tmp_path)
        _leave_beside(node, [number], f"file {number}", bytes([number]) * 700_000)
    others, [last] = before - {large}, _names(tmp_path) - before
    path = tmp_path / "packs" / last
    path.write_bytes(path.read_bytes()[:-100] + bytes(100))
    _steps(node)
    assert path.exists()
    assert _names(tmp_path) >= {large, last}
    assert not _names(tmp_path) & others
    node.replica.close()


@pytest.mark.slow
@pytest.mark.sqlite
def test_few_rows_are_in_memory_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    node, most = _node(tmp_path), 0
    with node.replica.database.write() as connection:
        forget_repo(connection, node.repo().num)
    monkeypatch.setattr(garbage_collection, "_SCANNED_ROWS", 3)
    load = garbage_collection._DeadRows.load

    def count(rows: garbage_collection._DeadRows, database: Database) -> bool:
        nonlocal most
        is_more = load(rows, database)
        most = max(most, len(rows.found))
        return is_more

    monkeypatch.setattr(garbage_collection._DeadRows, "load", count)
    assert _steps(node) > 3
    assert most == 3
    node.replica.close()
    assert find_garbage(tmp_path, keep_removed=True) == NOTHING


@pytest.mark.slow
def test_a_forgotten_repo_leaves_nothing(tmp_path: Path) -> None:
    node = _node(tmp_path)
    with node.replica.database.write() as connection:
        forget_repo(connection, node.repo().num)
    node.replica.close()
    taken = collect_garbage(tmp_path, keep_removed=True)
    assert (len(taken.packs), taken.blocks > 8) == (1, True)
    node.open()
    with node.replica.database.read() as connection:
        for table in ("blocks", "topics", "epochs", "topic_inits", "group_places"):
            assert connection.execute(text(f"SELECT count(*) FROM {table}")).scalar_one() == 0  # noqa: S608  # names of ours
    _, branch = node.create_repo("again")
    node.write(branch, "on")
    node.replica.close()
    assert check_store(tmp_path, STORE_KEY).problems == []


@pytest.mark.slow
def test_nothing_is_collected_from_a_store_that_cannot_be_walked(tmp_path: Path) -> None:
    node = _node(tmp_path)
    _leave_unneeded(node)
    node.replica.close()
    for pack in (tmp_path / "packs").iterdir():
        pack.rename(tmp_path / pack.name)
    with pytest.raises(StorageError):
        collect_garbage(tmp_path, keep_removed=True)
    for path in tmp_path.iterdir():
        if len(path.name) == 32:
            path.rename(tmp_path / "packs" / path.name)
    assert check_store(tmp_path, STORE_KEY).problems == []
    assert len(find_garbage(tmp_path, keep_removed=True).packs) == 1


@pytest.mark.sqlite
def test_leaves_are_told_by_their_beginning() -> None:
    leaf, _ = encrypt_block(b"x" * 100, ConvergenceSecret(b"c" * 32))
    inner, _ = encrypt_block(
        b"x" * 64, ConvergenceSecret(b"c" * 32), child_ids=(BlockId(b"i" * 32), BlockId(b"j" * 32))
    )
    empty, _ = encrypt_block(b"", ConvergenceSecret(b"c" * 32))
    assert [has_children(block.encoded) for block in (leaf, inner, empty)] == [False, True, False]
