"""The commands of texts: an editor's changes are written beside what others write, and nothing that was typed is lost."""

import os
import stat
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pycrdt import Doc, Map, Text

from node.cli.text_edits import find_edits
from node.runtime.errors import ServiceError
from tests.support.looking import look_here
from tests.unit.node.cli.conftest import Invoke

BRANCH = "b" * 52


class Texts:
    """The texts of a branch, as a daemon gives and takes them. `meanwhile`: what somebody else types before each push."""

    def __init__(self, **texts: str) -> None:
        self.document = Doc[Any](client_id=1)  # texts, and the map of their titles
        self.meanwhile = ""
        self.asked: list[str] = []
        for root, text in texts.items():
            self.document[root] = Text(text)

    def text(self, root: str = "text") -> str:
        """Return a text as it is."""
        return str(self.document.get(root, type=Text))

    def pull_text(self, branch: str, root: str | None = None) -> dict[str, Any]:
        """Give all texts, and one as it reads."""
        update = b64encode(self.document.get_update()).decode()
        return {"branch": BRANCH, "update": update, "text": None if root is None else self.text(root)}

    def open_text(self, branch: str) -> dict[str, Any]:
        """Give a client id."""
        self.asked.append("open")
        return {"branch": branch, "client": 77, "clock": 0}

    def push_text(self, branch: str, update: bytes) -> dict[str, Any]:
        """Take an update; one that says nothing writes nothing."""
        before = self.document.get_update()
        if self.meanwhile and update != b"\0\0":
            self.document.get("text", type=Text).insert(0, self.meanwhile)
        self.document.apply_update(update)
        return {"commit": None if self.document.get_update() == before else "c" * 52}

    @property
    def calls(self) -> dict[str, Any]:
        """Return the methods by name."""
        return {name: getattr(self, name) for name in ("pull_text", "open_text", "push_text")}


@pytest.fixture(autouse=True)
def _look_without_processes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("node.content.text_process.run_worker", look_here)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.delenv("VISUAL", raising=False)


def _error(done: Any) -> ServiceError:  # noqa: ANN401  # a result of the runner
    assert isinstance(done.exception, ServiceError), done.output
    return done.exception


# --- text edit ---


