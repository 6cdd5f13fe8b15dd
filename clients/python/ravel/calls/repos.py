"""Calls: repos. Made from the table of endpoints by `make reference`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ravel.callers import AsyncCaller, SyncCaller
from ravel.operations import Operation

if TYPE_CHECKING:  # a command calls one or two, and imports their types
    from ravel.types.repos import EpochList, NewEpoch, RepoFork, RepoList, RepoView, TagList
    from ravel.types.values import Capability, Empty, RootCommit

LIST_REPOS: Final[Operation[RepoList]] = Operation(
    name="list_repos",
    method="GET",
    path="/repos",
    answer="repos.RepoList",
    query=("since",),
    defaults={"since": ""},
)
CREATE_REPO: Final[Operation[RepoView]] = Operation(
    name="create_repo", method="POST", path="/repos", answer="repos.RepoView", body=("name",)
)
JOIN_REPO: Final[Operation[RepoView]] = Operation(
    name="join_repo",
    method="POST",
    path="/join",
    answer="repos.RepoView",
    body=("invitation", "follow"),
    defaults={"follow": False},
)
FOLLOW_REPO: Final[Operation[RepoView]] = Operation(
    name="follow_repo", method="POST", path="/follow", answer="repos.RepoView", body=("capability",)
)
FORK_REPO: Final[Operation[RepoFork]] = Operation(
    name="fork_repo", method="POST", path="/repos/{repo}/forks", answer="repos.RepoFork", body=("name",)
)
FORGET_REPO: Final[Operation[Empty]] = Operation(
    name="forget_repo",
    method="DELETE",
    path="/repos/{repo}",
    answer="values.Empty",
    query=("accept_loss",),
    defaults={"accept_loss": False},
)
SHARE_REPO: Final[Operation[Capability]] = Operation(
    name="share_repo", method="POST", path="/repos/{repo}/capability", answer="values.Capability"
)
LIST_EPOCHS: Final[Operation[EpochList]] = Operation(
    name="list_epochs", method="GET", path="/repos/{repo}/epochs", answer="repos.EpochList"
)
START_EPOCH: Final[Operation[NewEpoch]] = Operation(
    name="start_epoch", method="POST", path="/repos/{repo}/epochs", answer="repos.NewEpoch"
)
LIST_TAGS: Final[Operation[TagList]] = Operation(
    name="list_tags", method="GET", path="/repos/{repo}/tags", answer="repos.TagList"
)
SET_TAG: Final[Operation[RootCommit]] = Operation(
    name="set_tag",
    method="PUT",
    path="/repos/{repo}/tags/{name}",
    answer="values.RootCommit",
    body=("commit",),
)
REMOVE_TAG: Final[Operation[RootCommit]] = Operation(
    name="remove_tag", method="DELETE", path="/repos/{repo}/tags/{name}", answer="values.RootCommit"
)


class ReposCalls(SyncCaller):
    """Methods that wait for the answer."""

    def list_repos(self, *, since: str = "") -> RepoList:
        """List the repos of this node."""
        return self._call(LIST_REPOS, {"since": since})

    def create_repo(self, name: str) -> RepoView:
        """Create a repo with a branch `main`."""
        return self._call(CREATE_REPO, {"name": name})

    def join_repo(self, invitation: str, *, follow: bool = False) -> RepoView:
        """Join a repo by a bearer link, or ask to be let in by a link that asks."""
        return self._call(JOIN_REPO, {"invitation": invitation, "follow": follow})

    def follow_repo(self, capability: str) -> RepoView:
        """Read and replicate a repo, or one of its branches, by a read capability."""
        return self._call(FOLLOW_REPO, {"capability": capability})

    def fork_repo(self, repo: str, name: str) -> RepoFork:
        """Create a repo of this user that continues another."""
        return self._call(FORK_REPO, {"repo": repo, "name": name})

    def forget_repo(self, repo: str, *, accept_loss: bool = False) -> Empty:
        """Delete a repo from this node, with all its commits."""
        return self._call(FORGET_REPO, {"repo": repo, "accept_loss": accept_loss})

    def share_repo(self, repo: str) -> Capability:
        """Make a link that lets anyone read a repo."""
        return self._call(SHARE_REPO, {"repo": repo})

    def list_epochs(self, repo: str) -> EpochList:
        """List the epochs of a repo."""
        return self._call(LIST_EPOCHS, {"repo": repo})

    def start_epoch(self, repo: str) -> NewEpoch:
        """Give a repo new secrets, sealed for exactly its members."""
        return self._call(START_EPOCH, {"repo": repo})

    def list_tags(self, repo: str) -> TagList:
        """List the named commits of a repo."""
        return self._call(LIST_TAGS, {"repo": repo})

    def set_tag(self, repo: str, name: str, commit: str) -> RootCommit:
        """Name a commit, or move a name to it."""
        return self._call(SET_TAG, {"repo": repo, "name": name, "commit": commit})

    def remove_tag(self, repo: str, name: str) -> RootCommit:
        """Remove the name of a commit."""
        return self._call(REMOVE_TAG, {"repo": repo, "name": name})


class AsyncReposCalls(AsyncCaller):
    """Methods to await."""

    async def list_repos(self, *, since: str = "") -> RepoList:
        """List the repos of this node."""
        return await self._call(LIST_REPOS, {"since": since})

    async def create_repo(self, name: str) -> RepoView:
        """Create a repo with a branch `main`."""
        return await self._call(CREATE_REPO, {"name": name})

    async def join_repo(self, invitation: str, *, follow: bool = False) -> RepoView:
        """Join a repo by a bearer link, or ask to be let in by a link that asks."""
        return await self._call(JOIN_REPO, {"invitation": invitation, "follow": follow})

    async def follow_repo(self, capability: str) -> RepoView:
        """Read and replicate a repo, or one of its branches, by a read capability."""
        return await self._call(FOLLOW_REPO, {"capability": capability})

    async def fork_repo(self, repo: str, name: str) -> RepoFork:
        """Create a repo of this user that continues another."""
        return await self._call(FORK_REPO, {"repo": repo, "name": name})

    async def forget_repo(self, repo: str, *, accept_loss: bool = False) -> Empty:
        """Delete a repo from this node, with all its commits."""
        return await self._call(FORGET_REPO, {"repo": repo, "accept_loss": accept_loss})

    async def share_repo(self, repo: str) -> Capability:
        """Make a link that lets anyone read a repo."""
        return await self._call(SHARE_REPO, {"repo": repo})

    async def list_epochs(self, repo: str) -> EpochList:
        """List the epochs of a repo."""
        return await self._call(LIST_EPOCHS, {"repo": repo})

    async def start_epoch(self, repo: str) -> NewEpoch:
        """Give a repo new secrets, sealed for exactly its members."""
        return await self._call(START_EPOCH, {"repo": repo})

    async def list_tags(self, repo: str) -> TagList:
        """List the named commits of a repo."""
        return await self._call(LIST_TAGS, {"repo": repo})

    async def set_tag(self, repo: str, name: str, commit: str) -> RootCommit:
        """Name a commit, or move a name to it."""
        return await self._call(SET_TAG, {"repo": repo, "name": name, "commit": commit})

    async def remove_tag(self, repo: str, name: str) -> RootCommit:
        """Remove the name of a commit."""
        return await self._call(REMOVE_TAG, {"repo": repo, "name": name})
