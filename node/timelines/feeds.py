"""Lists the feeds of a branch, and the evidence of forked feeds."""

from collections.abc import Callable

from node.contract.timelines import FeedCheck
from node.sync.hub import Hub
from protocol.limits.users import FEED_FORK_COMMITS_SHOWN_MAX, FEED_FORKS_SHOWN_MAX
from protocol.text import id_text
from storage.commits.feeds import load_feed_forks, load_feeds
from storage.repos.repos import Branch


class Feeds:
    """Looks at the feeds of branches, which are named as `find_branch` takes them."""

    def __init__(self, hub: Hub, find_branch: Callable[[str], Branch]) -> None:
        self._hub = hub
        self._find_branch = find_branch

    async def check(self, branch: str) -> FeedCheck:
        """List every author's feed, and the places used more than once: the first of them, and of their commits."""
        return await self._hub.run_blocking(self._check, self._find_branch(branch))

    def _check(self, branch: Branch) -> FeedCheck:
        with self._hub.replica.database.read() as connection:
            feeds = load_feeds(connection, branch.num)
            forks = load_feed_forks(
                connection,
                branch.num,
                place_limit=FEED_FORKS_SHOWN_MAX,
                commit_limit=FEED_FORK_COMMITS_SHOWN_MAX,
            )
        people, repo_id = self._hub.replica.people, branch.facts.repo_id
        return {
            "branch": id_text(branch.branch_id),
            "feeds": [
                {
                    "author": id_text(feed.author),
                    "author_name": people.name(repo_id, feed.author),
                    "commits": feed.commits,
                    "last": feed.last,
                    "forks": feed.forks,
                }
                for feed in feeds
            ],
            "forks": [
                {
                    "author": id_text(fork.author),
                    "author_name": people.name(repo_id, fork.author),
                    "sequence": fork.sequence,
                    "commits": [id_text(commit_id) for commit_id in fork.commit_ids],
                    "commit_count": fork.count,
                }
                for fork in forks
            ],
            "fork_count": sum(feed.forks for feed in feeds),
        }
