"""Texts of branches as rows: which are read next, and how many are to be."""

from contextlib import closing
from pathlib import Path

from sqlalchemy import Connection

from storage.commits.search_texts import DueText, count_due, keep_content, load_due, mark_texts_due
from storage.engine.database import Database
from storage.engine.id_keys import pack_nums
from tests.support.rows import put_branch


def _due(connection: Connection) -> list[DueText]:
    found: list[DueText] = []
    while one := load_due(connection, found[-1].branch_num if found else 0):
        found.append(one)
    return found


def test_texts_are_due_that_were_noted_and_looked_at_that_were_read_in_part(tmp_path: Path) -> None:
    with closing(Database(tmp_path)) as database, database.write() as connection:
        whole, part, noted = (put_branch(connection) for _ in range(3))
        mark_texts_due(connection, [whole, part, noted])
        assert keep_content(connection, DueText(whole, 1), pack_nums([whole]), b"text")
        assert keep_content(connection, DueText(part, 1), pack_nums([]), b"some of it")
        assert _due(connection) == [DueText(part, 0), DueText(noted, 1)]
        assert (count_due(connection), count_due(connection, [whole, part])) == (1, 0)
        mark_texts_due(connection, [part])
        assert not keep_content(connection, DueText(part, 0), pack_nums([whole, part]), b"all of it")
        assert keep_content(connection, DueText(part, 1), pack_nums([whole, part]), b"all of it")
        assert _due(connection) == [DueText(noted, 1)]
