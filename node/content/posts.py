"""Posts: one, or many by one request, each a commit on the heads of its branch."""

from collections.abc import Callable, Sequence

from node.authoring.author import Author
from node.authoring.drafting import Draft, WrittenCommit
from node.authoring.writing import write_commit, write_commits
from node.contract.commits import WrittenCommitView, WrittenPosts
from node.runtime.errors import ServiceError
from node.sync.hub import Hub
from protocol.content import Post
from protocol.limits.users import WRITE_GROUP_COMMITS_MAX
from protocol.text import id_text
from storage.engine.errors import StorageError
from storage.engine.id_keys import chunks
from storage.repos.repos import Branch


class Posts:
    """Writes posts into branches, which are named as `find_branch` takes them."""

    def __init__(self, hub: Hub, author: Author, find_branch: Callable[[str], Branch]) -> None:
        self._hub = hub
        self._author = author
        self._find_branch = find_branch

    async def write(self, branch: str, text: str) -> WrittenCommitView:
        """Write one post on the branch's heads; it is durable when this returns."""
        target = self._find_branch(branch)
        written = await write_commit(self._hub, self._author, target, Post(text))
        return {
            "commit": id_text(written.commit_id),
            "rank": _rank_of(written),
            "branch": id_text(target.branch_id),
        }

    async def write_many(self, branch: str, texts: list[str]) -> WrittenPosts:
        """Write posts one after the other, some hundred in a transaction; all are durable when this returns.

        Raises ServiceError as `write`: its message then says how many are written, which are the first.
        """
        target = self._find_branch(branch)
        commits: list[WrittenCommit] = []
        for part in chunks(texts, WRITE_GROUP_COMMITS_MAX):
            try:
                commits += await write_commits(self._hub, self._author, target, _drafts(part))
            except (ServiceError, StorageError) as error:
                if not commits:
                    raise
                raise _told_how_far(error, len(commits), len(texts)) from error
        return {
            "branch": id_text(target.branch_id),
            "commits": [id_text(one.commit_id) for one in commits],
            "rank": _rank_of(commits[-1]),
        }


def _rank_of(written: WrittenCommit) -> int:
    assert written.rank is not None, "it is stored"
    return written.rank


def _drafts(texts: Sequence[str]) -> list[Draft]:
    return [Draft(Post(text)) for text in texts]


def _told_how_far(error: ServiceError | StorageError, done: int, count: int) -> ServiceError:
    """The same error, which says what is durable."""
    code, next_step = (
        (error.code, error.advice) if isinstance(error, ServiceError) else ("storage_failed", "")
    )
    return ServiceError(code, f"{error}; the first {done} of {count} posts are written", next_step)
