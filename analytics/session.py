"""Starts a Spark session with settings for an analysis, where the user has not set others: finds Java, logs to a file.

What Spark's JVM prints goes to a log file, so that a person sees progress and results only; errors reach Python as
exceptions.
"""

import contextlib
import os
import pwd
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from threading import Thread
from types import MappingProxyType
from typing import Any, Final

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # it has no types
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from analytics.java_archive import archive_options
from analytics.reading.limits import SMALL_ROWS_MAX

JAVA_VERSION_MIN: Final = 17
"""Spark 4's own minimum."""

_JAVA_ANSWER_SECONDS: Final = 30.0
"""How long `java -version` may take: a cold JVM on a slow disk needs a few."""

_DRIVER_MEMORY: Final = "2g"
"""Holds the shuffle of a few million commits; what does not fit is spilled to disk."""

_PARTITIONS: Final = "spark.sql.shuffle.partitions"
_PARTITION_ROWS: Final = 1_000_000
"""Rows of a partition that is shuffled: some 300 MB of commits, which a task then sorts mostly in memory."""
_TASK_ROWS_MIN: Final = 50_000
"""Rows of a partition on a cluster, where more machines could share them: of fewer a task starts longer than it works."""
_PARTITIONS_OF_SPARK: Final = 200
"""Spark's own default, which it merges where they are small, but not those of Python's tasks."""
_PARTITIONS_MAX: Final = 2_000
"""Each costs the driver some milliseconds a stage, and every map task a buffer for it."""

_CHECKPOINTS: Final = ".spark-checkpoints"

_JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"

_NO_CONF: Final[Mapping[str, str]] = MappingProxyType({})
_SUBMITTED: Final = "PYSPARK_GATEWAY_PORT"
"""Variable that `spark-submit` sets for its Python: its JVM is running, with the user's settings."""
_LOCAL: Final = "local[*]"

_FOR_FEW_ROWS: Final = {
    # To compile a query takes longer than to interpret it.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # Each stage would be a job of its own, and planned twice.
    "spark.sql.adaptive.enabled": "false",
    # What it finds spares work with many rows; to look for it is a sixth of planning.
    "spark.sql.constraintPropagation.enabled": "false",
    # Each table that is sent to all tasks would be a job of its own.
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    # A task for each core, where one does all.
    "spark.sql.leafNodeDefaultParallelism": "1",
    "spark.sql.files.minPartitionNum": "1",
    # Half of a short run's processor time would go to the JVM's second compiler and its collector's threads.
    _JAVA_OPTIONS: "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


class JavaMissing(Exception):
    """Spark needs Java, and no Java that is new enough was found; the message says what to install."""


class UserUnknown(Exception):
    """The system has no entry of the user, whose name and home Java asks for. The message names the user."""


class MasterRefused(Exception):
    """Spark did not start on the master that was named; the message says why."""


class FolderUnseen(Exception):
    """Machines of a cluster do not see a folder that all of them must write to; the message names it."""


def start_session(
    master: str | None = None,
    *,
    rows: int | None = None,
    log_path: Path | None = None,
    shared: Path | None = None,
    conf: Mapping[str, str] = _NO_CONF,
) -> SparkSession:
    """Start Spark. Raises JavaMissing, UserUnknown, MasterRefused, FolderUnseen.

    `log_path` takes what the JVM prints; None drops it.

    `conf` are the user's settings. What these, spark-submit, or the user's spark-defaults.conf set stays so. Without a
    `master` it is theirs, or all cores of this machine.

    `rows` are those that exports have, if that is known. A session for few (SMALL_ROWS_MAX) spends little on planning,
    since that takes longer than the work itself. `shared` is a folder that all machines of a cluster see: there tables are
    kept that cannot be computed again alike, and outlast a machine. `stop_session` removes them.
    """
    is_small = rows is not None and rows <= SMALL_ROWS_MAX
    given = _given_settings(conf)
    master = find_master(master, conf)
    is_local = master.startswith("local")
    _check_user()
    java_home = find_java_home()
    os.environ["JAVA_HOME"] = str(java_home)
    # Workers must run this very interpreter, or they start with the system's and miss every package. A cluster's machines
    # may have theirs elsewhere: what the user has set stands there.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if is_local:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    options = {
        "spark.app.name": "ravel analyze",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.driver.memory": _DRIVER_MEMORY,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        # Nothing is kept there. Spark makes the folder, by default in the working folder; this one is there.
        "spark.sql.warehouse.dir": Path(tempfile.gettempdir()).absolute().as_uri(),
    }
    options |= settings_for(rows, is_local=is_local)
    if is_small and is_local:
        options[_JAVA_OPTIONS] += f" {archive_options(java_home)}"
    if is_local:
        options |= {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            # Workers would import, and so run, a random.py of the working folder in place of Python's own.
            "spark.executorEnv.PYTHONSAFEPATH": "1",
        }
    builder = SparkSession.Builder().master(master)
    for key, value in settings_with(options, given, conf).items():
        builder = builder.config(key, value)
    with _jvm_output_to(log_path or Path(os.devnull)):
        try:
            session = builder.getOrCreate()
        except (Py4JError, PySparkException) as error:
            raise MasterRefused(f"Spark does not start on {master!r}: {cause_of(error)}") from error
    if is_small and is_local:
        Thread(target=_start_workers, args=(session,)).start()
    context = session.sparkContext
    if shared is not None and not is_local:
        try:
            check_seen(session, shared)
        except BaseException:  # an interrupt too: else the session stays
            session.stop()
            raise
        if context.getCheckpointDir() is None:
            context.setCheckpointDir((shared / _CHECKPOINTS).absolute().as_uri())
    return session


