"""The OpenAPI 3.1 document of the API, made from the table and its types (`GET /api/v1/openapi.json`).

OpenAPI 3.1 has no word for the events of a stream. They stand under `x-events`, by name, with the schema of their data.
`x-stability` says of each operation and schema whether it is stable, `x-scopes` what a token needs for an operation
(docs/apps/http-api.md).
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, Final, TypedDict

import msgspec

from node.contract.endpoint import KEY_HEADER, LINES_TYPE, PREFIX, HeaderParameter, QueryParameter, Stability
from node.contract.node import JsonObject
from node.contract.table import ENDPOINTS, SUBJECTS, AnyEndpoint
from node.runtime.errors import ERROR_KINDS
from node.runtime.version import VERSION
from protocol.limits.users import IDEMPOTENCY_KEY_SIZE_MAX
from ravel.types.values import ErrorDetail

OPENAPI_VERSION: Final = "3.1.0"
_SCHEMAS: Final = "#/components/schemas/{name}"
_BYTES: Final = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
_JSON_TYPES: Final = {int: "integer", str: "string"}


class ErrorAnswer(TypedDict):
    """The one form of all errors: a stable code, a sentence, and what to do next (may be empty)."""

    error: ErrorDetail


@cache
def describe_document() -> JsonObject:
    """Return the whole document. It is made once; do not change it."""
    schemas, components = _schemas(ENDPOINTS)
    stable = stable_schemas()
    for name, schema in components.items():
        schema["x-stability"] = _stability(is_stable=name in stable)
    paths: dict[str, JsonObject] = {}
    for subject, endpoints in SUBJECTS.items():
        for endpoint in endpoints:
            operation = _operation(endpoint, subject, schemas)
            paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = operation
    return {
        "openapi": OPENAPI_VERSION,
        "info": {
            "title": "Ravel node",
            "version": VERSION,
            "summary": "The local HTTP API of a Ravel node.",
            "description": (
                "What `x-stability` calls stable keeps its fields, their types and its error codes; fields may be added. "
                "Ids are texts of 52 characters."
            ),
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": PREFIX}],
        "security": [{"token": []}],
        "tags": [{"name": subject} for subject in SUBJECTS],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": (
                        "A token that `ravel token create` made, of which `x-scopes` says what it must have; or the content "
                        "of the file `api-token` in the node's folder, which may do all."
                    ),
                }
            },
        },
    }


_KEY: Final = HeaderParameter(
    KEY_HEADER,
    f"1 to {IDEMPOTENCY_KEY_SIZE_MAX} characters, made up for this request. If it comes again, it is done once.",
    f"^[!-~]{{1,{IDEMPOTENCY_KEY_SIZE_MAX}}}$",
)


@cache
def encode_document() -> bytes:
    """Return the document as JSON: half a megabyte, which takes 40 ms to make and 2 ms to encode."""
    return msgspec.json.encode(describe_document())


@cache
def stable_schemas() -> frozenset[str]:
    """Names of the schemas that stable endpoints ask for or answer."""
    return frozenset(_schemas(one for one in ENDPOINTS if one.stability == "stable")[1])


def _stability(*, is_stable: bool) -> Stability:
    return "stable" if is_stable else "may change"


def _schemas(endpoints: Iterable[AnyEndpoint]) -> tuple[dict[str, JsonObject], JsonObject]:
    """Return the schema of each requested or answered type, and the components that these refer to."""
    types: list[Any] = [ErrorAnswer]
    for one in endpoints:
        types += [one.answer] if not one.is_download else []
        types += [one.request] if one.request is not None else []
        types += [one.entry] if one.entry is not None else []
        types += [one.line] if one.line is not None else []
        types += [event.data for event in one.events]
    unique = list({str(kind): kind for kind in types}.values())
    schemas, components = msgspec.json.schema_components(unique, ref_template=_SCHEMAS)
    by_name = dict(zip(map(str, unique), schemas, strict=True))
    return {str(kind): by_name[str(kind)] for kind in types}, components


def _operation(endpoint: AnyEndpoint, subject: str, schemas: Mapping[str, JsonObject]) -> JsonObject:
    found: JsonObject = {"operationId": endpoint.name, "summary": endpoint.summary, "tags": [subject]}
    found["x-stability"] = endpoint.stability
    found["x-scopes"] = [str(scope) for scope in endpoint.scopes]
    if endpoint.details:
        found["description"] = endpoint.details
    parameters = [
        {
            "name": one.name,
            "in": "path",
            "required": True,
            "description": one.description + (" A `/` is escaped as `%2F`." if one.takes_slashes else ""),
            "schema": _text_schema(one.pattern, one.values),
        }
        for one in endpoint.path_parameters
    ]
    parameters += [
        {"name": one.name, "in": "query", "description": one.description, "schema": _query_schema(one)}
        for one in endpoint.query
    ]
    parameters += [
        {
            "name": one.name,
            "in": "header",
            "description": one.description,
            "schema": _text_schema(one.pattern),
        }
        for one in (*endpoint.headers, *([_KEY] if endpoint.takes_key else []))
    ]
    if parameters:
        found["parameters"] = parameters
    if endpoint.request is not None:
        content = {"application/json": {"schema": schemas[str(endpoint.request)]}}
        found["requestBody"] = {"required": True, "content": content}
    if endpoint.takes_bytes:
        found["requestBody"] = {
            "required": True,
            "description": "Content of any length, streamed.",
            "content": _BYTES,
        }
    if endpoint.entry is not None:
        found["requestBody"]["description"] = (
            "Contents, streamed: before each stands a line of JSON, which `x-entry` describes, and ends with a line feed."
        )
        found["x-entry"] = schemas[str(endpoint.entry)]
    if endpoint.line is not None:
        found["requestBody"]["description"] = (
            "Lines of JSON, which `x-line` describes. Each ends with a line feed."
        )
        found["requestBody"]["content"] = {LINES_TYPE: {"schema": {"type": "string"}}}
        found["x-line"] = schemas[str(endpoint.line)]
    found["responses"] = _good_responses(endpoint, schemas) | _error_responses(endpoint, schemas)
    if endpoint.events:
        found["x-events"] = {
            event.name: {"description": event.description, "data": schemas[str(event.data)]}
            for event in endpoint.events
        }
    return found


def _text_schema(pattern: str, values: Sequence[str] = ()) -> JsonObject:
    schema: JsonObject = {"type": "string"}
    schema |= {"pattern": pattern} if pattern else {}
    return schema | ({"enum": [*values]} if values else {})


def _query_schema(parameter: QueryParameter) -> JsonObject:
    if parameter.type is bool:
        return {"type": "integer", "enum": [0, 1], "default": parameter.default or 0}
    schema: JsonObject = {"type": _JSON_TYPES[parameter.type]}
    if parameter.type is int:
        schema |= {"minimum": parameter.minimum, "maximum": parameter.maximum}
    if parameter.default is not None:
        schema["default"] = parameter.default
    return schema


def _good_responses(endpoint: AnyEndpoint, schemas: Mapping[str, JsonObject]) -> JsonObject:
    if endpoint.is_download:
        return {
            "200": {"description": "The whole content.", "content": _BYTES},
            "206": {"description": "The range that was asked for.", "content": _BYTES},
            "416": {"description": "The range lies behind the end."},
        }
    kind = "application/json" if endpoint.line is None else LINES_TYPE
    content: JsonObject = {kind: {"schema": schemas[str(endpoint.answer)]}}
    if endpoint.events:
        content["text/event-stream"] = {
            "schema": {
                "type": "string",
                "description": "Server-sent events (WHATWG HTML, 9.2). `x-events` has the schemas of their data.",
            }
        }
    return {"200": {"description": "Done.", "content": content}}


def _error_responses(endpoint: AnyEndpoint, schemas: Mapping[str, JsonObject]) -> JsonObject:
    """Group error codes by HTTP status, with their meanings."""
    meanings: dict[int, list[str]] = {}
    for code in endpoint.error_codes:
        kind = ERROR_KINDS[code]
        meanings.setdefault(kind.http_status, []).append(f"`{code}`: {kind.meaning}.")
    return {
        str(status): {
            "description": " ".join(found),
            "content": {"application/json": {"schema": schemas[str(ErrorAnswer)]}},
        }
        for status, found in sorted(meanings.items())
    }
