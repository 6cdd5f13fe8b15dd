"""Bodies of documents: each bound holds at its value, and one over it is refused."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from protocol.codec import DecodeError, encode, peek_tag
from protocol.formats import body as body_module
from protocol.formats.body import (
    Body,
    Carried,
    Merge,
    Remove,
    UnknownBody,
    content_of,
    decode_body,
    encode_body,
)
from protocol.formats.content import Imported, Post
from protocol.formats.document_kinds import (
    DICT_EDIT_COUNT_MAX,
    DICT_VALUE_SIZE_MAX,
    DOCUMENT_KEY_SIZE_MAX,
    REPLACED_COUNT_MAX,
    SET_EDIT_COUNT_MAX,
    SNAPSHOT_COMMIT_COUNT_MAX,
    TEXT_REPLACES_MAX,
    TEXT_UPDATE_SIZE_MAX,
    DictEdit,
    DictEntry,
    DictSnapshot,
    SaidUpdate,
    SetEdit,
    SetSnapshot,
    SnapshotEntries,
    SnapshotItems,
    TextSnapshot,
    TextUpdate,
)
from protocol.ids import BranchId, UserId
from protocol.limits.formats import BODY_SIZE_MAX
from tests.support.document_edits import naming
from tests.support.ids import as_commit_id

ID = as_commit_id(b"i" * 32)


def _set_snapshot(items: int = 1, item: str = "i", commits: int = 1) -> SetSnapshot:
    return SetSnapshot("", None, (SnapshotItems(ID, (item,) * items),) * commits)


def _dict_snapshot(entries: int = 1, value: str = "", commits: int = 1) -> DictSnapshot:
    return DictSnapshot("", None, (SnapshotEntries(ID, (DictEntry("k", value),) * entries),) * commits)


BOUNDS: dict[str, tuple[int, Callable[[int], Body]]] = {
    "set_item": (DOCUMENT_KEY_SIZE_MAX, lambda size: SetEdit(("i" * size,), (), ())),
    "set_added": (SET_EDIT_COUNT_MAX, lambda count: SetEdit(("i",) * count, (), ())),
    "set_deleted": (SET_EDIT_COUNT_MAX, lambda count: SetEdit((), ("i",) * count, ())),
    "set_replaces": (REPLACED_COUNT_MAX, lambda count: SetEdit((), ("i",), naming([ID] * count, 1))),
    "dict_key": (DOCUMENT_KEY_SIZE_MAX, lambda size: DictEdit((), ("k" * size,), ())),
    "dict_value": (DICT_VALUE_SIZE_MAX, lambda size: DictEdit((DictEntry("k", "v" * size),), (), ())),
    "dict_put": (DICT_EDIT_COUNT_MAX, lambda count: DictEdit((DictEntry("k", ""),) * count, (), ())),
    "dict_erased": (DICT_EDIT_COUNT_MAX, lambda count: DictEdit((), ("k",) * count, ())),
    "dict_replaces": (REPLACED_COUNT_MAX, lambda count: DictEdit((), ("k",), naming([ID] * count, 1))),
    "snapshotted_items": (SET_EDIT_COUNT_MAX, lambda count: _set_snapshot(items=count)),
    "snapshotted_item": (DOCUMENT_KEY_SIZE_MAX, lambda size: _set_snapshot(item="i" * size)),
    "snapshotted_commits": (SNAPSHOT_COMMIT_COUNT_MAX, lambda count: _set_snapshot(commits=count)),
    "set_range": (DOCUMENT_KEY_SIZE_MAX, lambda size: SetSnapshot("", "i" * size, ())),
    "snapshotted_entries": (DICT_EDIT_COUNT_MAX, lambda count: _dict_snapshot(entries=count)),
    "snapshotted_value": (DICT_VALUE_SIZE_MAX, lambda size: _dict_snapshot(value="v" * size)),
    "snapshotted_puts": (SNAPSHOT_COMMIT_COUNT_MAX, lambda count: _dict_snapshot(commits=count)),
    "dict_range": (DOCUMENT_KEY_SIZE_MAX, lambda size: DictSnapshot("k" * size, None, ())),
    "text_update": (TEXT_UPDATE_SIZE_MAX, lambda size: TextUpdate(bytes(size), ())),
    "text_replaces": (TEXT_REPLACES_MAX, lambda count: TextUpdate(b"\0\0", (ID,) * count)),
    "said_update": (TEXT_UPDATE_SIZE_MAX, lambda size: TextSnapshot((SaidUpdate(ID, bytes(size), ()),))),
    "said_replaces": (
        TEXT_REPLACES_MAX,
        lambda count: TextSnapshot((SaidUpdate(ID, b"\0\0", (ID,) * count),)),
    ),
    "said_updates": (TEXT_REPLACES_MAX, lambda count: TextSnapshot((SaidUpdate(ID, b"\0\0", ()),) * count)),
}


@pytest.mark.parametrize("name", BOUNDS)
def test_a_body_at_its_bound_is_taken_and_one_over_it_refused(name: str) -> None:
    most, make = BOUNDS[name]
    assert decode_body(encode_body(make(most))) == make(most)
    with pytest.raises(DecodeError, match="bad_shape"):
        encode_body(make(most + 1))


def test_the_largest_update_fits_a_body_with_all_that_it_replaces_and_an_origin_or_a_snapshot() -> None:
    names = (ID,) * TEXT_REPLACES_MAX
    largest = encode(TextUpdate(bytes(TEXT_UPDATE_SIZE_MAX), names))
    assert (
        len(encode_body(TextSnapshot((SaidUpdate(ID, bytes(TEXT_UPDATE_SIZE_MAX), names),)))) < BODY_SIZE_MAX
    )
    carried = Carried(BranchId(ID), as_commit_id(ID), UserId(ID), 2**53 - 1, largest)
    assert len(encode_body(carried)) < BODY_SIZE_MAX
    assert content_of(carried) == decode_body(largest)


def _carry(inner: bytes) -> bytes:
    return encode(Carried(BranchId(ID), as_commit_id(ID), UserId(ID), 0, inner))


@pytest.mark.parametrize(
    "inner", [b"", b"\x91", b"\x90", encode(["post1", 7]), encode(["set1"]), encode(["files1"])]
)
def test_what_is_carried_has_a_tag_and_the_shape_of_content(inner: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_body(_carry(inner))


@pytest.mark.parametrize("content", [Post("x"), Imported("id", "author", 0, "text"), SetEdit(("i",), (), ())])
def test_carried_content_says_what_it_said(content: Body) -> None:
    assert content_of(decode_body(_carry(encode_body(content)))) == content


@pytest.mark.parametrize(
    "inner",
    [
        encode_body(Remove(UserId(ID), None, ())),
        encode(["remove1", "of no shape"]),
        encode_body(Merge(BranchId(ID), (ID,))),
        encode(["lobby1", "of no shape"]),
        _carry(encode_body(Post("twice"))),
        b"\x96\xa8carried1" * 9000,
        encode(["set-squeeze1"]),
        encode(["poll7", {"any": "thing"}]),
        encode(["übung1"]),
    ],
)
def test_what_else_is_carried_says_nothing_on_any_version(inner: bytes) -> None:
    """A kind that is known, malformed or nested is no exception: one that is added later changes no verdict."""
    assert content_of(decode_body(_carry(inner))) == UnknownBody(peek_tag(inner))


def test_carried_bodies_of_a_kind_that_is_added_later_are_judged_as_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A version that knows the kind reads it, and one that does not decode says nothing there, as on older versions."""
    inner = encode(["merge1", ID, [ID]]), encode(["merge1", "of no shape"])
    before = [decode_body(_carry(one)) for one in inner]
    monkeypatch.setitem(body_module._CARRIED, "merge1", Merge)
    assert [decode_body(_carry(one)) for one in inner] == before
    assert [content_of(one) for one in before] == [Merge(BranchId(ID), (ID,)), UnknownBody("merge1")]


def test_the_tags_that_are_checked_where_they_are_carried_are_those_of_version_1() -> None:
    """The list is part of the format (docs/specification/profiles/forks.md), whatever kinds there are."""
    page = (Path(__file__).parents[4] / "docs/specification/profiles/forks.md").read_text(encoding="utf-8")
    named = re.search(r"If that is (?P<tags>[^.]*?), it has that kind's shape", page)
    assert named is not None
    assert set(re.findall(r"`([a-z0-9-]+)`", named["tags"])) == body_module._CARRIED_AND_CHECKED