def check_seen(session: SparkSession, folder: Path) -> None:
    """Check that tasks see a file that is put into a folder. Raises FolderUnseen where one does not find it."""
    context = session.sparkContext
    context.setJobDescription("ravel: look for the folder of the results")
    with tempfile.NamedTemporaryFile(dir=folder.absolute(), prefix=".ravel-seen-") as mark:
        name, tasks = mark.name, context.defaultParallelism
        found = context.parallelize(range(tasks), tasks).map(lambda _: os.path.exists(name)).collect()
    if not all(found):
        raise FolderUnseen(f"machines of this cluster do not see {folder}")


def settings_for(rows: int | None, *, is_local: bool) -> dict[str, str]:
    """Return how Spark is to plan and run an analysis of so many rows, here or on a cluster."""
    is_small = rows is not None and rows <= SMALL_ROWS_MAX
    planned = dict(_FOR_FEW_ROWS) if is_small else {}
    if is_local or rows is not None:
        planned[_PARTITIONS] = str(partitions_for(rows, is_local=is_local))
    return planned


def settings_with(
    ours: Mapping[str, str], given: Mapping[str, str], conf: Mapping[str, str]
) -> dict[str, str]:
    """Return our settings but for those that are given, and the user's of this run."""
    return {key: value for key, value in ours.items() if key not in given} | dict(conf)


def find_master(master: str | None, conf: Mapping[str, str] = _NO_CONF) -> str:
    """Return Spark's master: the given one, else that of the user's settings, else this machine."""
    return master or _given_settings(conf).get("spark.master") or _LOCAL


def runs_here(
    master: str | None, spark: SparkSession | None = None, conf: Mapping[str, str] = _NO_CONF
) -> bool:
    """Return True if tasks run on this machine, and see what this process sees."""
    found = find_master(master, conf) if spark is None else spark.sparkContext.master or ""
    return found.startswith("local") and not found.startswith("local-cluster")


def _given_settings(conf: Mapping[str, str]) -> Mapping[str, str]:
    """Return the user's settings: by spark-submit or spark-defaults.conf, and those of `conf` before them."""
    if _SUBMITTED not in os.environ:
        return _defaults() | dict(conf)
    SparkContext._ensure_initialized()  # the JVM that spark-submit started has all settings
    return dict(SparkConf().getAll()) | dict(conf)


