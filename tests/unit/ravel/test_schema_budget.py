"""What a check by a JSON Schema may cost, which anybody who may write can state."""

from itertools import pairwise
from typing import Any

import pytest

from ravel import schema_budget
from ravel.errors import RavelError
from ravel.json_documents import find_faults

DRAFT_7 = "http://json-schema.org/draft-07/schema#"
LONG = "a" * 5000


@pytest.mark.parametrize(
    "pattern, good, bad",
    [
        (r"^[a-z][a-z0-9-]*$", "some-name" * 100, "-"),
        (r"^\d{4}-\d{2}-\d{2}$", "2026-11-30", "2026-1-30"),
        (r"^#([0-9a-f]{3}|[0-9a-f]{6})$", "#12ab9f", "#1"),
        (r"^[^@\s]+@[^@\s]+\.[a-z]{2,}$", "a@example.org", "example.org"),
        (r"^(https?://|mailto:)", "mailto:" + LONG, LONG),
        (r"^(?:[a-z]+, )?[a-z]+$", "last, first", "9"),
        (r"done", LONG + "done", LONG),
        (r"^.*?\{x}[\]|)]$", "a{x})", "a{x}"),
        (r"^(?P<name>ab){2,4}$", "abab", "ab"),
        (r"^[a-z0-9]+(?:-[a-z0-9]+)*$", "some-name" * 100, "some--name" * 100),
        (r"^\w+([ ,]\w+)*$", "ein Wort" * 100, "two  words" * 100),
        (r"^(?:[a-z0-9-]+\.)+[a-z]{2,}$", "www.example.org", "example" * 100),
        (r"^([0-9a-f]{2}:){5}[0-9a-f]{2}$", "00:11:22:33:44:ff", "00:11:22:33:44" * 100),
        (r"(?i)^(?is:yes|no)$", "YES", "maybe"),
    ],
)
def test_patterns_as_apps_write_them_are_checked(pattern: str, good: str, bad: str) -> None:
    for draft in ({}, {"$schema": DRAFT_7}):
        assert find_faults(good, {**draft, "pattern": pattern}) == []
        assert len(find_faults(bad, {**draft, "pattern": pattern})) == 1
        by_name = {**draft, "patternProperties": {pattern: {"type": "null"}}, "additionalProperties": False}
        assert len(find_faults({good: None, bad: None}, by_name)) == 1


@pytest.mark.parametrize(
    "pattern",
    [
        r"(a+)+$",
        r"^(a|a)*$",
        r"^(a?){100}$",
        "^" + "a?" * 40 + "a" * 40,
        "^" + "(a|a)" * 40 + "$",
        r"^a*a*a*b",
        r"a*a*b",
        r"^(a*)\1b",
        r"^(?P<x>a)(?P=x)",
        r"^(?=a)",
        r"(?<!a)b",
        r"^(-a?)*(-a*)*(-a*)*b",
        r"^([a-]+-)*$",
        r"^(-[a-]*)*$",
        r"^([é]a*)*$",
        r"(?#:[)(a+)+$(?#])",
        "(?x)(?:#[\n(a+)+$ #]\n)",
        r"^(?:a?){1000000000}",
        r"(?:){1000000000}",
        r"[",
        "a\\",
        "(" * 33 + "a" + ")" * 33,
        "a)",
        "(a",
    ],
)
def test_patterns_that_can_be_tried_in_very_many_ways_are_refused(pattern: str) -> None:
    for value, schema in (
        (LONG, {"pattern": pattern}),
        ({LONG: 1}, {"patternProperties": {pattern: True}}),
        ({LONG: 1}, {"additionalProperties": False, "patternProperties": {pattern: True}}),
    ):
        with pytest.raises(RavelError, match="nothing can be checked by that schema: a pattern") as caught:
            find_faults(value, schema)
        assert caught.value.code == "bad_input"


@pytest.mark.parametrize("pattern", [r"^(?:a?){1000000000}", r"(?:){999999999}"])
def test_what_may_be_empty_is_tried_as_often_as_it_says_on_a_short_text_too(pattern: str) -> None:
    with pytest.raises(RavelError, match="nothing can be checked by that schema: a pattern"):
        find_faults("a", {"pattern": pattern})


@pytest.mark.parametrize(
    "part",
    [
        {"patternProperties": {"(a+)+$": True}},
        {"dependentSchemas": {LONG: {"patternProperties": {"(a+)+$": True}}}},
    ],
)
def test_what_the_library_looks_at_again_without_a_count_was_paid_before(part: dict[str, Any]) -> None:
    schema = {"unevaluatedProperties": False, "$ref": "#/$defs/part", "$defs": {"part": part}}
    with pytest.raises(RavelError, match="a pattern"):
        find_faults({LONG: 1}, {"items": schema, **schema})


def test_on_a_short_text_a_pattern_has_fewer_ways() -> None:
    assert find_faults("a" * 20 + "b", {"pattern": "^a*a*a*b"}) == []


@pytest.mark.parametrize(
    "value, schema, steps",
    [
        ([1] * 10, {"items": {"type": "integer"}}, 12 + 10),
        ("a" * 1280, {"type": "string"}, 11),
        ("a", {"enum": ["b" * 125, "a"]}, 1 + 2 + 1),  # its text has 134 characters
        ([{}] * 10, {"uniqueItems": False}, 11 + 100),
        (["a"] * 10, {"uniqueItems": False}, 11),
        ("a" * 127, {"pattern": "a*b"}, 1 + 3 + 256),
        ("a" * 127, {"pattern": "a{64}b"}, 1 + 6 + 128 * 3 // 64),
        ({"a": 1}, {"additionalProperties": {"const": 1}}, 3 + 1),
        ({}, {"$ref": DRAFT_7}, 1),
    ],
)
def test_a_check_takes_so_many_steps_and_no_more(
    value: object, schema: dict[str, Any], steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema_budget, "STEPS_MAX", steps)
    find_faults(value, schema)
    monkeypatch.setattr(schema_budget, "STEPS_MAX", steps - 1)
    with pytest.raises(RavelError, match="more than"):
        find_faults(value, schema)


def test_references_that_branch_again_and_again_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"d{number}" for number in range(30)]
    twice = {name: {"allOf": [{"$ref": f"#/$defs/{then}"}] * 2} for name, then in pairwise(names)}
    monkeypatch.setattr(schema_budget, "STEPS_MAX", 1000)
    schema = {"$ref": "#/$defs/d0", "$defs": {**twice, "d29": {}}}
    with pytest.raises(RavelError, match="more than 1,000 steps"):
        find_faults(1, schema)
    assert find_faults(1, {**schema, "$ref": "#/$defs/d26"}) == []


def test_a_part_of_another_dialect_is_refused_for_it_would_not_be_counted() -> None:
    schema = {"properties": {"a": {"$schema": DRAFT_7, "pattern": "(a+)+$"}}}
    with pytest.raises(RavelError, match=r"another `\$schema`"):
        find_faults({"a": LONG}, schema)
    assert (
        find_faults({"$schema": 1}, {"$schema": DRAFT_7, "properties": {"$schema": {"type": "integer"}}})
        == []
    )
