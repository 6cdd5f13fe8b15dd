"""Search on a whole node: what is shown is found, and nothing else; windows, bounds, and an index that is caught up."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import trio
from sqlalchemy import Connection, func, select
from trio.testing import MockClock

from node.authoring.author import Author
from node.authoring.drafting import Draft
from node.cli.wording import author_of
from node.content import search as search_module
from node.content import search_indexer as indexer_module
from node.content.erasing import erase_store
from node.content.file_batch import EncryptedFile, draft_files
from node.content.posts import Posts
from node.content.search import Question, Search, parse_cursor
from node.content.search_indexer import SearchIndexer, pause_after
from node.content.search_words import parse_query
from node.ingest.recent_commits import RecentCommits
from node.runtime.errors import ServiceError
from protocol.crypto.keys import BlockKey, UserSeed
from protocol.formats.block import Reference
from protocol.formats.body import Carried, Grant, Permission, encode_body
from protocol.formats.content import Compaction, Imported, Post
from protocol.formats.text import id_text, parse_id
from protocol.ids import BlockId, CommitId, ObjectId, UserId
from ravel.types.search import SearchHit
from storage.commits import search_index as index_module
from storage.commits.commits import TimelineRow
from storage.commits.search_index import IndexItem, PartChange, measure_progress, queue_for_index
from storage.engine.errors import StorageError
from storage.engine.id_keys import pack_nums, unpack_nums
from storage.repos.deletion import forget_repo
from storage.repos.repos import Branch
from storage.schema.schema import commits
from storage.schema.search_schema import search_parts, search_queue, search_state, search_words
from tests.support.builders import STORE_KEY
from tests.support.nodes import Node, open_nodes
from verifier.posts import Relation, make_place


@dataclass
class Room:
    """A branch on one node, and its index."""

    node: Node
    branch: Branch
    indexer: SearchIndexer

    @property
    def posts(self) -> Posts:
        """Return the service of its user."""
        return Posts(self.node.hub, self.node.author, self.node.branch)

    async def write(self, text: str) -> str:
        """Return a post's id."""
        return (await self.posts.write("main", text))["commit"]

    def catch_up(self) -> None:
        """Enter all that is to be entered."""
        while self.indexer.work():
            pass

    async def find(self, query: str, **more: Any) -> list[str | None]:  # noqa: ANN401  # fields of Question
        """Texts of the hits, or names of their files, after the index was caught up."""
        self.catch_up()
        hits = await self.hits(query, **more)
        return [one["text"] if one["text"] is not None else ", ".join(one["files"]) for one in hits]

    async def hits(self, query: str, **more: Any) -> list[SearchHit]:  # noqa: ANN401  # fields of Question
        """Return the first hits."""
        question = Question(parse_query(query), [self.branch], 20)
        search = Search(
            self.node.hub, is_enabled=True, clock=lambda: 0.0
        )  # no bound of time, which hangs on the machine
        found = await search.find(replace(question, **more))
        return found.hits

    def num_of(self, post: str) -> int:
        """Return a commit's number in the store."""
        query = select(commits.c.num).where(commits.c.commit_id == parse_id(post))
        with self.node.replica.database.read() as connection:
            return int(connection.execute(query).scalar_one())

    def look_again(self, *nums: int) -> None:
        """Note that their bodies have come or gone."""
        with self.node.replica.database.write() as connection:
            queue_for_index(connection, nums)

    def count_queued(self) -> int:
        """Commits that wait to be looked at again."""
        with self.node.replica.database.read() as connection:
            return connection.execute(select(func.count()).select_from(search_queue)).scalar_one()

    def count_words(self) -> int:
        """Rows of the index."""
        with self.node.replica.database.read() as connection:
            return connection.execute(select(func.count()).select_from(search_words)).scalar_one()


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    with open_nodes(tmp_path, "alice") as (node,):
        _, branch = node.create_repo()
        yield Room(node, branch, SearchIndexer(node.hub, is_enabled=True))


def _commit_id(text: str) -> CommitId:
    return CommitId(BlockId(parse_id(text)))


