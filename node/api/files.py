"""The content of files over HTTP: uploads and downloads, which are streams of bytes and not JSON."""

from starlette.requests import Request
from starlette.responses import Response

from node.api.downloads import file_response
from node.api.requests import answer_json, read_chunks, read_query
from node.content.files import FileService
from node.contract.files import ADD_FILE


class FileHandlers:
    """Each handler takes the request apart and calls the service."""

    def __init__(self, files: FileService) -> None:
        self._files = files

    async def add(self, request: Request) -> Response:
        """Add a file whose content is the request's body."""
        name = read_query(request, ADD_FILE.query)["name"]
        added = self._files.add(request.path_params["branch"], name, read_chunks(request))
        return await answer_json(added)

    async def add_many(self, request: Request) -> Response:
        """Add files, each a line and its content in the request's body."""
        added = self._files.add_many(request.path_params["branch"], read_chunks(request))
        return await answer_json(added)

    async def get(self, request: Request) -> Response:
        """Answer with a file, whole or a range of it."""
        file = await self._files.open(request.path_params["branch"], request.path_params["file"])
        return await file_response(request, file, self._files.read)
