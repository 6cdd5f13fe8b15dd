"""Content of files over HTTP: uploads, and downloads whole or by one byte range; archives are made while they are sent.

Ranges are RFC 9110's, one at a time; a request for several, or for what is not a range, is answered with the whole, as
the RFC allows. Content is anybody's: browsers are told to take it for nothing but bytes to save.
"""

import re
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from typing import Final
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from node.api.requests import answer_json, read_chunks, read_query
from node.content.files import FileService, OpenFile
from node.contract.files import ADD_FILE

_RANGE: Final = re.compile(r"bytes=([0-9]{0,16})-([0-9]{0,16})")
_MEDIA_TYPE: Final = "application/octet-stream"
ReadFile = Callable[[OpenFile, int, int], AsyncGenerator[bytes]]


class FileHandlers:
    """Handlers of uploads and downloads, which are streams of bytes and not JSON."""

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


async def file_response(request: Request, file: OpenFile, read: ReadFile) -> Response:
    """200 with everything, 206 with a range, or 416 where the range lies behind the end. Raises what `read` does at once."""
    headers = request.headers
    tag = f'"{file.tag}"'
    answer = {"ETag": tag, "Accept-Ranges": "bytes", **_to_save(file.name or file.file_id)}
    start, stop, status = 0, file.size, 200
    wanted = _parse_range(headers.get("range", ""), file.size)
    if wanted is not None and headers.get("if-range", tag) == tag:
        start, stop = wanted
        status = 206
        if start >= stop:
            return Response(status_code=416, headers=answer | {"Content-Range": f"bytes */{file.size}"})
        answer["Content-Range"] = f"bytes {start}-{stop - 1}/{file.size}"
    answer["Content-Length"] = str(stop - start)
    return await _begin(request, read(file, start, stop), status, answer)


async def archive_response(request: Request, name: str, content: AsyncGenerator[bytes]) -> Response:
    """Return a download of unknown length. Raises what `content` raises at once."""
    return await _begin(request, content, 200, _to_save(name))


def _to_save(name: str) -> dict[str, str]:
    return {
        "Content-Disposition": f"attachment; filename*=UTF-8''{quote(name, safe='')}",
        "X-Content-Type-Options": "nosniff",
        "Cache-Control": "private, no-store",
    }


async def _begin(
    request: Request, content: AsyncGenerator[bytes], status: int, headers: Mapping[str, str]
) -> Response:
    """Return the response once the first bytes are there, so that an earlier failure is an error. HEAD reads none."""
    if request.method == "HEAD":
        await content.aclose()
        return Response(status_code=status, headers=headers, media_type=_MEDIA_TYPE)
    return _Streamed(await anext(content, b""), content, status, headers)


class _Streamed(StreamingResponse):
    """Bytes as they come. Closes where they come from also when the client leaves first."""

    def __init__(
        self, first: bytes, content: AsyncGenerator[bytes], status: int, headers: Mapping[str, str]
    ) -> None:
        self._content = content
        self._parts = self._join(first)
        super().__init__(self._parts, status, headers, media_type=_MEDIA_TYPE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve it."""
        async with aclosing(self._content), aclosing(self._parts):
            await super().__call__(scope, receive, send)

    async def _join(self, first: bytes) -> AsyncGenerator[bytes]:
        if first:
            yield first
        async for part in self._content:
            yield part


def _parse_range(text: str, size: int) -> tuple[int, int] | None:
    """Return one range as (start, stop), empty if it cannot be satisfied; None if the header is to be ignored."""
    found = _RANGE.fullmatch(text.strip())
    if found is None or not (found[1] or found[2]):
        return None
    if not found[1]:  # the last so many bytes
        return max(size - int(found[2]), 0), size
    start = int(found[1])
    stop = int(found[2]) + 1 if found[2] else size
    if stop <= start and found[2]:
        return None  # from behind to before: not a range
    return min(start, size), min(stop, size)
