"""Any history with voids and checkpoints, read in any windows: copies that follow edits alone have the timeline."""

import tempfile
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from node.ingest.replica import Replica
from protocol.ids import CommitId
from storage.commits.edits import START, Cursor, find_edit_positions, load_edits
from storage.commits.void_marks import load_judged, mark_void
from storage.repos.repos import Branch
from tests.support.builders import STORE_KEY, World, give, timeline
from tests.support.replicas import ListCopy, TableCopy, follow
from tests.support.strategies import histories

# Each example fills stores: 200 of them would take minutes.
_SLOW_STORE = settings(
    max_examples=min(20, settings().max_examples),
    suppress_health_check=[HealthCheck.too_slow],
    deadline=None,
)


@dataclass
class _Reader:
    """Follows a branch in windows of one size, in a list and in a table."""

    limit: int
    table: TableCopy
    copy: ListCopy = field(default_factory=ListCopy)
    cursor: Cursor = START
    plain: list[bytes] = field(default_factory=list)
    """Kept by positions alone."""

    def read(self, replica: Replica, branch: Branch, acks: dict[CommitId, tuple[CommitId, ...]]) -> bool:
        """One window; whether there is more."""
        with replica.database.read() as connection:
            window = load_edits(connection, branch.num, self.cursor, self.limit)
            positions = find_edit_positions(connection, branch.num, window)
        assert len(window.edits) <= self.limit
        assert positions is not None
        self.plain = [] if window.is_reset else self.plain
        for edit, position in zip(window.edits, positions, strict=True):
            if position.before is not None:
                assert self.plain.pop(position.before) == edit.commit_id
            if position.after is not None:
                assert position.after <= len(self.plain)
                self.plain.insert(position.after, edit.commit_id)
        follow([self.copy, self.table], window, acks)
        self.cursor = window.next
        return window.has_more


@pytest.mark.slow
@pytest.mark.timeout(300)  # whole stores, opened again and again
@_SLOW_STORE
@given(dag=histories(8), kept=st.sampled_from([1, 4, 1000]), data=st.data())
def test_copies_are_kept_right_by_nothing_but_edits(
    dag: list[list[int]], kept: int, data: st.DataObject
) -> None:
    checkpoints = data.draw(st.sets(st.integers(min_value=0, max_value=len(dag) - 1), max_size=3))
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(World(Path(folder) / "world")) as world,
        patch("storage.commits.edits.CHANGES_KEPT_MAX", kept),
        patch("storage.commits.position_index.COMMITS_PER_SPAN_MAX", 4),
        closing(TableCopy()) as table,
        closing(TableCopy()) as late_table,
    ):
        world.name_quorum()
        items = []
        for number, acks in enumerate(dag):
            write = world.checkpoint_one if number in checkpoints else world.write_one
            items.append(write(str(number), [str(ack) for ack in acks]))
        ids = [world.commits[str(number)].commit_id for number in range(len(dag))]
        root = world.branch.facts.root_id
        graph = {ids[number]: tuple(ids[ack] for ack in acks) or (root,) for number, acks in enumerate(dag)}
        replica, branch = world.copy()
        reader = _Reader(data.draw(st.integers(min_value=1, max_value=8)), table)
        arriving = data.draw(st.permutations(items))
        while arriving:
            match data.draw(st.sampled_from(["arrive", "arrive", "void", "read", "restart"])):
                case "arrive":
                    size = data.draw(st.integers(min_value=1, max_value=len(arriving)))
                    give(replica, arriving[:size])
                    arriving = arriving[size:]
                case "void":
                    _turn(replica, branch, data.draw(st.sets(st.sampled_from(ids))))
                case "read":
                    reader.read(replica, branch, graph)
                case _:
                    replica.close()
                    replica = Replica(replica.database.folder, STORE_KEY)
        _turn(replica, branch, data.draw(st.sets(st.sampled_from(ids))))
        late = _Reader(3, late_table)
        for one in (reader, late):
            while one.read(replica, branch, graph):
                pass
            assert one.plain == one.copy.ids() == one.table.ids() == timeline(replica, branch)
            assert not one.read(replica, branch, graph), "and then there is nothing"
        replica.close()


def _turn(replica: Replica, branch: Branch, ids: set[CommitId]) -> None:
    """Let those of these commits that are here be void, or void no more."""
    with replica.database.write() as connection:
        judged = load_judged(connection, branch.num, sorted(ids))
        for is_void in (True, False):
            nums = [one.num for one in judged if one.is_void != is_void]
            if nums:
                mark_void(replica.database, connection, branch.num, nums, is_void=is_void)
