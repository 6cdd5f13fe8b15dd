"""Files of the disk on their way to a branch, without a daemon: what takes requests here reads them as it would."""

import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from node.cli import uploads as uploads_module
from node.cli.main import app
from node.cli.progress import time_left
from node.cli.uploads import FoundFile, Skipped, Uploader, find_files, name_paths
from node.cli.words import FILE_ADDED
from node.content.file_batch import EncryptedFile, FileBatch
from node.runtime.errors import ERROR_KINDS, ServiceError
from protocol.crypto.keys import ConvergenceSecret
from protocol.formats.object import build_object
from ravel.types.files import AddedFiles

_SECRET = ConvergenceSecret(b"s" * 32)


class Daemon:
    """Takes requests, and keeps what each has added."""

    def __init__(self) -> None:
        self.requests: list[list[EncryptedFile]] = []
        self.before: Callable[[], None] = lambda: None
        """Runs when a request begins."""
        self.pieces_max = 0
        """The largest piece of a body."""

    @property
    def names(self) -> list[str]:
        return [file.name for request in self.requests for file in request]

    def add(self, body: Iterator[bytes]) -> AddedFiles:
        self.before()
        batch = FileBatch(_SECRET, lambda _: None)
        for piece in body:
            self.pieces_max = max(self.pieces_max, len(piece))
            batch.add(memoryview(piece))
        files = batch.finish()
        is_new = [file not in (one for request in self.requests for one in request) for file in files]
        self.requests.append(files)
        shown = {"file": "", "commit": "", "author": "", "time": 0}
        return {
            "branch": "",
            "files": [
                {**shown, "name": file.name, "size": file.size, "is_new": new}  # type: ignore[typeddict-item]  # a spread dict
                for file, new in zip(files, is_new, strict=True)
            ],
        }


def _found(*paths: Path, with_hidden: bool = False) -> Iterator[FoundFile]:
    return find_files(name_paths(paths), Skipped(), with_hidden=with_hidden)


def _names(*paths: Path, with_hidden: bool = False) -> list[str]:
    return [found.name for found in _found(*paths, with_hidden=with_hidden)]


def _upload(daemon: Daemon, *paths: Path) -> Uploader:
    return Uploader(daemon.add, _found(*paths), lambda _: None)


def _fill(folder: Path, **contents: bytes) -> Path:
    folder.mkdir(exist_ok=True)
    for name, data in contents.items():
        (folder / name).write_bytes(data)
    return folder


# --- what is found ---


def test_files_in_folders_are_found_in_order_and_named_from_the_folder_on(tmp_path: Path) -> None:
    top = _fill(tmp_path / "top", b=b"", a=b"")
    _fill(top / "sub", c=b"")
    (top / "empty").mkdir()
    single = _fill(tmp_path, single=b"x") / "single"
    assert _names(top, single) == ["top/a", "top/b", "top/sub/c", "single"]


def test_folders_may_lie_deeper_than_functions_may_call(tmp_path: Path) -> None:
    path = tmp_path / "d"
    for _ in range(100):
        path.mkdir()
        path /= "d"
    path.write_bytes(b"")
    assert _names(tmp_path / "d") == ["/".join(["d"] * 101)]


def test_links_hidden_and_special_files_are_left_out_and_named(tmp_path: Path) -> None:
    outside = _fill(tmp_path / "outside", secret=b"secret")
    top = _fill(tmp_path / "top", plain=b"", **{".hidden": b""})
    _fill(top / ".git", config=b"")
    (top / "link").symlink_to(outside / "secret")
    (top / "folder link").symlink_to(outside)
    (top / "loop").symlink_to(top)
    (top / "broken").symlink_to("nowhere")
    os.mkfifo(top / "pipe")
    skipped = Skipped()
    assert [found.name for found in find_files(name_paths([top]), skipped)] == ["top/plain"]
    reasons = {Path(one["path"]).name: one["reason"] for one in skipped.first}
    links = dict.fromkeys(("link", "folder link", "loop", "broken"), "link")
    assert reasons == {".git": "hidden", ".hidden": "hidden", "pipe": "special"} | links
    assert (skipped.count, skipped.exit_code) == (7, 0)
    assert _names(top, with_hidden=True) == ["top/.git/config", "top/.hidden", "top/plain"]
    assert _names(top / ".git", top / ".hidden") == [".git/config", ".hidden"], "what is named is meant"
    assert _names(top / "link") == ["link"], "a link that is named is followed"


