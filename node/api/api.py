"""The local HTTP API: requests to `NodeService` calls, and errors to one JSON form.

Who may call at all is `gate`'s to say; what a body may hold, `bodies`'. docs/reference/api.md lists the endpoints.
"""

from typing import Final

import structlog
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from node.api import bodies
from node.api.documents import DocumentHandlers
from node.api.event_streams import EventStreams
from node.api.events import EventEndpoints
from node.api.files import FileHandlers
from node.api.gate import Gate, error_response
from node.api.members import MemberHandlers
from node.api.meter import Meter
from node.api.qr import draw_qr
from node.api.requests import Handler, answer_json, answer_of, read_body, read_number
from node.api.service import NodeService
from node.api.web_page import OPEN_PATHS, PageCodes, page_routes, read_code
from node.runtime.errors import ServiceError, damaged
from node.runtime.metrics import CONTENT_TYPE
from node.timelines.tangles import TangleQuestion
from protocol.limits.users import TANGLE_WINDOW_MAX
from storage.commits.blocks import DamagedBlock
from storage.engine.database import StorageError

log = structlog.get_logger()

TIMELINE_WINDOW_MAX: Final = 1000
"""Items of one timeline answer."""
_TIMELINE_SIDES: Final = {"canonical": ("after_position", "before_position"), "time": ("after", "before")}
"""By order of a timeline: what a window may be asked for after, or before."""

_TANGLE_PARTS: Final = ("branch", "author", "epoch", "message", "name")


def create_app(service: NodeService, token: str, streams: EventStreams | None = None) -> ASGIApp:
    """The application. Without `token` it serves health and the page's files; its `streams` may be ended."""
    codes = PageCodes(token)

    async def give_token(request: Request) -> Response:
        return JSONResponse({"token": codes.redeem(await read_code(request))})

    endpoints = _Endpoints(service, streams or EventStreams(), codes)
    routes = [
        Route("/healthz", _health),
        Route("/readyz", _mapped(endpoints.readiness)),
        Route("/metrics", _mapped(endpoints.metrics)),
        *page_routes(_mapped(give_token)),
    ]
    for method, path, handler in endpoints.table():
        routes.append(Route(f"/api/v1{path}", _mapped(handler), methods=[method]))
    application = Starlette(routes=routes, exception_handlers={404: _no_such_path, 405: _no_such_path})
    return Gate(Meter(application, service.watching), token, OPEN_PATHS | {"/healthz", "/readyz"})


