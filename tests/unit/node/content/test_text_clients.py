"""Client ids of a text's editors: each to one editor, also over restarts; used again where the text stands."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from node.content import text_clients as clients_module
from node.content import texts as texts_module
from node.content.texts import Texts
from node.runtime.errors import ServiceError
from protocol.formats.document_kinds import TEXT_SESSION_BITS
from protocol.formats.text import parse_id
from protocol.limits.users import TEXT_SESSION_REST_SECONDS
from storage.commits.local_state import load_sessions, put_session
from storage.commits.void_marks import load_judged, mark_void
from tests.support.editors import Editor, client_of
from tests.support.ids import as_commit_id
from tests.support.looking import look_here
from tests.support.nodes import Node, open_nodes
from verifier.texts import is_client_of

FEW = 8
"""Sessions, in place of 8,192: a power of two as well."""


@pytest.fixture
def alice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Node]:
    monkeypatch.setattr(texts_module, "run_worker", look_here)
    with open_nodes(tmp_path, "alice") as (node,):
        node.create_repo()
        yield node


def _texts(node: Node) -> Texts:
    return Texts(node.hub, node.author, node.branch)


async def _give(node: Node) -> int:
    return (await _texts(node).open("main"))["client"]


def _rest(node: Node) -> None:
    """Let all sessions have rested."""
    with node.replica.database.write() as connection:
        for session in load_sessions(connection, node.branch().num):
            put_session(connection, node.branch().num, session, 1)


async def test_each_editor_gets_an_id_of_its_own_also_beside_each_other_and_after_a_restart(
    alice: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients_module, "_SESSIONS", FEW)
    given: list[int] = []

    async def give() -> None:
        given.append(await _give(alice))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(give)
        nursery.start_soon(give)
    alice.replica.close()
    alice.open()
    given += [await _give(alice) for _ in range(FEW - 3)]
    assert len(set(given)) == len(given) == FEW - 1, "the node's own is given to nobody"
    own = client_of(alice, session=0)
    assert all(is_client_of(client, own >> TEXT_SESSION_BITS) and client != own for client in given)
    with pytest.raises(ServiceError, match="all 7 client ids") as caught:
        await _give(alice)
    assert caught.value.code == "busy"


async def test_one_that_is_in_the_text_is_not_given_though_nobody_noted_it(
    alice: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients_module, "_SESSIONS", FEW)
    for session in range(1, FEW - 1):
        await _texts(alice).push("main", Editor(client_of(alice, session=session)).write(0, "x"))
    assert await _give(alice) == client_of(alice, session=FEW - 1)


async def test_one_that_has_rested_is_given_again_where_the_text_stands(
    alice: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients_module, "_SESSIONS", 2)
    first = await _texts(alice).open("main")
    assert first["clock"] == 0
    pushed = await _texts(alice).push("main", Editor(first["client"]).write(0, "words"))
    monkeypatch.setattr(alice.hub, "clock_ms", lambda: 2 * TEXT_SESSION_REST_SECONDS * 1000)
    _rest(alice)
    again = await _texts(alice).open("main")
    assert again == {**first, "clock": 5}
    with pytest.raises(ServiceError, match="were given"):
        await _give(alice)
    _rest(alice)
    branch, database = alice.branch(), alice.replica.database
    with database.write() as connection:
        (judged,) = load_judged(connection, branch.num, [as_commit_id(parse_id(str(pushed["commit"])))])
        mark_void(database, connection, branch.num, [judged.num], is_void=True)
    alice.hub.topics_changed()
    with pytest.raises(ServiceError, match="were given"):
        await _give(alice)  # its clocks may come back
