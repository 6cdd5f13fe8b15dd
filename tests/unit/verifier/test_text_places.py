"""Places of items in a text: what waits for what, and what can stand nowhere."""

import random
import sys
from collections.abc import Callable

import pytest

from protocol.formats.document_kinds import TEXT_DEPTH_MAX
from protocol.formats.yjs_updates import ItemId
from verifier.text_places import Places, TextItem

A, B, C = 1, 2, 3
Items = dict[int, list[TextItem]]


def _item(
    clock: int,
    left: ItemId | None = None,
    right: ItemId | None = None,
    parent: str | ItemId | None = None,
    *,
    length: int = 1,
    key: str | None = None,
    is_type: bool = False,
) -> TextItem:
    parent = "t" if parent is None and left is right is None else parent
    return TextItem(clock, clock + length, left, right, parent, key, is_type, length > 1)


def _ends(items: Items) -> tuple[dict[int, int], list[ItemId]]:
    """Return what is in the text, whatever the order in which clients come."""
    found = []
    for clients in (sorted(items), sorted(items, reverse=True)):
        places = Places()
        misplaced = sorted(places.add({client: items[client] for client in clients}))
        found.append(({client: places.end(client) for client in sorted(items)}, misplaced))
    assert found[0] == found[1]
    return found[0]


def test_an_item_waits_for_what_it_names_and_for_what_is_before_it() -> None:
    items = {
        A: [_item(0, length=2), _item(2, (B, 0)), _item(3)],
        B: [_item(0, (A, 1)), _item(1, (C, 5)), _item(2)],
        C: [_item(0, None, (B, 0)), _item(3)],
    }
    assert _ends(items) == ({A: 4, B: 1, C: 1}, [])
    more = {client: list(row) for client, row in items.items()}
    more[C] = [_item(0, None, (B, 0)), _item(1, (C, 0), length=2), _item(3, length=3)]
    assert _ends(more) == ({A: 4, B: 3, C: 6}, [])
    assert _ends({A: [_item(0, (B, 0))], B: [_item(0, (A, 0))]}) == ({A: 0, B: 0}, []), (
        "each waits for the other"
    )
    assert _ends({A: [_item(1)]}) == ({A: 0}, [])


@pytest.mark.parametrize(
    "item",
    [
        _item(0, (A, 0), (A, 1)),
        _item(0, (A, 0), (A, 3)),
        _item(0, parent=(A, 0)),
        _item(0, (A, 2), length=2),
        _item(0, parent="u", key="k", length=2),
    ],
    ids=["two roots", "a root and a type", "in a letter", "two clocks in a map", "two clocks under a key"],
)
def test_what_can_stand_nowhere_ends_its_client(item: TextItem) -> None:
    base = [
        _item(0),
        _item(1, parent="u"),
        _item(2, parent="u", key="k", is_type=True),
        _item(3, parent=(A, 2)),
    ]
    assert _ends({A: base, B: [item, _item(item.end)], C: [_item(0, (B, 0))]}) == (
        {A: 4, B: 0, C: 0},
        [(B, 0)],
    )


def test_what_stands_in_one_list_is_taken_whatever_it_names() -> None:
    base = [_item(0), _item(1, (A, 0)), _item(2, parent="u", key="k"), _item(3, (A, 2), key=None)]
    rows = [_item(0, (A, 1), (A, 0)), _item(1, (A, 2)), _item(2, None, (A, 3)), _item(3, (A, 1), length=9)]
    assert _ends({A: base, B: rows}) == ({A: 4, B: 12}, [])


def test_types_stand_in_types_up_to_a_bound() -> None:
    row = [_item(0, is_type=True)]
    row += [_item(clock, parent=(A, clock - 1), is_type=True) for clock in range(1, TEXT_DEPTH_MAX + 3)]
    assert _ends({A: row}) == ({A: TEXT_DEPTH_MAX}, [(A, TEXT_DEPTH_MAX)])
    row[TEXT_DEPTH_MAX:] = [_item(TEXT_DEPTH_MAX, parent=(A, TEXT_DEPTH_MAX - 1))]
    assert _ends({A: row}) == ({A: TEXT_DEPTH_MAX + 1}, []), "a letter in the innermost"


def test_places_on_top_of_others_leave_these_as_they_are() -> None:
    base = Places()
    base.add({A: [_item(0), _item(1, parent="u", is_type=True)]})
    top = Places(base)
    assert top.add({A: [_item(2, (A, 0)), _item(3, parent=(A, 1))], B: [_item(0, (A, 3), (A, 2))]}) == [
        (B, 0)
    ]
    assert (top.end(A), top.end(B), base.end(A), top.ends()) == (4, 0, 2, {A: 4})


def _in_turn(count: int) -> Items:
    """Return four editors, each behind what another has typed last."""
    rows: Items = {client: [] for client in range(4)}
    for number in range(count):
        client, before = number % 4, number - 1
        rows[client].append(_item(number // 4, (before % 4, before // 4) if number else None))
    return rows


def _backwards(count: int) -> Items:
    """Return many clients, each of which waits for the next one."""
    return {client: [_item(0, (client + 1, 0) if client + 1 < count else None)] for client in range(count)}


def _all_for_one(count: int) -> Items:
    """Return many clients that wait for clocks of one, which comes last."""
    rows: Items = {client: [_item(0, (0, client))] for client in range(1, count)}
    rows[0] = [_item(clock) for clock in range(count)]
    return rows


@pytest.mark.parametrize("make", [_in_turn, _backwards, _all_for_one])
def test_ten_times_the_items_take_ten_times_the_steps(make: Callable[[int], Items]) -> None:
    def count_steps(count: int) -> int:
        rows = make(count)
        clients = random.Random(1).sample([*rows], len(rows))
        items, steps, places = {client: rows[client] for client in clients}, 0, Places()

        def note(*_: object) -> None:
            nonlocal steps
            steps += 1

        sys.setprofile(note)
        try:
            places.add(items)
        finally:
            sys.setprofile(None)
        assert sum(places.ends().values()) == sum(map(len, rows.values()))
        return steps

    assert count_steps(2000) < 12 * count_steps(200)
