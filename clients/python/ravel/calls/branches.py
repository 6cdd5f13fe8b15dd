# A method is its signature: the decorator makes what it does.
# mypy: disable-error-code="empty-body"
"""Calls: branches. Made from the table of endpoints by `make reference`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ravel.callers import SyncCaller, calls, watches
from ravel.operations import Operation

if TYPE_CHECKING:  # a command calls one or two, and imports their types
    from collections.abc import Sequence

    from ravel.event_streams import EventStream
    from ravel.types.branches import BranchList, BranchMerge, BranchView, CompactionResult, MergeResult
    from ravel.types.commits import (
        CommitView,
        StreamedOutcome,
        VerdictView,
        VoidList,
        WrittenCommitView,
        WrittenPosts,
    )
    from ravel.types.inbox import CommentList, OfferAnswer, OfferList, OfferMade, OfferPreview
    from ravel.types.posts import HiddenPost, PostVersions, Thread, WrittenPost
    from ravel.types.search import SearchResult
    from ravel.types.timelines import (
        BranchState,
        EditWindow,
        FeedCheck,
        PastCommits,
        TangleView,
        TimelineDigest,
        TimelineWindow,
    )
    from ravel.types.unseen import UnseenCommitList, UnseenList
    from ravel.types.values import Capability, Empty, RootCommit

STREAM_POSTS: Final[Operation[StreamedOutcome]] = Operation(
    "POST",
    "/branches/{branch}/commits/stream",
    "commits.StreamedOutcome",
    takes_bytes=True,
    seconds_max=3600.0,
)


class BranchesCalls(SyncCaller):
    """Methods that wait for the answer."""

    @calls("GET", "/repos/{repo}/branches", "branches.BranchList")
    def list_branches(self, repo: str) -> BranchList:
        """List the branches of a repo."""

    @calls("POST", "/repos/{repo}/branches", "branches.BranchView")
    def create_branch(self, repo: str, name: str) -> BranchView:
        """Add a branch to a repo."""

    @calls("POST", "/branches/{branch}/edits", "values.RootCommit")
    def edit_branch(
        self, branch: str, *, name: str | None = None, archived: bool | None = None
    ) -> RootCommit:
        """Rename a branch, archive it, or take it back from the archive."""

    @calls("POST", "/branches/{branch}/main", "values.RootCommit")
    def point_main(self, branch: str) -> RootCommit:
        """Point main at a branch: from then on the name `main` means it."""

    @calls("POST", "/branches/{branch}/forks", "branches.BranchView")
    def fork_branch(self, branch: str, name: str, *, commit: str = "") -> BranchView:
        """Add a branch that continues another one."""

    @calls("POST", "/branches/{branch}/merges", "branches.BranchMerge")
    def merge_branch(self, branch: str, source: str) -> BranchMerge:
        """Write again in a branch what another branch has and it has not."""

    @calls("POST", "/branches/{branch}/capability", "values.Capability")
    def share_branch(self, branch: str) -> Capability:
        """Make a link that lets anyone read one branch."""

    @calls("POST", "/branches/{branch}/compactions", "branches.CompactionResult")
    def compact_branch(
        self, branch: str, *, dry_run: bool = False, without_missing: bool = False
    ) -> CompactionResult:
        """Compact a branch, so that nodes may erase bodies that its documents no longer need."""

    @calls("POST", "/branches/{branch}/commits", "commits.WrittenCommitView")
    def write_post(
        self, branch: str, text: str, *, resolve_mentions: bool = False, attachments: Sequence[str] = ()
    ) -> WrittenCommitView:
        """Write a post on the heads of a branch. It is durable when the answer comes."""

    @calls("POST", "/branches/{branch}/commits/batch", "commits.WrittenPosts", seconds_max=3600.0)
    def write_posts(self, branch: str, texts: Sequence[str]) -> WrittenPosts:
        """Write many posts, each following the one before it. All are durable when the answer comes.

        They are stored some hundred at a time. Where that fails in between, the error says how many are
        written: these are the first, and they stay.
        """

    @calls("GET", "/commits/{commit}", "commits.CommitView")
    def show_commit(self, commit: str) -> CommitView:
        """Show a commit with all it states."""

    @calls("GET", "/commits/{commit}/verdict", "commits.VerdictView")
    def explain_verdict(self, commit: str) -> VerdictView:
        """Explain the verdict on a commit: the rule and the commits that decide it."""

    @calls("GET", "/branches/{branch}/voids", "commits.VoidList")
    def list_voids(self, branch: str) -> VoidList:
        """List the void commits of a branch, and why they are void."""

    @calls("POST", "/commits/{commit}/replies", "posts.WrittenPost")
    def reply_to_post(
        self, commit: str, text: str, *, resolve_mentions: bool = False, attachments: Sequence[str] = ()
    ) -> WrittenPost:
        """Write a reply to a post, in its branch."""

    @calls("PUT", "/commits/{commit}/text", "posts.WrittenPost")
    def edit_post(self, commit: str, text: str, *, resolve_mentions: bool = False) -> WrittenPost:
        """Give a post of one's own another text. Earlier ones stay readable until they are erased."""

    @calls("DELETE", "/commits/{commit}", "posts.WrittenPost")
    def delete_post(self, commit: str) -> WrittenPost:
        """Delete a post of one's own for good, and remove its files. What it said stays readable until it is
        erased.
        """

    @calls("PUT", "/commits/{commit}/hidden", "posts.HiddenPost")
    def hide_post(self, commit: str, hidden: bool) -> HiddenPost:
        """Hide a post from the timelines of all members, or show it again."""

    @calls("GET", "/commits/{commit}/versions", "posts.PostVersions")
    def show_versions(self, commit: str, *, limit: int = 100, before: str = "") -> PostVersions:
        """Show what a post said over time: the last versions that count, also of a deleted or hidden post."""

    @calls("GET", "/commits/{commit}/thread", "posts.Thread")
    def show_thread(self, commit: str, *, limit: int = 100, after: str = "") -> Thread:
        """Show the thread of a post: the first post, and the replies."""

    @calls("GET", "/branches/{branch}/timeline", "timelines.TimelineWindow")
    def show_timeline(
        self,
        branch: str,
        *,
        limit: int = 100,
        order: str = "canonical",
        after_position: int | None = None,
        before_position: int | None = None,
        after: str | None = None,
        before: str | None = None,
        since: int | None = None,
    ) -> TimelineWindow:
        """Show a window of a branch's timeline.

        In canonical order, give at most one of `after_position` and `before_position`. With `order=time`, give
        at most one of `after`, `before` and `since`.
        """

    @calls("GET", "/branches/{branch}/edits", "timelines.EditWindow")
    def follow_edits(
        self, branch: str, *, since: str = "", positions: bool = False, limit: int = 100
    ) -> EditWindow:
        """Show edits of a branch's timeline, or follow them as they come."""

    @watches(follow_edits)
    def watch_edits(
        self, branch: str, *, since: str = "", positions: bool = False, reconnect: bool = True
    ) -> EventStream:
        """Follow events as they come: `edit`, `reset`, `closing`.

        With `reconnect`, a stream that is cut goes on where it was.
        """

    @calls("GET", "/branches/{branch}/digest", "timelines.TimelineDigest")
    def show_digest(self, branch: str) -> TimelineDigest:
        """Show the digest of a branch's whole timeline."""

    @calls("GET", "/branches/{branch}/state", "timelines.BranchState")
    def show_state(self, branch: str, *, limit: int = 100, kind: str = "") -> BranchState:
        """Show the last commits of a branch and of what it continues."""

    @calls("GET", "/branches/{branch}/past/{commit}", "timelines.PastCommits")
    def show_past(self, branch: str, commit: str, *, limit: int = 100) -> PastCommits:
        """Show a branch as it was at a commit: the last commits of its past.

        The commit may also be given by its tag.
        """

    @calls("GET", "/branches/{branch}/feeds", "timelines.FeedCheck")
    def check_feeds(self, branch: str) -> FeedCheck:
        """List the feeds of a branch, and the places that an author used more than once."""

    @calls("GET", "/repos/{repo}/tangles/{kind}", "timelines.TangleView")
    def show_tangle(
        self,
        repo: str,
        kind: str,
        *,
        limit: int = 100,
        branch: str = "main",
        author: str = "",
        epoch: str = "",
        message: str = "",
        name: str = "thread",
    ) -> TangleView:
        """Show the end of a tangle of a repo."""

    @calls("GET", "/search", "search.SearchResult")
    def search(
        self,
        *,
        text: str = "",
        repo: str = "",
        branch: str = "",
        author: str = "",
        since: int | None = None,
        until: int | None = None,
        limit: int = 20,
        after: str = "",
    ) -> SearchResult:
        """Search posts, names of files, texts, and names of branches and tags.

        A hit has all words of the text. `"words in quotes"` stand in this order; `meet*` stands for every word
        that begins so, with three letters or more. Case, and different encodings of one character, make no
        difference. A text is found some seconds after it was changed.
        """

    @calls("GET", "/unseen", "unseen.UnseenList")
    def list_unseen(self) -> UnseenList:
        """List branches with commits of others that the user has not seen, archived ones left out."""

    @calls("GET", "/branches/{branch}/unseen", "unseen.UnseenCommitList")
    def show_unseen(self, branch: str) -> UnseenCommitList:
        """Show which commits of a branch the user has not seen."""

    @calls("PUT", "/branches/{branch}/seen", "values.Empty")
    def mark_seen(self, branch: str, up_to: int) -> Empty:
        """Have a branch seen up to a moment. Only this node knows."""

    @calls("GET", "/repos/{repo}/offers", "inbox.OfferList")
    def list_offers(self, repo: str, *, limit: int = 100, status: str = "") -> OfferList:
        """List what was offered to a repo last."""

    @calls("POST", "/branches/{branch}/offers", "inbox.OfferMade")
    def make_offer(self, branch: str, source: str, *, note: str = "", pulls: bool = True) -> OfferMade:
        """Offer a branch of another repo to this branch."""

    @calls("POST", "/repos/{repo}/offers/{offer}/answers", "inbox.OfferAnswer")
    def answer_offer(self, repo: str, offer: str, accepts: bool) -> OfferAnswer:
        """Accept an offer, refuse it, or withdraw it."""

    @calls("PUT", "/repos/{repo}/offers/{offer}/fetch", "values.Empty")
    def fetch_offer(self, repo: str, offer: str) -> Empty:
        """Have this node alone follow the branch of an offer of commits, to look at it before it is answered."""

    @calls("GET", "/repos/{repo}/offers/{offer}/preview", "inbox.OfferPreview")
    def preview_offer(self, repo: str, offer: str) -> OfferPreview:
        """Show what a merge of an offer would write, once it is accepted and as far as it is here."""

    @calls("POST", "/repos/{repo}/offers/{offer}/merges", "branches.MergeResult")
    def merge_offer(self, repo: str, offer: str) -> MergeResult:
        """Write again in its branch what an accepted offer has and the branch has not."""

    @calls("POST", "/branches/{branch}/comments", "inbox.OfferAnswer")
    def write_comment(self, branch: str, text: str, *, answers: str = "") -> OfferAnswer:
        """Comment on a document, and offer the comment to its inbox."""

    @calls("POST", "/branches/{branch}/comments/{comment}/edits", "inbox.OfferAnswer")
    def edit_comment(self, branch: str, comment: str, text: str) -> OfferAnswer:
        """Give a comment of this user another text, and offer that."""

    @calls("DELETE", "/branches/{branch}/comments/{comment}", "inbox.OfferAnswer")
    def delete_comment(self, branch: str, comment: str) -> OfferAnswer:
        """Delete a comment of this user."""

    @calls("POST", "/branches/{branch}/trust", "inbox.OfferMade")
    def ask_trust(self, branch: str) -> OfferMade:
        """Ask that this user's comments on a document are shown at once."""

    @calls("GET", "/branches/{branch}/comments", "inbox.CommentList")
    def list_comments(self, branch: str, *, limit: int = 100, cursor: str = "") -> CommentList:
        """List the accepted comments on a document."""
