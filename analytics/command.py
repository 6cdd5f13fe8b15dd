"""Shared parts of the Spark commands: exit codes, error messages, checks for missing dependencies.

Exit codes are as in node/runtime/errors.py, which analytics may not import; a test holds the two together.
"""

import argparse
import fcntl
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from analytics.reading.limits import LARGE_BRANCH_FROM
from analytics.results import JOURNAL_NAME, ResultsRefused, fetch_kept, publish
from ravel.characters import display_safe
from ravel.exports.checking import ExportError, local_folder

EXIT_OK: Final = 0
EXIT_UNEXPECTED: Final = 1
EXIT_BAD_REQUEST: Final = 3
EXIT_ALREADY_RUNNING: Final = 12
EXIT_TOO_LARGE: Final = 16
EXIT_STORAGE_FAILED: Final = 19
EXIT_BAD_EXPORT: Final = 21
EXIT_MISSING_EXTRA: Final = 22
EXIT_MISMATCH: Final = 23
EXIT_STOPPED: Final = 130

ENGINES: Final = ("spark", "local")
"""By which an analysis can be run; the first is the default. Here, since an engine's module needs what may not be there."""

_EXTRA: Final = ("pyspark", "py4j", "pandas", "numpy", "matplotlib", "numba")
_LOCAL_EXTRA: Final = ("duckdb", "numpy")

_EXPORT_ADVICE: Final = "make it anew, where its node is: ravel export"
_ROOM_ADVICE: Final = "check the path and the room there, or give another --out"
_WITHOUT_RESULT: Final = ("spark.log", JOURNAL_NAME)
"""Files of a command that failed."""

Progress = Callable[[str], None]

_steps: Final = ["the start"]
"""What progress has told: the last is where a job failed. A process runs one command."""
_waiting: Final[list[list[str]]] = []
"""Lines to print once results are at their URL; empty where they go to a folder."""


def guarded(options: argparse.Namespace, work: Callable[[], int]) -> int:
    """Do the work, which imports its engine, and give its exit code or that of its error.

    `options` have `json` and `out` (the folder or URL written to), `export_dir` where exports are read, and `engine` where
    there is a choice. For the work `out` is a folder of this machine, and `out_url` the URL, or "".
    """
    folder = local_folder(str(options.out))
    options.out_url = "" if folder is not None else str(options.out).rstrip("/")
    try:
        if folder is not None:
            options.out = folder
            return _guarded_in_folder(options, work)
        return _guarded_at_url(options, work)
    except KeyboardInterrupt:
        return EXIT_STOPPED


def _guarded_at_url(options: argparse.Namespace, work: Callable[[], int]) -> int:
    """Make results in a temporary folder, copy them to their URL, and print only then."""
    with tempfile.TemporaryDirectory(prefix="ravel-results-") as made:
        options.out = Path(made)
        _waiting.append([])
        refused: ResultsRefused | None = None
        try:
            fetch_kept(options.out_url, options.out)
            is_done = False
            try:
                code = _guarded_in_folder(options, work)
                is_done = code in (EXIT_OK, EXIT_MISMATCH)
            finally:  # also of an interrupted study the runs that are done
                publish(options.out, options.out_url, None if is_done else _WITHOUT_RESULT)
        except ResultsRefused as error:
            refused = error
        finally:
            said = _waiting.pop()
        if refused is not None:
            return fail(options, EXIT_STORAGE_FAILED, "storage_failed", str(refused), _ROOM_ADVICE)
    for text in said:
        show(text.replace(made, options.out_url))
    return code


def _guarded_in_folder(options: argparse.Namespace, work: Callable[[], int]) -> int:
    is_local = vars(options).get("engine") == "local"
    extra, modules = ("analytics-local", _LOCAL_EXTRA) if is_local else ("analytics", _EXTRA)
    run = _guarded_local if is_local else _guarded
    try:
        with _alone_in(options.out):
            return run(options, work)
    except _FolderInUse:
        message = f"another analysis, audit or study writes to {options.out}"
        advice = "wait for it, or give another --out"
        return fail(options, EXIT_ALREADY_RUNNING, "already_running", message, advice)
    except ResultsRefused as error:  # of a large table
        return fail(options, EXIT_STORAGE_FAILED, "storage_failed", str(error), _ROOM_ADVICE)
    except OSError as error:
        message = f"cannot write to {options.out}: {error}"
        return fail(options, EXIT_STORAGE_FAILED, "storage_failed", message, _ROOM_ADVICE)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in modules:
            raise
        return fail(
            options,
            EXIT_MISSING_EXTRA,
            "missing_extra",
            f"this needs {error.name}, which is not installed",
            f"install the extra `{extra}`: docs/communities/start.md",
        )


