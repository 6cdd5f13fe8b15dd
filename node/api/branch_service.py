"""`BranchService`: repos, their branches, and the content of branches."""

from collections.abc import Callable, Sequence
from functools import partial

from node.api.edits import Edits
from node.api.live_json import LiveJson
from node.api.live_texts import LiveTexts
from node.api.people_service import PeopleService
from node.api.repos import Repos
from node.api.targets import Targets
from node.authoring.author import Author
from node.authoring.writing import create_branch
from node.content.branch_queries import BranchQueries
from node.content.compacting import Compacting
from node.content.document_indexes import DocumentIndexes
from node.content.document_list import ListedDocuments
from node.content.document_queries import DocumentQueries
from node.content.documents import Documents
from node.content.files import FileService
from node.content.json_documents import JsonDocuments
from node.content.merge_changes import MergeChanges
from node.content.merging import Merging
from node.content.posts import Posts
from node.content.search import Search
from node.content.text_process import TextProcess
from node.content.texts import Texts
from node.importers.imports import Imports
from node.membership.comments import Comments
from node.membership.inbox import Inbox
from node.membership.joining import Joiner
from node.membership.link_looks import LinkLooks
from node.membership.members import find_user
from node.membership.names import Names, check_name
from node.membership.stated_comments import StatedComments
from node.network.network import Network
from node.observe.repo_list import ListedRepos
from node.observe.repo_views import RepoViews
from node.observe.standing import Standings
from node.scuttlebutt.threads import THREAD
from node.sync.hub import Hub
from node.timelines.commit_history import describe, list_past
from node.timelines.tangles import TangleQuestion, show_tangle
from node.timelines.timelines import HEADS_SHOWN_MAX, Feeds, Timelines
from node.timelines.unseen import UnseenCommits
from node.timelines.views import branch_view, show_opened
from node.timelines.why import explain, list_voids
from protocol.formats.text import id_text
from ravel.types.branches import BranchList, BranchView
from ravel.types.commits import CommitView, VerdictView, VoidList
from ravel.types.timelines import PastCommits, TangleView
from storage.commits.display import load_latest_time
from storage.commits.heads import count_heads, load_heads
from storage.commits.pending import UNREAD, count_pending, count_rejections
from storage.repos.repos import Branch


