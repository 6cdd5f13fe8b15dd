"""Yjs updates without native code: read as the library reads them, cut as it cuts them, and refused within bounds."""

import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pycrdt import Array, Doc, Map, Text, XmlElement, XmlFragment, get_state, get_update, merge_updates

from protocol.formats.clock_spans import join_spans, overlap_spans, subtract_spans
from protocol.formats.yjs_structs import cut_structs, encode_update, say_same
from protocol.formats.yjs_updates import (
    CLOCK_MAX,
    DEPTH_MAX,
    NOTHING,
    VALUE_COUNT_MAX,
    BadUpdate,
    read_update,
)
from tests.support.yjs_vectors import read_vector

CLIENT = (1 << 53) - 5
spans = st.lists(st.tuples(st.integers(0, 30), st.integers(1, 6)).map(lambda one: (one[0], sum(one)))).map(
    join_spans
)


@st.composite
def updates(draw: st.DrawFn) -> list[bytes]:
    """What two editors did to a document of many types."""
    documents: list[Doc[Any]] = [Doc(client_id=CLIENT), Doc(client_id=7)]
    made: list[bytes] = []
    for _ in range(draw(st.integers(1, 8))):
        document = draw(st.sampled_from(documents))
        before = document.get_state()
        text = document.get("t", type=Text)
        match draw(st.integers(0, 6)):
            case 0:
                document.get("m", type=Map)[draw(st.sampled_from("ab"))] = [
                    1,
                    {"x": None, "y": [2.5, True]},
                    "é",
                ]
            case 1:
                document.get("a", type=Array).extend([1 << 40, -3, b"bytes", None, "😀"])
            case 2:
                document.get("x", type=XmlFragment).children.append(XmlElement("p", {"class": "q"}))
            case 3 if len(str(text)) > 1:
                del text[: len(str(text)[0].encode())]
            case 4 if len(str(text)):
                text.format(0, len(str(text)[0].encode()), {"bold": True})
            case 5:
                document.get("a", type=Array).append(Map({"inside": Text("nested")}))
            case _:
                text += draw(st.sampled_from(["a", "hello", "w😀rld"]))
        made.append(document.get_update(before))
        if draw(st.booleans()):
            documents[0].apply_update(documents[1].get_update())
    return made


def _whole(update: bytes) -> dict[int, list[tuple[int, int]]]:
    return {client: [(0, CLOCK_MAX)] for client in read_update(update).structs}


def _rewritten(update: bytes, wanted: dict[int, list[tuple[int, int]]]) -> bytes:
    read = read_update(update)
    return encode_update(
        {client: found for client, parts in wanted.items() if (found := cut_structs(read, client, parts))},
        read.deletes,
    )


@given(made=updates())
def test_what_is_read_is_what_the_library_reads(made: list[bytes]) -> None:
    merged = merge_updates(*made)
    for update in (*made, merged):
        read = read_update(update)
        assert _rewritten(update, _whole(update)) == update, "byte for byte"
        assert [client for client, _, _ in read.runs()] == [*read.structs], "without gaps"
    assert {client: end for client, _, end in read_update(merged).runs()} == read_vector(get_state(merged))


def _sizes(update: bytes) -> list[tuple[int, int]]:
    """What can be compared of what pycrdt writes: it has the keys of a map in another order each time."""
    read = read_update(update)
    return [(one.clock, one.stop - one.start) for found in read.structs.values() for one in found]


