"""Both engines give the same tables, digests and page: one definition of each figure."""

import tempfile
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from pyspark.sql import SparkSession

from analytics import analyze
from analytics.reading import export_reader
from analytics.tables.definitions import TABLES
from tests.support.drawn_exports import exports, write

pytestmark = [pytest.mark.slow, pytest.mark.extended]


def _rows(out: Path, name: str) -> tuple[list[str], list[tuple[str, str]]]:
    table = pq.read_table(out / "tables" / name)
    return sorted(map(repr, table.to_pylist())), [(field.name, str(field.type)) for field in table.schema]


@settings(max_examples=2, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(exports())
def test_both_engines_agree_row_by_row_on_whatever_is_exported(
    spark: SparkSession, told: list[dict[str, Any]]
) -> None:
    _check_engines(spark, told)


@settings(max_examples=1, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(exports())
def test_both_engines_agree_on_what_is_counted_as_large_exports_are(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, told: list[dict[str, Any]]
) -> None:
    monkeypatch.setattr(export_reader, "SMALL_ROWS_MAX", -1)
    _check_engines(spark, told)


def _check_engines(spark: SparkSession, told: list[dict[str, Any]]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        first, *merge = write(folder, told)
        results = {
            engine: analyze.run(
                first,
                folder / engine,
                merge=merge,
                progress=lambda _: None,
                engine=engine,
                spark=spark,
                with_every_tangle=True,
            )
            for engine in ("spark", "local")
        }
        for table in TABLES:
            ours, theirs = (_rows(folder / engine, table) for engine in ("local", "spark"))
            assert ours == theirs, table
        for file in ("digests.json", "report.html"):
            assert (folder / "spark" / file).read_bytes() == (folder / "local" / file).read_bytes(), file
        found = [(one.commits, one.branches, one.mismatches, one.quarantined) for one in results.values()]
        assert found[0] == found[1]