class _Endpoints:
    """Each handler takes the request apart and calls the service."""

    def __init__(self, service: NodeService, streams: EventStreams, codes: PageCodes) -> None:
        self._service = service
        self._codes = codes
        self._followed = EventEndpoints(service, streams)

    def table(self) -> list[tuple[str, str, Handler]]:
        """(method, path below /api/v1, handler)."""
        service = self._service
        return [
            ("GET", "/log", lambda _: answer_json(service.watching.log())),
            ("GET", "/storage", lambda _: answer_json(service.storage.show())),
            ("GET", "/status", lambda _: answer_json(service.status())),
            ("GET", "/repos", lambda _: answer_json(service.list_repos())),
            # Before what ends in the name of a kind: a repo's name may have slashes.
            ("GET", "/repos/{repo:path}/tangles/{kind}", self._tangle),
            *MemberHandlers(service).table(),
            ("POST", "/repos", self._create_repo),
            ("POST", "/join", self._join),
            ("POST", "/repos/{repo:path}/capability", answer_of("repo", service.capability)),
            ("POST", "/follow", self._follow),
            ("POST", "/repos/{repo:path}/forks", self._fork_repo),
            ("POST", "/branches/{branch:path}/adoptions", self._adopt),
            ("GET", "/repos/{repo:path}/offers", answer_of("repo", service.inbox.list_offers)),
            ("POST", "/repos/{repo:path}/offers/{offer}/answers", self._answer),
            (
                "POST",
                "/repos/{repo:path}/offers/{offer}/merges",
                lambda r: answer_json(service.inbox.merge(r.path_params["repo"], r.path_params["offer"])),
            ),
            ("POST", "/branches/{branch:path}/offers", self._offer),
            ("POST", "/branches/{branch:path}/comments", self._comment),
            ("GET", "/branches/{branch:path}/comments", self._comments),
            ("POST", "/branches/{branch:path}/forks", self._fork),
            ("POST", "/branches/{branch:path}/merges", self._merge),
            ("GET", "/branches/{branch:path}/state", self._state),
            ("POST", "/branches/{branch:path}/capability", answer_of("branch", service.branch_capability)),
            ("POST", "/branches/{branch:path}/renewals", answer_of("branch", service.renewing.renew_branch)),
            ("GET", "/branches/{branch:path}/voids", answer_of("branch", service.list_voids)),
            ("GET", "/branches/{branch:path}/past/{commit}", self._past),
            ("POST", "/branches/{branch:path}/edits", self._edit_branch),
            ("GET", "/repos/{repo:path}/tags", answer_of("repo", service.names.list_tags)),
            ("PUT", "/repos/{repo:path}/tags/{name}", self._set_tag),
            (
                "DELETE",
                "/repos/{repo:path}/tags/{name}",
                lambda r: answer_json(service.names.remove_tag(r.path_params["repo"], r.path_params["name"])),
            ),
            ("GET", "/commits/{commit}", answer_of("commit", service.show)),
            ("GET", "/commits/{commit}/verdict", answer_of("commit", service.why)),
            ("GET", "/repos/{repo:path}/branches", answer_of("repo", service.list_branches)),
            ("POST", "/repos/{repo:path}/branches", self._create_branch),
            ("POST", "/branches/{branch:path}/commits", self._write),
            ("GET", "/branches/{branch:path}/timeline", self._timeline),
            ("GET", "/branches/{branch:path}/edits", self._followed.edits),
            ("GET", "/events", self._followed.node),
            ("POST", "/codes", lambda _: answer_json(self._codes.make())),
            ("POST", "/qr", self._draw_qr),
            ("GET", "/branches/{branch:path}/digest", answer_of("branch", service.timelines.digest)),
            ("GET", "/branches/{branch:path}/feeds", answer_of("branch", service.feeds.check)),
            ("POST", "/export", lambda _: answer_json(service.exports.write())),
            ("GET", "/relay/topics", lambda _: answer_json(service.relaying.list_all())),
            ("PUT", "/relay/topics/{topic}/pin", answer_of("topic", service.relaying.pin)),
            ("DELETE", "/relay/topics/{topic}/pin", answer_of("topic", service.relaying.unpin)),
            ("PUT", "/relay/peers/{peer}", answer_of("peer", service.relaying.allow)),
            ("DELETE", "/relay/peers/{peer}", answer_of("peer", service.relaying.deny)),
            ("GET", "/peers", lambda _: answer_json(service.peers.list_all())),
            ("POST", "/peers", self._add_peer),
            ("DELETE", "/peers/{peer}", answer_of("peer", service.peers.remove)),
            ("PUT", "/peers/{peer}/ban", answer_of("peer", service.peers.ban)),
            ("DELETE", "/peers/{peer}/ban", answer_of("peer", service.peers.unban)),
            *DocumentHandlers(service).table(),
            *FileHandlers(service).table(),
            ("DELETE", "/repos/{repo:path}", answer_of("repo", service.forget_repo)),
        ]

    async def readiness(self, _request: Request) -> Response:
        """200 or 503, and each check by name."""
        is_ready, checks = await self._service.watching.readiness()
        answer = {"status": "ready" if is_ready else "not ready", "checks": checks}
        return JSONResponse(answer, status_code=200 if is_ready else 503)

    async def metrics(self, _request: Request) -> Response:
        """For Prometheus."""
        return Response(await self._service.watching.metrics(), media_type=CONTENT_TYPE)

    async def _draw_qr(self, request: Request) -> Response:
        return JSONResponse(draw_qr((await read_body(request, bodies.Qr)).text))

    async def _create_repo(self, request: Request) -> Response:
        body = await read_body(request, bodies.Named)
        return await answer_json(self._service.create_repo(body.name))

    async def _join(self, request: Request) -> Response:
        body = await read_body(request, bodies.Join)
        return await answer_json(self._service.join(body.invitation))

    async def _follow(self, request: Request) -> Response:
        body = await read_body(request, bodies.Follow)
        return await answer_json(self._service.follow(body.capability))

    async def _fork_repo(self, request: Request) -> Response:
        body = await read_body(request, bodies.Named)
        return await answer_json(self._service.fork_repo(request.path_params["repo"], body.name))

    async def _adopt(self, request: Request) -> Response:
        body = await read_body(request, bodies.Adoption)
        return await answer_json(self._service.members.adopt(request.path_params["branch"], body.commits))

    async def _create_branch(self, request: Request) -> Response:
        body = await read_body(request, bodies.Named)
        return await answer_json(self._service.create_branch(request.path_params["repo"], body.name))

    async def _answer(self, request: Request) -> Response:
        body = await read_body(request, bodies.Answer)
        params = request.path_params
        return await answer_json(
            self._service.inbox.answer(params["repo"], params["offer"], accepts=body.accepts)
        )

    async def _offer(self, request: Request) -> Response:
        body = await read_body(request, bodies.Offer)
        target = request.path_params["branch"]
        return await answer_json(self._service.inbox.offer(body.source, target, body.note, pulls=body.pulls))

    async def _comment(self, request: Request) -> Response:
        body = await read_body(request, bodies.Write)
        return await answer_json(self._service.inbox.comment(request.path_params["branch"], body.text))

    async def _comments(self, request: Request) -> Response:
        limit = read_number(request, "limit", 100, 1, TIMELINE_WINDOW_MAX)
        return await answer_json(self._service.inbox.comments(request.path_params["branch"], limit))

    async def _fork(self, request: Request) -> Response:
        body = await read_body(request, bodies.Fork)
        return await answer_json(
            self._service.fork_branch(request.path_params["branch"], body.name, body.commit)
        )

    async def _merge(self, request: Request) -> Response:
        body = await read_body(request, bodies.Merge)
        return await answer_json(self._service.merging.merge(body.source, request.path_params["branch"]))

    async def _state(self, request: Request) -> Response:
        limit = read_number(request, "limit", 100, 1, TIMELINE_WINDOW_MAX)
        return await answer_json(self._service.merging.state(request.path_params["branch"], limit))

    async def _write(self, request: Request) -> Response:
        body = await read_body(request, bodies.Write)
        return await answer_json(self._service.write(request.path_params["branch"], body.text))

    async def _timeline(self, request: Request) -> Response:
        branch, query = request.path_params["branch"], request.query_params
        limit = read_number(request, "limit", 100, 1, TIMELINE_WINDOW_MAX)
        order = query.get("order", "canonical")
        given = {name for sides in _TIMELINE_SIDES.values() for name in sides if name in query}
        if order not in _TIMELINE_SIDES or len(given) > 1 or not given.issubset(_TIMELINE_SIDES[order]):
            raise ServiceError(
                "bad_request",
                "a timeline is asked for after or before a position, or with order=time after or before a commit",
                "give one of after_position and before_position, or order=time and one of after and before",
            )
        timelines = self._service.timelines
        if order == "time":
            after, before = query.get("after", ""), query.get("before", "")
            return await answer_json(timelines.window_by_time(branch, after, before, limit))
        if "before_position" in query:
            end = read_number(request, "before_position", 0, 0, 2**53)
            return await answer_json(timelines.window_before(branch, end, limit))
        start = read_number(request, "after_position", -1, -1, 2**53)
        return await answer_json(timelines.window(branch, start, limit))

    async def _edit_branch(self, request: Request) -> Response:
        body = await read_body(request, bodies.BranchEdit)
        branch = request.path_params["branch"]
        return await answer_json(self._service.names.edit_branch(branch, body.name, archived=body.archived))

    async def _set_tag(self, request: Request) -> Response:
        body = await read_body(request, bodies.Tag)
        params = request.path_params
        return await answer_json(self._service.names.set_tag(params["repo"], params["name"], body.commit))

    async def _past(self, request: Request) -> Response:
        limit = read_number(request, "limit", 100, 1, TIMELINE_WINDOW_MAX)
        params = request.path_params
        return await answer_json(self._service.past(params["branch"], params["commit"], limit))

    async def _tangle(self, request: Request) -> Response:
        limit = read_number(request, "limit", 100, 1, TANGLE_WINDOW_MAX)
        named = {key: request.query_params[key] for key in _TANGLE_PARTS if key in request.query_params}
        question = TangleQuestion(request.path_params["kind"], limit, **named)
        return await answer_json(self._service.tangle(request.path_params["repo"], question))

    async def _add_peer(self, request: Request) -> Response:
        body = await read_body(request, bodies.Peer)
        return await answer_json(self._service.peers.add(body.address, body.peer, relay=body.relay))


def _mapped(handler: Handler) -> Handler:
    async def run(request: Request) -> Response:
        try:
            return await handler(request)
        except ServiceError as error:
            return error_response(error)
        except ClientDisconnect:
            log.info("client left", path=request.url.path)
            return Response()
        except DamagedBlock as error:
            log.error("damaged", path=request.url.path, error=str(error))
            return error_response(damaged(error))
        except StorageError as error:
            log.error("storage failed", path=request.url.path, error=str(error))
            return error_response(
                ServiceError("storage_failed", str(error), "check the disk; `ravel status` tells more")
            )
        except Exception:  # the API's last border: a defect answers 500 without details, and is logged whole
            log.exception("request failed", path=request.url.path)
            return error_response(
                ServiceError("internal", "a defect in Ravel", "the daemon's log has the details")
            )

    return run


async def _health(_request: Request) -> Response:
    return JSONResponse({"status": "ok"})


async def _no_such_path(_request: Request, _error_: Exception) -> Response:
    return error_response(ServiceError("not_found", "no such endpoint", "docs/reference/api.md lists them"))
