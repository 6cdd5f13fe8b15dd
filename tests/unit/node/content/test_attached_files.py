"""Files of posts: which commits a post may name, who sees them as its own, and what becomes of them with it."""

from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from node.authoring.author import Author
from node.authoring.drafting import Draft
from node.content.files import FileService
from node.content.posts import Posts
from node.runtime.errors import ServiceError
from node.timelines.unseen import UnseenCommits
from node.timelines.views import timeline_items
from protocol.crypto.keys import UserSeed
from protocol.formats.body import Grant, Permission, Remove
from protocol.formats.commit import TanglePlace
from protocol.formats.content import Imported, Post
from protocol.formats.declared_kind import declare_kind
from protocol.formats.text import id_text, parse_id
from protocol.ids import BlockId, CommitId
from protocol.limits.formats import FILE_COUNT_MAX
from ravel.files import encode_head
from storage.commits.commits import load_timeline
from tests.support.memberships import make_commit
from tests.support.nodes import Node, open_nodes
from verifier.posts import find_attached, make_attach_place


class Room:
    """A branch of one node, in which alice, who owns the repo, and bob write."""

    def __init__(self, node: Node, bob: Author) -> None:
        self.node = node
        self.authors = {"alice": node.author, "bob": bob}
        self.branch = node.branch()

    def posts(self, name: str = "alice") -> Posts:
        return Posts(self.node.hub, self.authors[name], self.node.branch)

    async def add(self, file: str, name: str = "alice") -> str:
        """Add a file; gives the commit."""
        service = FileService(self.node.hub, self.authors[name], self.node.branch)
        return (await service.add("main", file, _stream(file.encode())))["commit"]

    async def add_many(self, names: list[str], author: str = "alice") -> str:
        """Add files by one commit; gives it."""
        service = FileService(self.node.hub, self.authors[author], self.node.branch)
        content = b"".join(encode_head(name, len(name)) + name.encode() for name in names)
        (commit,) = {one["commit"] for one in (await service.add_many("main", _stream(content)))["files"]}
        return commit

    def items(self) -> dict[str, dict[str, Any]]:
        """Return what the timeline shows, by commit."""
        with self.node.replica.database.read() as connection:
            rows = load_timeline(connection, self.branch.num, 0, 10_000)
            return {
                item["commit"]: dict(item) for item in timeline_items(connection, self.node.replica, rows, 0)
            }

    def files(self, post: str) -> list[tuple[str, list[str]]]:
        """Return the commits that a post names and the names of their files, as it is shown."""
        named = self.items()[post].get("attachments", [])
        return [(one["commit"], [file["name"] for file in one["files"]]) for one in named]


async def _stream(content: bytes) -> AsyncGenerator[bytes]:
    yield content


def _id(text: str) -> CommitId:
    return CommitId(BlockId(parse_id(text)))


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    with open_nodes(tmp_path, "alice") as (node,):
        repo, _ = node.create_repo()
        bob = Author(node.replica, UserSeed(b"bob".ljust(32)), lambda: 1_700_000_000_000)
        node.author.write(node.replica.root_branch(repo), Grant(bob.user, Permission.WRITE))
        yield Room(node, bob)


async def test_a_post_and_a_reply_show_the_files_that_they_name(room: Room) -> None:
    one, two = await room.add("one.txt"), await room.add("two.txt")
    await room.posts("bob").write("main", "between")
    posts = room.posts()
    post = (await posts.write("main", "both", attachments=[one, two[:20], one]))["commit"]
    assert room.files(post) == [(one, ["one.txt"]), (two, ["two.txt"])]
    [file] = room.items()[post]["attachments"][0]["files"]
    assert (file["size"], len(file["file"])) == (7, 52)
    three = await room.add("three.txt")
    reply = (await posts.reply(post, "and this", attachments=[three]))["commit"]
    assert room.files(reply) == [(three, ["three.txt"])]
    assert room.items()[reply]["reply_to"]["commit"] == post
    await posts.edit(post, "all of them")
    assert (room.items()[post]["text"], len(room.files(post))) == ("all of them", 2), "files stay with it"


async def test_only_own_commits_that_added_files_here_are_named(room: Room) -> None:
    bobs, post = await room.add("bobs", "bob"), (await room.posts().write("main", "a post"))["commit"]
    for bad in (bobs, post):
        with pytest.raises(ServiceError, match="no commit by which you added files"):
            await room.posts().write("main", "x", attachments=[bad])
    with pytest.raises(ServiceError, match="no commit is called"):
        await room.posts().write("main", "x", attachments=["a" * 52])
    # Another program may write what it likes: what does not count is shown as if it were not named.
    own = await room.add("own")
    place = make_attach_place((_id(bobs), _id(own), _id(post), CommitId(BlockId(b"n" * 32))))
    written, _ = room.node.author.write(room.branch, Draft(Post("x"), tangles=(place,)))
    assert room.files(id_text(written.commit_id)) == [(own, ["own"])]
    written, _ = room.node.author.write(
        room.branch, Draft(Post("x"), tangles=(make_attach_place((_id(bobs),)),))
    )
    assert "attachments" not in room.items()[id_text(written.commit_id)]


