"""The table of files: a window of a list costs what it holds, not what the branch has."""

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from storage.blobs.files import load_files
from tests.support.nodes import open_nodes


@pytest.mark.sqlite  # it reads SQLite's plan of the query
def test_a_window_of_files_is_read_in_order_without_sorting(tmp_path: Path) -> None:
    asked: list[tuple[str, dict[str, Any]]] = []

    def note(
        _connection: object, _cursor: object, statement: str, parameters: dict[str, Any], *_: object
    ) -> None:
        asked.append((statement, parameters))

    with open_nodes(tmp_path, "alice") as (alice,):
        alice.create_repo()
        with alice.replica.database.read() as connection:
            event.listen(connection, "before_cursor_execute", note)
            load_files(connection, alice.branch().num, 0, 100)
            event.remove(connection, "before_cursor_execute", note)
            [(statement, parameters)] = asked
            rows = connection.exec_driver_sql(" ".join(("EXPLAIN QUERY PLAN", statement)), parameters)
            plan = [str(row[-1]) for row in rows]
    assert any("files_branch (branch_num=? AND num>?)" in step for step in plan)
    assert not any("ORDER BY" in step for step in plan), plan
