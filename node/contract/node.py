"""The node itself: its status, use of the disk, log, exports, events, and what its web page needs."""

from typing import Annotated, Any, Final, TypedDict

from msgspec import Meta

from node.contract.access import ANY_TOKEN, HOME_ONLY, NODE, PERSON, READ_LISTS
from node.contract.endpoint import Endpoint, HeaderParameter, QueryParameter, StreamedEvent
from node.contract.peers import PeerList, PeerView
from node.contract.repos import RepoList
from node.contract.search import SearchIndexView
from node.contract.timelines import ClosingEvent
from node.contract.values import ByteCount, Count, Id, Request, one_of
from protocol.limits.formats import LINK_SIZE_MAX
from protocol.limits.users import BROWSER_NAME_SIZE_MAX, EXPORT_SECONDS_MAX

JsonObject = dict[str, Any]
"""An OpenAPI document: JSON of a form that OpenAPI states, and no type here."""


class QrRequest(Request, frozen=True):
    """Draws a QR code."""

    text: Annotated[str, Meta(min_length=1, max_length=LINK_SIZE_MAX)]


class PageCodeRequest(Request, frozen=True):
    """Gives a page's code for a token (`POST /open`, outside of `/api/v1`)."""

    code: Annotated[str, Meta(min_length=1, max_length=64)]
    name: Annotated[
        str, Meta(max_length=BROWSER_NAME_SIZE_MAX, description="What to call a browser that is paired.")
    ] = ""


class DamagedCounts(TypedDict):
    """Damaged content of this node, which is asked of peers."""

    commits: Count
    blocks: Annotated[Count, Meta(description="Blocks of files.")]


class LostWrites(TypedDict):
    """Repos in which own commits may have been lost."""

    detail: str
    repos: Annotated[list[Id], Meta(description="They are not written to until a peer was met.")]


class KeyUse(TypedDict):
    """Signs that the keys of this node are used elsewhere."""

    displaced_at: Annotated[
        int | None,
        Meta(
            description="Unix seconds when peers last ended connections with this node for newer ones, which another node "
            "with its key opened. Null: not in the last ten minutes."
        ),
    ]
    own_commits_came_at: Annotated[
        int | None,
        Meta(
            description="Unix seconds when a peer last brought commits by this user that were not here: this node was set "
            "back, or another one uses the user's key. Null: not since the start."
        ),
    ]


class ClockComparison(TypedDict):
    """Clock of this node beside those of members who write now."""

    authors: Annotated[
        Count, Meta(description="Members whose clocks can be told, by commits that came just then.")
    ]
    ahead_seconds: Annotated[
        int | None,
        Meta(
            description="By how much this clock is ahead of the middle one of theirs. Null: none can be told."
        ),
    ]


class ExportStatus(TypedDict):
    """Exports since the daemon's start."""

    destination: str
    interval: Annotated[int, Meta(ge=0, description="Minutes. 0: on request only.")]
    finished_at: Annotated[int | None, Meta(description="Unix seconds of the last good export.")]
    next_at: Annotated[int | None, Meta(description="Unix seconds of the next scheduled export.")]
    commits: Annotated[Count, Meta(description="Commits in the last export.")]
    failures: Count
    last_error: str


