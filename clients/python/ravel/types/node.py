"""Types of answers: node."""

from typing import Annotated, TypedDict

from ravel.types.peers import PeerList, PeerView
from ravel.types.repos import RepoList
from ravel.types.search import SearchIndexView
from ravel.types.values import ByteCount, Count, Id, means, one_of


class DamagedCounts(TypedDict):
    """Damaged content of this node, which is asked of peers."""

    commits: Count
    blocks: Annotated[Count, means("Blocks of files.")]


class LostWrites(TypedDict):
    """Repos in which own commits may have been lost."""

    detail: str
    repos: Annotated[list[Id], means("They are not written to until a peer was met.")]


class KeyUse(TypedDict):
    """Signs that the keys of this node are used elsewhere."""

    displaced_at: Annotated[
        int | None,
        means(
            "Unix seconds when peers last ended connections with this node for newer ones, which another node "
            "with its key opened. Null: not in the last ten minutes."
        ),
    ]
    own_commits_came_at: Annotated[
        int | None,
        means(
            "Unix seconds when a peer last brought commits by this user that were not here: this node was set "
            "back, or another one uses the user's key. Null: not since the start."
        ),
    ]


class ClockComparison(TypedDict):
    """Clock of this node beside those of members who write now."""

    authors: Annotated[Count, means("Members whose clocks can be told, by commits that came just then.")]
    ahead_seconds: Annotated[
        int | None,
        means("By how much this clock is ahead of the middle one of theirs. Null: none can be told."),
    ]


class ExportStatus(TypedDict):
    """Exports since the daemon's start."""

    destination: str
    interval: Annotated[int, means("Minutes. 0: on request only.", ge=0)]
    finished_at: Annotated[int | None, means("Unix seconds of the last good export.")]
    next_at: Annotated[int | None, means("Unix seconds of the next scheduled export.")]
    commits: Annotated[Count, means("Commits in the last export.")]
    failures: Count
    last_error: str


class OwnAddressView(TypedDict):
    """Address at which this node can be dialed."""

    address: Annotated[str, means("`host:port`, or `wss://host:port/path`.")]
    reach: Annotated[
        str,
        one_of(
            "machine",
            "network",
            "anywhere",
            "unknown",
            description="Networks from which peers can dial it. `unknown`: no outside peer has connected yet.",
        ),
    ]
    found_by: Annotated[
        str,
        one_of(
            "configured",
            "listen",
            "router",
            "interface",
            "peers",
            description=(
                "How the node came to it: `network.advertise`, `network.listen`, a router that forwards a port, an "
                "interface of this machine, peers that see it there."
            ),
        ),
    ]


class RouterView(TypedDict):
    """Result of asking the router for a port."""

    state: Annotated[
        str,
        one_of(
            "off",
            "not needed",
            "asking",
            "mapped",
            "none",
            description="`off`: `network.map_port`, or the node listens for this machine alone. `none`: it forwards none.",
        ),
    ]
    detail: Annotated[str, means("How it was asked (`pcp`, `nat-pmp`, `upnp`), or why there is none.")]


class StoreBound(TypedDict):
    """The bound on the store's size (`storage.size_max`), and what came of it."""

    size: Annotated[ByteCount, means("Bytes that it takes, without those that are about to be freed.")]
    size_max: ByteCount
    days: Annotated[
        int | None,
        means("Days of which posts are kept in all repos; older ones come when they are opened. Null: any."),
    ]
    state: Annotated[
        str,
        one_of(
            "under",
            "giving_up",
            "alone",
            "stuck",
            description=(
                "`under`: the store is within the bound. Otherwise it takes more. `giving_up`: old contents of other users "
                "are being removed. `alone`: no member's node that keeps posts of any age is connected, so nothing is "
                "removed. `stuck`: nothing more can be removed. What is left is this user's own, is recent, is held by no "
                "other connected node, or is neither a post nor a file."
            ),
        ),
    ]


