"""JSON documents from registers, and edits of them: maps, lists, counters, conflicts, removal and its end, and bad input."""

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

import pytest

from protocol.crypto.hashing import value_name
from tests.support.ids import as_commit_id
from tests.support.json_histories import Author, History
from verifier import json_documents, json_edits, json_registers
from verifier.documents import DocumentEntry, DocumentValue
from verifier.json_contents import (
    REFUSED,
    clean_value,
    parse_content,
    parse_key,
)
from verifier.json_documents import JsonConflict, JsonValue, read_json
from verifier.json_edits import EditRefused, JsonEditor, TooManyOperations, fraction_between
from verifier.json_registers import HeldRegisters

ITEM, OTHER = "a" * 16, "b" * 16


@pytest.fixture
def authors() -> tuple[Author, Author]:
    history = History(Random(1))
    return Author(history), Author(history)


def _together(*authors: Author) -> None:
    everything = set[int]().union(*(one.has for one in authors))
    for one in authors:
        one.has |= everything


def _start(author: Author, value: object) -> None:
    editor = author.editor()
    editor.put((), value)
    author.write(editor)


def _ids(value: object) -> list[str]:
    assert isinstance(value, list)
    return [one["$id"] for one in value]


def _registers(**values: object) -> dict[str, DocumentEntry]:
    """Registers that one commit wrote, with raw texts; "/" stands for U+0000."""
    name = as_commit_id(bytes(32))
    return {
        key.replace("/", "\0"): DocumentEntry((DocumentValue(name, (0, 0, 0, name), str(text)),))
        for key, text in values.items()
    }


def test_a_document_reads_as_it_was_put(authors: tuple[Author, Author]) -> None:
    alice, _ = authors
    value = {
        "title": "Plan",
        "open": True,
        "none": None,
        "size": {"w": 1, "h": 2.5},
        "empty": {},
        "tags": ["a", "b"],
    }
    _start(alice, value)
    assert alice.value() == value


def test_nothing_is_said_of_what_is_so_already(authors: tuple[Author, Author]) -> None:
    alice, _ = authors
    _start(alice, {"a": {"b": 1}, "c": 2})
    editor = alice.editor()
    editor.put((), {"a": {"b": 1}, "c": 3})
    assert [(one.key, one.value) for one in editor.operations()] == [("\0c", "3")]


def test_items_of_a_list_stand_where_they_were_inserted(authors: tuple[Author, Author]) -> None:
    alice, _ = authors
    editor = alice.editor()
    one = editor.insert(("cards",), {"title": "one"})
    three = editor.insert(("cards",), {"title": "three"})
    editor.insert(("cards",), {"title": "two"}, before=three)
    editor.insert(("cards",), {"title": "two and a half"}, after=one, index=None)
    editor.insert(("cards",), {"title": "zero"}, index=0)
    editor.put(("cards", -1, "title"), "last")
    alice.write(editor)
    cards = alice.value()
    assert isinstance(cards, dict)
    assert [card["title"] for card in cards["cards"]] == ["zero", "one", "two and a half", "two", "last"]  # type: ignore[union-attr, index, call-overload]  # a list of maps


def test_increments_made_apart_are_added(authors: tuple[Author, Author]) -> None:
    alice, bob = authors
    _start(alice, {"votes": 5})
    _together(alice, bob)
    for author, number in ((alice, 1), (bob, 2), (bob, -4)):
        editor = author.editor()
        editor.add(("votes",), number)
        author.write(editor)
    _together(alice, bob)
    assert alice.value() == bob.value() == {"votes": 4}
    editor = alice.editor()
    editor.add(("votes",), 1)
    editor.add(("votes",), 1)
    editor.add(("new",), 7)
    assert [(one.value, one.is_increment) for one in editor.operations()] == [
        ('{"add":2}', True),
        ('{"add":7}', True),
    ]
    alice.write(editor)
    editor = alice.editor()
    editor.put(("votes",), 0)
    editor.add(("votes",), 3)
    alice.write(editor)
    assert alice.value() == {"new": 7, "votes": 3}, "a put replaces the increments that it saw"


