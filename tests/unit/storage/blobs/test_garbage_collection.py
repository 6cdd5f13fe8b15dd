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
from storage.blobs.garbage_collection import Garbage, collect_garbage, find_garbage
from storage.engine.database import StorageError
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


def _leave_beside(node: Node, numbers: list[int]) -> int:
    """Add a file whose pack also has so many blocks that nothing names; return the bytes of these."""
    branch, blocks = (
        node.branch(),
        [encrypt_block(bytes([number]) * 1_000_000, ConvergenceSecret(b"c" * 32))[0] for number in numbers],
    )
    reference, needed = build_object(BESIDE, node.epoch().convergence_secret)
    with node.replica.packs.draft() as draft:
        for block in [*blocks, *needed]:
            draft.put(block)
        draft.finish()
        added = Draft(Files((FileEntry("beside", len(BESIDE)),)), files=(reference,))
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
