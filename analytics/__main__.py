"""`python -m analytics EXPORT_DIR --out DIR`: analyze an export. `ravel analyze` runs this as a process of its own.

Results go to stdout (JSON with --json), progress and errors to stderr. Exit codes are those of Ravel's one table.
"""

import argparse
import base64
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from analytics.export_reader import ExportError

if TYPE_CHECKING:
    from analytics.analyze import AnalysisResult

# As in node/errors.py, which analytics may not import; a test holds the two together.
EXIT_OK: Final = 0
EXIT_BAD_REQUEST: Final = 3
EXIT_STORAGE_FAILED: Final = 19
EXIT_BAD_EXPORT: Final = 21
EXIT_MISSING_EXTRA: Final = 22
EXIT_MISMATCH: Final = 23

_EXTRA: Final = ("pyspark", "py4j", "pandas", "numpy", "matplotlib")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    options = _parse(arguments)
    try:
        expected = _load_expected(options.expected) if options.expected else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        return _fail(
            options, EXIT_BAD_REQUEST, "bad_request", f"{options.expected} is not a digests.json: {error}"
        )
    try:
        from analytics import analyze
        from analytics.session import JavaMissing, MasterRefused
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in _EXTRA:
            raise
        return _fail(
            options,
            EXIT_MISSING_EXTRA,
            "missing_extra",
            f"analyzing needs {error.name}, which is not installed",
            "install it: pip install 'ravel-node[analytics]'",
        )
    first, *merge = options.export_dir
    try:
        result = analyze.run(
            first,
            options.out,
            master=options.master,
            verify=options.verify,
            progress=lambda line: print(f"[analyze] {line}", file=sys.stderr, flush=True),
            expected=expected,
            merge=merge,
        )
    except ExportError as error:
        return _fail(options, EXIT_BAD_EXPORT, "bad_export", str(error))
    except JavaMissing as error:
        return _fail(options, EXIT_MISSING_EXTRA, "missing_extra", str(error))
    except MasterRefused as error:
        advice = f"give a --master that Spark knows, such as local[*]; {options.out / 'spark.log'} tells more"
        return _fail(options, EXIT_BAD_REQUEST, "bad_request", str(error), advice)
    except OSError as error:
        return _fail(
            options, EXIT_STORAGE_FAILED, "storage_failed", f"cannot write to {options.out}: {error}"
        )
    print(json.dumps(_as_json(result)) if options.json else _as_text(result))
    return EXIT_MISMATCH if (options.verify or expected) and not result.is_right else EXIT_OK


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m analytics", description="Order an export anew with Spark, compare, count and draw."
    )
    parser.add_argument(
        "export_dir", type=Path, nargs="+", help="folder of an export; several nodes' are read as one"
    )
    parser.add_argument(
        "--out", type=Path, required=True, help="folder for report.html, digests.json and tables"
    )
    parser.add_argument(
        "--master", default="local[*]", help="Spark master URL (default: all cores of this machine)"
    )
    parser.add_argument(
        "--no-verify", dest="verify", action="store_false", help="do not compare with the node's ranks"
    )
    parser.add_argument(
        "--expected", type=Path, help="a digests.json of another run, whose orders must be the same"
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    return parser.parse_args(arguments)


def _load_expected(path: Path) -> Mapping[str, str]:
    """Branch id -> digest, both hex, from a digests.json."""
    entries = json.loads(path.read_bytes())
    return {
        base64.b32decode(branch.upper() + "=" * (-len(branch) % 8)).hex(): str(entry["digest"])
        for branch, entry in entries.items()
    }


def _as_json(result: "AnalysisResult") -> dict[str, Any]:
    return {
        "commits": result.commits,
        "branches": result.branches,
        "mismatches": result.mismatches,
        "wrong_digests": list(result.wrong_digests),
        "quarantined": result.quarantined,
        "report": str(result.report),
        "tables": str(result.tables),
        "digests": str(result.digests),
        "seconds": round(result.seconds, 3),
    }


def _as_text(result: "AnalysisResult") -> str:
    lines = [
        f"{result.commits:,} commits of {result.branches:,} branches in {result.seconds:.1f} s",
        f"report   {result.report}",
        f"tables   {result.tables}",
        f"digests  {result.digests}",
    ]
    if result.mismatches:
        lines.append(f"MISMATCH: {result.mismatches:,} commits stand elsewhere than the export says")
    if result.wrong_digests:
        lines.append(f"MISMATCH: {len(result.wrong_digests):,} branches do not have the expected digest")
    lines += [f"LEFT OUT: {count:,} commits, {fault}" for fault, count in sorted(result.quarantined.items())]
    return "\n".join(lines)


def _fail(options: argparse.Namespace, exit_code: int, code: str, message: str, next_step: str = "") -> int:
    """Say an error as the `ravel` command does, and give its exit code."""
    if options.json:
        print(json.dumps({"error": {"code": code, "message": message, "next": next_step}}))
    else:
        print(f"error: {message}", file=sys.stderr)
        if next_step:
            print(f"next:  {next_step}", file=sys.stderr)
    return exit_code


if __name__ == "__main__":
    sys.exit(main())
