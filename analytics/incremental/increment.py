"""One run's use of the analysis before it, and what it leaves to the next.

A branch without news keeps its order, its digest and its rows of the tables of branches. All others are ordered anew, and
tables over all branches are counted anew, from what is kept of each commit and from the export. The result is row by row
that of an analysis in full.

That needs an earlier analysis by the same code, and of the same exports as they were then. In one export each commit must
stand once; copies in several must not say different branches, since rows of branches without news are not looked at. Where
this cannot be told the run is in full, and says why.
"""

import base64
import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from pathlib import Path
from string import Template
from typing import Any, Final

import pyarrow as pa
from blake3 import blake3

from analytics.engines.engine import CHANGED, KEPT_ORDER, QUERY_OF_KEPT_ORDER, Catalog, Engine
from analytics.incremental.changes import Changes, find_changes, parts_by_key, write_changed, write_inputs
from analytics.incremental.state import (
    BY_BRANCH,
    DIGESTS_NAME,
    FOLDER,
    STATE_NAME,
    VERIFICATIONS,
    VOIDS_NAME,
    State,
    Unfit,
    check_files,
    load_state,
    save_state,
)
from analytics.order.branch_tasks import FAULTS
from ravel.exports.checking import Export

_EARLIER: Final = "earlier"
"""The folder that the results before lie in while those of now are written. It goes in the end."""
_LIBRARIES: Final[Mapping[str, str]] = {"spark": "pyspark", "local": "duckdb"}
_CODE: Final = ("*.py", "*/*.py", "tables/*/*.sql")

_CHANGED_VOIDS: Final = """
WITH changed_voids AS (
    SELECT commit_id FROM voids_before ANTI JOIN voids_by_node USING (commit_id)
    UNION ALL
    SELECT commit_id FROM voids_by_node ANTI JOIN voids_before USING (commit_id)
)
SELECT DISTINCT branch_id FROM $commits SEMI JOIN changed_voids USING (commit_id)
"""
_DISTINCT: Final = """
SELECT count(*) = count(DISTINCT hash_of(commit_id, commit_id, 0)) AS differ FROM all_commits
"""
"""As many different hashes as rows prove as many ids."""
_MIXED: Final = f"""
WITH told AS (
    SELECT commit_id FROM all_commits_by_node SEMI JOIN {CHANGED} USING (branch_id)
), others AS (
    SELECT commit_id FROM all_commits_by_node ANTI JOIN {CHANGED} USING (branch_id)
)
SELECT count(*) AS mixed FROM others SEMI JOIN told USING (commit_id)
"""


@dataclass(frozen=True, slots=True)
class Kept:
    """What stays of an earlier analysis."""

    branches: int = 0
    commits: int = 0
    faults: Mapping[str, int] = field(default_factory=dict)  # commits without a place


