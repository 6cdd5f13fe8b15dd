"""HTTP responses for files: whole or one byte range, streamed, resumable; and for archives, made while they are sent.

Ranges are RFC 9110's, one at a time; a request for several, or for what is not a range, is answered with the whole, as
the RFC allows. Content is anybody's: browsers are told to take it for nothing but bytes to save.
"""

import re
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from typing import Final
from urllib.parse import quote

from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from node.content.files import OpenFile

_RANGE: Final = re.compile(r"bytes=([0-9]{0,16})-([0-9]{0,16})")
ReadFile = Callable[[OpenFile, int, int], AsyncGenerator[bytes]]


def file_response(headers: Mapping[str, str], file: OpenFile, read: ReadFile) -> Response:
    """200 with everything, 206 with a range, or 416 where the range lies behind the end."""
    tag = f'"{file.file_id}"'
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
    return _Streamed(read(file, start, stop), status, answer)


def archive_response(name: str, content: AsyncGenerator[bytes]) -> Response:
    """A file of a length that nobody knows yet, to be saved."""
    return _Streamed(content, 200, _to_save(name))


def _to_save(name: str) -> dict[str, str]:
    return {
        "Content-Disposition": f"attachment; filename*=UTF-8''{quote(name, safe='')}",
        "X-Content-Type-Options": "nosniff",
        "Cache-Control": "private, no-store",
    }


class _Streamed(StreamingResponse):
    """Bytes as they come; of HEAD none is read. Closes where they come from also when the client leaves first."""

    def __init__(self, content: AsyncGenerator[bytes], status: int, headers: Mapping[str, str]) -> None:
        super().__init__(content, status, headers, media_type="application/octet-stream")
        self._content = content

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve it."""
        async with aclosing(self._content):
            if scope["method"] == "HEAD":
                await Response(status_code=self.status_code, headers=self.headers)(scope, receive, send)
            else:
                await super().__call__(scope, receive, send)


def _parse_range(text: str, size: int) -> tuple[int, int] | None:
    """(start, stop) of one range, empty where it cannot be satisfied; None where there is none to obey."""
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
