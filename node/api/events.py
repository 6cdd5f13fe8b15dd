"""HTTP endpoints with live events: edits of a branch, and the state of the node."""

from starlette.requests import Request
from starlette.responses import Response

from node.api.event_streams import CONTENT_TYPE, EventStreams
from node.api.requests import answer_json, read_query
from node.api.service import NodeService
from node.contract.timelines import FOLLOW_EDITS


class EventEndpoints:
    """Answers with a window of JSON or, where the client accepts event streams, with one."""

    def __init__(self, service: NodeService, streams: EventStreams) -> None:
        self._service = service
        self._streams = streams

    async def edits(self, request: Request) -> Response:
        """Edits of a branch, from a cursor on."""
        branch = request.path_params["branch"]
        query = read_query(request, FOLLOW_EDITS.query)
        since, positions = query["since"], query["positions"]
        if _wants_stream(request):
            resumed = request.headers.get("last-event-id", since)
            return self._streams.open(self._service.edits.follow(branch, resumed, positions=positions))
        window = self._service.edits.window(branch, since, query["limit"], positions=positions)
        return await answer_json(window)

    async def node(self, request: Request) -> Response:
        """Peers and repos, now or as they change."""
        if _wants_stream(request):
            return self._streams.open(self._service.look_on())
        return await answer_json(self._service.list_all())


def _wants_stream(request: Request) -> bool:
    """A HEAD of a stream would have no end."""
    return request.method == "GET" and CONTENT_TYPE in request.headers.get("accept", "")
