"""User actions on names: rename or archive branches, point main at one, and tag commits."""

from collections.abc import Iterable

from node.membership.repo_actions import RepoActions
from node.runtime.errors import ServiceError
from node.timelines.why import find_commit
from protocol.formats.body import BranchEdit, Tag
from protocol.formats.text import id_text
from protocol.ids import NO_COMMIT, CommitId
from protocol.limits.formats import NAME_SIZE_MAX
from ravel.characters import composed, name_fault
from ravel.types.repos import TagList
from ravel.types.values import RootCommit
from storage.repos.repos import Branch, Repo
from verifier.names import MAIN, find_tags


class Names(RepoActions):
    """Changes and lists names."""

    async def edit_branch(self, branch: str, name: str | None, *, archived: bool | None) -> RootCommit:
        """Rename a branch, archive it, or take it back."""
        target = self._find_branch(branch)
        if name is None and archived is None:
            raise ServiceError("bad_request", "say a name, or whether it is archived")
        if name is not None:
            name = check_name(name)
        if name in (None, target.name) and archived in (None, target.is_archived):
            raise ServiceError("already_exists", f"the branch {target.name!r} is so already")
        if name is not None:
            named = self._hub.replica.tables.taking_name(name)
            if any(one.repo_num == target.repo_num and one.num != target.num for one in named):
                raise ServiceError(
                    "already_exists", f"there is a branch called {name!r}", "choose another name"
                )
        repo = self._hub.replica.repos[target.repo_num]
        return await self._write_root(repo, BranchEdit(target.branch_id, name, archived))

    async def point_main(self, branch: str) -> RootCommit:
        """Point main at a branch: from then on the name means this one. Costs O(branches), as each change of a name does."""
        target = self._find_branch(branch)
        if target.is_main:
            raise ServiceError("already_exists", f"the branch {target.name!r} is main already")
        if target.is_archived:
            raise ServiceError(
                "bad_request",
                f"the branch {target.name!r} is archived, and main leads to none of those",
                "take it back first: `ravel branch archive BRANCH --undo`",
            )
        repo = self._hub.replica.repos[target.repo_num]
        return await self._write_root(repo, Tag(MAIN, target.branch_id, target.facts.root_id))

    async def list_tags(self, repo: str) -> TagList:
        """Names of commits in a repo."""
        tags = await self._hub.run_blocking(self.tags, self._find_repo(repo))
        return {
            "tags": [
                {"name": name, "branch": id_text(tag.branch), "commit": id_text(tag.commit or NO_COMMIT)}
                for name, tag in sorted(tags.items())
            ]
        }

    async def set_tag(self, repo: str, name: str, commit: str) -> RootCommit:
        """Name a commit of one of the repo's branches, or move the name there."""
        name = check_name(name)
        if name == MAIN:
            raise ServiceError(
                "bad_request", "the tag main points main at a branch", "`ravel branch main BRANCH` does that"
            )
        target = self._find_repo(repo)
        branch, commit_id = await self._hub.run_blocking(self._find, target, commit)
        kept = _spelling(await self._hub.run_blocking(self.tags, target), name)
        return await self._write_root(target, Tag(kept or name, branch.branch_id, commit_id))

    async def remove_tag(self, repo: str, name: str) -> RootCommit:
        """Remove a name."""
        target = self._find_repo(repo)
        tags = await self._hub.run_blocking(self.tags, target)
        kept = _spelling(tags, name)
        if kept is None:
            raise ServiceError("not_found", f"no tag is called {name!r}", "`ravel tag list` shows names")
        return await self._write_root(target, Tag(kept, tags[kept].branch, None))

    def tags(self, repo: Repo) -> dict[str, Tag]:
        """List the tags of a repo, with the commit that each name points at."""
        with self._hub.replica.membership_lock:
            return find_tags(self._hub.replica.membership(repo.repo_id))

    def _find(self, repo: Repo, text: str) -> tuple[Branch, CommitId]:
        here = {
            branch.num: branch
            for branch in self._hub.replica.branches_in(repo.num)
            if not branch.facts.is_root_branch
        }
        with self._hub.replica.database.read() as connection:
            found = find_commit(connection, text, here.values())
        if found.state != "accepted":
            raise ServiceError("bad_request", f"that commit is {found.state}", f"`ravel why {text}` says why")
        return here[found.branch_num], found.commit_id


def _spelling(tags: Iterable[str], name: str) -> str | None:
    """Return the tag that is called so: other nodes may have made it in another form of Unicode."""
    wanted = composed(name)
    return next((tag for tag in tags if composed(tag) == wanted), None)


def check_name(typed: str) -> str:
    """Return a name as it is kept. Raises ServiceError `bad_request`.

    Names are typed: as arguments, as parts of a URL's path, and before or after the colon of REPO:BRANCH.
    """
    name = composed(typed)
    if not 0 < len(name) <= NAME_SIZE_MAX or name != name.strip():
        raise ServiceError(
            "bad_request",
            f"a name has 1 to {NAME_SIZE_MAX} characters, no space at its ends",
            "choose another name",
        )
    if fault := name_fault(name):
        raise ServiceError("bad_request", f"a name {fault}", "choose another name")
    if ":" in name or name.startswith("-") or name in (".", ".."):
        raise ServiceError(
            "bad_request",
            f"a name has no colon, does not begin with -, and is not {name!r}",
            "choose another name",
        )
    return name
