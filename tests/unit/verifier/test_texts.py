"""The walk over a text's updates, case by case, and what it costs."""

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from pycrdt import Doc, Text

from protocol.formats.document_kinds import TEXT_CLIENT_COUNT_MAX, TEXT_SPAN_COUNT_MAX
from protocol.formats.yjs_updates import BadUpdate
from protocol.ids import CommitId
from tests.support.ids import as_commit_id
from tests.support.reference_texts import encode_deletes, fill, varint
from verifier.documents import ErasedValues
from verifier.text_places import TextItem
from verifier.texts import (
    WHOLE,
    TextEdit,
    TextFault,
    TextRanges,
    TooManyDeletions,
    read_ranges,
    reduce_text,
)

ALICE, BOB = 5, 6
"""The bits that client ids of two authors begin with."""


def _id(clients: int, session: int = 1) -> int:
    return clients << 13 | session


def _edit(
    rank: int,
    runs: tuple[tuple[int, int, int], ...] = (),
    deletes: tuple[tuple[int, int, int], ...] = (),
    replaces: tuple[CommitId, ...] = (),
    clients: int = ALICE,
    **marks: Any,  # noqa: ANN401  # fields of an edit
) -> TextEdit:
    name = _name(rank)
    marks = {"name": name, **marks}
    items = tuple((_typed_at(start, end),) for _, start, end in runs)
    return TextEdit(
        place=(0, 0, rank, name),
        clients=clients,
        content=TextRanges(runs, deletes, items),
        replaces=replaces,
        **marks,
    )


def _typed_at(start: int, end: int) -> TextItem:
    """Type letters at the beginning of a root."""
    return TextItem(start, end, None, None, "t", None, False, end - start > 1)


def _name(rank: int) -> CommitId:
    return as_commit_id(rank.to_bytes(32, "big"))


A, A2 = _id(ALICE), _id(ALICE, 2)
_in_u = TextItem(0, 1, None, None, "u", None, False, False)


def _runs(*edits: TextEdit) -> list[tuple[tuple[int, int, int], ...]]:
    return [one.runs for one in reduce_text(edits).shown]


def _waiting(*edits: TextEdit) -> tuple[tuple[int, int, int], ...]:
    return reduce_text(edits).waiting


def _faults(*edits: TextEdit) -> list[tuple[int, TextFault]]:
    return [(one.place[2], fault) for one, fault in reduce_text(edits).passed_over]


def test_an_update_says_nothing_under_a_client_id_that_is_not_its_authors() -> None:
    claim = _edit(1, ((A, 0, 9),), clients=BOB)
    mixed = _edit(2, ((_id(BOB), 0, 9), (A, 0, 9)), clients=BOB)
    own = _edit(3, ((A, 0, 3),))
    assert _runs(claim, mixed, own) == [((A, 0, 3),)], "the second one as a whole"
    assert _faults(claim, mixed, own) == [(1, TextFault.OTHER_CLIENT), (2, TextFault.OTHER_CLIENT)]


def test_what_is_said_twice_is_cut_to_what_follows_and_passed_over_where_that_meets_more() -> None:
    first, again = _edit(1, ((A, 0, 4),)), _edit(2, ((A, 2, 7),))
    assert _runs(first, again) == [((A, 0, 4),), ((A, 4, 7),)]
    assert _faults(first, again) == [(2, TextFault.USED_CLOCKS)]
    later = _edit(3, ((A, 9, 12),))
    over = _edit(4, ((A, 5, 20),))
    both = [((A, 0, 4),), ((A, 4, 7),)]
    assert _runs(first, again, later, over) == both, "7 to 20 meets 9 to 12"
    assert _waiting(first, again, later, over) == ((A, 9, 12),)
    before = _edit(4, ((A, 7, 20),))
    assert (_runs(first, again, later, before), _waiting(first, again, later, before)) == (
        both,
        ((A, 9, 12),),
    )
    two = _edit(5, ((A, 0, 1), (A2, 0, 5)))
    assert _runs(_edit(4, ((A2, 2, 3),)), two) == [], "as a whole"
    inside = _edit(6, ((A, 1, 3),))
    assert _runs(first, inside) == [((A, 0, 4),)]


