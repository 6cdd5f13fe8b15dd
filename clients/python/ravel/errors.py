"""One exception for all failures: its code, a message for a person, and advice."""

from typing import Any, Final

import msgspec

_ADDRESS_TOO_LONG: Final = 431
"""HTTP status of a request that the daemon did not read: its head is too long. The answer has no content."""


class RavelError(Exception):
    """An expected failure.

    `code` is stable and meant for programs: docs/reference/exit-codes.md lists those that a node says, and a newer node may
    say others. `message` is meant for a person. `advice` says what to do next, and may be empty.
    """

    def __init__(self, code: str, message: str, advice: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.advice = advice
        if advice:
            self.add_note(advice)  # a traceback shows it, too

    def as_json(self) -> dict[str, object]:
        """Return the one JSON form of an error, in answers of the API and of commands."""
        return {"error": {"code": self.code, "message": self.message, "next": self.advice}}


class _Error(msgspec.Struct):
    code: str
    message: str = ""
    next: str = ""


class _ErrorAnswer(msgspec.Struct):
    error: _Error


def read_error(content: bytes | str) -> RavelError | None:
    """Return an error from its JSON form; None if that is no error."""
    try:
        error = msgspec.json.decode(content, type=_ErrorAnswer).error
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
    return RavelError(error.code, error.message, error.next)


def error_of(status: int, content: bytes) -> RavelError:
    """Return the error of an answer with this HTTP status; `incompatible` if the answer is none of the API's."""
    if status == _ADDRESS_TOO_LONG:
        return RavelError(
            "too_large", "the request's address is too long", "name less, as by a shorter filter"
        )
    return read_error(content) or incompatible(f"the daemon answered {status} without JSON")


def incompatible(message: str) -> RavelError:
    """Return the error for an answer that this client cannot read."""
    advice = "client and daemon are to have the same version: after an upgrade, start the daemon again"
    return RavelError("incompatible", message, advice)


def decode(content: bytes | str, kind: Any) -> Any:  # noqa: ANN401  # types of answers have no type of their own
    """JSON as a value of a type. Fields that the type does not have are passed over. Raises RavelError `incompatible`."""
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise incompatible(f"the daemon sent what this client cannot read: {error}") from None
