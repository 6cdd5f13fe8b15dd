"""Types of answers: document_values. Made from the table of endpoints by `make reference`."""

from __future__ import annotations

from typing import TypedDict


class DocumentSnapshot(TypedDict):
    """A snapshot of a set or a dict."""

    branch: str
    commits: list[str]
    """Empty: a snapshot was there already."""
