"""Snapshots and erased bodies: they change nothing of what a set or dict holds, whatever was concurrent, void or a lie.

Commits are numbers; each has its place in a drawn history, and says something, snapshots, or both of these in turn.
"""

from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.formats.document_kinds import (
    DictEdit,
    DictEntry,
    DictSnapshot,
    SetEdit,
    SetSnapshot,
    SnapshotEntries,
    SnapshotItems,
)
from tests.support.document_edits import naming
from tests.support.ids import as_commit_id
from tests.support.strategies import histories
from verifier.documents import (
    DocumentCommit,
    DocumentEntry,
    ErasedValues,
    find_false_snapshots,
    find_settled,
    reduce_values,
    snapshot_values,
)

KEYS = ("", "B", "a", "ä")
BORDERS: tuple[str, ...] = ("", "a", "b")


@dataclass(frozen=True)
class History:
    """Causes first: pasts, and what each commit says."""

    pasts: list[set[int]]
    said: list[DocumentCommit]

    @property
    def snapshots(self) -> list[int]:
        """Which commits are snapshots."""
        return [number for number, one in enumerate(self.said) if one.bit]


def _at(pasts: list[set[int]], said: list[DocumentCommit], number: int) -> list[DocumentCommit]:
    return [said[one] for one in sorted(pasts[number])]


def _marked(pasts: list[set[int]], said: list[DocumentCommit]) -> list[DocumentCommit]:
    """What is said, each with the snapshots that have it in their past."""
    marked = []
    for number, one in enumerate(said):
        bits = sum(other.bit for place, other in enumerate(said) if number in pasts[place])
        marked.append(replace(one, covered_by=bits))
    return marked


@st.composite
def snapshotted_histories(draw: st.DrawFn, kind: type[SetEdit | DictEdit]) -> History:
    """Each author names the tips that it had, or snapshots what it had about a range; some do so with several commits."""
    pasts: list[set[int]] = []
    ranks: list[int] = []
    said: list[DocumentCommit] = []
    keys = st.sets(st.sampled_from(KEYS), max_size=2)
    dag = draw(histories(10))
    ids = draw(st.permutations(range(len(dag))))
    for number, acks in enumerate(dag):
        pasts.append(set(acks).union(*(pasts[ack] for ack in acks)))
        ranks.append(1 + max((ranks[ack] for ack in acks), default=0))
        name = as_commit_id(bytes([ids[number]]) * 32)
        place = (0, 0, ranks[number], name)
        seen = _marked(pasts, said)
        state = reduce_values(seen[one] for one in pasts[number])
        if draw(st.integers(0, 2)) == 0:
            first, end = draw(st.sampled_from(BORDERS)), draw(st.sampled_from([*BORDERS, None, None]))
            operations = snapshot_values(state, first, end)
            snapshot = (
                SetSnapshot(
                    first, end, tuple(SnapshotItems(raw, tuple(its)) for raw, its in operations.items())
                )
                if kind is SetEdit
                else DictSnapshot(
                    first,
                    end,
                    tuple(
                        SnapshotEntries(raw, tuple(DictEntry(key, value) for key, value in its.items()))
                        for raw, its in operations.items()
                    ),
                )
            )
            said.append(DocumentCommit(name, place, snapshot, 1 << number))
            continue
        there, gone = draw(keys), draw(keys)
        seen_tips = {tip.name for key in there | gone for tip in state.get(key, DocumentEntry(())).tips}
        names = naming(sorted(seen_tips), len(there) + len(gone))
        said.append(
            DocumentCommit(
                name,
                place,
                SetEdit(tuple(there), tuple(gone), names)
                if kind is SetEdit
                else DictEdit(tuple(DictEntry(key, str(number)) for key in there), tuple(gone), names),
            )
        )
    return History(pasts, _marked(pasts, said))


def _values(state: dict[str, DocumentEntry]) -> dict[str, list[tuple[bytes, str | None]]]:
    return {
        key: [(operation.name, operation.value) for operation in entry.values]
        for key, entry in state.items()
        if entry.values
    }


def _keys_of(body: object) -> set[str]:
    if isinstance(body, SetEdit):
        return {*body.added, *body.deleted}
    return {*body.erased, *(one.key for one in body.put)} if isinstance(body, DictEdit) else set()


def _model(history: History) -> dict[str, list[tuple[bytes, str | None]]]:
    """As if nobody had ever snapshotted: of each key the last operations of all authors, those that say that it is there."""
    found: dict[str, list[tuple[bytes, str | None]]] = {}
    for key in KEYS:
        spoken = [number for number, one in enumerate(history.said) if key in _keys_of(one.body)]
        last = [one for one in spoken if not any(one in history.pasts[other] for other in spoken)]
        for one in sorted((history.said[number] for number in last), key=lambda one: one.place, reverse=True):
            if isinstance(one.body, SetEdit) and key in one.body.added:
                found.setdefault(key, []).append((one.name, ""))
            if isinstance(one.body, DictEdit):
                values = [entry.value for entry in one.body.put if entry.key == key]
                if values:
                    found.setdefault(key, []).append((one.name, values[-1]))
    return found


