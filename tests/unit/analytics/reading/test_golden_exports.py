"""Exports of every schema version, written by the Ravel of their time, are read and give the timelines of their nodes."""

import base64
import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from analytics.order.linearize import digest_orders, linearize
from analytics.reading.export_reader import load_commits
from ravel.exports.schema import SCHEMA_VERSION
from tests.support.read_exports import read_export

GOLDEN = Path(__file__).with_name("golden")
FOLDERS = sorted(GOLDEN.glob("schema-*"))


def test_there_is_one_of_every_version() -> None:
    versions = [read_export(folder).schema_version for folder in FOLDERS]
    assert versions == list(range(1, SCHEMA_VERSION + 1))


@pytest.mark.extended
def test_their_timelines_are_those_of_the_nodes_that_wrote_them(spark: SparkSession) -> None:
    # All at once: Spark takes seconds for each job, and exports of different versions are read together by users too.
    rows = digest_orders(linearize(load_commits(spark, *map(read_export, FOLDERS)))).collect()
    found = {
        base64.b32encode(bytes(row["branch_id"])).decode().rstrip("=").lower(): {
            "digest": row["digest"],
            "commits": row["commits"],
        }
        for row in rows
    }
    expected = [json.loads((folder / "digests.json").read_bytes()) for folder in FOLDERS]
    assert found == {branch: stated for one in expected for branch, stated in one.items()}
    assert len(found) == sum(map(len, expected)), "no two have a branch in common"
