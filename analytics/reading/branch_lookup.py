"""Finds the branch that a user means in checked exports, before any engine is started.

A text names a branch as it does for `ravel`: NAME, REPO:NAME, or the start of an id. Reads only the columns that names
are in.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from ravel.characters import composed, display_safe
from ravel.exports.checking import Export, ExportError, check_bytes
from ravel.exports.fetching import bring_part
from ravel.exports.schema import text_id

_LISTED_MAX: Final = 12
"""Branches that an error lists."""
_BATCH_ROWS: Final = 1 << 18


class NoSuchBranch(Exception):
    """A text names no branch of the exports, or several; the message lists branches."""


@dataclass(slots=True)
class _Branch:
    """One branch as the exports describe it."""

    repo_id: bytes
    commits: int = 0
    names: set[str] = field(default_factory=set)
    repos: set[str] = field(default_factory=set)  # what its repo is called

    def call(self, row: Mapping[str, Any], names: Mapping[str, str]) -> None:
        """Take the names of a row, and the one that its repo has in `names`."""
        self.names.add(composed(row["branch_name"]))
        repo_names = row.get("repo_name"), names.get(text_id(row["repo_id"]))
        self.repos |= {composed(name) for name in repo_names if name}


def find_branch(exports: Sequence[Export], wanted: str, names: Mapping[str, str]) -> bytes:
    """Return the id of the branch that a text names. `names` are those of repos by their ids as text, beside those in
    exports.

    Raises NoSuchBranch, ExportError.
    """
    branches = _read_branches(exports, names)
    wanted = composed(wanted)
    repo, colon, name = wanted.partition(":")
    found = [
        raw
        for raw, branch in branches.items()
        if wanted in branch.names
        or (colon and name in branch.names and (repo in branch.repos or _starts_so(branch.repo_id, repo)))
    ]
    found = found or [raw for raw in branches if _starts_so(raw, wanted)]
    if len(found) == 1:
        return found[0]
    if found:
        raise NoSuchBranch(
            f"several branches are called {wanted!r}: {_listed(branches, found)}; give REPO:NAME, or the start of an id"
        )
    raise NoSuchBranch(
        f"the export holds no branch that is called {wanted!r}, or whose id begins so; there are "
        f"{_listed(branches, [*branches]) or 'none'}"
    )


def _starts_so(raw: bytes, text: str) -> bool:
    lower = text.lower()
    return bool(text) and (text_id(raw).startswith(lower) or raw.hex().startswith(lower))


def _read_branches(exports: Sequence[Export], names: Mapping[str, str]) -> dict[bytes, _Branch]:
    """Return all branches, the largest first; commits that several exports hold are counted for each of them."""
    branches: dict[bytes, _Branch] = {}
    for rows in _count_rows(exports):
        for row in rows.to_pylist():
            branch = branches.setdefault(row["branch_id"], _Branch(row["repo_id"]))
            branch.commits += row["commit_id_count"]
            branch.call(row, names)
    is_all_here = all(part.is_here for export in exports for part in export.parts)
    for named in _read_names(exports):  # that a branch has now, and had not yet at its last commit
        if not is_all_here:
            branches.setdefault(named["branch_id"], _Branch(named["repo_id"]))
        if (known := branches.get(named["branch_id"])) is not None:
            known.call(named, names)
    return dict(sorted(branches.items(), key=lambda item: (-item[1].commits, item[0])))


def _count_rows(exports: Sequence[Export]) -> Iterator[pa.Table]:
    """Yield the different ids and names of parts, and how many commits have them.

    Commits that lie elsewhere are left to tasks: `names` has all branches.
    """
    for part in (part for export in exports for part in export.parts if part.is_here):
        try:
            with pq.ParquetFile(part.path) as file:
                keys = ["branch_id", "repo_id", "branch_name"]
                keys += ["repo_name"] if "repo_name" in file.schema_arrow.names else []
                for batch in file.iter_batches(_BATCH_ROWS, columns=[*keys, "commit_id"]):
                    rows: Any = pa.Table.from_batches([batch])
                    yield rows.group_by(keys).aggregate([("commit_id", "count")])
        except (OSError, pa.ArrowException) as error:
            raise ExportError(f"{part.place} cannot be read: {error}") from None


def _read_names(exports: Sequence[Export]) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of `names`."""
    for part in (part for export in exports for part in export.tables["names"]):
        try:
            here = part if part.is_here else bring_part(part)
            check_bytes(here)
            with pq.ParquetFile(here.path) as file:
                for batch in file.iter_batches(columns=["branch_id", "repo_id", "branch_name", "repo_name"]):
                    yield from batch.to_pylist()
        except (OSError, pa.ArrowException) as error:
            raise ExportError(f"{part.place} cannot be read: {error}") from None


def _listed(branches: Mapping[bytes, _Branch], found: Sequence[bytes]) -> str:
    """List some branches by names and ids. Names come from anybody."""
    told = []
    for raw in found[:_LISTED_MAX]:
        branch = branches[raw]
        repo = min(branch.repos, default=text_id(branch.repo_id)[:10])
        told.append(f"{display_safe(f'{repo}:{min(branch.names)}')} ({text_id(raw)[:10]})")
    rest = len(found) - len(told)
    return ", ".join(told) + (f" and {rest:,} more" if rest else "")