def test_values_put_apart_are_conflicts_until_somebody_puts_one(authors: tuple[Author, Author]) -> None:
    alice, bob = authors
    _start(alice, {"title": "?"})
    _together(alice, bob)
    for author, title in ((alice, "A"), (bob, "B")):
        editor = author.editor()
        editor.put(("title",), title)
        author.write(editor)
    _together(alice, bob)
    found = read_json(alice.entries())
    assert found.value == {"title": "B"}
    assert found.conflicts == [JsonConflict(("", "title"), "A", as_commit_id(bytes([1]) * 32))]
    editor = bob.editor()
    editor.put(("title",), "B")
    bob.write(editor)
    assert read_json(bob.entries()).conflicts == [], "to put what shows says that the other is not meant"


def test_many_values_put_apart_are_not_compared_with_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else who may write keeps each reader at work for minutes, by a hundred thousand commits about one field."""
    compared = 0

    class Counted(str):
        __slots__ = ()
        __hash__ = str.__hash__

        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return str.__eq__(self, other)

    monkeypatch.setattr(json_documents, "content_text", lambda content: Counted(content.value))
    names = [as_commit_id(bytes([number]) * 32) for number in range(100)]
    tips = [DocumentValue(name, (0, 0, rank, name), str(rank)) for rank, name in enumerate(names)]
    read = read_json({"\0field": DocumentEntry((*tips, tips[0]))})
    assert (read.value, len(read.conflicts)) == ({"field": 0}, 99)
    assert compared < 200


def test_two_who_make_one_map_apart_make_one_map(authors: tuple[Author, Author]) -> None:
    alice, bob = authors
    _start(alice, {"size": {"w": 1}})
    _start(bob, {"size": {"h": 2}})
    _together(alice, bob)
    assert alice.value() == {"size": {"h": 2, "w": 1}}


def test_an_item_that_two_move_apart_is_in_one_place(authors: tuple[Author, Author]) -> None:
    alice, bob = authors
    _start(alice, {"todo": [{"t": "x"}, {"t": "y"}], "done": [], "late": []})
    _together(alice, bob)
    item = _ids(alice.value()["todo"])[0]  # type: ignore[index, call-overload]  # a map
    for author, to in ((alice, "done"), (bob, "late")):
        editor = author.editor()
        editor.move(item, (to,))
        author.write(editor)
    _together(alice, bob)
    value = alice.value()
    assert isinstance(value, dict)
    assert value["late"] == [{"$id": item, "t": "x"}]
    assert value["done"] == []


def test_a_move_that_the_remover_had_not_seen_keeps_the_item_with_its_fields(
    authors: tuple[Author, Author],
) -> None:
    alice, bob = authors
    _start(alice, {"todo": [{"t": "x"}], "done": []})
    _together(alice, bob)
    (item,) = _ids(alice.value()["todo"])  # type: ignore[index, call-overload]  # a map
    editor = alice.editor()
    editor.remove(("todo", 0))
    alice.write(editor)
    assert alice.value() == {"todo": [], "done": []}
    editor = bob.editor()
    editor.move(item, ("done",))
    bob.write(editor)
    _together(alice, bob)
    assert alice.value() == {"todo": [], "done": [{"$id": item, "t": "x"}]}


def test_a_removed_item_comes_back_by_a_move(authors: tuple[Author, Author]) -> None:
    alice, _ = authors
    _start(alice, {"todo": [{"t": "x"}]})
    (item,) = _ids(alice.value()["todo"])  # type: ignore[index, call-overload]  # a map
    for edit in ("remove", "move"):
        editor = alice.editor()
        if edit == "remove":
            editor.remove((), item)
        else:
            editor.move(item, ("todo",))
        alice.write(editor)
    assert alice.value() == {"todo": [{"$id": item, "t": "x"}]}


def test_what_was_put_below_a_removed_key_meanwhile_stays(authors: tuple[Author, Author]) -> None:
    alice, bob = authors
    _start(alice, {"a": {"b": 1}})
    _together(alice, bob)
    editor = alice.editor()
    editor.remove(("a",))
    alice.write(editor)
    editor = bob.editor()
    editor.put(("a", "c"), 2)
    bob.write(editor)
    _together(alice, bob)
    assert alice.value() == {"a": {"c": 2}}


def test_a_map_that_becomes_empty_is_there_still(authors: tuple[Author, Author]) -> None:
    alice, _ = authors
    _start(alice, {"a": {"b": 1}})
    editor = alice.editor()
    editor.remove(("a", "b"))
    alice.write(editor)
    assert alice.value() == {"a": {}}


def test_items_whose_list_was_removed_meanwhile_are_unplaced_until_they_are_moved(
    authors: tuple[Author, Author],
) -> None:
    alice, bob = authors
    _start(alice, {"todo": [{"t": "x"}], "done": []})
    _together(alice, bob)
    editor = alice.editor()
    editor.remove(("todo",))
    alice.write(editor)
    editor = bob.editor()
    made = editor.insert(("todo",), {"t": "new"})
    bob.write(editor)
    _together(alice, bob)
    assert read_json(alice.entries()) == JsonValue({"done": []}, [], [(made, {"$id": made, "t": "new"})])
    editor = alice.editor()
    editor.move(made, ("done",))
    alice.write(editor)
    assert alice.value() == {"done": [{"$id": made, "t": "new"}]}


def test_items_that_two_put_into_each_other_apart_are_unplaced_once(authors: tuple[Author, Author]) -> None:
    alice, bob = authors
    _start(alice, {"l": [{"t": 1, "in": []}, {"t": 2, "in": []}]})
    _together(alice, bob)
    one, two = _ids(alice.value()["l"])  # type: ignore[index, call-overload]  # a map
    for author, moved, into in ((alice, one, two), (bob, two, one)):
        editor = author.editor()
        editor.move(moved, ("in",), into)
        author.write(editor)
    _together(alice, bob)
    found = read_json(alice.entries())
    assert found.value == {"l": []}
    first, second = sorted((one, two))
    numbers = {one: 1, two: 2}
    assert found.unplaced == [
        (first, {"$id": first, "t": numbers[first], "in": [{"$id": second, "t": numbers[second], "in": []}]})
    ]
    editor = alice.editor()
    for unknown in ("", "c" * 16):
        with pytest.raises(EditRefused, match="no item"):
            editor.move(unknown, ("l",))
    with pytest.raises(EditRefused, match="of its own"):
        editor.move(one, ("in",), one)


def test_a_map_goes_before_a_value_and_a_list_that_were_put_beside_it(authors: tuple[Author, Author]) -> None:
    alice, bob = authors
    _start(alice, {"a": {"b": 1}})
    _start(bob, {"a": ["x"]})
    _together(alice, bob)
    found = read_json(alice.entries())
    assert found.value == {"a": {"b": 1}}
    assert [(one.address, one.value) for one in found.conflicts] == [(("", "a"), [])]
    assert [value for _, value in found.unplaced] == ["x"]


def test_a_crowded_list_is_spaced_anew(authors: tuple[Author, Author]) -> None:
    alice, _ = authors
    editor = alice.editor()
    first = editor.insert(("l",), -1)
    for number in range(400):
        editor.insert(("l",), number, after=first)
    alice.write(editor)
    assert alice.value() == {"l": [-1, *range(399, -1, -1)]}


def test_texts_files_and_whole_arrays_are_named_in_their_place(authors: tuple[Author, Author]) -> None:
    alice, _ = authors
    value = {"minutes": {"$text": "minutes"}, "photo": {"$file": "a" * 52}, "at": {"$whole": [1, [2]]}}
    _start(alice, value)
    assert alice.value() == {**value, "at": [1, [2]]}


@pytest.mark.parametrize(
    "value",
    ["x" * (1024 * 1024 - 2), "\U0001f600" * 200_000, '\\"' * 200_000, {"$whole": [["y" * 150_000]] * 4}],
    ids=["letters", "four bytes each", "escaped", "array"],
)
def test_a_value_that_no_register_holds_is_read_as_it_was_put(
    authors: tuple[Author, Author], value: object
) -> None:
    alice, bob = authors
    _start(alice, {"page": {"text": value}, "n": 1})
    expected = value["$whole"] if isinstance(value, dict) else value
    assert alice.value() == {"page": {"text": expected}, "n": 1}
    assert max(len(tip.value or "") for entry in alice.entries().values() for tip in entry.tips) < 256 * 1024
    again = alice.editor()
    again.put(("page", "text"), value)
    assert list(again.operations()) == []
    assert again.value() == alice.value()
    _together(alice, bob)
    editor = bob.editor()
    editor.put(("n",), 2)
    assert editor.value() == {"page": {"text": expected}, "n": 2}
    with pytest.raises(EditRefused):
        editor.put(("page", "text", "below"), 1)
    editor.remove(("page", "text"))
    bob.write(editor)
    assert bob.value() == {"page": {}, "n": 2}
    assert [key for key, entry in bob.entries().items() if entry.values] == ["\0n", "\0page"]


def test_of_long_values_put_apart_one_shows_whole_and_the_other_is_a_conflict(
    authors: tuple[Author, Author],
) -> None:
    alice, bob = authors
    _start(alice, {"text": "short"})
    _together(alice, bob)
    for author, letter in ((alice, "a"), (bob, "b")):
        editor = author.editor()
        editor.put(("text",), letter * 400_000)
        author.write(editor)
    _together(alice, bob)
    found = read_json(alice.entries())
    assert found.value == {"text": "b" * 400_000}
    assert [one.value for one in found.conflicts] == ["a" * 400_000]
    editor = alice.editor()
    editor.put(("text",), "short again")
    alice.write(editor)
    found = read_json(alice.entries())
    assert (found.value, found.conflicts) == ({"text": "short again"}, [])
    assert [key for key, entry in alice.entries().items() if entry.values] == ["\0text"]


def test_a_long_value_that_is_chosen_of_two_stays_where_another_chooses_the_other(
    authors: tuple[Author, Author],
) -> None:
    """Its pieces stand while it is chosen; who chooses the other at the same time lets go of those that it sees."""
    alice, bob = authors
    long = "a" * 400_000
    _start(alice, {})
    _together(alice, bob)
    for author, value in ((alice, long), (bob, "short")):
        editor = author.editor()
        editor.put(("text",), value)
        author.write(editor)
    _together(alice, bob)
    for author, value in ((alice, long), (bob, "short")):
        editor = author.editor()
        editor.put(("text",), value)
        author.write(editor)
    _together(alice, bob)
    found = read_json(alice.entries())
    assert [found.value, *(one.value for one in found.conflicts)] == [{"text": "short"}, long]


def test_a_long_value_is_let_go_only_once_another_stands(authors: tuple[Author, Author]) -> None:
    """A node may have the first of an edit's commits alone, or the rest may be void."""
    alice, _ = authors
    _start(alice, {"text": "a" * 400_000, "n": 1})
    for path, value in ((("text",), "b" * 400_000), ((), {"n": 2})):
        editor = alice.editor()
        editor.put(path, value)
        keys = [one.key for one in editor.operations()]
        gone = [one.key for one in editor.operations() if one.value is None and "$" in one.key]
        assert gone
        assert keys[-len(gone) :] == gone
        alice.write(editor)
    assert alice.value() == {"n": 2}
    assert [key for key, entry in alice.entries().items() if entry.values] == ["\0n"]