def _defaults() -> dict[str, str]:
    """Return what the user's spark-defaults.conf sets, where Spark itself reads it."""
    home = os.environ.get("SPARK_HOME")
    folder = os.environ.get("SPARK_CONF_DIR") or (f"{home}/conf" if home else "")
    try:
        text = Path(folder, "spark-defaults.conf").read_text(encoding="utf-8") if folder else ""
    except (OSError, UnicodeDecodeError):  # Spark says what is wrong with it
        return {}
    pairs = (re.split(r"[\s=:]+", line.strip(), maxsplit=1) for line in text.splitlines())
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2 and not pair[0].startswith("#")}


def _check_user() -> None:
    try:
        pwd.getpwuid(os.getuid())
    except KeyError:
        raise UserUnknown(
            f"Spark needs an entry for user {os.getuid()} in /etc/passwd, as Java asks for its name and home"
        ) from None


def _start_workers(session: SparkSession) -> None:
    """Start Python workers and their imports while the first job is planned: both take a second."""

    def run(batches: Iterator[Any]) -> Iterator[Any]:

        yield from batches

    with contextlib.suppress(Exception):  # the job that needs them says what is wrong
        session.sparkContext.setJobDescription("ravel: start Python workers")  # of this thread's job
        session.range(0, 1, 1, 1).mapInArrow(run, "id bigint").collect()


def stop_session(session: SparkSession, shared: Path) -> None:
    """End a session, and remove what it kept in `shared`."""
    session.stop()
    shutil.rmtree(shared / _CHECKPOINTS, ignore_errors=True)


def partitions_for(rows: int | None, *, is_local: bool = True) -> int:
    """Partitions of a shuffle. Each costs a Python worker's round; a cluster's cores are not known before it has started."""
    if rows is not None and rows <= SMALL_ROWS_MAX:
        return 1
    least = os.cpu_count() or 4 if is_local else min(_PARTITIONS_OF_SPARK, (rows or 0) // _TASK_ROWS_MIN)
    return min(max(4, least, -(-(rows or 0) // _PARTITION_ROWS)), _PARTITIONS_MAX)


def cause_of(error: Exception) -> str:
    """Return the line of Spark's error that names what went wrong: the last cause, in Java or Python, without the stack.

    Where what stands around a cause only says more, such as which program there is not, that is returned.
    """
    lines = [line.strip() for line in str(error).splitlines() if not line.lstrip().startswith("at ")]
    named = [line for line in lines if re.match(r"((Caused by|:) ?:? ?)?[\w.]+(Exception|Error)\b", line)]
    while len(named) > 1 and named[-2].endswith(re.split(r"(?:Exception|Error): ", named[-1])[-1]):
        named.pop()
    return (named or lines or ["no reason given"])[-1].lstrip(": ")[:300]


def find_java_home() -> Path:
    """Return the folder of a Java that Spark runs on: JAVA_HOME first, then the PATH. Raises JavaMissing."""
    found = []
    for binary in _java_binaries():
        version = _java_version(binary)
        if version is not None and version >= JAVA_VERSION_MIN:
            return binary.parent.parent
        found.append(f"{binary} is {'version ' + str(version) if version else 'not a working Java'}")
    raise JavaMissing(
        f"Spark needs Java {JAVA_VERSION_MIN} or newer; {'; '.join(found) or 'none is installed'}. "
        "On Debian or Ubuntu: apt-get install default-jre-headless. "
        f"Elsewhere: install any Java {JAVA_VERSION_MIN} or newer and set JAVA_HOME to its folder."
    )


def _java_binaries() -> Iterator[Path]:
    home = os.environ.get("JAVA_HOME")
    if home:
        yield Path(home) / "bin" / "java"
    in_path = shutil.which("java")
    if in_path:
        yield Path(in_path).resolve()


def _java_version(binary: Path) -> int | None:
    """Return the major version, or None if this is not a Java that answers."""
    try:
        answer = subprocess.run(
            [str(binary), "-version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_JAVA_ANSWER_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    version = re.search(r'version "(\d+)', answer.stderr + answer.stdout)
    return int(version[1]) if version else None


@contextlib.contextmanager
def _jvm_output_to(path: Path) -> Iterator[None]:
    """Let processes started meanwhile write their stderr to a file. Java prints warnings that no option turns off."""
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with path.open("ab") as file:
            os.dup2(file.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
