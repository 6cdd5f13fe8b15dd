"""The process that holds texts: it grows by key strokes, says no to what it cannot take, and is replaced where it fails."""

import gc
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest
from pycrdt import Doc, get_update

from node.content import text_process, text_worker
from node.content import texts as texts_module
from node.content.text_process import HeldText, TextProcess
from node.content.texts import Texts
from protocol.limits.formats import MIB
from tests.support.editors import Editor, editor_of, shown_by
from tests.support.machine import fail_after
from tests.support.nodes import Node

pytestmark = pytest.mark.slow  # it starts a process

JUNK = b"\xff\xfe not an update"


@pytest.fixture
def process() -> Iterator[TextProcess]:
    found = TextProcess()
    yield found
    found._stop()


def _whole(editor: Editor) -> bytes:
    return editor.document.get_update()


def _memory(process: TextProcess) -> int:
    """Bytes that are resident."""
    return int(Path(f"/proc/{_pid(process)}/statm").read_text().split()[1]) * resource.getpagesize()


def _pid(process: TextProcess) -> int:
    assert process._process is not None
    return process._process.pid


def test_a_text_grows_by_what_came_since_and_shows_what_is_asked(process: TextProcess) -> None:
    editor = Editor(1)
    editor.append("one")
    first = _whole(editor)
    shown = process.look(HeldText(7, 1, first), root="t")
    assert shown is not None
    assert (shown.text, process.version_of(7)) == ("one", 1)
    state = editor.document.get_state()
    more = editor.append(" two")
    shown = process.look(HeldText(7, 2, b"not looked at", 1, [more]), (), "t", state, 100)
    assert shown is not None
    assert (shown.text, shown.clear) == ("one two", [("t", "", "one two")])
    other = Editor(2)
    other.take(first)
    assert other.take(shown.lacking or b"") == "one two"


def test_what_is_tried_is_not_kept_and_what_cannot_be_taken_is_refused(process: TextProcess) -> None:
    editor = Editor(1)
    editor.append("one")
    held = HeldText(7, 1, _whole(editor))
    tried = editor.append(" two")
    assert process.look(held, [tried]) is not None
    again = process.look(HeldText(7, 1, _whole(editor), 1, []), root="t")
    assert again is not None
    assert again.text == "one", "it was tried in a child"
    assert process.look(held, [JUNK]) is None
    assert process.look(HeldText(7, 2, JUNK, 1, [JUNK])) is None
    assert process.version_of(7) == -1
    shown = process.look(held, root="t")
    assert shown is not None
    assert shown.text == "one"


def test_reading_a_text_of_many_updates_leaves_no_memory_behind_that_each_fork_copies(
    process: TextProcess,
) -> None:
    editor = Editor(1)
    whole = text_worker._merge([editor.append("x") for _ in range(3000)])
    assert process.look(HeldText(1, 1, _whole(editor))) is not None
    before = _memory(process)
    assert process.look(HeldText(7, 3000, whole)) is not None
    assert _memory(process) - before < 4 * MIB


def test_a_process_that_ended_or_hangs_is_replaced(
    process: TextProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    editor = Editor(1)
    editor.append("one")
    assert process.look(HeldText(7, 1, _whole(editor))) is not None
    before = _pid(process)
    process._process.kill()  # type: ignore[union-attr]  # it runs
    more = editor.append(" two")
    shown = process.look(HeldText(7, 2, _whole(editor), 1, [more]), root="t")
    assert shown is not None
    assert (shown.text, _pid(process) == before) == ("one two", False)
    with monkeypatch.context() as hurried:
        hurried.setattr(text_process, "TEXT_MERGE_SECONDS", -1.0)
        assert process.look(HeldText(7, 2, _whole(editor))) is None
    assert process._process is None
    assert process.look(HeldText(7, 2, _whole(editor))) is not None


def test_what_was_asked_for_long_ago_is_held_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_worker, "HELD_SIZE_MAX", 3000)
    held = text_worker.Held()
    editor = Editor(1)
    editor.append("x" * 1000)
    whole = _whole(editor)
    for key in range(4):
        assert held.look(key, -1, 1, [whole], [], None, None, None)[0]
    assert [held.look(key, 1, 1, [], [], None, None, None)[0] for key in range(4)] == [
        False,
        False,
        True,
        True,
    ]


def test_the_process_ends_with_what_keeps_it() -> None:
    keeper = TextProcess()
    editor = Editor(1)
    editor.append("one")
    keeper.look(HeldText(7, 1, _whole(editor)))
    found = keeper._process
    assert found is not None
    del keeper
    gc.collect()
    assert found.poll() is not None


async def test_key_strokes_start_no_process_and_come_to_the_same_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, process: TextProcess
) -> None:
    alice = Node(tmp_path, "alice")
    with fail_after(60):
        alice.create_repo()
        texts = Texts(alice.hub, alice.author, alice.branch, process=process)
        monkeypatch.setattr(texts_module, "run_worker", None)
        editor, other = editor_of(alice), editor_of(alice, session=2)
        for number in range(5):
            await texts.push("main", editor.append(f"{number} "))
            other.take(_whole(editor))
            await texts.push("main", other.write(0, "*"))
            editor.take(_whole(other))
            assert (await texts.pull("main", "t"))["text"] == str(editor.text)
        branch = alice.branch()
        version = await texts.version(branch)
        vector = Doc().get_state()
        lacking = await texts.lacking(branch, version, vector)
        assert shown_by(lacking) == shown_by(get_update(version.update, vector)) == str(editor.text)
        assert (await texts.render(branch, 100))[1][0].text == str(editor.text)
    alice.replica.close()