def test_an_edit_sees_what_stands_beside_a_long_value_without_pieces(authors: tuple[Author, Author]) -> None:
    name = as_commit_id(bytes(32))
    texts = ("1", f'{{"long":"{ITEM}","pieces":2}}')
    tips = tuple(DocumentValue(name, (0, 0, place, name), text) for place, text in enumerate(texts))
    entries = {"\0a": DocumentEntry(tips)}
    assert (
        JsonEditor(HeldRegisters(entries), Random(1).randrange).value()
        == read_json(entries).value
        == {"a": 1}
    )


@pytest.mark.parametrize(
    "pieces, joined, shown",
    [
        ({"/a/$NAME/0": '"[1"', "/a/$NAME/1": '"]"'}, "[1]", [1]),
        ({}, "[1]", None),
        ({"/a/$NAME/0": '"[1]"'}, "[1]", None),
        ({"/a/$NAME/0": '"[1"', "/a/$NAME/1": '"]"', "/a/$NAME/2": '""'}, "[1]", None),
        ({"/a/$NAME/0": '"[1]"', "/a/$NAME/1": "1"}, "[1]", None),
        ({"/a/$NAME/0": '"{"', "/a/$NAME/1": '"}"'}, "{}", None),
        ({"/a/$NAME/0": '"[1"', "/a/$OTHER/1": '"]"'}, "[1]", None),
        ({"/a/$NAME/0": '"[2"', "/a/$NAME/1": '"]"'}, "[1]", None),
    ],
)
def test_a_long_value_of_other_pieces_says_nothing(
    pieces: dict[str, str], joined: str, shown: list[int] | None
) -> None:
    """One is missing, there is one more, one is no text, they are no scalar and no array, or not what was named."""
    name, other = value_name(joined.encode()), "b" * 16
    said = {key.replace("NAME", name).replace("OTHER", other): text for key, text in pieces.items()}
    own = f'{{"long":"{name}","pieces":2}}'
    wanted = {"b": 1} if shown is None else {"a": shown, "b": 1}
    assert read_json(_registers(**{"/a": own, "/b": "1", **said})).value == wanted


