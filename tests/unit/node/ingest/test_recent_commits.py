"""Posts that were just written: shown as the store has them, without a look at their blocks, while their bodies are here."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import Connection

from node.authoring.drafting import Draft, WrittenCommit
from node.ingest.recent_commits import RecentCommits
from node.timelines import commit_fields
from node.timelines.commit_fields import load_fields
from node.timelines.views import timeline_items
from protocol.formats.content import Files, Imported, Post
from protocol.ids import CommitId
from ravel.types.commits import ContentFields
from storage.commits.commits import TimelineRow, load_rows
from storage.engine.id_keys import BLOCK_NUM_SIZE, PackedNums
from storage.repos.repos import Branch
from tests.support.nodes import Node, open_nodes
from verifier.posts import Relation, make_place


@pytest.fixture
def written(tmp_path: Path) -> Iterator[tuple[Node, list[TimelineRow]]]:
    """A node that has just written a post, an answer, an imported commit and a long post."""
    with open_nodes(tmp_path, "alice") as (alice,):
        _, branch = alice.create_repo()
        first = _write(alice, branch, Draft(Post("a")))
        answer = make_place(Relation.REPLY, first.commit_id, first.commit_id)
        imported = Imported("x", "Ann <ann@example.org>", 1_600_000_000_000, "b")
        drafts = [Draft(Post("c"), tangles=(answer,)), Draft(imported), Draft(Post("d" * 5000))]
        ids = [first.commit_id, *(_write(alice, branch, draft).commit_id for draft in drafts)]
        yield alice, _rows(alice, ids)


def _write(node: Node, branch: Branch, draft: Draft) -> WrittenCommit:
    commit, _ = node.author.write(branch, draft)
    return commit


def _rows(node: Node, ids: list[CommitId]) -> list[TimelineRow]:
    with node.replica.database.read() as connection:
        rows = load_rows(connection, ids)
    return [rows[one] for one in ids]


def _fields(node: Node, rows: list[TimelineRow]) -> list[ContentFields]:
    with node.replica.database.read() as connection:
        return load_fields(connection, node.replica, rows)


def test_they_are_shown_as_they_are_when_they_are_read(written: tuple[Node, list[TimelineRow]]) -> None:
    alice, rows = written
    recent = _fields(alice, rows)
    alice.replica.recent_commits = RecentCommits()
    assert recent == _fields(alice, rows)
    assert [one["text"] for one in recent] == ["a", "c", "b", "d" * 5000]


def test_blocks_of_long_ones_alone_are_read(
    written: tuple[Node, list[TimelineRow]], monkeypatch: pytest.MonkeyPatch
) -> None:
    alice, rows = written
    read: list[TimelineRow] = []
    real = vars(commit_fields)["load_whole_blocks"]

    def load(connection: Connection, some: Sequence[TimelineRow]) -> dict[int, list[bytes]]:
        read.extend(some)
        return dict(real(connection, some))

    monkeypatch.setattr(commit_fields, "load_whole_blocks", load)
    with alice.replica.database.read() as connection:
        timeline_items(connection, alice.replica, rows, 0)
    assert read == rows[3:]


def test_one_whose_body_is_gone_is_not_shown_from_memory(written: tuple[Node, list[TimelineRow]]) -> None:
    alice, rows = written
    erased = replace(rows[0], block_nums=PackedNums(rows[0].block_nums[:BLOCK_NUM_SIZE]))
    assert _fields(alice, [erased])[0]["text"] is None


def test_the_latest_are_kept(
    monkeypatch: pytest.MonkeyPatch, written: tuple[Node, list[TimelineRow]]
) -> None:
    monkeypatch.setattr("node.ingest.recent_commits._COUNT_MAX", 2)
    alice, rows = written
    found = [alice.replica.recent_commits.find(row.commit_id) for row in rows[:3]]
    recent = RecentCommits()
    for one in found:
        assert one is not None
        recent.note(*one)
    assert [recent.find(row.commit_id) for row in rows[:3]] == [None, *found[1:]]
    recent.note(found[0][0], Files(()))  # type: ignore[index]
    assert recent.find(rows[0].commit_id) is None
