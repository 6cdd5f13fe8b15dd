"""How a command of `analytics` ends when something goes wrong: as `ravel` says it, with the exit codes of its one table."""

import argparse
import json
import sys
from collections.abc import Callable
from typing import Final

from analytics.export_reader import ExportError

# As in node/errors.py, which analytics may not import; a test holds the two together.
EXIT_OK: Final = 0
EXIT_UNEXPECTED: Final = 1
EXIT_BAD_REQUEST: Final = 3
EXIT_TOO_LARGE: Final = 16
EXIT_STORAGE_FAILED: Final = 19
EXIT_BAD_EXPORT: Final = 21
EXIT_MISSING_EXTRA: Final = 22
EXIT_MISMATCH: Final = 23

_EXTRA: Final = ("pyspark", "py4j", "pandas", "numpy", "matplotlib")

Progress = Callable[[str], None]


def run_reported(name: str, options: argparse.Namespace, work: Callable[[Progress], int]) -> int:
    """Do a command's work, telling progress on stderr, and give its exit code; expected errors are said and not raised.

    `options` have `json`, `out` (the folder written to) and `export_dir` (what is read).
    """
    stage = "the start"

    def progress(line: str) -> None:
        nonlocal stage
        if not line.startswith(" "):  # indented lines are notes
            stage = line
        print(f"[{name}] {line}", file=sys.stderr, flush=True)

    try:
        return _run(options, work, progress, lambda: stage)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in _EXTRA:
            raise
        return fail(
            options,
            EXIT_MISSING_EXTRA,
            "missing_extra",
            f"this needs {error.name}, which is not installed",
            "install it: pip install 'ravel-node[analytics]'",
        )


def _run(
    options: argparse.Namespace,
    work: Callable[[Progress], int],
    progress: Progress,
    stage: Callable[[], str],
) -> int:
    # Only here is Spark needed: without it the caller says what to install.
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # it has no types
    from pyspark.errors import PySparkException

    from analytics.session import JavaMissing, MasterRefused, cause_of
    from analytics.wave_jobs import GiantRefused

    log = options.out / "spark.log"
    try:
        return work(progress)
    except ExportError as error:
        return fail(options, EXIT_BAD_EXPORT, "bad_export", str(error))
    except JavaMissing as error:
        return fail(options, EXIT_MISSING_EXTRA, "missing_extra", str(error))
    except MasterRefused as error:
        advice = f"give a --master that Spark knows, such as local[*]; {log} tells more"
        return fail(options, EXIT_BAD_REQUEST, "bad_request", str(error), advice)
    except GiantRefused as error:
        return fail(options, EXIT_TOO_LARGE, "too_large", str(error))
    except (PySparkException, Py4JError) as error:
        inputs = ", ".join(str(folder) for folder in options.export_dir)
        message = f"Spark failed at {stage()}, reading {inputs}: {cause_of(error)}"
        return fail(options, EXIT_UNEXPECTED, "internal", message, f"{log} tells more")
    except OSError as error:
        return fail(options, EXIT_STORAGE_FAILED, "storage_failed", f"cannot write to {options.out}: {error}")


def fail(options: argparse.Namespace, exit_code: int, code: str, message: str, next_step: str = "") -> int:
    """Say an error as the `ravel` command does, and give its exit code."""
    if options.json:
        print(json.dumps({"error": {"code": code, "message": message, "next": next_step}}))
    else:
        print(f"error: {message}", file=sys.stderr)
        if next_step:
            print(f"next:  {next_step}", file=sys.stderr)
    return exit_code
