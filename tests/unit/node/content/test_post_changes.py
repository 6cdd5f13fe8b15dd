"""Replies, edits, deletions, hiding and mentions, as a user meets them: what each odd case comes to."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from node.authoring.author import Author
from node.authoring.drafting import Draft
from node.care.fsck import check_store
from node.content.erasing import erase_store
from node.content.merging import Merging
from node.content.posts import Posts
from node.ingest.replica import Replica
from node.runtime.errors import ServiceError
from node.sync.kept_parts import keep_contents
from node.timelines.commit_history import describe, list_past
from node.timelines.views import timeline_items
from protocol.crypto.keys import UserSeed
from protocol.formats.body import Body, Carried, Grant, Hide, Permission, Remove, encode_body
from protocol.formats.content import Compaction, Post
from protocol.formats.profiles import Profile
from protocol.formats.text import id_text, parse_id
from protocol.ids import BlockId, CommitId, RepoId, UserId
from protocol.limits.users import MENTIONS_MAX, QUOTE_LENGTH_MAX
from storage.commits.commits import load_timeline
from storage.repos.repos import Branch
from storage.schema.schema import commits
from tests.support.builders import STORE_KEY
from tests.support.nodes import Node, open_nodes
from verifier.posts import Relation, make_place


@dataclass
class Room:
    """A branch in which alice, who owns the repo, bob and carol write, all on one node."""

    node: Node
    branch: Branch
    authors: dict[str, Author]

    def posts(self, name: str = "alice") -> Posts:
        """Return the service of one of them."""
        return Posts(self.node.hub, self.authors[name], self.node.branch)

    async def write(self, text: str, name: str = "alice") -> str:
        """Return a post's id."""
        return (await self.posts(name).write("main", text))["commit"]

    def state(self, name: str, body: Body, *places: tuple[str, str]) -> str:
        """Write a commit as another program may: with places of these kinds and roots."""
        tangles = tuple(make_place(Relation(kind), _commit_id(root)) for kind, root in places)
        written, ingested = self.authors[name].write(self.branch, Draft(body, tangles=tangles))
        self.node.hub.announce(ingested)
        return id_text(written.commit_id)

    def items(self) -> dict[str, dict[str, Any]]:
        """Return what the timeline shows, by commit."""
        with self.node.replica.database.read() as connection:
            rows = load_timeline(connection, self.branch.num, 0, 10_000)
            found = timeline_items(connection, self.node.replica, rows, 0)
        return {item["commit"]: dict(item) for item in found}

    def texts(self) -> list[str | None]:
        """Texts of the timeline without its root."""
        return [item["text"] for item in self.items().values()][1:]


def _commit_id(text: str) -> CommitId:
    return CommitId(BlockId(parse_id(text)))


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    with open_nodes(tmp_path, "alice") as (node,):
        repo, branch = node.create_repo()
        root = node.replica.root_branch(repo)
        authors = {"alice": node.author}
        node.author.write(root, Profile("Alice", None))
        for name in ("bob", "carol"):
            seed = UserSeed(name.encode().ljust(32))
            authors[name] = Author(node.replica, seed, lambda: 1_700_000_000_000)
            node.author.write(root, Grant(authors[name].user, Permission.WRITE))
            authors[name].write(root, Profile(f"{name.title()} the 1st", None))
        yield Room(node, branch, authors)


async def test_an_edit_changes_the_post_and_is_shown_as_one(room: Room) -> None:
    post = await room.write("helo")
    first = (await room.posts().edit(post, "hello"))["commit"]
    last = (await room.posts().edit(first, "hello!"))["commit"]  # an edit of an edit is one of the post
    items = room.items()
    assert (items[post]["text"], items[post]["edited_at"]) == ("hello!", items[last]["time"])
    assert [items[one]["edits"] for one in (first, last)] == [post, post]
    assert "edits" not in items[post]
    shown = describe(room.node.replica, post)
    assert (shown["text"], shown["edited_at"]) == ("hello!", items[last]["time"])
    past = list_past(room.node.replica, room.branch, last, 10)["items"]
    assert [item["text"] for item in past][1] == "hello!"


