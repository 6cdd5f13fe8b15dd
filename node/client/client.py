"""Python client of the HTTP API: one method per endpoint, errors as `ServiceError`. The CLI uses it.

`ApiClient.call` takes any entry of the table; the other methods are the same by name.
"""

from __future__ import annotations  # the types of answers are named by modules that are not imported yet

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar
from urllib.parse import unquote

from node.client.calls import CallParts, call_parts
from node.client.documents import DocumentsClient
from node.client.download import Download
from node.client.errors import error_of
from node.client.event_client import StreamEvent, open_stream
from node.client.http_client import ConnectionLost, HttpClient, HttpResponse, NoAnswer
from node.client.members import DevicesClient, MembersClient, PeopleClient, QuorumsClient
from node.contract import subjects
from node.contract.endpoint import PREFIX, REPO_HEADER, Endpoint
from node.home.home import not_running, read_run_file, read_token
from node.runtime.errors import ServiceError

if TYPE_CHECKING:
    from node.contract.values import Capability, Empty, RootCommit

_TIMEOUT_SECONDS: Final = 60.0
_PIECE_SIZE: Final = 1 << 20
A = TypeVar("A")


class ApiClient:
    """Calls one daemon. Answers have the types of `node.contract`."""

    def __init__(
        self,
        base_url: str,
        token: str,
        home: Path | None = None,
        repo: str = "",
        seconds_max: float = math.inf,
    ) -> None:
        """Names of branches mean first those of `repo`, an id, if one is given. An answer may take `seconds_max`."""
        self._seconds_max = seconds_max
        self.base_url = base_url
        self._home = home
        headers = {"Authorization": f"Bearer {token}", **({REPO_HEADER: repo} if repo else {})}
        self._http = HttpClient(base_url, headers, min(_TIMEOUT_SECONDS, seconds_max))
        self.documents = DocumentsClient(self.call)
        self.members = MembersClient(self.call)
        self.devices = DevicesClient(self.call)
        self.quorums = QuorumsClient(self.call)
        self.people = PeopleClient(self.call)

    @classmethod
    def for_home(cls, home: Path, repo: str = "", seconds_max: float = math.inf) -> Self:
        """The daemon that runs in a folder. Raises ServiceError `not_running` or `not_initialised`."""
        return cls(f"http://{read_run_file(home).api}", read_token(home), home, repo, seconds_max)

    def close(self) -> None:
        """Give up the connection."""
        self._http.close()

    def call(self, endpoint: Endpoint[A], /, **arguments: object) -> A:
        """Call an endpoint of the table. `arguments`: the parts of its path, its query and the fields of its body.

        Raises ServiceError as the endpoint does, and `not_running` where no daemon answers in time; TypeError for an
        argument that the endpoint does not take.
        """
        parts = call_parts(endpoint, arguments)
        answer: A = self._request(endpoint, parts)
        return answer

    def make_code(self) -> subjects.node.PageCode:
        """A code by which the web page gets the token, once."""
        return self.call(subjects.node.MAKE_PAGE_CODE)

    def draw_qr(self, text: str) -> subjects.node.QrCode:
        """A QR code of a link, as an SVG path."""
        return self.call(subjects.node.DRAW_QR, text=text)

    def status(self) -> subjects.node.NodeStatus:
        """The node at a glance."""
        return self.call(subjects.node.SHOW_STATUS)

    def storage(self) -> subjects.node.StorageUse:
        """What the store takes on the disk, and how it has grown."""
        return self.call(subjects.node.SHOW_STORAGE)

    def page(self, path: str) -> str:
        """What the daemon serves beside the API, whatever its status: `/metrics`, `/readyz`."""
        with self._reached():
            return self._http.request("GET", path)[1].decode("utf-8", "replace")

    def log(self) -> subjects.node.LogLines:
        """The latest lines of the daemon's log."""
        return self.call(subjects.node.SHOW_LOG)

    def create_repo(self, name: str) -> subjects.repos.RepoView:
        """Create a repo."""
        return self.call(subjects.repos.CREATE_REPO, name=name)

    def list_repos(self) -> subjects.repos.RepoList:
        """All repos."""
        return self.call(subjects.repos.LIST_REPOS)

    def join(self, invitation: str, *, follow: bool = False) -> subjects.repos.RepoView:
        """Join by a link; with `follow`, reading is enough where it makes no member any more."""
        return self.call(subjects.repos.JOIN_REPO, invitation=invitation, follow=follow)

    def fork_repo(self, repo: str, name: str) -> subjects.repos.RepoFork:
        """Make a repo of one's own that continues another."""
        return self.call(subjects.repos.FORK_REPO, repo=repo, name=name)

    def forget_repo(self, repo: str, *, accept_loss: bool = False) -> Empty:
        """Delete a repo from this node, with all its commits."""
        return self.call(subjects.repos.FORGET_REPO, repo=repo, accept_loss=int(accept_loss))

    def list_epochs(self, repo: str) -> subjects.repos.EpochList:
        """Epochs of a repo."""
        return self.call(subjects.repos.LIST_EPOCHS, repo=repo)

    def renew_repo(self, repo: str) -> subjects.repos.NewEpoch:
        """Start an epoch."""
        return self.call(subjects.repos.START_EPOCH, repo=repo)

    def adopt(self, branch: str, commits: list[str]) -> subjects.members.MembershipChange:
        """Make void commits count again."""
        return self.call(subjects.members.ADOPT_COMMITS, branch=branch, commits=commits)

    def list_voids(self, branch: str) -> subjects.commits.VoidList:
        """Void commits of a branch."""
        return self.call(subjects.commits.LIST_VOIDS, branch=branch)

    def show(self, commit: str) -> subjects.commits.CommitView:
        """A commit with all it says."""
        return self.call(subjects.commits.SHOW_COMMIT, commit=commit)

    def past(self, branch: str, commit: str, limit: int) -> subjects.timelines.PastCommits:
        """The end of a branch as it was at a commit."""
        return self.call(subjects.timelines.SHOW_PAST, branch=branch, commit=commit, limit=limit)

    def tangle(self, repo: str, kind: str, limit: int, **parts: str) -> subjects.timelines.TangleView:
        """The end of a tangle; `parts` are the endpoint's: `branch`, `author`, `epoch`, `message`, `name`."""
        return self.call(subjects.timelines.SHOW_TANGLE, repo=repo, kind=kind, limit=limit, **parts)

    def edit_branch(
        self, branch: str, *, name: str | None = None, archived: bool | None = None
    ) -> RootCommit:
        """Rename a branch, archive it, or take it back."""
        return self.call(subjects.branches.EDIT_BRANCH, branch=branch, name=name, archived=archived)

    def list_tags(self, repo: str) -> subjects.repos.TagList:
        """Names of commits."""
        return self.call(subjects.repos.LIST_TAGS, repo=repo)

    def set_tag(self, repo: str, name: str, commit: str) -> RootCommit:
        """Name a commit, or move the name."""
        return self.call(subjects.repos.SET_TAG, repo=repo, name=name, commit=commit)

    def remove_tag(self, repo: str, name: str) -> RootCommit:
        """Take a name away."""
        return self.call(subjects.repos.REMOVE_TAG, repo=repo, name=name)

    def list_relayed(self) -> subjects.peers.RelayedTopicList:
        """Topics that the node keeps for others."""
        return self.call(subjects.peers.LIST_RELAYED_TOPICS)

    def pin_relayed(self, topic: str, *, is_pinned: bool) -> subjects.peers.RelayedTopic:
        """Say whether a topic may be forgotten to make room."""
        return self.call(subjects.peers.PIN_TOPIC if is_pinned else subjects.peers.UNPIN_TOPIC, topic=topic)

    def allow_relayed(self, peer: str, *, is_allowed: bool) -> subjects.peers.RelayAllowance:
        """Say of a peer whether this relay knows it."""
        return self.call(subjects.peers.ALLOW_PEER if is_allowed else subjects.peers.DENY_PEER, peer=peer)

    def why(self, commit: str) -> subjects.commits.VerdictView:
        """The verdict on a commit."""
        return self.call(subjects.commits.EXPLAIN_VERDICT, commit=commit)

    def list_branches(self, repo: str) -> subjects.branches.BranchList:
        """Branches of a repo."""
        return self.call(subjects.branches.LIST_BRANCHES, repo=repo)

    def create_branch(self, repo: str, name: str) -> subjects.branches.BranchView:
        """Add a branch."""
        return self.call(subjects.branches.CREATE_BRANCH, repo=repo, name=name)

    def fork_branch(self, branch: str, name: str, commit: str = "") -> subjects.branches.BranchView:
        """Add a branch that continues another."""
        return self.call(subjects.branches.FORK_BRANCH, branch=branch, name=name, commit=commit)

    def merge_branch(self, source: str, target: str) -> subjects.branches.BranchMerge:
        """Merge a branch into another."""
        return self.call(subjects.branches.MERGE_BRANCH, branch=target, source=source)

    def state(self, branch: str, limit: int) -> subjects.timelines.BranchState:
        """The end of what a branch continues and its own commits."""
        return self.call(subjects.timelines.SHOW_STATE, branch=branch, limit=limit)

    def list_offers(self, repo: str) -> subjects.inbox.OfferList:
        """A repo's inbox."""
        return self.call(subjects.inbox.LIST_OFFERS, repo=repo)

    def answer_offer(self, repo: str, offer: str, *, accepts: bool) -> subjects.inbox.OfferAnswer:
        """Accept an offer, or refuse or withdraw it."""
        return self.call(subjects.inbox.ANSWER_OFFER, repo=repo, offer=offer, accepts=accepts)

    def merge_offer(self, repo: str, offer: str) -> subjects.branches.MergeResult:
        """Take over what an accepted offer has."""
        return self.call(subjects.inbox.MERGE_OFFER, repo=repo, offer=offer)

    def offer(
        self, source: str, target: str, note: str = "", *, pulls: bool = True
    ) -> subjects.inbox.OfferMade:
        """Offer a branch of one's own to a document's inbox."""
        return self.call(subjects.inbox.MAKE_OFFER, branch=target, source=source, note=note, pulls=pulls)

    def comment(self, branch: str, text: str) -> subjects.inbox.OfferAnswer:
        """Comment on a document."""
        return self.call(subjects.inbox.WRITE_COMMENT, branch=branch, text=text)

    def comments(self, branch: str, limit: int) -> subjects.inbox.CommentList:
        """Accepted comments on a document."""
        return self.call(subjects.inbox.LIST_COMMENTS, branch=branch, limit=limit)

    def write(self, branch: str, text: str) -> subjects.commits.WrittenCommitView:
        """Write a post."""
        return self.call(subjects.commits.WRITE_POST, branch=branch, text=text)

    def write_posts(self, branch: str, texts: Sequence[str]) -> subjects.commits.WrittenPosts:
        """Write many posts, one after the other."""
        return self.call(subjects.commits.WRITE_POSTS, branch=branch, texts=list(texts))

    def timeline(self, branch: str, after_position: int, limit: int) -> subjects.timelines.TimelineWindow:
        """A window of a timeline."""
        return self.call(
            subjects.timelines.SHOW_TIMELINE, branch=branch, after_position=after_position, limit=limit
        )

    def timeline_before(
        self, branch: str, before_position: int, limit: int
    ) -> subjects.timelines.TimelineWindow:
        """A window of a timeline that ends before a position, or with the timeline."""
        return self.call(
            subjects.timelines.SHOW_TIMELINE, branch=branch, before_position=before_position, limit=limit
        )

    def timeline_by_time(
        self, branch: str, limit: int, *, after: str = "", before: str = ""
    ) -> subjects.timelines.TimelineWindow:
        """A window in the node's order by time: after a commit, before one, or (without either) the end."""
        return self.call(
            subjects.timelines.SHOW_TIMELINE,
            branch=branch,
            order="time",
            limit=limit,
            after=after or None,
            before=before or None,
        )

    def edits(
        self, branch: str, since: str = "", limit: int = 1000, *, positions: bool = False
    ) -> subjects.timelines.EditWindow:
        """A window of a timeline's edits, after the cursor `since`; with `positions`, where they can be told."""
        return self.call(
            subjects.timelines.FOLLOW_EDITS, branch=branch, since=since, limit=limit, positions=positions
        )

    @contextmanager
    def watch(self, branch: str, since: str = "") -> Iterator[Iterator[StreamEvent]]:
        """The same as they come: events `edit`, and `reset` where all is to be forgotten. Raises ServiceError."""
        parts = call_parts(subjects.timelines.FOLLOW_EDITS, {"branch": branch, "since": since})
        with self._reached(), open_stream(self._http, parts) as events:
            yield events

    def digest(self, branch: str) -> subjects.timelines.TimelineDigest:
        """Digest of a timeline."""
        return self.call(subjects.timelines.SHOW_DIGEST, branch=branch)

    def import_items(
        self, branch: str, items: Sequence[Mapping[str, object]], source: str
    ) -> subjects.files.ImportResult:
        """Import one batch."""
        return self.call(subjects.files.IMPORT_COMMITS, branch=branch, items=items, source=source)

    def list_imported(
        self, branch: str, source: str, after: int, limit: int
    ) -> subjects.files.ImportedWindow:
        """A window of what was imported."""
        return self.call(subjects.files.LIST_IMPORTED, branch=branch, source=source, after=after, limit=limit)

    def capability(self, repo: str) -> Capability:
        """A repo's read capability, a secret."""
        return self.call(subjects.repos.SHARE_REPO, repo=repo)

    def branch_capability(self, branch: str) -> Capability:
        """A branch's read capability, a secret."""
        return self.call(subjects.branches.SHARE_BRANCH, branch=branch)

    def renew_branch(self, branch: str) -> subjects.branches.BranchRenewal:
        """Give a branch new secrets."""
        return self.call(subjects.branches.RENEW_BRANCH, branch=branch)

    def follow(self, capability: str) -> subjects.repos.RepoView:
        """Read and replicate a repo, or a branch by itself, by a read capability."""
        return self.call(subjects.repos.FOLLOW_REPO, capability=capability)

    def check_feeds(self, branch: str) -> subjects.timelines.FeedCheck:
        """Feeds of a branch, and where they fork."""
        return self.call(subjects.timelines.CHECK_FEEDS, branch=branch)

    def list_files(self, branch: str, after: int = 0, limit: int = 1000) -> subjects.files.FileList:
        """A window of a branch's files."""
        return self.call(subjects.files.LIST_FILES, branch=branch, after=after, limit=limit)

    def add_file(self, branch: str, name: str, content: Iterable[bytes]) -> subjects.files.FileView:
        """Add a file, its content streamed."""
        parts = call_parts(subjects.files.ADD_FILE, {"branch": branch, "name": name})
        answer: subjects.files.FileView = self._request(subjects.files.ADD_FILE, parts, content)
        return answer

    def add_files(self, branch: str, body: Iterable[bytes]) -> subjects.files.AddedFiles:
        """Add many files, all or none. `body`: before each content the line that `encode_head` makes."""
        parts = call_parts(subjects.files.ADD_FILES, {"branch": branch})
        answer: subjects.files.AddedFiles = self._request(subjects.files.ADD_FILES, parts, body)
        return answer

    @contextmanager
    def get_file(self, branch: str, file: str, start: int = 0, stop: int | None = None) -> Iterator[Download]:
        """A file's bytes from `start` to before `stop`, streamed.

        Raises ServiceError, on the way `interrupted` where the daemon or the connection stops.
        """
        path = call_parts(subjects.files.GET_FILE, {"branch": branch, "file": file}).path
        # A range that is asked for from the very start is none: an empty file has no first byte.
        wanted = {}
        if start or stop is not None:
            wanted = {"Range": f"bytes={start}-{'' if stop is None else stop - 1}"}
        with self._reached(), self._http.open("GET", PREFIX + path, headers=wanted) as response:
            if response.is_error:
                raise error_of(response.status, response.read())
            found = re.fullmatch(r"bytes [0-9]+-[0-9]+/([0-9]+)", response.header("content-range"))
            size = int(found[1] if found else response.header("content-length"))
            name = response.header("content-disposition").partition("''")[2]
            yield Download(size, response.header("etag").strip('"'), unquote(name), self._pieces(response))

    def remove_file(self, branch: str, file: str) -> subjects.files.RemovedFile:
        """Remove a file from a branch."""
        return self.call(subjects.files.REMOVE_FILE, branch=branch, file=file)

    def export(self) -> subjects.node.ExportResult:
        """Export what is new."""
        return self.call(subjects.node.EXPORT_STORE)

    def list_peers(self) -> subjects.peers.PeerList:
        """Peers."""
        return self.call(subjects.peers.LIST_PEERS)

    def add_peer(self, address: str, peer: str, *, relay: bool = False) -> subjects.peers.PeerView:
        """Keep a connection to a peer."""
        return self.call(subjects.peers.ADD_PEER, address=address, peer=peer, relay=relay)

    def ban_peer(self, peer: str, *, is_banned: bool) -> subjects.peers.PeerBan:
        """Speak with a peer no more, or again."""
        return self.call(subjects.peers.BAN_PEER if is_banned else subjects.peers.UNBAN_PEER, peer=peer)

    def remove_peer(self, peer: str) -> Empty:
        """Forget a peer."""
        return self.call(subjects.peers.REMOVE_PEER, peer=peer)

    def _request(
        self,
        endpoint: Endpoint[Any],
        parts: CallParts,
        content: Iterable[bytes] | None = None,
    ) -> Any:  # noqa: ANN401  # of the endpoint's answer type, which the daemon sees to
        with self._reached():
            status, answer = self._http.request(
                endpoint.method,
                PREFIX + parts.path,
                query=parts.query,
                body=parts.body,
                content=content,
                timeout=min(endpoint.seconds_max, self._seconds_max),
            )
        if status >= HTTPStatus.BAD_REQUEST:
            raise error_of(status, answer)
        try:
            return json.loads(answer)
        except ValueError:
            raise ServiceError("internal", f"the daemon answered {status} without JSON") from None

    @contextmanager
    def _reached(self) -> Iterator[None]:
        try:
            yield
        except NoAnswer:
            raise ServiceError(
                "not_running", "the daemon does not answer in time", "look at its log"
            ) from None
        except ConnectionLost:
            raise not_running(self._home or Path()) from None

    def _pieces(self, response: HttpResponse) -> Iterator[bytes]:
        try:
            yield from response.pieces(_PIECE_SIZE)
        except ConnectionLost as error:
            raise ServiceError(
                "interrupted",
                f"the daemon stopped sending: {error}",
                "run the command again to go on from here",
            ) from None