@given(made=updates(), data=st.data())
def test_what_is_cut_off_is_what_the_library_cuts_off(made: list[bytes], data: st.DataObject) -> None:
    document: Doc[Any] = Doc()
    document.apply_update(merge_updates(*made))
    update = document.get_update()  # with what stands side by side in one struct
    read = read_update(update)
    ends = {client: end for client, _, end in read.runs()}
    starts = {client: data.draw(st.integers(0, end)) for client, end in ends.items()}
    mine = _rewritten(update, {client: [(start, CLOCK_MAX)] for client, start in starts.items()})
    rest = _rewritten(update, {client: [(0, start)] for client, start in starts.items()})
    assert {client: start for client, start, _ in read_update(mine).runs()} == {
        client: start for client, start in starts.items() if start < ends[client]
    }
    whole: Doc[Any] = Doc()
    whole.apply_update(merge_updates(mine, rest))
    texts = [str(one.get("t", type=Text)) for one in (document, whole)]
    if "\ufffd" not in texts[1]:  # where a pair was cut
        assert _sizes(whole.get_update()) == _sizes(update)
        assert texts[0] == texts[1]


def test_a_cut_within_a_pair_leaves_one_replacement_on_each_side() -> None:
    document: Doc[Any] = Doc(client_id=9)
    document.get("t", type=Text).insert(0, "x😀y")
    update = document.get_update()
    parts = [_rewritten(update, {9: [span]}) for span in ((0, 2), (2, 4))]
    taken: Doc[Any] = Doc()
    taken.apply_update(merge_updates(*parts))
    assert str(taken.get("t", type=Text)) == "x\ufffd\ufffdy"
    assert [[*read_update(part).runs()] for part in parts] == [[(9, 0, 2)], [(9, 2, 4)]]


@given(made=updates(), place=st.integers(0, 10_000), byte=st.integers(0, 255))
def test_a_damaged_update_is_read_or_refused_and_nothing_else(
    made: list[bytes], place: int, byte: int
) -> None:
    update = bytearray(merge_updates(*made))
    update[place % len(update)] = byte
    for damaged in (bytes(update), bytes(update[: place % len(update)])):
        try:
            read = read_update(damaged)
        except BadUpdate:
            continue
        assert read_update(_rewritten(damaged, _whole(damaged))).structs.keys() == read.structs.keys()


@pytest.mark.parametrize(
    "update",
    {
        "empty": b"",
        "short": b"\0",
        "long": NOTHING + b"\0",
        "a_client_twice": b"\x02" + b"\x01\x09\x00\x04\x01\x01t\x01a" * 2 + b"\x00",
        "no_clocks": b"\x01\x01\x09\x00\x00\x00\x00",
        "too_many_clocks": b"\x01\x01\x09\x02\x00\xff\xff\xff\xff\x07\x00",
        "a_number_past_53_bits": b"\x01\x01" + b"\xff" * 7 + b"\x1f\x00\x00\x01\x00",
        "an_endless_number": b"\x01\x01" + b"\x80" * 20,
        "more_structs_than_bytes": b"\x01\xff\xff\xff\x7f\x09\x00\x00\x01\x00",
        "a_filler_with_flags": b"\x01\x01\x09\x00\x80\x01\x00",
        "text_that_is_not_utf8": b"\x01\x01\x09\x00\x04\x01\x01t\x01\xff\x00",
        "half_a_pair": b"\x01\x01\x09\x00\x04\x01\x01t\x03\xed\xa0\x80\x00",
        "a_subdocument": b"\x01\x01\x09\x00\x09\x01\x01t\x01g\x7e\x00",
        "a_move": b"\x01\x01\x09\x00\x0b\x01\x01t\x00\x00",
        "an_unknown_type": b"\x01\x01\x09\x00\x07\x01\x01t\x07\x00",
        "an_unknown_value": b"\x01\x01\x09\x00\x08\x01\x01t\x01\x01\x00",
        "an_embed_that_is_no_json": b"\x01\x01\x09\x00\x05\x01\x01t\x01{\x00",
        "a_format_that_is_no_json": b"\x01\x01\x09\x00\x06\x01\x01t\x01b\x01x\x00",
        "a_whole_number_past_53_bits": b"\x01\x01\x09\x00\x08\x01\x01t\x01\x7d"
        + b"\xbf"
        + b"\xff" * 7
        + b"\x7f\x00",
        "a_signed_number_that_does_not_end": b"\x01\x01\x09\x00\x08\x01\x01t\x01\x7d" + b"\xff" * 20,
        "a_parent_that_is_neither_name_nor_item": b"\x01\x01\x09\x00\x04\x02\x01t\x01a\x00",
        "an_item_left_of_itself": b"\x01\x01\x09\x05\x84\x09\x05\x01a\x00",
        "an_item_in_one_that_comes_after_it": b"\x01\x01\x09\x05\x04\x00\x09\x06\x01a\x00",
        "an_item_past_all_clocks": b"\x01\x01\x09\x00\x84\x07\xff\xff\xff\xff\x0f\x01a\x00",
        "a_json_value_that_is_none": b"\x01\x01\x09\x00\x02\x01\x01t\x01\x01x\x00",
        "an_undefined_embed": b"\x01\x01\x09\x00\x05\x01\x01t\x09undefined\x00",
        "bytes_that_end_too_early": b"\x01\x01\x09\x00\x03\x01\x01t\x09ab\x00",
        "a_deletion_of_nothing": b"\x00\x01\x09\x01\x05\x00",
        "a_deletion_past_all_clocks": b"\x00\x01\x09\x01\x02\xff\xff\xff\xff\x07",
    }.items(),
    ids=lambda case: case[0],
)
def test_what_libraries_do_not_agree_on_is_refused(update: tuple[str, bytes]) -> None:
    with pytest.raises(BadUpdate):
        read_update(update[1])