def test_a_file_that_cannot_be_called_so_is_left_out_of_its_folder_and_refused_by_itself(
    tmp_path: Path,
) -> None:
    top = _fill(tmp_path / "top", **{"4.42.48\u202fPM.png": b"", "turn\u202eed": b"", "z" * 252: b""})
    with open(os.fsencode(top) + b"/caf\xe9", "wb"):
        pass
    skipped = Skipped()
    assert [one.name for one in find_files(name_paths([top]), skipped)] == ["top/4.42.48\u202fPM.png"]
    left_out = {(Path(one["path"]).name, one["reason"]) for one in skipped.first}
    assert left_out == {("turn\u202eed", "name"), ("z" * 252, "name"), ("caf\ufffd", "name")}
    assert skipped.exit_code == ERROR_KINDS["bad_request"].exit_code, "a script must not take it for added"
    with pytest.raises(ServiceError, match="RIGHT-TO-LEFT OVERRIDE") as caught:
        _names(top / "turn\u202eed")
    assert caught.value.code == "bad_request"


def test_a_name_of_two_lines_that_is_left_out_is_said_in_one(capsys: pytest.CaptureFixture[str]) -> None:
    left_out = {"skipped": 1, "first_skipped": [{"path": "a\nskipped  b", "reason": "name"}]}
    FILE_ADDED({"files": 0, "added": 0, "already": 0, "bytes": 0, **left_out})
    assert "\nskipped  a\ufffdskipped  b  (name)\n" in capsys.readouterr().out


def test_of_what_is_left_out_the_first_are_named_and_all_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploads_module, "SKIPPED_SHOWN_MAX", 2)
    skipped, top = Skipped(), _fill(tmp_path / "top", **{".a": b"", ".b": b"", ".c": b""})
    assert [*find_files(name_paths([top]), skipped)] == []
    assert (skipped.count, len(skipped.first)) == (3, 2)


def test_each_path_has_a_name_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in "ab":
        _fill(tmp_path / folder, same=b"")
    with pytest.raises(ServiceError, match="would both be 'same'"):
        name_paths([tmp_path / "a" / "same", tmp_path / "b" / "same"])
    with pytest.raises(ServiceError, match="--name names one path"):
        name_paths([tmp_path / "a", tmp_path / "b"], "x")
    with pytest.raises(ServiceError, match="has no name"):
        name_paths([Path("/")])
    monkeypatch.chdir(tmp_path / "a")
    assert [name for _, name in name_paths([Path(), Path("..")])] == ["a", tmp_path.name]
    assert name_paths([Path()], "photos") == [(".", "photos")]
    assert [found.name for found in find_files(name_paths([Path()], "x/y"), Skipped())] == ["x/y/same"]


@pytest.mark.parametrize("name", ["a\nb", "\x1b[2J", "\udcff"])
def test_a_name_that_a_branch_does_not_take_is_told_with_its_path(tmp_path: Path, name: str) -> None:
    os.close(os.open(os.fsencode(tmp_path) + b"/" + os.fsencode(name), os.O_CREAT | os.O_WRONLY))
    with pytest.raises(ServiceError, match="cannot be added as") as caught:
        _names(tmp_path / name)
    assert caught.value.code == "bad_request"


def test_a_path_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(ServiceError, match="No such file") as caught:
        _names(tmp_path / "nothing")
    assert caught.value.code == "bad_input"


def test_a_folder_that_may_not_be_read_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _fill(_fill(tmp_path / "top", a=b"") / "sub", b=b"")
    listed = os.listdir

    def refuse(path: str) -> list[str]:  # root may read anything
        if path.endswith("sub"):
            raise PermissionError(13, "Permission denied")
        return listed(path)

    monkeypatch.setattr(os, "listdir", refuse)
    with pytest.raises(ServiceError, match="sub cannot be read: Permission denied"):
        _names(tmp_path / "top")


# --- what is sent ---


def test_what_is_sent_is_what_lies_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads_module, "_SMALL_SIZE", 10_000)
    monkeypatch.setattr(uploads_module, "_PIECE_SIZE", 3000)
    noise = random.Random(1)
    sizes = (0, 1, 2999, 3000, 3001, 10_000, 10_001, 30_000, 30_001, 5)
    contents = {f"{number:02}": noise.randbytes(size) for number, size in enumerate(sizes)}
    top, daemon, progress = _fill(tmp_path / "top", **contents), Daemon(), list[int]()
    upload = Uploader(daemon.add, _found(top), lambda done: progress.append(done)).run()
    expected = [
        EncryptedFile(f"top/{name}", len(data), build_object(data, _SECRET)[0])
        for name, data in contents.items()
    ]
    assert [file for request in daemon.requests for file in request] == expected
    assert (upload.count, upload.new_count, upload.size) == (10, 10, sum(sizes))
    assert progress == sorted(progress)
    assert progress[-1] == sum(sizes)
    assert daemon.pieces_max < 10_000 + 2 * 3000, "memory holds a small file and a piece"
    again = _upload(daemon, top).run()
    assert (again.count, again.new_count) == (10, 0)


