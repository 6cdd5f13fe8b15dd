"""Names of branches and commits, and archived branches: the latest name in canonical order wins.

Nothing rests on a name, so among words that were said at the same time it is enough that every node takes the same one.
"""

from dataclasses import dataclass

from protocol.formats.body import BranchAdd, BranchEdit, Tag
from protocol.ids import BranchId
from verifier.membership import Membership


@dataclass(frozen=True, slots=True)
class BranchName:
    """Name of a branch as it is shown, and if it is archived."""

    name: str
    is_archived: bool


def find_branch_names(membership: Membership) -> dict[BranchId, BranchName]:
    """Find the names of all branches. Costs O(branches and edits).

    Edits that do not count change nothing; a branch whose addition does not is archived.
    """
    now, operations = membership.now(), membership.operations
    found: dict[BranchId, BranchName] = {}
    for branch in operations.branches():
        added = operations.in_order(operations.branch_adds(branch))
        body = added[0].body
        assert isinstance(body, BranchAdd), "looked for"
        name, is_archived = body.name, not any(now.counts(one) for one in added)
        for edit in operations.in_order(operations.edits.get(branch, ())):
            if isinstance(edit.body, BranchEdit) and now.counts(edit):
                name = name if edit.body.name is None else edit.body.name
                is_archived = is_archived if edit.body.archived is None else edit.body.archived
        found[branch] = BranchName(name, is_archived)
    return found


def find_tags(membership: Membership) -> dict[str, Tag]:
    """Find what each name of a commit stands for, without names that were taken away. Costs O(tags)."""
    now, operations = membership.now(), membership.operations
    found: dict[str, Tag] = {}
    for name, said in operations.tags.items():
        for one in operations.in_order(said):
            if isinstance(one.body, Tag) and now.counts(one):
                found[name] = one.body
    return {name: tag for name, tag in found.items() if tag.commit is not None}
