"""Files of branches: streamed in and out, shared, removed for all who saw the same commits."""

from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

import pytest
import trio

from node.authoring.drafting import Draft
from node.content import file_places
from node.content import files as files_module
from node.content.files import FileService
from node.runtime.errors import ServiceError
from protocol.crypto.keys import BlockKey
from protocol.formats.block import Reference
from protocol.formats.content import FileEntry, Files, Post
from protocol.formats.object import build_object
from protocol.formats.text import id_text
from protocol.limits.formats import FILE_COUNT_MAX, LEAF_SIZE
from storage.blobs.files import load_files
from storage.blobs.unfetched import note_files_fetched
from storage.engine.database import StorageError
from storage.repos.repos import Branch
from tests.support.ids import as_object_id
from tests.support.machine import fail_after
from tests.support.nodes import Node, connected, open_nodes, share, until_equal


def _files_of(node: Node) -> FileService:
    return FileService(node.hub, node.author, node.branch)


def _names(node: Node) -> list[str]:
    with node.replica.database.read() as connection:
        return [row.name for row in load_files(connection, node.branch().num, 0, 1000)]


async def _stream(*chunks: bytes) -> AsyncGenerator[bytes]:
    for chunk in chunks:
        await trio.lowlevel.checkpoint()
        yield chunk


