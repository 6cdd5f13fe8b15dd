"""Many files of one request: all of them or none, each once, whatever the pieces in which they come."""

import errno
import json
import os
import random
from collections.abc import AsyncGenerator, Callable, Sequence
from pathlib import Path
from typing import Final

import pytest
import trio

from node.content import file_batch as batch_module
from node.content.file_batch import EncryptedFile, FileBatch, group_files
from node.content.files import FileService
from node.runtime.errors import ServiceError
from protocol.crypto.keys import BlockKey, ConvergenceSecret
from protocol.formats.block import Block, Reference
from protocol.formats.body import Permission
from protocol.formats.object import build_object
from protocol.limits.formats import FILE_COUNT_MAX, LEAF_SIZE, NAME_SIZE_MAX
from protocol.limits.users import FILE_HEAD_SIZE_MAX
from ravel.files import encode_head
from ravel.types.files import AddedFiles
from storage.blobs.files import load_files
from storage.engine.database import StorageError
from tests.support.ids import as_object_id
from tests.support.machine import fail_after
from tests.support.nodes import Node, connected, open_nodes, until_equal
from tests.support.relays import until

_SECRET: Final = ConvergenceSecret(b"s" * 32)
Contents = dict[str, bytes]


def _body(contents: Contents) -> bytes:
    return b"".join(encode_head(name, len(data)) + data for name, data in contents.items())


async def _stream(body: bytes, size: int = 65536) -> AsyncGenerator[bytes]:
    for start in range(0, len(body), size):
        await trio.lowlevel.checkpoint()
        yield body[start : start + size]


def _files_of(node: Node) -> FileService:
    return FileService(node.hub, node.author, node.branch)


def _names(node: Node) -> list[str]:
    with node.replica.database.read() as connection:
        return [row.name for row in load_files(connection, node.branch().num, 0, 10_000)]


def _packs(folder: Path) -> list[Path]:
    return list((folder / "alice" / "packs").glob("*"))


async def _content_of(files: FileService, name: str) -> bytes:
    file = await files.open("main", name)
    return b"".join([part async for part in files.read(file, 0, file.size)])


# --- the body ---


@pytest.mark.parametrize("seed", range(5))
def test_the_pieces_in_which_a_body_comes_do_not_matter(seed: int) -> None:
    draw = random.Random(seed)
    sizes = [0, 1, 100, 10_000, LEAF_SIZE, LEAF_SIZE + 1, 0]
    contents = {f"folder/{number} \u00fc": draw.randbytes(size) for number, size in enumerate(sizes)}
    body, blocks = _body(contents), list[Block]()
    batch = FileBatch(_SECRET, blocks.append)
    while body:
        size = draw.choice([1, 2, 30, 1000, 300_000])
        batch.add(memoryview(body[:size]))
        body = body[size:]
    assert batch.finish() == [
        EncryptedFile(name, len(data), build_object(data, _SECRET)[0]) for name, data in contents.items()
    ]


REFUSED: Final[dict[str, tuple[bytes, str, str]]] = {
    "nothing": (b"", "bad_request", "no files"),
    "ends_in_a_line": (b'{"name":"a"', "bad_request", "ends within the line before file 1"),
    "ends_in_a_content": (encode_head("a", 3) + b"xy", "bad_request", "'a': 2 of its 3 bytes came"),
    "ends_before_a_content": (encode_head("a", 3), "bad_request", "'a': 0 of its 3 bytes came"),
    "more_than_was_said": (encode_head("a", 1) + b"xy\n", "bad_request", "the line before file 2"),
    "no_json": (b"hello\n", "bad_request", "the line before file 1"),
    "deep_json": (b"[" * 4000 + b"\n", "bad_request", "the line before file 1"),
    "no_size": (b'{"name":"a"}\n', "bad_request", "size"),
    "a_surplus_field": (b'{"name":"a","size":0,"mode":7}\n', "bad_request", "mode"),
    "a_key_twice": (b'{"name":"a","size":0,"size":1}\n', "bad_request", "'size' stands twice"),
    "a_size_below_0": (b'{"name":"a","size":-1}\n', "bad_request", "size"),
    "a_size_that_is_no_number": (b'{"name":"a","size":"1"}\n', "bad_request", "size"),
    "a_size_over_its_bound": (b'{"name":"a","size":%d}\n' % (2**40 + 1), "bad_request", "size"),
    "sizes_over_their_bound": (
        encode_head("a", 1) + b"x" + encode_head("b", 2**40),
        "too_large",
        "at most 1099511627776 bytes",
    ),
    "a_line_over_its_bound": (b" " * FILE_HEAD_SIZE_MAX + b" ", "too_large", "the line before file 1"),
    "a_lone_surrogate": (b'{"name":"\\ud800","size":0}\n', "bad_request", "file 1"),
    "one_name_twice": (_body({"a": b""}) * 2, "bad_request", "file 2, 'a': the request has another"),
}
BAD_NAMES: Final = (
    *("", "/a", "a/", "a//b", ".", "..", "../a", "a/../b", "a/."),
    *("a\nb", "a\0", "\x1b[2J", "\u202ea", "x" * (NAME_SIZE_MAX + 1)),
)


