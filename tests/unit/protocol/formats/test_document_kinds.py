"""Kinds of documents: what an edit says, what a snapshot says again, and what either costs."""

from collections.abc import Mapping

import pytest

from protocol.formats.document_kinds import (
    DICT,
    DOCUMENT_KEY_SIZE_MAX,
    DOCUMENT_KINDS,
    REPLACED_COUNT_MAX,
    SET,
    TEXT,
    DictEdit,
    DictEntry,
    Replaced,
    SaidUpdate,
    SetEdit,
    SetSnapshot,
    SnapshotItems,
    TextSnapshot,
    TextUpdate,
    ValuesEdit,
    ValuesKind,
)
from tests.support.document_edits import naming
from tests.support.ids import as_commit_id

ONE, OTHER = as_commit_id(b"1" * 32), as_commit_id(b"2" * 32)
VALUES: list[tuple[ValuesKind, Mapping[str, str]]] = [(SET, {"a": "", "b": ""}), (DICT, {"a": "1", "b": "2"})]


@pytest.mark.parametrize("kind, there", VALUES, ids=["set", "dict"])
def test_an_edit_says_just_what_it_is_made_of(kind: ValuesKind, there: Mapping[str, str]) -> None:
    edit = kind.edit.make(there, ("gone",), {"gone": (ONE,), "a": (OTHER, ONE)})
    assert edit.values() == {**there, "gone": None}
    assert edit.value_count == 3
    assert {key: set(names) for key, names in edit.replaced().items()} == {"gone": {ONE}, "a": {OTHER, ONE}}


@pytest.mark.parametrize("kind, there", VALUES, ids=["set", "dict"])
def test_a_snapshot_says_operations_again_under_the_names_of_their_commits(
    kind: ValuesKind, there: Mapping[str, str]
) -> None:
    (key, value), *_ = there.items()
    snapshot = kind.snapshot.make("a", "c", [(ONE, there), (OTHER, {key: value})])
    assert [*snapshot.restated()] == [(ONE, *one) for one in there.items()] + [(OTHER, key, value)]
    assert (snapshot.first, snapshot.end) == ("a", "c")
    assert snapshot.value_count == 5, "two names, and three operations"


def test_what_is_said_twice_in_one_edit_has_one_value() -> None:
    both = SetEdit(("a",), ("a", "b"), ())
    assert both.values() == {"a": "", "b": None}, "what is in both lists is added"
    put = DictEdit((DictEntry("k", "first"), DictEntry("k", "last")), ("k",), ())
    assert put.values() == {"k": "last"}
    assert (both.value_count, put.value_count) == (3, 3), "each is read"


@pytest.mark.parametrize("kind", DOCUMENT_KINDS, ids=lambda kind: kind.name)
def test_what_cannot_be_read_says_nothing(kind: ValuesKind) -> None:
    assert type(kind.nothing) is kind.edit
    if isinstance(kind.nothing, ValuesEdit):
        assert (kind.nothing.values(), kind.nothing.value_count) == ({}, 0)
        assert kind.nothing.replaced() == {}


def test_an_edit_that_replaces_too_much_says_nothing_and_a_place_of_no_operation_replaces_nothing() -> None:
    half = REPLACED_COUNT_MAX // 2
    names = [as_commit_id(number.to_bytes(32, "big")) for number in range(half)]
    most = SetEdit(("a", "b"), (), naming(names, 2))
    assert most.replaced() == {"a": dict.fromkeys(names), "b": dict.fromkeys(names)}
    assert most.values() == {"a": "", "b": ""}
    over = SetEdit(("a", "b"), (), (*naming(names, 2), Replaced(ONE, (0,))))
    assert (over.replaced(), over.values(), over.value_count) == ({}, {}, 2)
    assert SetEdit(("a",), ("b",), (Replaced(ONE, (1, 2)),)).replaced() == {"b": {ONE: None}}


def test_nothing_is_said_about_a_key_of_more_bytes_than_an_index_takes() -> None:
    most, over = "é" * (DOCUMENT_KEY_SIZE_MAX // 2), "é" * (DOCUMENT_KEY_SIZE_MAX // 2) + "a"
    edit = SetEdit((most,), (over,), naming([ONE], 2))
    assert (edit.values(), edit.replaced()) == ({most: ""}, {most: {ONE: None}})
    snapshot = SetSnapshot("", None, (SnapshotItems(ONE, (most, over)),))
    assert [*snapshot.restated()] == [(ONE, most, "")]


def test_a_text_counts_its_updates() -> None:
    assert TextUpdate(b"\0\0", (ONE,)).value_count == 1
    said = tuple(SaidUpdate(name, b"\0\0", (OTHER,)) for name in (ONE, OTHER))
    snapshot = TextSnapshot(said)
    assert snapshot.value_count == 2


def test_headers_declare_the_bodies_that_may_be_erased() -> None:
    for kind in (SET, DICT):
        assert kind.declared == kind.bodies, "another snapshot stands for one that is gone"
    assert TEXT.declared == (TEXT.edit,)
    for each in DOCUMENT_KINDS:
        assert each.carried == (each.edit,), "a snapshot is about commits of its own branch"
