"""Finds the repos, branches and commits that requests name, among those that a caller is for."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from node.api.callers import HOME, Caller
from node.ingest.replica import Replica
from node.membership.devices import is_devices_repo
from node.membership.lobbies import is_lobby
from node.runtime.errors import ServiceError
from node.runtime.resolve import NEAR_COUNT_MAX, PREFIX_SIZE_MIN, preferred_repo, range_of, resolve
from protocol.codec import DecodeError
from protocol.formats.text import ID_TEXT, id_text, parse_id, parse_id_prefix
from protocol.ids import AnyId, BranchId, RepoId, UserId
from storage.commits.lookup import find_commits
from storage.repos.repos import Branch, Repo
from verifier.names import MAIN

Row = TypeVar("Row", Branch, Repo)


class Targets:
    """Resolver of names, ids and prefixes. A caller that is for some repos finds no others, as if they were not there."""

    def __init__(self, replica: Replica, user: UserId) -> None:
        self._replica = replica
        self._user = user

    def repo(self, text: str, caller: Caller = HOME) -> Repo:
        """Return a repo. Raises ServiceError `not_found`, `ambiguous`."""
        return self._repo(text, lambda repo: caller.is_for_repo(id_text(repo.repo_id)))

    def repo_with_members(self, text: str) -> Repo:
        """Return a repo whose members this node knows. Raises ServiceError `not_permitted`, and as `repo` does."""
        return _require_members(self.repo(text))

    def branch_with_members(self, text: str) -> Branch:
        """Return a branch of a repo whose members this node knows. Raises as `repo_with_members` does."""
        branch = self.branch(text)
        _require_members(self.repo_of(branch))
        return branch

    def is_of_devices(self, repo: Repo) -> bool:
        """Return True if this user's devices find each other in a repo. Waits for other work on the membership."""
        return is_devices_repo(self._replica, repo, self._user)

    def repo_of(self, branch: Branch) -> Repo:
        """Return the repo of a branch."""
        return self._replica.repos[branch.repo_num]

    def repo_of_branches(self, text: str, caller: Caller) -> Repo:
        """Return a repo that the caller is for, or that has such a branch. Raises as `repo`."""
        of_branches = {name.partition(":")[0] for name in caller.branches}
        return self._repo(
            text,
            lambda repo: caller.is_for_repo(id_text(repo.repo_id)) or id_text(repo.repo_id) in of_branches,
        )

    def branch(self, text: str, caller: Caller = HOME) -> Branch:
        """Return a branch by name, id, prefix, or REPO:BRANCH if the name is not unique. Raises as `repo`.

        `main` is the repo's main branch, whatever its name. A name alone means a branch of the preferred repo first. A
        branch of a whole repo goes before one that is followed alone, since such a one may come by an offer.
        """
        repo_text, _, branch_text = text.rpartition(":")
        repo = self.repo_of_branches(repo_text, caller) if repo_text else None
        tables = self._replica.tables
        own = self._own_branches(caller) if caller.is_limited else None

        def visible(some: Iterable[Branch]) -> list[Branch]:
            return [
                branch
                for branch in some
                if not branch.facts.is_root_branch
                and (repo is None or branch.repo_num == repo.num)
                and (own is None or branch.num in own)
            ]

        # A prefix, or what is a mistake, is compared with all there are; an id and a name are looked up.
        found = visible(tables.with_id(BranchId(wanted))) if (wanted := _id_of(branch_text)) else []
        if not found:
            found = visible(tables.with_name(branch_text))
            preferred = "" if repo else preferred_repo.get()
            chosen = [branch for branch in found if preferred and self.repo_text(branch) == preferred]
            found = chosen or [branch for branch in found if branch.facts.has_members] or found
        if not found:
            if repo is not None:
                there: Iterable[Branch] = tables.branches_in(repo.num)
            else:
                there = tables.branches.values() if own is None else own.values()
            found = _with_ids_like(visible(there), branch_text)
        return resolve(
            "branch",
            branch_text,
            (
                (branch.branch_id, MAIN if branch.is_main and branch_text == MAIN else branch.name, branch)
                for branch in found
            ),
            lambda branch: f"{self._replica.repos[branch.repo_num].name}:{branch.name}",
        )

    def branches(self, caller: Caller, repo: str = "", branch: str = "") -> list[Branch]:
        """Return the branch of this name, or all of a repo, or all that there are, which a caller is for.

        Raises ServiceError `not_found`, `ambiguous`.
        """
        if branch:
            return [self.branch(f"{repo}:{branch}" if repo else branch, caller)]
        return self.readable(caller, self.repo_of_branches(repo, caller).num if repo else None)

    def readable(self, caller: Caller, repo_num: int | None = None) -> list[Branch]:
        """Return all branches that a caller is for, of one repo or of all. Root branches and lobbies are left out."""
        there = self._own_branches(caller) if caller.is_limited else self._replica.branches
        return [
            branch
            for branch in there.values()
            if not branch.facts.is_root_branch and repo_num in (None, branch.repo_num)
        ]

    def commit(self, text: str, caller: Caller) -> str:
        """Return the id of a commit in a branch that the caller is for. Reads the store. Raises as `repo`."""
        try:
            ids = parse_id_prefix(text) if len(text) >= PREFIX_SIZE_MIN else None
        except DecodeError:
            ids = None
        nums = set(self._own_branches(caller) if caller.is_limited else self._replica.branches)
        with self._replica.database.read() as connection:
            here = find_commits(connection, *ids, branch_nums=nums) if ids else []
        return resolve("commit", text, ((one.commit_id, "", id_text(one.commit_id)) for one in here))

    def _own_branches(self, caller: Caller) -> dict[int, Branch]:
        """Return the branches of a limited caller by number, without looking at others."""
        tables = self._replica.tables
        repos = (tables.of_id.get(RepoId(parse_id(text))) for text in caller.repos)
        found = {branch.num: branch for repo in repos if repo for branch in tables.branches_in(repo.num)}
        for name in caller.branches:
            repo_id, _, branch_id = name.partition(":")
            repo = tables.of_id.get(RepoId(parse_id(repo_id)))
            branch = repo and tables.find_branch(repo.num, BranchId(parse_id(branch_id)))
            found |= {branch.num: branch} if branch else {}
        return found

    def repo_text(self, branch: Branch) -> str:
        """Return the id of a branch's repo as text, also of one that was deleted since."""
        return id_text(branch.facts.repo_id)

    def text_of(self, repo: Repo) -> str:
        """Return a repo's id as text."""
        return id_text(repo.repo_id)

    def name(self, branch: Branch) -> str:
        """Return REPO:BRANCH made of ids, which names one branch whatever others are called."""
        return f"{self.repo_text(branch)}:{id_text(branch.branch_id)}"

    def _repo(self, text: str, is_wanted: Callable[[Repo], bool]) -> Repo:
        def visible(some: Iterable[Repo]) -> list[Repo]:
            return [repo for repo in some if is_wanted(repo) and not is_lobby(self._replica, repo)]

        tables, full = self._replica.tables, _id_of(text)
        named = None if full is None else tables.of_id.get(RepoId(full))
        # A prefix, or what is a mistake, is compared with all there are; an id and a name are looked up.
        found = visible([] if named is None else [named])
        found = found or visible(tables.repos_with_name(text))
        found = found or _with_ids_like(visible(tables.repos.values()), text)
        return resolve("repo", text, ((repo.repo_id, repo.name, repo) for repo in found))


def _require_members(repo: Repo) -> Repo:
    if not repo.has_members:
        raise ServiceError(
            "not_permitted",
            "this node follows single branches of that repo, and knows neither its members nor its other branches",
            "ask a member for an invitation",
        )
    return repo


def _with_ids_like(found: list[Row], text: str) -> list[Row]:
    """Return the rows whose ids begin like a text. If there are none, return a few, among which a typing error may be found.

    For 16,000 rows this takes two milliseconds; `resolve` would take ten.
    """
    low, high = range_of(text)
    ids = (one.branch_id if isinstance(one, Branch) else one.repo_id for one in found)
    return [one for one, own_id in zip(found, ids, strict=True) if low <= own_id <= high] or found[
        :NEAR_COUNT_MAX
    ]


def _id_of(text: str) -> AnyId | None:
    """Return the id that a whole text is, if it is one."""
    try:
        return parse_id(text) if ID_TEXT.fullmatch(text) else None
    except DecodeError:
        return None
