"""On a standalone cluster: a master and a worker as processes of their own, which have nothing of Ravel but what is sent."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest
from blake3 import blake3

from analytics.report import text_id
from analytics.session import find_java_home
from tests.exports import Row, id_of, naive_order, write_export

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"


def _start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    environment = {**kept, "JAVA_HOME": str(find_java_home()), "SPARK_LOCAL_IP": "127.0.0.1"}
    environment["SPARK_WORKER_DIR"] = str(folder / "work")
    return subprocess.Popen(
        [str(SPARK_CLASS), *arguments],
        cwd=folder,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def _await(process: subprocess.Popen[str], pattern: str) -> str:
    assert process.stderr is not None
    lines = []
    for line in process.stderr:
        lines.append(line)
        if found := re.search(pattern, line):
            return found[0]
    raise AssertionError("".join(lines))


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    package = "org.apache.spark.deploy"
    processes = []
    try:
        # Ports of 0 are any that are free.
        processes.append(
            _start(tmp_path, f"{package}.master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        )  # fmt: skip
        address = _await(processes[0], r"spark://127\.0\.0\.1:[1-9]\d*")
        processes.append(
            _start(tmp_path, f"{package}.worker.Worker", "--host", "127.0.0.1", "--webui-port", "0",
                   "--cores", "2", "--memory", "2g", address)
        )  # fmt: skip
        _await(processes[1], "Successfully registered with master")
        yield address
    finally:
        for process in reversed(processes):
            process.terminate()
            process.communicate()


def test_a_cluster_orders_small_branches_and_giants_as_defined(tmp_path: Path, master: str) -> None:
    rows = [Row(f"{branch}/0", branch=branch) for branch in ("a", "b", "giant", "forged giant")]
    rows += [Row(f"{branch}/{n}", (f"{branch}/0",), branch) for branch in ("a", "b") for n in range(1, 5)]
    rows += [Row(f"giant/{n}", (f"giant/{n - 1}",), "giant") for n in range(1, 40)]
    rows += [Row(f"forged giant/{n}", (f"forged giant/{n - 1}",), "forged giant") for n in range(1, 40)]
    rows[-1] = Row("forged giant/39", ("forged giant/38",), "forged giant", rank=7)
    export = write_export(tmp_path / "export", rows)
    command = [sys.executable, "-P", "-m", "analytics", str(export), "--out", str(tmp_path / "out"), "--json"]
    done = subprocess.run(
        [*command, "--master", master, "--giant-from", "30"],
        env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout, done.stderr
    result = json.loads(done.stdout)
    assert (result["commits"], result["mismatches"], result["quarantined"]) == (len(rows), 1, {})
    assert json.loads((tmp_path / "out" / "digests.json").read_bytes()) == {
        text_id(id_of(branch)): {
            "digest": blake3(b"".join(map(id_of, names))).hexdigest(),
            "commits": len(names),
        }
        for branch, names in naive_order(rows).items()
    }
