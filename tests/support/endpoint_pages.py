"""The reference page of the API's endpoints, made from the table and from the schemas of its types."""

from typing import Any, Final, get_type_hints, is_typeddict

import msgspec

from node.api.openapi import stable_schemas
from node.contract.endpoint import KEY_ERRORS, PATH_PARAMETERS, PREFIX, QueryParameter
from node.contract.table import ENDPOINTS, SUBJECTS, AnyEndpoint
from ravel.types.values import Id
from tests.support.client_modules import call_text
from tests.support.js_client import camel

_ID: Final = msgspec.json.schema(Id)
_GENERAL: Final = set.intersection(*(set(endpoint.error_codes) for endpoint in ENDPOINTS))
_MAY_CHANGE: Final = "*May change.*"
_ABOUT: Final = """\
Every path is below `{prefix}`. Requests and answers are JSON objects, unless stated otherwise. A field of a request that
is not listed is refused. Endpoints and types are [stable](../apps/http-api.md#what-is-stable) unless they say *May
change*. *Token* says what a [token](../apps/tokens.md) needs. *Clients* names the method of the [Python
client](../apps/python.md), with its defaults, and that of the [JavaScript client](../apps/browser.md#call), which takes
one object with the same names. `GET
{prefix}/openapi.json` has the same as an OpenAPI 3.1 document.

Any request may be refused with {general}. One that is not a GET nor an upload may carry an
[Idempotency-Key](../apps/http-api.md#repeated-requests), and be refused with `key_reused` or `answer_lost`.
"""

JsonObject = dict[str, Any]
"""A JSON schema: an object of no fixed form."""


def endpoints_page(made: str) -> str:
    """The page; `made` says how it is made."""
    general = ", ".join(f"`{code}`" for code in sorted(_GENERAL))
    lines = ["# Endpoints of the HTTP API", "", made, _ABOUT.format(prefix=PREFIX, general=general)]
    lines += ["## Parts of paths", "", "| part | |", "|---|---|"]
    for part in PATH_PARAMETERS.values():
        slashes = " A `/` is escaped as `%2F`, or left as it is." if part.takes_slashes else ""
        lines.append(f"| `{{{part.name}}}` | {part.description}{slashes} |")
    for subject, endpoints in SUBJECTS.items():
        lines += ["", f"## {subject}"]
        for endpoint in endpoints:
            lines += _endpoint_lines(endpoint)
    lines += ["", "## Types"]
    schemas = _schemas()
    for kind in _types():
        lines += _type_lines(kind, schemas)
    return "\n".join(lines) + "\n"


def _endpoint_lines(endpoint: AnyEndpoint) -> list[str]:
    lines = ["", f"### `{endpoint.method} {endpoint.path}`", "", endpoint.summary]
    lines += ["", _MAY_CHANGE] if endpoint.stability != "stable" else []
    if endpoint.details:
        lines += ["", endpoint.details]
    clients = (
        f"Clients: `{call_text(endpoint)}`, `{camel(endpoint.name) if endpoint.line is None else 'writer'}`"
    )
    if endpoint.events:
        watch = endpoint.name.replace("follow_", "watch_", 1)
        clients += f"; to follow: `{watch}`, `{camel(watch)}`"
    lines += ["", f"{clients}."]
    lines += ["", f"Token: {', '.join(map(str, endpoint.scopes)) or 'any'}."]
    if endpoint.query:
        lines += ["", "| query | type | default | |", "|---|---|---|---|"]
        lines += [_query_row(one) for one in endpoint.query]
    if endpoint.headers:
        lines += ["", "| header | |", "|---|---|"]
        lines += [f"| `{one.name}` | {one.description} |" for one in endpoint.headers]
    if endpoint.request is not None:
        lines += ["", "| field | type | default | |", "|---|---|---|---|"]
        lines += _request_rows(endpoint)
    if endpoint.entry is not None:
        entry = _link(endpoint.entry.__name__)
        lines += ["", f"The body is many contents, streamed. Before each stands a line of JSON, a {entry}."]
    elif endpoint.line is not None:
        line = _link(endpoint.line.__name__)
        lines += [
            "",
            f"The body is lines of JSON, each a {line}. Each ends with a line feed, and so do the answer's.",
        ]
    elif endpoint.takes_bytes:
        lines += ["", "The body is the content, streamed, of any length."]
    lines += ["", f"Answer: {_answer_text(endpoint)}"]
    if endpoint.events:
        lines += ["", "With `Accept: text/event-stream`:", "", "| event | data | |", "|---|---|---|"]
        lines += [
            f"| `{event.name}` | {_link(event.data.__name__)} | {event.description} |"
            for event in endpoint.events
        ]
    codes = [code for code in endpoint.error_codes if code not in _GENERAL and code not in KEY_ERRORS]
    if codes:
        lines += ["", f"Errors: {', '.join(f'`{code}`' for code in codes)}."]
    return lines