def _content(size: int) -> bytes:
    return bytes(range(253)) * (size // 253) + bytes(size % 253)


@pytest.mark.parametrize("size", [0, 1, LEAF_SIZE, LEAF_SIZE + 1, 5 * LEAF_SIZE + 12345])
async def test_a_file_comes_out_as_it_went_in_whole_and_by_range(tmp_path: Path, size: int) -> None:
    data = _content(size)
    with fail_after(30), open_nodes(tmp_path, "alice") as (alice,):
        alice.create_repo()
        files = _files_of(alice)
        view = await files.add("main", "a name", _stream(data[:100], b"", data[100:]))
        assert (view["name"], view["size"]) == ("a name", size)
        file = await files.open("main", "a name")
        assert file.size == size
        for start, stop in ((0, size), (0, size // 2), (size // 3, size), (size, size)):
            got = b"".join([part async for part in files.read(file, start, stop)])
            assert got == data[start:stop]
        assert (await files.open("main", view["file"][:6])).file_id == view["file"]


@pytest.mark.slow
async def test_the_chunks_in_which_content_comes_do_not_matter(tmp_path: Path) -> None:
    data = _content(files_module.PIECE_SIZE * 2 + 12345)
    with fail_after(30), open_nodes(tmp_path, "alice") as (alice,):
        alice.create_repo()
        files = _files_of(alice)
        ids = set()
        for step in (60_001, files_module.PIECE_SIZE, len(data)):
            chunks = [data[start : start + step] for start in range(0, len(data), step)]
            ids.add((await files.add("main", f"by {step}", _stream(*chunks)))["file"])
        assert ids == {id_text(build_object(data, alice.epoch().convergence_secret)[0].object_id)}


async def test_equal_content_is_stored_once_and_files_survive_a_restart(tmp_path: Path) -> None:
    data = _content(2 * LEAF_SIZE)
    with fail_after(30), open_nodes(tmp_path, "alice") as (alice,):
        alice.create_repo()
        first = await _files_of(alice).add("main", "one", _stream(data))
        second = await _files_of(alice).add("main", "two", _stream(data))
        assert first["file"] == second["file"]
        assert len(list((tmp_path / "alice" / "packs").iterdir())) == 1
    with fail_after(30), open_nodes(tmp_path, "alice") as (alice,):
        file = await _files_of(alice).open("main", "two")
        assert b"".join([part async for part in _files_of(alice).read(file, 0, file.size)]) == data


async def test_an_upload_that_is_cut_leaves_nothing(tmp_path: Path) -> None:
    async def cut() -> AsyncGenerator[bytes]:
        for number in range(12):
            yield bytes([number]) * LEAF_SIZE
        raise ConnectionResetError

    with fail_after(30), open_nodes(tmp_path, "alice") as (alice,):
        _, branch = alice.create_repo()
        before = alice.digest(branch)
        with pytest.raises(ConnectionResetError):
            await _files_of(alice).add("main", "cut", cut())
        assert list((tmp_path / "alice" / "packs").iterdir()) == []
        assert (alice.digest(branch), _names(alice)) == (before, [])


async def test_an_add_whose_transaction_fails_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with fail_after(30), open_nodes(tmp_path, "alice") as (alice,):
        alice.create_repo()

        def fail(*_: object, **__: object) -> None:
            raise StorageError("disk full")

        monkeypatch.setattr(alice.author.queue, "write_group", fail)
        with pytest.raises(StorageError):
            await _files_of(alice).add("main", "x", _stream(_content(LEAF_SIZE)))
        assert list((tmp_path / "alice" / "packs").iterdir()) == []


@pytest.mark.parametrize("name", ["", "x" * 256, "a\nb"])
async def test_a_name_that_cannot_be_shown_is_refused(tmp_path: Path, name: str) -> None:
    with fail_after(30), open_nodes(tmp_path, "alice") as (alice,):
        alice.create_repo()
        with pytest.raises(ServiceError) as caught:
            await _files_of(alice).add("main", name, _stream(b"x"))
        assert caught.value.code == "bad_request"


async def test_a_file_has_a_largest_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files_module, "FILE_SIZE_MAX", 10)
    with fail_after(30), open_nodes(tmp_path, "alice") as (alice,):
        alice.create_repo()
        await _files_of(alice).add("main", "ten", _stream(b"0123456789"))
        with pytest.raises(ServiceError) as caught:
            await _files_of(alice).add("main", "eleven", _stream(b"0123456789", b"a"))
        assert caught.value.code == "too_large"


async def test_names_prefixes_and_their_absence_are_clear(tmp_path: Path) -> None:
    with fail_after(30), open_nodes(tmp_path, "alice") as (alice,):
        alice.create_repo()
        files = _files_of(alice)
        for content in (_content(100), _content(101)):
            await files.add("main", "same", _stream(content))
        await files.add("main", "cafe\u0301", _stream(b"of macOS"))
        assert (await files.open("main", "caf\xe9")).name == "cafe\u0301"
        await files.remove("main", "caf\xe9")
        for text, code in (("same", "ambiguous"), ("nothing", "not_found"), ("!", "not_found")):
            with pytest.raises(ServiceError) as caught:
                await files.open("main", text)
            assert caught.value.code == code
        assert caught.value.advice == "`ravel file list BRANCH` shows what there is"
        window = await files.window("main", 0, 1)
        assert len(window["files"]) == 1
        rest = await files.window("main", window["next"] or 0, 1000)
        assert (len(rest["files"]), rest["next"]) == (1, None)


async def test_two_small_files_of_one_id_are_two_files(tmp_path: Path) -> None:
    with fail_after(60), open_nodes(tmp_path, "alice") as (alice,):
        alice.create_repo()
        by_id: dict[bytes, bytes] = {}
        for content in (bytes([number]) for number in range(256)):
            object_id = build_object(content, alice.epoch().convergence_secret)[0].object_id
            if object_id in by_id:  # one byte of ciphertext: it would take luck to have 256 different ones
                break
            by_id[object_id] = content
        files = _files_of(alice)
        for name, data in (("one", by_id[object_id]), ("other", content)):
            await files.add("main", name, _stream(data))
            file = await files.open("main", name)
            assert b"".join([part async for part in files.read(file, 0, 1)]) == data
        tags = {(await files.open("main", name)).tag for name in ("one", "other")}
        assert len(tags) == 2, "a range of one is not continued with the other"
        assert {tag.partition("-")[0] for tag in tags} == {id_text(object_id)}
        with pytest.raises(ServiceError, match="'one', 'other'") as caught:
            await files.open("main", id_text(object_id))
        assert (caught.value.code, caught.value.advice) == ("ambiguous", "give the name")
        await files.remove("main", "one")
        assert _names(alice) == ["other"]
        await files.add("main", "other", _stream(by_id[object_id]))
        with pytest.raises(ServiceError, match="several contents") as caught:
            await files.open("main", "other")
        assert caught.value.code == "ambiguous"
        await files.remove("main", "other")
        assert _names(alice) == [], "what cannot be told apart goes together"


@pytest.mark.slow
async def test_an_add_that_the_remover_had_not_seen_stays(tmp_path: Path) -> None:
    data = _content(1000)
    with fail_after(60), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        await share(alice, bob)
        await _files_of(alice).add("main", "old", _stream(data))
        async with connected(bob, alice):
            await until_equal(alice, bob)
        await _files_of(bob).remove("main", "old")
        await _files_of(alice).add("main", "again", _stream(data))
        assert (_names(alice), _names(bob)) == (["old", "again"], [])
        async with connected(bob, alice):
            await until_equal(alice, bob)
        assert _names(alice) == _names(bob) == ["again"]


@pytest.mark.slow
async def test_content_that_is_not_here_is_said(tmp_path: Path) -> None:
    with fail_after(60), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        repo, _ = alice.create_repo()
        await bob.joiner.begin(alice.invite(repo))
        await _files_of(alice).add("main", "far", _stream(_content(3 * LEAF_SIZE)))
        async with connected(bob, alice):
            await until_equal(alice, bob)
        with pytest.raises(ServiceError) as caught:
            await _files_of(bob).open("main", "far")
        assert caught.value.code == "incomplete"


async def _places(node: Node) -> list[str]:
    return [one["place"] for one in (await _files_of(node).window("main", 0, 10, places=True))["files"]]


@pytest.mark.slow
async def test_where_the_content_of_a_file_is_is_said_as_far_as_it_was_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with fail_after(60), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        await share(alice, bob)
        for name in ("one", "two"):
            await _files_of(alice).add("main", name, _stream(name.encode() + _content(2 * LEAF_SIZE)))
        async with connected(bob, alice):
            await until_equal(alice, bob)
            assert (await _places(alice), await _places(bob)) == (["only_here"] * 2, ["away"] * 2)
            file = await _files_of(bob).open("main", "one")
            assert [part async for part in _files_of(bob).read(file, 0, LEAF_SIZE)]
            whole = [part async for part in _files_of(bob).read(file, 0, file.size)]
            assert sum(map(len, whole)) == file.size
            assert await _places(bob) == ["here", "away"], "who fetched it is not its author"
        with alice.replica.database.write() as connection:
            (row, _) = load_files(connection, alice.branch().num, 0, 10)
            note_files_fetched(connection, alice.branch().repo_num, row.object_id)
        assert await _places(alice) == ["here", "only_here"]
        monkeypatch.setattr(file_places, "FILE_BLOCKS_LOOKED_MAX", 5)
        assert await _places(alice) == ["here", "unknown"], "each takes three blocks of content"
        assert "place" not in (await _files_of(alice).window("main", 0, 10))["files"][0]


async def test_places_are_looked_at_as_many_as_there_are_and_a_large_file_hides_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with fail_after(30), open_nodes(tmp_path, "alice") as (alice,):
        alice.create_repo()
        await _files_of(alice).add("main", "large", _stream(_content(3 * LEAF_SIZE)))
        await _files_of(alice).add("main", "small", _stream(b"small"))
        monkeypatch.setattr(file_places, "FILE_BLOCKS_LOOKED_MAX", 3)
        assert await _places(alice) == ["unknown", "only_here"]
        with alice.replica.database.read() as connection:
            large, small = load_files(connection, alice.branch().num, 0, 10)
            lie = replace(large, size=0)
            found = file_places.find_places(connection, alice.replica, [lie, small], set())
            assert list(found.values()) == ["unknown", "only_here"], "a size is its author's word"
            monkeypatch.setattr(file_places, "FILE_BLOCKS_LOOKED_MAX", 5)
            named = [replace(large, num=number) for number in range(10)]
            found = file_places.find_places(connection, alice.replica, named, set())
            assert "unknown" not in found.values(), "of many names it is looked at once"


def _write(node: Node, branch: Branch, draft: Draft) -> None:
    node.author.write(branch, draft)


async def test_an_author_who_lies_about_a_file_is_found_out(tmp_path: Path) -> None:
    with fail_after(30), open_nodes(tmp_path, "alice") as (alice,):
        _, branch = alice.create_repo()
        files = _files_of(alice)
        view = await files.add("main", "true", _stream(b"content"))
        reference, _ = build_object(b"content", alice.epoch().convergence_secret)
        wrong_key = Reference(reference.object_id, BlockKey(b"k" * 32))
        for name, size, named in (("longer", 8, reference), ("other key", 7, wrong_key)):
            entry = FileEntry(name, size)
            _write(alice, branch, Draft(Files((entry,)), files=(named,)))
            with pytest.raises(ServiceError) as caught:
                await files.open("main", name)
            assert caught.value.code == "bad_input"
        assert (await files.open("main", "true")).file_id == view["file"]


def test_names_and_files_of_a_commit_are_as_many(tmp_path: Path) -> None:
    with open_nodes(tmp_path, "alice") as (alice,):
        _, branch = alice.create_repo()
        reference, _ = build_object(b"content", alice.epoch().convergence_secret)
        entry = FileEntry("x", 7)
        before = alice.digest(branch)
        for draft in (
            Draft(Files((entry,))),
            Draft(Files(()), files=(reference,)),
            Draft(Files(())),
        ):
            with pytest.raises(ServiceError, match="V8"):
                _write(alice, branch, draft)
        too_many = tuple(
            Reference(as_object_id(number.to_bytes(32, "big")), BlockKey(b"k" * 32))
            for number in range(FILE_COUNT_MAX + 1)
        )
        with pytest.raises(ServiceError, match="bad_shape"):
            _write(alice, branch, Draft(Post("many"), files=too_many))
        assert alice.digest(branch) == before
        _write(alice, branch, Draft(Post("with an attachment"), files=(reference,)))
        assert _names(alice) == [""]


async def test_files_of_all_epochs_are_read_and_one_that_comes_in_meanwhile_is_refused(
    tmp_path: Path,
) -> None:
    # What was sealed for one epoch does not open with the secrets of the next.
    with fail_after(30), open_nodes(tmp_path, "alice") as (alice,):
        repo, _ = alice.create_repo()
        files = _files_of(alice)
        await files.add("main", "before", _stream(b"old"))

        async def cut_by_an_epoch() -> AsyncGenerator[bytes]:
            yield b"half"
            alice.hub.announce(alice.author.start_epoch(repo))
            yield b"and half"

        with pytest.raises(ServiceError, match="new secrets") as caught:
            await files.add("main", "between", cut_by_an_epoch())
        assert caught.value.code == "interrupted"
        await files.add("main", "after", _stream(b"new"))
        assert _names(alice) == ["before", "after"]
        for name, content in (("before", b"old"), ("after", b"new")):
            file = await files.open("main", name)
            assert b"".join([part async for part in files.read(file, 0, file.size)]) == content
        await files.remove("main", "before")
        assert _names(alice) == ["after"]