@pytest.mark.parametrize(
    "path, value",
    [
        (("$a",), 1),
        (("a\0b",), 1),
        (("k" * 1024,), 1),
        (("k",) * 33, 1),
        (("a",), 2**53),
        (("a",), float("nan")),
        (("a",), "\ud800"),
        (("a",), "x" * (1024 * 1024 - 1)),
        (("k" * 1005,), "x" * (256 * 1024)),
        (("l", "x"), 1),
        (("s", "x"), 1),
        (("l", 1), 1),
        (("a",), {"$text": "x", "y": 1}),
        (("a",), {"$file": "zzz"}),
        (("a",), [{"$file": "a" * 51 + "b"}]),
    ],
)
def test_what_no_document_holds_is_refused(
    authors: tuple[Author, Author], path: tuple[str | int, ...], value: object
) -> None:
    _start(authors[0], {"l": [0], "s": "text"})
    editor = authors[0].editor()
    with pytest.raises(EditRefused):
        editor.put(path, value)
        list(editor.operations())


def test_a_value_is_as_deep_as_it_may_be_and_no_deeper(authors: tuple[Author, Author]) -> None:
    def deep(levels: int) -> object:
        value: object = 1
        for level in range(levels):
            value = {"k": value} if level % 2 else [value]
        return value

    editor = authors[0].editor()
    editor.put((), {"a": deep(31)})
    authors[0].write(editor)
    assert not read_json(authors[0].entries()).unplaced
    with pytest.raises(EditRefused, match="deep"):
        authors[0].editor().put((), {"a": deep(32)})


