"""Kinds of documents: what an edit says, what a snapshot says again, and what either costs."""

from collections.abc import Mapping

import pytest

from protocol.formats.document_kinds import (
    DICT,
    DOCUMENT_KINDS,
    SET,
    TEXT,
    DictEdit,
    DictEntry,
    SaidUpdate,
    SetEdit,
    TextSnapshot,
    TextUpdate,
    ValuesEdit,
    ValuesKind,
)
from tests.support.ids import as_commit_id

ONE, OTHER = as_commit_id(b"1" * 32), as_commit_id(b"2" * 32)
VALUES: list[tuple[ValuesKind, Mapping[str, str]]] = [(SET, {"a": "", "b": ""}), (DICT, {"a": "1", "b": "2"})]


@pytest.mark.parametrize("kind, there", VALUES, ids=["set", "dict"])
def test_an_edit_says_just_what_it_is_made_of(kind: ValuesKind, there: Mapping[str, str]) -> None:
    edit = kind.edit.make(there, ("gone",), (ONE,))
    assert edit.values() == {**there, "gone": None}
    assert edit.value_count == 3
    assert edit.replaces == (ONE,)


@pytest.mark.parametrize("kind, there", VALUES, ids=["set", "dict"])
def test_a_snapshot_says_operations_again_under_the_names_of_their_commits(
    kind: ValuesKind, there: Mapping[str, str]
) -> None:
    (key, value), *_ = there.items()
    snapshot = kind.snapshot.make("a", "c", [(ONE, there), (OTHER, {key: value})])
    assert [*snapshot.restated()] == [(ONE, *one) for one in there.items()] + [(OTHER, key, value)]
    assert (snapshot.first, snapshot.end) == ("a", "c")
    assert snapshot.value_count == 5, "two names, and three operations"
    assert snapshot.replaces == (), "it replaces nothing"


def test_what_is_said_twice_in_one_edit_has_one_value() -> None:
    both = SetEdit(("a",), ("a", "b"), ())
    assert both.values() == {"a": "", "b": None}, "what is in both lists is added"
    put = DictEdit((DictEntry("k", "first"), DictEntry("k", "last")), ("k",), ())
    assert put.values() == {"k": "last"}
    assert (both.value_count, put.value_count) == (3, 3), "each is read"


@pytest.mark.parametrize("kind", DOCUMENT_KINDS, ids=lambda kind: kind.name)
def test_what_cannot_be_read_says_nothing(kind: ValuesKind) -> None:
    assert type(kind.nothing) is kind.edit
    assert kind.nothing.replaces == ()
    if isinstance(kind.nothing, ValuesEdit):
        assert (kind.nothing.values(), kind.nothing.value_count) == ({}, 0)


def test_a_text_counts_its_updates() -> None:
    assert TextUpdate(b"\0\0", (ONE,)).value_count == 1
    said = tuple(SaidUpdate(name, b"\0\0", (OTHER,)) for name in (ONE, OTHER))
    snapshot = TextSnapshot(said)
    assert snapshot.value_count == 2
    assert snapshot.replaces == (), "what it says again is replaced by those that said it"


def test_headers_declare_the_bodies_that_may_be_erased() -> None:
    for kind in (SET, DICT):
        assert kind.declared == kind.bodies, "another snapshot stands for one that is gone"
    assert TEXT.declared == (TEXT.edit,)
    for each in DOCUMENT_KINDS:
        assert each.carried == (each.edit,), "a snapshot is about commits of its own branch"