async def test_posts_are_found_the_latest_first(room: Room) -> None:
    for text in ("a red house", "a green house", "a red tree"):
        await room.write(text)
    assert await room.find("red") == ["a red tree", "a red house"]
    assert await room.find("house") == ["a green house", "a red house"]
    assert await room.find("red house") == ["a red house"]
    assert await room.find('"house red"') == []
    await room.write("another red one")
    assert (await room.find("red"))[0] == "another red one"
    [hit] = await room.hits("tree")
    assert (hit["kind"], hit["branch_name"], hit["repo_name"]) == ("post", "main", "repo")
    assert hit["author"] == id_text(room.node.author.user)


async def test_a_post_is_found_by_what_it_says_now(room: Room) -> None:
    post = await room.write("the first version")
    await room.write("between")
    await room.posts.edit(post, "the second version")
    assert await room.find("first") == []
    assert await room.find("second") == ["the second version"]
    assert await room.find("version") == ["the second version"]  # once, and in the post's place
    [hit] = await room.hits("second")
    assert hit["commit"] == post
    assert "edited_at" in hit
    await room.posts.edit(post, "the third version")
    assert await room.find("second") == []
    assert [one["commit"] for one in await room.hits("third")] == [post]


async def test_an_edit_keeps_the_posts_place(room: Room) -> None:
    post = await room.write("old")
    await room.write("same between")
    await room.posts.edit(post, "same edited")
    assert await room.find("same") == ["same between", "same edited"]
    question = Question(parse_query("same"), [room.branch], 1)
    search = Search(room.node.hub, is_enabled=True)
    first = await search.find(question)
    assert first.cursor is not None
    second = await search.find(replace(question, before=parse_cursor(first.cursor)))
    assert [one["text"] for one in (*first.hits, *second.hits)] == ["same between", "same edited"]


async def test_anothers_edit_is_a_post_of_its_own(room: Room) -> None:
    post = await room.write("mine")
    bob = Author(room.node.replica, UserSeed(b"bob".ljust(32)), lambda: 1_700_000_000_000)
    root = room.node.replica.root_branch(room.node.repo())
    room.node.author.write(root, Grant(bob.user, Permission.WRITE))
    bob.write(room.branch, Draft(Post("yours"), tangles=(make_place(Relation.EDIT, _commit_id(post)),)))
    assert await room.find("yours") == ["yours"]
    assert await room.find("mine") == ["mine"]
    found = await room.find("yours", authors={room.branch.repo_num: frozenset({bob.user})})
    assert found == ["yours"]
    assert await room.find("mine", authors={room.branch.repo_num: frozenset({bob.user})}) == []
    assert await room.find("mine", authors={}) == []


async def test_deleted_and_hidden_posts_are_not_found(room: Room) -> None:
    gone, hidden = await room.write("secret one"), await room.write("secret two")
    await room.posts.edit(gone, "secret one, edited")
    assert len(await room.find("secret")) == 2
    await room.posts.delete(gone)
    await room.posts.hide(hidden, hidden=True)
    assert await room.find("secret") == []
    await room.posts.hide(hidden, hidden=False)
    assert await room.find("secret") == ["secret two"]


async def test_void_posts_are_not_found_and_come_back(room: Room) -> None:
    bob = Author(room.node.replica, UserSeed(b"bob".ljust(32)), lambda: 1_700_000_000_000)
    root = room.node.replica.root_branch(room.node.repo())
    room.node.author.write(root, Grant(bob.user, Permission.WRITE))
    written, _ = bob.write(room.branch, Post("unseen"))
    assert await room.find("unseen") == ["unseen"]
    with room.node.replica.database.write() as connection:  # as an exclusion would
        connection.execute(
            commits.update().where(commits.c.commit_id == written.commit_id).values(is_void=True)
        )
    assert await room.find("unseen") == []
    with room.node.replica.database.write() as connection:
        connection.execute(commits.update().values(is_void=False))
    assert await room.find("unseen") == ["unseen"]


async def test_erased_posts_leave_the_index(room: Room, tmp_path: Path) -> None:
    await room.write("erase everything")
    room.node.author.write(room.branch, Post("a lasting word"))
    room.catch_up()
    before = room.count_words()
    room.node.author.write(room.branch, Compaction(()))
    room.node.replica.close()
    erase_store(tmp_path / "alice", STORE_KEY, 2**53, 1)
    room.node.open()
    room.indexer = SearchIndexer(room.node.hub, is_enabled=True)
    assert await room.hits("everything") == []  # also before the index was looked at again
    assert await room.find("everything") == []
    assert room.count_words() < before


