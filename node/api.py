"""The local HTTP API: requests to `NodeService` calls, and errors to one JSON form.

Who may call at all is `api_gate`'s to say; what a body may hold, `api_bodies`'. docs/api.md lists the endpoints.
"""

import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Any, Final, TypeVar

import msgspec
import structlog
import trio
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from node import api_bodies as bodies
from node.api_gate import Gate, error_response
from node.downloads import file_response
from node.errors import ServiceError
from node.service import NodeService
from protocol.codec import DecodeError
from protocol.limits import (
    FILE_WINDOW_MAX,
    MIB,
    TANGLE_WINDOW_MAX,
)
from storage.database import StorageError

log = structlog.get_logger()

REQUEST_SIZE_MAX: Final = 8 * MIB
"""Bytes of a request's body: an import batch of the largest legal texts is cut smaller by its sender."""
BODY_WAIT_SECONDS: Final = 30
"""Longest pause in a request's body."""
TIMELINE_WINDOW_MAX: Final = 1000
"""Items of one timeline answer."""

T = TypeVar("T")
Handler = Callable[[Request], Awaitable[Response]]


def create_app(service: NodeService, token: str) -> ASGIApp:
    """The application. It serves nothing but `/healthz` to who does not send `token`."""
    endpoints = _Endpoints(service)
    routes = [Route("/healthz", _health)]
    for method, path, handler in endpoints.table():
        routes.append(Route(f"/api/v1{path}", _mapped(handler), methods=[method]))
    application = Starlette(routes=routes, exception_handlers={404: _no_such_path, 405: _no_such_path})
    return Gate(application, token)