def test_an_item_moved_too_deep_is_unplaced_with_all_that_is_in_it(authors: tuple[Author, Author]) -> None:
    alice, bob = authors
    editor = alice.editor()
    items = [editor.insert(("l",), {"in": []}) for _ in range(20)]
    alice.write(editor)
    _together(alice, bob)
    for author, few in ((alice, items[:11]), (bob, items[10:])):
        editor = author.editor()
        for inner, outer in zip(few[1:], few, strict=False):
            editor.move(inner, ("in",), outer)
        author.write(editor)
    _together(alice, bob)
    assert [item for item, _ in read_json(bob.entries()).unplaced] == [items[15]], (
        "each takes two of 32 levels"
    )
    editor = bob.editor()
    editor.put(("in",), [], items[14])
    with pytest.raises(EditRefused, match="deep"):
        editor.move(items[15], ("in",), items[14])
    with pytest.raises(EditRefused, match="deep"):
        editor.put(("x", "y", "z"), 1, items[14])


@pytest.mark.parametrize(
    "key", ["", "\0a", f"{ITEM}", f"{ITEM}\0a\0b", f"@\0{ITEM}", "\0" + "k" * 1023, "\0a" * 32, "\0"]
)
def test_addresses_are_keys(key: str) -> None:
    assert parse_key(key) == tuple(key.split("\0"))