class BranchService:
    """Parts that answer endpoints about repos, branches, commits, documents and files."""

    def __init__(
        self,
        hub: Hub,
        network: Network,
        author: Author,
        joiner: Joiner,
        targets: Targets,
        people: PeopleService,
        *,
        clock: Callable[[], float],
        has_search: bool,
    ) -> None:
        self._hub = hub
        self._author = author
        self._targets = targets
        find_branch = targets.branch
        find_member_repo, find_member_branch = targets.repo_with_members, targets.branch_with_members
        hub.presences.speak_as(author.user, author.sign)
        self.files = FileService(hub, author, find_branch, lambda: bool(network.relays))
        self.posts = Posts(hub, author, find_branch)
        self.search = Search(hub, is_enabled=has_search)
        self.documents = Documents(hub, author, find_branch)
        self.listed_documents = ListedDocuments(hub, self.documents, find_branch)
        self.json_documents = JsonDocuments(self.documents)
        self.texts = Texts(hub, author, find_branch, hub.presences.has_other_editors, TextProcess())
        self.live_texts = LiveTexts(hub, self.texts, find_branch)
        self.document_indexes = DocumentIndexes(hub, self.documents, find_branch)
        self.document_queries = DocumentQueries(self.documents, self.document_indexes)
        self.branch_queries = BranchQueries(self.documents, self.document_queries)
        self.live_json = LiveJson(
            hub, self.json_documents, self.document_queries, self.branch_queries, targets
        )
        self.compacting = Compacting(hub, author, self.documents, self.texts, find_member_branch)
        self.feeds = Feeds(hub, find_branch)
        self.timelines = Timelines(hub, find_branch)
        self.edits = Edits(hub, find_branch)
        self.unseen = UnseenCommits(hub, author.user, find_branch, clock)
        self.imports = Imports(hub, author, find_branch)
        self.names = Names(hub, author, find_member_repo, find_member_branch)
        self.merging = Merging(hub, author, find_member_branch)
        self.stated_comments = StatedComments(hub, author, self.documents)
        changes = MergeChanges(hub, author, self.documents)
        self.inbox = Inbox(
            hub, author, people.sharing, self.stated_comments, changes, find_member_repo, find_member_branch
        )
        self.comments = Comments(
            hub, author, self.inbox, self.posts, self.documents, find_member_repo, find_branch
        )
        self.standings = Standings(hub, network)
        views = RepoViews(hub, author, joiner, self.standings, people.requests, self.inbox)
        self.repo_list = ListedRepos(hub, self.standings, views)
        self.link_looks = LinkLooks(hub, clock)
        self.repos = Repos(
            hub, network, author, targets, people.sharing, self.merging, self.standings, self.repo_list
        )

    async def list_all(self, repo: str) -> BranchList:
        """List the branches of a repo, without the root branch; the main branch comes first."""
        target = self._targets.repo(repo)

        def read() -> list[BranchView]:
            replica = self._hub.replica
            branches = replica.shown.count_in(replica.database, [target.num])[target.num]
            shown = [branch for branch in branches if not branch.facts.is_root_branch]
            return self._views(sorted(shown, key=lambda branch: not branch.is_main))

        return {"branches": await self._hub.run_blocking(read)}

    async def create(self, repo: str, name: str) -> BranchView:
        """Add a branch to a repo."""
        target = self._targets.repo_with_members(repo)
        branch = await create_branch(self._hub, self._author, target, check_name(name), is_unique=True)
        return await self._view(branch)

    async def fork(self, branch: str, name: str, commit: str) -> BranchView:
        """Add a branch that continues another from a commit."""
        self._targets.branch_with_members(branch)
        checked = check_name(name)
        return await self._view(await self.merging.fork(branch, checked, commit))

    async def list_voids(self, branch: str) -> VoidList:
        """List void commits of a branch with the reason of each."""
        voids = await self._hub.run_blocking(list_voids, self._hub.replica, self._targets.branch(branch))
        return {"voids": voids}

    async def explain_verdict(self, commit: str) -> VerdictView:
        """Return the verdict on a commit, in words."""
        return await self._hub.run_blocking(explain, self._hub.replica, commit)

    async def show_commit(self, commit: str) -> CommitView:
        """Return a commit with all its fields."""
        return await show_opened(self._hub, partial(describe, self._hub.replica, commit))

    async def show_past(self, branch: str, commit: str, limit: int) -> PastCommits:
        """Return the end of a branch as it was at a commit, named by its id or a tag."""
        target = self._targets.branch(branch)
        repo = self._targets.repo_of(target)
        tag = (await self._hub.run_blocking(self.names.tags, repo)).get(commit)
        if tag is not None and tag.commit is not None:
            commit = id_text(tag.commit)
        return await show_opened(self._hub, partial(list_past, self._hub.replica, target, commit, limit))

    async def show_tangle(
        self,
        repo: str,
        kind: str,
        *,
        limit: int,
        branch: str = "main",
        author: str = "",
        epoch: str = "",
        message: str = "",
        name: str = THREAD,
    ) -> TangleView:
        """Return the end of a tangle of a repo. `TangleQuestion` explains the arguments."""
        question = TangleQuestion(kind, limit, branch, author, epoch, message, name)
        is_of_branch = kind in ("branch", "feed")
        target = self._targets.repo(repo) if is_of_branch else self._targets.repo_with_members(repo)
        if is_of_branch:
            begin = self._targets.branch(f"{id_text(target.repo_id)}:{branch}")
        else:
            begin = self._hub.replica.root_branch(target)
        user = self._author.user
        if author:
            user = await self._hub.run_blocking(
                partial(find_user, everyone=True), author, self._hub.replica, target
            )
        return await self._hub.run_blocking(show_tangle, self._hub.replica, target, question, begin, user)

    async def _view(self, branch: Branch) -> BranchView:
        (view,) = await self._hub.run_blocking(self._views, [branch])
        return view

    def _views(self, branches: Sequence[Branch]) -> list[BranchView]:
        with self._hub.replica.database.read() as connection:
            return [
                branch_view(
                    branch,
                    load_heads(connection, branch.num, HEADS_SHOWN_MAX),
                    count_heads(connection, branch.num),
                    latest_ms=load_latest_time(connection, branch.num),
                    waiting=count_pending(connection, branch.num),
                    unread=count_pending(connection, branch.num, reason=UNREAD),
                    rejected=count_rejections(connection, branch.num),
                )
                for branch in branches
            ]
