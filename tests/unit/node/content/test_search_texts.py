"""Texts of branches in a search: found by what they say now, gone at once with what became void, and read within bounds."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NoReturn

import pytest
from pycrdt import Doc, Map, Text
from sqlalchemy import func, select, update
from trio.testing import MockClock

from node.content import search_texts as texts_indexer_module
from node.content import texts as texts_module
from node.content.merging import Merging
from node.content.search import Question, Search
from node.content.search_indexer import SearchIndexer
from node.content.search_texts import TextIndexer
from node.content.search_words import parse_query
from node.content.text_process import ClearText, run_worker
from node.content.texts import Texts
from node.runtime.errors import ServiceError
from protocol.formats.document_kinds import TextUpdate
from protocol.formats.text import id_text, parse_id
from protocol.ids import BlockId, ObjectId
from ravel.types.search import SearchHit
from storage.commits.absent_bodies import Erasure, erase_bodies
from storage.commits.blocks import DamagedBlock
from storage.commits.search_texts import load_content
from storage.commits.void_marks import mark_void
from storage.repos.deletion import forget_repo
from storage.repos.repos import Branch, add_repo
from storage.schema.schema import commits
from storage.schema.search_schema import search_parts, search_texts, search_words
from tests.support.builders import give, publications_of
from tests.support.editors import client_id
from tests.support.looking import look_here
from tests.support.nodes import Node, open_nodes


class Editor:
    """A Yjs editor of a branch's texts."""

    def __init__(self, client_id: int = 7) -> None:
        self.document: Doc[Any] = Doc(client_id=client_id)

    def write(self, text: str, root: str = "text", title: str = "") -> bytes:
        """Return the update by which a text says just this."""
        before = self.document.get_state()
        found = self.document.get(root, type=Text)
        del found[:]
        found += text
        if title:
            self.document.get("ravel-titles", type=Map)[root] = title
        return self.document.get_update(before)


@dataclass
class Desk:
    """A node, its index, and an editor of the branch main."""

    node: Node
    main: Branch
    editor: Editor = field(default_factory=Editor)

    def __post_init__(self) -> None:
        self.editor = self.edit(self.main)
        self.texts = Texts(self.node.hub, self.node.author, self.node.branch)
        self.posts_indexer = SearchIndexer(self.node.hub, is_enabled=True)
        self.indexer = TextIndexer(self.node.hub, self.texts)

    def edit(self, branch: Branch, *updates: bytes) -> Editor:
        """Make an editor of a branch, which has taken these updates."""
        editor = Editor(client_id(self.node.author.user, branch.branch_id))
        for one in updates:
            editor.document.apply_update(one)
        return editor

    async def say(self, text: str, root: str = "text", title: str = "") -> str:
        """Write the commit that changes the text so."""
        return str((await self.texts.push("main", self.editor.write(text, root, title)))["commit"])

    async def catch_up(self) -> None:
        """Enter all that is to be entered."""
        while self.posts_indexer.work():
            pass
        await self.indexer.work()

    async def hits(self, query: str, **branches: Branch) -> list[SearchHit]:
        """Return the first hits, as the index is; in all branches unless some are given."""
        chosen = list(branches.values()) or list(self.node.replica.branches.values())
        found = await Search(self.node.hub, is_enabled=True).find(Question(parse_query(query), chosen, 20))
        return found.hits

    async def find(self, query: str) -> list[str | None]:
        """Texts of hits."""
        return [one["text"] for one in await self.hits(query)]

    def num_of(self, commit: str) -> int:
        """Return a commit's number in the store."""
        query = select(commits.c.num).where(commits.c.commit_id == parse_id(commit))
        with self.node.replica.database.read() as connection:
            return int(connection.execute(query).scalar_one())

    def mark(self, commit: str, *, is_void: bool) -> None:
        """Void commits as an exclusion, or the end of one, does."""
        replica = self.node.replica
        with replica.change() as change:
            mark_void(
                replica.database, change.connection, self.main.num, [self.num_of(commit)], is_void=is_void
            )

    def content(self) -> bytes | None:
        """Return the clear text that is kept of main."""
        with self.node.replica.database.read() as connection:
            return load_content(connection, self.main.num)

    def count_words(self) -> int:
        """Entries of texts in the index."""
        query = select(func.count()).select_from(search_words).where(search_words.c.part_num < 0)
        with self.node.replica.database.read() as connection:
            return connection.execute(query).scalar_one()


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    monkeypatch.setattr(texts_module, "run_worker", look_here)
    with open_nodes(tmp_path, "alice") as (node,):
        _, main = node.create_repo()
        yield Desk(node, main)