async def test_what_comes_later_is_entered(room: Room) -> None:
    # A commit that was looked at while its body was absent; and one that is noted before it is looked at.
    post = await room.write("late words")
    room.catch_up()
    with room.node.replica.database.read() as connection:
        num = connection.execute(
            select(commits.c.num).where(commits.c.commit_id == parse_id(post))
        ).scalar_one()
    for _ in range(2):
        with room.node.replica.database.write() as connection:
            queue_for_index(connection, [num])
        assert await room.find("late") == ["late words"]
    await room.write("later words")
    with room.node.replica.database.write() as connection:
        queue_for_index(connection, [num + 1])
    assert await room.find("words") == ["later words", "late words"]


async def test_names_of_files_and_imported_posts(room: Room) -> None:
    reference = Reference(ObjectId(BlockId(bytes(32))), BlockKey(b"k" * 32))
    files = [EncryptedFile(name, 1, reference) for name in ("Report_2024.pdf", "picture.png")]
    for file in files:
        room.node.author.write(room.branch, draft_files([file]))
    room.node.author.write(room.branch, Imported("1", "ann", 1_000_000, "An imported report"))
    assert await room.find("report") == ["An imported report", "Report_2024.pdf"]
    assert await room.find("report picture") == []  # words of one name
    [hit, _] = await room.hits("report")
    assert (hit["time"], hit["imported_author"]) == (1000, "ann")


async def test_what_a_merge_carried_is_its_authors_and_not_of_who_merged(room: Room) -> None:
    own, bob = room.node.author.user, UserId(bytes(31) + b"b")
    elsewhere = _commit_id(id_text(CommitId(BlockId(b"c" * 32))))
    body = encode_body(Post("brought along"))
    room.node.author.write(room.branch, Carried(room.branch.branch_id, elsewhere, bob, 1_000_000, body))
    await room.write("brought by hand")
    num = room.branch.repo_num
    assert await room.find("brought", authors={num: frozenset({bob})}) == ["brought along"]
    assert await room.find("brought", authors={num: frozenset({own})}) == ["brought by hand"]
    [hit] = await room.hits("along")
    assert hit["origin"]["author"] == id_text(bob)
    assert author_of(hit) == id_text(bob)[:12]


async def test_times_and_windows(room: Room) -> None:
    texts = [f"word number {number}" for number in range(7)]
    for text in texts:
        await room.write(text)
    room.catch_up()
    search = Search(room.node.hub, is_enabled=True)
    question = Question(parse_query("word"), [room.branch], 3)
    seen: list[str | None] = []
    for _ in range(4):
        found = await search.find(question)
        seen += [one["text"] for one in found.hits]
        if found.cursor is None:
            break
        question = replace(question, before=parse_cursor(found.cursor))
    assert seen == texts[::-1]
    with room.node.replica.database.read() as connection:
        times = list(connection.execute(select(commits.c.display_time).order_by(commits.c.num)).scalars())
    since, until = times[-5], times[-2]
    assert await room.find("word", since=since, until=until) == texts[-2:-6:-1]
    for text in ("", "1", "a.b", "9" * 20 + ".1", "1.2.3"):
        with pytest.raises(ServiceError, match="no cursor") as caught:
            parse_cursor(text)
        assert caught.value.code == "bad_request"


async def test_a_search_that_takes_long_goes_on(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_module, "SEARCH_PART_COUNT_MAX", 8)
    for number in range(12):
        await room.write(f"common {'rare' if number == 0 else 'other'} word{number}")
    room.catch_up()
    ticks = iter(range(10_000))
    search = Search(room.node.hub, is_enabled=True, clock=lambda: float(next(ticks)))
    question = Question(parse_query("common rare"), [room.branch], 20)
    seen, rounds = [], 0
    while True:
        found = await search.find(question)
        seen += [one["text"] for one in found.hits]
        rounds += 1
        if found.cursor is None:
            break
        question = replace(question, before=parse_cursor(found.cursor))
    assert seen == ["common rare word0"]
    assert 1 < rounds < 20


