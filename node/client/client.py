"""Python client of the HTTP API: one method per endpoint, errors as `ServiceError`. The CLI uses it.

`ApiClient.call` takes any entry of the table; the other methods are the same by name.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, Self, TypeVar
from urllib.parse import unquote

from node.client.calls import CallParts, call_parts
from node.client.documents import DocumentsClient
from node.client.download import Download
from node.client.errors import error_of
from node.client.event_client import StreamEvent, open_stream
from node.client.http_client import ConnectionLost, HttpClient, HttpResponse, NoAnswer
from node.client.members import DevicesClient, MembersClient, QuorumsClient
from node.contract import branches, commits, files, inbox, members, node, peers, repos, timelines
from node.contract.endpoint import PREFIX, Endpoint
from node.contract.values import Capability, Empty, RootCommit
from node.home.home import not_running, read_run_file, read_token
from node.runtime.errors import ServiceError

_TIMEOUT_SECONDS: Final = 60.0
_PIECE_SIZE: Final = 1 << 20
A = TypeVar("A")


class ApiClient:
    """Calls one daemon. Answers have the types of `node.contract`."""

    def __init__(self, base_url: str, token: str, home: Path | None = None) -> None:
        self.base_url = base_url
        self._home = home
        self._http = HttpClient(base_url, {"Authorization": f"Bearer {token}"}, _TIMEOUT_SECONDS)
        self.documents = DocumentsClient(self.call)
        self.members = MembersClient(self.call)
        self.devices = DevicesClient(self.call)
        self.quorums = QuorumsClient(self.call)

    @classmethod
    def for_home(cls, home: Path) -> Self:
        """The daemon that runs in a folder. Raises ServiceError `not_running` or `not_initialised`."""
        return cls(f"http://{read_run_file(home).api}", read_token(home), home)

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

    def make_code(self) -> node.PageCode:
        """A code by which the web page gets the token, once."""
        return self.call(node.MAKE_PAGE_CODE)

    def draw_qr(self, text: str) -> node.QrCode:
        """A QR code of a link, as an SVG path."""
        return self.call(node.DRAW_QR, text=text)

    def status(self) -> node.NodeStatus:
        """The node at a glance."""
        return self.call(node.SHOW_STATUS)

    def storage(self) -> node.StorageUse:
        """What the store takes on the disk, and how it has grown."""
        return self.call(node.SHOW_STORAGE)

    def page(self, path: str) -> str:
        """What the daemon serves beside the API, whatever its status: `/metrics`, `/readyz`."""
        with self._reached():
            return self._http.request("GET", path)[1].decode("utf-8", "replace")

    def log(self) -> node.LogLines:
        """The latest lines of the daemon's log."""
        return self.call(node.SHOW_LOG)

    def create_repo(self, name: str) -> repos.RepoView:
        """Create a repo."""
        return self.call(repos.CREATE_REPO, name=name)

    def list_repos(self) -> repos.RepoList:
        """All repos."""
        return self.call(repos.LIST_REPOS)

    def join(self, invitation: str) -> repos.RepoView:
        """Join by a link."""
        return self.call(repos.JOIN_REPO, invitation=invitation)

    def fork_repo(self, repo: str, name: str) -> repos.RepoFork:
        """Make a repo of one's own that continues another."""
        return self.call(repos.FORK_REPO, repo=repo, name=name)

    def forget_repo(self, repo: str) -> Empty:
        """Forget a repo of which single branches are followed."""
        return self.call(repos.FORGET_REPO, repo=repo)

    def list_epochs(self, repo: str) -> repos.EpochList:
        """Epochs of a repo."""
        return self.call(repos.LIST_EPOCHS, repo=repo)

    def renew_repo(self, repo: str) -> repos.NewEpoch:
        """Start an epoch."""
        return self.call(repos.START_EPOCH, repo=repo)

    def adopt(self, branch: str, commits: list[str]) -> members.MembershipChange:
        """Make void commits count again."""
        return self.call(members.ADOPT_COMMITS, branch=branch, commits=commits)

    def list_voids(self, branch: str) -> commits.VoidList:
        """Void commits of a branch."""
        return self.call(commits.LIST_VOIDS, branch=branch)

    def show(self, commit: str) -> commits.CommitView:
        """A commit with all it says."""
        return self.call(commits.SHOW_COMMIT, commit=commit)

    def past(self, branch: str, commit: str, limit: int) -> timelines.PastCommits:
        """The end of a branch as it was at a commit."""
        return self.call(timelines.SHOW_PAST, branch=branch, commit=commit, limit=limit)

    def tangle(self, repo: str, kind: str, limit: int, **parts: str) -> timelines.TangleView:
        """The end of a tangle; `parts` are the endpoint's: `branch`, `author`, `epoch`, `message`, `name`."""
        return self.call(timelines.SHOW_TANGLE, repo=repo, kind=kind, limit=limit, **parts)

    def edit_branch(
        self, branch: str, *, name: str | None = None, archived: bool | None = None
    ) -> RootCommit:
        """Rename a branch, archive it, or take it back."""
        return self.call(branches.EDIT_BRANCH, branch=branch, name=name, archived=archived)

    def list_tags(self, repo: str) -> repos.TagList:
        """Names of commits."""
        return self.call(repos.LIST_TAGS, repo=repo)

    def set_tag(self, repo: str, name: str, commit: str) -> RootCommit:
        """Name a commit, or move the name."""
        return self.call(repos.SET_TAG, repo=repo, name=name, commit=commit)

    def remove_tag(self, repo: str, name: str) -> RootCommit:
        """Take a name away."""
        return self.call(repos.REMOVE_TAG, repo=repo, name=name)

    def list_relayed(self) -> peers.RelayedTopicList:
        """Topics that the node keeps for others."""
        return self.call(peers.LIST_RELAYED_TOPICS)

    def pin_relayed(self, topic: str, *, is_pinned: bool) -> peers.RelayedTopic:
        """Say whether a topic may be forgotten to make room."""
        return self.call(peers.PIN_TOPIC if is_pinned else peers.UNPIN_TOPIC, topic=topic)

    def allow_relayed(self, peer: str, *, is_allowed: bool) -> peers.RelayAllowance:
        """Say of a peer whether this relay knows it."""
        return self.call(peers.ALLOW_PEER if is_allowed else peers.DENY_PEER, peer=peer)

    def why(self, commit: str) -> commits.VerdictView:
        """The verdict on a commit."""
        return self.call(commits.EXPLAIN_VERDICT, commit=commit)

    def list_branches(self, repo: str) -> branches.BranchList:
        """Branches of a repo."""
        return self.call(branches.LIST_BRANCHES, repo=repo)

    def create_branch(self, repo: str, name: str) -> branches.BranchView:
        """Add a branch."""
        return self.call(branches.CREATE_BRANCH, repo=repo, name=name)

    def fork_branch(self, branch: str, name: str, commit: str = "") -> branches.BranchView:
        """Add a branch that continues another."""
        return self.call(branches.FORK_BRANCH, branch=branch, name=name, commit=commit)

    def merge_branch(self, source: str, target: str) -> branches.BranchMerge:
        """Merge a branch into another."""
        return self.call(branches.MERGE_BRANCH, branch=target, source=source)

    def state(self, branch: str, limit: int) -> timelines.BranchState:
        """The end of what a branch continues and its own commits."""
        return self.call(timelines.SHOW_STATE, branch=branch, limit=limit)

    def list_offers(self, repo: str) -> inbox.OfferList:
        """A repo's inbox."""
        return self.call(inbox.LIST_OFFERS, repo=repo)

    def answer_offer(self, repo: str, offer: str, *, accepts: bool) -> inbox.OfferAnswer:
        """Accept an offer, or refuse or withdraw it."""
        return self.call(inbox.ANSWER_OFFER, repo=repo, offer=offer, accepts=accepts)

    def merge_offer(self, repo: str, offer: str) -> branches.MergeResult:
        """Take over what an accepted offer has."""
        return self.call(inbox.MERGE_OFFER, repo=repo, offer=offer)

    def offer(self, source: str, target: str, note: str = "", *, pulls: bool = True) -> inbox.OfferMade:
        """Offer a branch of one's own to a document's inbox."""
        return self.call(inbox.MAKE_OFFER, branch=target, source=source, note=note, pulls=pulls)

    def comment(self, branch: str, text: str) -> inbox.OfferAnswer:
        """Comment on a document."""
        return self.call(inbox.WRITE_COMMENT, branch=branch, text=text)

    def comments(self, branch: str, limit: int) -> inbox.CommentList:
        """Accepted comments on a document."""
        return self.call(inbox.LIST_COMMENTS, branch=branch, limit=limit)

    def write(self, branch: str, text: str) -> commits.WrittenCommitView:
        """Write a post."""
        return self.call(commits.WRITE_POST, branch=branch, text=text)

    def write_posts(self, branch: str, texts: Sequence[str]) -> commits.WrittenPosts:
        """Write many posts, one after the other."""
        return self.call(commits.WRITE_POSTS, branch=branch, texts=list(texts))

    def timeline(self, branch: str, after_position: int, limit: int) -> timelines.TimelineWindow:
        """A window of a timeline."""
        return self.call(timelines.SHOW_TIMELINE, branch=branch, after_position=after_position, limit=limit)

    def timeline_before(self, branch: str, before_position: int, limit: int) -> timelines.TimelineWindow:
        """A window of a timeline that ends before a position, or with the timeline."""
        return self.call(timelines.SHOW_TIMELINE, branch=branch, before_position=before_position, limit=limit)

    def timeline_by_time(
        self, branch: str, limit: int, *, after: str = "", before: str = ""
    ) -> timelines.TimelineWindow:
        """A window in the node's order by time: after a commit, before one, or (without either) the end."""
        return self.call(
            timelines.SHOW_TIMELINE,
            branch=branch,
            order="time",
            limit=limit,
            after=after or None,
            before=before or None,
        )

    def edits(
        self, branch: str, since: str = "", limit: int = 1000, *, positions: bool = False
    ) -> timelines.EditWindow:
        """A window of a timeline's edits, after the cursor `since`; with `positions`, where they can be told."""
        return self.call(timelines.FOLLOW_EDITS, branch=branch, since=since, limit=limit, positions=positions)

    @contextmanager
    def watch(self, branch: str, since: str = "") -> Iterator[Iterator[StreamEvent]]:
        """The same as they come: events `edit`, and `reset` where all is to be forgotten. Raises ServiceError."""
        parts = call_parts(timelines.FOLLOW_EDITS, {"branch": branch, "since": since})
        with self._reached(), open_stream(self._http, parts) as events:
            yield events

    def digest(self, branch: str) -> timelines.TimelineDigest:
        """Digest of a timeline."""
        return self.call(timelines.SHOW_DIGEST, branch=branch)

    def import_items(
        self, branch: str, items: Sequence[Mapping[str, object]], source: str
    ) -> files.ImportResult:
        """Import one batch."""
        return self.call(files.IMPORT_COMMITS, branch=branch, items=items, source=source)

    def list_imported(self, branch: str, source: str, after: int, limit: int) -> files.ImportedWindow:
        """A window of what was imported."""
        return self.call(files.LIST_IMPORTED, branch=branch, source=source, after=after, limit=limit)

    def capability(self, repo: str) -> Capability:
        """A repo's read capability, a secret."""
        return self.call(repos.SHARE_REPO, repo=repo)

    def branch_capability(self, branch: str) -> Capability:
        """A branch's read capability, a secret."""
        return self.call(branches.SHARE_BRANCH, branch=branch)

    def renew_branch(self, branch: str) -> branches.BranchRenewal:
        """Give a branch new secrets."""
        return self.call(branches.RENEW_BRANCH, branch=branch)

    def follow(self, capability: str) -> repos.RepoView:
        """Read and replicate a repo, or a branch by itself, by a read capability."""
        return self.call(repos.FOLLOW_REPO, capability=capability)

    def check_feeds(self, branch: str) -> timelines.FeedCheck:
        """Feeds of a branch, and where they fork."""
        return self.call(timelines.CHECK_FEEDS, branch=branch)

    def list_files(self, branch: str, after: int = 0, limit: int = 1000) -> files.FileList:
        """A window of a branch's files."""
        return self.call(files.LIST_FILES, branch=branch, after=after, limit=limit)

    def add_file(self, branch: str, name: str, content: Iterable[bytes]) -> files.FileView:
        """Add a file, its content streamed."""
        parts = call_parts(files.ADD_FILE, {"branch": branch, "name": name})
        answer: files.FileView = self._request(files.ADD_FILE, parts, content)
        return answer

    def add_files(self, branch: str, body: Iterable[bytes]) -> files.AddedFiles:
        """Add many files, all or none. `body`: before each content the line that `encode_head` makes."""
        parts = call_parts(files.ADD_FILES, {"branch": branch})
        answer: files.AddedFiles = self._request(files.ADD_FILES, parts, content=body)
        return answer

    @contextmanager
    def get_file(self, branch: str, file: str, start: int = 0, stop: int | None = None) -> Iterator[Download]:
        """A file's bytes from `start` to before `stop`, streamed.

        Raises ServiceError, on the way `interrupted` where the daemon or the connection stops.
        """
        path = call_parts(files.GET_FILE, {"branch": branch, "file": file}).path
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

    def remove_file(self, branch: str, file: str) -> files.RemovedFile:
        """Remove a file from a branch."""
        return self.call(files.REMOVE_FILE, branch=branch, file=file)

    def export(self) -> node.ExportResult:
        """Export what is new."""
        return self.call(node.EXPORT_STORE)

    def list_peers(self) -> peers.PeerList:
        """Peers."""
        return self.call(peers.LIST_PEERS)

    def add_peer(self, address: str, peer: str, *, relay: bool = False) -> peers.PeerView:
        """Keep a connection to a peer."""
        return self.call(peers.ADD_PEER, address=address, peer=peer, relay=relay)

    def ban_peer(self, peer: str, *, is_banned: bool) -> peers.PeerBan:
        """Speak with a peer no more, or again."""
        return self.call(peers.BAN_PEER if is_banned else peers.UNBAN_PEER, peer=peer)

    def remove_peer(self, peer: str) -> Empty:
        """Forget a peer."""
        return self.call(peers.REMOVE_PEER, peer=peer)

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
                timeout=endpoint.seconds_max,
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