async def test_versions_are_told_in_windows(room: Room) -> None:
    post = await room.write("0")
    for number in range(1, 5):
        await room.posts().edit(post, f"{number}")
    window = await room.posts().versions(post, limit=3)
    assert [one["text"] for one in window["versions"]] == ["2", "3", "4"]
    before = window["previous"]
    assert before == window["versions"][0]["commit"]
    window = await room.posts().versions(post, limit=3, before=before)
    assert [(one["text"], one["version"]) for one in window["versions"]] == [("0", "original"), ("1", "edit")]
    assert window["previous"] is None
    window = await room.posts().versions(post, limit=3, before=window["versions"][1]["commit"])
    assert [one["text"] for one in window["versions"]] == ["0"]


async def test_only_its_author_changes_a_post(room: Room) -> None:
    post = await room.write("mine")
    for change in (room.posts("bob").edit(post, "yours"), room.posts("bob").delete(post)):
        with pytest.raises(ServiceError, match="only its author") as caught:
            await change
        assert caught.value.code == "not_permitted"
    edit, deletion = (room.state("bob", Post(kind), (kind, post)) for kind in ("edit", "delete"))
    items = room.items()
    assert (items[post]["text"], items[edit]["text"], items[deletion]["text"]) == ("mine", "edit", "delete")
    assert all("edits" not in one and "deletes" not in one for one in items.values())
    with pytest.raises(ServiceError, match="edits or deletes another's") as caught:
        await room.posts("bob").edit(edit, "again")
    assert caught.value.code == "bad_request"


