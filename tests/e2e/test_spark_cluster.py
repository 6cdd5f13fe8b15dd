"""The analysis on a cluster: a master, a worker and executors that are other processes than the driver."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from storage.commits.commits import count_commits
from tests.e2e.cluster import until
from tests.support.builders import World
from tests.support.exports import export_node
from tests.support.machine import patience
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