def _varint(number: int) -> bytes:
    return bytes([number & 0x7F | 0x80]) + _varint(number >> 7) if number > 0x7F else bytes([number])


def _json(text: str) -> bytes:
    return b"\x01\x01\x09\x00\x05\x01\x01t" + _varint(len(text)) + text.encode() + b"\x00"


def _value(encoded: bytes) -> bytes:
    return b"\x01\x01\x09\x00\x08\x01\x01t\x01" + encoded + b"\x00"


@pytest.mark.parametrize(
    "make",
    [
        lambda depth: _value(b"\x75\x01" * depth + b"\x7e"),
        lambda depth: _value(b"\x76\x01\x01k" * depth + b"\x7e"),
        lambda depth: _json("[" * depth + "1" + "]" * depth),
        lambda depth: _json('{"k":' * depth + "1" + "}" * depth),
    ],
    ids=["lists", "maps", "json lists", "json maps"],
)
def test_values_are_nested_so_deep_and_no_deeper(make: Callable[[int], bytes]) -> None:
    read_update(make(DEPTH_MAX - 1))
    for depth in (DEPTH_MAX + 1, 1000, 100_000):
        with pytest.raises(BadUpdate):
            read_update(make(depth))


@pytest.mark.parametrize(
    "update",
    [
        _value(b"\x75" + _varint(VALUE_COUNT_MAX) + b"\x7e" * VALUE_COUNT_MAX),
        _json("[" + "1," * VALUE_COUNT_MAX + "1]"),
        b"\x01" + _varint(190_000) + b"\x09\x00" + b"\x00\x01" * 190_000 + b"\x00",
        b"\x01\x01\x09\x00\x02\x01\x01t" + _varint(190_000) + b"\x011" * 190_000 + b"\x00",
    ],
    ids=["values", "json", "structs", "json values"],
)
def test_so_many_values_and_no_more(update: bytes) -> None:
    began = time.process_time()
    with pytest.raises(BadUpdate, match="too many"):
        read_update(update)
    assert time.process_time() - began < 2, "in bounded time"


@given(one=spans, other=spans)
def test_spans_are_sets_of_clocks(one: list[tuple[int, int]], other: list[tuple[int, int]]) -> None:
    def clocks(some: list[tuple[int, int]]) -> set[int]:
        return {clock for start, end in some for clock in range(start, end)}

    common, rest = overlap_spans(one, other), [*subtract_spans(one, other)]
    assert clocks(common) == clocks(one) & clocks(other)
    assert clocks(rest) == clocks(one) - clocks(other)
    assert all(start < end for start, end in common + rest)
    assert overlap_spans(other, one) == common