def test_a_gap_is_left_and_filled_by_what_fits() -> None:
    base, top, fit, wide = (
        _edit(1, ((A, 0, 3),)),
        _edit(2, ((A, 5, 8),)),
        _edit(3, ((A, 3, 5),)),
        _edit(3, ((A, 3, 6),)),
    )
    assert (_runs(base, top), _waiting(base, top)) == ([((A, 0, 3),)], ((A, 5, 8),))
    assert _runs(base, top, fit) == [((A, 0, 3),), ((A, 5, 8),), ((A, 3, 5),)]
    assert (_runs(base, top, wide), _waiting(base, top, wide)) == ([((A, 0, 3),)], ((A, 5, 8),))
    assert _runs(base, top, fit, _edit(4, ((A, 0, 9),)))[-1] == ((A, 8, 9),), "neighbours are one range"
    gone = _edit(9, (), ((A, 4, 7),), (_name(2), _name(3)))
    assert [one.deletes for one in reduce_text([base, top, gone]).shown] == [()], (
        "nor is what waits deleted yet"
    )
    assert reduce_text([base, top, fit, gone]).shown[-1].deletes == ((A, 4, 7),)


def test_what_stands_nowhere_is_left_out_with_all_behind_it() -> None:
    first = _edit(1, ((A, 0, 3),))
    items = (_typed_at(0, 2), TextItem(2, 4, (A, 0), (A2, 0), None, None, False, True), _typed_at(4, 9))
    bad = replace(
        _edit(2, ((_id(BOB), 0, 9),), clients=BOB), content=TextRanges(((_id(BOB), 0, 9),), (), (items,))
    )
    other = replace(_edit(3, ((A2, 0, 1),)), content=TextRanges(((A2, 0, 1),), (), ((_in_u,),)))
    assert _runs(first, bad, other) == [((A, 0, 3),), ((_id(BOB), 0, 2),), ((A2, 0, 1),)]
    assert _faults(first, bad, other) == [(2, TextFault.MISPLACED)]
    assert _waiting(first, bad, other) == ((_id(BOB), 2, 9),)
    assert _faults(first, bad) == [], "what it would stand beside is not here"


def test_deletions_count_for_own_words_and_for_those_of_commits_that_are_named() -> None:
    mine = _edit(1, ((A, 0, 5),))
    theirs = _edit(2, ((_id(BOB), 0, 5),), ((A, 0, 9), (_id(BOB), 1, 99)), clients=BOB)
    named = _edit(3, (), ((A, 3, 9), (_id(BOB), 0, 1)), (_name(1), _name(9)), clients=BOB)
    found = reduce_text([mine, theirs, named]).shown
    assert [one.deletes for one in found] == [(), ((_id(BOB), 1, 5),), ((A, 3, 5),)]
    assert [one.shape is WHOLE for one in found] == [True, False, False]
    assert len(reduce_text([theirs, named]).shown) == 1, "nothing is left of the second"
    later = _edit(4, ((A, 5, 9),))
    assert [one.deletes for one in reduce_text([mine, later, theirs, named]).shown][2] == ((A, 3, 5),), (
        "what is typed later is not deleted by a name that was there before"
    )


def test_a_copy_that_another_carried_yields_and_says_nothing_of_its_own_branch() -> None:
    own = _edit(5, ((A, 0, 3),))
    lie = _edit(1, ((A, 0, 9),), is_copy=True)
    assert _runs(own, lie) == [((A, 0, 3),), ((A, 3, 9),)]
    stray = _edit(1, ((A, 0, 9),), is_copy=True, is_stray=True)
    assert _faults(own, stray) == [(1, TextFault.OTHER_CLIENT)]
    same = _edit(1, ((A, 0, 3),), is_copy=True, name=_name(5))
    assert (_runs(own, same), _faults(own, same)) == ([((A, 0, 3),)], []), (
        "a copy of what is here is no fault"
    )


