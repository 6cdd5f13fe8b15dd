"""Looking at what is there: single commits, a branch as it was, and tangles."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from node.cli.tangle_commands import graphviz
from node.runtime.errors import ServiceError
from node.scuttlebutt.messages import ssb_id
from node.timelines import tangles as tangles_module
from node.timelines.commit_history import describe, list_past
from node.timelines.tangles import TangleQuestion, show_tangle
from protocol.crypto.keys import InvitationSeed
from protocol.crypto.signing import key_pair
from protocol.formats.body import Invite, Permission
from protocol.formats.content import Imported, Post
from protocol.formats.text import id_text
from protocol.ids import AnyId
from ravel.types.timelines import TangleView
from tests.support.builders import World, give


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path / "world")
    world.write("a, a <- b, a <- c, b c <- d, d <- e")
    yield world
    world.close()


def _id(world: World, name: str) -> str:
    return id_text(world.commits[name].commit_id)


def test_a_commit_is_shown_whole(world: World) -> None:
    shown = describe(world.replica, _id(world, "d")[:10])
    assert (shown["verdict"], shown["kind"], shown["text"], shown["rank"]) == ("accepted", "post", "d", 3)
    assert set(shown["acks"]) == {_id(world, "b"), _id(world, "c")}
    assert shown["tangles"] == {"group": [id_text(AnyId(raw)) for raw in _root_heads(world)]}
    for text in ("abc", "zzzzzz", "not an id"):
        with pytest.raises(ServiceError) as caught:
            describe(world.replica, text)
        assert caught.value.code == "not_found"


def _root_heads(world: World) -> tuple[bytes, ...]:
    return world.replica.membership(world.repo.repo_id).operations.heads()


def test_what_waits_is_shown_with_what_it_waits_for(world: World) -> None:
    replica, _ = world.copy()
    give(replica, [world.commits["d"].encoded])
    shown = describe(replica, _id(world, "d"))
    assert shown["verdict"] == "pending"
    assert {_id(world, "b"), _id(world, "c")} <= set(shown["by"])


def test_a_branch_as_it_was_at_a_commit(world: World) -> None:
    past = list_past(world.replica, world.branch, _id(world, "d"), 100)
    assert [item["text"] for item in past["items"]][0:2] == [None, "a"]
    assert [item["text"] for item in past["items"]][-1] == "d"
    assert len(past["items"]) == 5
    assert [item["text"] for item in list_past(world.replica, world.branch, _id(world, "b"), 2)["items"]] == [
        "a",
        "b",
    ]


def test_tangles_of_every_kind_are_shown(world: World) -> None:
    root = world.replica.root_branch(world.repo)
    invitation = Invite(key_pair(InvitationSeed(b"i" * 32))[0], Permission.WRITE, 1, 1)
    world.author.write(root, invitation)
    world.author.write(world.branch, Post("after it"))

    def shown(kind: str, limit: int = 100) -> TangleView:
        question = TangleQuestion(kind, limit)
        return show_tangle(world.replica, world.repo, question, world.branch, world.author.user)

    counts = {kind: shown(kind)["count"] for kind in ("branch", "feed", "group", "members", "epoch")}
    assert counts == {"branch": 7, "feed": 7, "group": 10, "members": 2, "epoch": 1}
    branch = shown("branch", 3)
    commits = branch["commits"]
    assert [item["commit"] for item in commits][:2] == [_id(world, "d"), _id(world, "e")]
    assert (commits[0]["merge"], commits[0]["tip"], commits[2]["tip"]) == (True, False, True)
    drawn = graphviz(branch)
    assert drawn.count("->") == 4
    assert f'"{_id(world, "e")[:12]}" -> "{_id(world, "d")[:12]}";' in drawn
    with pytest.raises(ServiceError, match="a kind is one of"):
        shown("knot")


def test_a_tangle_over_its_bound_is_not_read(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tangles_module, "TANGLE_SHOWN_COMMITS_MAX", 5)
    with pytest.raises(ServiceError) as caught:
        show_tangle(world.replica, world.repo, TangleQuestion("branch", 10), world.branch, world.author.user)
    assert caught.value.code == "too_large"


def _message(author: str, content: dict[str, object]) -> Imported:
    text = json.dumps({"author": author, "content": {"type": "post", **content}})
    return Imported(ssb_id(text)[0], author, 1000, text)


def test_threads_of_imported_messages_are_tangles_across_branches(world: World) -> None:
    other = world.author.founding.create_branch(world.repo, "other")[0]
    root = _message("@a", {})
    stated = {"root": root.source_id, "previous": [root.source_id]}
    first = _message("@b", {"root": root.source_id, "branch": root.source_id})
    second = _message("@c", {"tangles": {"thread": stated, "gathering": stated}})
    both = _message("@a", {"root": root.source_id, "branch": [first.source_id, second.source_id]})
    late = _message("@d", {"root": root.source_id, "branch": "%not-here.sha256"})
    forged = Imported(second.source_id, "@c", 1000, root.text)
    strange = [
        _message("@e", {"root": 7}),
        _message("@e", {"tangles": {"thread": []}}),
        Imported("%", "", 1, "["),
    ]
    for branch, body in (
        *((other, body) for body in (forged, root, second, late)),
        *((world.branch, body) for body in (both, first, *strange)),
    ):
        world.author.write(branch, body)

    def shown(name: str = "thread", message: str = root.source_id) -> TangleView:
        question = TangleQuestion("thread", 100, message=message, name=name)
        return show_tangle(world.replica, world.repo, question, world.branch, world.author.user)

    thread = shown()
    items = {item["source"]: item for item in thread["commits"]}
    assert next(iter(items)) == root.source_id
    assert set(items) == {one.source_id for one in (root, first, second, both)}
    assert [items[one.source_id]["rank"] for one in (root, first, second, both)] == [0, 1, 1, 2]
    assert thread["tips"] == [items[both.source_id]["commit"]]
    assert (items[root.source_id]["branch"], items[both.source_id]["merge"]) == (True, True)
    assert shown("gathering")["count"] == 2
    with pytest.raises(ServiceError) as caught:
        shown(message="%other.sha256")
    assert caught.value.code == "not_found"
