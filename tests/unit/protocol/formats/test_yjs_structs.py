"""Structs of Yjs updates: cut by hand and by the library alike, written with gaps, and compared by what they say."""

import struct
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from pycrdt import Array, Doc, Map, Text, XmlFragment, get_update, merge_updates

from protocol.formats.clock_spans import Span
from protocol.formats.yjs_structs import (
    WrittenStructs,
    cut_structs,
    encode_update,
    say_same,
    whole_runs,
    write_gone,
)
from protocol.formats.yjs_updates import NOTHING, Kind, ReadUpdate, Struct, read_update

CLIENT = 9
VALUES = (
    [7, -7, 1 << 40, 0.5, 0.1, float(1 << 60)],
    ["text", "", b"bytes", None, True, False],
    [{"map": {"in": ["a", "list"]}}, [[], {}]],
)


def _item(kind: Kind, content: bytes, client: int = CLIENT) -> bytes:
    """An update of one item at the clocks from 0, in the root "t"."""
    return b"\x01\x01" + bytes([client]) + b"\x00" + bytes([kind]) + b"\x01\x01t" + content + b"\x00"


def _texts(*texts: str) -> bytes:
    return b"".join(bytes([len(text.encode())]) + text.encode() for text in texts)


def _json_items(*texts: str) -> bytes:
    return _item(Kind.JSON, bytes([len(texts)]) + _texts(*texts))


def _any_items(*encoded: bytes) -> bytes:
    return _item(Kind.ANY, bytes([len(encoded)]) + b"".join(encoded))


def _list(values: Iterable[object]) -> bytes:
    document: Doc[Any] = Doc(client_id=CLIENT)
    document.get("a", type=Array).extend([*values])
    return document.get_update()


def _cut(update: bytes, *spans: Span) -> bytes:
    return encode_update({CLIENT: cut_structs(read_update(update), CLIENT, spans)}, {})


def _only(update: bytes) -> tuple[ReadUpdate, Struct]:
    read = read_update(update)
    (structs,) = read.structs.values()
    (one,) = structs
    return read, one


def _say_same(one: bytes, other: bytes, span: Span = (0, 1)) -> bool:
    found = {
        say_same(CLIENT, _only(first), _only(second), span) for first, second in ((one, other), (other, one))
    }
    assert len(found) == 1, "in either order"
    return found.pop()


# --- cutting ---


@pytest.mark.parametrize("values", VALUES, ids=["numbers", "scalars", "nested"])
def test_a_list_is_cut_between_any_two_values_as_the_library_cuts_it(values: list[object]) -> None:
    update = _list(values)
    for place in range(1, len(values)):
        start, rest = _cut(update, (0, place)), _cut(update, (place, len(values)))
        behind = b"\x01" + bytes([CLIENT, place])  # a state vector
        assert _same_structs(rest, get_update(update, behind))
        for parts in ([start, rest], [rest, start]):
            taken: Doc[Any] = Doc()
            for part in parts:
                taken.apply_update(part)
            assert taken.get("a", type=Array).to_py() == values


def _same_structs(one: bytes, other: bytes) -> bool:
    """Whether two updates say the same at the same places; the library may order keys of maps in another way."""
    (mine, said), (theirs, found) = _only(one), _only(other)
    if said[:3] != found[:3] or (said.left, said.parent) != (found.left, found.parent):
        return False
    return say_same(CLIENT, (mine, said), (theirs, found), (said.clock, said.end))


def test_json_values_are_cut_between_any_two() -> None:
    said = ("1", '{"a":[true]}', "undefined", '"two"')
    update = _json_items(*said)
    assert _only(update)[1][:2] == (0, 4)
    assert _cut(update, (0, 2)) == _json_items(*said[:2])
    read, rest = _only(_cut(update, (1, 3)))
    assert (rest.clock, rest.end, rest.kind, rest.left) == (1, 3, Kind.JSON, (CLIENT, 0))
    assert read.data[rest.content : rest.stop] == b"\x02" + _texts(*said[1:3])


