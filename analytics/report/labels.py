"""Labels of branches: `repo:branch` where several repos have a branch of one name, else the branch's name.

Every repo has a branch `root`, and most have a `main`: by its name alone a reader would take one for the other.
"""

from collections.abc import Mapping
from typing import Any, Final

from analytics.report.page import Names, short
from ravel.exports.schema import text_id

LABELS: Final = """(
    SELECT branch_id, repo_id AS owner, namesakes
    FROM branch_names
    JOIN (
        SELECT branch_name, count(DISTINCT repo_id) AS namesakes FROM branch_names GROUP BY branch_name
    ) AS shared USING (branch_name)
) AS labels"""
"""To join to a table of branches `USING (branch_id)`: what `label` needs beside the names that each such table has."""


def label(row: Mapping[str, Any], names: Names) -> str:
    """Return what to call the branch of a row; a repo that has no name is called by the start of its id."""
    branch = str(row["branch_name"] or "")
    if (row["namesakes"] or 0) < 2:
        return branch
    repo_id = text_id(row["owner"])
    return f"{names.known.get(repo_id) or row['repo_name'] or short(repo_id)}:{branch}"