class OwnAddressView(TypedDict):
    """Address at which this node can be dialed."""

    address: Annotated[str, Meta(description="`host:port`, or `wss://host:port/path`.")]
    reach: Annotated[
        str,
        one_of(
            "machine",
            "network",
            "anywhere",
            "unknown",
            description="From where it can be dialed. `unknown`: nobody from outside has come in yet.",
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
    detail: Annotated[
        str, Meta(description="How it was asked (`pcp`, `nat-pmp`, `upnp`), or why there is none.")
    ]


class NodeStatus(TypedDict):
    """The node at a glance."""

    version: str
    node: Id
    user: Id
    home: str
    listen: Annotated[str, Meta(description="`host:port`; the host `*` stands for every interface.")]
    websocket_listen: Annotated[
        str, Meta(description="Where it listens by WebSocket, as `ws://host:port/ravel`. Empty: nowhere.")
    ]
    addresses: Annotated[list[OwnAddressView], Meta(description="The farthest reaching first.")]
    router: RouterView
    relay: Annotated[bool, Meta(description="This node keeps topics for others.")]
    uptime_seconds: int
    repos: Count
    commits: Count
    pending: Annotated[int, Meta(ge=0, description="Commits that wait for their causes.")]
    damaged: DamagedCounts
    lost_writes: LostWrites
    key_use: KeyUse
    clock: ClockComparison
    faults: Annotated[
        list[str],
        Meta(
            description="Why what is written here or comes may not be stored, as `/readyz` has it. Empty: it is."
        ),
    ]
    rejected: Count
    dropped: Count
    export: ExportStatus
    search: SearchIndexView
    peers: list[PeerView]


class DayGrowth(TypedDict):
    """Data received on one day, by this node's clock."""

    day: Annotated[str, Meta(description="As 2026-01-31.")]
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
    older: Annotated[ByteCount, Meta(description="Bytes of copies made before migrations and repairs.")]
    packs: Annotated[ByteCount, Meta(description="Bytes of files' content.")]
    free: Annotated[ByteCount, Meta(description="Bytes that are free on that disk.")]
    days: Annotated[
        list[DayGrowth], Meta(description="The latest 30 days with commits, of the latest 100,000 commits.")
    ]
    causes: Annotated[list[CauseGrowth], Meta(description="Growth of those days, by cause.")]
    relay: Annotated[RelayRoom | None, Meta(description="Null: this node is no relay.")]


class LogLines(TypedDict):
    """The latest lines of the daemon's log."""

    lines: Annotated[list[str], Meta(description="At most 1,000.")]


class PageCode(TypedDict):
    """A code for the web page."""

    code: Annotated[str, Meta(description="Good once.")]
    path: Annotated[str, Meta(description="The page's path with the code behind the `#`.")]
    expires_seconds: int


class QrCode(TypedDict):
    """A QR code as an SVG path."""

    size: Annotated[int, Meta(ge=0, description="The side of the square in modules, with its white border.")]
    path: Annotated[str, Meta(description="The dark modules, one unit each.")]


class ExportResult(TypedDict):
    """Content of an export."""

    path: Annotated[str, Meta(description="A path or a URL.")]
    commits: Count
    added: Annotated[Count, Meta(description="Commits that this export added.")]
    relayed: Annotated[Count, Meta(description="Commits that are kept for others.")]
    parts: Annotated[Count, Meta(description="Files of all tables.")]
    watermark: int
    unjudged_repos: Annotated[Count, Meta(description="Repos whose members are not exported for damage.")]


class ExportView(TypedDict):
    """The export that is there."""

    destination: Annotated[str, Meta(description="A path or a URL.")]
    made_at: Annotated[
        int | None,
        Meta(
            description="Unix seconds. Null: there is none yet, or exports go to another place than this machine."
        ),
    ]
    size: Annotated[int | None, Meta(description="Bytes of all its files.")]


class NodeLists(PeerList, RepoList):
    """Peers and repos."""


SHOW_STATUS: Final = Endpoint(
    name="show_status",
    method="GET",
    path="/status",
    stability="stable",
    scopes=NODE,
    summary="Show the node at a glance.",
    answer=NodeStatus,
)
SHOW_STORAGE: Final = Endpoint(
    name="show_storage",
    method="GET",
    path="/storage",
    scopes=NODE,
    summary="Show what the store takes on the disk, and how it has grown.",
    answer=StorageUse,
)
SHOW_LOG: Final = Endpoint(
    name="show_log",
    method="GET",
    path="/log",
    scopes=NODE,
    summary="Show the latest lines of the daemon's log.",
    answer=LogLines,
)
FOLLOW_NODE: Final = Endpoint(
    name="follow_node",
    method="GET",
    path="/events",
    stability="stable",
    scopes=READ_LISTS,
    summary="Show peers and repos, or follow them as they change.",
    answer=NodeLists,
    query=(
        QueryParameter(
            name="changes",
            type=bool,
            description="True if a `repos` event has only the repos that have changed since the one before. The first has "
            "all, or with a cursor in `Last-Event-ID` those that have changed since.",
        ),
    ),
    headers=(HeaderParameter("Last-Event-ID", "Of a stream with `changes`: the cursor to continue from."),),
    events=(
        StreamedEvent("peers", PeerList, "The whole list, when it has changed."),
        StreamedEvent(
            "repos", RepoList, "The whole list, when it has changed; with `changes` only what has changed."
        ),
        StreamedEvent("closing", ClosingEvent, "The node stops. This is the last event."),
    ),
    errors=("busy",),
)
EXPORT_STORE: Final = Endpoint(
    name="export_store",
    method="POST",
    path="/export",
    stability="stable",
    scopes=NODE,
    summary="Export what is new. The answer comes when it is written.",
    answer=ExportResult,
    seconds_max=EXPORT_SECONDS_MAX,
)
SHOW_EXPORT: Final = Endpoint(
    name="show_export",
    method="GET",
    path="/export",
    scopes=NODE,
    summary="Show when the export that is there was made, and its size.",
    answer=ExportView,
    errors=("too_large",),
)
MAKE_EXPORT_CODE: Final = Endpoint(
    name="make_export_code",
    method="POST",
    path="/export/codes",
    scopes=PERSON,
    summary="Make a path at which a browser saves the export as a ZIP file, once.",
    answer=PageCode,
    is_keyless=True,
)
MAKE_PAGE_CODE: Final = Endpoint(
    name="make_page_code",
    method="POST",
    path="/codes",
    scopes=HOME_ONLY,
    summary="Make a code by which a web page gets a token of its own, once.",
    answer=PageCode,
    is_keyless=True,
)
DRAW_QR: Final = Endpoint(
    name="draw_qr",
    method="POST",
    path="/qr",
    scopes=ANY_TOKEN,
    summary="Draw a QR code of a link.",
    request=QrRequest,
    answer=QrCode,
)
DESCRIBE_API: Final = Endpoint(
    name="describe_api",
    method="GET",
    path="/openapi.json",
    stability="stable",
    scopes=ANY_TOKEN,
    summary="Describe this API: an OpenAPI 3.1 document.",
    answer=JsonObject,
)
