"""A store's schema is compared letter by letter: what SQLite accepts may still not be what was made."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from storage.check.check_integrity import CheckFindings, inspect_pages
from storage.check.schema_check import find_altered
from storage.engine.database import Database, read_store
from tests.support.older_stores import make_older_store, older_is_known

pytestmark = pytest.mark.sqlite


def _altered(folder: Path) -> set[str]:
    with read_store(folder) as connection:
        return {name for name, _ in find_altered(connection)}


def test_a_new_store_is_as_it_is_made(tmp_path: Path) -> None:
    Database(tmp_path).close()
    assert _altered(tmp_path) == set()


@pytest.mark.slow
def test_a_store_of_an_older_ravel_is_as_migrations_make_it(tmp_path: Path) -> None:
    with older_is_known():
        make_older_store(tmp_path)
        Database(tmp_path).close()
        assert _altered(tmp_path) == set()
    assert _altered(tmp_path) == {"branches"}, (
        "without the migration it is another table than the one that is made"
    )


ALTERED = {
    "unique": ("branches", "(repo_num, branch_id)", "(repo_num, root_id)"),
    "not null": ("commits", "acks BLOB NOT NULL", "acks BLOB     NULL"),
    "primary key": ("heads", "PRIMARY KEY (topic_num, commit_id)", "PRIMARY KEY (topic_num, commit_ID)"),
    "index": ("commits_order", "passed", "Passed"),
}


@pytest.mark.parametrize("kind", ALTERED)
def test_an_altered_statement_is_named(tmp_path: Path, kind: str) -> None:
    name, before, after = ALTERED[kind]
    Database(tmp_path).close()
    with closing(sqlite3.connect(tmp_path / "ravel.sqlite")) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(
            "UPDATE sqlite_master SET sql = replace(sql, ?, ?) WHERE name = ?", (before, after, name)
        )
        assert connection.execute("SELECT changes()").fetchone() == (1,)
        connection.commit()
        (found,) = connection.execute("SELECT sql FROM sqlite_master WHERE name = ?", (name,)).fetchone()
        assert after in found, "it is altered"
    findings = CheckFindings()
    with read_store(tmp_path) as connection:
        inspect_pages(connection, findings)
    assert {problem.about for problem in findings.problems if problem.kind == "schema"} == {name}


def test_what_is_too_much_or_missing_is_named(tmp_path: Path) -> None:
    Database(tmp_path).close()
    with closing(sqlite3.connect(tmp_path / "ravel.sqlite")) as connection:
        connection.execute("DROP INDEX commits_feed")
        connection.execute("CREATE TRIGGER t AFTER INSERT ON commits BEGIN DELETE FROM commits; END")
    assert _altered(tmp_path) == {"commits_feed", "t"}