def _refusal(body: bytes) -> ServiceError:
    """Return why a body is refused, however it comes."""
    found = []
    for size in (1, max(len(body), 1)):
        batch = FileBatch(_SECRET, lambda _: None)
        with pytest.raises(ServiceError) as caught:
            for start in range(0, len(body), size):
                batch.add(memoryview(body[start : start + size]))
            batch.finish()
        found.append(caught.value)
    assert found[0].as_json() == found[1].as_json()
    return found[0]


@pytest.mark.parametrize("defect", REFUSED)
def test_a_body_that_is_not_of_the_form_is_refused(defect: str) -> None:
    body, code, said = REFUSED[defect]
    error = _refusal(body)
    assert error.code == code
    assert said in error.message


@pytest.mark.parametrize("name", BAD_NAMES)
def test_a_name_that_leads_elsewhere_or_cannot_be_shown_is_refused(name: str) -> None:
    error = _refusal(json.dumps({"name": name, "size": 0}).encode() + b"\n")
    assert error.code == "bad_request"
    assert "file 1" in error.message


def test_names_sizes_and_lines_have_their_largest() -> None:
    name = "\U0001f600" * NAME_SIZE_MAX
    line = json.dumps({"name": name, "size": 1}).encode()  # every character escaped
    assert len(line) < FILE_HEAD_SIZE_MAX
    batch = FileBatch(_SECRET, lambda _: None)
    batch.add(memoryview(line.rjust(FILE_HEAD_SIZE_MAX) + b"\nx"))
    assert [(file.name, file.size) for file in batch.finish()] == [(name, 1)]


def test_a_request_has_a_largest_number_of_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_module, "FILE_BATCH_COUNT_MAX", 3)
    batch = FileBatch(_SECRET, lambda _: None)
    batch.add(memoryview(_body(dict.fromkeys("abc", b"x"))))
    assert len(batch.finish()) == 3
    with pytest.raises(ServiceError, match="at most 3 files") as caught:
        batch.add(memoryview(encode_head("d", 0)))
    assert caught.value.code == "too_large"


def test_a_commit_names_no_object_twice_and_no_more_than_it_may() -> None:
    draw = random.Random(1)
    objects = [draw.choice([0, 1, 2, 100 + number]) for number in range(1000)]
    files = [
        EncryptedFile("", 0, Reference(as_object_id(number.to_bytes(32, "big")), BlockKey(b"k" * 32)))
        for number in objects
    ]
    groups = group_files(files, range(1000))
    assert sorted(place for group in groups for place in group) == list(range(1000))
    for group in groups:
        assert len({objects[place] for place in group}) == len(group) <= FILE_COUNT_MAX
    assert len(groups) == max(objects.count(number) for number in objects)
    assert len(group_files(files, [place for place in range(1000) if objects[place] > 2])) <= 8


# --- the store ---


async def test_files_are_added_with_few_commits_and_come_out_as_they_went_in(tmp_path: Path) -> None:
    contents = {"empty": b"", "empty too": b"", "large": bytes(LEAF_SIZE + 1)}
    for number in range(FILE_COUNT_MAX + 20):
        contents[f"folder/{number:03}"] = b"%d." % number * (number + 1)
    with fail_after(30), open_nodes(tmp_path, "alice") as (alice,):
        alice.create_repo()
        files = _files_of(alice)
        added = await files.add_many("main", _stream(_body(contents)))
        listed = await files.window("main", 0, 1000)
        assert [one["name"] for one in added["files"]] == list(contents)
        assert all(one["is_new"] for one in added["files"])
        shown = [{**one, "is_new": True} for one in listed["files"]]
        assert sorted(added["files"], key=lambda one: one["name"]) == sorted(
            shown, key=lambda one: str(one["name"])
        )
        assert len({one["commit"] for one in added["files"]}) == 2
        for name in ("folder/000", "folder/147", "empty", "empty too", "large"):
            assert await _content_of(files, name) == contents[name]


