"""`json_response`: what an endpoint answers, as JSON."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

import msgspec
from starlette.responses import Response

_TYPE: Final = "application/json"


def json_response(
    content: object, status_code: int = HTTPStatus.OK, headers: Mapping[str, str] | None = None
) -> Response:
    """By msgspec: Starlette's own makes an encoder of Python's for each answer. Raises UnicodeEncodeError, as that does."""
    return Response(msgspec.json.encode(content), status_code, headers, _TYPE)
