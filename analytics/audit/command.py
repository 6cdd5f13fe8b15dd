"""`python -m analytics.audit.command EXPORT... --out DIR`: audit exports. `ravel audit` runs this as a process of its own.

Results go to stdout (JSON with --json), progress and errors to stderr. Exit code 23 when something was found.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from analytics.command import (
    EXIT_MISMATCH,
    EXIT_OK,
    add_common_options,
    add_large_branch_option,
    add_strict_option,
    guarded,
    progress_of,
    show,
)

_NAMED_MAX: Final = 3
"""Nodes that a person is shown of those whose exports have no blocks."""

if TYPE_CHECKING:
    from analytics.audit.audit import AuditResult


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    options = _parse(arguments)
    return guarded(options, lambda: _audit(options))


def _audit(options: argparse.Namespace) -> int:
    from analytics.audit import audit
    from analytics.reading.given_exports import GivenExports

    progress = progress_of("audit")
    given = GivenExports(progress, strict=options.strict)
    result = audit.run(
        options.export_dir,
        options.out,
        master=options.master,
        progress=progress,
        giant_from=options.giant_from,
        given=given,
        conf=dict(options.conf),
        out_url=options.out_url,
    )
    show(json.dumps(_as_json(result)) if options.json else as_text(result))
    return EXIT_MISMATCH if result.findings or result.set_aside else EXIT_OK


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m analytics.audit.command",
        description="Look for contradictions in and between exports.",
    )
    parser.add_argument("export_dir", nargs="+", help="exports of one node or many, as of `analytics`")
    add_common_options(parser, "the tables")
    add_large_branch_option(parser)
    add_strict_option(parser)
    return parser.parse_args(arguments)


def _as_json(result: "AuditResult") -> dict[str, Any]:
    return {
        "exports": result.exports,
        "rows": result.rows,
        "commits": result.commits,
        "branches": result.branches,
        "blocks": asdict(result.blocks),
        "without_blocks": list(result.without_blocks),
        "set_aside": [asdict(one) for one in result.set_aside],
        "findings": dict(result.findings),
        "examples": [asdict(example) for example in result.examples],
        "tables": str(result.tables),
        "seconds": round(result.seconds, 3),
    }


def as_text(result: "AuditResult") -> str:
    """Return the report as text for a terminal."""
    lines = [
        f"{result.rows:,} rows of {result.exports} exports: {result.commits:,} commits of {result.branches:,} branches, "
        f"in {result.seconds:.1f} s",
        f"tables   {result.tables}",
    ]
    if result.blocks.rows:
        lines.append(
            f"blocks   {result.blocks.rows:,}: {result.blocks.recomputed:,} ids recomputed, "
            f"{result.blocks.absent:,} not at their nodes"
        )
    if result.blocks.ids_recomputed < result.blocks.ids:
        lines.append(f"ids recomputed for {result.blocks.ids_recomputed:,} of {result.blocks.ids:,} commits")
    if result.without_blocks:
        some = ", ".join(result.without_blocks[:_NAMED_MAX])
        more = "" if len(result.without_blocks) <= _NAMED_MAX else ", ..."
        lines.append(f"{len(result.without_blocks)} of {result.exports} exports have no blocks: {some}{more}")
    lines += [f"NOT READ: {one.source}: {one.reason}" for one in result.set_aside]
    for kind, count in result.findings.items():
        lines.append(f"FOUND: {count:,} times {kind}")
        for example in result.examples:
            if example.kind == kind:
                where = [f"branch {example.branch[:16]}"] if example.branch else []
                where += [f"commit {example.commit[:16]}"] if example.commit else []
                lines.append(f"  {' '.join(where)} ({', '.join(example.nodes)}) {example.detail}".rstrip())
    return "\n".join(lines if result.findings or result.set_aside else [*lines, _clean(result)])


def _clean(result: "AuditResult") -> str:
    """Say how far nothing was found: what was not recomputed may be altered."""
    if result.blocks.ids_recomputed == result.blocks.ids:
        return "nothing is wrong"
    return (
        "nothing contradicts, and only a part was checked: what has no blocks here may have been altered. "
        "To check all, export with blocks: ravel config set export.blocks true, then `ravel down`, `ravel up` and "
        "`ravel export`"
    )


if __name__ == "__main__":
    sys.exit(main())
