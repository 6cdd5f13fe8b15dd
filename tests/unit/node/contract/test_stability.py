"""What stable endpoints take and answer stays: the file of promises, and what counts as a break."""

from copy import deepcopy
from typing import Any

import pytest

from node.api.openapi import describe_document
from tests.support.stable_api import Promise, find_breaks, present, promised, text_of

_PROMISE: Promise = {
    "endpoints": {
        "show": {
            "request": "GET /things",
            "parameters": {"query limit": "integer"},
            "body": "",
            "entry": "",
            "answer": "Thing",
            "events": {"thing": "Thing"},
            "scopes": ["`read`"],
            "errors": ["busy"],
        }
    },
    "types": {
        "Thing": {
            "direction": "answer",
            "fields": {"name": "string (required)", "kind": "one of a, b (required)"},
        },
        "Ask": {"direction": "request", "fields": {"name": "string (optional)"}},
    },
    "errors": {"busy": "exit 27, HTTP 503"},
}


def test_the_code_keeps_what_the_file_promises() -> None:
    assert find_breaks(promised(), present()) == [], (
        "docs/contributing/add-an-api-endpoint.md says what to do"
    )


@pytest.mark.parametrize(
    "more, breaks",
    [("integer (optional)", []), ("integer (required)", ["show: its body was Ask, and is More"])],
)
def test_a_body_of_another_type_with_optional_fields_more_breaks_nothing(
    more: str, breaks: list[str]
) -> None:
    before = _changed("endpoints/show/body", "Ask")
    after = deepcopy(before)
    after["endpoints"]["show"]["body"] = "More"
    after["types"]["More"] = deepcopy(_PROMISE["types"]["Ask"])
    after["types"]["More"]["fields"]["more"] = more
    assert find_breaks(before, after) == breaks


def test_the_file_promises_all_that_is_stable() -> None:
    assert promised() == present(), "what is new is not promised yet: make reference"
    assert text_of(promised()) == text_of(present())


def _changed(path: str, value: Any) -> Promise:  # noqa: ANN401  # any JSON
    """The promise with another value at a path; None takes what is there away."""
    found = deepcopy(_PROMISE)
    *parents, last = path.split("/")
    at: Any = found
    for name in parents:
        at = at[name]
    if value is None:
        del at[last]
    else:
        at[last] = value
    return found


@pytest.mark.parametrize(
    "path, value, sentence",
    [
        ("endpoints/show", None, "endpoints show is gone, or may change"),
        ("endpoints/show/request", "POST /things", "show: its request was GET /things, and is POST /things"),
        ("endpoints/show/answer", "Other", "show: its answer was Thing, and is Other"),
        ("endpoints/show/scopes", ["`read`", "`node`"], "show: it needs `node`"),
        ("endpoints/show/errors", [], "show: its error busy is gone"),
        ("endpoints/show/parameters", {}, "show: query limit was integer, and is gone"),
        ("endpoints/show/events", {}, "show: thing was Thing, and is gone"),
        ("types/Thing", None, "types Thing is gone, or may change"),
        ("types/Thing/fields/name", None, "Thing.name was string (required), and is gone"),
        (
            "types/Thing/fields/name",
            "integer (required)",
            "Thing.name was string (required), and is integer (required)",
        ),
        (
            "types/Thing/fields/name",
            "string (optional)",
            "Thing.name was string (required), and is string (optional)",
        ),
        (
            "types/Thing/fields/kind",
            "one of a (required)",
            "Thing.kind was one of a, b (required), and is one of a (required)",
        ),
        (
            "types/Thing/fields/name",
            "null or string (required)",
            "Thing.name was string (required), and is null or string (required)",
        ),
        (
            "types/Ask/fields/name",
            "string (required)",
            "Ask.name was string (optional), and is string (required)",
        ),
        ("types/Ask/fields/more", "string (required)", "Ask.more is required, and was not there"),
        ("errors/busy", "exit 27, HTTP 429", "error busy was exit 27, HTTP 503, and is exit 27, HTTP 429"),
        ("errors/busy", None, "errors busy is gone, or may change"),
    ],
)
def test_what_breaks_a_promise_is_said(path: str, value: object, sentence: str) -> None:
    assert find_breaks(_PROMISE, _changed(path, value)) == [sentence]


@pytest.mark.parametrize(
    "path, value",
    [
        ("endpoints/more", {}),
        ("endpoints/show/parameters/query after", "string"),
        ("endpoints/show/errors", ["busy", "not_found"]),
        ("endpoints/show/scopes", []),
        ("types/Thing/fields/more", "string (optional)"),
        ("types/Thing/fields/kind", "one of a, b, c (required)"),
        ("types/Ask/fields/more", "string (optional)"),
        ("types/Ask/fields/name", "null or string (optional)"),
        ("errors/more", "exit 1, HTTP 500"),
    ],
)
def test_what_is_added_breaks_nothing(path: str, value: object) -> None:
    assert find_breaks(_PROMISE, _changed(path, value)) == []


def test_the_description_marks_what_is_stable() -> None:
    document = describe_document()
    paths = document["paths"]
    assert paths["/branches/{branch}/timeline"]["get"]["x-stability"] == "stable"
    assert paths["/log"]["get"]["x-stability"] == "may change"
    schemas = document["components"]["schemas"]
    assert schemas["TimelineItem"]["x-stability"] == "stable", "a stable answer is made of it"
    assert schemas["LogLines"]["x-stability"] == "may change"
