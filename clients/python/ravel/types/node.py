"""Types of answers: node. Made from the table of endpoints by `make reference`."""

from __future__ import annotations

from typing import TypedDict

from ravel.types.peers import LearnedAddress, PeerView
from ravel.types.repos import RepoView
from ravel.types.search import SearchIndexView


class NodeStatus(TypedDict):
    """The node at a glance."""

    version: str
    node: str
    user: str
    home: str
    listen: str
    """`host:port`; the host `*` stands for every interface."""
    websocket_listen: str
    """Where it listens by WebSocket, as `ws://host:port/ravel`. Empty: nowhere."""
    addresses: list[OwnAddressView]
    """The farthest reaching first."""
    router: RouterView
    relay: bool
    """This node keeps topics for others."""
    uptime_seconds: int
    repos: int
    commits: int
    pending: int
    """Commits that wait for their causes."""
    damaged: DamagedCounts
    lost_writes: LostWrites
    key_use: KeyUse
    clock: ClockComparison
    faults: list[str]
    """Why what is written here or comes may not be stored, as `/readyz` has it. Empty: it is."""
    rejected: int
    dropped: int
    export: ExportStatus
    search: SearchIndexView
    peers: list[PeerView]


class StorageUse(TypedDict):
    """Use of the disk by the store."""

    database: int
    """Bytes."""
    log: int
    """Bytes."""
    older: int
    """Bytes of copies made before migrations and repairs."""
    packs: int
    """Bytes of files' content."""
    free: int
    """Bytes that are free on that disk."""
    days: list[DayGrowth]
    """The latest 30 days with commits, of the latest 100,000 commits."""
    causes: list[CauseGrowth]
    """Growth of those days, by cause."""
    relay: RelayRoom | None
    """Null: this node is no relay."""


class LogLines(TypedDict):
    """The latest lines of the daemon's log."""

    lines: list[str]
    """At most 1,000."""


class NodeLists(TypedDict):
    """Peers and repos."""

    peers: list[PeerView]
    known: list[LearnedAddress]
    banned: list[str]
    repos: list[RepoView]
    gone: list[str]
    """Repos that are no longer there, where `complete` is false."""
    cursor: str
    """Of this moment: names it in `since` to get what has changed after it."""
    complete: bool
    """True: these are all repos. False: those that have changed since the cursor."""


class ExportResult(TypedDict):
    """Content of an export."""

    path: str
    """A path or a URL."""
    commits: int
    added: int
    """Commits that this export added."""
    relayed: int
    """Commits that are kept for others."""
    parts: int
    """Files of all tables."""
    watermark: int
    unjudged_repos: int
    """Repos whose members are not exported for damage."""


class ExportView(TypedDict):
    """The export that is there."""

    destination: str
    """A path or a URL."""
    made_at: int | None
    """Unix seconds. Null: there is none yet, or exports go to another place than this machine."""
    size: int | None
    """Bytes of all its files."""


class PageCode(TypedDict):
    """A code for the web page."""

    code: str
    """Good once."""
    path: str
    """The page's path with the code behind the `#`."""
    expires_seconds: int


class QrCode(TypedDict):
    """A QR code as an SVG path."""

    size: int
    """The side of the square in modules, with its white border."""
    path: str
    """The dark modules, one unit each."""


class OwnAddressView(TypedDict):
    """Address at which this node can be dialed."""

    address: str
    """`host:port`, or `wss://host:port/path`."""
    reach: str
    """From where it can be dialed. `unknown`: nobody from outside has come in yet."""
    found_by: str
    """How the node came to it: `network.advertise`, `network.listen`, a router that forwards a port, an interface
    of this machine, peers that see it there.
    """


class RouterView(TypedDict):
    """Result of asking the router for a port."""

    state: str
    """`off`: `network.map_port`, or the node listens for this machine alone. `none`: it forwards none."""
    detail: str
    """How it was asked (`pcp`, `nat-pmp`, `upnp`), or why there is none."""


class DamagedCounts(TypedDict):
    """Damaged content of this node, which is asked of peers."""

    commits: int
    blocks: int
    """Blocks of files."""


class LostWrites(TypedDict):
    """Repos in which own commits may have been lost."""

    detail: str
    repos: list[str]
    """They are not written to until a peer was met."""


class KeyUse(TypedDict):
    """Signs that the keys of this node are used elsewhere."""

    displaced_at: int | None
    """Unix seconds when peers last ended connections with this node for newer ones, which another node with its
    key opened. Null: not in the last ten minutes.
    """
    own_commits_came_at: int | None
    """Unix seconds when a peer last brought commits by this user that were not here: this node was set back, or
    another one uses the user's key. Null: not since the start.
    """


class ClockComparison(TypedDict):
    """Clock of this node beside those of members who write now."""

    authors: int
    """Members whose clocks can be told, by commits that came just then."""
    ahead_seconds: int | None
    """By how much this clock is ahead of the middle one of theirs. Null: none can be told."""


class ExportStatus(TypedDict):
    """Exports since the daemon's start."""

    destination: str
    interval: int
    """Minutes. 0: on request only."""
    finished_at: int | None
    """Unix seconds of the last good export."""
    next_at: int | None
    """Unix seconds of the next scheduled export."""
    commits: int
    """Commits in the last export."""
    failures: int
    last_error: str


class DayGrowth(TypedDict):
    """Data received on one day, by this node's clock."""

    day: str
    """As 2026-01-31."""
    commits: int
    size: int
    """Bytes."""


class CauseGrowth(TypedDict):
    """Data received for one cause."""

    cause: str
    """`posts`: what is written in branches. `files`: with the sizes that authors state. `epochs`: secrets for
    members. `members`: all else of root branches.
    """
    commits: int
    size: int
    """Bytes."""


class RelayRoom(TypedDict):
    """The room that relayed topics take."""

    topics: int
    size: int
    """Bytes."""
    size_max: int
    """Bytes."""
