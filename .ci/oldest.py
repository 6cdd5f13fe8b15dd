"""Reads exports as each reader does, and fails where one gives other rows: `python .ci/oldest.py SAMPLE EXPORT`."""

import sys
from pathlib import Path

import duckdb
import pandas
import polars
import pyarrow

import ravel

sample, export = map(Path, sys.argv[1:])
opened = ravel.open_export([sample / "ann", sample / "ben"])
for name in opened.tables:
    table = opened.table(name)
    rows = table.arrow().num_rows
    text = opened.table(name, text_ids=True)
    found = [len(table.pandas()), len(table.polars()), len(table.duckdb().fetchall()), len(text.pandas())]
    assert found == [rows] * 4, (name, rows, found)
some = opened.table("commits", columns=["author", "size", "time_utc"])
sums = [some.pandas()["size"].sum(), some.polars()["size"].sum(), some.duckdb().sum("size").fetchall()[0][0]]
assert len(set(map(int, sums))) == 1, sums
assert str(some.pandas()["time_utc"].dtype.tz) == "UTC"
connection = duckdb.connect()
connection.execute("SET VARIABLE export = ?", [str(export)])
connection.execute((export / "views.sql").read_text())
assert connection.sql("SELECT count(*) FROM commits_text").fetchall() == [(24,)]
for module in (pandas, polars, duckdb, pyarrow):
    print(module.__name__, module.__version__)