async def test_what_is_there_is_passed_over_and_other_content_is_another_file(tmp_path: Path) -> None:
    with fail_after(30), open_nodes(tmp_path, "alice") as (alice,):
        alice.create_repo()
        files = _files_of(alice)
        first = await files.add_many("main", _stream(_body({"a": b"1", "b": b"2"})))
        digest = alice.digest(alice.branch())
        again = await files.add_many("main", _stream(_body({"b": b"2", "a": b"1"})))
        assert [{**one, "is_new": True} for one in again["files"]] == first["files"][::-1]
        assert not any(one["is_new"] for one in again["files"])
        assert alice.digest(alice.branch()) == digest
        changed = await files.add_many("main", _stream(_body({"a": b"1", "b": b"3", "c": b"1"})))
        assert [one["is_new"] for one in changed["files"]] == [False, True, True]
        assert _names(alice) == ["a", "b", "b", "c"]
        await files.remove("main", "a")
        back = await files.add_many("main", _stream(_body({"a": b"1"})))
        assert back["files"][0]["is_new"], "what was removed is there no more"


async def test_two_requests_for_the_same_at_once_add_it_once(tmp_path: Path) -> None:
    with fail_after(30), open_nodes(tmp_path, "alice") as (alice,):
        alice.create_repo()
        files, answers = _files_of(alice), list[AddedFiles]()

        async def add() -> None:
            answers.append(await files.add_many("main", _stream(_body({"a": b"1", "b": b"2"}))))

        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(add)
        assert _names(alice) == ["a", "b"]
        assert sorted(one["files"][0]["is_new"] for one in answers) == [False] * 4 + [True]


@pytest.mark.slow
async def test_content_that_a_member_has_added_comes_here_with_the_same_file(tmp_path: Path) -> None:
    contents = {"large": random.Random(1).randbytes(LEAF_SIZE + 1), "small": b"x" * 1000}
    with fail_after(60), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        repo, _ = alice.create_repo()
        await bob.joiner.begin(alice.invite(repo, Permission.WRITE))
        await _files_of(alice).add_many("main", _stream(_body(contents)))
        async with connected(bob, alice):
            await until_equal(alice, bob)  # of a branch that has no posts it says nothing of the membership
            await until(lambda: bob.replica.permission(bob.repo(), bob.author.user) is Permission.WRITE)
        files = _files_of(bob)
        with pytest.raises(ServiceError):
            await files.open("main", "large")
        added = await files.add_many("main", _stream(_body(contents)))
        assert not any(one["is_new"] for one in added["files"])
        for name, data in contents.items():
            assert await _content_of(files, name) == data


async def _cut(body: bytes) -> AsyncGenerator[bytes]:
    async for piece in _stream(body):
        yield piece
    raise ConnectionResetError


@pytest.mark.parametrize(
    "stream, error",
    [
        (lambda body: _cut(body[:-100_000]), ConnectionResetError),
        (lambda body: _stream(body[:-1]), ServiceError),
        (lambda body: _stream(body + encode_head("..", 0)), ServiceError),
    ],
    ids=["cut", "short", "refused at its end"],
)
async def test_a_request_that_fails_leaves_nothing(
    tmp_path: Path, stream: Callable[[bytes], AsyncGenerator[bytes]], error: type[Exception]
) -> None:
    body = _body({str(number): random.Random(number).randbytes(LEAF_SIZE) for number in range(6)})
    with fail_after(30), open_nodes(tmp_path, "alice") as (alice,):
        _, branch = alice.create_repo()
        before = alice.digest(branch)
        with pytest.raises(error):
            await _files_of(alice).add_many("main", stream(body))
        assert (alice.digest(alice.branch()), _names(alice), _packs(tmp_path)) == (before, [], [])
        await _files_of(alice).add_many("main", _stream(body))
        assert (len(_names(alice)), len(_packs(tmp_path))) == (6, 1)


async def test_a_disk_that_is_full_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = _body({str(number): random.Random(number).randbytes(LEAF_SIZE) for number in range(6)})
    writev, count = os.writev, 0

    def fill_up(handle: int, buffers: Sequence[bytes]) -> int:
        nonlocal count
        count += 1
        if count > 3:
            raise OSError(errno.ENOSPC, "No space left on device")
        return writev(handle, buffers)

    with fail_after(30), open_nodes(tmp_path, "alice") as (alice,):
        alice.create_repo()
        with monkeypatch.context() as patch, pytest.raises(StorageError, match="No space left"):
            patch.setattr(os, "writev", fill_up)
            await _files_of(alice).add_many("main", _stream(body))
        assert (_names(alice), _packs(tmp_path)) == ([], [])
        await _files_of(alice).add_many("main", _stream(body))
        assert len(_names(alice)) == 6


async def test_a_transaction_that_fails_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = _body({str(number): random.Random(number).randbytes(100_000) for number in range(6)})
    with fail_after(30), open_nodes(tmp_path, "alice") as (alice,):
        alice.create_repo()

        def fail(*_: object, **__: object) -> None:
            raise StorageError("disk full")

        with monkeypatch.context() as patch, pytest.raises(StorageError):
            patch.setattr(alice.author.queue, "write_group", fail)
            await _files_of(alice).add_many("main", _stream(body))
        assert (_names(alice), _packs(tmp_path)) == ([], [])
