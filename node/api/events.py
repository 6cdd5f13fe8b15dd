"""Endpoints that a client follows: edits of a branch, and what goes on in the node."""

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from node.api.event_streams import CONTENT_TYPE, EventStreams
from node.api.requests import answer_json, read_number
from node.api.service import NodeService
from protocol.limits.users import EDIT_WINDOW_MAX


class EventEndpoints:
    """Answers with a window of JSON or, where the client accepts event streams, with one."""

    def __init__(self, service: NodeService, streams: EventStreams) -> None:
        self._service = service
        self._streams = streams

    async def edits(self, request: Request) -> Response:
        """Edits of a branch, from a cursor on."""
        branch = request.path_params["branch"]
        since = request.query_params.get("since", "")
        positions = read_number(request, "positions", 0, 0, 1) == 1
        if _wants_stream(request):
            resumed = request.headers.get("last-event-id", since)
            return self._streams.open(self._service.edits.follow(branch, resumed, positions=positions))
        limit = read_number(request, "limit", 100, 1, EDIT_WINDOW_MAX)
        return await answer_json(self._service.edits.window(branch, since, limit, positions=positions))

    async def node(self, request: Request) -> Response:
        """Peers and repos, now or as they change."""
        if _wants_stream(request):
            return self._streams.open(self._service.look_on())
        return JSONResponse(await self._service.peers.list_all() | await self._service.list_repos())


def _wants_stream(request: Request) -> bool:
    """A HEAD of a stream would have no end."""
    return request.method == "GET" and CONTENT_TYPE in request.headers.get("accept", "")
