"""One Spark for all tests that need it: it takes seconds to start, and gives every test the same answers."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from analytics.audit import audit
from analytics.engines import spark_engine
from analytics.reading.limits import SMALL_ROWS_MAX
from analytics.session import start_session


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    log: Path = tmp_path_factory.mktemp("spark") / "spark.log"
    session = start_session("local[2]", rows=SMALL_ROWS_MAX, log_path=log)
    yield session
    session.stop()


@pytest.fixture
def spark_for_commands(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> SparkSession:
    """The one session, for commands that run in this process and would start and stop their own."""
    monkeypatch.setattr(spark, "stop", lambda: None)
    for module in (spark_engine, audit):
        monkeypatch.setattr(module, "start_session", lambda *_, **__: spark)
    return spark
