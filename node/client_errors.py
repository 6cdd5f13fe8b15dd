"""Errors that the API answers with, for who called it."""

import httpx
import msgspec

from node.errors import ERROR_KINDS, ServiceError


class _Error(msgspec.Struct):
    code: str
    message: str = ""
    next: str = ""


class _ErrorAnswer(msgspec.Struct):
    error: _Error


def error_of(response: httpx.Response) -> ServiceError:
    """The error that an answer states; `internal` for what is none of the API's."""
    try:
        error = msgspec.json.decode(response.content, type=_ErrorAnswer).error
    except (msgspec.DecodeError, ValueError, RecursionError):
        return ServiceError("internal", f"the daemon answered {response.status_code} without JSON")
    return ServiceError(error.code if error.code in ERROR_KINDS else "internal", error.message, error.next)
