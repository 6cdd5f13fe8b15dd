"""A request is made of an operation and its arguments; every method of both clients makes one that the node serves."""

import inspect
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import unquote

import pytest

from node.contract.table import ENDPOINTS
from ravel import RavelError
from ravel.async_client import AsyncClient
from ravel.callers import operation_of
from ravel.calls.all_calls import AllCalls, AsyncAllCalls
from ravel.client import Client
from ravel.operations import Operation, Request, raw_path, request_of
from ravel.target import Target
from tests.support.answers import find_endpoint
from tests.support.client_modules import FOLDER, modules

CREATE_REPO: Final = operation_of(AllCalls.create_repo)
EDIT_BRANCH: Final = operation_of(AllCalls.edit_branch)
FOLLOW_EDITS: Final = operation_of(AllCalls.follow_edits)
LIST_FILES: Final = operation_of(AllCalls.list_files)
VALUES: Final = {"str": "x", "int": 7, "bool": True, "bytes": b"x"}


def _parts(request: Request) -> tuple[str, Mapping[str, int | str], bytes | None]:
    return request.path.removeprefix("/api/v1"), request.query, request.body


def test_arguments_go_to_path_query_and_body() -> None:
    assert _parts(request_of(operation_of(AllCalls.fork_branch), {"branch": "a/b", "name": "ç"})) == (
        "/branches/a%2Fb/forks",
        {},
        '{"name":"ç"}'.encode(),
    )
    assert _parts(request_of(LIST_FILES, {"branch": "..", "after": 3})) == (
        "/branches/%2E%2E/files",
        {"after": 3},
        None,
    )
    assert _parts(request_of(operation_of(AllCalls.list_repos), {})) == ("/repos", {}, None)
    assert (
        request_of(operation_of(AllCalls.push_text), {"branch": "b", "update": b"\xff"}).body
        == b'{"update":"/w=="}'
    )


def test_what_is_as_the_node_takes_it_by_default_is_not_sent() -> None:
    # An older node knows no argument that came later.
    assert (
        request_of(operation_of(AllCalls.show_timeline), {"branch": "b", "limit": 100, "after": None}).query
        == {}
    )
    assert request_of(FOLLOW_EDITS, {"branch": "b", "positions": True}).query == {"positions": 1}
    assert (
        request_of(EDIT_BRANCH, {"branch": "b", "name": None, "archived": False}).body
        == b'{"archived":false}'
    )
    assert request_of(operation_of(AllCalls.state_me), {"name": None, "color": None}).body == b'{"name":null}'


@pytest.mark.parametrize("name", [float("nan"), {1, 2}, object()])
def test_what_cannot_be_sent_is_refused(name: object) -> None:
    with pytest.raises(RavelError) as caught:
        request_of(CREATE_REPO, {"name": name})
    assert caught.value.code == "bad_request"
    assert caught.value.message.startswith("the request cannot be sent as JSON")
    assert caught.value.advice


def test_a_path_that_cannot_be_sent_is_refused() -> None:
    assert raw_path("/status?x=1") == raw_path("/api/v1/status?x=1") == "/api/v1/status?x=1"
    for path in ("status", "/a b", "/é", "/a\r\nHost: x", ""):
        with pytest.raises(RavelError, match="is no path"):
            raw_path(path)


def test_what_is_not_text_is_refused_wherever_it_stands() -> None:
    wrong = "\ud800"  # what a command line that is not UTF-8 becomes
    for operation, arguments in (
        (CREATE_REPO, {"name": wrong}),
        (LIST_FILES, {"branch": wrong}),
        (FOLLOW_EDITS, {"branch": "b", "since": wrong}),
    ):
        with pytest.raises(RavelError, match="not UTF-8") as caught:
            request_of(operation, arguments)
        assert caught.value.code == "bad_request"


class _Asked(Exception):
    """Ends a call with its request."""


