"""The analysis on a cluster: a master, a worker and executors that are other processes than the driver."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pyspark
import pytest

from analytics import analyze
from analytics.tables.definitions import TABLES
from storage.commits.commits import count_commits
from tests.e2e.cluster import until
from tests.support.builders import World
from tests.support.exports import export_node
from tests.support.machine import patience
from tests.support.object_store import object_store, options_of
from tests.support.spark_cluster import environment, kill_executors, spark_cluster

pytestmark = [pytest.mark.slow, pytest.mark.extended]


def test_a_cluster_gives_the_nodes_own_order_of_a_giant_and_of_others_though_an_executor_is_lost(
    tmp_path: Path,
) -> None:
    world = World(tmp_path / "world")
    world.tell_story()
    world.write("c <- last")
    branches = (world.branch, world.replica.root_branch(world.repo))
    with world.replica.database.read() as connection:
        small, large = sorted(count_commits(connection, branch.num) for branch in branches)
    assert small < large
    export_node(world.replica.database, tmp_path / "export", "node", 1_700_000_000)
    world.close()
    out, folder = tmp_path / "analysis", tmp_path / "cluster"
    with spark_cluster(folder) as master:
        options = ["--out", str(out), "--master", master, "--giant-from", str(large), "--json"]
        driver = subprocess.Popen(
            [sys.executable, "-P", "-m", "analytics", str(tmp_path / "export"), *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **environment(folder)},
        )
        try:
            # Once the giant's ranges are kept, in the midst of its order.
            until(
                lambda: driver.poll() is not None or any(out.glob(".spark-order/rows-*/*.parquet")),
                "the executor has begun",
                120,
            )
            killed = kill_executors()
            stdout, stderr = driver.communicate(timeout=patience(300))
        finally:
            driver.kill()
            driver.wait()
    assert driver.returncode == 0, f"{stdout}\n{stderr}"
    assert killed == 1
    assert json.loads(stdout)["mismatches"] == 0
    assert (out / "report.html").exists()
    assert not [*out.glob(".spark-*")]
    (application,) = (folder / "work").glob("app-*")  # it ran on the worker
    assert {one.name for one in application.iterdir()} == {"0", "1"}, (
        "a second executor went on for the first"
    )


_AS_LARGE = """
import sys
from analytics.reading import limits
limits.SMALL_ROWS_MAX = 10
from analytics.__main__ import main
sys.exit(main())
"""
"""The command, which takes this export for a large one."""
_FOR_FEW_ROWS = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}
"""Settings of a user, which stay so: what Spark plans for large exports takes minutes."""


def test_by_spark_submit_with_an_object_store_and_nothing_shared_the_tables_are_those_of_the_local_engine(
    tmp_path: Path,
) -> None:
    world = World(tmp_path / "world")
    world.tell_story()
    branches = (world.branch, world.replica.root_branch(world.repo))
    with world.replica.database.read() as connection:
        large = max(count_commits(connection, branch.num) for branch in branches)
    export_node(world.replica.database, tmp_path / "export", "node", 1_700_000_000)
    world.close()
    script, folder, theirs = tmp_path / "submit.py", tmp_path / "cluster", tmp_path / "theirs"
    script.write_text(_AS_LARGE)
    submit = str(Path(pyspark.__file__).parent / "bin" / "spark-submit")
    with object_store(tmp_path / "server.log", "ravel") as address, spark_cluster(folder) as master:
        store = {"FSSPEC_S3": options_of(address)}
        _copy(store, str(tmp_path / "export"), "s3://ravel/export")
        conf = _FOR_FEW_ROWS | {"spark.executorEnv.XDG_CACHE_HOME": str(tmp_path / "of-worker")}
        arguments = ["s3://ravel/export", "--out", "s3://ravel/out", "--giant-from", str(large), "--json"]
        done = subprocess.run(
            [
                *(submit, "--master", master, *(f"--conf={key}={value}" for key, value in conf.items())),
                *(str(script), *arguments),
            ],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
            env={
                **os.environ,
                **environment(folder),
                **store,
                "XDG_CACHE_HOME": str(tmp_path / "of-driver"),
                "PYSPARK_PYTHON": sys.executable,
            },
        )
        assert done.returncode == 0, done.stderr
        _copy(store, "s3://ravel/out", str(theirs))
    told = json.loads(done.stdout[done.stdout.index("{") :])  # spark-submit puts both streams into one
    assert (told["mismatches"], told["report"]) == (0, "s3://ravel/out/report.html")
    gets = re.findall(r"GET /ravel/export/(\S+\.parquet)", (tmp_path / "server.log").read_text())
    assert len(gets) == len(set(gets)) > 0, "a part is fetched once, however often it is read"
    assert not (tmp_path / "of-driver" / "ravel" / "parts").exists(), "and by the driver never"
    assert not (tmp_path / "spark-warehouse").exists()
    ours = tmp_path / "ours"
    analyze.run(tmp_path / "export", ours, engine="local", progress=lambda _: None)
    assert (theirs / "digests.json").read_bytes() == (ours / "digests.json").read_bytes()
    for name in TABLES:
        rows = [sorted(map(repr, _rows(out / "tables" / name))) for out in (theirs, ours)]
        assert rows[0] == rows[1], name


def _copy(store: Mapping[str, str], source: str, target: str) -> None:
    # Of a process of its own: the driver leaves a thread with a loop and open connections behind.
    code = "import sys, fsspec.generic as g; g.rsync(sys.argv[1], sys.argv[2])"
    urls = [url if "://" in url else Path(url).as_uri() for url in (source, target)]
    subprocess.run([sys.executable, "-P", "-c", code, *urls], check=True, env={**os.environ, **store})


def _rows(folder: Path) -> list[Any]:
    return [row for part in sorted(folder.glob("*.parquet")) for row in pq.read_table(part).to_pylist()]
