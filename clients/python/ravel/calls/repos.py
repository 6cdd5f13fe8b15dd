"""Calls: repos. Made from the table of endpoints by `make reference`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ravel.callers import SyncCaller
from ravel.operations import Operation

if TYPE_CHECKING:  # a command calls one or two, and imports their types
    from ravel.types.repos import EpochList, NewEpoch, RepoFork, RepoList, RepoView, TagList
    from ravel.types.values import Capability, Empty, RootCommit

LIST_REPOS: Final[Operation[RepoList]] = Operation("GET", "/repos", "repos.RepoList", defaults={"since": ""})
CREATE_REPO: Final[Operation[RepoView]] = Operation("POST", "/repos", "repos.RepoView")
JOIN_REPO: Final[Operation[RepoView]] = Operation(
    "POST", "/join", "repos.RepoView", defaults={"follow": False}
)
FOLLOW_REPO: Final[Operation[RepoView]] = Operation("POST", "/follow", "repos.RepoView")
FORK_REPO: Final[Operation[RepoFork]] = Operation("POST", "/repos/{repo}/forks", "repos.RepoFork")
FORGET_REPO: Final[Operation[Empty]] = Operation(
    "DELETE", "/repos/{repo}", "values.Empty", defaults={"accept_loss": False}, in_query=True
)
SHARE_REPO: Final[Operation[Capability]] = Operation("POST", "/repos/{repo}/capability", "values.Capability")
LIST_EPOCHS: Final[Operation[EpochList]] = Operation("GET", "/repos/{repo}/epochs", "repos.EpochList")
START_EPOCH: Final[Operation[NewEpoch]] = Operation("POST", "/repos/{repo}/epochs", "repos.NewEpoch")
LIST_TAGS: Final[Operation[TagList]] = Operation("GET", "/repos/{repo}/tags", "repos.TagList")
SET_TAG: Final[Operation[RootCommit]] = Operation("PUT", "/repos/{repo}/tags/{name}", "values.RootCommit")
REMOVE_TAG: Final[Operation[RootCommit]] = Operation(
    "DELETE", "/repos/{repo}/tags/{name}", "values.RootCommit"
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
