"""Documents against models written for clarity: any history, any order of arrival, any void commits, any lies.

Commits are numbers here; their names, and the order among equals, are drawn, so that nothing can rest on them.
"""

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from protocol.formats.document_kinds import DictEdit, DictEntry, Replaced, SetEdit
from protocol.ids import CommitId
from tests.support.document_edits import naming
from tests.support.ids import as_commit_id
from tests.support.strategies import histories
from verifier.documents import DocumentCommit, DocumentEntry, in_byte_order, reduce_values

KEYS = ("", "B", "a", "ä")  # by their bytes, which is no language's order
Edit = SetEdit | DictEdit


@dataclass(frozen=True)
class History:
    """Commits, causes first: what each follows, directly or not, and what it says."""

    pasts: list[set[int]]
    said: list[DocumentCommit]


def _history(draw: st.DrawFn) -> tuple[list[set[int]], list[tuple[int, CommitId]]]:
    """Pasts, and (rank, id) of each commit: ids are drawn."""
    pasts: list[set[int]] = []
    ranks: list[int] = []
    for acks in draw(histories()):
        pasts.append(set(acks).union(*(pasts[ack] for ack in acks)))
        ranks.append(1 + max((ranks[ack] for ack in acks), default=0))
    ids = draw(st.permutations(range(len(pasts))))
    return pasts, [
        (rank, as_commit_id(bytes([number]) * 32)) for rank, number in zip(ranks, ids, strict=True)
    ]


def _keys_of(body: object) -> set[str]:
    if isinstance(body, SetEdit):
        return {*body.added, *body.deleted}
    assert isinstance(body, DictEdit)
    return {*body.erased, *(entry.key for entry in body.put)}


def _names(entries: dict[str, DocumentEntry], keys: set[str]) -> tuple[CommitId, ...]:
    return tuple(sorted({tip.name for key in keys if key in entries for tip in entries[key].tips}))


@st.composite
def honest_histories(draw: st.DrawFn, kind: type[Edit]) -> History:
    """Each author says something of some keys, and names the tips that it had in its past, as nodes do."""
    pasts, places = _history(draw)
    said: list[DocumentCommit] = []
    keys = st.sets(st.sampled_from(KEYS), max_size=2)
    for number, (rank, commit_id) in enumerate(places):
        there, gone = draw(keys), draw(keys)
        seen = [said[one] for one in pasts[number]]
        body: Edit
        if kind is SetEdit:
            names = naming(_names(reduce_values(seen), there | gone), len(there) + len(gone))
            body = SetEdit(tuple(there), tuple(gone), names)
        else:
            names = naming(_names(reduce_values(seen), there | gone), len(there) + len(gone))
            body = DictEdit(tuple(DictEntry(key, str(number)) for key in there), tuple(gone), names)
        said.append(DocumentCommit(commit_id, (0, 0, rank, commit_id), body))
    return History(pasts, said)


def _last_operations(history: History, key: str) -> list[DocumentCommit]:
    """The model: what was said of a key and that nobody who had seen it said more about."""
    spoken = [number for number, one in enumerate(history.said) if key in _keys_of(one.body)]
    last = [number for number in spoken if not any(number in history.pasts[other] for other in spoken)]
    return sorted((history.said[number] for number in last), key=lambda one: one.place)


@given(history=honest_histories(SetEdit), data=st.data())
def test_an_item_is_there_while_somebody_added_it_whose_add_no_delete_had_seen(
    history: History, data: st.DataObject
) -> None:
    state = reduce_values(data.draw(st.permutations(history.said)))
    expected = []
    for key in KEYS:
        last = _last_operations(history, key)
        assert (
            [tip.name for tip in state[key].tips] == [one.name for one in last] if last else key not in state
        )
        if any(isinstance(one.body, SetEdit) and key in one.body.added for one in last):
            expected.append(key)
    assert in_byte_order(state) == expected


@given(history=honest_histories(DictEdit), data=st.data())
def test_a_key_has_the_value_of_its_last_writer_and_concurrent_ones_as_conflicts(
    history: History, data: st.DataObject
) -> None:
    state = reduce_values(data.draw(st.permutations(history.said)))
    for key in KEYS:
        expected = [
            entry.value
            for one in _last_operations(history, key)
            if isinstance(one.body, DictEdit)
            for entry in one.body.put
            if entry.key == key
        ]
        shown = [word.value for word in state[key].values] if key in state else []
        assert shown == expected[::-1]


@given(data=st.data())
def test_whatever_anyone_names_and_whatever_is_void_each_word_stands_unless_it_is_named_about_its_key(
    data: st.DataObject,
) -> None:
    # Names are drawn like everything else: of other items, of what never was, of oneself, in circles, twice the same.
    names = st.sampled_from([as_commit_id(bytes([number]) * 32) for number in range(5)])
    # So are the operations that name them, of which there may be none.
    edits = st.builds(
        SetEdit,
        st.lists(st.sampled_from(KEYS), max_size=2).map(tuple),
        st.lists(st.sampled_from(KEYS), max_size=2).map(tuple),
        st.lists(
            st.builds(Replaced, names, st.lists(st.integers(0, 4), max_size=3).map(tuple)), max_size=3
        ).map(tuple),
    )
    drawn = data.draw(st.lists(st.tuples(names, edits), max_size=8))
    said = [
        DocumentCommit(name, (0, 0, number, as_commit_id(bytes([number]) * 32)), body)
        for number, (name, body) in enumerate(drawn)
    ]
    counting = [one for one in said if data.draw(st.booleans())]
    expected: dict[str, set[tuple[bytes, bool]]] = {}
    for name, body in ((one.name, one.body) for one in counting):
        assert isinstance(body, SetEdit)
        for key in _keys_of(body):
            if not any(
                isinstance(other.body, SetEdit)
                and any(
                    name == one.name and key in (*other.body.added, *other.body.deleted)[place : place + 1]
                    for one in other.body.replaces
                    for place in one.operations
                )
                for other in counting
            ):
                expected.setdefault(key, set()).add((name, key in body.added))
    state = reduce_values(data.draw(st.permutations(counting)))
    got = {key: {(tip.name, tip.value is not None) for tip in entry.tips} for key, entry in state.items()}
    assert got == expected