class Increment:
    """What is kept from run to run below `out`. Methods raise OSError, and errors of the engine and of pyarrow."""

    def __init__(
        self, out: Path, exports: Sequence[Export], engine: str, verify: str, *, is_full: bool = False
    ) -> None:
        """Look for an earlier analysis, and check all that it left. `is_full`: do not build on it."""
        self._out, self._exports, self._verify = out, exports, verify
        self._basis = _basis(exports, engine)
        self._changes: Changes | None = None
        self._earlier: Path | None = None
        self._state: State | None = None
        self._digests: dict[str, Any] = {}
        self.reason = ""
        """Why the run is in full though there is an earlier analysis."""
        try:
            self._state = self._find(is_full=is_full)
        except Unfit as error:
            self.reason = str(error)

    @property
    def is_narrow(self) -> bool:
        """Whether rows of an earlier analysis are kept."""
        return self._changes is not None

    def narrow(self, engine: Engine, catalog: Catalog) -> None:
        """Have only branches with news ordered and counted, if the rest can be kept."""
        if self._state is None:
            return
        self._clear()
        (self._out / _EARLIER).mkdir()
        try:
            changes = self._find_changes(self._state, engine, catalog)
        except Unfit as error:
            self.reason = str(error)
            self._clear()
            return
        self._digests = json.loads((self._out / DIGESTS_NAME).read_bytes())
        catalog.narrow()
        self._changes = changes

    def take(self, catalog: Catalog) -> None:
        """Put the results before aside, for what is kept of them: now tables are written."""
        if self._state is None or self._changes is None:
            self._clear()  # of a run that was killed
            shutil.rmtree(self._out / FOLDER, ignore_errors=True)
            return
        self._earlier = self._out / _EARLIER
        (self._out / FOLDER / STATE_NAME).unlink()  # first: what is cut off from here on cannot be built on
        for name in (FOLDER, "tables"):
            (self._out / name).rename(self._earlier / name)
        catalog.keep({name: self._state.files_of(self._earlier, name) for name in (*BY_BRANCH, KEPT_ORDER)})

    def count(self, engine: Engine) -> Kept:
        """How much is kept."""
        if not self.is_narrow:
            return Kept()
        columns = {fault: fault.replace(" ", "_") for fault in FAULTS.values()}
        sums = ", ".join(f"sum({column}) AS {column}" for column in columns.values())
        (found,) = engine.rows(
            f"SELECT count(*) AS branches, sum(commits) AS commits, {sums} FROM earlier_faults "
            f"ANTI JOIN {CHANGED} USING (branch_id)"
        )
        faults = {fault: int(found[column]) for fault, column in columns.items() if found[column]}
        return Kept(int(found["branches"]), int(found["commits"] or 0), faults)

    def digests(self) -> dict[str, tuple[str, int]]:
        """Digest and commits of each kept branch (hex) that has any with a place."""
        if self._changes is None:
            return {}
        found = {}
        for text, entry in self._digests.items():
            branch_id = base64.b32decode(text.upper() + "=" * (-len(text) % 8))
            if branch_id not in self._changes.branches:
                found[branch_id.hex()] = (str(entry["digest"]), int(entry["commits"]))
        return found

    def save(self, engine: Engine, *, commits: int, mismatches: int, disputed: int) -> None:
        """Leave what the next analysis can build on.

        `commits` counts all, `mismatches` those that are elsewhere, `disputed` those whose copies contradict each other.
        """
        state = State(
            self._basis,
            self._verify,
            self._unfit(commits, mismatches, disputed),
            {key: part.rows for key, part in parts_by_key(self._exports).items()},
            self._voids(),
            (),
        )
        if not state.unfit:
            (self._out / FOLDER).mkdir(exist_ok=True)
            query = "SELECT * FROM all_ordered" if self.is_narrow else QUERY_OF_KEPT_ORDER
            engine.write({KEPT_ORDER: query}, folder=FOLDER)
            write_inputs(self._out / FOLDER, self._exports, self._changes, self._earlier)
        save_state(self._out, state)

    def close(self) -> None:
        """Remove what was put aside."""
        if self.is_narrow:
            self._clear()

    def _clear(self) -> None:
        shutil.rmtree(self._out / _EARLIER, ignore_errors=True)

    def _find(self, *, is_full: bool) -> State | None:
        """Raises Unfit."""
        state = load_state(self._out)
        if state is None:
            return None
        if is_full:
            raise Unfit("--full was given")
        if state.unfit:
            raise Unfit(state.unfit)
        if VERIFICATIONS.index(state.verify) < VERIFICATIONS.index(self._verify):
            raise Unfit("the earlier analysis compared less with the node's ranks")
        for name, value in self._basis.items():
            if state.basis.get(name) != value:
                raise Unfit(f"the earlier analysis has another {name}")
        check_files(state, self._out)
        return state

    def _find_changes(self, state: State, engine: Engine, catalog: Catalog) -> Changes:
        """The branches with news are then those of the relation CHANGED. Raises Unfit."""
        try:
            changes = find_changes(self._out, state, self._exports)
        except (OSError, pa.ArrowException) as error:
            raise Unfit(f"the parts of the two exports cannot be compared: {error}") from None
        if state.parts and not changes.common:
            raise Unfit("the export was begun anew: it has no part that the earlier analysis has read")
        is_alone = len(self._exports) == 1
        every = "all_commits" if is_alone else "all_commits_by_node"
        catalog.need(every)
        is_part_twice = is_alone and len(parts_by_key(self._exports)) < len(self._exports[0].parts)
        if is_part_twice or (is_alone and changes.new_parts and not engine.rows(_DISTINCT)[0]["differ"]):
            raise Unfit("a commit stands in the export twice")
        if state.voids != self._voids():
            engine.name_files("voids_before", [self._out / FOLDER / VOIDS_NAME])
            catalog.need("voids_by_node")
            query = Template(_CHANGED_VOIDS).substitute(commits=every)
            found = frozenset(bytes(row["branch_id"]) for row in engine.rows(query))
            changes = Changes(changes.branches | found, changes.new_parts, changes.common)
        changed = self._out / _EARLIER / "changed.parquet"
        write_changed(changed, changes.branches)
        engine.name_files(CHANGED, [changed])
        if not is_alone and changes.new_parts and engine.rows(_MIXED)[0]["mixed"]:
            raise Unfit("a commit stands in a branch with news and in one without")
        return changes

    def _voids(self) -> tuple[str, ...]:
        return tuple(sorted(part.blake3 for export in self._exports for part in export.voids))

    def _unfit(self, commits: int, mismatches: int, disputed: int) -> str:
        if mismatches:
            return "the earlier analysis found commits elsewhere than the node says"
        if disputed:
            return "the earlier analysis found copies of a commit that contradict each other"
        if len(self._exports) == 1 and commits != self._exports[0].rows:
            return "the earlier analysis found a commit twice in the export"
        return ""


def _basis(exports: Sequence[Export], engine: str) -> dict[str, str]:
    """What two analyses must have in common, by what a reason calls it."""
    library = _LIBRARIES[engine]
    return {
        "number of exports": str(len(exports)),
        "node": json.dumps([export.node for export in exports]),
        "version of the export's columns": json.dumps([export.schema_version for export in exports]),
        "key of pseudonyms": json.dumps([export.pseudonyms for export in exports]),
        "engine": f"{library} {version(library)}",
        "version of Ravel": _code(),
    }


@cache
def _code() -> str:
    """BLAKE3 (hex) of all that an analysis is computed by: another version may order or count otherwise."""
    root = Path(__file__).parent.parent
    hasher = blake3()
    for path in sorted(path for pattern in _CODE for path in root.glob(pattern)):
        hasher.update(f"{path.relative_to(root).as_posix()}\n".encode())
        hasher.update(path.read_bytes())
    return hasher.hexdigest()
