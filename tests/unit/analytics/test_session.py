"""Settings of Spark that a user has made stay as they are, whichever way they were made."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from analytics import session
from analytics.session import find_master, runs_here, settings_with

OURS = {"spark.driver.memory": "2g", "spark.ui.enabled": "false", "spark.sql.session.timeZone": "UTC"}


def _settings(conf: dict[str, str]) -> dict[str, str]:
    return settings_with(OURS, session._given_settings(conf), conf)


def test_settings_of_a_run_and_of_spark_defaults_go_before_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    (tmp_path / "spark-defaults.conf").write_text(
        "# spark.ui.enabled false\n\nspark.ui.enabled   true\nspark.driver.memory=5g\n"
        "spark.sql.session.timeZone Asia/Tokyo\nspark.master spark://here:7077\n",
        encoding="utf-8",
    )
    conf = {"spark.driver.memory": "9g", "spark.executor.cores": "4", "spark.sql.session.timeZone": "PST"}
    # Spark itself reads what stands in its file.
    assert _settings({}) == {}
    assert _settings(conf) == conf
    assert find_master(None) == "spark://here:7077"
    assert find_master("local[2]") == "local[2]"
    assert find_master(None, {"spark.master": "yarn"}) == "yarn"


@pytest.mark.parametrize("content", [None, b"\xff\xfe", b"alone\n"], ids=["none", "no text", "no pairs"])
def test_without_settings_of_a_user_ours_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes | None
) -> None:
    monkeypatch.delenv("SPARK_CONF_DIR", raising=False)
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    if content is not None:
        (tmp_path / "conf").mkdir()
        (tmp_path / "conf" / "spark-defaults.conf").write_bytes(content)
    assert _settings({}) == OURS
    assert find_master(None) == "local[*]"


def test_settings_of_spark_submit_are_those_of_its_jvm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    monkeypatch.setattr(session, "SparkContext", SimpleNamespace(_ensure_initialized=lambda: None))
    stated = [("spark.master", "spark://there:7077"), ("spark.driver.memory", "7g")]
    monkeypatch.setattr(session, "SparkConf", lambda: SimpleNamespace(getAll=lambda: stated))
    assert find_master(None) == "spark://there:7077"
    assert _settings({}) == {"spark.ui.enabled": "false", "spark.sql.session.timeZone": "UTC"}


@pytest.mark.parametrize(
    "master, is_here",
    [
        ("local", True),
        ("local[8]", True),
        ("local-cluster[2,1,1024]", False),
        ("spark://x:7077", False),
        ("yarn", False),
    ],
)
def test_tasks_run_here_where_the_master_is_this_process(master: str, is_here: bool) -> None:
    assert runs_here(master) is is_here


def test_few_rows_are_planned_for_few_tasks_on_a_cluster_too() -> None:
    here, elsewhere = (session.settings_for(100_000, is_local=is_local) for is_local in (True, False))
    assert here == elsewhere
    assert here["spark.sql.shuffle.partitions"] == "1"
    assert session.settings_for(None, is_local=True).keys() == {"spark.sql.shuffle.partitions"}
    assert session.settings_for(None, is_local=False) == {}, "as Spark is set up there"
    elsewhere = session.settings_for(130_000, is_local=False)
    assert elsewhere == {"spark.sql.shuffle.partitions": "4"}
    several = [session.partitions_for(rows * 1_000_000, is_local=False) for rows in (2, 20, 300, 10_000)]
    assert several == [40, 200, 300, 2_000]


def test_the_cause_of_an_error_of_spark_says_all_that_is_said_of_it() -> None:
    told = """An error occurred while calling o96.collect.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 2 in stage 0.0 failed 4 times
java.io.IOException: Cannot run program "/no/python3": error=2, No such file or directory
\tat java.base/java.lang.ProcessBuilder.start(ProcessBuilder.java:1143)
Caused by: java.io.IOException: error=2, No such file or directory
\tat java.base/java.lang.ProcessImpl.forkAndExec(Native Method)"""
    assert session.cause_of(Exception(told)) == (
        'java.io.IOException: Cannot run program "/no/python3": error=2, No such file or directory'
    )
    other = "java.io.IOException: no\nCaused by: java.lang.Error: disk full"
    assert session.cause_of(Exception(other)) == "Caused by: java.lang.Error: disk full"


@pytest.mark.parametrize("seen_by", [2, 1])
def test_a_folder_that_not_all_machines_see_is_refused(tmp_path: Path, seen_by: int) -> None:
    asked: list[list[bool]] = []

    class Rows(list[int]):
        def map(self, look: Any) -> SimpleNamespace:  # noqa: ANN401  # a function
            asked.append([look(number) and number < seen_by for number in self])
            return SimpleNamespace(collect=lambda: asked[-1])

    context = SimpleNamespace(
        defaultParallelism=2, setJobDescription=lambda _: None, parallelize=lambda numbers, _: Rows(numbers)
    )
    spark: Any = SimpleNamespace(sparkContext=context)
    if seen_by == 2:
        session.check_seen(spark, tmp_path)
    else:
        with pytest.raises(session.FolderUnseen, match=f"do not see {tmp_path}"):
            session.check_seen(spark, tmp_path)
    assert asked == [[True, seen_by == 2]]
    assert [*tmp_path.iterdir()] == [], "the mark is gone"