class NodeStatus(TypedDict):
    """The node at a glance."""

    version: str
    node: Id
    user: Id
    home: str
    listen: Annotated[str, means("`host:port`; the host `*` stands for every interface.")]
    websocket_listen: Annotated[
        str, means("Where it listens by WebSocket, as `ws://host:port/ravel`. Empty: nowhere.")
    ]
    addresses: Annotated[list[OwnAddressView], means("The farthest reaching first.")]
    router: RouterView
    relay: Annotated[bool, means("This node keeps topics for others.")]
    uptime_seconds: int
    repos: Count
    commits: Count
    pending: Annotated[int, means("Commits that wait for their causes.", ge=0)]
    damaged: DamagedCounts
    lost_writes: LostWrites
    key_use: KeyUse
    clock: ClockComparison
    faults: Annotated[
        list[str],
        means("Why what is written here or comes may not be stored, as `/readyz` has it. Empty: it is."),
    ]
    storage_bound: Annotated[StoreBound | None, means("Null: it has none.")]
    rejected: Count
    dropped: Count
    export: ExportStatus
    search: SearchIndexView
    peers: list[PeerView]


class DayGrowth(TypedDict):
    """Data received on one day, by this node's clock."""

    day: Annotated[str, means("As 2026-01-31.")]
    commits: Count
    size: ByteCount


class CauseGrowth(TypedDict):
    """Data received for one cause."""

    cause: Annotated[
        str,
        one_of(
            "posts",
            "files",
            "members",
            "epochs",
            description=(
                "`posts`: what is written in branches. `files`: with the sizes that authors state. `epochs`: secrets for "
                "members. `members`: all else of root branches."
            ),
        ),
    ]
    commits: Count
    size: ByteCount


class RelayRoom(TypedDict):
    """The room that relayed topics take."""

    topics: Count
    size: ByteCount
    size_max: ByteCount


class StorageUse(TypedDict):
    """Use of the disk by the store."""

    database: ByteCount
    log: ByteCount
    older: Annotated[ByteCount, means("Bytes of copies made before migrations and repairs.")]
    packs: Annotated[ByteCount, means("Bytes of files' content.")]
    free: Annotated[ByteCount, means("Bytes that are free on that disk.")]
    days: Annotated[list[DayGrowth], means("The latest 30 days with commits, of the latest 100,000 commits.")]
    causes: Annotated[list[CauseGrowth], means("Growth of those days, by cause.")]
    relay: Annotated[RelayRoom | None, means("Null: this node is no relay.")]


class LogLines(TypedDict):
    """The latest lines of the daemon's log."""

    lines: Annotated[list[str], means("At most 1,000.")]


class PageCode(TypedDict):
    """A code for the web page."""

    code: Annotated[str, means("Good once.")]
    path: Annotated[str, means("The page's path with the code behind the `#`.")]
    expires_seconds: int


class QrCode(TypedDict):
    """A QR code as an SVG path."""

    size: Annotated[int, means("The side of the square in modules, with its white border.", ge=0)]
    path: Annotated[str, means("The dark modules, one unit each.")]


class ExportResult(TypedDict):
    """Content of an export."""

    path: Annotated[str, means("A path or a URL.")]
    commits: Count
    added: Annotated[Count, means("Commits that this export added.")]
    relayed: Annotated[Count, means("Commits that are kept for others.")]
    parts: Annotated[Count, means("Files of all tables.")]
    watermark: int
    unjudged_repos: Annotated[Count, means("Repos whose members are not exported for damage.")]


class ExportView(TypedDict):
    """The export that is there."""

    destination: Annotated[str, means("A path or a URL.")]
    made_at: Annotated[
        int | None,
        means("Unix seconds. Null: there is none yet, or exports go to another place than this machine."),
    ]
    size: Annotated[int | None, means("Bytes of all its files.")]


class NodeLists(PeerList, RepoList):
    """Peers and repos."""