async def test_a_text_is_found_by_what_it_says_now_and_among_posts(
    desk: Desk, autojump_clock: MockClock
) -> None:
    desk.node.write(desk.main, "a red post")
    await desk.say("a red text")
    last = await desk.say("a red text, and a green one")
    assert await desk.find("red") == []
    await desk.catch_up()
    assert await desk.find("red") == ["a red text, and a green one", "a red post"]
    [hit] = await desk.hits("green")
    assert (hit["kind"], hit["commit"], hit["files"]) == ("text", last, [])
    assert hit["texts"] == [{"root": "text", "title": ""}]
    assert hit["author"] == id_text(desk.node.author.user)
    await desk.say("a blue text")
    await desk.catch_up()
    assert (await desk.find("green"), await desk.find("blue")) == ([], ["a blue text"])
    await desk.say("")
    await desk.catch_up()
    assert (await desk.find("blue"), desk.count_words(), desk.content()) == ([], 0, None)
    desk.node.write(desk.main, "another red post")  # goes into the part of the posts
    await desk.catch_up()
    assert await desk.find("red") == ["another red post", "a red post"]


async def test_each_text_of_a_branch_is_compared_by_itself_and_with_its_title(
    desk: Desk, autojump_clock: MockClock
) -> None:
    await desk.say("milk and bread", root="a", title="Shopping list")
    await desk.say("bread from the oven", root="b")
    await desk.catch_up()
    [hit] = await desk.hits("bread")
    assert hit["texts"] == [{"root": "a", "title": "Shopping list"}, {"root": "b", "title": ""}]
    [hit] = await desk.hits("shopping milk")
    assert hit["texts"] == [{"root": "a", "title": "Shopping list"}]
    assert await desk.find("milk oven") == []


async def test_what_became_void_leaves_the_index_at_once_and_may_come_back(
    desk: Desk, autojump_clock: MockClock
) -> None:
    await desk.say("a lasting word")
    bad = await desk.say("an unwanted word")
    await desk.catch_up()
    assert await desk.find("unwanted") == ["an unwanted word"]
    desk.mark(bad, is_void=True)
    assert (desk.content(), await desk.find("word")) == (None, []), "before anything was read anew"
    await desk.catch_up()
    assert (await desk.find("unwanted"), await desk.find("lasting")) == ([], ["a lasting word"])
    desk.mark(bad, is_void=False)
    assert await desk.find("lasting") == ["a lasting word"], "what comes back takes nothing away"
    await desk.catch_up()
    assert (await desk.find("lasting"), await desk.find("unwanted")) == ([], ["an unwanted word"])


async def test_what_is_erased_leaves_the_index_at_once(desk: Desk, autojump_clock: MockClock) -> None:
    await desk.say("erase me")
    other = Editor(desk.editor.document.client_id + 1).write("other", root="b")
    post = desk.node.author.write(desk.main, TextUpdate(other, ()))[0]
    await desk.catch_up()
    num = desk.num_of(id_text(post.commit_id))
    with desk.node.replica.database.write() as connection:
        row = connection.execute(
            select(commits.c.topic_num, commits.c.block_nums).where(commits.c.num == num)
        )
        erased = Erasure(num, *row.one(), ObjectId(BlockId(bytes(32))))
        erase_bodies(connection, desk.main.num, [erased], 1)
    assert (desk.content(), await desk.find("erase")) == (None, [])
    desk.__post_init__()  # bodies are erased while no daemon runs
    await desk.catch_up()  # now the text cannot be told
    assert (await desk.find("erase"), desk.count_words()) == ([], 0)


async def test_a_fork_is_found_once_it_says_something_of_its_own(
    desk: Desk, autojump_clock: MockClock
) -> None:
    first = await desk.say("a common draft")
    await Merging(desk.node.hub, desk.node.author, desk.node.branch).fork("main", "side", "")
    await desk.catch_up()
    assert [one["branch_name"] for one in await desk.hits("common")] == ["main"]
    side = desk.edit(desk.node.branch("side"), desk.editor.document.get_update())
    await desk.texts.push("side", side.write("a common draft, continued"))
    await desk.catch_up()
    assert [one["branch_name"] for one in await desk.hits("common")] == ["side", "main"]
    desk.mark(first, is_void=True)
    assert await desk.hits("common") == [], "it was a part of both"


async def test_a_fork_that_is_here_before_what_it_continues_is_read_again(
    desk: Desk, tmp_path: Path, autojump_clock: MockClock
) -> None:
    await desk.say("a common draft")
    await Merging(desk.node.hub, desk.node.author, desk.node.branch).fork("main", "side", "")
    here = desk.node.replica
    side = desk.edit(desk.node.branch("side"), desk.editor.document.get_update())
    await desk.texts.push("side", side.write("a common draft, continued"))
    with open_nodes(tmp_path, "bob") as (bob,):
        repo = desk.node.repo()
        with bob.replica.change() as change:
            given = replace(desk.node.epoch(), writers_topic=None)  # as a link gives it
            add_repo(bob.replica.database, change.connection, repo, given)
        there = Desk(bob, desk.main)
        found: list[list[str]] = []
        for branch in (here.root_branch(repo), desk.node.branch("side"), desk.main):
            give(bob.replica, publications_of(here, branch))
            await there.catch_up()
            found.append([one["branch_name"] for one in await there.hits("common continued")])
        assert found == [[], [], ["side"]]
        await there.indexer.work()
        view = await Search(bob.hub, is_enabled=True).view()
        assert view["texts_due"] == 0


