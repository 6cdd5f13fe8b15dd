"""Files on their way to the disk: whole or not at all, one command at a time, and whatever stands at the place."""

import fcntl
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from node.cli import downloads
from node.cli.downloads import check_target, receive
from node.runtime.errors import ServiceError

CONTENT = os.urandom(3000)
NAME_SIZE_MAX = 255


def _pieces(content: bytes = CONTENT) -> Iterator[bytes]:
    for start in range(0, len(content), 1000):
        yield content[start : start + 1000]


def _get(target: Path, content: bytes = CONTENT, *, size: int | None = None, replaces: bool = False) -> None:
    checked = check_target(target, "name", replaces=replaces)
    receive(_pieces(content), checked, len(content) if size is None else size, replaces=replaces)


def _code(target: Path, content: bytes = CONTENT, *, size: int | None = None, replaces: bool = False) -> str:
    with pytest.raises(ServiceError) as caught:
        _get(target, content, size=size, replaces=replaces)
    return caught.value.code


def _draft_of(target: Path) -> Path:
    """The draft of a target, found by looking at one that is being received."""
    seen: list[Path] = []

    def look() -> Iterator[bytes]:
        seen.extend(target.parent.glob(".ravel-*.part"))
        yield b""

    receive(look(), target, 0, replaces=True)
    target.unlink()
    [draft] = seen
    return draft


def test_a_file_appears_whole_and_nothing_stays_beside_it(tmp_path: Path) -> None:
    _get(tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == CONTENT
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("size", [len(CONTENT) - 1, len(CONTENT) + 1])
def test_a_content_of_another_size_than_was_said_is_no_file(tmp_path: Path, size: int) -> None:
    assert _code(tmp_path / "out", size=size) == "interrupted"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("left", [b"", bytes(1000), bytes(3000), bytes(9000)], ids=len)
def test_what_an_earlier_run_left_is_not_believed(tmp_path: Path, left: bytes) -> None:
    _draft_of(tmp_path / "out").write_bytes(left)
    _get(tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == CONTENT
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_what_somebody_put_at_the_place_of_a_draft_is_not_written_to(tmp_path: Path) -> None:
    draft, theirs = _draft_of(tmp_path / "out"), tmp_path / "theirs"
    theirs.write_bytes(b"theirs")
    os.link(theirs, draft)
    _get(tmp_path / "out")
    assert theirs.read_bytes() == b"theirs"
    draft.symlink_to(theirs)
    assert _code(tmp_path / "out", replaces=True) == "storage_failed"
    assert theirs.read_bytes() == b"theirs"


def test_two_commands_at_once_write_one_file(tmp_path: Path) -> None:
    target, codes = tmp_path / "out", []

    def first() -> Iterator[bytes]:
        codes.append(_code(target, bytes(3000)))
        yield from _pieces()

    receive(first(), target, len(CONTENT), replaces=False)
    assert codes == ["already_running"]
    assert target.read_bytes() == CONTENT


def test_a_file_that_came_while_a_command_waited_is_not_replaced(tmp_path: Path) -> None:
    target = check_target(tmp_path / "out", "name", replaces=False)
    target.write_bytes(b"meanwhile")
    with pytest.raises(ServiceError, match="is there"):
        receive(_pieces(), target, len(CONTENT), replaces=False)
    assert target.read_bytes() == b"meanwhile"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_an_interrupt_leaves_nothing(tmp_path: Path) -> None:
    def stopped() -> Iterator[bytes]:
        yield CONTENT
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        receive(stopped(), tmp_path / "out", 9000, replaces=False)
    assert list(tmp_path.iterdir()) == []


def test_the_longest_name_of_a_file_is_taken(tmp_path: Path) -> None:
    _get(tmp_path / ("ü" * (NAME_SIZE_MAX // 2)))
    _get(tmp_path / ("c" * NAME_SIZE_MAX))
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize(
    "name,advice",
    [
        ("c" * (NAME_SIZE_MAX + 1), "--out NAME"),
        ("三" * 86, "--out NAME"),
        ("no/such/folder", "make the folder first, or name another place"),
    ],
)
def test_a_place_that_cannot_be_is_said_with_another_way(tmp_path: Path, name: str, advice: str) -> None:
    with pytest.raises(ServiceError) as caught:
        _get(tmp_path / name)
    assert caught.value.code == "storage_failed"
    assert advice in caught.value.advice


def test_what_is_there_is_replaced_only_by_force_and_a_folder_never(tmp_path: Path) -> None:
    (tmp_path / "out").write_bytes(b"before")
    (tmp_path / "folder").mkdir()
    assert _code(tmp_path / "out") == "already_exists"
    assert _code(tmp_path / "folder") == _code(tmp_path / "folder", replaces=True) == "already_exists"
    assert (tmp_path / "out").read_bytes() == b"before"
    _get(tmp_path / "out", replaces=True)
    assert (tmp_path / "out").read_bytes() == CONTENT


def test_a_link_stays_one_and_the_file_behind_it_is_written(tmp_path: Path) -> None:
    real, link = tmp_path / "far" / "real", tmp_path / "link"
    real.parent.mkdir()
    link.symlink_to(real)
    _get(link)  # it leads to nothing yet
    assert _code(link) == "already_exists"
    _get(link, CONTENT[:1000], replaces=True)
    assert link.is_symlink()
    assert real.read_bytes() == CONTENT[:1000]


@pytest.mark.parametrize("replaces", [False, True])
def test_a_pipe_is_written_into(tmp_path: Path, replaces: bool) -> None:
    pipe, came = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: came.append(pipe.read_bytes()))
    reader.start()
    _get(pipe, replaces=replaces)
    reader.join()
    assert came == [CONTENT]
    assert pipe.is_fifo()


def test_a_device_stays_one(tmp_path: Path) -> None:
    _get(Path(os.devnull), replaces=True)
    assert Path(os.devnull).is_char_device()
    assert _code(Path("/dev/full")) == "storage_failed"


def test_a_file_system_without_locks_is_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_handle: int, _operation: int) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    _get(tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == CONTENT


def test_a_draft_that_is_put_in_place_at_that_moment_is_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, locked = tmp_path / "out", downloads._lock
    draft = _draft_of(target)

    def lock_late(handle: int) -> bool:
        monkeypatch.setattr(downloads, "_lock", locked)
        draft.unlink()
        return locked(handle)

    monkeypatch.setattr(downloads, "_lock", lock_late)
    _get(target)
    assert target.read_bytes() == CONTENT
