"""A standalone Spark cluster on loopback, of a master and a worker in processes of their own, from the pip package."""

import contextlib
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pyspark

from analytics.session import find_java_home
from tests.support.machine import patience

_SPARK: Final = Path(pyspark.__file__).parent
_STARTS_SECONDS: Final = 30.0
_POLL_SECONDS: Final = 0.1
_SHORT_LIVED: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Options of each JVM: none lives long enough for its second compiler to pay."""


def environment(folder: Path) -> Mapping[str, str]:
    """What a driver needs to be reached by the executors of the cluster in this folder, and its settings there."""
    return {
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_CONF_DIR": str(folder),
        "JAVA_HOME": str(find_java_home()),
    }


@contextlib.contextmanager
def spark_cluster(folder: Path, *, cores: int = 2, memory: str = "1g") -> Iterator[str]:
    """The address of a running master that has one worker."""
    folder.mkdir()
    (folder / "spark-defaults.conf").write_text(
        # Else the master opens a second port, a fixed one, to anyone who wants to submit.
        "spark.master.rest.enabled false\n"
        # As many as an operator would set for a cluster of this size.
        f"spark.sql.shuffle.partitions {cores}\n"
        f"spark.driver.extraJavaOptions {_SHORT_LIVED}\n"
        f"spark.executor.extraJavaOptions {_SHORT_LIVED}\n"
    )
    with contextlib.ExitStack() as stack:
        common = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
        log = _start(stack, folder, "master.Master", *common)
        address = _said(log, r"Starting Spark master at (spark://\S+)")
        size = ["--cores", str(cores), "--memory", memory, "--work-dir", str(folder / "work")]
        log = _start(stack, folder, "worker.Worker", *common, *size, address)
        _said(log, r"(Successfully registered with master)")
        yield address


def kill_executors() -> int:
    """Kill the executors below this process; gives their number."""
    parents: dict[int, int] = {}
    executors = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):  # it has ended
                parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
                if b"CoarseGrainedExecutorBackend" in (folder / "cmdline").read_bytes():
                    executors.append(int(folder.name))

    def is_below(number: int) -> bool:
        while number and number != os.getpid():
            number = parents.get(number, 0)
        return number != 0

    ours = [number for number in executors if is_below(number)]
    for number in ours:
        os.kill(number, signal.SIGKILL)
    return len(ours)


def _start(stack: contextlib.ExitStack, folder: Path, name: str, *arguments: str) -> Path:
    """Start a daemon of Spark, which ends with the stack; gives its log."""
    log = folder / f"{name}.log"
    process = subprocess.Popen(
        [str(_SPARK / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", *arguments],
        stdout=stack.enter_context(log.open("wb")),
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        env={
            **os.environ,
            **environment(folder),
            "SPARK_HOME": str(_SPARK),
            "SPARK_DAEMON_JAVA_OPTS": _SHORT_LIVED,
        },
    )
    stack.callback(process.wait)
    stack.callback(process.terminate)
    return log


def _said(log: Path, pattern: str) -> str:
    deadline = time.monotonic() + patience(_STARTS_SECONDS)
    while (found := re.search(pattern, log.read_text())) is None:
        assert time.monotonic() < deadline, f"not in {log}: {pattern}\n{log.read_text()}"
        time.sleep(_POLL_SECONDS)  # the state of another process can only be polled for
    return found[1]