def test_what_is_cut_keeps_the_item_right_of_it() -> None:
    document: Doc[Any] = Doc(client_id=CLIENT)
    text = document.get("t", type=Text)
    text += "az"
    before = document.get_state()
    text.insert(1, "bcd")
    update = document.get_update(before)
    first, second = (_only(_cut(update, span))[1] for span in ((2, 4), (4, 5)))
    assert (first.left, first.right) == ((CLIENT, 0), (CLIENT, 1))
    assert (second.left, second.right) == ((CLIENT, 3), (CLIENT, 1))
    taken: Doc[Any] = Doc()
    taken.apply_update(
        merge_updates(
            _cut(document.get_update(), (0, 1), (1, 2)), *(_cut(update, span) for span in ((4, 5), (2, 4)))
        )
    )
    assert str(taken.get("t", type=Text)) == "abcdz"


def test_what_is_gone_is_cut_anywhere() -> None:
    deleted = _item(Kind.DELETED, b"\x0a")
    assert _cut(deleted, (0, 4)) == _item(Kind.DELETED, b"\x04")
    rest = _only(_cut(deleted, (4, 7)))[1]
    assert (rest.clock, rest.end, rest.kind, rest.left) == (4, 7, Kind.DELETED, (CLIENT, 3))
    filler = b"\x01\x01\x09\x00\x00\x0a\x00"
    (part,) = cut_structs(read_update(filler), CLIENT, [(4, 7)])
    assert part == WrittenStructs(4, 7, 1, b"\x00\x03")
    assert part.is_filler
    assert not cut_structs(read_update(deleted), CLIENT, [(4, 7)])[0].is_filler


def test_nothing_is_cut_from_clocks_that_are_not_said() -> None:
    read = read_update(_item(Kind.STRING, b"\x04abcd"))
    assert cut_structs(read, CLIENT, [(4, 9)]) == []
    assert cut_structs(read, CLIENT + 1, [(0, 4)]) == []
    assert [(one.clock, one.end) for one in cut_structs(read, CLIENT, [(0, 1), (3, 9)])] == [(0, 1), (3, 4)]


@pytest.mark.parametrize("place, start, rest", [(1, "é", "😀z"), (2, "é\ufffd", "\ufffdz"), (3, "é😀", "z")])
def test_clocks_of_a_text_are_utf16_units_and_half_a_pair_is_replaced(
    place: int, start: str, rest: str
) -> None:
    document: Doc[Any] = Doc(client_id=CLIENT)
    document.get("t", type=Text).insert(0, "é😀z")
    update = document.get_update()
    for span, said in (((0, place), start), ((place, 4), rest)):
        read, part = _only(_cut(update, span))
        assert (part.clock, part.end) == span, "the clocks are as many as before"
        assert read.data[part.content : part.stop] == _texts(said)


# --- writing ---


def test_clocks_between_what_is_written_are_skipped_and_wait_for_what_fills_them() -> None:
    letters = _item(Kind.STRING, b"\x06abcdef")
    gap = _cut(letters, (0, 2), (4, 6))
    read = read_update(gap)
    assert [*read.runs()] == [(CLIENT, 0, 2), (CLIENT, 4, 6)]
    assert [(client, one.clock, one.end, one.struct_count) for client, one in whole_runs(read)] == [
        (CLIENT, 0, 2, 1),
        (CLIENT, 4, 6, 1),
    ]
    taken: Doc[Any] = Doc()
    taken.apply_update(gap)
    assert str(taken.get("t", type=Text)) == "ab"
    taken.apply_update(_cut(letters, (2, 4)))
    assert str(taken.get("t", type=Text)) == "abcdef"


