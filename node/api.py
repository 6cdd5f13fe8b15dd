"""The local HTTP API: requests to `NodeService` calls, and errors to one JSON form.

Who may call at all is `api_gate`'s to say; what a body may hold, `api_bodies`'. docs/api.md lists the endpoints.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

import msgspec
import structlog
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from node import api_bodies as bodies
from node.api_documents import DocumentHandlers
from node.api_events import EventEndpoints
from node.api_gate import Gate, error_response
from node.api_meter import Meter
from node.api_requests import answer_json, read_body, read_chunks, read_number
from node.downloads import file_response
from node.errors import ServiceError
from node.event_streams import EventStreams
from node.metrics import CONTENT_TYPE
from node.service import NodeService
from node.web_page import OPEN_PATHS, PageCodes, page_routes, read_code
from protocol.limits import (
    FILE_WINDOW_MAX,
    IMPORTED_WINDOW_MAX,
    TANGLE_WINDOW_MAX,
)
from storage.database import StorageError

log = structlog.get_logger()

TIMELINE_WINDOW_MAX: Final = 1000
"""Items of one timeline answer."""

T = TypeVar("T")
Handler = Callable[[Request], Awaitable[Response]]


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
        service, documents = self._service, DocumentHandlers(self._service)
        return [
            ("GET", "/log", lambda _: answer_json(service.watching.log())),
            ("GET", "/status", lambda _: answer_json(service.status())),
            ("GET", "/repos", lambda _: answer_json(service.list_repos())),
            # Before what ends in the name of a kind: a repo's name may have slashes.
            ("GET", "/repos/{repo:path}/tangles/{kind}", self._tangle),
            ("POST", "/repos", self._create_repo),
            ("POST", "/repos/{repo:path}/invitations", self._invite),
            ("POST", "/join", self._join),
            ("POST", "/repos/{repo:path}/capability", _of("repo", service.capability)),
            ("POST", "/follow", self._follow),
            ("GET", "/repos/{repo:path}/members", _of("repo", service.members.list_all)),
            ("POST", "/repos/{repo:path}/members", self._grant),
            ("POST", "/repos/{repo:path}/removals", self._remove),
            ("POST", "/repos/{repo:path}/leave", self._leave),
            ("GET", "/repos/{repo:path}/epochs", _of("repo", service.renewing.list_epochs)),
            ("POST", "/repos/{repo:path}/epochs", _of("repo", service.renewing.renew)),
            ("POST", "/repos/{repo:path}/rekeys", self._rekey),
            ("POST", "/repos/{repo:path}/forks", self._fork_repo),
            ("GET", "/repos/{repo:path}/invitations", _of("repo", service.members.invitations)),
            ("DELETE", "/repos/{repo:path}/invitations/{invitation}", self._revoke_invitation),
            ("GET", "/repos/{repo:path}/quorum", _of("repo", service.quorums.show)),
            ("PUT", "/repos/{repo:path}/quorum", self._set_quorum),
            ("POST", "/repos/{repo:path}/proposals", self._propose_removal),
            (
                "POST",
                "/repos/{repo:path}/proposals/{proposal}/approvals",
                lambda r: answer_json(
                    service.quorums.approve(r.path_params["repo"], r.path_params["proposal"])
                ),
            ),
            (
                "POST",
                "/repos/{repo:path}/proposals/{proposal}/checkpoint",
                lambda r: answer_json(
                    service.quorums.finish(r.path_params["repo"], r.path_params["proposal"])
                ),
            ),
            ("POST", "/branches/{branch:path}/proposals", _of("branch", service.quorums.propose_checkpoint)),
            ("POST", "/branches/{branch:path}/adoptions", self._adopt),
            ("GET", "/repos/{repo:path}/offers", _of("repo", service.inbox.list_offers)),
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
            ("POST", "/branches/{branch:path}/capability", _of("branch", service.branch_capability)),
            ("POST", "/branches/{branch:path}/renewals", _of("branch", service.renewing.renew_branch)),
            ("GET", "/branches/{branch:path}/voids", _of("branch", service.list_voids)),
            ("GET", "/branches/{branch:path}/past/{commit}", self._past),
            ("POST", "/branches/{branch:path}/edits", self._edit_branch),
            ("GET", "/repos/{repo:path}/tags", _of("repo", service.names.list_tags)),
            ("PUT", "/repos/{repo:path}/tags/{name}", self._set_tag),
            (
                "DELETE",
                "/repos/{repo:path}/tags/{name}",
                lambda r: answer_json(service.names.remove_tag(r.path_params["repo"], r.path_params["name"])),
            ),
            ("GET", "/commits/{commit}", _of("commit", service.show)),
            ("GET", "/commits/{commit}/verdict", _of("commit", service.why)),
            ("GET", "/repos/{repo:path}/branches", _of("repo", service.list_branches)),
            ("POST", "/repos/{repo:path}/branches", self._create_branch),
            ("POST", "/branches/{branch:path}/commits", self._write),
            ("GET", "/branches/{branch:path}/timeline", self._timeline),
            ("GET", "/branches/{branch:path}/edits", self._followed.edits),
            ("GET", "/events", self._followed.node),
            ("POST", "/codes", lambda _: answer_json(self._codes.make())),
            ("GET", "/branches/{branch:path}/digest", _of("branch", service.digest)),
            ("GET", "/branches/{branch:path}/feeds", _of("branch", service.feeds.check)),
            ("POST", "/branches/{branch:path}/import", self._import),
            ("GET", "/branches/{branch:path}/imported", self._imported),
            ("GET", "/branches/{branch:path}/set", documents.show_set),
            ("POST", "/branches/{branch:path}/set", documents.edit_set),
            ("GET", "/branches/{branch:path}/dict", documents.show_dict),
            ("GET", "/branches/{branch:path}/dict/entry", documents.show_entry),
            ("POST", "/branches/{branch:path}/dict", documents.edit_dict),
            ("GET", "/branches/{branch:path}/text", documents.pull_text),
            ("POST", "/branches/{branch:path}/text", documents.push_text),
            ("GET", "/branches/{branch:path}/files", self._list_files),
            ("POST", "/branches/{branch:path}/files", self._add_file),
            ("GET", "/branches/{branch:path}/files/{file}", self._get_file),
            ("DELETE", "/branches/{branch:path}/files/{file}", self._remove_file),
            ("POST", "/export", lambda _: answer_json(service.export())),
            ("GET", "/relay/topics", lambda _: answer_json(service.relaying.list_all())),
            ("PUT", "/relay/topics/{topic}/pin", _of("topic", service.relaying.pin)),
            ("DELETE", "/relay/topics/{topic}/pin", _of("topic", service.relaying.unpin)),
            ("GET", "/peers", lambda _: answer_json(service.peers.list_all())),
            ("POST", "/peers", self._add_peer),
            ("DELETE", "/peers/{peer}", _of("peer", service.peers.remove)),
            ("PUT", "/peers/{peer}/ban", _of("peer", service.peers.ban)),
            ("DELETE", "/peers/{peer}/ban", _of("peer", service.peers.unban)),
            ("DELETE", "/repos/{repo:path}", _of("repo", service.forget_repo)),
        ]

    async def readiness(self, _request: Request) -> Response:
        """200 or 503, and each check by name."""
        is_ready, checks = await self._service.watching.readiness()
        answer = {"status": "ready" if is_ready else "not ready", "checks": checks}
        return JSONResponse(answer, status_code=200 if is_ready else 503)

    async def metrics(self, _request: Request) -> Response:
        """For Prometheus."""
        return Response(await self._service.watching.metrics(), media_type=CONTENT_TYPE)

    async def _create_repo(self, request: Request) -> Response:
        body = await read_body(request, bodies.Named)
        return await answer_json(self._service.create_repo(body.name))

    async def _invite(self, request: Request) -> Response:
        body = await read_body(request, bodies.Invitation)
        return await answer_json(
            self._service.invite(
                request.path_params["repo"], body.permission, body.expires_seconds, body.uses
            )
        )

    async def _join(self, request: Request) -> Response:
        body = await read_body(request, bodies.Join)
        return await answer_json(self._service.join(body.invitation))

    async def _follow(self, request: Request) -> Response:
        body = await read_body(request, bodies.Follow)
        return await answer_json(self._service.follow(body.capability))

    async def _grant(self, request: Request) -> Response:
        body = await read_body(request, bodies.Grant)
        return await answer_json(
            self._service.members.grant(request.path_params["repo"], body.user, body.permission)
        )

    async def _remove(self, request: Request) -> Response:
        body = await read_body(request, bodies.Removal)
        return await answer_json(
            self._service.members.remove(request.path_params["repo"], body.user, body.keeps)
        )

    async def _leave(self, request: Request) -> Response:
        body = await read_body(request, bodies.Leave)
        return await answer_json(self._service.members.leave(request.path_params["repo"], force=body.force))

    async def _set_quorum(self, request: Request) -> Response:
        body = await read_body(request, bodies.Quorum)
        repo = request.path_params["repo"]
        return await answer_json(
            self._service.quorums.name(repo, body.signers, body.threshold, removals=body.removals)
        )

    async def _propose_removal(self, request: Request) -> Response:
        body = await read_body(request, bodies.Removal)
        repo = request.path_params["repo"]
        return await answer_json(self._service.quorums.propose_removal(repo, body.user, body.keeps))

    async def _fork_repo(self, request: Request) -> Response:
        body = await read_body(request, bodies.Named)
        return await answer_json(self._service.fork_repo(request.path_params["repo"], body.name))

    async def _rekey(self, request: Request) -> Response:
        body = await read_body(request, bodies.Rekey)
        return await answer_json(self._service.renewing.rekey(request.path_params["repo"], body.user))

    async def _revoke_invitation(self, request: Request) -> Response:
        params = request.path_params
        return await answer_json(
            self._service.members.revoke_invitation(params["repo"], params["invitation"])
        )

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
        after = read_number(request, "after_position", -1, -1, 2**53)
        limit = read_number(request, "limit", 100, 1, TIMELINE_WINDOW_MAX)
        return await answer_json(self._service.timeline(request.path_params["branch"], after, limit))

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
        branch = request.query_params.get("branch", "main")
        author = request.query_params.get("author", "")
        epoch = request.query_params.get("epoch", "")
        params = request.path_params
        return await answer_json(
            self._service.tangle(params["repo"], params["kind"], branch, author, epoch, limit)
        )

    async def _import(self, request: Request) -> Response:
        body = await read_body(request, bodies.Import)
        items = [msgspec.structs.asdict(item) for item in body.items]
        return await answer_json(self._service.imports.add(request.path_params["branch"], items, body.source))

    async def _imported(self, request: Request) -> Response:
        after = read_number(request, "after", 0, 0, 2**53)
        limit = read_number(request, "limit", 1000, 1, IMPORTED_WINDOW_MAX)
        source = request.query_params.get("source", "")
        return await answer_json(
            self._service.imports.window(request.path_params["branch"], source, after, limit)
        )

    async def _list_files(self, request: Request) -> Response:
        after = read_number(request, "after", 0, 0, 2**53)
        limit = read_number(request, "limit", 100, 1, FILE_WINDOW_MAX)
        return await answer_json(self._service.files.window(request.path_params["branch"], after, limit))

    async def _add_file(self, request: Request) -> Response:
        name = request.query_params.get("name", "")
        return await answer_json(
            self._service.files.add(request.path_params["branch"], name, read_chunks(request))
        )

    async def _get_file(self, request: Request) -> Response:
        file = await self._service.files.open(request.path_params["branch"], request.path_params["file"])
        return file_response(request.headers, file, self._service.files.read)

    async def _remove_file(self, request: Request) -> Response:
        params = request.path_params
        return await answer_json(self._service.files.remove(params["branch"], params["file"]))

    async def _add_peer(self, request: Request) -> Response:
        body = await read_body(request, bodies.Peer)
        return await answer_json(self._service.peers.add(body.address, body.peer, relay=body.relay))


def _of(parameter: str, method: Callable[[str], Awaitable[dict[str, Any]]]) -> Handler:
    """Answers with what a method says of the part of the path that is called so."""
    return lambda request: answer_json(method(request.path_params[parameter]))


def _mapped(handler: Handler) -> Handler:
    async def run(request: Request) -> Response:
        try:
            return await handler(request)
        except ServiceError as error:
            return error_response(error)
        except ClientDisconnect:
            log.info("client left", path=request.url.path)
            return Response()
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
    return error_response(ServiceError("not_found", "no such endpoint", "docs/api.md lists them"))