def _asked(operation: Operation[Any], arguments: Mapping[str, object], _content: object = None) -> object:
    raise _Asked(request_of(operation, arguments))


def _value(annotation: str) -> object:
    if annotation in VALUES:
        return VALUES[annotation]
    return (
        {}
        if annotation.startswith("Mapping")
        else []
        if "[" in annotation
        else VALUES[annotation.partition(" ")[0]]
    )


def _methods(kind: type) -> list[str]:
    found = inspect.getmembers(kind, inspect.isfunction)
    return [name for name, _ in found if not name.startswith(("_", "watch_"))]


@pytest.mark.parametrize("name", _methods(AllCalls))
async def test_every_method_of_both_clients_calls_an_endpoint(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = Target("http://127.0.0.1:1", "t")
    waiting, awaiting = Client(target), AsyncClient(target)
    for client in (waiting, awaiting):
        monkeypatch.setattr(client, "_call", _asked)
    assert inspect.iscoroutinefunction(getattr(awaiting, name))
    parameters = inspect.signature(getattr(waiting, name)).parameters
    assert parameters.keys() == inspect.signature(getattr(awaiting, name)).parameters.keys()
    given = {one.name: _value(one.annotation) for one in parameters.values()}
    with pytest.raises(_Asked) as first:
        getattr(waiting, name)(**given)
    with pytest.raises(_Asked) as second:
        await getattr(awaiting, name)(**given)
    (request,), (other,) = first.value.args, second.value.args
    assert request == other
    endpoint = find_endpoint(request.method, unquote(request.path))
    assert endpoint in ENDPOINTS
    assert endpoint is not None
    assert endpoint.name == name


def test_a_method_takes_what_its_signature_says(monkeypatch: pytest.MonkeyPatch) -> None:
    client, asked = Client(Target("http://127.0.0.1:1", "t")), list[tuple[object, ...]]()
    monkeypatch.setattr(client, "_call", lambda *given: asked.append(given))
    client.add_file("main", b"content", name="a")
    client.fork_branch(name="b", branch="main")
    assert [given[1:] for given in asked] == [
        ({"branch": "main", "name": "a"}, b"content"),
        ({"branch": "main", "name": "b", "commit": ""}, None),
    ]
    for name, given, named in (
        ("fork_branch", ("main",), {}),
        ("fork_branch", ("main", "b", "c"), {}),
        ("fork_branch", ("main", "b"), {"comit": "c"}),
        ("fork_branch", ("main", "b"), {"name": "b"}),
        ("watch_edits", ("main",), {"cursor": "c"}),
    ):
        with pytest.raises(TypeError, match=rf"{name}\(\)"):
            getattr(client, name)(*given, **named)
    assert len(asked) == 2


def test_a_method_that_follows_states_the_stream_of_its_client() -> None:
    waiting, awaiting = (inspect.signature(kind.watch_edits) for kind in (AllCalls, AsyncAllCalls))
    assert waiting.parameters == awaiting.parameters
    assert (waiting.return_annotation, awaiting.return_annotation) == ("EventStream", "AsyncEventStream")
    assert AllCalls.watch_edits.__doc__ == AsyncAllCalls.watch_edits.__doc__


def test_the_clients_have_a_method_for_each_endpoint() -> None:
    names = {one.name for one in ENDPOINTS if not one.is_download and one.line is None}
    assert set(_methods(AllCalls)) == set(_methods(AsyncAllCalls)) == names
    for kind in (Client, AsyncClient):
        assert {"get_file", "write_bundle", "watch_edits", "watch_node", "writer"} <= set(dir(kind))


@pytest.mark.slow
def test_the_generated_modules_are_up_to_date() -> None:
    made = modules()
    present = {path: (FOLDER / path).read_text() for path in made if (FOLDER / path).exists()}
    assert {path for path, text in made.items() if present.get(path) != text} == set(), "run `make reference`"
    assert {f"calls/{file.name}" for file in (FOLDER / "calls").glob("*.py")} == set(made)