@pytest.mark.parametrize(
    "key",
    ["x", "A" * 16, "\0$id", f"@\0{ITEM}\0a", "@", "@\0x", "\0" + "k" * 1024, "\0a" * 33, "\0" + "ä" * 512],
)
def test_other_keys_are_passed_over(key: str) -> None:
    assert parse_key(key) is None
    assert read_json(_registers(**{key: "1"})) == JsonValue({}, [], [])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "{}",
        "nil",
        '{"map":2}',
        '{"list":1,"map":1}',
        '{"add":1.5}',
        '{"add":true}',
        f'{{"add":{2**53}}}',
        '{"unknown":1}',
        f'{{"long":"{ITEM}","pieces":0}}',
        f'{{"long":"{ITEM}","pieces":33}}',
        '{"long":"A","pieces":1}',
        "NaN",
        "1e999",
        str(2**53),
        "1e300",
        '"\\ud800"',
        "[" * 33 + "]" * 33,
        "[" * 100_000,
    ],
)
def test_what_cannot_be_read_is_passed_over(text: str) -> None:
    assert parse_content(text) is None
    assert read_json(_registers(**{"/a": text, "/b": "1"})).value == {"b": 1}


@pytest.mark.parametrize(
    "text",
    [
        "1",
        '{"in":["","l"],"at":""}',
        '{"in":["","l"],"at":"-"}',
        '{"in":[],"at":"V"}',
        '{"in":["@","l"],"at":"V"}',
        f'{{"in":["","l"],"at":"{"V" * 65}"}}',
        '{"in":["","$l"],"at":"V"}',
    ],
)
def test_an_item_without_a_readable_place_is_not_there(text: str) -> None:
    found = read_json(_registers(**{"/l": '{"list":1}', f"@/{ITEM}": text, ITEM: "1"}))
    assert found == JsonValue({"l": []}, [], [])


def test_a_place_is_no_value_of_a_field() -> None:
    assert read_json(_registers(**{"/a": '{"in":["","l"],"at":"V"}'})).value == {}


def test_equal_fractions_are_told_apart_by_ids_and_get_room() -> None:
    place = '{"in":["","l"],"at":"V"}'
    entries = _registers(
        **{"/l": '{"list":1}', f"@/{OTHER}": place, OTHER: "2", f"@/{ITEM}": place, ITEM: "1"}
    )
    assert read_json(entries).value == {"l": [1, 2]}
    editor = JsonEditor(HeldRegisters(entries), Random(1).randrange)
    editor.insert(("l",), 1.5, index=1)
    assert len([one for one in editor.operations() if one.key.startswith("@")]) == 3, "all are spaced anew"


def test_a_sum_stays_within_whole_numbers_and_a_fraction_is_added_to_once() -> None:
    name, other = as_commit_id(bytes(32)), as_commit_id(b"1" * 32)

    def summed(base: str, *by: int) -> object:
        tips = (
            DocumentValue(name, (0, 0, 0, name), base),
            *(DocumentValue(other, (0, 0, 1, other), f'{{"add":{one}}}') for one in by),
        )
        value = read_json({"\0n": DocumentEntry(tips)}).value
        assert isinstance(value, dict)
        return value["n"]

    most = 2**53 - 1
    assert summed(str(most), 1) == most
    assert summed(str(-most), most, most) == 0, "the sum of the increments is bounded first"
    assert summed("0.5", 1) == 1.5
    assert summed('"text"', 1) == "text", "only numbers are added to"
    assert summed("true", 1) is True


def test_fractions_lie_between_their_neighbours_and_apart_from_each_other() -> None:
    random = Random(3)
    assert fraction_between("V", "V", random.randrange) is None
    for left, right in (("", None), ("", "V"), ("V", None), ("V", "W"), ("V", "V1"), ("Vz", "W")):
        found = {fraction_between(left, right, random.randrange) for _ in range(20)}
        assert None not in found
        assert len(found) == 20
        assert all(left < one and (right is None or one < right) for one in found if one)
    assert fraction_between("z" * 64, None, random.randrange) is None