async def test_each_post_may_be_the_last_for_which_there_is_time(room: Room) -> None:
    """Posts may be long: the time is asked for after each, also one that does not fit, and one is always looked at."""
    for number in range(5):
        await room.write("confer" if number == 2 else "conf" if number == 0 else "cone")
    room.catch_up()
    ticks = iter(range(10_000))
    search = Search(room.node.hub, is_enabled=True, clock=lambda: float(next(ticks)))
    question = Question(parse_query("conf*"), [room.branch], 20)
    seen, counts = [], []
    while True:
        found = await search.find(question)
        seen += [one["text"] for one in found.hits]
        counts.append(len(found.hits))
        if found.cursor is None:
            break
        assert parse_cursor(found.cursor) < question.before
        question = replace(question, before=parse_cursor(found.cursor))
    assert seen == ["confer", "conf"]
    assert counts == [0, 0, 0, 1, 0, 1]  # the first has no time for a post


async def test_as_many_are_opened_as_may_be(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_module, "SEARCH_OPENED_MAX", 4)
    monkeypatch.setattr(search_module, "SEARCH_OPENED_AT_ONCE", 2)
    for number in range(9):  # the index knows beginnings of three letters
        await room.write(f"conn{number}" if number else "conf")
    room.catch_up()
    search = Search(room.node.hub, is_enabled=True)
    question = Question(parse_query("conf*"), [room.branch], 20)
    first = await search.find(question)
    assert first.hits == []
    assert first.cursor is not None
    second = await search.find(replace(question, before=parse_cursor(first.cursor)))
    assert second.hits == []
    assert second.cursor is not None
    third = await search.find(replace(question, before=parse_cursor(second.cursor)))
    assert [one["text"] for one in third.hits] == ["conf"]
    assert third.cursor is None


async def test_a_forgotten_repo_is_not_found(room: Room) -> None:
    await room.write("forget me")
    room.catch_up()
    with room.node.replica.change() as change:
        forget_repo(change.connection, room.branch.repo_num)
    assert await room.find("forget") == []
    assert room.count_words() == 0