def test_whole_runs_are_written_again_byte_for_byte() -> None:
    first, second = _item(Kind.STRING, b"\x02ab", client=7), _json_items("1", "2")
    runs = {client: [run] for one in (second, first) for client, run in whole_runs(read_update(one))}
    both = encode_update(runs, {7: [(0, 1)], CLIENT: [(0, 1), (3, 4)]})
    read = read_update(both)
    assert [*read.structs] == [CLIENT, 7], "clients in falling order"
    assert read.deletes == {CLIENT: [(0, 1), (3, 4)], 7: [(0, 1)]}
    assert encode_update({client: [run] for client, run in whole_runs(read)}, read.deletes) == both
    assert encode_update({}, {}) == NOTHING


@pytest.mark.parametrize("size", [1, 300])
def test_what_stands_for_a_filler_uses_up_its_clocks_and_shows_nothing(size: int) -> None:
    gone = write_gone(0, size)
    assert not gone.is_filler
    document: Doc[Any] = Doc(client_id=CLIENT)
    document.get("t", type=Text).insert(0, "x" * size + "seen")
    after = cut_structs(read_update(document.get_update()), CLIENT, [(size, size + 4)])
    root = [WrittenStructs(one.clock, one.end, 1, b"\x04\x01\x01t\x04seen") for one in after]
    update = encode_update({CLIENT: [gone, *root]}, {})
    assert [*read_update(update).runs()] == [(CLIENT, 0, size + 4)]
    taken: Doc[Any] = Doc()
    taken.apply_update(update)
    assert str(taken.get("t", type=Text)) == "seen"
    assert str(taken.get("ravel-gone", type=Text)) == ""
    assert taken.get_state() == document.get_state()


# --- comparing ---


@pytest.mark.parametrize("values", VALUES, ids=["numbers", "scalars", "nested"])
def test_values_say_the_same_as_themselves_and_not_as_others(values: list[object]) -> None:
    update = _list(values)
    assert _say_same(update, _list(values), (0, len(values)))
    for place in range(len(values)):
        other = _list([*values[:place], "else", *values[place + 1 :]])
        assert not _say_same(update, other, (0, len(values)))
        assert _say_same(update, other, (0, place)) or not place
        cut = _cut(update, (place, place + 1))
        assert _say_same(update, cut, (place, place + 1)), "however it is cut"


@pytest.mark.parametrize(
    "encoded", [b"\x7f", b"\x7e", b"\x79", b"\x78", b"\x7a" + bytes(8), b"\x7d\x00", b"\x77\x00", b"\x74\x00"],
    ids=["undefined", "null", "false", "true", "bigint", "0", "text", "bytes"],
)  # fmt: skip
def test_values_of_different_kinds_are_different(encoded: bytes) -> None:
    others = [b"\x7f", b"\x7e", b"\x79", b"\x78", b"\x7a" + bytes(8), b"\x7d\x00", b"\x77\x00", b"\x74\x00"]
    assert [one for one in others if _say_same(_any_items(encoded), _any_items(one))] == [encoded]


def test_a_number_is_the_same_in_each_of_its_encodings() -> None:
    written = [b"\x7d\xc1\x01", b"\x7c" + struct.pack(">f", -65), b"\x7b" + struct.pack(">d", -65)]
    for one in written:
        assert [_say_same(_any_items(one), _any_items(other)) for other in written] == [True] * 3
        assert not _say_same(_any_items(one), _any_items(b"\x7d\x81\x01")), "that is 65"


def test_what_is_no_number_is_the_same_as_itself() -> None:
    """Or a text that holds NaN could not be pushed a second time."""
    single, double = b"\x7c\x7f\xc0\x00\x00", b"\x7b\x7f\xf8" + bytes(6)
    document: Doc[Any] = Doc(client_id=CLIENT)
    document.get("m", type=Map)["a"] = [float("nan")]
    assert _say_same(document.get_update(), document.get_update())
    assert _say_same(_any_items(double), _any_items(double))
    assert _say_same(_any_items(double), _any_items(single))
    assert not _say_same(_any_items(double), _any_items(b"\x7d\x00"))


