"""Commands on documents: what they refuse, and what they leave as it is."""

import json
from typing import Any

import pytest

from node.runtime.errors import ServiceError
from tests.unit.node.cli.conftest import Invoke


@pytest.mark.parametrize("value", ['{"a": 1, "a": 2}', '[{"b": {"a": 1, "c": 1, "a": 1}}]'])
def test_a_value_with_a_key_that_stands_twice_is_refused(invoke: Invoke, value: str) -> None:
    for arguments, stdin in (((value,), ""), (("-",), value)):
        done = invoke("json", "put", "main", "", *arguments, stdin=stdin)
        assert isinstance(done.exception, ServiceError)
        assert done.exception.code == "bad_input"
        assert "the key 'a' stands twice" in done.exception.message


def test_a_line_of_brackets_without_end_is_refused(invoke: Invoke) -> None:
    done = invoke("dict", "put", "main", "-", stdin="[" * 200_000)
    assert isinstance(done.exception, ServiceError)
    assert done.exception.code == "bad_input"


def test_an_absent_key_comes_with_a_list_that_can_be_typed(invoke: Invoke) -> None:
    done = invoke("dict", "rm", "main", "x", edit_dict=lambda **_: {"erased": []})
    assert isinstance(done.exception, ServiceError)
    assert done.exception.advice == "`ravel dict list BRANCH` shows what there is"


def test_a_put_value_is_sent_as_it_was_written(invoke: Invoke) -> None:
    sent: list[Any] = []

    def edit_json(_branch: str, edits: object, **_: object) -> dict[str, object]:
        sent.append(edits)
        return {"commits": []}

    value = {"a": [1, {"a": 2}], "b": {"a": None}}
    assert invoke("json", "put", "main", "", json.dumps(value), edit_json=edit_json).exit_code == 0
    assert sent[0][0]["value"] == value


@pytest.mark.parametrize("sort", ["", "due"], ids=["by name", "sorted"])
@pytest.mark.parametrize("limit, has_more", [(1, True), (2, True), (3, False), (4, False)])
def test_a_query_says_whether_there_are_more(invoke: Invoke, sort: str, limit: int, has_more: bool) -> None:
    def find(_branch: str, *, cursor: str, limit: int, **_: object) -> dict[str, object]:
        start = int(cursor or 0)
        found = [{"name": str(one), "value": one} for one in range(3)][start : start + limit]
        end = start + len(found)
        return {"documents": found, "unreadable": [], "cursor": str(end) if not sort and end < 3 else None}

    options = ("--sort", sort, "--limit", str(limit), "--json")
    done = invoke("json", "query", "main", *options, follow_json_documents=find)
    answer = json.loads(done.stdout)
    assert (len(answer["documents"]), answer["more"]) == (min(limit, 3), has_more)
    assert ("there are more than" in done.stderr) == has_more


@pytest.mark.parametrize(
    "arguments, answer, said",
    [
        (("json", "put", "main", "due", "1"), {"commits": ["c" * 52]}, "Put due."),
        (("json", "put", "main", "", "1"), {"commits": ["c" * 52]}, "Put the whole document."),
        (("json", "put", "main", "due", "1"), {"commits": []}, "Nothing to write: it has that value."),
        (("json", "rm", "main", "due"), {"commits": ["c" * 52]}, "Deleted due."),
        (("document", "rename", "main", "set", "Plants"), {"title": "Plants"}, "Its title is Plants now."),
        (("document", "rename", "main", "set", ""), {"title": ""}, "It has no title any more."),
        (
            ("document", "rm", "main", "set"),
            {"commits": []},
            "Hidden from the list. Its next write shows it again.",
        ),
        (("set", "snapshot", "main"), {"commits": ["c"]}, "Wrote its content again, in 1 commit."),
        (("set", "snapshot", "main"), {"commits": []}, "Nothing to write: it is compacted already."),
    ],
    ids=lambda one: " ".join(one) if isinstance(one, tuple) else "",
)
def test_a_change_of_a_document_is_said_in_a_sentence(
    invoke: Invoke, arguments: tuple[str, ...], answer: dict[str, object], said: str
) -> None:
    names = ("edit_json", "rename_document", "remove_document", "snapshot_set")
    done = invoke(*arguments, **dict.fromkeys(names, lambda *_, **__: answer))
    assert done.output == f"{said}\n"


def test_lines_that_were_written_are_counted(invoke: Invoke) -> None:
    done = invoke("set", "add", "main", "-", stdin="pears\nplums\n", edit_set=lambda **_: {"added": []})
    assert done.stdout == "2 items written.\n"
    done = invoke("dict", "put", "main", "-", stdin='{"a": "b"}\n', edit_dict=lambda **_: {"put": ["a"]})
    assert done.stdout == "1 line written.\n"
