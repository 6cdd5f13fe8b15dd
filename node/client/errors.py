"""Parses error responses of the API into `ServiceError`."""

import msgspec

from node.runtime.errors import ERROR_KINDS, ServiceError


class _Error(msgspec.Struct):
    code: str
    message: str = ""
    next: str = ""


class _ErrorAnswer(msgspec.Struct):
    error: _Error


def error_of(status: int, content: bytes) -> ServiceError:
    """The error that an answer states; `internal` for what is none of the API's."""
    return read_error(content) or ServiceError("internal", f"the daemon answered {status} without JSON")


def read_error(content: bytes | str) -> ServiceError | None:
    """An error in its JSON form; None for what is none."""
    try:
        error = msgspec.json.decode(content, type=_ErrorAnswer).error
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
    return ServiceError(error.code if error.code in ERROR_KINDS else "internal", error.message, error.next)
