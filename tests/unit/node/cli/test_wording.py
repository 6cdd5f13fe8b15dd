"""Printing of people and posts: names cut to a width without losing what tells look-alikes apart; files of posts."""

import pytest

from node.cli import wording
from node.cli.post_commands import _print_thread, _print_versions
from node.cli.wording import answered, author_of, person, post_text, without_attached

USER = "a" * 52
MARK = " [abcdefgh]"


def test_a_name_is_printed_else_the_beginning_of_the_id() -> None:
    assert person("Ann", USER) == "Ann"
    assert person("", USER) == "a" * 12


def test_a_long_name_is_cut_and_keeps_its_mark() -> None:
    assert person("x" * 64, USER, 24) == "x" * 23 + "…"
    assert person("x" * 64 + MARK, USER, 24) == "x" * 12 + "…" + MARK
    assert person("x" * 64 + MARK, USER, 5) == "x…" + MARK


def test_authors_from_elsewhere_do_not_pass_for_members() -> None:
    item = {"author": USER, "person": USER, "author_name": "Ann"}
    assert author_of(item) == "Ann"
    assert author_of({**item, "imported_author": "Ann"}) == "Ann (imported)"
    assert author_of({**item, "imported_author": "x" * 99}).endswith("… (imported)")
    assert author_of({**item, "origin": {"author": "b" * 52, "author_name": ""}}) == "b" * 12
    assert author_of({**item, "origin": {"author": "b" * 52, "author_name": "Ben"}}) == "Ben"
    assert author_of({"author": USER, "author_name": ""}) == "a" * 12


def test_a_post_is_printed_with_its_files_and_these_by_themselves_no_more() -> None:
    files = [
        {"name": "plan.pdf", "size": 217_088, "file": "f" * 52},
        {"name": "old", "size": None, "file": "o" * 52},
    ]
    post = {"commit": "p" * 52, "text": "x" * 90, "attachments": [{"commit": "c" * 52, "files": files}]}
    assert post_text({**post, "text": "hi"}, 72) == "hi [plan.pdf (212 KiB), old]"
    assert post_text(post, 72) == f"{'x' * 45}… [plan.pdf (212 KiB), old]"
    assert len(post_text(post, 40)) == 40, "words and names share what room there is"
    assert without_attached([{"commit": "c" * 52, "text": None}, post]) == [post]


@pytest.mark.parametrize("lack, said", [({}, "erased"), ({"not_kept": True}, "not kept here")])
def test_a_post_that_was_given_up_is_not_said_to_be_erased(
    lack: dict[str, bool], said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    item = {"commit": "c" * 52, "author": USER, "person": USER, "author_name": "Ann", "time": 0, "text": None}
    gone = {**item, "kind": "post", "erased": True, **lack, "version": "original"}
    _print_versions({"versions": [gone], "previous": None})  # type: ignore[typeddict-item]  # what is shown
    _print_thread({"items": [gone], "next": None})  # type: ignore[typeddict-item]  # as above
    _, versions, _, thread = capsys.readouterr().out.strip().splitlines()
    assert versions.endswith(f"({said})")
    assert thread.endswith(f"(post, {said})")
    assert answered({"commit": "p" * 52, "state": "not_kept"}) == f"[{'p' * 12}]"
    monkeypatch.setattr(wording, "is_terminal", lambda: True)
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    assert wording.lack_said(gone) == {"erased": "getilgt"}.get(said, "hier nicht behalten")
