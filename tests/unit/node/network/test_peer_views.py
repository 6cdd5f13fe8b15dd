"""Names of topics are written as text once, and again where something of them has changed."""

from dataclasses import replace
from pathlib import Path

import pytest

from node.ingest.tables import Tables
from node.network import peer_views
from node.network.peer_views import TopicNames
from protocol.formats.content import Post
from protocol.formats.text import id_text
from protocol.ids import Id
from tests.support.nodes import open_nodes


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Ids that were written as text."""
    found: list[bytes] = []

    def note(raw: Id) -> str:
        found.append(raw)
        return id_text(raw)

    monkeypatch.setattr(peer_views, "id_text", note)
    return found


def _look(names: TopicNames, tables: Tables) -> set[str]:
    names.begin_look(tables)
    return {names.find(tables, topic)["name"] for topic in tables.topics.values()}


@pytest.mark.parametrize("count", [2, 6])
def test_a_look_writes_names_of_new_topics_alone_however_many_there_are(
    tmp_path: Path, written: list[bytes], count: int
) -> None:
    with open_nodes(tmp_path, "alice") as (alice,):
        names = TopicNames()
        made = [alice.create_repo(f"repo {number}") for number in range(count)]
        assert _look(names, alice.replica.tables) == {f"repo {number}" for number in range(count)}
        written.clear()
        alice.author.write(made[0][1], Post("words"))
        for _ in range(5):  # of further peers, and later
            _look(names, alice.replica.tables)
        assert written == []
        before = len(alice.replica.topics)
        alice.create_repo("another")
        assert "another" in _look(names, alice.replica.tables)
        assert len(written) == 2 * (len(alice.replica.topics) - before), "repo and epoch"


def test_a_name_is_that_of_now(tmp_path: Path) -> None:
    with open_nodes(tmp_path, "alice") as (alice,):
        names, (repo, _) = TopicNames(), alice.create_repo("old")
        tables = alice.replica.tables
        assert _look(names, tables) == {"old"}
        renamed = {**tables.repos, repo.num: replace(tables.repos[repo.num], name="new")}
        assert _look(names, replace(tables, repos=renamed)) == {"new"}


def test_names_of_topics_that_have_gone_are_forgotten(tmp_path: Path) -> None:
    with open_nodes(tmp_path, "alice") as (alice,):
        names = TopicNames()
        for number in range(3):
            alice.create_repo(f"repo {number}")
        tables = alice.replica.tables
        _look(names, tables)
        assert len(names._kept) == len(tables.topics)
        (num, topic), *_ = tables.topics.items()
        _look(names, replace(tables, topics={num: topic}))
        assert len(names._kept) == 1
