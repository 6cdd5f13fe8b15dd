"""Definitions of tables: what a file must say, and that all of them hang together."""

import re

import pytest

from analytics.order.branch_tasks import FAULTS
from analytics.tables.definitions import SOURCES, TABLES, VIEWS, BadDefinition, parse

GOOD = "-- Rows: branch\n-- How many.\n--\n-- commits bigint (ms): commits\nSELECT commits\nFROM ordered\n"


def test_all_names_that_definitions_read_are_known_and_none_is_hidden() -> None:
    known = {*SOURCES, *TABLES, *VIEWS}
    assert not TABLES.keys() & VIEWS.keys()
    for definition in (*TABLES.values(), *VIEWS.values()):
        assert definition.reads <= known, definition.name
        # Else an engine would take the name within the query for that of the relation.
        assert not set(re.findall(r"(?:\bWITH|,)\s+(\w+) AS \(", definition.query)) & known, definition.name
        definition.fill({"start": "0", "end": "1", "bucket": "1"})


def test_each_fault_has_a_column_of_its_own() -> None:
    names = [column.name for column in TABLES["faults"].columns]
    assert {fault.replace(" ", "_") for fault in FAULTS.values()} <= set(names)
    assert all(f"fault = '{fault}'" in TABLES["faults"].query for fault in FAULTS.values())


def test_a_definition_says_what_its_rows_and_columns_are() -> None:
    good = parse("good", GOOD)
    assert (good.rows, good.meaning, sorted(good.reads)) == ("branch", "How many.", ["ordered"])
    assert [(one.name, one.kind, one.unit, one.meaning) for one in good.columns] == [
        ("commits", "bigint", "ms", "commits")
    ]
    assert good.fill().startswith("SELECT CAST(commits AS bigint) AS commits FROM (")


@pytest.mark.parametrize(
    "bad",
    [
        GOOD.replace("-- Rows: branch\n", ""),
        GOOD.replace("-- How many.\n", ""),
        GOOD.replace("-- commits bigint (ms): commits\n", ""),
        GOOD.replace("bigint", "varchar"),
        GOOD.partition("SELECT")[0],
    ],
)
def test_a_file_that_lacks_a_part_is_named(bad: str) -> None:
    with pytest.raises(BadDefinition, match=r"bad\.sql"):
        parse("bad", bad)