def test_structs_say_the_same_however_they_are_cut_and_else_something_else() -> None:
    document: Doc[Any] = Doc(client_id=9)
    text = document.get("t", type=Text)
    text += "ab"
    pieces = [document.get_update()]
    for char in "cd":
        before = document.get_state()
        text += char
        pieces.append(document.get_update(before))
    whole, parts = read_update(document.get_update()), read_update(merge_updates(*pieces))
    assert [len(read.structs[9]) for read in (whole, parts)] == [1, 3]
    for piece in parts.structs[9]:
        span = (piece.clock, piece.end)
        assert say_same(9, (whole, whole.structs[9][0]), (parts, piece), span)
    for other in ("abcx", "xbcd"):
        another: Doc[Any] = Doc(client_id=9)
        another.get("t", type=Text).insert(0, other)
        read = read_update(another.get_update())
        assert not say_same(9, (whole, whole.structs[9][0]), (read, read.structs[9][0]), (0, 4))
    elsewhere: Doc[Any] = Doc(client_id=9)
    elsewhere.get("u", type=Text).insert(0, "abcd")
    read = read_update(elsewhere.get_update())
    assert not say_same(9, (whole, whole.structs[9][0]), (read, read.structs[9][0]), (0, 4))
    assert say_same(9, (whole, whole.structs[9][0]), (read, read.structs[9][0]), (1, 4)), (
        "what stands behind a letter stands where that does"
    )
    assert get_update(whole.data, b"\0") == whole.data


def test_each_kind_of_content_has_its_clocks_and_its_end() -> None:
    head = b"\x01\x01t"
    contents = [
        (b"\x01" + head + b"\x05", 5),
        (b"\x02" + head + b"\x02\x09undefined\x04null", 2),
        (b"\x03" + head + b"\x03\x00\x01\x02", 1),
        (b"\x04" + head + b"\x06x\xf0\x9f\x98\x80y", 4),
        (b"\x05" + head + b"\x02[]", 1),
        (b"\x06" + head + b"\x01b\x01" + b"1", 1),
        (b"\x07" + head + b"\x03\x01p", 1),
        (b"\x08" + head + b"\x03\x7a" + bytes(8) + b"\x74\x02ab\x7f", 3),
    ]
    update = b"\x01" + bytes([len(contents)]) + b"\x09\x00" + b"".join(said for said, _ in contents) + b"\x00"
    structs = read_update(update).structs[9]
    assert [one.end - one.clock for one in structs] == [count for _, count in contents]
    assert [update[one.start : one.stop] for one in structs] == [said for said, _ in contents]
    assert [one.clock for one in structs] == [0, 5, 7, 8, 12, 13, 14, 15]
    assert [one.is_type for one in structs].index(True) == 6
    assert {(one.parent, one.left, one.right, one.key) for one in structs} == {("t", None, None, None)}


def test_clocks_that_are_skipped_are_not_said_and_those_of_fillers_are() -> None:
    skip, filler, letter = b"\x0a\x03", b"\x00\x02", b"\x04\x01\x01t\x01a"
    read = read_update(b"\x01\x04\x09\x01" + filler + letter + skip + letter + b"\x00")
    assert [*read.runs()] == [(9, 1, 4), (9, 7, 8)]
    assert [one.is_gone for one in read.structs[9]] == [True, False, False]
    assert [one.is_filler for one in read.structs[9]] == [True, False, False]
    assert read_update(b"\x01\x01\x09\x01" + skip + b"\x00").structs == {}, "it says nothing of the client"


def test_deletions_are_joined_and_a_client_without_any_is_left_out() -> None:
    update = b"\x00\x03" + b"\x09\x03\x05\x02\x00\x01\x07\x01" + b"\x08\x00" + b"\x09\x01\x01\x01"
    assert read_update(update).deletes == {9: [(0, 2), (5, 8)]}