async def test_a_removed_file_is_gone_from_its_post_and_a_deleted_post_takes_its_files_along(
    room: Room,
) -> None:
    added = [await room.add(f"{number}.txt") for number in range(2)]
    posts = room.posts()
    post = (await posts.write("main", "two", attachments=added))["commit"]
    files = FileService(room.node.hub, room.node.author, room.node.branch)
    await files.remove("main", "0.txt")
    assert room.files(post) == [(added[0], []), (added[1], ["1.txt"])], "its commit has no row of its own"
    await room.add("other.txt")
    await posts.delete(post)
    assert room.files(post) == [(added[0], []), (added[1], [])]
    assert [one["name"] for one in (await files.window("main", 0, 10))["files"]] == ["other.txt"]


async def test_files_stay_as_long_as_a_post_that_is_not_deleted_names_them(room: Room) -> None:
    """Also one that is hidden: it may be shown again."""
    shared, own = await room.add("shared"), await room.add("own")
    posts, files = room.posts(), FileService(room.node.hub, room.node.author, room.node.branch)
    first = (await posts.write("main", "first", attachments=[shared, own]))["commit"]
    second = (await posts.write("main", "second", attachments=[shared]))["commit"]
    third = (await posts.reply(second, "third", attachments=[shared]))["commit"]
    theirs = make_attach_place((_id(own),))
    room.authors["bob"].write(room.branch, Draft(Post("not bob's"), tangles=(theirs,)))

    async def names() -> list[str]:
        return [one["name"] for one in (await files.window("main", 0, 10))["files"]]

    await posts.hide(third, hidden=True)
    await posts.delete(first)
    assert (room.files(second), await names()) == ([(shared, ["shared"])], ["shared"])
    await posts.delete(second)
    assert await names() == ["shared"]
    await posts.hide(third, hidden=False)
    assert room.files(third) == [(shared, ["shared"])]
    await posts.delete(third)
    assert await names() == []


async def test_a_hidden_post_shows_no_files_and_void_ones_do_not_count(room: Room) -> None:
    mine, bobs = await room.add("mine"), await room.add("bobs", "bob")
    post = (await room.posts().write("main", "hidden", attachments=[mine]))["commit"]
    await room.posts().hide(post, hidden=True)
    assert room.files(post) == [(mine, [])]
    written, _ = room.authors["bob"].write(
        room.branch, Draft(Post("y"), tangles=(make_attach_place((_id(bobs),)),))
    )
    assert room.files(id_text(written.commit_id)) == [(bobs, ["bobs"])]
    root = room.node.replica.root_branch(room.node.replica.repos[room.branch.repo_num])
    room.node.author.write(root, Remove(room.authors["bob"].user, None, ()))
    assert bobs not in room.items()


async def test_an_answer_has_so_many_files_of_posts_and_no_more(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    added = [await room.add(f"{number}") for number in range(3)]
    post = (await room.posts().write("main", "three", attachments=added))["commit"]
    assert len(room.files(post)) == 3
    monkeypatch.setattr("node.timelines.post_views.ATTACHED_COUNT_MAX", 2)
    assert room.files(post) == [(added[0], ["0"]), (added[1], ["1"])]


async def test_who_names_more_than_an_answer_has_takes_no_files_from_others(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = await room.add("mine")
    many = await room.add_many(["a", "b", "c"], "bob")
    for _ in range(2):
        await room.posts("bob").write("main", "many", attachments=[many])
    post = (await room.posts().write("main", "one", attachments=[mine]))["commit"]
    assert room.files(post) == [(mine, ["mine"])]
    monkeypatch.setattr("node.timelines.post_views.ATTACHED_COUNT_MAX", 3)
    assert "attachments" not in room.items()[post], "its commit has a row of its own"
    monkeypatch.setattr("node.timelines.post_views.ATTACHED_COUNT_MAX", 4)
    named = make_attach_place((_id(mine), _id(many)))  # one of them is another's
    room.authors["bob"].write(room.branch, Draft(Post("x"), tangles=(named,)))
    assert room.files(post) == [(mine, ["mine"])]


async def test_a_hidden_post_takes_its_files_along_and_one_of_many_all_of_them(room: Room) -> None:
    many = [
        await room.add_many([f"{part}.{number}" for number in range(FILE_COUNT_MAX)]) for part in range(2)
    ]
    posts, files = room.posts(), FileService(room.node.hub, room.node.author, room.node.branch)
    post = (await posts.write("main", "many", attachments=many))["commit"]
    await posts.hide(post, hidden=True)
    await posts.delete(post)
    assert (await files.window("main", 0, 10))["files"] == []


async def test_a_message_with_files_is_one_that_is_new(room: Room) -> None:
    added = [await room.add(f"{number}", "bob") for number in range(3)]
    await room.posts("bob").write("main", "three", attachments=added)
    await room.add("alone", "bob")
    news = UnseenCommits(room.node.hub, room.node.author.user, lambda _: room.branch, lambda: 1_700_000_000.0)
    assert (await news.show("main"))["unseen"] == 2


def test_a_post_alone_that_says_its_kind_names_files() -> None:
    named = (CommitId(BlockId(b"f" * 32)), CommitId(BlockId(b"g" * 32)))
    bare = make_commit(5, "ann", ())
    places = (make_attach_place(named), TanglePlace("group", named[0], named))

    def attached(body: Post | Imported | None, *, is_root_branch: bool = False) -> tuple[CommitId, ...]:
        metadata = b"" if body is None else declare_kind(body)
        content = msgspec.structs.replace(bare.content, tangles=places, metadata=metadata)
        return find_attached(msgspec.structs.replace(bare, content=content), is_root_branch=is_root_branch)

    assert attached(Post("")) == named
    assert (
        attached(Post(""), is_root_branch=True) == attached(None) == attached(Imported("1", "", 0, "")) == ()
    )