@pytest.mark.parametrize("kind", [SetEdit, DictEdit])
@given(data=st.data())
def test_no_snapshot_and_no_erasing_changes_what_stands(
    kind: type[SetEdit | DictEdit], data: st.DataObject
) -> None:
    history = data.draw(snapshotted_histories(kind))
    expected = _model(history)
    assert _values(reduce_values(data.draw(st.permutations(history.said)))) == expected
    assert find_false_snapshots(history.said) == []
    may_go = {one.name for one in find_settled(history.said)}
    gone = {name for name in sorted(may_go) if data.draw(st.booleans())}
    left = [replace(one, body=None) if one.name in gone else one for one in history.said]
    assert _values(reduce_values(data.draw(st.permutations(left)))) == expected
    # What else may go then is no more than before: replicas that erased and those that did not go on alike.
    assert {one.name for one in find_settled(left)} == may_go


@pytest.mark.parametrize("kind", [SetEdit, DictEdit])
@given(data=st.data())
def test_when_commits_become_void_replicas_that_erased_say_the_same_or_that_they_cannot_tell(
    kind: type[SetEdit | DictEdit], data: st.DataObject
) -> None:
    history = data.draw(snapshotted_histories(kind))
    gone = {one.name for one in find_settled(history.said) if data.draw(st.booleans())}
    counting = [one for one in history.said if data.draw(st.integers(0, 3))]
    # The bits of void snapshots are of no snapshot any more, as a reader of the store has it.
    bits = sum(one.bit for one in counting)
    counting = [replace(one, covered_by=one.covered_by & bits) for one in counting]
    whole = reduce_values(counting)
    left = [replace(one, body=None) if one.name in gone else one for one in counting]
    try:
        assert reduce_values(left) == whole
    except ErasedValues:
        assert any(one.bit and one not in counting for one in history.said), "a snapshot is void"


def _one(number: int, body: SetEdit | SetSnapshot, covered_by: int = 0, bit: int = 0) -> DocumentCommit:
    name = as_commit_id(bytes([number]) * 32)
    return DocumentCommit(name, (0, 0, number, name), body, bit, covered_by)


def test_a_delete_after_a_snapshot_erases_nothing_of_what_else_the_snapshot_holds() -> None:
    """Upstream's: its delete supersedes the snapshot as a whole, so pruning turns [b, c] into []."""
    add = _one(1, SetEdit(("a", "b", "c"), (), ()), covered_by=1)
    snapshot = _one(2, SetSnapshot("", None, (SnapshotItems(add.name, ("a", "b", "c")),)), bit=1)
    delete = _one(3, SetEdit((), ("a",), naming((add.name, snapshot.name), 1)))
    assert find_settled([add, snapshot, delete]) == [add]
    pruned = [replace(add, body=None), snapshot, delete]
    assert sorted(_values(reduce_values(pruned))) == ["b", "c"]
    # The same without a snapshot: of the add, one item is superseded, and the others live in it alone.
    assert find_settled([replace(add, covered_by=0), delete]) == []


def test_a_snapshot_counts_for_what_it_saw_and_revives_and_invents_nothing() -> None:
    add = _one(1, SetEdit(("a",), (), ()), covered_by=1)
    snapshot = _one(2, SetSnapshot("", None, (SnapshotItems(add.name, ("a",)),)), bit=1)
    unseen = _one(3, SetEdit((), ("a",), naming((add.name,), 1)))
    assert _values(reduce_values([add, snapshot, unseen])) == {}, "a delete that the snapshot had not seen"
    again = _one(4, SetEdit(("a",), (), ()))
    assert list(_values(reduce_values([add, snapshot, unseen, again]))) == ["a"]
    lie = _one(5, SetSnapshot("", None, (SnapshotItems(again.name, ("a", "b")),)), bit=1)
    assert list(_values(reduce_values([add, lie, again]))) == ["a"], "names what it does not have in its past"
    assert find_false_snapshots([add, lie, again]) == [lie]
    assert find_false_snapshots([add, snapshot, unseen]) == []
    assert find_false_snapshots([add, replace(snapshot, body=SetSnapshot("", None, ()))]) != [], (
        "leaves one out"
    )
    two = replace(add, covered_by=3)
    other = _one(6, SetSnapshot("", None, ()), bit=2)
    assert _values(reduce_values([two, snapshot, other])) == {}, "one of two snapshots had seen it replaced"
    assert list(_values(reduce_values([two, snapshot, replace(other, body=SetSnapshot("b", None, ()))]))) == [
        "a"
    ]


def test_a_later_snapshot_has_the_last_word_also_where_the_earlier_one_is_erased_that_speaks_against_it() -> (
    None
):
    add = _one(1, SetEdit(("a",), (), ()), covered_by=3)
    earlier = _one(2, SetSnapshot("", None, ()), covered_by=2, bit=1)
    later = _one(3, SetSnapshot("", None, (SnapshotItems(add.name, ("a",)),)), bit=2)  # a lie, or not
    assert find_settled([add, earlier, later]) == [add, earlier]
    erased = replace(earlier, body=None, bit=0)
    whole = reduce_values([add, earlier, later])
    assert whole == reduce_values([replace(add, covered_by=2), erased, later])
    assert list(_values(whole)) == ["a"]
