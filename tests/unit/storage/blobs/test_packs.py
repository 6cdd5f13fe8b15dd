"""Packs: blocks once, nothing left of what was not kept, damage found."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import func, select, update

from protocol.crypto import hashing
from protocol.crypto.hashing import block_id
from protocol.crypto.keys import ConvergenceSecret
from protocol.formats.block import Block, encrypt_block
from protocol.ids import BlockId
from storage.blobs import packs as packs_module
from storage.blobs.packs import PackDraft, Packs
from storage.commits import blocks as blocks_module
from storage.commits.blocks import DamagedBlock
from storage.engine.database import Database, StorageError
from storage.engine.quarantine import empty_quarantine, measure_quarantine
from storage.schema.schema import blocks, pack_blocks
from storage.schema.schema import packs as packs_table

SECRET = ConvergenceSecret(b"c" * 32)
LARGE = 300_000


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = Database(tmp_path)
    yield database
    database.close()


def _block(number: int, size: int = LARGE) -> Block:
    return encrypt_block(number.to_bytes(4, "big") * (size // 4), SECRET)[0]


def _add(database: Database, packs: Packs, made: list[Block]) -> PackDraft:
    with packs.draft() as draft:
        for block in made:
            draft.put(block)
        draft.finish()
        with database.write() as connection:
            draft.keep(connection)
        draft.is_kept = True
    return draft


def _files(database: Database) -> list[Path]:
    return sorted((database.folder / "packs").glob("*"))


def test_what_was_kept_is_found_again_in_packs_and_rows(database: Database) -> None:
    packs = Packs(database)
    large, small = [_block(number) for number in range(20)], [_block(number, 40) for number in range(20)]
    _add(database, packs, large)
    _add(database, packs, small)
    with database.read() as connection:
        for block in large + small:
            assert packs.find(connection, block.block_id) == block
        assert packs.find(connection, BlockId(b"x" * 32)) is None
    assert len(_files(database)) == 1, "small ones are rows"
    assert _files(database)[0].stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("size", [40, LARGE])
def test_a_block_that_is_found_is_hashed_once(
    database: Database, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    packs, block = Packs(database), _block(1, size)
    _add(database, packs, [block])
    hashed: list[int] = []

    def note(encoded: bytes) -> BlockId:
        hashed.append(len(encoded))
        return block_id(encoded)

    for module in (hashing, blocks_module):
        monkeypatch.setattr(module, "block_id", note)
    with database.read() as connection:
        assert packs.find(connection, block.block_id) == block
    assert hashed == [len(block.encoded)]


def test_equal_blocks_are_stored_once(database: Database) -> None:
    packs = Packs(database)
    made = [_block(number) for number in range(30)]
    _add(database, packs, made * 2)
    size = _files(database)[0].stat().st_size
    assert size == sum(len(block.encoded) for block in made)
    _add(database, packs, made)
    assert [path.stat().st_size for path in _files(database)] == [size]
    with database.read() as connection:
        assert connection.execute(select(func.count()).select_from(pack_blocks)).scalar_one() == len(made)


def test_what_two_add_at_the_same_time_is_named_once(database: Database) -> None:
    packs = Packs(database)
    made = [_block(number) for number in range(3)]
    with packs.draft() as first, packs.draft() as second:
        for draft in (first, second):
            for block in made:
                draft.put(block)
            draft.finish()
        for draft in (first, second):
            with database.write() as connection:
                draft.keep(connection)
            draft.is_kept = True
    assert len(_files(database)) == 1
    with database.read() as connection:
        assert packs.find(connection, made[0].block_id) == made[0]


@pytest.mark.parametrize("stage", ["put", "finish", "keep"])
def test_an_add_that_is_cut_leaves_nothing(
    database: Database, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    packs = Packs(database)
    monkeypatch.setattr(packs_module, "_FLUSH_SIZE", LARGE)

    def add() -> None:
        with packs.draft() as draft:
            draft.put(_block(1))
            draft.put(_block(2))
            assert _files(database)
            if stage == "put":
                raise ZeroDivisionError
            draft.finish()
            if stage == "finish":
                raise ZeroDivisionError
            with database.write() as connection:
                draft.keep(connection)
                raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        add()
    assert _files(database) == []
    with database.read() as connection:
        for table in (pack_blocks, blocks):
            assert connection.execute(select(func.count()).select_from(table)).scalar_one() == 0


def test_a_pack_that_no_row_names_is_set_aside_and_comes_back_with_its_rows(database: Database) -> None:
    packs = Packs(database)
    assert packs.sweep() == 0
    _add(database, packs, [_block(1)])
    (kept,) = _files(database)
    content = kept.read_bytes()
    (kept.parent / "left-behind").write_bytes(b"by a process that was killed")
    assert packs.sweep() == 1
    assert _files(database) == [kept]
    aside = database.folder / "quarantine" / "packs"
    assert (aside / "left-behind").read_bytes() == b"by a process that was killed"
    with database.write() as connection:
        connection.execute(update(packs_table).values(name="lost"))
    assert packs.sweep() == 1
    assert _files(database) == []
    with database.write() as connection:
        connection.execute(update(packs_table).values(name=kept.name))
    assert packs.sweep() == 0
    assert kept.read_bytes() == content
    assert measure_quarantine(database.folder).files == 1
    assert empty_quarantine(database.folder).size == len(b"by a process that was killed")
    assert measure_quarantine(database.folder).files == 0


def test_a_pack_whose_transaction_was_committed_stays_when_something_fails_after_it(
    database: Database,
) -> None:
    packs = Packs(database)

    def add() -> None:
        with packs.draft() as draft:
            draft.put(_block(1))
            draft.finish()
            with database.write() as connection:
                draft.keep(connection)
            raise ZeroDivisionError  # before the draft is told

    with pytest.raises(ZeroDivisionError):
        add()
    with database.read() as connection:
        assert packs.find(connection, _block(1).block_id) == _block(1)


def test_damage_is_found_when_a_block_is_read(database: Database) -> None:
    packs = Packs(database)
    made = [_block(number) for number in range(2)]
    _add(database, packs, made)
    (path,) = _files(database)
    content = bytearray(path.read_bytes())
    content[1000] ^= 1
    path.write_bytes(content)
    with database.read() as connection:
        with pytest.raises(DamagedBlock):
            packs.find(connection, made[0].block_id)
        assert packs.find(connection, made[1].block_id) == made[1]
        path.write_bytes(content[:10])
        with pytest.raises(DamagedBlock):
            packs.find(connection, made[1].block_id)
        path.unlink()
        with pytest.raises(StorageError):
            packs.find(connection, made[1].block_id)


@pytest.mark.sqlite
def test_a_disk_that_cannot_be_written_is_a_storage_error(database: Database) -> None:
    packs = Packs(database)
    (database.folder / "packs").write_text("a file where the folder belongs")
    with pytest.raises(StorageError), packs.draft() as draft:
        draft.put(_block(1))
        draft.finish()


def test_a_disk_that_fills_up_with_the_first_blocks_gets_its_room_back(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fill_up(_handle: int, _buffers: list[bytes]) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    packs = Packs(database)
    with monkeypatch.context() as patch, pytest.raises(StorageError, match="No space left"):
        patch.setattr(os, "writev", fill_up)
        _add(database, packs, [_block(number) for number in range(3)])
    assert _files(database) == []
    _add(database, packs, [_block(number) for number in range(3)])
    assert len(_files(database)) == 1
