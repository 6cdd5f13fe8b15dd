"""HTTP endpoints with live events: edits, the text and JSON documents of a branch, and the state of the node."""

from collections.abc import Callable, Sequence
from functools import partial

from starlette.requests import Request
from starlette.responses import Response

from node.api.access import Access, keep_readable
from node.api.callers import Caller, caller_of
from node.api.event_streams import CONTENT_TYPE, EventStreams
from node.api.requests import answer_json, encode_in_pieces, read_json, read_query
from node.api.services import Services
from node.content.branch_queries import check_count
from node.contract.document_queries import FOLLOW_JSON_ANYWHERE, FOLLOW_JSON_DOCUMENTS
from node.contract.documents import FOLLOW_TEXT, PresenceRequest
from node.contract.json_documents import FOLLOW_JSON
from node.contract.node import FOLLOW_NODE
from node.contract.timelines import FOLLOW_EDITS
from node.runtime.errors import ServiceError
from storage.repos.repos import Branch


class EventEndpoints:
    """Answers with a window of JSON or, where the client accepts event streams, with one."""

    def __init__(self, services: Services, streams: EventStreams, access: Access) -> None:
        self._branches = services.branches
        self._node = services.node
        self._targets = services.targets
        self._streams = streams
        self._access = access

    async def edits(self, request: Request) -> Response:
        """Edits of a branch, from a cursor on."""
        branch, query = request.path_params["branch"], read_query(request, FOLLOW_EDITS.query)
        since, positions = query["since"], query["positions"]
        if _wants_stream(request):
            resumed = request.headers.get("last-event-id", since)
            source = self._branches.edits.follow(self._named(request), resumed, positions=positions)
            return self._streams.open(self._access.follow(source, caller_of(request)))
        window = self._branches.edits.window(branch, since, query["limit"], positions=positions)
        return await answer_json(window)

    async def text(self, request: Request) -> Response:
        """Answer with the updates of a text that an editor lacks, and with the other users who have it open."""
        branch = request.path_params["branch"]
        query = read_query(request, FOLLOW_TEXT.query)
        if _wants_stream(request):
            source = self._branches.live_texts.follow(branch, **query)
            return self._streams.open(self._access.follow(source, caller_of(request)))
        return await answer_json(self._branches.live_texts.show(branch, **query))

    async def json(self, request: Request) -> Response:
        """Answer with a JSON document, now or whenever it has changed."""
        branch, query = request.path_params["branch"], read_query(request, FOLLOW_JSON.query)
        if _wants_stream(request):
            source = self._branches.live_json.follow(
                self._named(request), query["name"], request.headers.get("last-event-id", "")
            )
            return self._streams.open(self._access.follow(source, caller_of(request)))
        return await answer_json(self._branches.json_documents.show(branch, **query))

    async def documents(self, request: Request) -> Response:
        """Answer with the JSON documents that a query finds, or with changes of this result."""
        branch, query = request.path_params["branch"], read_query(request, FOLLOW_JSON_DOCUMENTS.query)
        if _wants_stream(request):
            del query["cursor"]
            last = request.headers.get("last-event-id", "")
            source = self._branches.live_json.follow_query(self._named(request), **query, cursor=last)
            return self._streams.open(self._access.follow(source, caller_of(request)))
        return await answer_json(self._branches.document_queries.find(branch, **query))

    async def documents_anywhere(self, request: Request) -> Response:
        """Answer as `documents`, of several branches that the caller may read."""
        caller, query = caller_of(request), read_query(request, FOLLOW_JSON_ANYWHERE.query)
        named, repo = [one for one in query.pop("branches").split(",") if one], query.pop("repo")
        find = partial(self._find_branches, caller, repo, named)
        found = await self._access.run_blocking(find)
        opens = bool(named)  # who asks for all fetches nothing that this node does not keep
        if _wants_stream(request):
            del query["cursor"]
            last = request.headers.get("last-event-id", "")
            find_again = partial(_or_as_before, find, found) if named else find
            source = self._branches.live_json.follow_anywhere(find_again, **query, cursor=last, opens=opens)
            return self._streams.open(self._access.follow(source, caller))
        ids = [self._targets.name(branch) for branch in found]
        return await answer_json(self._branches.branch_queries.find(ids, **query, opens=opens))

    def _named(self, request: Request) -> Callable[[], Branch]:
        """Return what finds the branch that a request names: `main` can come to mean another one while a stream lasts."""
        return partial(self._targets.branch, request.state.branch, caller_of(request))

    def _find_branches(self, caller: Caller, repo: str, named: Sequence[str]) -> list[Branch]:
        """Return branches by their names, or without any all of them, each once, in the order of their ids.

        Raises ServiceError `not_found`, `ambiguous`, `too_large` for more than a query has.
        """
        listed = (branch for name in named or [""] for branch in self._targets.branches(caller, repo, name))
        found = {branch.num: branch for branch in listed}
        check_count(len(found))
        return sorted(found.values(), key=self._targets.name)

    async def presence(self, request: Request) -> Response:
        """State where an editor is. It comes five times a second, so no answer is kept for a repetition."""
        said = await read_json(request, PresenceRequest)
        return await answer_json(self._branches.live_texts.tell(request.path_params["branch"], said))

    async def node(self, request: Request) -> Response:
        """Peers and repos, now or as they change: those that the caller may see."""
        caller = caller_of(request)
        query = read_query(request, FOLLOW_NODE.query)
        if _wants_stream(request):
            source = self._node.follow(request.headers.get("last-event-id", ""), **query)
            return self._streams.open(self._access.follow(source, caller))
        encoded = await encode_in_pieces(keep_readable(caller, await self._node.list_all()))
        return Response(encoded, media_type="application/json")


def _or_as_before(find: Callable[[], list[Branch]], found: list[Branch]) -> list[Branch]:
    """Return the branches that names mean now, or those found before where a name has become unclear."""
    try:
        return find()
    except ServiceError:
        return found


def _wants_stream(request: Request) -> bool:
    """Return True if the client accepts a stream. A HEAD of a stream would have no end."""
    return request.method == "GET" and CONTENT_TYPE in request.headers.get("accept", "")
