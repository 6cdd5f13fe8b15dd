"""Calls: node. Made from the table of endpoints by `make reference`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ravel.callers import SyncCaller
from ravel.operations import Operation

if TYPE_CHECKING:  # a command calls one or two, and imports their types
    from ravel.event_streams import EventStream
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

SHOW_STATUS: Final[Operation[NodeStatus]] = Operation("GET", "/status", "node.NodeStatus")
SHOW_STORAGE: Final[Operation[StorageUse]] = Operation("GET", "/storage", "node.StorageUse")
SHOW_LOG: Final[Operation[LogLines]] = Operation("GET", "/log", "node.LogLines")
FOLLOW_NODE: Final[Operation[NodeLists]] = Operation(
    "GET", "/events", "node.NodeLists", defaults={"changes": False}
)
EXPORT_STORE: Final[Operation[ExportResult]] = Operation(
    "POST", "/export", "node.ExportResult", seconds_max=21600
)
SHOW_EXPORT: Final[Operation[ExportView]] = Operation("GET", "/export", "node.ExportView")
MAKE_EXPORT_CODE: Final[Operation[PageCode]] = Operation("POST", "/export/codes", "node.PageCode")
MAKE_PAGE_CODE: Final[Operation[PageCode]] = Operation("POST", "/codes", "node.PageCode")
DRAW_QR: Final[Operation[QrCode]] = Operation("POST", "/qr", "node.QrCode")
DESCRIBE_API: Final[Operation[dict[str, Any]]] = Operation("GET", "/openapi.json")


class NodeCalls(SyncCaller):
    """Methods that wait for the answer."""

    def show_status(self) -> NodeStatus:
        """Show the node at a glance."""
        return self._call(SHOW_STATUS, {})

    def show_storage(self) -> StorageUse:
        """Show what the store takes on the disk, and how it has grown."""
        return self._call(SHOW_STORAGE, {})

    def show_log(self) -> LogLines:
        """Show the latest lines of the daemon's log."""
        return self._call(SHOW_LOG, {})

    def follow_node(self, *, changes: bool = False) -> NodeLists:
        """Show peers and repos, or follow them as they change."""
        return self._call(FOLLOW_NODE, {"changes": changes})

    def watch_node(self, *, changes: bool = False, reconnect: bool = True) -> EventStream:
        """Follow events as they come: `peers`, `repos`, `closing`.

        With `reconnect`, a stream that is cut goes on where it was.
        """
        return self._watch(FOLLOW_NODE, {"changes": changes}, reconnect=reconnect)

    def export_store(self) -> ExportResult:
        """Export what is new. The answer comes when it is written."""
        return self._call(EXPORT_STORE, {})

    def show_export(self) -> ExportView:
        """Show when the export that is there was made, and its size."""
        return self._call(SHOW_EXPORT, {})

    def make_export_code(self) -> PageCode:
        """Make a path at which a browser saves the export as a ZIP file, once."""
        return self._call(MAKE_EXPORT_CODE, {})

    def make_page_code(self) -> PageCode:
        """Make a code by which a web page gets a token of its own, once."""
        return self._call(MAKE_PAGE_CODE, {})

    def draw_qr(self, text: str) -> QrCode:
        """Draw a QR code of a link."""
        return self._call(DRAW_QR, {"text": text})

    def describe_api(self) -> dict[str, Any]:
        """Describe this API: an OpenAPI 3.1 document."""
        return self._call(DESCRIBE_API, {})
