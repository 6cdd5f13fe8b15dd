"""On a standalone cluster: a master and a worker as processes of their own, which have nothing of Ravel but what is sent."""

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pyspark
import pytest
from blake3 import blake3

from analytics.session import find_java_home
from tests.exports import Row, id_of, naive_order, write_export

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

ORDER = """
import json, sys
from pathlib import Path
from analytics.export_reader import load_commits, read_export
from analytics.linearize import digest_orders, linearize
from analytics.session import start_session
master, log, export = sys.argv[1:]
spark = start_session(master, shuffle_partitions=2, log_path=Path(log))
commits = load_commits(spark, read_export(Path(export))).persist()
rows = digest_orders(linearize(commits, 30)).collect()
print(json.dumps({bytes(row["branch_id"]).hex(): row["digest"] for row in rows}))
spark.stop()
"""

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
    """The first match in what a process logs; what it logs later is read and dropped, so that it never waits for us."""
    assert process.stderr is not None
    lines = []
    for line in process.stderr:
        lines.append(line)
        if found := re.search(pattern, line):
            threading.Thread(target=_drop, args=[process.stderr]).start()
            return found[0]
    raise AssertionError("".join(lines))


def _drop(stream: IO[str]) -> None:
    with stream:
        for _ in stream:
            pass


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
            process.wait()


def test_a_cluster_orders_small_branches_and_giants_as_defined(tmp_path: Path, master: str) -> None:
    """The giant's ranks are false, so that it is ranked in waves: the way with the most code to send."""
    rows = [Row(f"{branch}/0", branch=branch) for branch in ("a", "b", "giant")]
    rows += [Row(f"{branch}/{n}", (f"{branch}/0",), branch) for branch in ("a", "b") for n in range(1, 5)]
    rows += [Row(f"giant/{n}", (f"giant/{n - 1}",), "giant", rank=7) for n in range(1, 40)]
    export = write_export(tmp_path / "export", rows)
    arguments = [master, str(tmp_path / "spark.log"), str(export)]
    done = subprocess.run(
        [sys.executable, "-c", ORDER, *arguments],
        env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        id_of(branch).hex(): blake3(b"".join(map(id_of, names))).hexdigest()
        for branch, names in naive_order(rows).items()
    }