def _answer_text(endpoint: AnyEndpoint) -> str:
    if endpoint.is_download:
        return "the bytes."
    if endpoint.line is not None:
        return f"for each line, in order, a {_link(endpoint.answer.__name__)}."
    if is_typeddict(endpoint.answer):
        return f"{_link(endpoint.answer.__name__)}."
    return "a JSON object."


def _query_row(parameter: QueryParameter) -> str:
    kind = "text"
    if parameter.type is int:
        kind = f"{parameter.minimum} to {parameter.maximum}"
    if parameter.type is bool:
        kind = "0 or 1"
    default = "" if parameter.default in (None, "") else f"`{parameter.default}`"
    return f"| `{parameter.name}` | {kind} | {default} | {parameter.description} |"


def _request_rows(endpoint: AnyEndpoint) -> list[str]:
    assert endpoint.request is not None, "it has a body"
    (_, components) = msgspec.json.schema_components([endpoint.request], ref_template="{name}")
    properties = components[endpoint.request.__name__]["properties"]
    rows = []
    for name, field in endpoint.body_fields.items():
        schema = properties[name]
        default = "" if field.required else f"`{msgspec.json.encode(schema.get('default')).decode()}`"
        rows.append(f"| `{name}` | {_type_text(schema)} | {default} | {_about(schema)} |")
    return rows


def _types() -> list[Any]:
    """All types of answers and events, and those that these and requests are made of, by name."""
    found: dict[str, Any] = {}
    ahead: list[Any] = [endpoint.answer for endpoint in ENDPOINTS]
    ahead += [event.data for endpoint in ENDPOINTS for event in endpoint.events]
    ahead += [kind for endpoint in ENDPOINTS for kind in (endpoint.entry, endpoint.line) if kind is not None]
    for endpoint in ENDPOINTS:
        ahead += get_type_hints(endpoint.request).values() if endpoint.request is not None else ()
    while ahead:
        kind = ahead.pop()
        is_struct = isinstance(kind, type) and issubclass(kind, msgspec.Struct)
        if (is_struct or is_typeddict(kind)) and kind.__name__ not in found:
            found[kind.__name__] = kind
            ahead += get_type_hints(kind).values()
        else:
            ahead += getattr(kind, "__args__", ())
    return [kind for _, kind in sorted(found.items())]


def _schemas() -> JsonObject:
    return msgspec.json.schema_components(_types(), ref_template="{name}")[1]


def _type_lines(kind: Any, schemas: JsonObject) -> list[str]:  # noqa: ANN401  # a TypedDict class has no type
    schema = schemas[kind.__name__]
    lines = ["", f"### {kind.__name__}", "", schema["description"]]
    lines += ["", _MAY_CHANGE] if kind.__name__ not in stable_schemas() else []
    if schema["properties"]:
        lines += ["", "| field | type | |", "|---|---|---|"]
    for name in get_type_hints(kind):
        part = schema["properties"][name]
        optional = "" if name in schema["required"] else "May be absent. "
        lines.append(f"| `{name}` | {_type_text(part)} | {(optional + _about(part)).strip()} |")
    return lines


def _about(schema: JsonObject) -> str:
    is_id = schema.get("description") == _ID["description"]
    return "" if is_id else str(schema.get("description", "")).replace("|", "\\|")


def _link(name: str) -> str:
    return f"[{name}](#{name.lower()})"


def _type_text(schema: JsonObject) -> str:
    """A schema in words."""
    if "$ref" in schema:
        return _link(schema["$ref"])
    if "anyOf" in schema:
        return " or ".join(_type_text(one) for one in schema["anyOf"])
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    match schema.get("type"):
        case "array":
            count = schema.get("maxItems")
            return f"list of {_type_text(schema['items'])}" + (f", at most {count}" if count else "")
        case "object":
            count = schema.get("maxProperties")
            values = _type_text(schema["additionalProperties"])
            return f"object of {values}" + (f", at most {count} keys" if count else "")
        case "integer":
            low, high = schema.get("minimum"), schema.get("maximum")
            return f"{low} to {high}" if high is not None else "number"
        case "string":
            if schema.get("maxLength") == schema.get("minLength") == _ID["maxLength"]:
                return "id"
            if "contentEncoding" in schema:
                return "base64"
            high = schema.get("maxLength")
            return f"text, at most {high} characters" if high else "text"
        case "boolean":
            return "true or false"
        case "null":
            return "null"
    return "any JSON"
