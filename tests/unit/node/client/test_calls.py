"""A call is made from an entry of the table and its arguments; every method of the client makes one that is legal."""

import inspect
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import unquote

import pytest

from node.client.calls import CallParts, call_parts
from node.client.client import ApiClient
from node.client.documents import DocumentsClient
from node.client.http_client import HttpClient
from node.client.members import DevicesClient, MembersClient, QuorumsClient
from node.contract.branches import EDIT_BRANCH, FORK_BRANCH
from node.contract.files import LIST_FILES
from node.contract.repos import LIST_REPOS
from node.contract.table import ENDPOINTS, AnyEndpoint
from node.contract.timelines import FOLLOW_EDITS, SHOW_TIMELINE
from tests.support.answers import find_endpoint

VALUES: Final = {
    "str": "x",
    "int": 7,
    "bool": True,
    "str | None": "x",
    "bool | None": True,
    "int | None": 7,
    "bytes": b"x",
}


def test_arguments_go_to_path_query_and_body() -> None:
    assert call_parts(FORK_BRANCH, {"branch": "a/b", "name": "c", "commit": ""}) == CallParts(
        "/branches/a%2Fb/forks", {}, {"name": "c", "commit": ""}
    )
    assert call_parts(LIST_FILES, {"branch": "..", "after": 3}) == CallParts(
        "/branches/%2E%2E/files", {"after": 3}, None
    )
    assert call_parts(LIST_REPOS, {}) == CallParts("/repos", {}, None)


def test_what_is_none_is_left_out_of_a_query_and_kept_in_a_body() -> None:
    assert call_parts(SHOW_TIMELINE, {"branch": "b", "after": None}).query == {}
    assert call_parts(FOLLOW_EDITS, {"branch": "b", "positions": True}).query == {"positions": 1}
    assert call_parts(EDIT_BRANCH, {"branch": "b", "name": None}).body == {"name": None}


def test_a_wrong_argument_is_a_defect_of_the_caller() -> None:
    with pytest.raises(TypeError, match="list_repos does not take colour"):
        call_parts(LIST_REPOS, {"colour": "red"})
    with pytest.raises(KeyError):
        call_parts(LIST_FILES, {})


def _methods() -> dict[str, tuple[str, Callable[..., object]]]:
    """Name -> attribute of ApiClient that holds it, and the method."""
    parts = {"": ApiClient, "documents": DocumentsClient, "members": MembersClient}
    parts |= {"devices": DevicesClient, "quorums": QuorumsClient}
    apart = {"for_home", "close", "call", "page", "watch", "get_file"}
    return {
        f"{part}.{name}".lstrip("."): (part, method)
        for part, kind in parts.items()
        for name, method in inspect.getmembers(kind, inspect.isfunction)
        if not name.startswith("_") and name not in apart
    }


def _value(parameter: inspect.Parameter) -> Any:  # noqa: ANN401  # of the parameter's type
    text = (
        parameter.annotation
        if isinstance(parameter.annotation, str)
        else inspect.formatannotation(parameter.annotation)
    )
    if text in VALUES:
        return VALUES[text]
    return {} if "Mapping[str, str]" in text else []


@pytest.mark.parametrize("name", _methods())
def test_every_method_of_the_client_calls_an_endpoint(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    part, method = _methods()[name]
    asked: list[AnyEndpoint | None] = []

    class Recorder(HttpClient):
        def request(self, method: str, path: str, **_parts: object) -> tuple[int, bytes]:
            asked.append(find_endpoint(method, unquote(path)))
            return 200, b"{}"

    client = ApiClient("http://127.0.0.1:1", "t")
    monkeypatch.setattr(client, "_http", Recorder("http://127.0.0.1:1", {}, 1.0))
    owner = getattr(client, part) if part else client
    wanted = [
        parameter
        for parameter in list(inspect.signature(method).parameters.values())[1:]
        if parameter.kind is not parameter.VAR_KEYWORD
    ]
    given = {parameter.name: _value(parameter) for parameter in wanted}
    getattr(owner, name.rpartition(".")[2])(**given)
    assert len(asked) == 1
    assert asked[0] in ENDPOINTS