def test_maps_are_the_same_in_any_order_of_their_keys() -> None:
    one, other = b"\x01a\x7e", b"\x01b\x79"
    assert _say_same(_any_items(b"\x76\x02" + one + other), _any_items(b"\x76\x02" + other + one))
    assert not _say_same(_any_items(b"\x76\x02" + one + other), _any_items(b"\x76\x01" + one))


@pytest.mark.parametrize(
    "make",
    [
        lambda said: _item(Kind.EMBED, _texts(said)),
        lambda said: _item(Kind.FORMAT, _texts("bold", said)),
    ],
    ids=["embed", "format"],
)
def test_json_of_embeds_and_formats_is_compared_by_what_it_means(make: Callable[[str], bytes]) -> None:
    said = make('{"a":1,"b":[true,null]}')
    assert _say_same(said, make('{"b": [true, null], "a": 1}'))
    for other in ('{"a":1,"b":[null,true]}', '{"a":1,"b":[1,null]}', '{"a":true,"b":[true,null]}', "1"):
        assert not _say_same(said, make(other)), "true is not 1"
    assert not _say_same(make("true"), make("1"))
    assert not _say_same(make("false"), make("0"))


def test_a_format_has_a_name() -> None:
    assert not _say_same(_item(Kind.FORMAT, _texts("bold", "1")), _item(Kind.FORMAT, _texts("wide", "1")))


@pytest.mark.parametrize(
    "one, other",
    [
        (_json_items("1"), _json_items("2")),
        (_item(Kind.BINARY, b"\x01a"), _item(Kind.BINARY, b"\x01b")),
        (_item(Kind.TYPE, b"\x00"), _item(Kind.TYPE, b"\x01")),
        (_item(Kind.STRING, b"\x01a"), _item(Kind.BINARY, b"\x01a")),
    ],
    ids=["json", "binary", "type", "kinds"],
)
def test_other_contents_are_told_apart(one: bytes, other: bytes) -> None:
    assert _say_same(one, one)
    assert not _say_same(one, other)


def test_what_stands_elsewhere_is_not_the_same() -> None:
    head, said = b"\x01\x01\x09\x05", b"\x01a\x00"
    root, another = _item(Kind.STRING, b"\x01a"), b"\x01\x01\x09\x00\x04\x01\x01u" + said
    assert not _say_same(root, another)
    key, other_key = (b"\x01\x01\x09\x00\x24\x01\x01m\x01" + name + said for name in (b"k", b"l"))
    assert not _say_same(key, other_key)
    for flag in (b"\x84", b"\x44"):  # the item left of it, and that right of it
        one, other = (head + flag + b"\x07" + at + said for at in (b"\x01", b"\x02"))
        assert _say_same(one, one, (5, 6))
        assert not _say_same(one, other, (5, 6))


def test_a_struct_begins_behind_its_own_last_clock_or_is_another() -> None:
    whole = _item(Kind.STRING, b"\x03abc")
    inside = [b"\x01\x01\x09\x01\x84" + left + b"\x02bc\x00" for left in (b"\x09\x00", b"\x07\x00")]
    assert _say_same(whole, inside[0], (1, 3))
    assert not _say_same(whole, inside[1], (1, 3)), "it stands behind another client's item"


def test_elements_and_their_attributes_are_the_same_when_written_again() -> None:
    document: Doc[Any] = Doc(client_id=CLIENT)
    document.get("x", type=XmlFragment).children.append("words")
    read = read_update(document.get_update())
    for one in read.structs[CLIENT]:
        assert say_same(CLIENT, (read, one), (read, one), (one.clock, one.end))
    kinds = [one for one in read.structs[CLIENT] if one.is_type]
    assert len(kinds) == 1
    assert not kinds[0].is_gone
