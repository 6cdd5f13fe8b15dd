"""Changes of members stand between the commits before and after which they came."""

from typing import Any

import pytest

from node.cli.timeline_view import print_arriving, with_changes


def _item(time: int) -> dict[str, Any]:
    return {"commit": f"c{time}", "time": time, "author_name": "Ann"}


def _change(time: int, kind: str, permission: str | None = None) -> dict[str, Any]:
    names = {"user": "u" * 52, "user_name": "Ben", "author": "a" * 52, "author_name": "Ann"}
    return {
        **names,
        "commit": "x",
        "time": time,
        "kind": kind,
        "permission": permission,
        "earlier_name": "Bob",
        "device_name": "Desk",
        "friends": ["f" * 52, "g" * 52],
        "friend_names": ["Fay", "Gus"],
    }


def test_changes_stand_where_they_belong_by_time() -> None:
    items, changes = [_item(10), _item(20)], [_change(5, "left"), _change(15, "left"), _change(25, "left")]
    assert [one["time"] for one in with_changes(items, changes, is_end=True)] == [5, 10, 15, 20, 25]
    assert [one["time"] for one in with_changes(items, changes, is_end=False)] == [5, 10, 15, 20]


@pytest.mark.parametrize(
    "kind, permission, said",
    [
        ("joined", "write", "(joined: may write)"),
        ("granted", "admin", "(granted Ben: may all that an admin may)"),
        ("lowered", "read", "(lowered Ben: may read)"),
        ("excluded", None, "(excluded Ben)"),
        ("device_added", "write", "(added the computer Desk: may write)"),
        ("device_removed", None, "(removed the computer Desk)"),
        ("left", None, "(left)"),
        ("moved", "write", "(passed its place to the computer Desk, and left: may write)"),
        ("recovered", "write", f"(was let in again with the key {'u' * 12} by Fay, Gus: may write)"),
        ("friends_named", None, "(named friends who may let it in again: Fay, Gus)"),
        ("renamed", None, "(was called Bob before)"),
        ("of a later version", None, "(of a later version)"),
    ],
)
def test_a_change_is_said_in_words(kind: str, permission: str | None, said: str) -> None:
    [row] = with_changes([], [_change(1, kind, permission)], is_end=True)
    assert row["change"] == said


def test_posts_whose_past_is_on_its_way_stand_below_a_line_that_says_so(
    capsys: pytest.CaptureFixture[str],
) -> None:
    item = {"time": 0, "author": "a" * 52, "author_name": "ann", "text": "the newest", "commit": "c" * 52}
    print_arriving({"items": [item], "earlier": 912_334, "waiting": 2}, lambda one: one["text"])
    said = capsys.readouterr().out
    assert said.startswith("(At least 912334 earlier posts are on their way.)\n")
    assert "the newest" in said
    assert said.endswith("(2 newer posts wait: no owner or admin has confirmed them so far.)\n")
    print_arriving({"items": [], "earlier": 0, "waiting": 0}, lambda one: one["text"])
    assert capsys.readouterr().out == ""
