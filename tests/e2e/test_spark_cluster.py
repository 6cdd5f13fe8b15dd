"""The analysis on a cluster: a master, a worker and executors that are other processes than the driver."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from storage.commits.commits import count_commits
from tests.support.builders import World
from tests.support.exports import export_node
from tests.support.spark_cluster import environment, spark_cluster

pytestmark = [pytest.mark.slow, pytest.mark.extended]


def test_a_cluster_gives_the_nodes_own_order_of_a_giant_and_of_others(tmp_path: Path) -> None:
    world = World(tmp_path / "world")
    world.tell_story()
    branches = (world.branch, world.replica.root_branch(world.repo))
    with world.replica.database.read() as connection:
        small, large = sorted(count_commits(connection, branch.num) for branch in branches)
    assert small < large
    export_node(world.replica.database, tmp_path / "export", "node", 1_700_000_000)
    world.close()
    out, folder = tmp_path / "analysis", tmp_path / "cluster"
    with spark_cluster(folder) as master:
        options = ["--out", str(out), "--master", master, "--giant-from", str(large), "--json"]
        done = subprocess.run(
            [sys.executable, "-P", "-m", "analytics", str(tmp_path / "export"), *options],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, **environment(folder)},
        )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert json.loads(done.stdout)["mismatches"] == 0
    assert (out / "report.html").exists()
    assert len(list((folder / "work").glob("app-*"))) == 1, "it ran on the worker"
