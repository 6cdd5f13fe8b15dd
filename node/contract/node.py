"""The node itself: its status, use of the disk, log, exports, events, and what its web page needs."""

from typing import Annotated, Any, Final

from msgspec import Meta

from node.contract.access import ANY_TOKEN, HOME_ONLY, NODE, PERSON, READ_LISTS
from node.contract.endpoint import Endpoint, HeaderParameter, QueryParameter, StreamedEvent
from node.contract.values import Request
from protocol.limits.formats import LINK_SIZE_MAX
from protocol.limits.users import BROWSER_NAME_SIZE_MAX, EXPORT_SECONDS_MAX
from ravel.types.node import (
    ExportResult,
    ExportView,
    LogLines,
    NodeLists,
    NodeStatus,
    PageCode,
    QrCode,
    StorageUse,
)
from ravel.types.peers import PeerList
from ravel.types.repos import RepoList
from ravel.types.timelines import ClosingEvent

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
