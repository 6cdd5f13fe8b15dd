"""Whatever comes, leaves and moves: counted positions are those in a plain list, and a check finds every count right."""

import tempfile
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection

from protocol.ids import NO_COMMIT
from storage.check.check_derived import check_order
from storage.check.check_integrity import CheckFindings
from storage.commits.checkpoints import _count_up
from storage.commits.commits import load_rows, load_timeline
from storage.commits.position_index import FIRST, OrderKey, find_position, find_start
from storage.commits.void_marks import mark_void
from storage.engine.database import Database
from tests.support.rows import put_branch, put_commits, some_id


@pytest.fixture(scope="module")
def database() -> Iterator[Database]:
    with tempfile.TemporaryDirectory() as folder, closing(Database(Path(folder))) as database:
        yield database


@dataclass
class _Model:
    """A branch's commits by number: what a list knows of them."""

    keys: dict[int, OrderKey] = field(default_factory=dict)
    void: set[int] = field(default_factory=set)

    def shown(self) -> list[OrderKey]:
        """The timeline."""
        return sorted(key for num, key in self.keys.items() if num not in self.void)


class _Undone(Exception):
    """Has the transaction of one example leave nothing."""


_RANKS = st.lists(st.integers(min_value=0, max_value=12), min_size=1, max_size=20)


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(data=st.data(), steps=st.lists(st.sampled_from(["come", "come", "void", "move"]), max_size=8))
def test_positions_are_those_in_a_list(database: Database, data: st.DataObject, steps: list[str]) -> None:
    with (
        patch("storage.commits.position_index.COMMITS_PER_SPAN_MAX", 4),
        patch("storage.commits.position_index.SPANS_PER_SPAN_MAX", 4),
        suppress(_Undone),
        database.write() as connection,
    ):
        branch_num = put_branch(connection)
        model = _Model()
        for step in ["come", *steps]:
            if step == "come":
                ranks = data.draw(_RANKS)
                new = [(0, rank, some_id(1000 * len(model.keys) + at)) for at, rank in enumerate(ranks)]
                nums = put_commits(database, connection, branch_num, new)
                model.keys.update(zip(nums, new, strict=True))
                continue
            chosen = sorted(data.draw(st.sets(st.sampled_from(sorted(model.keys)))))
            if step == "void":
                for is_void in (True, False):
                    turned = [num for num in chosen if (num in model.void) != is_void]
                    mark_void(database, connection, branch_num, turned, is_void=is_void)
                model.void ^= set(chosen)
            else:
                by = 1 if data.draw(st.booleans()) else -1
                chosen = [num for num in chosen if model.keys[num][0] + by >= 0]
                _count_up(database, connection, branch_num, chosen, by)
                for num in chosen:
                    passed, rank, commit_id = model.keys[num]
                    model.keys[num] = (passed + by, rank, commit_id)
        _compare(connection, branch_num, model)
        raise _Undone  # else each example looks at the rows of all before it


def _compare(connection: Connection, branch_num: int, model: _Model) -> None:
    shown = model.shown()
    for key in [FIRST, (9, 0, NO_COMMIT), *model.keys.values()]:
        assert find_position(connection, branch_num, key) == sum(one < key for one in shown)
    for start in range(len(shown) + 2):
        for limit in (1, 7):
            rows = load_timeline(connection, branch_num, start, limit)
            found = [(row.passed, row.rank, row.commit_id) for row in rows]
            assert found == shown[start : start + limit]
    assert find_start(connection, branch_num, len(shown)) is None
    rows = list(load_rows(connection, [key[2] for key in shown]).values())
    assert len(rows) == len(shown)
    findings = CheckFindings()
    check_order(connection, findings)
    assert findings.problems == []