class _FolderInUse(Exception):
    """Another process holds the folder."""


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Make a folder if it is missing, and lock it; remove a new one if it stays empty. Raises _FolderInUse, OSError."""
    is_new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise _FolderInUse from None
        except OSError:  # a network file system that locks no folders
            pass
        yield
    finally:
        if is_new:
            with suppress(OSError):  # something was written
                folder.rmdir()
        os.close(handle)


def _guarded_local(options: argparse.Namespace, work: Callable[[], int]) -> int:
    import duckdb

    from analytics.order.branch_tasks import LargeBranchRefused

    try:
        return work()
    except ExportError as error:
        return fail(options, EXIT_BAD_EXPORT, "bad_export", str(error), _EXPORT_ADVICE)
    except LargeBranchRefused as error:
        return fail(options, EXIT_TOO_LARGE, "too_large", str(error), "leave out --engine local")
    except duckdb.Error as error:
        reason = str(error).strip().partition("\n")[0]
        message = (
            f"DuckDB failed at {_steps[-1]}, reading {', '.join(map(str, options.export_dir))}: {reason}"
        )
        return fail(options, EXIT_UNEXPECTED, "internal", message, "try --engine spark")


def _guarded(options: argparse.Namespace, work: Callable[[], int]) -> int:
    # Only here is Spark needed: without it the caller says what to install.
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # it has no types
    from pyspark.errors import PySparkException

    from analytics.order.branch_tasks import LargeBranchRefused
    from analytics.session import FolderUnseen, JavaMissing, MasterRefused, UserUnknown, cause_of

    log = options.out / "spark.log"

    def where() -> str:
        """Return what tells more: of spark-submit's JVM, which ran before, no log is here."""
        return str(log) if log.exists() and log.stat().st_size else "Spark's own output"

    try:
        return work()
    except ExportError as error:
        return fail(options, EXIT_BAD_EXPORT, "bad_export", str(error), _EXPORT_ADVICE)
    except JavaMissing as error:
        other = ", or give --engine local, which needs none" if "engine" in vars(options) else ""
        return fail(options, EXIT_MISSING_EXTRA, "missing_extra", str(error), f"install Java{other}")
    except UserUnknown as error:
        other = ", or give --engine local, which needs no Java" if "engine" in vars(options) else ""
        return fail(options, EXIT_MISSING_EXTRA, "missing_extra", str(error), f"add the entry{other}")
    except FolderUnseen as error:
        advice = "give a URL as --out, or a folder that all machines see"
        return fail(options, EXIT_BAD_REQUEST, "bad_request", str(error), advice)
    except MasterRefused as error:
        advice = f"give a --master that Spark knows, such as local[*]; {where()} tells more"
        return fail(options, EXIT_BAD_REQUEST, "bad_request", str(error), advice)
    except LargeBranchRefused as error:
        return fail(
            options, EXIT_TOO_LARGE, "too_large", str(error), "give --giant-from more than its commits"
        )
    except (PySparkException, Py4JError) as error:
        read = ", ".join(str(folder) for folder in vars(options).get("export_dir") or [])
        cause = cause_of(error)
        message = f"Spark failed at {_steps[-1]}{f', reading {read}' if read else ''}: {cause}"
        advice = f"{where()} tells more"
        if "Cannot run program" in cause:
            advice = f"set PYSPARK_PYTHON to a Python that is on each machine; {advice}"
        return fail(options, EXIT_UNEXPECTED, "internal", message, advice)


def show(text: str) -> None:
    """Print a result on standard output. A reader that has enough, such as `head`, is no failure. Raises OSError."""
    if _waiting:
        _waiting[-1].append(text)
        return
    try:
        print(text, flush=True)
    except OSError as error:
        null = os.open(os.devnull, os.O_WRONLY)  # or the interpreter would try again at its end
        os.dup2(null, sys.stdout.fileno())
        os.close(null)
        if not isinstance(error, BrokenPipeError):
            raise


def fail(options: argparse.Namespace, exit_code: int, code: str, message: str, next_step: str) -> int:
    """Say an error as the `ravel` command does, and give its exit code."""
    if url := vars(options).get("out_url"):
        message, next_step = (text.replace(str(options.out), url) for text in (message, next_step))
    if options.json:
        show(json.dumps({"error": {"code": code, "message": message, "next": next_step}}))
    else:
        print(f"error: {display_safe(message)}", file=sys.stderr)  # it may quote a stranger's export
        print(f"next:  {next_step}", file=sys.stderr)
    return exit_code


def add_common_options(parser: argparse.ArgumentParser, what: str) -> None:
    """--out, --master, --conf, --json."""
    parser.add_argument("--out", required=True, help=f"folder or URL for {what}")
    parser.add_argument(
        "--master", help="Spark master URL (default: Spark's settings, else all cores of this machine)"
    )
    parser.add_argument(
        "--conf",
        action="append",
        default=[],
        type=_setting,
        metavar="KEY=VALUE",
        help="a setting of Spark's, which goes before Ravel's own; may be given several times",
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def add_large_branch_option(parser: argparse.ArgumentParser) -> None:
    """--giant-from, of the commands that order every branch."""
    parser.add_argument(
        "--giant-from",
        type=_positive,
        metavar="COMMITS",
        help=f"order branches of so many commits in many tasks (default: {LARGE_BRANCH_FROM}, 1.4 GB in one task)",
    )


def add_strict_option(parser: argparse.ArgumentParser) -> None:
    """--strict, of the commands that read several exports."""
    parser.add_argument(
        "--strict", action="store_true", help="stop at a bad export, where others would be read without it"
    )


def _setting(text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not (key.startswith("spark.") and separator):
        raise argparse.ArgumentTypeError(f"{text!r} is not spark.KEY=VALUE")
    return key, value


def _positive(text: str) -> int:
    if (value := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1")
    return value


def progress_of(name: str) -> Progress:
    """Says a line of progress on standard error; one that is not indented names a step."""

    def say(line: str) -> None:
        if not line.startswith(" "):
            _steps.append(line)
        print(f"[{name}] {line}", file=sys.stderr, flush=True)

    return say