async def test_devices_of_one_person_edit_each_others_posts(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    bob, carol = (room.authors[name].user for name in ("bob", "carol"))

    def persons(_replica: Replica, _repo_id: RepoId) -> dict[UserId, UserId]:
        return {carol: bob}

    monkeypatch.setattr(Replica, "persons", persons)
    post = await room.write("from my phone", "bob")
    # Concurrently: the last in canonical order counts, here as everywhere.
    acks = (_commit_id(post),)
    edits = {}
    for name in ("bob", "carol"):
        draft = Draft(Post(name), acks, tangles=(make_place(Relation.EDIT, acks[0]),))
        written, _ = room.authors[name].write(room.branch, draft)
        edits[written.commit_id] = name
    assert room.items()[post]["text"] == edits[max(edits)]
    assert {item["edits"] for item in room.items().values() if "edits" in item} == {post}
    await room.posts("carol").delete(post)
    assert room.items()[post]["deleted"]
    window = await room.posts("bob").versions(post, limit=10)
    assert [one["version"] for one in window["versions"]] == ["original", "edit", "edit", "deletion"]


async def test_changes_between_devices_are_undone_when_they_are_no_longer_of_one_person(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    persons = {room.authors["carol"].user: room.authors["bob"].user}
    monkeypatch.setattr(Replica, "persons", lambda _replica, _repo_id: persons)
    edited, deleted = [await room.write(text, "bob") for text in ("a post", "another")]
    edit = (await room.posts("carol").edit(edited, "changed"))["commit"]
    await room.posts("carol").delete(deleted)
    assert [room.items()[one]["text"] for one in (edited, deleted)] == ["changed", None]
    persons.clear()
    items = room.items()
    assert [items[one]["text"] for one in (edited, deleted, edit)] == ["a post", "another", "changed"]
    assert "edits" not in items[edit]


async def test_a_deletion_is_final(room: Room) -> None:
    post = await room.write("secret")
    edit = (await room.posts().edit(post, "secret too"))["commit"]
    deletion = (await room.posts().delete(post))["commit"]
    for change in (room.posts().edit(post, "back"), room.posts().delete(post)):
        with pytest.raises(ServiceError, match="which is final") as caught:
            await change
        assert caught.value.code == "bad_request"
    late = room.state("alice", Post("back again"), ("edit", post))
    items = room.items()
    assert (items[post]["text"], items[post]["deleted"], items[deletion]["deletes"]) == (None, True, post)
    assert [items[one]["text"] for one in (edit, late, deletion)] == [None] * 3
    window = await room.posts("bob").versions(post, limit=10)
    assert window["deleted"]
    assert [one["text"] for one in window["versions"]] == ["secret", "secret too", None, "back again"]


async def test_what_is_no_post_is_not_edited(room: Room) -> None:
    root = id_text(_commit_id(id_text(room.branch.facts.root_id)))
    compaction = room.state("alice", Compaction(()))
    for target in (root, compaction):
        with pytest.raises(ServiceError, match="no post to edit"):
            await room.posts().edit(target, "text")
        edit = room.state("alice", Post("an edit of what is none"), ("edit", target))
        assert room.items()[edit]["text"] == "an edit of what is none"
        assert "edits" not in room.items()[edit]
    for text in (id_text(room.node.repo().init_id), "aaaaaaaa"):
        with pytest.raises(ServiceError) as caught:
            await room.posts().edit(text, "text")
        assert caught.value.code in ("bad_request", "not_found")


async def test_an_edit_of_what_is_not_here_is_a_plain_post(room: Room) -> None:
    unknown = id_text(_commit_id("a" * 52))
    edit = room.state("alice", Post("of nothing"), ("edit", unknown))
    of_edit = room.state("alice", Post("of an edit"), ("edit", edit))
    both = room.state("alice", Post("of both kinds"), ("edit", edit), ("delete", edit))
    assert room.texts() == ["of nothing", "of an edit", "of both kinds"]
    assert all("edits" not in room.items()[one] for one in (edit, of_edit, both))


async def test_an_edit_in_another_branch_does_not_count(room: Room) -> None:
    post = await room.write("here")
    other, _ = room.node.author.founding.create_branch(room.node.repo(), "other")
    tangles = (make_place(Relation.EDIT, _commit_id(post)),)
    room.node.author.write(other, Draft(Post("there"), tangles=tangles))
    reply, _ = room.node.author.write(
        other, Draft(Post("re"), tangles=(make_place(Relation.REPLY, _commit_id(post)),))
    )
    assert room.items()[post]["text"] == "here"
    shown = describe(room.node.replica, id_text(reply.commit_id))
    assert shown["reply_to"] == {"commit": post, "thread": post, "state": "absent"}


async def test_replies_make_a_thread(room: Room) -> None:
    post = await room.write("question")
    await room.write("something else")
    first = (await room.posts("bob").reply(post, "answer"))["commit"]
    second = (await room.posts("carol").reply(first, "more"))["commit"]
    edit = (await room.posts().edit(post, "question?"))["commit"]
    third = (await room.posts("bob").reply(edit, "to the edit, so to the post"))["commit"]
    items = room.items()
    assert items[first]["reply_to"] == {
        "commit": post,
        "thread": post,
        "state": "shown",
        "author": id_text(room.authors["alice"].user),
        "author_name": "Alice",
        "text": "question?",
    }
    assert (items[second]["reply_to"]["commit"], items[second]["reply_to"]["thread"]) == (first, post)
    assert items[third]["reply_to"]["commit"] == post
    for asked in (post, second, edit):
        thread = await room.posts().thread(asked, limit=10)
        assert [one["commit"] for one in thread["items"]] == [post, first, second, third]
        assert (thread["first"], thread["next"]) == (post, None)
    assert thread["items"][0]["text"] == "question?"
    window = await room.posts().thread(post, limit=2)
    assert [one["commit"] for one in window["items"]] == [post, first]
    window = await room.posts().thread(post, limit=2, after=window["next"] or "")
    assert [one["commit"] for one in window["items"]] == [second, third]
    await room.posts("bob").edit(first, "better answer")
    assert room.items()[first]["text"] == "better answer"
    assert room.items()[first]["reply_to"]["commit"] == post, "an edited reply is one still"


async def test_a_reply_to_what_a_merge_carried_names_its_author(room: Room) -> None:
    bob = room.authors["bob"].user
    body = encode_body(Post("question"))
    carried = Carried(room.node.branch().branch_id, CommitId(BlockId(bytes(32))), bob, 1_000_000, body)
    written, _ = room.node.author.write(room.node.branch(), carried)
    reply = (await room.posts("carol").reply(id_text(written.commit_id), "answer"))["commit"]
    assert room.items()[reply]["reply_to"]["author"] == id_text(bob)
    assert room.items()[reply]["reply_to"]["author_name"] == "Bob the 1st"
    assert room.items()[reply]["reply_to"]["text"] == "question"


async def test_a_reply_quotes_one_line_of_what_it_answers_with_names_of_people(room: Room) -> None:
    bob = id_text(room.authors["bob"].user)
    long = await room.write(f"\n@{bob}, {'x' * QUOTE_LENGTH_MAX}\nand more")
    only = await room.write(f"@{bob} " * 100)
    replies = [(await room.posts().reply(one, "re"))["commit"] for one in (long, only)]
    name = room.node.replica.people.name(room.node.repo().repo_id, room.authors["bob"].user)
    quoted = [room.items()[one]["reply_to"]["text"] for one in replies]
    assert quoted[0] == f"@{name}, {'x' * QUOTE_LENGTH_MAX}"[:QUOTE_LENGTH_MAX]
    assert quoted[1] == (f"@{name} " * 100)[:QUOTE_LENGTH_MAX]


async def test_what_a_reply_answers_may_be_gone(room: Room) -> None:
    post, hidden = await room.write("a", "bob"), await room.write("b", "bob")
    replies = [(await room.posts().reply(one, "re"))["commit"] for one in (post, hidden)]
    await room.posts("bob").delete(post)
    await room.posts().hide(hidden, hidden=True)
    assert [room.items()[one]["reply_to"]["state"] for one in replies] == ["deleted", "hidden"]
    assert not any("text" in room.items()[one]["reply_to"] for one in replies)
    room.node.author.write(
        room.node.replica.root_branch(room.node.repo()), Remove(room.authors["bob"].user, None, ())
    )
    assert post not in room.items()
    assert [room.items()[one]["reply_to"]["state"] for one in replies] == ["void", "void"]
    with pytest.raises(ServiceError, match="that commit is void") as caught:
        await room.posts().reply(post, "re")
    assert caught.value.code == "bad_request"
    for change in (room.posts("bob").edit(post, "x"), room.posts("bob").delete(post)):
        with pytest.raises(ServiceError, match="that commit is void"):
            await change


async def test_a_void_edit_does_not_count(room: Room) -> None:
    post = await room.write("kept", "bob")
    kept = _commit_id(post)
    await room.posts("bob").edit(post, "vandalised")
    await room.posts("bob").delete(post)
    assert room.items()[post]["deleted"]
    # Both were not seen by who excludes bob, and the post was.
    with room.node.replica.database.write() as connection:
        connection.execute(update(commits).where(commits.c.about == kept).values(is_void=True))
    assert room.items()[post]["text"] == "kept"
    assert "deleted" not in room.items()[post]


async def test_an_admin_hides_and_shows_posts(room: Room) -> None:
    post = await room.write("rude", "bob")
    edit = (await room.posts("bob").edit(post, "ruder"))["commit"]
    for name in ("bob", "carol"):
        with pytest.raises(ServiceError, match="hiding needs admin") as caught:
            await room.posts(name).hide(post, hidden=True)
        assert caught.value.code == "not_permitted"
    done = await room.posts().hide(edit, hidden=True)
    assert (done["post"], done["hidden"]) == (post, True)
    assert (await room.posts().hide(post, hidden=True))["commit"] is None, "it is hidden already"
    items = room.items()
    assert (items[post]["text"], items[post]["hidden_by_name"], items[edit]["text"]) == (None, "Alice", None)
    await room.posts("bob").edit(post, "rudest")
    assert room.items()[post]["text"] is None, "an edit does not bring it back"
    versions = (await room.posts().versions(post, limit=9))["versions"]
    assert versions[0]["text"] == "rude"
    await room.posts().hide(post, hidden=False)
    assert room.items()[post]["text"] == "rudest"
    with pytest.raises(ServiceError, match="that is no post"):
        await room.posts().hide(id_text(room.branch.facts.root_id), hidden=True)


async def test_a_writer_who_states_to_hide_hides_nothing(room: Room) -> None:
    post = await room.write("here to stay")
    root = room.node.replica.root_branch(room.node.repo())
    room.authors["bob"].write(root, Hide(room.branch.branch_id, (_commit_id(post),), hides=True))
    assert room.items()[post]["text"] == "here to stay"
    # Nor what an admin says of another branch.
    room.node.author.write(root, Hide(root.branch_id, (_commit_id(post),), hides=True))
    assert room.items()[post]["text"] == "here to stay"


async def test_erased_texts_are_said_to_be(tmp_path: Path, room: Room) -> None:
    post, other = await room.write("a"), await room.write("b")
    await room.posts().edit(post, "a, edited")
    reply = (await room.posts("bob").reply(other, "re"))["commit"]
    room.state("alice", Compaction(()))
    again = (await room.posts().edit(other, "b, edited after"))["commit"]
    room.node.replica.close()
    erase_store(tmp_path / "alice", STORE_KEY, 2**53, 1)
    room.node.open()
    room.authors["alice"] = room.node.author
    items = room.items()
    assert (items[post]["text"], items[post]["erased"]) == (None, True)
    assert "edited_at" in items[post], "the header still says so"
    assert (items[other]["text"], items[again]["edits"]) == ("b, edited after", other)
    assert "erased" not in items[other]
    assert items[reply]["reply_to"]["state"] == "shown"
    late = (await room.posts().reply(post, "to what is erased"))["commit"]
    assert room.items()[late]["reply_to"]["state"] == "erased"
    keep_contents(room.node.replica, room.node.repo(), None, 90, room.node.now())
    assert room.items()[late]["reply_to"]["state"] == "not_kept", "it may have been given up alone"


async def test_mentions_are_ids_in_the_store_and_names_in_answers(room: Room) -> None:
    bob = id_text(room.authors["bob"].user)
    texts = {
        "@Alice, hi": f"@{id_text(room.node.author.user)}, hi",
        "to @[Bob the 1st]": f"to @{bob}",
        "ann@alice.org and @nobody": "ann@alice.org and @nobody",
        f"@{bob}": f"@{bob}",
    }
    for text, stored in texts.items():
        post = (await room.posts().write("main", text, resolve_mentions=True))["commit"]
        assert room.items()[post]["text"] == stored
    assert room.items()[post]["mentions"] == [{"user": bob, "name": "Bob the 1st"}]
    plain = await room.write("@Alice")
    assert room.items()[plain]["text"] == "@Alice", "an app's text stays as it is"
    stranger = id_text(_commit_id("q" * 51 + "a"))
    post = await room.write(f"@{stranger} is no member, @{stranger}x is no id")
    assert room.items()[post]["mentions"] == [{"user": stranger, "name": ""}]


async def test_a_name_that_is_nobodys_or_too_many_are_refused(room: Room) -> None:
    for text, code in {
        "@[Zed]": "not_found",
        " ".join(f"@w{number}" for number in range(MENTIONS_MAX + 1)): "too_large",
    }.items():
        with pytest.raises(ServiceError) as caught:
            await room.posts().write("main", text, resolve_mentions=True)
        assert caught.value.code == code
    words = " ".join(f"@w{number}" for number in range(MENTIONS_MAX))
    post = (await room.posts().write("main", words, resolve_mentions=True))["commit"]
    assert room.items()[post]["text"] == words
    ids = [id_text(_commit_id("a" * 49 + f"{one}{two}a")) for one in "abcdefgh" for two in "abcdefghi"]
    post = await room.write(" ".join(f"@{one}" for one in ids))
    assert len(room.items()[post]["mentions"]) == MENTIONS_MAX


async def test_a_kind_that_an_older_version_did_not_know_is_no_damage(tmp_path: Path, room: Room) -> None:
    post = await room.write("old")
    await room.posts().hide(post, hidden=True)
    with room.node.replica.database.write() as connection:
        hides = update(commits).where(commits.c.body_kind == "hide")
        assert connection.execute(hides.values(body_kind="unknown:hide1")).rowcount == 1
    room.node.replica.close()
    problems = check_store(tmp_path / "alice", STORE_KEY).problems
    room.node.open()
    assert problems == []
    assert room.items()[post]["hidden_by"]


async def test_a_merge_leaves_out_what_is_gone(room: Room) -> None:
    merging = Merging(room.node.hub, room.node.author, room.node.branch)
    fork = await merging.fork("main", "fork", "")
    posts = Posts(room.node.hub, room.node.author, lambda _: fork)
    kept, deleted, hidden = [(await posts.write("fork", text))["commit"] for text in ("a", "b", "c")]
    await posts.edit(kept, "a, edited")
    await posts.delete(deleted)
    await posts.hide(hidden, hidden=True)
    await merging.merge("fork", "main")
    assert [text for text in room.texts() if text] == ["a", "a, edited"]
    await merging.merge("fork", "main")
    assert [text for text in room.texts() if text] == ["a", "a, edited"]