class _Endpoints:
    """Each handler takes the request apart and calls the service."""

    def __init__(self, service: NodeService) -> None:
        self._service = service

    def table(self) -> list[tuple[str, str, Handler]]:
        """(method, path below /api/v1, handler)."""
        service = self._service
        return [
            ("GET", "/status", lambda _: _json(service.status())),
            ("GET", "/repos", lambda _: _json(service.list_repos())),
            # Before what ends in the name of a kind: a repo's name may have slashes.
            ("GET", "/repos/{repo:path}/tangles/{kind}", self._tangle),
            ("POST", "/repos", self._create_repo),
            ("POST", "/repos/{repo:path}/invitations", self._invite),
            ("POST", "/join", self._join),
            (
                "POST",
                "/repos/{repo:path}/capability",
                lambda r: _json(service.capability(r.path_params["repo"])),
            ),
            ("POST", "/follow", self._follow),
            (
                "GET",
                "/repos/{repo:path}/members",
                lambda r: _json(service.members.list_all(r.path_params["repo"])),
            ),
            ("POST", "/repos/{repo:path}/members", self._grant),
            ("POST", "/repos/{repo:path}/removals", self._remove),
            ("POST", "/repos/{repo:path}/leave", self._leave),
            (
                "GET",
                "/repos/{repo:path}/epochs",
                lambda r: _json(service.renewing.list_epochs(r.path_params["repo"])),
            ),
            (
                "POST",
                "/repos/{repo:path}/epochs",
                lambda r: _json(service.renewing.renew(r.path_params["repo"])),
            ),
            ("POST", "/repos/{repo:path}/rekeys", self._rekey),
            ("POST", "/repos/{repo:path}/forks", self._fork_repo),
            (
                "GET",
                "/repos/{repo:path}/invitations",
                lambda r: _json(service.members.invitations(r.path_params["repo"])),
            ),
            ("DELETE", "/repos/{repo:path}/invitations/{invitation}", self._revoke_invitation),
            ("POST", "/branches/{branch:path}/adoptions", self._adopt),
            (
                "GET",
                "/repos/{repo:path}/offers",
                lambda r: _json(service.inbox.list_offers(r.path_params["repo"])),
            ),
            ("POST", "/repos/{repo:path}/offers/{offer}/answers", self._answer),
            (
                "POST",
                "/repos/{repo:path}/offers/{offer}/merges",
                lambda r: _json(service.inbox.merge(r.path_params["repo"], r.path_params["offer"])),
            ),
            ("POST", "/branches/{branch:path}/offers", self._offer),
            ("POST", "/branches/{branch:path}/comments", self._comment),
            ("GET", "/branches/{branch:path}/comments", self._comments),
            ("POST", "/branches/{branch:path}/forks", self._fork),
            ("POST", "/branches/{branch:path}/merges", self._merge),
            ("GET", "/branches/{branch:path}/state", self._state),
            (
                "POST",
                "/branches/{branch:path}/capability",
                lambda r: _json(service.branch_capability(r.path_params["branch"])),
            ),
            (
                "POST",
                "/branches/{branch:path}/renewals",
                lambda r: _json(service.renewing.renew_branch(r.path_params["branch"])),
            ),
            (
                "GET",
                "/branches/{branch:path}/voids",
                lambda r: _json(service.list_voids(r.path_params["branch"])),
            ),
            ("GET", "/branches/{branch:path}/past/{commit}", self._past),
            ("POST", "/branches/{branch:path}/edits", self._edit_branch),
            (
                "GET",
                "/repos/{repo:path}/tags",
                lambda r: _json(service.names.list_tags(r.path_params["repo"])),
            ),
            ("PUT", "/repos/{repo:path}/tags/{name}", self._set_tag),
            (
                "DELETE",
                "/repos/{repo:path}/tags/{name}",
                lambda r: _json(service.names.remove_tag(r.path_params["repo"], r.path_params["name"])),
            ),
            ("GET", "/commits/{commit}", lambda r: _json(service.show(r.path_params["commit"]))),
            ("GET", "/commits/{commit}/verdict", lambda r: _json(service.why(r.path_params["commit"]))),
            (
                "GET",
                "/repos/{repo:path}/branches",
                lambda r: _json(service.list_branches(r.path_params["repo"])),
            ),
            ("POST", "/repos/{repo:path}/branches", self._create_branch),
            ("POST", "/branches/{branch:path}/commits", self._write),
            ("GET", "/branches/{branch:path}/timeline", self._timeline),
            (
                "GET",
                "/branches/{branch:path}/digest",
                lambda r: _json(service.digest(r.path_params["branch"])),
            ),
            (
                "GET",
                "/branches/{branch:path}/feeds",
                lambda r: _json(service.feeds.check(r.path_params["branch"])),
            ),
            ("POST", "/branches/{branch:path}/import", self._import),
            ("GET", "/branches/{branch:path}/files", self._list_files),
            ("POST", "/branches/{branch:path}/files", self._add_file),
            ("GET", "/branches/{branch:path}/files/{file}", self._get_file),
            ("DELETE", "/branches/{branch:path}/files/{file}", self._remove_file),
            ("POST", "/export", lambda _: _json(service.export())),
            ("GET", "/peers", lambda _: _json(service.peers.list_all())),
            ("POST", "/peers", self._add_peer),
            ("DELETE", "/peers/{peer}", lambda r: _json(service.peers.remove(r.path_params["peer"]))),
            ("DELETE", "/repos/{repo:path}", lambda r: _json(service.forget_repo(r.path_params["repo"]))),
        ]

    async def _create_repo(self, request: Request) -> Response:
        body = await _body(request, bodies.Named)
        return await _json(self._service.create_repo(body.name))

    async def _invite(self, request: Request) -> Response:
        body = await _body(request, bodies.Invitation)
        return await _json(
            self._service.invite(
                request.path_params["repo"], body.permission, body.expires_seconds, body.uses
            )
        )

    async def _join(self, request: Request) -> Response:
        body = await _body(request, bodies.Join)
        return await _json(self._service.join(body.invitation))

    async def _follow(self, request: Request) -> Response:
        body = await _body(request, bodies.Follow)
        return await _json(self._service.follow(body.capability))

    async def _grant(self, request: Request) -> Response:
        body = await _body(request, bodies.Grant)
        return await _json(
            self._service.members.grant(request.path_params["repo"], body.user, body.permission)
        )

    async def _remove(self, request: Request) -> Response:
        body = await _body(request, bodies.Removal)
        return await _json(self._service.members.remove(request.path_params["repo"], body.user, body.keeps))

    async def _leave(self, request: Request) -> Response:
        body = await _body(request, bodies.Leave)
        return await _json(self._service.members.leave(request.path_params["repo"], force=body.force))

    async def _fork_repo(self, request: Request) -> Response:
        body = await _body(request, bodies.Named)
        return await _json(self._service.fork_repo(request.path_params["repo"], body.name))

    async def _rekey(self, request: Request) -> Response:
        body = await _body(request, bodies.Rekey)
        return await _json(self._service.renewing.rekey(request.path_params["repo"], body.user))

    async def _revoke_invitation(self, request: Request) -> Response:
        params = request.path_params
        return await _json(self._service.members.revoke_invitation(params["repo"], params["invitation"]))

    async def _adopt(self, request: Request) -> Response:
        body = await _body(request, bodies.Adoption)
        return await _json(self._service.members.adopt(request.path_params["branch"], body.commits))

    async def _create_branch(self, request: Request) -> Response:
        body = await _body(request, bodies.Named)
        return await _json(self._service.create_branch(request.path_params["repo"], body.name))

    async def _answer(self, request: Request) -> Response:
        body = await _body(request, bodies.Answer)
        params = request.path_params
        return await _json(self._service.inbox.answer(params["repo"], params["offer"], accepts=body.accepts))

    async def _offer(self, request: Request) -> Response:
        body = await _body(request, bodies.Offer)
        target = request.path_params["branch"]
        return await _json(self._service.inbox.offer(body.source, target, body.note, pulls=body.pulls))

    async def _comment(self, request: Request) -> Response:
        body = await _body(request, bodies.Write)
        return await _json(self._service.inbox.comment(request.path_params["branch"], body.text))

    async def _comments(self, request: Request) -> Response:
        limit = _number(request, "limit", 100, 1, TIMELINE_WINDOW_MAX)
        return await _json(self._service.inbox.comments(request.path_params["branch"], limit))

    async def _fork(self, request: Request) -> Response:
        body = await _body(request, bodies.Fork)
        return await _json(self._service.fork_branch(request.path_params["branch"], body.name, body.commit))

    async def _merge(self, request: Request) -> Response:
        body = await _body(request, bodies.Merge)
        return await _json(self._service.merging.merge(body.source, request.path_params["branch"]))

    async def _state(self, request: Request) -> Response:
        limit = _number(request, "limit", 100, 1, TIMELINE_WINDOW_MAX)
        return await _json(self._service.merging.state(request.path_params["branch"], limit))

    async def _write(self, request: Request) -> Response:
        body = await _body(request, bodies.Write)
        return await _json(self._service.write(request.path_params["branch"], body.text))

    async def _timeline(self, request: Request) -> Response:
        after = _number(request, "after_position", -1, -1, 2**53)
        limit = _number(request, "limit", 100, 1, TIMELINE_WINDOW_MAX)
        return await _json(self._service.timeline(request.path_params["branch"], after, limit))

    async def _edit_branch(self, request: Request) -> Response:
        body = await _body(request, bodies.BranchEdit)
        branch = request.path_params["branch"]
        return await _json(self._service.names.edit_branch(branch, body.name, archived=body.archived))

    async def _set_tag(self, request: Request) -> Response:
        body = await _body(request, bodies.Tag)
        params = request.path_params
        return await _json(self._service.names.set_tag(params["repo"], params["name"], body.commit))

    async def _past(self, request: Request) -> Response:
        limit = _number(request, "limit", 100, 1, TIMELINE_WINDOW_MAX)
        params = request.path_params
        return await _json(self._service.past(params["branch"], params["commit"], limit))

    async def _tangle(self, request: Request) -> Response:
        limit = _number(request, "limit", 100, 1, TANGLE_WINDOW_MAX)
        branch = request.query_params.get("branch", "main")
        author = request.query_params.get("author", "")
        epoch = request.query_params.get("epoch", "")
        params = request.path_params
        return await _json(self._service.tangle(params["repo"], params["kind"], branch, author, epoch, limit))

    async def _import(self, request: Request) -> Response:
        body = await _body(request, bodies.Import)
        items = [msgspec.structs.asdict(item) for item in body.items]
        return await _json(self._service.import_items(request.path_params["branch"], items, body.source))

    async def _list_files(self, request: Request) -> Response:
        after = _number(request, "after", 0, 0, 2**53)
        limit = _number(request, "limit", 100, 1, FILE_WINDOW_MAX)
        return await _json(self._service.files.window(request.path_params["branch"], after, limit))

    async def _add_file(self, request: Request) -> Response:
        name = request.query_params.get("name", "")
        return await _json(self._service.files.add(request.path_params["branch"], name, _chunks(request)))

    async def _get_file(self, request: Request) -> Response:
        file = await self._service.files.open(request.path_params["branch"], request.path_params["file"])
        return file_response(request.headers, file, self._service.files.read)

    async def _remove_file(self, request: Request) -> Response:
        params = request.path_params
        return await _json(self._service.files.remove(params["branch"], params["file"]))

    async def _add_peer(self, request: Request) -> Response:
        body = await _body(request, bodies.Peer)
        return await _json(self._service.peers.add(body.address, body.peer))


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


