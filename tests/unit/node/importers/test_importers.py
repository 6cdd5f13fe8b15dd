"""Reading other systems' histories: real git repositories of every awkward kind, and every bad line of JSON."""

import gzip
import json
import os
import shutil
import subprocess
import threading
from codecs import BOM_UTF8
from collections.abc import Iterator
from pathlib import Path

import pytest

from node.importers.git_history import GitHistory
from node.importers.item import BATCH_COUNT, PackedItem, SourceItem, fit_name, fit_text, pack, read_ahead
from node.importers.jsonl import LINE_SIZE_MAX, read_jsonl, read_lines
from node.runtime.errors import ServiceError
from protocol.limits.formats import ACK_COUNT_MAX, NAME_SIZE_MAX, TEXT_SIZE_MAX


class Git:
    """A git repository made by git itself, with fixed people and times."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir()
        self.run("init", "--quiet", "--initial-branch=main")

    def run(self, *arguments: str, stdin: bytes = b"") -> str:
        person = {"GIT_AUTHOR_NAME": "Å", "GIT_AUTHOR_EMAIL": "a@x", "GIT_AUTHOR_DATE": "1600000000 +0200"}
        committer = {
            "GIT_COMMITTER_NAME": "C",
            "GIT_COMMITTER_EMAIL": "c@x",
            "GIT_COMMITTER_DATE": "1600000000 +0000",
        }
        done = subprocess.run(
            ["git", "-C", str(self.path), *arguments],
            input=stdin,
            capture_output=True,
            check=True,
            env={**os.environ, **person, **committer, "GIT_CONFIG_GLOBAL": os.devnull},
        )
        return done.stdout.decode().strip()

    def commit(self, message: bytes, *parents: str) -> str:
        """A commit of an empty tree."""
        tree = self.run("mktree")
        flags = [flag for parent in parents for flag in ("-p", parent)]
        return self.run("commit-tree", tree, *flags, "-F", "-", stdin=message)

    def point(self, commit: str) -> None:
        self.run("update-ref", "refs/heads/main", commit)


@pytest.fixture
def git(tmp_path: Path) -> Git:
    return Git(tmp_path / "git")


def _read(git: Git, revision: str = "HEAD") -> tuple[GitHistory, list[SourceItem]]:
    history = GitHistory(git.path, revision)
    history.open()
    return history, list(history.items())


def test_octopus_merges_and_several_roots_come_parents_first(git: Git) -> None:
    first, second = git.commit(b"first\n"), git.commit(b"second root\n")
    side = [git.commit(f"side {number}\n".encode(), first) for number in range(5)]
    octopus = git.commit(b"octopus\n", *side, second)
    git.point(octopus)
    history, items = _read(git)
    assert history.commit_count == len(items) == 8
    assert items[-1].id == octopus
    assert set(items[-1].parents) == {*side, second}
    assert sum(not item.parents for item in items) == 2
    seen: set[str] = set()
    for item in items:
        assert seen.issuperset(item.parents)
        seen.add(item.id)
    assert (items[0].author, items[0].time) == ("Å <a@x>", 1_600_000_000)


def test_messages_may_be_empty_long_foreign_or_not_utf8(git: Git) -> None:
    messages = [
        b"",
        b"\xff\xfe latin-1 caf\xe9\n",
        b"two\n\nparagraphs\n",
        b"x" * TEXT_SIZE_MAX,
        "Grüße ✓\n".encode(),
    ]
    parent: tuple[str, ...] = ()
    for message in messages:
        parent = (git.commit(message, *parent),)
    git.point(parent[0])
    texts = [item.text for item in _read(git)[1]]
    assert texts[0] == ""
    assert "latin-1 caf" in texts[1]
    assert texts[2] == "two\n\nparagraphs"
    assert "truncated by import" in texts[3]
    assert texts[4] == "Grüße ✓"


def test_a_commit_whose_bytes_are_no_text_is_read_with_replacements(git: Git) -> None:
    tree = git.run("mktree")
    raw = (
        b"tree %s\nauthor \xff\x01 <a> 1 +0000\ncommitter c <c> 1 +0000\nencoding UTF-8\n\n\xff\n"
        % tree.encode()
    )
    git.point(git.run("hash-object", "-t", "commit", "-w", "--stdin", stdin=raw))
    (item,) = _read(git)[1]
    assert item.time == 1
    assert "\ufffd" in item.author + item.text


@pytest.mark.parametrize(
    "url", ["ext::sh -c 'touch {trap}'", "ssh://host/x", "file:///nowhere"], ids=["ext", "ssh", "file"]
)
def test_nothing_that_a_repository_configures_is_run(git: Git, tmp_path: Path, url: str) -> None:
    trap = tmp_path / "trap"
    parent = git.commit(b"lost")
    git.point(git.commit(b"kept", parent))
    (git.path / ".git" / "objects" / parent[:2] / parent[2:]).unlink()
    for key, value in {
        "extensions.partialClone": "origin",
        "remote.origin.promisor": "true",
        "remote.origin.url": url.format(trap=trap),
        "protocol.allow": "always",
        "core.sshCommand": f"touch {trap}",
        "core.fsmonitor": f"touch {trap}",
        "core.pager": f"touch {trap}",
    }.items():
        git.run("config", key, value)
    with pytest.raises(ServiceError) as caught:
        _read(git)
    assert caught.value.code == "bad_input"
    assert not trap.exists()


def test_the_callers_git_environment_does_not_choose_the_repository(
    git: Git, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git.point(git.commit(b"here"))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    assert [item.text for item in _read(git)[1]] == ["here"]


def test_a_commit_without_an_authors_time_has_the_committers(git: Git) -> None:
    tree = git.run("mktree")
    made: list[str] = []
    for author, committer in (("nobody <n@x>", "C <c@x> 1500000000 +0000"), ("n <n@x> x", "C <c@x>")):
        raw = f"tree {tree}\nauthor {author}\ncommitter {committer}\n\nmessage\n".encode()
        made.append(git.run("hash-object", "-t", "commit", "-w", "--stdin", "--literally", stdin=raw))
    for commit, time in zip(made, (1_500_000_000, 0), strict=True):
        git.point(commit)
        assert [item.time for item in _read(git)[1]] == [time]


def test_a_shallow_clone_says_what_was_cut_off(git: Git, tmp_path: Path) -> None:
    parent: tuple[str, ...] = ()
    for number in range(5):
        parent = (git.commit(str(number).encode(), *parent),)
    git.point(parent[0])
    git.run("clone", "--quiet", "--depth=2", f"file://{git.path}", str(tmp_path / "shallow"))
    history = GitHistory(tmp_path / "shallow")
    history.open()
    items = list(history.items())
    assert (len(items), items[0].parents) == (2, ())
    assert history.cut_parents == 1


def test_what_a_shallow_clone_lacks_cannot_be_added_beside_it_later(git: Git, tmp_path: Path) -> None:
    first = git.commit(b"first")
    second = git.commit(b"second", first)
    third = git.commit(b"third", second)
    git.point(third)
    history = GitHistory(git.path)
    history.open()
    with pytest.raises(ServiceError, match=f"{second} was imported without its parent {first}") as caught:
        history.resume({second, third})
    assert caught.value.code == "bad_input"
    history.resume({first, second})
    assert len(list(history.items())) == 3


def test_a_shallow_clone_goes_on_after_what_another_brought(git: Git, tmp_path: Path) -> None:
    first = git.commit(b"first")
    second = git.commit(b"second", first)
    git.point(second)
    git.run("clone", "--quiet", "--depth=1", f"file://{git.path}", str(tmp_path / "shallow"))
    history = GitHistory(tmp_path / "shallow")
    history.open()
    history.resume({first})
    assert [(item.id, item.parents) for item in history.items()] == [(second, (first,))]
    assert history.cut_parents == 0


def test_grafts_and_replace_objects_change_no_parents(git: Git) -> None:
    first = git.commit(b"first")
    second = git.commit(b"second", first)
    third = git.commit(b"third", second)
    git.point(third)
    (git.path / ".git" / "info").mkdir(exist_ok=True)
    (git.path / ".git" / "info" / "grafts").write_text(f"{third}\n")
    git.run("replace", second, git.commit(b"other"))
    history, items = _read(git)
    assert history.commit_count == 3
    assert [(item.id, item.parents) for item in items] == [
        (first, ()),
        (second, (first,)),
        (third, (second,)),
    ]


def test_a_folder_inside_of_a_repository_is_refused(git: Git) -> None:
    git.point(git.commit(b"first"))
    (git.path / "notes").mkdir()
    with pytest.raises(ServiceError, match="folder inside of a git repository") as caught:
        GitHistory(git.path / "notes").open()
    assert str(git.path) in caught.value.advice


def test_a_tag_of_what_is_no_commit_is_refused_and_one_of_a_commit_is_taken(git: Git) -> None:
    first = git.commit(b"first")
    git.point(first)
    git.run("tag", "blob", git.run("hash-object", "-w", "--stdin", stdin=b"x"))
    git.run("tag", "--annotate", "-m", "one", "version", first)
    with pytest.raises(ServiceError) as caught:
        _read(git, "blob")
    assert caught.value.code == "bad_input"
    assert [item.id for item in _read(git, "version")[1]] == [first]


@pytest.mark.slow
def test_of_a_merge_of_very_many_the_first_parents_are_kept(git: Git) -> None:
    sides = [git.commit(f"side {number}".encode()) for number in range(ACK_COUNT_MAX + 2)]
    git.point(git.commit(b"all", *sides))
    history, items = _read(git)
    assert items[-1].parents == tuple(sides[:ACK_COUNT_MAX])
    assert history.cut_parents == 2


def _raw(git: Git, head: bytes, message: bytes) -> None:
    tree = git.run("mktree").encode()
    raw = b"tree %s\nauthor %s\n\n%s" % (tree, head, message)
    git.point(git.run("hash-object", "-t", "commit", "-w", "--stdin", "--literally", stdin=raw))


def test_what_follows_a_nul_in_a_message_is_kept(git: Git) -> None:
    _raw(git, b"A\0B <a> 1 +0000", b"before\0after")
    (item,) = _read(git)[1]
    assert (item.author, item.text) == ("A\ufffdB <a>", "before\ufffdafter")


@pytest.mark.parametrize(
    "encoding, message, text",
    [
        (b"ISO-8859-1", b"caf\xe9", "caf\xe9"),
        (b"koi8-r", b"\xd0\xd2", "\u043f\u0440"),
        (b"no such encoding", b"caf\xc3\xa9", "caf\xe9"),
        (b"hex", b"6162", "6162"),
        (b"punycode", b"caf-dma", "caf-dma"),
        (b"u7", b"+2AA-", "+2AA-"),  # else half of a pair, which is no text
        (b"unicode escape", b"\\ud800", "\\ud800"),
        (b"x" * 1000, b"text", "text"),
    ],
)
def test_a_message_is_read_by_the_encoding_that_its_commit_states(
    git: Git, encoding: bytes, message: bytes, text: str
) -> None:
    _raw(git, b"A <a> 1 +0000\nencoding " + encoding, message)
    assert [item.text for item in _read(git)[1]] == [text]


def test_a_signature_in_a_commit_is_no_part_of_its_message(git: Git) -> None:
    _raw(git, b"A <a> 1 +0000\ngpgsig -----BEGIN\n parent x\n \n -----END", b"signed")
    (item,) = _read(git)[1]
    assert (item.parents, item.text) == ((), "signed")


def test_a_git_that_complains_at_length_is_read_to_its_end(
    git: Git, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git.point(git.commit(b"first"))
    real = shutil.which("git")
    (tmp_path / "bin").mkdir()
    script = tmp_path / "bin" / "git"
    script.write_text(
        f'#!/bin/sh\nhead -c 1000000 /dev/zero | tr "\\0" "w" >&2\necho >&2; echo last >&2\nexec {real} "$@"\n'
    )
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    assert [item.text for item in _read(git)[1]] == ["first"]


def test_another_revision_is_imported_when_asked(git: Git) -> None:
    first = git.commit(b"first\n")
    git.point(git.commit(b"second\n", first))
    assert [item.id for item in _read(git, first)[1]] == [first]


def test_what_is_no_history_is_a_clear_error(git: Git, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for path, revision in (
        (git.path, "HEAD"),
        (tmp_path / "empty", "HEAD"),
        (tmp_path / "nowhere", "HEAD"),
        (git.path, "--all"),
        (git.path, "no-such-branch"),
    ):
        with pytest.raises(ServiceError) as caught:
            GitHistory(path, revision).open()
        assert caught.value.code == "bad_input"


def _line(**changes: object) -> bytes:
    good: dict[str, object] = {"id": "a", "parents": [], "author": "me", "time": 1, "text": "hello"}
    return json.dumps(good | changes).encode() + b"\n"


def test_lines_are_read_in_order_compressed_or_not(tmp_path: Path) -> None:
    content = _line() + b"\n" + _line(id="b", parents=["a"], time=-5)
    (tmp_path / "x.jsonl").write_bytes(content)
    (tmp_path / "x.jsonl.gz").write_bytes(gzip.compress(content))
    expected = [SourceItem("a", (), "me", 1, "hello"), SourceItem("b", ("a",), "me", -5, "hello")]
    for name in ("x.jsonl", "x.jsonl.gz"):
        assert list(read_jsonl(tmp_path / name)) == expected
    (tmp_path / "x.jsonl").write_bytes(BOM_UTF8 + content)  # as Windows writes it
    assert list(read_jsonl(tmp_path / "x.jsonl")) == expected


BAD_LINES: dict[str, bytes] = {
    "not_json": b"{\n",
    "not_an_object": b"[]\n",
    "missing_field": b'{"id": "b", "parents": [], "author": "", "time": 1}\n',
    "unknown_field": _line(id="b", more=1),
    "id_of_another_type": _line(id=7),
    "empty_id": _line(id=""),
    "id_too_long": _line(id="x" * 256),
    "time_is_a_text": _line(id="b", time="1"),
    "time_out_of_bounds": _line(id="b", time=2**43),
    "id_twice": _line(id="a"),
    "parent_twice": _line(id="b", parents=["a", "a"]),
    "parent_of_itself": _line(id="b", parents=["b"]),
    "unknown_parent": _line(id="b", parents=["c"]),
    "too_many_parents": _line(id="b", parents=[str(number) for number in range(129)]),
    "not_utf8": b'{"id": "\xff"}\n',
    "deep_nesting": b"[" * 100_000 + b"\n",
    "longer_than_a_line_may_be": b" " * (LINE_SIZE_MAX + 1) + b"\n",
}


@pytest.mark.parametrize("defect", BAD_LINES)
def test_a_bad_line_is_named_with_its_number(tmp_path: Path, defect: str) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(_line() + BAD_LINES[defect])
    items = read_jsonl(path)
    assert next(items).id == "a"
    with pytest.raises(ServiceError, match=r"x\.jsonl line 2") as caught:
        list(items)
    assert caught.value.code == "bad_input"


def test_a_first_line_has_the_same_bound_with_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "x"
    for mark in (b"", BOM_UTF8):
        for size in (9, 10, 11, 12, 40):
            path.write_bytes(mark + b"x" * size + b"\nnext")
            (_, first), second = read_lines(path, 10)
            assert (len(first) > 10) == (size + 1 > 10)
            assert second == (2, b"next")


def test_files_that_cannot_be_read_are_clear_errors(tmp_path: Path) -> None:
    (tmp_path / "torn.gz").write_bytes(gzip.compress(_line() * 100)[:-20])
    (tmp_path / "other.gz").write_bytes(b"not gzip")
    for name in ("missing.jsonl", "torn.gz", "other.gz"):
        with pytest.raises(ServiceError) as caught:
            list(read_jsonl(tmp_path / name))
        assert caught.value.code == "bad_input"


def test_batches_are_bounded_in_count_and_size() -> None:
    small = [SourceItem(str(number), (), "", 0, "") for number in range(2 * BATCH_COUNT + 1)]
    assert [len(batch) for batch in pack(small)] == [BATCH_COUNT, BATCH_COUNT, 1]
    large = [SourceItem(str(number), (), "", 0, fit_text("x" * TEXT_SIZE_MAX)) for number in range(100)]
    assert all(sum(len(item["text"]) for item in batch) < 2 << 20 for batch in pack(large))


def test_a_name_that_is_cut_ends_with_a_mark() -> None:
    assert fit_name("x" * NAME_SIZE_MAX) == "x" * NAME_SIZE_MAX
    assert fit_name("x" * (NAME_SIZE_MAX + 1)) == "x" * (NAME_SIZE_MAX - 1) + "…"


def _batch(number: int) -> list[PackedItem]:
    return [{"id": str(number), "parents": [], "author": "", "time": 0, "text": ""}]


def _reader() -> threading.Thread:
    return next(thread for thread in threading.enumerate() if thread.name == "read ahead")


def test_the_next_batch_is_read_while_one_is_sent_and_few_more() -> None:
    read = list[int]()
    second = threading.Event()

    def batches() -> Iterator[list[PackedItem]]:
        for number in range(10):
            read.append(number)
            if number == 1:
                second.set()
            yield _batch(number)

    ahead = []
    for batch in read_ahead(batches()):
        assert second.wait(60), "without that it would be read after this one"
        ahead.append(len(read) - int(batch[0]["id"]))
    assert len(ahead) == 10
    assert max(ahead) <= 4, "one that is sent, one that waits, one that waits for room"


def test_what_reading_raises_comes_after_the_batches_before_it() -> None:
    def batches() -> Iterator[list[PackedItem]]:
        yield _batch(1)
        yield _batch(2)
        raise ServiceError("bad_input", "line 3 is none")

    sent = []
    with pytest.raises(ServiceError, match="line 3"):
        for batch in read_ahead(batches()):
            sent.append(batch)  # noqa: PERF402  # what came before the error stays
    assert sent == [_batch(1), _batch(2)]


def test_reading_ends_with_the_loop_that_wants_no_more() -> None:
    read = list[int]()

    def batches() -> Iterator[list[PackedItem]]:
        for number in range(1000):
            read.append(number)
            yield _batch(number)

    wanted = read_ahead(batches())
    next(wanted)
    reader = _reader()
    wanted.close()
    reader.join(60)
    assert not reader.is_alive()
    assert len(read) <= 4
