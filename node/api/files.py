"""Requests of the API about files and imports."""

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from node.api import bodies
from node.api.downloads import file_response
from node.api.requests import Handler, answer_json, read_body, read_chunks, read_number
from node.api.service import NodeService
from protocol.limits.users import FILE_WINDOW_MAX, IMPORTED_WINDOW_MAX


class FileHandlers:
    """Each handler takes the request apart and calls the service."""

    def __init__(self, service: NodeService) -> None:
        self._service = service

    def table(self) -> list[tuple[str, str, Handler]]:
        """(method, path below /api/v1, handler)."""
        return [
            ("POST", "/branches/{branch:path}/import", self._import),
            ("GET", "/branches/{branch:path}/imported", self._imported),
            ("GET", "/branches/{branch:path}/files", self._list_files),
            ("POST", "/branches/{branch:path}/files", self._add_file),
            # A file's name may have slashes too, or be asked for as if it were a path.
            ("GET", "/branches/{branch:path}/files/{file:path}", self._get_file),
            ("DELETE", "/branches/{branch:path}/files/{file:path}", self._remove_file),
        ]

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
