"""One Spark for all tests that need it: it takes seconds to start, and gives every test the same answers."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from analytics.session import start_session


@pytest.fixture(scope="session", autouse=True)
def _light_java() -> Iterator[None]:
    """Java as it is quickest for jobs over a few rows: most of its time went into compiling what then runs once.

    In the environment, so that it holds for the commands that tests start too.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        yield


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    log: Path = tmp_path_factory.mktemp("spark") / "spark.log"
    session = start_session("local[2]", shuffle_partitions=2, log_path=log)
    # Java that is written and compiled for each query pays from millions of rows on; the commands' own runs have it.
    session.conf.set("spark.sql.codegen.wholeStage", "false")
    yield session
    session.stop()
