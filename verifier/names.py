"""Names of branches and commits, archived branches, and the main branch: the latest word in canonical order wins.

Nothing rests on a name, so among words that were said at the same time it is enough that every node takes the same one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from protocol.formats.body import BranchAdd, BranchEdit, Tag
from protocol.ids import BranchId
from verifier.membership import Membership

MAIN: Final = "main"
"""Name by which a repo's main branch is meant. The tag of this name points it at a branch."""


@dataclass(frozen=True, slots=True)
class BranchName:
    """Name of a branch as it is shown; also if the branch is archived, and if it is the repo's main one."""

    name: str
    is_archived: bool
    is_main: bool = False


def find_branch_names(membership: Membership) -> dict[BranchId, BranchName]:
    """Find the names of all branches, and the main branch. Costs O(branches, their edits, and changes of main).

    Edits that do not count change nothing. A branch without an addition that counts is archived.
    """
    now, operations = membership.now(), membership.operations
    found: dict[BranchId, BranchName] = {}
    for branch in operations.branches():
        added = operations.in_order(operations.branch_adds(branch))
        counting = [one for one in added if now.counts(one)]
        name, is_archived = "", not counting
        for one in operations.in_order([*(counting or added), *operations.edits.get(branch, ())]):
            if isinstance(one.body, BranchAdd):
                name = one.body.name
            elif isinstance(one.body, BranchEdit) and now.counts(one):
                name = name if one.body.name is None else one.body.name
                is_archived = is_archived if one.body.archived is None else one.body.archived
        found[branch] = BranchName(name, is_archived)
    main = _find_main(membership, found)
    if main is not None:
        found[main] = replace(found[main], is_main=True)
    return found


def _find_main(membership: Membership, names: Mapping[BranchId, BranchName]) -> BranchId | None:
    """Find the main branch: that of the last pointing that counts and leads somewhere, else the first of its name."""
    now, operations = membership.now(), membership.operations
    main: BranchId | None = None
    for one in operations.in_order(operations.tags.get(MAIN, ())):
        if isinstance(one.body, Tag) and now.counts(one):
            if one.body.commit is None:
                main = None
            elif one.body.branch in names and not names[one.body.branch].is_archived:
                main = one.body.branch
    if main is not None:
        return main
    named = [
        one
        for branch, shown in names.items()
        if shown.name == MAIN and not shown.is_archived
        for one in operations.branch_adds(branch)
        if now.counts(one)
    ]
    return next(
        (one.body.branch for one in operations.in_order(named) if isinstance(one.body, BranchAdd)), None
    )


def find_tags(membership: Membership) -> dict[str, Tag]:
    """Find the commit of each tag, and of main; tags that were taken away are left out. Costs O(tags)."""
    now, operations = membership.now(), membership.operations
    found: dict[str, Tag] = {}
    for name, said in operations.tags.items():
        for one in operations.in_order(said):
            if isinstance(one.body, Tag) and now.counts(one):
                found[name] = one.body
    return {name: tag for name, tag in found.items() if tag.commit is not None and name != MAIN}