def test_a_file_that_states_no_size_is_read_to_its_end() -> None:
    # /proc states 0 bytes of every file.
    version, daemon = Path("/proc/version"), Daemon()
    assert version.stat().st_size == 0
    _upload(daemon, version).run()
    [[file]] = daemon.requests
    content = version.read_bytes()
    assert file == EncryptedFile("version", len(content), build_object(content, _SECRET)[0])


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/urandom", os.devnull])
def test_a_device_that_may_have_no_end_is_refused(path: str) -> None:
    error = CliRunner().invoke(app, ["file", "add", "main", path]).exception
    assert isinstance(error, ServiceError)
    assert f"head -c SIZE {path} | ravel file add" in error.advice


def test_a_file_that_states_no_size_has_a_bound_and_another_way(monkeypatch: pytest.MonkeyPatch) -> None:
    size = len(Path("/proc/version").read_bytes())
    monkeypatch.setattr(uploads_module, "_UNSTATED_SIZE_MAX", size)
    _upload(Daemon(), Path("/proc/version")).run()
    monkeypatch.setattr(uploads_module, "_UNSTATED_SIZE_MAX", size - 1)
    error = _refused(Daemon(), _upload(Daemon(), Path("/proc/version")))
    assert "cat /proc/version | ravel file add" in error.advice


@pytest.mark.parametrize("stated, said", [(2, "more"), (6, "4")])
@pytest.mark.parametrize("small", [10, 1], ids=["small", "large"])
def test_a_file_with_another_size_than_it_states_is_not_added(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stated: int, said: str, small: int
) -> None:
    top, fstat = _fill(tmp_path / "top", a=b"1234"), os.fstat

    def misstate(handle: int) -> os.stat_result:  # as /sys does
        found = list(fstat(handle))
        found[6] = stated
        return os.stat_result(found)

    monkeypatch.setattr(os, "fstat", misstate)
    monkeypatch.setattr(uploads_module, "_SMALL_SIZE", small)
    daemon = Daemon()
    error = _refused(daemon, _upload(daemon, top))
    assert f"states a size of {stated} bytes, and has {said}" in error.message
    assert "ravel file add BRANCH - --name NAME" in error.advice
    assert daemon.names == []


def test_a_request_has_so_many_files_and_bytes_and_a_large_file_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploads_module, "FILE_BATCH_COUNT_MAX", 3)
    monkeypatch.setattr(uploads_module, "_REQUEST_SIZE", 100)
    monkeypatch.setattr(uploads_module, "_SMALL_SIZE", 60)
    sizes = (1, 1, 1, 1, 60, 39, 1, 61, 1, 200)
    top = _fill(tmp_path / "top", **{f"{number:02}": bytes(size) for number, size in enumerate(sizes)})
    daemon = Daemon()
    _upload(daemon, top).run()
    assert [[file.size for file in request] for request in daemon.requests] == [
        [1, 1, 1],
        [1, 60, 39],
        [1],
        [61, 1],
        [200],
    ]


def test_an_empty_folder_makes_no_request(tmp_path: Path) -> None:
    daemon = Daemon()
    assert _upload(daemon, _fill(tmp_path / "top")).run().count == 0
    assert daemon.requests == []


# --- what goes wrong ---


def _refused(daemon: Daemon, uploader: Uploader) -> ServiceError:
    with pytest.raises(ServiceError) as caught:
        uploader.run()
    assert caught.value.advice
    return caught.value


def _vanish(path: Path) -> None:
    path.unlink()


def _be_a_link(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.with_name("a"))


def _be_a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _be_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("change", [_vanish, _be_a_link, _be_a_pipe, _be_a_folder])
def test_a_file_that_changes_after_it_was_found_ends_the_upload_with_those_before_it(
    tmp_path: Path, change: Callable[[Path], None]
) -> None:
    top, daemon = _fill(tmp_path / "top", a=b"1", b=b"2", c=b"3", d=b"4"), Daemon()
    found = [*_found(top)]
    change(top / "c")
    error = _refused(daemon, Uploader(daemon.add, iter(found), lambda _: None))
    assert error.code == "bad_input"
    assert "top/c" in error.message
    assert "durable files: 2, the last is 'top/b'" in error.message
    assert daemon.names == ["top/a", "top/b"]


