"""CLI: api: any request to the node's HTTP API."""

import json
from typing import Annotated, Final

import typer

from node.cli.inputs import read_input
from node.cli.shared import JsonOption, client
from node.runtime.errors import ServiceError
from protocol.limits.users import REQUEST_SIZE_MAX

_METHODS: Final = ("GET", "POST", "PUT", "DELETE")


def api(
    context: typer.Context,
    method: Annotated[str, typer.Argument(help="GET, POST, PUT or DELETE.")],
    path: Annotated[str, typer.Argument(help="The path below /api/v1, as /repos?limit=5.")],
    data: Annotated[
        str | None,
        typer.Option(metavar="JSON|@FILE|-", help="The body: JSON, a file with it, or - for standard input."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Call an endpoint of the HTTP API, and print its answer. docs/reference/endpoints.md lists all.

    `ravel api POST /branches/notes:main/commits --data '{"text": "hello"}'` writes a post. --json prints one line.
    """
    verb = method.upper()
    if verb not in _METHODS:
        raise ServiceError(
            "bad_request", f"{method!r} is none of {', '.join(_METHODS)}", "ravel api GET /status"
        )
    body = None if data is None else _read_body(data)
    answer = client(context).request(verb, path, body)
    try:
        found = json.loads(answer)
    except ValueError:
        raise ServiceError(
            "bad_request", f"{path} answers with content and not with JSON", "`ravel file get` gets a file"
        ) from None
    print(json.dumps(found, ensure_ascii=False, indent=None if as_json else 2), flush=True)


def _read_body(data: str) -> bytes:
    """The body of a request. Raises ServiceError `bad_input`, `too_large`."""
    if data == "-" or data.startswith("@"):
        return read_input(data.removeprefix("@"), REQUEST_SIZE_MAX)
    return data.encode()
