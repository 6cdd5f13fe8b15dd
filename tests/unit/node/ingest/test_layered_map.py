"""A mapping of which others are made: each is what a copied dict would be, in the same order."""

from hypothesis import given
from hypothesis import strategies as st

from node.ingest import layered_map
from node.ingest.layered_map import LayeredMap

KEYS = st.integers(0, 200)
CHANGES = st.lists(
    st.tuples(st.lists(KEYS, max_size=8, unique=True), st.dictionaries(KEYS, st.integers(), max_size=40)),
    max_size=12,
)


@given(st.dictionaries(KEYS, st.integers()), CHANGES)
def test_each_is_what_a_copied_dict_would_be(
    entries: dict[int, int], changes: list[tuple[list[int], dict[int, int]]]
) -> None:
    made = LayeredMap(entries)
    seen = [(made, dict(entries))]
    for gone, new in changes:
        expected = {key: value for key, value in seen[-1][1].items() if key not in gone or key in new} | new
        made = made.replaced(gone, new)
        seen.append((made, expected))
    for one, expected in seen:
        assert one == expected
        assert len(one) == len(expected)
        for key in range(201):
            assert one.get(key) == expected.get(key)
            assert (key in one) == (key in expected)


def test_order_is_that_of_a_dict_and_what_comes_back_stands_where_it_was() -> None:
    made = LayeredMap(dict.fromkeys("abc", 0)).replaced(["b", "c"], {"b": 1, "d": 2})
    assert list(made.items()) == [("a", 0), ("b", 1), ("d", 2)]
    assert list(made.replaced([], {"c": 3}).items()) == [("a", 0), ("b", 1), ("c", 3), ("d", 2)]
    assert list(made.replaced(["d"], {}).replaced([], {"e": 1, "d": 2})) == ["a", "b", "e", "d"]


def test_a_change_copies_few_entries() -> None:
    made: LayeredMap[int, int] = LayeredMap(dict.fromkeys(range(10_000), 0))
    merges, most = 0, 0
    for number in range(2000):
        before = made._shared
        made = made.replaced([number], {number: 1, 10_000 + number: 1})
        merges += made._shared is not before
        most = max(most, len(made._others))
    assert most <= layered_map._OTHERS_MIN + len(made) // layered_map._OTHERS_SHARE
    assert merges < 15
