"""Filters of queries: what each operator holds for, types that are not compared, orders, and what is no filter."""

from itertools import pairwise

import pytest

from node.content.document_filters import (
    FILTER_TERMS_MAX,
    FILTER_VALUES_MAX,
    MISSING,
    FilterError,
    matches,
    parse_filter,
    sort_key,
    value_at,
)

CARD = {"status": "open", "votes": 3, "done": False, "owner": None, "size": {"w": 1.5}, "tags": ["a"]}


def _holds(where: object, value: object = CARD) -> bool:
    return matches(
        parse_filter(where),
        lambda path: value_at(value, path),
        lambda path: ("size", "w")[: len(path)] == path,
    )


@pytest.mark.parametrize(
    "where",
    [
        {},
        {"status": "open"},
        {"status": {"$eq": "open"}, "votes": 3.0},
        {"votes": {"$gt": 2, "$lte": 3}},
        {"votes": {"$lt": 3.5, "$gte": 3}},
        {"status": {"$in": ["late", "open"]}},
        {"status": {"$nin": ["late", None]}},
        {"status": {"$ne": "late"}},
        {"status": {"$prefix": "op"}},
        {"owner": None},
        {"owner": {"$lte": None}},
        {"done": {"$lt": True}},
        {"size.w": 1.5},
        {"size": {"$exists": True}},
        {"tags": {"$ne": "a"}},
        {"nothing": {"$exists": False}},
        {"$conflict": True},
        {"size": {"$conflict": True}, "size.w": {"$conflict": True, "$gt": 1}},
        {"status": {"$conflict": False}},
        {"nothing": {"$ne": 1}},
        {"nothing": {"$nin": [None]}},
        {"status.x": {"$exists": False}},
        {"$or": [{"votes": 9}, {"$and": [{"votes": 3}, {"status": "open"}]}]},
    ],
)
def test_a_filter_holds(where: object) -> None:
    assert _holds(where)


@pytest.mark.parametrize(
    "where",
    [
        {"status": "late"},
        {"votes": "3"},
        {"votes": {"$gt": "2"}},
        {"done": 0},
        {"votes": True},
        {"owner": False},
        {"$conflict": False},
        {"status": {"$conflict": True}},
        {"size": {"$conflict": False}},
        {"nothing": None},
        {"nothing": {"$in": [None]}},
        {"nothing": {"$lt": 1}},
        {"size": {"$gt": 0}},
        {"tags": "a"},
        {"votes": {"$gt": 2, "$lt": 3}},
        {"votes": {"$prefix": "3"}},
        {"$or": [{"votes": 9}, {"votes": 8}]},
    ],
)
def test_a_filter_does_not_hold(where: object) -> None:
    assert not _holds(where)


@pytest.mark.parametrize(
    "where",
    [
        [],
        "status",
        {"$where": "1"},
        {"status": {"$regex": ".*"}},
        {"status": {}},
        {"status": {"$eq": {}}},
        {"status": ["open"]},
        {"votes": {"$gt": float("nan")}},
        {"votes": 10**400},
        {"votes": {"$exists": 1}},
        {"$conflict": 1},
        {"votes": {"$conflict": {}}},
        {"votes": {"$in": 3}},
        {"votes": {"$in": [*range(FILTER_VALUES_MAX + 1)]}},
        {"$or": []},
        {"$or": {"votes": 1}},
        {"$or": [{"votes": n} for n in range(FILTER_TERMS_MAX + 1)]},
        {"a\0b": 1},
        {"k." * 32 + "k": 1},
        {"k" * 1025: 1},
        {
            "$and": [
                {
                    "$and": [
                        {"$and": [{"$and": [{"$and": [{"$and": [{"$and": [{"$and": [{"$and": [{}]}]}]}]}]}]}]}
                    ]
                }
            ]
        },
    ],
)
def test_what_is_no_filter_is_refused(where: object) -> None:
    with pytest.raises(FilterError):
        parse_filter(where)


def test_values_have_one_order_whatever_their_type() -> None:
    ordered: list[object] = [
        *(MISSING, None, False, True),
        *(-(2.0**60), -1, -0.5, 0, 1e-300, 1, 1.5, 2**53 - 1),
        *("", "\0", "a", "a\0", "ab", "z", "ä", "\uffff", "\U0001f600"),
        {},
    ]
    assert all(sort_key(one) < sort_key(other) for one, other in pairwise(ordered))
    assert sort_key(0.0) == sort_key(-0.0) == sort_key(0)
    assert sort_key("x" * 200 + "a") == sort_key("x" * 200 + "b"), "they are told apart by the documents"