@pytest.mark.parametrize("step", ["load_numbered", "timeline_items", "load_added"])
async def test_a_repo_may_be_forgotten_during_a_search(
    room: Room, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Memory then no longer knows what this moment of the store has."""
    await room.write("forget me")
    room.catch_up()
    real: Callable[..., object] = vars(search_module)[step]

    def forget_first(*values: object) -> object:
        with room.node.replica.change() as change:
            forget_repo(change.connection, room.branch.repo_num)
        return real(*values)

    monkeypatch.setattr(search_module, step, forget_first)
    assert await room.hits("forget") == []


async def test_an_old_store_is_indexed_in_slices(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexer_module, "SEARCH_OPENED_AT_ONCE", 2)
    monkeypatch.setattr(indexer_module, "SEARCH_SLICE_SECONDS", 0.0)
    monkeypatch.setattr(indexer_module, "SEARCH_BATCH_COUNT_MAX", 12)
    search = Search(room.node.hub, is_enabled=True)
    for number in range(9):
        await room.write(f"word number{number}")
    assert (await search.find(Question(parse_query("word"), [room.branch], 20))).hits == []
    states = [(await search.view())["percent"]]
    while room.indexer.work():
        states.append((await search.view())["percent"])
        if len(states) == 6:  # a daemon that was stopped goes on where it was
            room.indexer = SearchIndexer(room.node.hub, is_enabled=True)
    assert states == sorted(states)
    assert states[0] < 100
    assert await search.view() == {"state": "ready", "percent": 100, "texts_due": 0}
    assert len(await room.hits("word")) == 9


async def test_other_rules_make_the_index_anew(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    await room.write("a word")
    room.catch_up()
    monkeypatch.setattr(indexer_module, "RULES", 99)
    monkeypatch.setattr(search_module, "RULES", 99)
    room.indexer.work()
    assert room.count_words() == 0
    assert await room.find("word") == ["a word"]


@pytest.mark.parametrize("is_enabled", [True, False])
async def test_a_removal_that_was_interrupted_is_ended(
    room: Room, monkeypatch: pytest.MonkeyPatch, *, is_enabled: bool
) -> None:
    # After a change of rules, and where the index was switched off and on again meanwhile.
    monkeypatch.setattr(index_module, "SEARCH_PART_COUNT_MAX", 1)
    for _ in range(3):
        await room.write("a word")
    room.catch_up()
    words = room.count_words()
    if is_enabled:
        monkeypatch.setattr(indexer_module, "RULES", 99)
    assert SearchIndexer(room.node.hub, is_enabled=is_enabled).work()
    room.catch_up()
    assert room.count_words() == words
    with room.node.replica.database.read() as connection:
        assert connection.execute(select(func.count()).select_from(search_parts)).scalar_one() == 3


@pytest.mark.parametrize("is_indexed", [True, False])
async def test_a_body_that_goes_while_it_is_read_is_looked_at_again(
    room: Room, monkeypatch: pytest.MonkeyPatch, *, is_indexed: bool
) -> None:
    # It is noted while its older note is worked off; in the end nothing of it is in the index.
    room.indexer.work()
    num = room.num_of(await room.write("erase everything"))
    if is_indexed:
        room.catch_up()
    room.look_again(num)
    real, looked = index_module.prepare_items, []

    def erase_first(connection: Connection, *values: Any) -> list[PartChange]:  # noqa: ANN401  # passed on
        monkeypatch.setattr(indexer_module, "prepare_items", real)
        looked.append(num)
        with room.node.replica.database.write() as writer:
            row = commits.c.num == num
            own = unpack_nums(writer.execute(select(commits.c.block_nums).where(row)).scalar_one())[:1]
            writer.execute(commits.update().where(row).values(block_nums=pack_nums(own)))
            queue_for_index(writer, [num])
        return real(connection, *values)

    monkeypatch.setattr(indexer_module, "prepare_items", erase_first)
    while not looked:
        room.indexer.work()
    assert room.count_queued() == 1
    room.catch_up()
    assert (room.count_queued(), room.count_words()) == (0, 0)


async def test_what_this_node_has_just_written_is_indexed_without_reading_it(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[TimelineRow] = []
    real = vars(indexer_module)["load_whole_blocks"]

    def note(connection: Connection, rows: list[TimelineRow]) -> dict[int, list[bytes]]:
        read.extend(rows)
        found: dict[int, list[bytes]] = real(connection, rows)
        return found

    monkeypatch.setattr(indexer_module, "load_whole_blocks", note)
    await room.write("fresh words")
    assert await room.find("fresh") == ["fresh words"]
    assert read == []
    await room.write("long " * 1000)
    assert len(await room.find("long")) == 1
    assert len(read) == 1


@pytest.mark.parametrize("is_indexed", [True, False])
async def test_a_commit_that_is_restored_while_it_is_read_is_looked_at_again(
    room: Room, monkeypatch: pytest.MonkeyPatch, *, is_indexed: bool
) -> None:
    room.indexer.work()
    num = room.num_of(await room.write("late words"))
    room.node.replica.recent_commits = RecentCommits()
    if is_indexed:
        room.catch_up()
    room.look_again(num)
    real = vars(indexer_module)["load_whole_blocks"]

    def damaged_once(connection: Connection, rows: list[TimelineRow]) -> dict[int, list[bytes]]:
        if rows:
            monkeypatch.setattr(indexer_module, "load_whole_blocks", real)
        return {}

    monkeypatch.setattr(indexer_module, "load_whole_blocks", damaged_once)
    room.indexer.work()
    assert (room.count_queued(), room.count_words()) == (1, 0)
    assert await room.find("late") == ["late words"]
    assert room.count_queued() == 0


async def test_each_part_is_rewritten_in_a_transaction_of_its_own(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_module, "SEARCH_PART_COUNT_MAX", 1)
    nums = [room.num_of(await room.write("words")) for _ in range(2)]
    room.catch_up()
    before = room.count_words()
    room.look_again(*nums)
    real: Callable[..., None] = vars(index_module)["_rewrite"]
    rewritten: list[object] = []

    def rewrite_one(*values: object) -> None:
        if rewritten:
            raise StorageError("the disk is full")
        rewritten.append(values)
        real(*values)

    monkeypatch.setattr(index_module, "_rewrite", rewrite_one)
    with pytest.raises(StorageError):
        room.indexer.work()
    assert room.count_words() == before // 2  # the first is kept
    assert room.count_queued() == 2
    monkeypatch.undo()
    assert await room.find("words") == ["words", "words"]


async def test_progress_is_kept_where_commits_have_no_words(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexer_module, "SEARCH_OPENED_AT_ONCE", 1)
    monkeypatch.setattr(indexer_module, "SEARCH_SLICE_SECONDS", 0.0)
    monkeypatch.setattr(indexer_module, "SEARCH_BATCH_SPAN_MAX", 2)
    for _ in range(9):
        await room.write("…")
    entered: list[int] = []

    def prepare(connection: Connection, key: object, items: Sequence[IndexItem]) -> list[PartChange]:
        entered.append(len(items))
        return []

    monkeypatch.setattr(indexer_module, "prepare_items", prepare)
    seen = set()
    while room.indexer.work():
        with room.node.replica.database.read() as connection:
            seen.add(measure_progress(connection)[0])
    first, *steps = sorted(seen - {0})
    assert steps == [first + 3, first + 6]
    assert set(entered) == {0}  # none is kept in memory until then


async def test_without_an_index(room: Room) -> None:
    await room.write("a word")
    room.catch_up()
    room.indexer = SearchIndexer(room.node.hub, is_enabled=False)
    await room.indexer.run()
    assert room.count_words() == 0
    search = Search(room.node.hub, is_enabled=False)
    assert await search.view() == {"state": "off", "percent": 0, "texts_due": 0}
    with pytest.raises(ServiceError, match="left out") as caught:
        await search.find(Question(parse_query("word"), [room.branch], 20))
    assert caught.value.code == "not_permitted"


async def test_new_posts_are_entered_while_the_node_runs(room: Room, autojump_clock: MockClock) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(room.indexer.run)
        await room.write("hello there")
        await trio.sleep(1)
        assert await room.hits("hello")
        await room.write("hello again")
        await trio.sleep(1)
        assert len(await room.hits("hello")) == 2
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("damage", ["key", "ahead", "words"])
async def test_a_damaged_index_is_made_anew_at_the_next_start(room: Room, damage: str) -> None:
    await room.write("a lasting word")
    room.catch_up()
    with room.node.replica.database.write() as connection:
        if damage == "words":
            connection.execute(search_words.delete())
        else:
            values: dict[str, object] = {"hash_key": b"junk"} if damage == "key" else {"upto": 99_999}
            connection.execute(search_state.update().values(values))
    assert await room.hits("lasting") == [] or damage == "ahead"
    room.indexer = SearchIndexer(room.node.hub, is_enabled=True)
    assert await room.find("lasting") == ["a lasting word"]
    assert (await Search(room.node.hub, is_enabled=True).view())["percent"] == 100


@pytest.mark.parametrize("is_edited", [False, True])
async def test_large_posts_are_opened_few_at_once(
    room: Room, monkeypatch: pytest.MonkeyPatch, *, is_edited: bool
) -> None:
    # An answer with many of them takes no more memory; and the clock is looked at between them.
    for number in range(5):
        text = f"flowers {'x' * 2000}{number}"
        post = await room.write("small flowers" if is_edited else text)
        if is_edited:
            await room.posts.edit(post, text)
    room.catch_up()
    opened: list[int] = []
    real = vars(search_module)["timeline_items"]

    def count(connection: Connection, replica: Any, rows: list[TimelineRow], position: int) -> Any:  # noqa: ANN401  # as the function that it stands for
        opened.append(len(rows))
        return real(connection, replica, rows, position)

    monkeypatch.setattr(search_module, "timeline_items", count)
    each = 2 if is_edited else 1  # an edit is looked at, too, and is shown as its post
    for size, groups in ((1 << 20, [5 * each]), (1, [1] * 5 * each)):
        monkeypatch.setattr(search_module, "SEARCH_OPENED_SIZE_MAX", size)
        opened.clear()
        assert len(await room.hits("flowers")) == 5
        assert opened == groups
    monkeypatch.setattr(search_module, "SEARCH_OPENED_SIZE_MAX", 7000)
    opened.clear()
    await room.hits("flowers")
    assert max(opened) == 2, "the edit of a small post counts"
    opened.clear()
    search = Search(room.node.hub, is_enabled=True, clock=lambda: 9.0 if opened else 0.0)
    found = await search.find(Question(parse_query("flowers"), [room.branch], 20))
    assert (len(opened), found.cursor is not None) == (1, True), "and the next group is not opened"


async def test_the_indexer_rests_longer_while_a_long_batch_is_being_written(
    room: Room, autojump_clock: MockClock
) -> None:
    # No commit of it is accepted for many slices.
    hub, rests = room.node.hub, list[float]()

    def rest() -> None:
        rests.append(pause_after(hub, hub.totals.accepted, trio.current_time() - 1))

    await hub.write(rest)
    rest()
    assert rests == [indexer_module._SHARE_BUSY, indexer_module._SHARE_IDLE]
