"""What the engine of Spark takes in a session and in this process, and lets go of: with a session that computes nothing."""

from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import duckdb
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StructField, StructType

from analytics.engines.spark_engine import SparkEngine
from analytics.engines.spark_tables import collect_together


@pytest.fixture
def session() -> MagicMock:
    """A session in which every query gives one row of one table."""
    session = MagicMock(spec=SparkSession)
    found = session.sql.return_value
    found.schema = StructType([StructField("cell", LongType())])
    found.coalesce.return_value.toArrow.return_value = pa.table({"place": [0], "bigint_1": [7]})
    return session


def test_a_closed_engine_keeps_no_database(
    session: MagicMock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[duckdb.DuckDBPyConnection] = []
    connect = duckdb.connect

    def keep(**options: Any) -> duckdb.DuckDBPyConnection:  # noqa: ANN401  # those of `connect`
        opened.append(connect(**options))
        return opened[-1]

    monkeypatch.setattr(duckdb, "connect", keep)
    engine = SparkEngine([], tmp_path, spark=session)
    engine.write({"numbers": "SELECT 7 AS cell"})
    assert engine.rows("SELECT cell FROM numbers") == [{"cell": 7}]
    (database,) = opened
    engine.close()
    with pytest.raises(duckdb.ConnectionException):
        database.execute("SELECT 1")
    session.stop.assert_not_called()


def test_tables_that_are_collected_at_the_same_time_do_not_meet(session: MagicMock) -> None:
    table = MagicMock(spec=DataFrame, schema=StructType([StructField("cell", LongType())]))
    for _ in range(2):
        assert collect_together(session, {"numbers": table})["numbers"].to_pylist() == [{"cell": 7}]
    made = [call.args[0] for call in table.createOrReplaceTempView.call_args_list]
    assert len(set(made)) == 2, "a run would replace the views of another"
    assert [call.args[0] for call in session.catalog.dropTempView.call_args_list] == made
    for name, query in zip(made, session.sql.call_args_list, strict=True):
        assert query.args[0].endswith(f"FROM {name}")
