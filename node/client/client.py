"""The API from Python: one method an endpoint, errors as ServiceError. The CLI is written on it."""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Self
from urllib.parse import unquote

import httpx

from node.client.calls import JsonObject, path_part
from node.client.documents import DocumentsClient
from node.client.download import Download
from node.client.errors import error_of
from node.client.event_client import StreamEvent, open_stream
from node.client.members import DevicesClient, MembersClient, QuorumsClient
from node.home.home import not_running, read_run_file, read_token
from node.runtime.errors import ServiceError
from protocol.limits.users import EXPORT_SECONDS_MAX

_TIMEOUT_SECONDS: Final = 60.0
_PIECE_SIZE: Final = 1 << 20


class ApiClient:
    """Calls one daemon. Answers are the JSON objects of docs/reference/api.md."""

    def __init__(self, base_url: str, token: str, home: Path | None = None) -> None:
        self.base_url = base_url
        self._home = home
        self._http = httpx.Client(
            base_url=f"{base_url}/api/v1",
            headers={"Authorization": f"Bearer {token}"},
            timeout=_TIMEOUT_SECONDS,
            trust_env=False,  # a proxy has no business between a user and the daemon beside them
        )
        self.documents = DocumentsClient(self._call)
        self.members = MembersClient(self._call)
        self.devices = DevicesClient(self._call)
        self.quorums = QuorumsClient(self._call)

    @classmethod
    def for_home(cls, home: Path) -> Self:
        """The daemon that runs in a folder. Raises ServiceError `not_running` or `not_initialised`."""
        return cls(f"http://{read_run_file(home).api}", read_token(home), home)

    def close(self) -> None:
        """Give up the connection."""
        self._http.close()

    def make_code(self) -> JsonObject:
        """A code by which the web page gets the token, once."""
        return self._call("POST", "/codes", {})

    def draw_qr(self, text: str) -> JsonObject:
        """A QR code of a link, as an SVG path."""
        return self._call("POST", "/qr", {"text": text})

    def status(self) -> JsonObject:
        """The node at a glance."""
        return self._call("GET", "/status")

    def storage(self) -> JsonObject:
        """What the store takes on the disk, and how it has grown."""
        return self._call("GET", "/storage")

    def page(self, path: str) -> str:
        """What the daemon serves beside the API, whatever its status: `/metrics`, `/readyz`."""
        with self._reached():
            return self._http.get(f"{self.base_url}{path}").text

    def log(self) -> JsonObject:
        """The latest lines of the daemon's log."""
        return self._call("GET", "/log")

    def create_repo(self, name: str) -> JsonObject:
        """Create a repo."""
        return self._call("POST", "/repos", {"name": name})

    def list_repos(self) -> JsonObject:
        """All repos."""
        return self._call("GET", "/repos")

    def join(self, invitation: str) -> JsonObject:
        """Join by a link."""
        return self._call("POST", "/join", {"invitation": invitation})

    def fork_repo(self, repo: str, name: str) -> JsonObject:
        """Make a repo of one's own that continues another."""
        return self._call("POST", f"/repos/{path_part(repo)}/forks", {"name": name})

    def forget_repo(self, repo: str) -> JsonObject:
        """Forget a repo of which single branches are followed."""
        return self._call("DELETE", f"/repos/{path_part(repo)}")

    def list_epochs(self, repo: str) -> JsonObject:
        """Epochs of a repo."""
        return self._call("GET", f"/repos/{path_part(repo)}/epochs")

    def renew_repo(self, repo: str) -> JsonObject:
        """Start an epoch."""
        return self._call("POST", f"/repos/{path_part(repo)}/epochs", {})

    def adopt(self, branch: str, commits: list[str]) -> JsonObject:
        """Make void commits count again."""
        return self._call("POST", f"/branches/{path_part(branch)}/adoptions", {"commits": commits})

    def list_voids(self, branch: str) -> JsonObject:
        """Void commits of a branch."""
        return self._call("GET", f"/branches/{path_part(branch)}/voids")

    def show(self, commit: str) -> JsonObject:
        """A commit with all it says."""
        return self._call("GET", f"/commits/{path_part(commit)}")

    def past(self, branch: str, commit: str, limit: int) -> JsonObject:
        """The end of a branch as it was at a commit."""
        return self._call(
            "GET", f"/branches/{path_part(branch)}/past/{path_part(commit)}", query={"limit": limit}
        )

    def tangle(self, repo: str, kind: str, limit: int, **parts: str) -> JsonObject:
        """The end of a tangle; `parts` are the endpoint's: `branch`, `author`, `epoch`, `message`, `name`."""
        query: dict[str, int | str] = {"limit": limit, **parts}
        return self._call("GET", f"/repos/{path_part(repo)}/tangles/{path_part(kind)}", query=query)

    def edit_branch(
        self, branch: str, *, name: str | None = None, archived: bool | None = None
    ) -> JsonObject:
        """Rename a branch, archive it, or take it back."""
        body = {"name": name, "archived": archived}
        return self._call("POST", f"/branches/{path_part(branch)}/edits", body)

    def list_tags(self, repo: str) -> JsonObject:
        """Names of commits."""
        return self._call("GET", f"/repos/{path_part(repo)}/tags")

    def set_tag(self, repo: str, name: str, commit: str) -> JsonObject:
        """Name a commit, or move the name."""
        return self._call("PUT", f"/repos/{path_part(repo)}/tags/{path_part(name)}", {"commit": commit})

    def remove_tag(self, repo: str, name: str) -> JsonObject:
        """Take a name away."""
        return self._call("DELETE", f"/repos/{path_part(repo)}/tags/{path_part(name)}")

    def list_relayed(self) -> JsonObject:
        """Topics that the node keeps for others."""
        return self._call("GET", "/relay/topics")

    def pin_relayed(self, topic: str, *, is_pinned: bool) -> JsonObject:
        """Say whether a topic may be forgotten to make room."""
        return self._call("PUT" if is_pinned else "DELETE", f"/relay/topics/{path_part(topic)}/pin")

    def allow_relayed(self, peer: str, *, is_allowed: bool) -> JsonObject:
        """Say of a peer whether this relay knows it."""
        return self._call("PUT" if is_allowed else "DELETE", f"/relay/peers/{path_part(peer)}")

    def why(self, commit: str) -> JsonObject:
        """The verdict on a commit."""
        return self._call("GET", f"/commits/{path_part(commit)}/verdict")

    def list_branches(self, repo: str) -> JsonObject:
        """Branches of a repo."""
        return self._call("GET", f"/repos/{path_part(repo)}/branches")

    def create_branch(self, repo: str, name: str) -> JsonObject:
        """Add a branch."""
        return self._call("POST", f"/repos/{path_part(repo)}/branches", {"name": name})

    def fork_branch(self, branch: str, name: str, commit: str = "") -> JsonObject:
        """Add a branch that continues another."""
        return self._call("POST", f"/branches/{path_part(branch)}/forks", {"name": name, "commit": commit})

    def merge_branch(self, source: str, target: str) -> JsonObject:
        """Merge a branch into another."""
        return self._call("POST", f"/branches/{path_part(target)}/merges", {"source": source})

    def state(self, branch: str, limit: int) -> JsonObject:
        """The end of what a branch continues and its own commits."""
        return self._call("GET", f"/branches/{path_part(branch)}/state", query={"limit": limit})

    def list_offers(self, repo: str) -> JsonObject:
        """A repo's inbox."""
        return self._call("GET", f"/repos/{path_part(repo)}/offers")

    def answer_offer(self, repo: str, offer: str, *, accepts: bool) -> JsonObject:
        """Accept an offer, or refuse or withdraw it."""
        return self._call(
            "POST", f"/repos/{path_part(repo)}/offers/{path_part(offer)}/answers", {"accepts": accepts}
        )

    def merge_offer(self, repo: str, offer: str) -> JsonObject:
        """Take over what an accepted offer has."""
        return self._call("POST", f"/repos/{path_part(repo)}/offers/{path_part(offer)}/merges", {})

    def offer(self, source: str, target: str, note: str = "", *, pulls: bool = True) -> JsonObject:
        """Offer a branch of one's own to a document's inbox."""
        body = {"source": source, "note": note, "pulls": pulls}
        return self._call("POST", f"/branches/{path_part(target)}/offers", body)

    def comment(self, branch: str, text: str) -> JsonObject:
        """Comment on a document."""
        return self._call("POST", f"/branches/{path_part(branch)}/comments", {"text": text})

    def comments(self, branch: str, limit: int) -> JsonObject:
        """Accepted comments on a document."""
        return self._call("GET", f"/branches/{path_part(branch)}/comments", query={"limit": limit})

    def write(self, branch: str, text: str) -> JsonObject:
        """Write a post."""
        return self._call("POST", f"/branches/{path_part(branch)}/commits", {"text": text})

    def timeline(self, branch: str, after_position: int, limit: int) -> JsonObject:
        """A window of a timeline."""
        query = {"after_position": after_position, "limit": limit}
        return self._call("GET", f"/branches/{path_part(branch)}/timeline", query=query)

    def timeline_before(self, branch: str, before_position: int, limit: int) -> JsonObject:
        """A window of a timeline that ends before a position, or with the timeline."""
        query = {"before_position": before_position, "limit": limit}
        return self._call("GET", f"/branches/{path_part(branch)}/timeline", query=query)

    def timeline_by_time(self, branch: str, limit: int, *, after: str = "", before: str = "") -> JsonObject:
        """A window in the node's order by time: after a commit, before one, or (without either) the end."""
        query: dict[str, str | int] = {"order": "time", "limit": limit}
        query.update({name: commit for name, commit in (("after", after), ("before", before)) if commit})
        return self._call("GET", f"/branches/{path_part(branch)}/timeline", query=query)

    def edits(
        self, branch: str, since: str = "", limit: int = 1000, *, positions: bool = False
    ) -> JsonObject:
        """A window of a timeline's edits, after the cursor `since`; with `positions`, where they can be told."""
        query: dict[str, str | int] = {"since": since, "limit": limit, "positions": int(positions)}
        return self._call("GET", f"/branches/{path_part(branch)}/edits", query=query)

    @contextmanager
    def watch(self, branch: str, since: str = "") -> Iterator[Iterator[StreamEvent]]:
        """The same as they come: events `edit`, and `reset` where all is to be forgotten. Raises ServiceError."""
        path = f"/branches/{path_part(branch)}/edits"
        with self._reached(), open_stream(self._http, path, since) as events:
            yield events

    def digest(self, branch: str) -> JsonObject:
        """Digest of a timeline."""
        return self._call("GET", f"/branches/{path_part(branch)}/digest")

    def import_items(self, branch: str, items: list[JsonObject], source: str) -> JsonObject:
        """Import one batch."""
        return self._call("POST", f"/branches/{path_part(branch)}/import", {"items": items, "source": source})

    def list_imported(self, branch: str, source: str, after: int, limit: int) -> JsonObject:
        """A window of what was imported."""
        query: dict[str, int | str] = {"source": source, "after": after, "limit": limit}
        return self._call("GET", f"/branches/{path_part(branch)}/imported", query=query)

    def capability(self, repo: str) -> JsonObject:
        """A repo's read capability, a secret."""
        return self._call("POST", f"/repos/{path_part(repo)}/capability", {})

    def branch_capability(self, branch: str) -> JsonObject:
        """A branch's read capability, a secret."""
        return self._call("POST", f"/branches/{path_part(branch)}/capability", {})

    def renew_branch(self, branch: str) -> JsonObject:
        """Give a branch new secrets."""
        return self._call("POST", f"/branches/{path_part(branch)}/renewals", {})

    def follow(self, capability: str) -> JsonObject:
        """Read and replicate a repo, or a branch by itself, by a read capability."""
        return self._call("POST", "/follow", {"capability": capability})

    def check_feeds(self, branch: str) -> JsonObject:
        """Feeds of a branch, and where they fork."""
        return self._call("GET", f"/branches/{path_part(branch)}/feeds")

    def list_files(self, branch: str, after: int = 0, limit: int = 1000) -> JsonObject:
        """A window of a branch's files."""
        return self._call(
            "GET", f"/branches/{path_part(branch)}/files", query={"after": after, "limit": limit}
        )

    def add_file(self, branch: str, name: str, content: Iterable[bytes]) -> JsonObject:
        """Add a file, its content streamed."""
        return self._call(
            "POST", f"/branches/{path_part(branch)}/files", content=content, query={"name": name}
        )

    @contextmanager
    def get_file(self, branch: str, file: str, start: int = 0, stop: int | None = None) -> Iterator[Download]:
        """A file's bytes from `start` to before `stop`, streamed.

        Raises ServiceError, on the way `interrupted` where the daemon or the connection stops.
        """
        path = f"/branches/{path_part(branch)}/files/{path_part(file)}"
        # A range that is asked for from the very start is none: an empty file has no first byte.
        wanted = {}
        if start or stop is not None:
            wanted = {"Range": f"bytes={start}-{'' if stop is None else stop - 1}"}
        with self._reached(), self._http.stream("GET", path, headers=wanted) as response:
            if response.is_error:
                response.read()
                raise error_of(response)
            found = re.fullmatch(r"bytes [0-9]+-[0-9]+/([0-9]+)", response.headers.get("content-range", ""))
            size = int(found[1] if found else response.headers["content-length"])
            name = response.headers["content-disposition"].partition("''")[2]
            yield Download(size, response.headers["etag"].strip('"'), unquote(name), self._pieces(response))

    def remove_file(self, branch: str, file: str) -> JsonObject:
        """Remove a file from a branch."""
        return self._call("DELETE", f"/branches/{path_part(branch)}/files/{path_part(file)}")

    def export(self) -> JsonObject:
        """Export what is new."""
        return self._call("POST", "/export", {}, seconds=EXPORT_SECONDS_MAX)

    def list_peers(self) -> JsonObject:
        """Peers."""
        return self._call("GET", "/peers")

    def add_peer(self, address: str, peer: str, *, relay: bool = False) -> JsonObject:
        """Keep a connection to a peer."""
        return self._call("POST", "/peers", {"address": address, "peer": peer, "relay": relay})

    def ban_peer(self, peer: str, *, is_banned: bool) -> JsonObject:
        """Speak with a peer no more, or again."""
        return self._call("PUT" if is_banned else "DELETE", f"/peers/{path_part(peer)}/ban")

    def remove_peer(self, peer: str) -> JsonObject:
        """Forget a peer."""
        return self._call("DELETE", f"/peers/{path_part(peer)}")

    def _call(
        self,
        method: str,
        path: str,
        body: JsonObject | None = None,
        query: Mapping[str, int | str] | None = None,
        content: Iterable[bytes] | None = None,
        seconds: float = _TIMEOUT_SECONDS,
    ) -> JsonObject:
        with self._reached():
            response = self._http.request(
                method, path, json=body, params=query, content=content, timeout=seconds
            )
        if response.is_error:
            raise error_of(response)
        try:
            answer: JsonObject = response.json()
        except ValueError:
            raise ServiceError(
                "internal", f"the daemon answered {response.status_code} without JSON"
            ) from None
        return answer

    @contextmanager
    def _reached(self) -> Iterator[None]:
        try:
            yield
        except httpx.TimeoutException:
            raise ServiceError(
                "not_running", "the daemon does not answer in time", "look at its log"
            ) from None
        except httpx.TransportError:
            raise not_running(self._home or Path()) from None

    def _pieces(self, response: httpx.Response) -> Iterator[bytes]:
        try:
            yield from response.iter_bytes(_PIECE_SIZE)
        except httpx.TransportError as error:
            raise ServiceError(
                "interrupted",
                f"the daemon stopped sending: {error}",
                "run the command again to go on from here",
            ) from None
