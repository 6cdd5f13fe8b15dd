"""Tables as files beside the page: small ones as CSV, all on request, and none of an earlier analysis."""

import csv
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analytics.report import downloads
from analytics.report.downloads import write_downloads
from analytics.tables.definitions import TABLES
from ravel.exports.schema import text_id
from tests.support.exports import id_of


def _write(out: Path, name: str, *parts: list[dict[str, object]]) -> None:
    folder = out / "tables" / name
    folder.mkdir(parents=True, exist_ok=True)
    kinds: dict[str, pa.DataType] = {"bigint": pa.int64(), "binary": pa.binary(), "string": pa.string()}
    columns = [(column.name, kinds[column.kind]) for column in TABLES[name].columns]
    for number, rows in enumerate(parts):
        pq.write_table(
            pa.Table.from_pylist(rows, schema=pa.schema(columns)), folder / f"part-{number}.parquet"
        )


def test_small_tables_are_csv_and_large_ones_if_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(downloads, "CSV_ROWS_MAX", 2)
    row: dict[str, object] = {
        "branch_id": id_of("a branch"),
        "repo_name": None,
        "branch_name": "@x",
        "node": '=1+1,"a"\n',
        "lacking": 3,
        "since": None,
    }
    _write(tmp_path, "lags", [row], [row | {"node": "plain"}])
    _write(tmp_path, "unmerged", [{"branch_id": id_of("x"), "heads": 2, "oldest": 1, "newest": 2}] * 3)
    (tmp_path / "csv").mkdir()
    (tmp_path / "csv" / "unmerged.csv").write_text("of an earlier analysis")
    found = {one.name: (one.rows, one.has_csv) for one in write_downloads(tmp_path, with_all=False)}
    assert [*found] == [*TABLES]
    assert (found["lags"], found["unmerged"], found["feeds"]) == ((2, True), (3, False), (0, True))
    assert not (tmp_path / "csv" / "unmerged.csv").exists()
    with (tmp_path / "csv" / "lags.csv").open(newline="") as file:
        rows = [*csv.reader(file)]
    assert rows == [
        ["branch_id", "repo_name", "branch_name", "node", "lacking", "since"],
        [text_id(id_of("a branch")), "", "'@x", '\'=1+1,"a"\n', "3", ""],
        [text_id(id_of("a branch")), "", "'@x", "plain", "3", ""],
    ]
    write_downloads(tmp_path, with_all=True)
    assert len((tmp_path / "csv" / "unmerged.csv").read_text().splitlines()) == 4