async def _json(answer: Awaitable[dict[str, Any]]) -> Response:
    return JSONResponse(await answer)


async def _chunks(request: Request) -> AsyncGenerator[bytes]:
    """The request's body as it comes. Raises ServiceError `interrupted` when it stops coming."""
    async with aclosing(request.stream()) as chunks:
        while True:
            with trio.move_on_after(BODY_WAIT_SECONDS) as waiting:
                try:
                    chunk = await anext(chunks)
                except StopAsyncIteration:
                    return
            if waiting.cancelled_caught:
                raise ServiceError("interrupted", f"nothing came of the body for {BODY_WAIT_SECONDS} s")
            yield chunk


async def _body(request: Request, kind: type[T]) -> T:
    """The request's JSON body, bounded before it is buffered."""
    content = bytearray()
    async with aclosing(_chunks(request)) as chunks:
        async for chunk in chunks:
            content += chunk
            if len(content) > REQUEST_SIZE_MAX:
                raise ServiceError(
                    "too_large", f"a request has at most {REQUEST_SIZE_MAX} bytes", "send less at once"
                )
    try:
        return msgspec.json.decode(bytes(content), type=kind)
    except (msgspec.DecodeError, ValueError, RecursionError, DecodeError) as error:
        raise ServiceError("bad_request", f"the request is not of the expected form: {error}") from None


def _number(request: Request, name: str, default: int, low: int, high: int) -> int:
    text = request.query_params.get(name)
    if text is None:
        return default
    if re.fullmatch(r"-?[0-9]{1,16}", text) is None:
        raise ServiceError("bad_request", f"{name} is a number, not {text[:20]!r}")
    if not low <= int(text) <= high:
        raise ServiceError("bad_request", f"{name} is from {low} to {high}, not {text}")
    return int(text)