def test_a_number_too_long_for_a_float_is_refused_and_leaves_the_rest_readable() -> None:
    long = "1" + "0" * 400
    assert clean_value(int(long)) is REFUSED
    assert clean_value(2**53 - 1) == 2**53 - 1
    entry = DocumentEntry((DocumentValue(as_commit_id(b"l" * 32), (0, 0, 0, as_commit_id(b"l" * 32)), long),))
    assert read_json({"\0n": entry}).value == {}


@pytest.mark.parametrize("spoken", [0, 2, 64])
def test_an_editor_that_reads_what_edits_speak_of_says_what_one_with_the_whole_document_says(
    monkeypatch: pytest.MonkeyPatch, spoken: int
) -> None:
    monkeypatch.setattr(json_registers, "_SPOKEN_MAX", spoken)
    random = Random(spoken)
    refused = said = 0
    for _ in range(12):
        history = History(random)
        both = (Author(history), Author(history))
        _start(both[0], {"a": [1, {"a": []}, 3], "b": []})
        for _ in range(12):
            author = random.choice(both)
            if random.random() < 0.3:
                _together(*both)
            entries, seed = author.entries(), random.random()
            whole = JsonEditor(HeldRegisters(entries), Random(seed).randrange)
            whole.value()
            partial = JsonEditor(HeldRegisters(entries), Random(seed).randrange)
            for _ in range(random.randint(1, 6)):
                seed = random.random()
                outcomes = [_edit_at_random(editor, Random(seed), entries) for editor in (whole, partial)]
                assert outcomes[0] == outcomes[1]
                refused += outcomes[0] != ""
            assert set(whole.operations()) == set(partial.operations())
            assert whole.value() == partial.value()
            said += len(list(whole.operations()))
            author.write(whole)
    assert refused
    assert said > 300


class _Counted(HeldRegisters):
    """Registers that count what is read of them."""

    read = 0

    def load(self, keys: Sequence[str]) -> Mapping[str, DocumentEntry]:
        return self._count(super().load(keys))

    def load_between(self, first: str, end: str, limit: int | None) -> Mapping[str, DocumentEntry]:
        return self._count(super().load_between(first, end, limit))

    def load_positions(
        self, first: bytes, end: bytes, offset: int, limit: int | None, *, is_backwards: bool
    ) -> Sequence[bytes]:
        found = super().load_positions(first, end, offset, limit, is_backwards=is_backwards)
        self.read += len(found)
        return found

    def _count(self, found: Mapping[str, DocumentEntry]) -> Mapping[str, DocumentEntry]:
        self.read += len(found)
        return found


@pytest.mark.parametrize("kind", ["list", "map"])
def test_an_edit_reads_as_much_in_a_large_document_as_in_a_small_one(kind: str) -> None:
    counts: list[list[int]] = []
    for size in (20, 400):
        author = Author(History(Random(1)))
        if kind == "list":
            _start(author, {"l": [{"n": number} for number in range(size)], "done": []})
        else:
            _start(author, {"m": {f"k{number}": {"n": number} for number in range(size)}})
        value = author.value()
        assert isinstance(value, dict)
        counts.append([])
        for edit in _EDITS[kind]:
            registers = _Counted(author.entries())
            editor = JsonEditor(registers, Random(2).randrange)
            edit(editor, _ids(value["l"]) if kind == "list" else [])
            assert list(editor.operations())
            counts[-1].append(registers.read)
    assert counts[0] == counts[1]
    assert max(counts[0]) < 10


