"""Calls: node. Made from the table of endpoints by `make reference`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ravel.callers import AsyncCaller, SyncCaller
from ravel.operations import Operation

if TYPE_CHECKING:  # a command calls one or two, and imports their types
    from ravel.event_streams import AsyncEventStream, EventStream
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

SHOW_STATUS: Final[Operation[NodeStatus]] = Operation(
    name="show_status", method="GET", path="/status", answer="node.NodeStatus"
)
SHOW_STORAGE: Final[Operation[StorageUse]] = Operation(
    name="show_storage", method="GET", path="/storage", answer="node.StorageUse"
)
SHOW_LOG: Final[Operation[LogLines]] = Operation(
    name="show_log", method="GET", path="/log", answer="node.LogLines"
)
FOLLOW_NODE: Final[Operation[NodeLists]] = Operation(
    name="follow_node",
    method="GET",
    path="/events",
    answer="node.NodeLists",
    query=("changes",),
    defaults={"changes": False},
)
EXPORT_STORE: Final[Operation[ExportResult]] = Operation(
    name="export_store", method="POST", path="/export", answer="node.ExportResult", seconds_max=21600
)
SHOW_EXPORT: Final[Operation[ExportView]] = Operation(
    name="show_export", method="GET", path="/export", answer="node.ExportView"
)
MAKE_EXPORT_CODE: Final[Operation[PageCode]] = Operation(
    name="make_export_code", method="POST", path="/export/codes", answer="node.PageCode"
)
MAKE_PAGE_CODE: Final[Operation[PageCode]] = Operation(
    name="make_page_code", method="POST", path="/codes", answer="node.PageCode"
)
DRAW_QR: Final[Operation[QrCode]] = Operation(
    name="draw_qr", method="POST", path="/qr", answer="node.QrCode", body=("text",)
)
DESCRIBE_API: Final[Operation[dict[str, Any]]] = Operation(
    name="describe_api", method="GET", path="/openapi.json"
)


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


class AsyncNodeCalls(AsyncCaller):
    """Methods to await."""

    async def show_status(self) -> NodeStatus:
        """Show the node at a glance."""
        return await self._call(SHOW_STATUS, {})

    async def show_storage(self) -> StorageUse:
        """Show what the store takes on the disk, and how it has grown."""
        return await self._call(SHOW_STORAGE, {})

    async def show_log(self) -> LogLines:
        """Show the latest lines of the daemon's log."""
        return await self._call(SHOW_LOG, {})

    async def follow_node(self, *, changes: bool = False) -> NodeLists:
        """Show peers and repos, or follow them as they change."""
        return await self._call(FOLLOW_NODE, {"changes": changes})

    def watch_node(self, *, changes: bool = False, reconnect: bool = True) -> AsyncEventStream:
        """Follow events as they come: `peers`, `repos`, `closing`.

        With `reconnect`, a stream that is cut goes on where it was.
        """
        return self._watch(FOLLOW_NODE, {"changes": changes}, reconnect=reconnect)

    async def export_store(self) -> ExportResult:
        """Export what is new. The answer comes when it is written."""
        return await self._call(EXPORT_STORE, {})

    async def show_export(self) -> ExportView:
        """Show when the export that is there was made, and its size."""
        return await self._call(SHOW_EXPORT, {})

    async def make_export_code(self) -> PageCode:
        """Make a path at which a browser saves the export as a ZIP file, once."""
        return await self._call(MAKE_EXPORT_CODE, {})

    async def make_page_code(self) -> PageCode:
        """Make a code by which a web page gets a token of its own, once."""
        return await self._call(MAKE_PAGE_CODE, {})

    async def draw_qr(self, text: str) -> QrCode:
        """Draw a QR code of a link."""
        return await self._call(DRAW_QR, {"text": text})

    async def describe_api(self) -> dict[str, Any]:
        """Describe this API: an OpenAPI 3.1 document."""
        return await self._call(DESCRIBE_API, {})
