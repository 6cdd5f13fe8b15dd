"""Requests of the API about sets, dicts and texts, and about compacting what they are reduced from."""

from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from node.api import bodies
from node.api.requests import Handler, answer_json, read_body, read_number
from node.api.service import NodeService
from protocol.limits.users import DOCUMENT_WINDOW_MAX

_OFFSET_MAX: Final = 2**53


class DocumentHandlers:
    """Each handler takes the request apart and calls the service."""

    def __init__(self, service: NodeService) -> None:
        self._service = service

    def table(self) -> list[tuple[str, str, Handler]]:
        """(method, path below /api/v1, handler)."""
        return [
            ("GET", "/branches/{branch:path}/set", self._show_set),
            ("POST", "/branches/{branch:path}/set", self._edit_set),
            ("GET", "/branches/{branch:path}/dict", self._show_dict),
            ("GET", "/branches/{branch:path}/dict/entry", self._show_entry),
            ("POST", "/branches/{branch:path}/dict", self._edit_dict),
            ("GET", "/branches/{branch:path}/text", self._pull_text),
            ("POST", "/branches/{branch:path}/text", self._push_text),
            ("POST", "/branches/{branch:path}/set/snapshots", self._snapshot_set),
            ("POST", "/branches/{branch:path}/dict/snapshots", self._snapshot_dict),
            ("POST", "/branches/{branch:path}/compactions", self._compact),
        ]

    async def _snapshot_set(self, request: Request) -> Response:
        return await answer_json(self._service.documents.snapshot(request.path_params["branch"], "set"))

    async def _snapshot_dict(self, request: Request) -> Response:
        return await answer_json(self._service.documents.snapshot(request.path_params["branch"], "dict"))

    async def _compact(self, request: Request) -> Response:
        body = await read_body(request, bodies.Compact)
        branch = request.path_params["branch"]
        return await answer_json(
            self._service.compacting.compact(
                branch, dry_run=body.dry_run, without_missing=body.without_missing
            )
        )

    async def _show_set(self, request: Request) -> Response:
        branch, offset, limit = _window_of(request)
        return await answer_json(self._service.documents.show_set(branch, offset, limit))

    async def _edit_set(self, request: Request) -> Response:
        body = await read_body(request, bodies.SetEdit)
        branch = request.path_params["branch"]
        return await answer_json(self._service.documents.edit_set(branch, body.add, body.remove))

    async def _show_dict(self, request: Request) -> Response:
        branch, offset, limit = _window_of(request)
        return await answer_json(self._service.documents.show_dict(branch, offset, limit))

    async def _show_entry(self, request: Request) -> Response:
        key = request.query_params.get("key", "")
        return await answer_json(self._service.documents.get(request.path_params["branch"], key))

    async def _edit_dict(self, request: Request) -> Response:
        body = await read_body(request, bodies.DictEdit)
        branch = request.path_params["branch"]
        return await answer_json(self._service.documents.edit_dict(branch, body.put, body.erase))

    async def _pull_text(self, request: Request) -> Response:
        root = request.query_params.get("root")
        return await answer_json(self._service.texts.pull(request.path_params["branch"], root))

    async def _push_text(self, request: Request) -> Response:
        body = await read_body(request, bodies.TextPush)
        return await answer_json(self._service.texts.push(request.path_params["branch"], body.update))


def _window_of(request: Request) -> tuple[str, int, int]:
    offset = read_number(request, "offset", 0, 0, _OFFSET_MAX)
    limit = read_number(request, "limit", 100, 1, DOCUMENT_WINDOW_MAX)
    return request.path_params["branch"], offset, limit
