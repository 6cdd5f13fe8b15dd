"""Calls: branches. Made from the table of endpoints by `make reference`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ravel.callers import SyncCaller
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

LIST_BRANCHES: Final[Operation[BranchList]] = Operation(
    "GET", "/repos/{repo}/branches", "branches.BranchList"
)
CREATE_BRANCH: Final[Operation[BranchView]] = Operation(
    "POST", "/repos/{repo}/branches", "branches.BranchView"
)
EDIT_BRANCH: Final[Operation[RootCommit]] = Operation(
    "POST", "/branches/{branch}/edits", "values.RootCommit", defaults={"name": None, "archived": None}
)
POINT_MAIN: Final[Operation[RootCommit]] = Operation("POST", "/branches/{branch}/main", "values.RootCommit")
FORK_BRANCH: Final[Operation[BranchView]] = Operation(
    "POST", "/branches/{branch}/forks", "branches.BranchView", defaults={"commit": ""}
)
MERGE_BRANCH: Final[Operation[BranchMerge]] = Operation(
    "POST", "/branches/{branch}/merges", "branches.BranchMerge"
)
SHARE_BRANCH: Final[Operation[Capability]] = Operation(
    "POST", "/branches/{branch}/capability", "values.Capability"
)
COMPACT_BRANCH: Final[Operation[CompactionResult]] = Operation(
    "POST",
    "/branches/{branch}/compactions",
    "branches.CompactionResult",
    defaults={"dry_run": False, "without_missing": False},
)
WRITE_POST: Final[Operation[WrittenCommitView]] = Operation(
    "POST",
    "/branches/{branch}/commits",
    "commits.WrittenCommitView",
    defaults={"resolve_mentions": False, "attachments": ()},
)
WRITE_POSTS: Final[Operation[WrittenPosts]] = Operation(
    "POST", "/branches/{branch}/commits/batch", "commits.WrittenPosts", seconds_max=3600.0
)
STREAM_POSTS: Final[Operation[StreamedOutcome]] = Operation(
    "POST",
    "/branches/{branch}/commits/stream",
    "commits.StreamedOutcome",
    takes_bytes=True,
    seconds_max=3600.0,
)
SHOW_COMMIT: Final[Operation[CommitView]] = Operation("GET", "/commits/{commit}", "commits.CommitView")
EXPLAIN_VERDICT: Final[Operation[VerdictView]] = Operation(
    "GET", "/commits/{commit}/verdict", "commits.VerdictView"
)
LIST_VOIDS: Final[Operation[VoidList]] = Operation("GET", "/branches/{branch}/voids", "commits.VoidList")
REPLY_TO_POST: Final[Operation[WrittenPost]] = Operation(
    "POST",
    "/commits/{commit}/replies",
    "posts.WrittenPost",
    defaults={"resolve_mentions": False, "attachments": ()},
)
EDIT_POST: Final[Operation[WrittenPost]] = Operation(
    "PUT", "/commits/{commit}/text", "posts.WrittenPost", defaults={"resolve_mentions": False}
)
DELETE_POST: Final[Operation[WrittenPost]] = Operation("DELETE", "/commits/{commit}", "posts.WrittenPost")
HIDE_POST: Final[Operation[HiddenPost]] = Operation("PUT", "/commits/{commit}/hidden", "posts.HiddenPost")
SHOW_VERSIONS: Final[Operation[PostVersions]] = Operation(
    "GET", "/commits/{commit}/versions", "posts.PostVersions", defaults={"limit": 100, "before": ""}
)
SHOW_THREAD: Final[Operation[Thread]] = Operation(
    "GET", "/commits/{commit}/thread", "posts.Thread", defaults={"limit": 100, "after": ""}
)
SHOW_TIMELINE: Final[Operation[TimelineWindow]] = Operation(
    "GET",
    "/branches/{branch}/timeline",
    "timelines.TimelineWindow",
    defaults={
        "limit": 100,
        "order": "canonical",
        "after_position": None,
        "before_position": None,
        "after": None,
        "before": None,
    },
)
FOLLOW_EDITS: Final[Operation[EditWindow]] = Operation(
    "GET",
    "/branches/{branch}/edits",
    "timelines.EditWindow",
    defaults={"since": "", "positions": False, "limit": 100},
)
SHOW_DIGEST: Final[Operation[TimelineDigest]] = Operation(
    "GET", "/branches/{branch}/digest", "timelines.TimelineDigest"
)
SHOW_STATE: Final[Operation[BranchState]] = Operation(
    "GET", "/branches/{branch}/state", "timelines.BranchState", defaults={"limit": 100, "kind": ""}
)
SHOW_PAST: Final[Operation[PastCommits]] = Operation(
    "GET", "/branches/{branch}/past/{commit}", "timelines.PastCommits", defaults={"limit": 100}
)
CHECK_FEEDS: Final[Operation[FeedCheck]] = Operation("GET", "/branches/{branch}/feeds", "timelines.FeedCheck")
SHOW_TANGLE: Final[Operation[TangleView]] = Operation(
    "GET",
    "/repos/{repo}/tangles/{kind}",
    "timelines.TangleView",
    defaults={"limit": 100, "branch": "main", "author": "", "epoch": "", "message": "", "name": "thread"},
)
SEARCH: Final[Operation[SearchResult]] = Operation(
    "GET",
    "/search",
    "search.SearchResult",
    defaults={
        "text": "",
        "repo": "",
        "branch": "",
        "author": "",
        "since": None,
        "until": None,
        "limit": 20,
        "after": "",
    },
)
LIST_UNSEEN: Final[Operation[UnseenList]] = Operation("GET", "/unseen", "unseen.UnseenList")
SHOW_UNSEEN: Final[Operation[UnseenCommitList]] = Operation(
    "GET", "/branches/{branch}/unseen", "unseen.UnseenCommitList"
)
MARK_SEEN: Final[Operation[Empty]] = Operation("PUT", "/branches/{branch}/seen", "values.Empty")
LIST_OFFERS: Final[Operation[OfferList]] = Operation(
    "GET", "/repos/{repo}/offers", "inbox.OfferList", defaults={"limit": 100, "status": ""}
)
MAKE_OFFER: Final[Operation[OfferMade]] = Operation(
    "POST", "/branches/{branch}/offers", "inbox.OfferMade", defaults={"note": "", "pulls": True}
)
ANSWER_OFFER: Final[Operation[OfferAnswer]] = Operation(
    "POST", "/repos/{repo}/offers/{offer}/answers", "inbox.OfferAnswer"
)
FETCH_OFFER: Final[Operation[Empty]] = Operation("PUT", "/repos/{repo}/offers/{offer}/fetch", "values.Empty")
PREVIEW_OFFER: Final[Operation[OfferPreview]] = Operation(
    "GET", "/repos/{repo}/offers/{offer}/preview", "inbox.OfferPreview"
)
MERGE_OFFER: Final[Operation[MergeResult]] = Operation(
    "POST", "/repos/{repo}/offers/{offer}/merges", "branches.MergeResult"
)
WRITE_COMMENT: Final[Operation[OfferAnswer]] = Operation(
    "POST", "/branches/{branch}/comments", "inbox.OfferAnswer", defaults={"answers": ""}
)
EDIT_COMMENT: Final[Operation[OfferAnswer]] = Operation(
    "POST", "/branches/{branch}/comments/{comment}/edits", "inbox.OfferAnswer"
)
DELETE_COMMENT: Final[Operation[OfferAnswer]] = Operation(
    "DELETE", "/branches/{branch}/comments/{comment}", "inbox.OfferAnswer"
)
ASK_TRUST: Final[Operation[OfferMade]] = Operation("POST", "/branches/{branch}/trust", "inbox.OfferMade")
LIST_COMMENTS: Final[Operation[CommentList]] = Operation(
    "GET", "/branches/{branch}/comments", "inbox.CommentList", defaults={"limit": 100, "cursor": ""}
)


class BranchesCalls(SyncCaller):
    """Methods that wait for the answer."""

    def list_branches(self, repo: str) -> BranchList:
        """List the branches of a repo."""
        return self._call(LIST_BRANCHES, {"repo": repo})

    def create_branch(self, repo: str, name: str) -> BranchView:
        """Add a branch to a repo."""
        return self._call(CREATE_BRANCH, {"repo": repo, "name": name})

    def edit_branch(
        self, branch: str, *, name: str | None = None, archived: bool | None = None
    ) -> RootCommit:
        """Rename a branch, archive it, or take it back from the archive."""
        return self._call(EDIT_BRANCH, {"branch": branch, "name": name, "archived": archived})

    def point_main(self, branch: str) -> RootCommit:
        """Point main at a branch: from then on the name `main` means it."""
        return self._call(POINT_MAIN, {"branch": branch})

    def fork_branch(self, branch: str, name: str, *, commit: str = "") -> BranchView:
        """Add a branch that continues another one."""
        return self._call(FORK_BRANCH, {"branch": branch, "name": name, "commit": commit})

    def merge_branch(self, branch: str, source: str) -> BranchMerge:
        """Write again in a branch what another branch has and it has not."""
        return self._call(MERGE_BRANCH, {"branch": branch, "source": source})

    def share_branch(self, branch: str) -> Capability:
        """Make a link that lets anyone read one branch."""
        return self._call(SHARE_BRANCH, {"branch": branch})

    def compact_branch(
        self, branch: str, *, dry_run: bool = False, without_missing: bool = False
    ) -> CompactionResult:
        """Compact a branch, so that nodes may erase bodies that its documents no longer need."""
        return self._call(
            COMPACT_BRANCH, {"branch": branch, "dry_run": dry_run, "without_missing": without_missing}
        )

    def write_post(
        self, branch: str, text: str, *, resolve_mentions: bool = False, attachments: Sequence[str] = ()
    ) -> WrittenCommitView:
        """Write a post on the heads of a branch. It is durable when the answer comes."""
        return self._call(
            WRITE_POST,
            {
                "branch": branch,
                "text": text,
                "resolve_mentions": resolve_mentions,
                "attachments": attachments,
            },
        )

    def write_posts(self, branch: str, texts: Sequence[str]) -> WrittenPosts:
        """Write many posts, each following the one before it. All are durable when the answer comes.

        They are stored some hundred at a time. Where that fails in between, the error says how many are
        written: these are the first, and they stay.
        """
        return self._call(WRITE_POSTS, {"branch": branch, "texts": texts})

    def show_commit(self, commit: str) -> CommitView:
        """Show a commit with all it states."""
        return self._call(SHOW_COMMIT, {"commit": commit})

    def explain_verdict(self, commit: str) -> VerdictView:
        """Explain the verdict on a commit: the rule and the commits that decide it."""
        return self._call(EXPLAIN_VERDICT, {"commit": commit})

    def list_voids(self, branch: str) -> VoidList:
        """List the void commits of a branch, and why they are void."""
        return self._call(LIST_VOIDS, {"branch": branch})

    def reply_to_post(
        self, commit: str, text: str, *, resolve_mentions: bool = False, attachments: Sequence[str] = ()
    ) -> WrittenPost:
        """Write a reply to a post, in its branch."""
        return self._call(
            REPLY_TO_POST,
            {
                "commit": commit,
                "text": text,
                "resolve_mentions": resolve_mentions,
                "attachments": attachments,
            },
        )

    def edit_post(self, commit: str, text: str, *, resolve_mentions: bool = False) -> WrittenPost:
        """Give a post of one's own another text. Earlier ones stay readable until they are erased."""
        return self._call(EDIT_POST, {"commit": commit, "text": text, "resolve_mentions": resolve_mentions})

    def delete_post(self, commit: str) -> WrittenPost:
        """Delete a post of one's own for good, and remove its files. What it said stays readable until it is
        erased.
        """
        return self._call(DELETE_POST, {"commit": commit})

    def hide_post(self, commit: str, hidden: bool) -> HiddenPost:
        """Hide a post from the timelines of all members, or show it again."""
        return self._call(HIDE_POST, {"commit": commit, "hidden": hidden})

    def show_versions(self, commit: str, *, limit: int = 100, before: str = "") -> PostVersions:
        """Show what a post said over time: the last versions that count, also of a deleted or hidden post."""
        return self._call(SHOW_VERSIONS, {"commit": commit, "limit": limit, "before": before})

    def show_thread(self, commit: str, *, limit: int = 100, after: str = "") -> Thread:
        """Show the thread of a post: the first post, and the replies."""
        return self._call(SHOW_THREAD, {"commit": commit, "limit": limit, "after": after})

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
    ) -> TimelineWindow:
        """Show a window of a branch's timeline.

        In canonical order, give at most one of `after_position` and `before_position`. With `order=time`, give
        at most one of `after` and `before`.
        """
        return self._call(
            SHOW_TIMELINE,
            {
                "branch": branch,
                "limit": limit,
                "order": order,
                "after_position": after_position,
                "before_position": before_position,
                "after": after,
                "before": before,
            },
        )

    def follow_edits(
        self, branch: str, *, since: str = "", positions: bool = False, limit: int = 100
    ) -> EditWindow:
        """Show edits of a branch's timeline, or follow them as they come."""
        return self._call(
            FOLLOW_EDITS, {"branch": branch, "since": since, "positions": positions, "limit": limit}
        )

    def watch_edits(
        self, branch: str, *, since: str = "", positions: bool = False, reconnect: bool = True
    ) -> EventStream:
        """Follow events as they come: `edit`, `reset`, `closing`.

        With `reconnect`, a stream that is cut goes on where it was.
        """
        return self._watch(
            FOLLOW_EDITS, {"branch": branch, "since": since, "positions": positions}, reconnect=reconnect
        )

    def show_digest(self, branch: str) -> TimelineDigest:
        """Show the digest of a branch's whole timeline."""
        return self._call(SHOW_DIGEST, {"branch": branch})

    def show_state(self, branch: str, *, limit: int = 100, kind: str = "") -> BranchState:
        """Show the last commits of a branch and of what it continues."""
        return self._call(SHOW_STATE, {"branch": branch, "limit": limit, "kind": kind})

    def show_past(self, branch: str, commit: str, *, limit: int = 100) -> PastCommits:
        """Show a branch as it was at a commit: the last commits of its past.

        The commit may also be given by its tag.
        """
        return self._call(SHOW_PAST, {"branch": branch, "commit": commit, "limit": limit})

    def check_feeds(self, branch: str) -> FeedCheck:
        """List the feeds of a branch, and the places that an author used more than once."""
        return self._call(CHECK_FEEDS, {"branch": branch})

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
        return self._call(
            SHOW_TANGLE,
            {
                "repo": repo,
                "kind": kind,
                "limit": limit,
                "branch": branch,
                "author": author,
                "epoch": epoch,
                "message": message,
                "name": name,
            },
        )

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
        return self._call(
            SEARCH,
            {
                "text": text,
                "repo": repo,
                "branch": branch,
                "author": author,
                "since": since,
                "until": until,
                "limit": limit,
                "after": after,
            },
        )

    def list_unseen(self) -> UnseenList:
        """List branches with commits of others that the user has not seen, archived ones left out."""
        return self._call(LIST_UNSEEN, {})

    def show_unseen(self, branch: str) -> UnseenCommitList:
        """Show which commits of a branch the user has not seen."""
        return self._call(SHOW_UNSEEN, {"branch": branch})

    def mark_seen(self, branch: str, up_to: int) -> Empty:
        """Have a branch seen up to a moment. Only this node knows."""
        return self._call(MARK_SEEN, {"branch": branch, "up_to": up_to})

    def list_offers(self, repo: str, *, limit: int = 100, status: str = "") -> OfferList:
        """List what was offered to a repo last."""
        return self._call(LIST_OFFERS, {"repo": repo, "limit": limit, "status": status})

    def make_offer(self, branch: str, source: str, *, note: str = "", pulls: bool = True) -> OfferMade:
        """Offer a branch of another repo to this branch."""
        return self._call(MAKE_OFFER, {"branch": branch, "source": source, "note": note, "pulls": pulls})

    def answer_offer(self, repo: str, offer: str, accepts: bool) -> OfferAnswer:
        """Accept an offer, refuse it, or withdraw it."""
        return self._call(ANSWER_OFFER, {"repo": repo, "offer": offer, "accepts": accepts})

    def fetch_offer(self, repo: str, offer: str) -> Empty:
        """Have this node alone follow the branch of an offer of commits, to look at it before it is answered."""
        return self._call(FETCH_OFFER, {"repo": repo, "offer": offer})

    def preview_offer(self, repo: str, offer: str) -> OfferPreview:
        """Show what a merge of an offer would write, once it is accepted and as far as it is here."""
        return self._call(PREVIEW_OFFER, {"repo": repo, "offer": offer})

    def merge_offer(self, repo: str, offer: str) -> MergeResult:
        """Write again in its branch what an accepted offer has and the branch has not."""
        return self._call(MERGE_OFFER, {"repo": repo, "offer": offer})

    def write_comment(self, branch: str, text: str, *, answers: str = "") -> OfferAnswer:
        """Comment on a document, and offer the comment to its inbox."""
        return self._call(WRITE_COMMENT, {"branch": branch, "text": text, "answers": answers})

    def edit_comment(self, branch: str, comment: str, text: str) -> OfferAnswer:
        """Give a comment of this user another text, and offer that."""
        return self._call(EDIT_COMMENT, {"branch": branch, "comment": comment, "text": text})

    def delete_comment(self, branch: str, comment: str) -> OfferAnswer:
        """Delete a comment of this user."""
        return self._call(DELETE_COMMENT, {"branch": branch, "comment": comment})

    def ask_trust(self, branch: str) -> OfferMade:
        """Ask that this user's comments on a document are shown at once."""
        return self._call(ASK_TRUST, {"branch": branch})

    def list_comments(self, branch: str, *, limit: int = 100, cursor: str = "") -> CommentList:
        """List the accepted comments on a document."""
        return self._call(LIST_COMMENTS, {"branch": branch, "limit": limit, "cursor": cursor})