def test_an_edited_text_is_written_beside_what_others_wrote_meanwhile(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("EDITOR", "sed -i s/grün/schwarz/")
    texts = Texts(text="Tee, grün 🍵\nMilch\n")
    texts.meanwhile = "Einkauf\n"
    done = invoke("text", "edit", "main", **texts.calls)
    assert done.exit_code == 0
    assert texts.text() == "Einkauf\nTee, schwarz 🍵\nMilch\n"
    assert "Wrote your changes to text in main. Others wrote meanwhile: both are in it." in done.output
    assert [*tmp_path.iterdir()] == [], "the file is gone"


def test_the_file_of_an_editor_is_for_this_user_alone(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("VISUAL", "sh -c 'echo more >> \"$1\"; exit 3' editor")
    monkeypatch.setenv("EDITOR", "false")
    texts = Texts(text="secret")
    error = _error(invoke("text", "edit", "main", **texts.calls))
    assert error.code == "interrupted"
    [folder] = tmp_path.iterdir()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    [file] = folder.iterdir()
    assert error.message == f"the editor failed with 3; what you wrote is in {file}"
    assert file.read_text() == "secretmore\n"
    assert texts.text() == "secret"


@pytest.mark.parametrize("end", ["kill -INT $$", "exit 130"])
def test_an_editor_that_is_stopped_leaves_the_file(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, end: str
) -> None:
    monkeypatch.setenv("EDITOR", f"sh -c 'echo more >> \"$1\"; {end}' editor")
    error = _error(invoke("text", "edit", "main", **Texts(text="secret").calls))
    [file] = tmp_path.glob("*/*")
    assert error.message == f"the editor was stopped; what you wrote is in {file}"


def test_an_editor_that_removes_the_file_leaves_nothing(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("EDITOR", "rm")
    error = _error(invoke("text", "edit", "main", **Texts(text="secret").calls))
    assert (error.code, error.message) == ("bad_input", "the editor removed the file")
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize(
    "editor", ["true", "sh -c 'echo >> \"$1\"' editor"], ids=["as it was", "a line's end"]
)
def test_a_text_that_was_not_changed_is_not_written(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, editor: str
) -> None:
    monkeypatch.setenv("EDITOR", editor)
    texts = Texts(text="as it was")
    done = invoke("text", "edit", "main", **texts.calls)
    assert "Nothing was changed." in done.output
    assert (texts.asked, [*tmp_path.iterdir()]) == ([], [])


def test_a_text_that_cannot_be_written_stays_in_its_file(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("EDITOR", "sed -i s/tea/coffee/")

    def fail(_branch: str) -> None:
        raise ServiceError("not_running", "no daemon answers", "ravel up")

    texts = Texts(text="tea")
    error = _error(invoke("text", "edit", "main", **{**texts.calls, "open_text": fail}))
    [file] = tmp_path.glob("*/*.txt")
    assert file.read_text() == "coffee"
    assert (error.message, error.advice) == (f"no daemon answers; what you wrote is in {file}", "ravel up")


def test_nobody_edits_what_they_may_not_write(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDITOR", "false")

    def refuse(*_: object) -> None:
        raise ServiceError("not_permitted", "you may read only")

    texts = Texts(text="tea")
    assert (
        _error(invoke("text", "edit", "main", **{**texts.calls, "push_text": refuse})).code == "not_permitted"
    )


def test_a_name_that_is_no_branch_may_be_that_of_a_text(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDITOR", "false")

    def refuse(*_: object) -> None:
        raise ServiceError(
            "not_found", "no branch is called 'the plan'", "`ravel branch list REPO` shows what there is"
        )

    error = _error(invoke("text", "edit", "the plan", pull_text=refuse))
    assert error.advice.endswith("; a text of that name in main: ravel text edit --root 'the plan'")
    assert (
        "--root 'the plan'" not in _error(invoke("text", "edit", "a", "--root", "b", pull_text=refuse)).advice
    )


@pytest.mark.parametrize("editor", ["", "no-such-editor --wait", "nano 'x", " "])
def test_an_editor_that_is_not_there_is_told_how_to_choose_one(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch, editor: str
) -> None:
    monkeypatch.setenv("EDITOR", editor)
    error = _error(invoke("text", "edit", "main"))
    assert error.code == "bad_request"
    assert "export EDITOR=" in error.advice


@pytest.mark.parametrize(
    "texts, wanted, meant",
    [
        ({}, "", "text"),
        ({"minutes": "a"}, "", "minutes"),
        ({"minutes": "a", "text": "b"}, "", "text"),
        ({"minutes": "a", "plan": "b"}, "", None),
        ({"minutes": "a"}, "plan", "plan"),
        ({"minutes": "a", "plan": "b"}, "The minutes", "minutes"),
    ],
)
def test_a_text_is_meant_by_its_name_or_title_or_as_the_only_one(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch, texts: dict[str, str], wanted: str, meant: str | None
) -> None:
    monkeypatch.setenv("EDITOR", "sh -c 'echo new > \"$1\"' editor")
    there = Texts(**texts)
    there.document.get("ravel-titles", type=Map)["minutes"] = "The minutes"
    done = invoke("text", "edit", "main", *(("--root", wanted) if wanted else ()), **there.calls)
    if meant is None:
        error = _error(done)
        assert (error.code, error.advice) == ("ambiguous", "name one: --root NAME")
        assert "minutes, plan" in error.message
    else:
        assert there.text(meant) == "new"


def test_texts_are_listed_by_name_and_title(invoke: Invoke) -> None:
    listed = invoke("text", "list", "main", **Texts(minutes="four", plan="").calls)
    assert listed.output.splitlines() == ["name\ttitle\tcharacters", "minutes\t\t4"]


_WORDS = st.lists(
    st.sampled_from(["tea", " ", "\n", "grün", "🍵", ",", "milk and", "\n\n"]), max_size=12
).map("".join)


@given(_WORDS, _WORDS)
def test_edits_make_the_new_text_of_the_old_one(before: str, after: str) -> None:
    made, reached = "", 0
    for start, stop, text in find_edits(before, after):
        assert reached <= start <= stop
        made += before[reached:start] + text
        reached = stop
    assert made + before[reached:] == after


def test_an_edit_replaces_words_that_were_changed_and_no_others() -> None:
    before = "We meet on Monday at ten.\nBring tea.\n"
    after = "We meet on Friday at ten.\nBring tea and milk.\n"
    assert find_edits(before, after) == [(11, 17, "Friday"), (35, 35, " and milk")]


# --- text pull ---


def _text(text: str) -> Callable[..., dict[str, object]]:
    return lambda *_, **__: {"text": text, "update": "", "faults": [], "refused": 0, "passed_over": 0}


def test_a_text_that_is_not_there_empties_no_file(tmp_path: Path, invoke: Invoke) -> None:
    out = tmp_path / "notes.txt"
    out.write_text("as it was pulled before")
    pull = ("text", "pull", "main", "--root", "notse", "-o", str(out))
    done = invoke(*pull, pull_text=_text(""))
    assert isinstance(done.exception, ServiceError)
    assert done.exception.code == "not_found"
    assert out.read_text() == "as it was pulled before"
    assert invoke(*pull, pull_text=_text("newer")).exit_code == 0
    assert out.read_text() == "newer"


def test_a_text_that_finds_no_room_leaves_the_file_that_was_there(
    tmp_path: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "notes.txt"
    out.write_text("as it was pulled before")

    def fail(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    done = invoke("text", "pull", "main", "--root", "a", "-o", str(out), pull_text=_text("newer"))
    assert isinstance(done.exception, ServiceError)
    assert (done.exception.code, out.read_text()) == ("storage_failed", "as it was pulled before")
    assert [one.name for one in tmp_path.iterdir()] == ["notes.txt"]