_EDITS: dict[str, list[Callable[[JsonEditor, list[str]], object]]] = {
    "list": [
        lambda editor, _: editor.insert(("l",), {"n": 0}),
        lambda editor, _: editor.insert(("l",), {"n": 0}, index=0),
        lambda editor, _: editor.insert(("l",), {"n": 0}, index=7),
        lambda editor, _: editor.insert(("l",), {"n": 0}, index=-7),
        lambda editor, ids: editor.insert(("l",), {"n": 0}, after=ids[3]),
        lambda editor, ids: editor.move(ids[3], ("l",), before=ids[9]),
        lambda editor, ids: editor.move(ids[3], ("done",)),
        lambda editor, _: editor.put(("l", 5, "n"), "new"),
        lambda editor, _: editor.add(("l", -1, "n"), 1),
        lambda editor, _: editor.remove(("l", 5)),
    ],
    "map": [
        lambda editor, _: editor.put(("m", "k3", "n"), "new"),
        lambda editor, _: editor.put(("m", "new"), {"n": 1}),
        lambda editor, _: editor.add(("m", "k3", "n"), 1),
        lambda editor, _: editor.remove(("m", "k3")),
        lambda editor, _: editor.insert(("new",), 1),
    ],
}


@pytest.mark.parametrize(
    "edit",
    [
        lambda editor: editor.put(("new",), list(range(10))),
        lambda editor: editor.put(("new",), {f"k{number}": number for number in range(20)}),
        lambda editor: editor.remove(("m",)),
        lambda editor: editor.remove(("l",)),
        lambda editor: editor.put((), 1),
    ],
)
def test_edits_that_would_change_too_much_at_once_are_refused_before_it_is_read(
    monkeypatch: pytest.MonkeyPatch, edit: Callable[[JsonEditor], object]
) -> None:
    author = Author(History(Random(1)))
    _start(author, {"m": {f"k{number}": number for number in range(300)}, "l": list(range(300))})
    monkeypatch.setattr(json_edits, "JSON_OPERATIONS_MAX", 19)
    registers = _Counted(author.entries())
    with pytest.raises(TooManyOperations, match="over 19 values and places"):
        edit(JsonEditor(registers, Random(2).randrange))
    assert registers.read < 3 * 19


def test_pieces_of_long_values_count_among_what_edits_change(monkeypatch: pytest.MonkeyPatch) -> None:
    author = Author(History(Random(1)))
    _start(author, dict.fromkeys("ab", "x" * (5 * json_edits._PIECE_SIZE)))
    monkeypatch.setattr(json_edits, "JSON_OPERATIONS_MAX", 9)
    editor = JsonEditor(_Counted(author.entries()), Random(2).randrange)
    editor.remove(("a",))
    with pytest.raises(TooManyOperations, match="over 9 values and places"):
        editor.remove(("b",))


def test_a_batch_about_one_list_reads_its_order_once() -> None:
    author = Author(History(Random(1)))
    _start(author, {"l": list(range(300))})
    registers = _Counted(author.entries())
    editor = JsonEditor(registers, Random(2).randrange)
    for _ in range(200):
        editor.insert(("l",), "x", index=150)
    assert registers.read < 3 * 64 * 64


_PATHS: list[tuple[str | int, ...]] = [
    *[(), ("a",), ("a",), ("a",), ("b",), ("b",), ("a", 0), ("a", -1), ("b", 1), ("a", "b"), ("b", "a")],
    *[("a", 0, "b"), ("b", -1, "a")],
]


def _edit_at_random(editor: JsonEditor, random: Random, entries: Mapping[str, object]) -> str:
    """An edit, and why it was refused."""
    items = [*{key.split("\0")[1] for key in entries if key.startswith("@")}, ""]
    item, moved = random.choice([*sorted(items), *[""] * 3 * len(items)]), random.choice(sorted(items))
    path = random.choice(_PATHS)
    value = random.choice([1, "x", {}, {"a": 1}, [], [1, {"b": [2]}], [1, 2, 3]])
    near: dict[str, Any] = random.choice(
        [{}, {"index": random.randint(-4, 4)}, {"after": moved}, {"before": moved}]
    )
    try:
        match random.randrange(7):
            case 0:
                editor.put(path, value, item)
            case 1:
                editor.add(path, 2, item)
            case 2 | 5 | 6:
                editor.insert(path, value, item, **near)
            case 3:
                editor.move(moved, path, item, **near)
            case _:
                editor.remove(path, item)
    except EditRefused as error:
        return str(error)
    return ""
