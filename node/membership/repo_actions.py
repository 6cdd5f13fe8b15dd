"""Base class of user actions on repos: find repo and branch, write a root branch commit."""

from collections.abc import Callable

from node.authoring.author import Author
from node.authoring.writing import write_commit
from node.sync.hub import Hub
from protocol.formats.body import Body
from protocol.formats.text import id_text
from ravel.types.values import RootCommit
from storage.repos.repos import Branch, Repo


class RepoActions:
    """Base class of services that list and change repos. Names are those that `find_repo` and `find_branch` accept."""

    def __init__(
        self,
        hub: Hub,
        author: Author,
        find_repo: Callable[[str], Repo],
        find_branch: Callable[[str], Branch],
    ) -> None:
        self._hub = hub
        self._author = author
        self._find_repo = find_repo
        self._find_branch = find_branch

    async def _write_root(self, repo: Repo, body: Body) -> RootCommit:
        """Write one commit of the root branch. Raises ServiceError where the rules refuse it."""
        root = self._hub.replica.root_branch(repo)
        written = await write_commit(self._hub, self._author, root, body)
        return {"commit": id_text(written.commit_id), "repo": id_text(repo.repo_id)}
