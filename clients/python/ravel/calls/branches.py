"""Calls: branches. Made from the table of endpoints by `make reference`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ravel.callers import SyncCaller
from ravel.operations import Operation

if TYPE_CHECKING:  # a command calls one or two, and imports their types
    from ravel.types.branches import BranchList, BranchMerge, BranchView, CompactionResult
    from ravel.types.values import Capability, RootCommit

LIST_BRANCHES: Final[Operation[BranchList]] = Operation(
    "GET", "/repos/{repo}/branches", "branches.BranchList"
)
CREATE_BRANCH: Final[Operation[BranchView]] = Operation(
    "POST", "/repos/{repo}/branches", "branches.BranchView"
)
EDIT_BRANCH: Final[Operation[RootCommit]] = Operation(
    "POST", "/branches/{branch}/edits", "values.RootCommit", defaults={"name": None, "archived": None}
)
POINT_MAIN: Final[Operation[RootCommit]] = Operation("POST", "/branches/{branch}/main", "values.RootCommit")
FORK_BRANCH: Final[Operation[BranchView]] = Operation(
    "POST", "/branches/{branch}/forks", "branches.BranchView", defaults={"commit": ""}
)
MERGE_BRANCH: Final[Operation[BranchMerge]] = Operation(
    "POST", "/branches/{branch}/merges", "branches.BranchMerge"
)
SHARE_BRANCH: Final[Operation[Capability]] = Operation(
    "POST", "/branches/{branch}/capability", "values.Capability"
)
COMPACT_BRANCH: Final[Operation[CompactionResult]] = Operation(
    "POST",
    "/branches/{branch}/compactions",
    "branches.CompactionResult",
    defaults={"dry_run": False, "without_missing": False},
)


class BranchesCalls(SyncCaller):
    """Methods that wait for the answer."""

    def list_branches(self, repo: str) -> BranchList:
        """List the branches of a repo."""
        return self._call(LIST_BRANCHES, {"repo": repo})

    def create_branch(self, repo: str, name: str) -> BranchView:
        """Add a branch to a repo."""
        return self._call(CREATE_BRANCH, {"repo": repo, "name": name})

    def edit_branch(
        self, branch: str, *, name: str | None = None, archived: bool | None = None
    ) -> RootCommit:
        """Rename a branch, archive it, or take it back from the archive."""
        return self._call(EDIT_BRANCH, {"branch": branch, "name": name, "archived": archived})

    def point_main(self, branch: str) -> RootCommit:
        """Point main at a branch: from then on the name `main` means it."""
        return self._call(POINT_MAIN, {"branch": branch})

    def fork_branch(self, branch: str, name: str, *, commit: str = "") -> BranchView:
        """Add a branch that continues another one."""
        return self._call(FORK_BRANCH, {"branch": branch, "name": name, "commit": commit})

    def merge_branch(self, branch: str, source: str) -> BranchMerge:
        """Write again in a branch what another branch has and it has not."""
        return self._call(MERGE_BRANCH, {"branch": branch, "source": source})

    def share_branch(self, branch: str) -> Capability:
        """Make a link that lets anyone read one branch."""
        return self._call(SHARE_BRANCH, {"branch": branch})

    def compact_branch(
        self, branch: str, *, dry_run: bool = False, without_missing: bool = False
    ) -> CompactionResult:
        """Compact a branch, so that nodes may erase bodies that its documents no longer need."""
        return self._call(
            COMPACT_BRANCH, {"branch": branch, "dry_run": dry_run, "without_missing": without_missing}
        )