def test_what_cannot_be_read_is_counted_and_what_is_missing_is_told() -> None:
    bad = TextEdit(_name(1), (0, 0, 1, _name(1)), ALICE, None)
    assert _faults(bad) == [(1, TextFault.UNREADABLE)]
    with pytest.raises(ErasedValues, match="2 bodies"):
        reduce_text([_edit(1, is_missing=True), bad, _edit(2, is_missing=True)])


@pytest.mark.parametrize(
    "update",
    [
        b"\1\3" + varint(A) + b"\0" + b"\0\1\x0a\1\0\1" + b"\0",
        varint(TEXT_CLIENT_COUNT_MAX + 1)
        + b"".join(b"\1" + varint(client) + b"\0\0\1" for client in range(TEXT_CLIENT_COUNT_MAX + 1))
        + b"\0",
        b"\0" + encode_deletes((A, 2 * clock) for clock in range(TEXT_SPAN_COUNT_MAX + 1)),
        b"\1\1" + varint(A) + b"\0\0\5\0",
        b"junk",
    ],
    ids=["a gap", "clients", "spans", "a filler", "junk"],
)
def test_updates_of_commits_have_bounds(update: bytes) -> None:
    with pytest.raises(BadUpdate):
        read_ranges(update)


def test_ranges_are_read_from_an_update() -> None:
    document: Doc[Any] = Doc(client_id=A)
    text = document.get("t", type=Text)
    text += "hello"
    del text[1:3]
    text += "!"
    read = read_ranges(document.get_update())
    assert (read.runs, read.deletes) == (((A, 0, 6),), ((A, 1, 3),))
    items = [
        TextItem(0, 1, None, None, "t", None, False, False),
        TextItem(1, 6, (A, 0), None, None, None, False, True),
    ]
    assert read.items == ((*items,),)
    assert read_ranges(fill(A, range(3, 9))).runs == ((A, 3, 9),)
    assert read_ranges(b"") == TextRanges((), ())


def _typed(count: int) -> list[TextEdit]:
    """Type by four editors in turn; each third deletes a word of another."""
    edits = []
    for number in range(count):
        client, round_ = _id(ALICE, number % 4), number // 4
        run = (client, 3 * round_, 3 * round_ + 3)
        deletes: tuple[tuple[int, int, int], ...] = ()
        replaces: tuple[CommitId, ...] = ()
        if number % 3 == 2:
            other = number - 1
            deletes = ((_id(ALICE, other % 4), 3 * (other // 4), 3 * (other // 4) + 1),)
            replaces = (_name(other),)
        edits.append(_edit(number, (run,), deletes, replaces))
    return edits


def _with_gaps(count: int) -> list[TextEdit]:
    """Type by an author who leaves a gap before each run, the last run first."""
    return [_edit(number, ((A, 2 * (count - number), 2 * (count - number) + 1),)) for number in range(count)]


def _in_one_place(count: int) -> list[TextEdit]:
    """Type by an author who says the same clocks again and again."""
    return [_edit(number, ((A, number // 2, number // 2 + 3),)) for number in range(count)]


@pytest.mark.parametrize("make", [_typed, _with_gaps, _in_one_place])
def test_a_walk_takes_ten_times_the_steps_for_ten_times_the_updates(
    make: Callable[[int], list[TextEdit]],
) -> None:
    def count_steps(count: int) -> int:
        edits, steps = make(count), 0

        def note(*_: object) -> None:
            nonlocal steps
            steps += 1

        sys.setprofile(note)
        try:
            reduce_text(edits)
        finally:
            sys.setprofile(None)
        return steps

    assert count_steps(2000) < 11 * count_steps(200)


def test_deletions_that_name_each_others_words_on_purpose_are_bounded() -> None:
    said = [_edit(number, ((_id(ALICE, number), 0, 1),)) for number in range(100)]
    names = tuple(one.name for one in said)
    wanted = tuple((_id(ALICE, number), 0, 1) for number in range(100))
    blanks = [_edit(1000 + number, (), wanted, names) for number in range(10)]
    assert len(reduce_text([*said, *blanks]).shown) == 110
    with pytest.raises(TooManyDeletions):
        reduce_text([*said, *blanks], look_count_max=1000)
