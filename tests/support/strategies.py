"""Hypothesis strategies: ids, bodies, commits and histories, shared by all property tests."""

from typing import TypeVar

from hypothesis import strategies as st

from protocol.formats.block import Reference
from protocol.formats.body import Body, BranchLink, BranchRoot, Join
from protocol.formats.content import Compaction, Imported, Post
from protocol.formats.document_kinds import (
    DictEdit,
    DictEntry,
    DictSnapshot,
    JsonEdit,
    JsonSnapshot,
    Replaced,
    SaidUpdate,
    SetEdit,
    SetSnapshot,
    SnapshotEntries,
    SnapshotItems,
    TextSnapshot,
    TextUpdate,
)
from protocol.formats.epochs import (
    EpochHand,
    EpochInit,
    EpochOpen,
    EpochStatement,
    GivenEpoch,
    HandedBox,
    Prekey,
)

ids = st.binary(min_size=32, max_size=32)
signatures = st.binary(min_size=64, max_size=64)
references = st.builds(Reference, ids, ids)
texts = st.text(max_size=200)

T = TypeVar("T")


def short_lists(items: st.SearchStrategy[T]) -> st.SearchStrategy[tuple[T, ...]]:
    """Tuples of up to four."""
    return st.lists(items, max_size=4).map(tuple)


replaced = short_lists(st.builds(Replaced, ids, short_lists(st.integers(0, 3))))
bodies: st.SearchStrategy[Body] = st.one_of(
    st.builds(Post, texts),
    st.builds(BranchRoot),
    st.builds(Join, ids, signatures),
    st.builds(
        Imported,
        st.text(min_size=1, max_size=20),
        st.text(max_size=20),
        st.integers(min_value=-(2**53) + 1, max_value=2**53 - 1),
        texts,
    ),
    st.builds(SetEdit, short_lists(st.text(max_size=20)), short_lists(st.text(max_size=20)), replaced),
    st.builds(
        DictEdit,
        short_lists(st.builds(DictEntry, st.text(max_size=20), texts)),
        short_lists(st.text(max_size=20)),
        replaced,
    ),
    st.builds(
        SetSnapshot,
        st.text(max_size=20),
        st.none() | st.text(max_size=20),
        short_lists(st.builds(SnapshotItems, ids, st.tuples(st.text(max_size=20)))),
    ),
    st.builds(
        DictSnapshot,
        st.text(max_size=20),
        st.none() | st.text(max_size=20),
        short_lists(
            st.builds(SnapshotEntries, ids, st.tuples(st.builds(DictEntry, st.text(max_size=20), texts)))
        ),
    ),
    st.builds(
        JsonEdit,
        short_lists(st.builds(DictEntry, st.text(max_size=20), texts)),
        short_lists(st.text(max_size=20)),
        replaced,
    ),
    st.builds(
        JsonSnapshot,
        st.text(max_size=20),
        st.none() | st.text(max_size=20),
        short_lists(
            st.builds(SnapshotEntries, ids, st.tuples(st.builds(DictEntry, st.text(max_size=20), texts)))
        ),
    ),
    st.builds(BranchLink, ids),
    st.builds(
        EpochInit,
        st.builds(EpochStatement, ids, ids, st.binary(min_size=72, max_size=72)),
        references,
        references,
        references,
    ),
    st.builds(EpochOpen, st.lists(st.builds(GivenEpoch, ids, ids), min_size=1, max_size=4).map(tuple)),
    st.builds(
        EpochHand,
        ids,
        ids,
        ids,
        st.lists(st.builds(HandedBox, ids, ids, st.none() | ids), min_size=1, max_size=4).map(tuple),
    ),
    st.builds(Prekey, ids),
    st.builds(Compaction, short_lists(ids)),
    st.builds(TextUpdate, st.binary(min_size=1, max_size=200), short_lists(ids)),
    st.builds(
        TextSnapshot,
        st.tuples(st.builds(SaidUpdate, ids, st.binary(min_size=1, max_size=200), short_lists(ids))),
    ),
)


def histories(commit_count_max: int = 12) -> st.SearchStrategy[list[list[int]]]:
    """DAGs as lists: each commit's acks are indexes of earlier commits, none implied by another; the first has none."""

    @st.composite
    def build(draw: st.DrawFn) -> list[list[int]]:
        count = draw(st.integers(min_value=1, max_value=commit_count_max))
        dag: list[list[int]] = [[]]
        past: list[set[int]] = [set()]
        for number in range(1, count):
            acks = draw(st.sets(st.integers(min_value=0, max_value=number - 1), min_size=1, max_size=3))
            implied = set[int]().union(*(past[ack] for ack in acks))
            dag.append(sorted(acks - implied))
            past.append(acks | implied)
        return dag

    return build()