async def test_a_note_that_comes_while_a_text_is_read_is_not_lost(
    desk: Desk, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = await desk.say("an unwanted word")
    real = Texts.render

    async def render(texts: Texts, branch: Branch, size: int) -> object:
        monkeypatch.setattr(Texts, "render", real)
        found = await real(texts, branch, size)
        desk.mark(bad, is_void=True)
        return found

    monkeypatch.setattr(Texts, "render", render)
    await desk.catch_up()
    assert (await desk.find("unwanted"), desk.content()) == ([], None)
    await desk.catch_up()
    assert await Search(desk.node.hub, is_enabled=True).view() == {
        "state": "ready",
        "percent": 100,
        "texts_due": 0,
    }


async def test_a_text_is_searched_up_to_its_bounds(
    desk: Desk, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(texts_indexer_module, "SEARCH_TEXT_SIZE_MAX", 16)
    await desk.say("0123 abcdef ghijk")  # and the name of its root has four
    await desk.catch_up()
    assert await desk.find("abcdef") == ["0123 abcdef "]
    assert await desk.find("ghijk") == []
    monkeypatch.setattr(texts_indexer_module, "SEARCH_TEXT_WORDS_MAX", 2)
    await desk.say("aa bb cc")
    await desk.catch_up()
    assert (await desk.find("bb"), await desk.find("cc")) == (["aa bb cc"], [])
    assert desk.count_words() == 2


async def test_a_text_that_the_machine_has_no_room_for_stays_due(
    desk: Desk, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await desk.say("some words")
    real = Texts.render

    async def refuse(*_: object) -> object:
        raise ServiceError("busy", "no room")

    monkeypatch.setattr(Texts, "render", refuse)
    await desk.catch_up()
    assert (await Search(desk.node.hub, is_enabled=True).view())["texts_due"] == 1
    monkeypatch.setattr(Texts, "render", real)
    await desk.catch_up()
    assert await desk.find("words") == ["some words"]


@pytest.mark.parametrize("error", [ServiceError("incomplete", "not here"), DamagedBlock("damaged")])
async def test_a_text_whose_branch_continues_what_is_not_here_stops_nothing(
    desk: Desk, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*_: object, **__: object) -> NoReturn:
        raise error

    await desk.say("some words")
    with monkeypatch.context() as broken:
        broken.setattr(texts_indexer_module, "whole_lineage", fail)
        broken.setattr(Texts, "render", fail)
        await desk.catch_up()
    assert await desk.find("words") == []
    await desk.catch_up()
    assert await desk.find("words") == ["some words"], "what it continues has come"
    post = desk.node.write(desk.main, "a post")  # the posts' indexer goes on
    assert post
    await desk.say("other words")  # and what comes makes it due again
    await desk.catch_up()
    assert await desk.find("words") == ["other words"]


async def test_a_repo_may_be_forgotten_while_its_text_is_read(
    desk: Desk, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await desk.say("some words")

    async def forget(*_: object) -> object:
        with desk.node.replica.change() as change:
            forget_repo(change.connection, desk.main.repo_num)
        raise KeyError(7)

    monkeypatch.setattr(Texts, "render", forget)
    await desk.catch_up()
    assert (await Search(desk.node.hub, is_enabled=True).view())["texts_due"] == 0


async def test_damage_to_the_kept_text_is_no_hit_and_no_failure(
    desk: Desk, autojump_clock: MockClock
) -> None:
    desk.node.write(desk.main, "some post")
    await desk.say("some words")
    await desk.catch_up()
    with desk.node.replica.database.write() as connection:
        connection.execute(update(search_texts).values(content=b"junk"))
    assert await desk.find("some") == ["some post"]


async def test_without_an_index_no_text_is_kept(desk: Desk, autojump_clock: MockClock) -> None:
    await desk.say("some words")
    await desk.catch_up()
    without = SearchIndexer(desk.node.hub, is_enabled=False)
    while without.work():
        pass
    with desk.node.replica.database.read() as connection:
        for table in (search_texts, search_words, search_parts):
            assert connection.execute(select(func.count()).select_from(table)).scalar_one() == 0


@pytest.mark.slow  # it starts a process
def test_the_worker_gives_names_titles_and_texts_up_to_a_size() -> None:
    editor = Editor()
    updates = [editor.write("second", root="b"), editor.write("first", root="a", title="T"), b"junk"]
    found = run_worker(updates, clear_size=100)
    assert found.taken == [True, True, False]
    assert found.clear == [ClearText("a", "T", "first"), ClearText("b", "", "second")]
    assert run_worker(updates, clear_size=8).clear == [ClearText("a", "T", "first")]
    assert run_worker(updates, clear_size=9).clear == [ClearText("a", "T", "first"), ClearText("b", "", "s")]
