"""`python -m analytics EXPORT_DIR --out DIR`: analyze an export. `ravel analyze` runs this as a process of its own.

Results go to stdout (JSON with --json), progress and errors to stderr. Exit codes are those of Ravel's one table.
"""

import argparse
import base64
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analytics.command import (
    ENGINES,
    EXIT_BAD_REQUEST,
    EXIT_MISMATCH,
    EXIT_OK,
    add_common_options,
    add_large_branch_option,
    add_strict_option,
    fail,
    guarded,
    progress_of,
    show,
)
from analytics.reading.limits import NAMES_SIZE_MAX
from analytics.report.page import counted

if TYPE_CHECKING:
    from analytics.analyze import AnalysisResult


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    options = _parse(arguments)
    if arguments is None and options.engine == "local":
        sys.meta_path.insert(0, _NoPandas())
    try:
        expected = _load_expected(options.expected) if options.expected else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        message, advice = (
            f"{options.expected} is not a digests.json: {error}",
            "give one that `analyze` wrote",
        )
        return fail(options, EXIT_BAD_REQUEST, "bad_request", message, advice)
    try:
        names = _load_names(options.names) if options.names else {}
    except (OSError, ValueError, RecursionError) as error:
        advice = "give a JSON object of ids as text and names"
        return fail(options, EXIT_BAD_REQUEST, "bad_request", f"these are not names: {error}", advice)
    return guarded(options, lambda: _analyze(options, expected, names))


class _NoPandas:
    """Finder that hides pandas from a process: pyarrow imports it for every array, to ask whether the cells are a Series.

    That takes a fifth of a small analysis, and the local engine has no use for it.
    """

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        """Raise ModuleNotFoundError for pandas, and leave all else to other finders."""
        if name == "pandas":
            raise ModuleNotFoundError(name=name)


def _analyze(
    options: argparse.Namespace, expected: Mapping[str, str] | None, names: Mapping[str, str]
) -> int:
    from analytics import analyze
    from analytics.reading.given_exports import GivenExports

    progress = progress_of("analyze")
    given = GivenExports(progress, strict=options.strict)
    first, *merge = options.export_dir
    try:
        result = analyze.run(
            first,
            options.out,
            master=options.master,
            verify=options.verify,
            progress=progress,
            expected=expected,
            merge=merge,
            draw=options.draw,
            with_csv=options.csv,
            giant_from=options.giant_from,
            engine=options.engine,
            names=names,
            given=given,
            conf=dict(options.conf),
            out_url=options.out_url,
            with_every_tangle=options.every_tangle,
        )
    except analyze.NoSuchBranch as error:
        advice = "give NAME, REPO:NAME, or the start of an id; `ravel branch list REPO` shows names and ids"
        return fail(options, EXIT_BAD_REQUEST, "bad_request", str(error), advice)
    show(json.dumps(_as_json(result)) if options.json else _as_text(result))
    return EXIT_MISMATCH if (options.verify or expected) and not result.is_right else EXIT_OK


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m analytics", description="Order an export anew, compare, count and draw."
    )
    parser.add_argument(
        "export_dir",
        nargs="+",
        help="folder or URL of an export, or @FILE, which names one in each line; several nodes' are read as one",
    )
    add_common_options(parser, "report.html, digests.json and tables")
    parser.add_argument(
        "--engine",
        choices=ENGINES,
        default=ENGINES[0],
        help="what computes: Spark at any size, or DuckDB inside this process, without Java (default: spark)",
    )
    parser.add_argument(
        "--no-verify", dest="verify", action="store_false", help="do not compare with the node's ranks"
    )
    parser.add_argument(
        "--expected", type=Path, help="a digests.json of another run, whose orders must be the same"
    )
    add_large_branch_option(parser)
    add_strict_option(parser)
    parser.add_argument(
        "--draw", metavar="BRANCH", help="the branch to draw: NAME, REPO:NAME, or the start of its id"
    )
    parser.add_argument("--csv", action="store_true", help="write large tables as CSV too")
    parser.add_argument(
        "--every-tangle",
        action="store_true",
        help="order and count feeds and groups too, as the tangles that they are",
    )
    parser.add_argument(
        "--names",
        metavar="FILE",
        help="JSON: what the page calls users, nodes and repos, {id as text: name}; - for standard input",
    )
    return parser.parse_args(arguments)


def _load_names(path: str) -> dict[str, str]:
    """Raises OSError, ValueError, RecursionError."""
    with sys.stdin.buffer if path == "-" else open(path, "rb") as file:  # one of the two is open already
        content = file.read(NAMES_SIZE_MAX + 1)
    if len(content) > NAMES_SIZE_MAX:
        raise ValueError(f"more than {NAMES_SIZE_MAX:,} bytes")
    names = json.loads(content)
    if not isinstance(names, dict) or not all(isinstance(name, str) for name in names.values()):
        raise ValueError("no JSON object of texts")
    return names


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
        "set_aside": [asdict(one) for one in result.set_aside],
        "seconds": round(result.seconds, 3),
    }


def _as_text(result: "AnalysisResult") -> str:
    lines = [
        f"{counted(result.commits, 'commit')} of {counted(result.branches, 'branch')} in {result.seconds:.1f} s",
        f"report   {result.report}",
        f"tables   {result.tables}",
        f"digests  {result.digests}",
    ]
    lines += [f"NOT READ: {one.source}: {one.reason}" for one in result.set_aside]
    if result.mismatches:
        lines.append(f"MISMATCH: {result.mismatches:,} commits stand elsewhere than the export says")
    if result.wrong_digests:
        lines.append(f"MISMATCH: {len(result.wrong_digests):,} branches do not have the expected digest")
    lines += [f"LEFT OUT: {count:,} commits, {fault}" for fault, count in sorted(result.quarantined.items())]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
