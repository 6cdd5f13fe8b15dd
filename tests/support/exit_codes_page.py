"""Page of exit codes (docs/reference/exit-codes.md), made from the table of error codes."""

from node.runtime.errors import ERROR_KINDS


def exit_codes_page(made: str) -> str:
    """Return the page: error codes by exit code, with HTTP status and meaning. `made` says who made it."""
    lines = [
        "# Exit codes\n",
        made,
        "What each failure means, for commands and the API. How they are shown: [errors](../apps/errors.md).",
        "",
        "| exit | code | HTTP | meaning |",
        "|---|---|---|---|",
    ]
    for code, kind in sorted(ERROR_KINDS.items(), key=lambda one: one[1].exit_code):
        lines.append(f"| {kind.exit_code} | `{code}` | {kind.http_status} | {kind.meaning} |")
    return "\n".join(lines) + "\n"
