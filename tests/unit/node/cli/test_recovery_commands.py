"""Commands of friends who let a person in again: texts are read as they are pasted, and what differs is told."""

from typing import Any

from tests.unit.node.cli.conftest import Invoke

KEY, OTHER = "k" * 52, "o" * 52
ROW: dict[str, Any] = {
    "repo": "r" * 52,
    "name": "notes",
    "member": "m" * 52,
    "member_name": "Ann",
    "user": KEY,
    "signed": 1,
    "need": 2,
    "let_in": False,
    "already": False,
    "advice": "1 of 2 friends have signed",
}


def test_texts_are_read_from_standard_input_as_mail_broke_them(invoke: Invoke) -> None:
    given: list[list[str]] = []

    def finish(texts: list[str]) -> dict[str, Any]:
        given.append(texts)
        return {"repos": [ROW]}

    pasted = "ravel:recovery:aa\n  bb\n\nravel:recovery:cc\n"
    done = invoke("recovery", "finish", "-", stdin=pasted, finish_recovery=finish)
    assert given == [["ravel:recovery:aabb", "ravel:recovery:cc"]]
    assert "different keys" not in done.stdout


def test_texts_for_different_keys_are_told_with_the_keys(invoke: Invoke) -> None:
    answer = {"repos": [ROW, {**ROW, "user": OTHER}]}
    said = invoke("recovery", "finish", "a", "b", finish_recovery=lambda _: answer).stdout
    assert "These texts are for different keys." in said
    assert KEY[:12] in said
    assert OTHER[:12] in said


def test_one_friend_who_can_be_the_user_alone_is_asked_about(invoke: Invoke) -> None:
    asked = invoke("recovery", "friends", "Ben", name_friends=lambda *_, **__: {"repos": []})
    assert asked.exit_code != 0
    done = invoke("recovery", "friends", "Ben", "--yes", name_friends=lambda *_, **__: {"repos": []})
    assert done.exit_code == 0
    done = invoke("recovery", "friends", "Ben", "Cat", name_friends=lambda *_, **__: {"repos": []})
    assert done.exit_code == 0


def test_who_is_back_is_told_who_can_bring_it_back_again(invoke: Invoke) -> None:
    answer: dict[str, Any] = {"repos": [], "persons": [], "let_in": True}
    devices = {"list_devices": lambda: {"moved_to": None, "moved_to_name": ""}}
    said = " ".join(invoke("recovery", "show", list_friends=lambda: answer, **devices).stdout.split())
    assert said.startswith("Friends let this key in.")
    said = invoke("recovery", "show", list_friends=lambda: {**answer, "let_in": False}, **devices).stdout
    assert said.startswith("Nobody can let you in again.")