def test_a_file_that_may_not_be_read_ends_the_upload(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    top, daemon, opened = _fill(tmp_path / "top", a=b"1", b=b"2"), Daemon(), os.open

    def refuse(path: str, flags: int) -> int:  # root may read anything
        if path.endswith("b"):
            raise PermissionError(13, "Permission denied")
        return opened(path, flags)

    monkeypatch.setattr(os, "open", refuse)
    error = _refused(daemon, _upload(daemon, top))
    assert error.message == (
        f"{top}/b cannot be read: Permission denied; durable files: 1, the last is 'top/a'"
    )
    assert daemon.names == ["top/a"]


@pytest.mark.parametrize("change", ["shorter", "longer", "other"])
@pytest.mark.parametrize("size", [1000, 5000], ids=["small", "large"])
def test_a_file_that_changes_while_it_is_read_is_not_added(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, change: str
) -> None:
    monkeypatch.setattr(uploads_module, "_SMALL_SIZE", 2000)
    monkeypatch.setattr(uploads_module, "_PIECE_SIZE", 300)
    top, daemon = _fill(tmp_path / "top", a=b"1", b=bytes(size)), Daemon()
    read, count = os.read, 0

    def change_it(handle: int, length: int) -> bytes:
        nonlocal count
        count += 1
        if count == 3:
            with (top / "b").open("r+b") as file:
                file.truncate({"shorter": size // 2, "longer": size + 1, "other": size}[change])
                file.write(b"x")
            os.utime(top / "b", ns=(1, 1))  # two writes within a tick of the clock have one time
        return read(handle, length)

    monkeypatch.setattr(os, "read", change_it)
    error = _refused(daemon, _upload(daemon, top))
    assert "top/b changed while it was read; durable files: 1, the last is 'top/a'" in error.message
    assert daemon.names == ["top/a"]


@pytest.mark.parametrize(
    "problem",
    [ServiceError("not_running", "no daemon"), ServiceError("not_permitted", "no more"), KeyboardInterrupt()],
    ids=["daemon gone", "refused", "stopped"],
)
def test_an_upload_that_is_cut_says_what_is_durable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, problem: BaseException
) -> None:
    monkeypatch.setattr(uploads_module, "FILE_BATCH_COUNT_MAX", 2)
    top, daemon, count = _fill(tmp_path / "top", **dict.fromkeys("abcde", b"x")), Daemon(), 0

    def cut(body: Iterator[bytes]) -> AddedFiles:
        nonlocal count
        count += 1
        if count == 2:
            list(body)
            raise problem
        return daemon.add(body)

    error = _refused(daemon, Uploader(cut, _found(top), lambda _: None))
    assert "durable files: 2, the last is 'top/b'" in error.message
    may_be_there = "the 2 after it were added all or not at all" in error.message
    assert may_be_there == (error.code in ("not_running", "interrupted"))
    assert daemon.names == ["top/a", "top/b"]


def test_an_upload_that_is_refused_at_once_says_that_nothing_was_added(tmp_path: Path) -> None:
    def refuse(_body: Iterator[bytes]) -> AddedFiles:
        raise ServiceError("not_permitted", "you may not")

    error = _refused(Daemon(), Uploader(refuse, _found(_fill(tmp_path / "top", a=b"x")), lambda _: None))
    assert error.message == "you may not; no file was added"


def test_time_left_is_told_in_the_unit_that_fits() -> None:
    assert time_left(10, 0, 100) == time_left(10, 100, 100) == time_left(10, 5, 0) == ""
    assert time_left(10, 50, 100) == ", 10 s left"
    assert time_left(60, 10, 100) == ", 9 min left"
    assert time_left(3600, 10, 35) == ", 2 h 30 min left"


@pytest.mark.parametrize(
    "added, already, said",
    [
        (3, 0, "Added 3 files, 2.0 KiB."),
        (1, 2, "Added 1 file. 2 files were there already."),
        (0, 3, "Nothing is new. 3 files were there already."),
    ],
)
def test_files_that_were_there_are_not_said_to_be_added(
    capsys: pytest.CaptureFixture[str], added: int, already: int, said: str
) -> None:
    counts = {"files": added + already, "added": added, "already": already, "bytes": 2048}
    FILE_ADDED({**counts, "skipped": 0, "first_skipped": []})
    assert capsys.readouterr().out == f"{said}\n"
