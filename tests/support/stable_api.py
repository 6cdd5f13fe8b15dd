"""The promise of the API: what stable endpoints take and answer, as a file that only grows.

`python -m tests.reference` writes what is new and stable into `tests/stable_api.json`, unless the code breaks a line of
that file: it says so then, and so does a test. docs/apps/http-api.md says what is promised, and
docs/contributing/add-an-api-endpoint.md how a promise is taken back.
"""

import json
from pathlib import Path
from typing import Any, Final

import msgspec

from node.api.openapi import describe_document, stable_schemas
from node.contract.table import ENDPOINTS, AnyEndpoint
from node.runtime.errors import ERROR_KINDS

PATH: Final = Path(__file__).parents[1] / "stable_api.json"
_GENERAL: Final = set.intersection(*(set(one.error_codes) for one in ENDPOINTS))
_REF: Final = "#/components/schemas/"
_CHOICE: Final = "one of "
_OR: Final = " or "
_REQUIRED: Final = " (required)"
_OPTIONAL: Final = " (optional)"

Promise = dict[str, dict[str, Any]]
"""`endpoints`, `types` and `errors`: name -> what is promised of it, as JSON."""


def present() -> Promise:
    """What the code does today."""
    document = describe_document()
    schemas = document["components"]["schemas"]
    stable = [one for one in ENDPOINTS if one.stability == "stable"]
    operations = {one.name: document["paths"][one.path][one.method.lower()] for one in stable}
    asked = [kind for one in stable for kind in (one.request, one.entry) if kind is not None]
    requests = msgspec.json.schema_components(asked)[1]
    return {
        "endpoints": {one.name: _endpoint(one, operations[one.name]) for one in stable},
        "types": {
            name: {
                "direction": "request" if name in requests else "answer",
                "fields": _fields(schemas[name]),
            }
            for name in sorted(stable_schemas())
        },
        "errors": {
            code: f"exit {kind.exit_code}, HTTP {kind.http_status}" for code, kind in ERROR_KINDS.items()
        },
    }


def promised() -> Promise:
    """What the file promises."""
    found: Promise = json.loads(PATH.read_text(encoding="utf-8"))
    return found


def find_breaks(promise: Promise, found: Promise) -> list[str]:
    """What `found` no longer keeps of a promise, a sentence each."""
    breaks = [
        f"{kind} {name} is gone, or may change"
        for kind in promise
        for name in promise[kind]
        if name not in found[kind]
    ]
    for name in promise["endpoints"].keys() & found["endpoints"].keys():
        old, new = promise["endpoints"][name], found["endpoints"][name]
        if _takes_as_much(promise["types"].get(old["body"]), found["types"].get(new["body"])):
            new = {**new, "body": old["body"]}
        breaks += _endpoint_breaks(name, old, new)
    for name in promise["types"].keys() & found["types"].keys():
        breaks += _field_breaks(name, promise["types"][name], found["types"][name])
    for code, shown in promise["errors"].items():
        now = found["errors"].get(code, shown)
        breaks += [f"error {code} was {shown}, and is {now}"] if now != shown else []
    return sorted(breaks)


def text_of(promise: Promise) -> str:
    """The file's text."""
    return json.dumps(promise, indent=1, sort_keys=True) + "\n"


def _endpoint(endpoint: AnyEndpoint, operation: Any) -> dict[str, Any]:  # noqa: ANN401  # any JSON
    parameters = operation.get("parameters", [])
    answer = msgspec.json.schema(endpoint.answer).get("$ref", "") if not endpoint.is_download else "bytes"
    return {
        "request": f"{endpoint.method} {endpoint.path}",
        "parameters": {
            f"{one['in']} {one['name']}": _type_text(one["schema"])
            for one in parameters
            if one["in"] != "path"
        },
        "body": "bytes" if endpoint.takes_bytes else endpoint.request.__name__ if endpoint.request else "",
        "entry": endpoint.entry.__name__ if endpoint.entry is not None else "",
        "answer": answer.rpartition("/")[2] or "object",
        "events": {event.name: event.data.__name__ for event in endpoint.events},
        "scopes": [str(scope) for scope in endpoint.scopes],
        "errors": sorted({*endpoint.error_codes} - _GENERAL),
    }


def _fields(schema: Any) -> dict[str, str]:  # noqa: ANN401  # any JSON
    required = schema.get("required", ())
    return {
        name: _type_text(part) + (_REQUIRED if name in required else _OPTIONAL)
        for name, part in schema["properties"].items()
    }


def _type_text(schema: Any) -> str:  # noqa: ANN401  # any JSON
    """A schema without its bounds and descriptions."""
    if "$ref" in schema:
        return str(schema["$ref"]).removeprefix(_REF)
    if "anyOf" in schema:
        return _OR.join(sorted(map(_type_text, schema["anyOf"])))
    if "enum" in schema:
        return _CHOICE + ", ".join(sorted(map(str, schema["enum"])))
    match schema.get("type"):
        case "array":
            return f"list of {_type_text(schema['items'])}"
        case "object":
            return f"object of {_type_text(schema['additionalProperties'])}"
    return str(schema.get("type", "anything"))


def _takes_as_much(old: dict[str, Any] | None, new: dict[str, Any] | None) -> bool:
    """Whether a body of a type is one of another type too, which may have optional fields more."""
    return old is not None and new is not None and not _field_breaks("", old, new)


def _endpoint_breaks(name: str, old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    breaks = [
        f"{name}: its {part} was {old[part]}, and is {new[part]}"
        for part in ("request", "body", "entry", "answer")
        if old[part] != new[part]
    ]
    breaks += [f"{name}: its error {code} is gone" for code in old["errors"] if code not in new["errors"]]
    breaks += [f"{name}: it needs {scope}" for scope in new["scopes"] if scope not in old["scopes"]]
    for part in ("parameters", "events"):
        for key, kind in old[part].items():
            now = new[part].get(key, "gone")
            breaks += (
                [f"{name}: {key} was {kind}, and is {now}"] if _type_break(kind, now, is_request=True) else []
            )
    return breaks


def _field_breaks(name: str, old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    is_request = old["direction"] == "request"
    breaks = []
    for field, kind in old["fields"].items():
        now = new["fields"].get(field, "gone")
        if _type_break(kind, now, is_request=is_request):
            breaks.append(f"{name}.{field} was {kind}, and is {now}")
    if is_request:
        added = new["fields"].keys() - old["fields"].keys()
        breaks += [
            f"{name}.{field} is required, and was not there"
            for field in sorted(added)
            if new["fields"][field].endswith(_REQUIRED)
        ]
    return breaks


def _type_break(old: str, new: str, *, is_request: bool) -> bool:
    """Whether a client that knows `old` may fail. A choice may gain values; a request's field may become optional or take
    further types, an answer's one may become required."""
    old_kind, new_kind = (text.removesuffix(_REQUIRED).removesuffix(_OPTIONAL) for text in (old, new))
    before, after = (_OPTIONAL, _REQUIRED) if is_request else (_REQUIRED, _OPTIONAL)
    if old.endswith(before) and new.endswith(after):
        return True
    if old_kind.startswith(_CHOICE) and new_kind.startswith(_CHOICE):
        return not _choices(old_kind) <= _choices(new_kind)
    if is_request and set(old_kind.split(_OR)) <= set(new_kind.split(_OR)):
        return False
    return old_kind != new_kind


def _choices(kind: str) -> set[str]:
    return set(kind.removeprefix(_CHOICE).split(", "))
