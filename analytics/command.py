"""What the commands of this package share: exit codes, errors said as the `ravel` command says them, and what is missing.

Exit codes are as in node/errors.py, which analytics may not import; a test holds the two together.
"""

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from analytics.export_reader import ExportError

EXIT_OK: Final = 0
EXIT_BAD_REQUEST: Final = 3
EXIT_STORAGE_FAILED: Final = 19
EXIT_BAD_EXPORT: Final = 21
EXIT_MISSING_EXTRA: Final = 22
EXIT_MISMATCH: Final = 23

_EXTRA: Final = ("pyspark", "py4j", "pandas", "numpy", "matplotlib")


def guarded(options: argparse.Namespace, work: Callable[[], int]) -> int:
    """Do the work, which imports Spark, and give its exit code or that of its error. `options` has `json`, `out`."""
    try:
        from analytics.session import JavaMissing, MasterRefused
    except ModuleNotFoundError as error:
        return _fail_without(options, error)
    try:
        return work()
    except ModuleNotFoundError as error:
        return _fail_without(options, error)
    except ExportError as error:
        return fail(options, EXIT_BAD_EXPORT, "bad_export", str(error))
    except JavaMissing as error:
        return fail(options, EXIT_MISSING_EXTRA, "missing_extra", str(error))
    except MasterRefused as error:
        advice = f"give a --master that Spark knows, such as local[*]; {options.out / 'spark.log'} tells more"
        return fail(options, EXIT_BAD_REQUEST, "bad_request", str(error), advice)
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


def add_common_options(parser: argparse.ArgumentParser, what: str) -> None:
    """--out, --master, --json."""
    parser.add_argument("--out", type=Path, required=True, help=f"folder for {what}")
    parser.add_argument(
        "--master", default="local[*]", help="Spark master URL (default: all cores of this machine)"
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def progress_of(name: str) -> Callable[[str], None]:
    """Says a line of progress on standard error."""
    return lambda line: print(f"[{name}] {line}", file=sys.stderr, flush=True)


def _fail_without(options: argparse.Namespace, error: ModuleNotFoundError) -> int:
    if error.name is None or error.name.partition(".")[0] not in _EXTRA:
        raise error
    return fail(
        options,
        EXIT_MISSING_EXTRA,
        "missing_extra",
        f"analyzing needs {error.name}, which is not installed",
        "install it: pip install 'ravel-node[analytics]'",
    )
