"""A process that asks for figures by Spark Connect: `python -m tests.support.connect_figures EXPORT OUT`.

A server of Spark Connect cannot stand beside the session of other tests, so this one has a process of its own. It listens on
a port that the system chooses.
"""

import os
import sys
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq
from pyspark import SparkContext
from pyspark.sql import SparkSession

import analytics.frames as figures
from analytics.order.branch_tasks import LargeBranchRefused
from ravel.exports.spark_source import register

_SERVER: Final = (
    "--conf spark.ui.enabled=false --conf spark.driver.bindAddress=127.0.0.1 --conf spark.driver.host=127.0.0.1 "
    "pyspark-shell"
)
_SESSION: Final = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.adaptive.enabled": "false",
}
FIGURES: Final = ("widths", "faults")


def ask(export: str, out: Path) -> None:
    """Write the order and FIGURES as Parquet. Prints the session's module, and what is said of too large a branch."""
    builder: Any = SparkSession.Builder().remote("local[2]")
    for name, value in _SESSION.items():
        builder = builder.config(name, value)
    spark: SparkSession = builder.getOrCreate()
    print(type(spark).__module__)
    register(spark)
    commits = spark.read.format("ravel").load(export)
    voids = spark.read.format("ravel").option("table", "voids").load(export)
    order = figures.order(commits, voids)
    for name, frame in {"order": order, **{name: figures.table(name, order) for name in FIGURES}}.items():
        rows: Any = frame.toArrow()
        pq.write_table(rows, out / f"{name}.parquet")
    try:
        figures.order(commits, voids, giant_from=2)
    except LargeBranchRefused as error:
        print(error)
    spark.stop()


if __name__ == "__main__":
    os.environ["PYSPARK_SUBMIT_ARGS"] = _SERVER
    os.environ["PYSPARK_PYTHON"] = sys.executable
    SparkContext._ensure_initialized()
    # Server and client then take a port that the system chooses. Java has started without it: with it, Spark fails where a
    # source does not state its size.
    os.environ["SPARK_TESTING"] = "1"
    ask(sys.argv[1], Path(sys.argv[2]))
