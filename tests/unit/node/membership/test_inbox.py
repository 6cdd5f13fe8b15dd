"""The inbox: comments by readers, and commits of forks that are offered back."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import trio
from msgspec.structs import replace
from sqlalchemy import update
from trio.testing import MockClock

from node.api.targets import Targets
from node.authoring.drafting import Draft
from node.content.documents import Documents
from node.content.merge_changes import MergeChanges
from node.content.merging import Merging
from node.content.posts import Posts
from node.ingest.replica import Replica
from node.membership import comments as comments_module
from node.membership import joining
from node.membership.comments import Comments
from node.membership.inbox import Inbox
from node.membership.offers import (
    COMMENTS_REPO,
    STATED_COMMENTS,
    AcceptedOffer,
    find_accepted,
    follow_accepted,
)
from node.membership.sharing import Sharing
from node.membership.stated_comments import StatedComments
from node.network.network import Network
from node.network.own_addresses import OwnAddresses
from node.network.peers import Peers
from node.runtime.errors import ServiceError
from protocol.codec import encode
from protocol.formats.body import Answer, Offer, Permission
from protocol.formats.content import Post
from protocol.formats.document_kinds import DICT
from protocol.formats.text import id_text, parse_id
from protocol.ids import BlockId, BranchId, CommitId
from protocol.limits.formats import OFFERS_OF_AUTHOR_MAX
from protocol.limits.users import COMMENT_QUOTE_SIZE_MAX, COMMENT_SIZE_MAX
from ravel.types.inbox import CommentView, OfferView
from storage.commits.commits import load_rows
from storage.engine.database import StorageError
from storage.engine.id_keys import unpack_nums
from storage.repos.deletion import forget_repo
from storage.repos.repos import Branch, Repo
from storage.schema.schema import blocks
from tests.support.ids import as_commit_id
from tests.support.machine import fail_after
from tests.support.nodes import Node, ids, meet, members_of, open_nodes, share, together


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[list[Node]]:
    with open_nodes(tmp_path, "alice", "bob", "carol") as opened:
        yield opened


def _repo(node: Node, name: str) -> Repo:
    return next(repo for repo in node.replica.repos.values() if repo.name == name)


def _branch(node: Node, name: str) -> Branch:
    """Find a branch by REPO:BRANCH."""
    return Targets(node.replica, node.author.user).branch(name)


def _sharing(node: Node) -> Sharing:
    network = Network(node.hub, node.seed, lambda: 0.0)
    addresses = OwnAddresses("host:7474")
    peers = Peers(node.hub, network, node.key)
    return Sharing(node.hub, network, peers, node.author, node.joiner, addresses=addresses, clock=lambda: 0.0)


def _inbox(node: Node) -> Inbox:
    return Inbox(
        node.hub,
        node.author,
        _sharing(node),
        StatedComments(node.hub, node.author, _documents(node)),
        MergeChanges(node.hub, node.author, _documents(node)),
        lambda name: _repo(node, name),
        lambda name: _branch(node, name),
    )


def _comments_of(node: Node) -> Comments:
    def find(name: str) -> Branch:
        return _branch(node, name)

    posts = Posts(node.hub, node.author, find)
    return Comments(
        node.hub, node.author, _inbox(node), posts, _documents(node), lambda name: _repo(node, name), find
    )


def _documents(node: Node) -> Documents:
    return Documents(node.hub, node.author, lambda name: _branch(node, name))


async def _shown(node: Node) -> list[CommentView]:
    return (await _comments_of(node).show("repo:main", 100))["items"]


async def _comments(node: Node) -> list[str | None]:
    return [item["text"] for item in await _shown(node)]


async def _offers(node: Node, status: str = "", limit: int = 100) -> list[OfferView]:
    return (await _inbox(node).list_offers("repo", limit, status))["offers"]


@pytest.mark.parametrize("text", ["", " \n\t "])
async def test_a_comment_without_words_is_not_offered(nodes: list[Node], text: str) -> None:
    """Its offer would have an empty note, which asks for trust."""
    alice = nodes[0]
    alice.create_repo("repo")
    with pytest.raises(ServiceError, match="the text is empty"):
        await _comments_of(alice).write("repo:main", text)
    assert not await _offers(alice)
    assert [repo.name for repo in alice.replica.repos.values()] == ["repo"]


@pytest.mark.slow
async def test_a_comment_is_read_before_it_is_accepted_and_shown_as_it_was_read(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, bob, carol = nodes
    with fail_after(240):
        await share(alice, bob, carol)
        await members_of(alice).remove("", id_text(bob.author.user), "read")
        await together(alice, bob, carol)
        with pytest.raises(ServiceError, match="M5"):
            bob.author.write(_branch(bob, "repo:main"), Post("in the document"))
        first = await _comments_of(bob).write("repo:main", "well said")
        second = await _comments_of(bob).write("repo:main", "BUY PILLS")
        assert (first["status"], first["offer"] == second["offer"]) == ("open", False), (
            "each is decided by itself"
        )
        await meet(alice, bob)
        await meet(alice, carol)
        assert [(one["kind"], one["note"]) for one in await _offers(alice)] == [
            ("comment", "well said"),
            ("comment", "BUY PILLS"),
        ]
        assert [one["note"] for one in await _offers(carol)] == ["", ""], "carol decides nothing"
        assert [one["note"] for one in await _offers(bob)] == ["well said", "BUY PILLS"]
        assert await _comments(alice) == []
        accepted = await _inbox(alice).answer("repo", first["offer"][:8], accepts=True)
        refused = await _inbox(alice).answer("repo", second["offer"], accepts=False)
        assert await _inbox(alice).answer("repo", first["offer"], accepts=True) == accepted
        assert await _inbox(alice).answer("repo", second["offer"], accepts=False) == refused
        # What its author writes there later was read by nobody.
        bob.author.write(
            _branch(bob, f"{COMMENTS_REPO}:on {id_text(_branch(bob, 'repo:main').branch_id)} 1"),
            Post("and PILLS"),
        )
        await together(alice, bob, carol)
        for node in nodes:
            assert await _comments(node) == ["well said"]
        assert [one["note"] for one in await _offers(carol, "accepted")] == ["well said"]
        assert [one["note"] for one in await _offers(carol, "refused")] == [""]
        assert [one["offer"] for one in await _offers(alice, limit=1)] == [second["offer"]], "the latest"
        with pytest.raises(ServiceError, match="M12"):
            await _inbox(carol).answer("repo", first["offer"], accepts=False)
        await _inbox(alice).answer("repo", first["offer"], accepts=False)
        await together(alice, bob, carol)
        for node in nodes:
            assert await _comments(node) == [], "an admin removes it later"


@pytest.mark.slow
async def test_an_edit_waits_for_an_answer_and_a_deletion_for_none(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, bob, carol = nodes
    with fail_after(240):
        await share(alice, bob, carol)
        await members_of(alice).remove("", id_text(bob.author.user), "read")
        await together(alice, bob, carol)
        made = await _comments_of(bob).write("repo:main", "well sad")
        await together(alice, bob, carol)
        await _inbox(alice).answer("repo", made["offer"], accepts=True)
        await together(alice, bob, carol)
        for text in ("well SAID", "well said"):
            edited = await _comments_of(bob).edit("repo:main", made["commit"], text)
        await together(alice, bob, carol)
        assert [one["note"] for one in await _offers(alice, "open")] == ["well said"], (
            "the last one is to be decided"
        )
        (shown,) = await _shown(carol)
        assert (shown["text"], "edited_at" in shown) == ("well sad", False)
        await _inbox(alice).answer("repo", edited["offer"], accepts=True)
        await together(alice, bob, carol)
        (shown,) = await _shown(carol)
        assert (shown["text"], shown["commit"], shown["edited_at"] is not None) == (
            "well said",
            made["commit"],
            True,
        )
        with pytest.raises(ServiceError, match="no comment of yours"):
            await _comments_of(carol).edit("repo:main", made["commit"], "mine")
        await _comments_of(bob).delete("repo:main", made["commit"])
        await together(alice, bob, carol)
        for node in nodes:
            assert await _comments(node) == []
        assert await _offers(alice, "open") == []


@pytest.mark.slow
async def test_a_comment_answers_another_and_quotes_it(nodes: list[Node], autojump_clock: MockClock) -> None:
    alice, bob, carol = nodes
    with fail_after(240):
        await share(alice, bob, carol)
        first = await _comments_of(bob).write("repo:main", "is it so? " * 50)
        second = await _comments_of(carol).write("repo:main", "it is", first["commit"])
        with pytest.raises(ServiceError, match="whole id"):
            await _comments_of(carol).write("repo:main", "it is", first["commit"][:8])
        await together(alice, bob, carol)
        offers = await _offers(alice)
        assert ("it is", first["commit"]) in [(one["note"], one["answers"]) for one in offers]
        for one in offers:
            await _inbox(alice).answer("repo", one["offer"], accepts=True)
        await together(alice, bob, carol)
        shown = {one["commit"]: one for one in await _shown(alice)}
        answer = shown[second["commit"]]
        assert (answer["text"], answer["answers"]) == ("it is", first["commit"])
        assert answer["quote"] == ("is it so? " * 50)[:COMMENT_QUOTE_SIZE_MAX]
        await _comments_of(bob).delete("repo:main", first["commit"])
        await together(alice, bob, carol)
        (left,) = await _shown(alice)
        assert (left["answers"], left["quote"]) == (first["commit"], ""), "what it answers is gone"


@pytest.mark.slow
async def test_who_is_trusted_comments_unread_until_that_is_refused(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, bob, carol = nodes
    with fail_after(240):
        await share(alice, bob, carol)
        asked = await _comments_of(bob).ask_trust("repo:main")
        assert (await _comments_of(bob).ask_trust("repo:main"))["offer"] == asked["offer"], "once is enough"
        before = await _comments_of(bob).write("repo:main", "before")
        await together(alice, bob, carol)
        assert [(one["kind"], one["status"]) for one in await _offers(alice)] == [
            ("trust", "open"),
            ("comment", "open"),
        ]
        await _inbox(alice).answer("repo", asked["offer"], accepts=True)
        await together(alice, bob, carol)
        after = await _comments_of(bob).write("repo:main", "after")
        assert (after["offer"], after["status"]) == (asked["offer"], "accepted")
        await _comments_of(bob).edit("repo:main", after["commit"], "thereafter")
        await meet(alice, bob)
        await meet(bob, carol)
        assert await _comments(carol) == ["thereafter", "thereafter"], (
            "the post, and its edit, as in a timeline"
        )
        await _inbox(alice).answer("repo", asked["offer"], accepts=False)
        await _inbox(alice).answer("repo", before["offer"], accepts=True)
        await together(alice, bob, carol)
        assert await _comments(carol) == ["before"]
        assert (await _comments_of(bob).write("repo:main", "again"))["status"] == "open"


@pytest.mark.slow
async def test_who_follows_a_branch_by_a_link_reads_accepted_comments_as_does_who_pages_to_early_ones(
    nodes: list[Node], autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice, bob, carol = nodes
    monkeypatch.setattr(joining, "follow_accepted", lambda *_: False)  # as of offers before the last 1,000
    with fail_after(240):
        await share(alice, bob)
        document = id_text(_branch(alice, "repo:main").branch_id)
        first = await _comments_of(bob).write("repo:main", "well said")
        second = await _comments_of(bob).write("repo:main", "BUY PILLS")
        await meet(alice, bob)
        await _inbox(alice).answer("repo", first["offer"], accepts=True)
        await _sharing(alice).state_link(alice.branch())
        await carol.joiner.follow_branch(_sharing(alice).capability_of(alice.branch()))

        async def read() -> list[str | None]:
            await together(alice, bob)
            await meet(alice, carol)
            await _comments_of(carol).show(document, 100)  # whose branches are followed from now on
            await meet(bob, carol)
            return [item["text"] for item in (await _comments_of(carol).show(document, 100))["items"]]

        assert await read() == ["well said"]
        await _inbox(alice).answer("repo", second["offer"], accepts=True)
        assert await read() == ["well said", "BUY PILLS"]
        assert await _comments(alice) == [], "she is shown what is here, and follows the rest from now on"
        await meet(alice, bob)
        assert await _comments(alice) == ["well said", "BUY PILLS"]
        await _inbox(alice).answer("repo", second["offer"], accepts=False)
        assert await read() == ["well said"], "an admin removes it later"
        edit = await _comments_of(bob).edit("repo:main", first["commit"], "well written")
        assert await read() == ["well said"], "nobody has read the edit"
        await _inbox(alice).answer("repo", edit["offer"], accepts=True)
        assert await read() == ["well written"]
        _, stated = await _documents(alice).read(DICT, "repo:main", STATED_COMMENTS, dict)
        assert [key for key, entry in stated.items() if entry.values] == [edit["offer"]]
        # What any writer may put there is passed over where it states no comment of this branch.
        lies = {
            "no id": "{}",
            first["offer"]: "[]",
            second["offer"]: (stated[edit["offer"]].values[0].value or "")[:-9],
        }
        await _documents(alice).edit(DICT, "repo:main", lies, STATED_COMMENTS)
        assert await read() == ["well written"]
        await _comments_of(bob).delete("repo:main", first["commit"])
        assert await read() == [], "its author deletes it, and nobody answers that"


@pytest.mark.extended
async def test_who_follows_a_branch_by_a_link_reads_of_a_comment_what_members_read_whichever_was_answered_last(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, bob, carol = nodes
    with fail_after(240):
        await share(alice, bob)
        document = id_text(_branch(alice, "repo:main").branch_id)
        first = await _comments_of(bob).write("repo:main", "well said")
        edit = await _comments_of(bob).edit("repo:main", first["commit"], "well written")
        await meet(alice, bob)
        await _sharing(alice).state_link(alice.branch())
        await carol.joiner.follow_branch(_sharing(alice).capability_of(alice.branch()))
        for offer, accepts, expected in (
            (edit, True, "well written"),
            (first, True, "well written"),
            (edit, False, "well said"),
        ):
            await _inbox(alice).answer("repo", offer["offer"], accepts=accepts)
            for _ in range(2):  # the first brings what the second shows
                await together(alice, bob)
                await meet(alice, carol)
                await meet(bob, carol)
                shown = (await _comments_of(carol).show(document, 100))["items"]
            assert await _comments(alice) == [expected]
            assert [item["text"] for item in shown] == [expected]


@pytest.mark.extended
@pytest.mark.parametrize("ended_by", ["its author", "an admin whose node stopped"])
async def test_a_comment_that_counts_no_more_is_gone_for_who_follows_the_branch_by_a_link(
    nodes: list[Node], autojump_clock: MockClock, ended_by: str
) -> None:
    alice, bob, carol = nodes
    with fail_after(240):
        await share(alice, bob)
        document = id_text(_branch(alice, "repo:main").branch_id)
        await members_of(alice).remove("", id_text(bob.author.user), "read")
        await together(alice, bob)
        made = [await _comments_of(bob).write("repo:main", text) for text in ("well said", "BUY PILLS")]
        await meet(alice, bob)
        for one in made:
            await _inbox(alice).answer("repo", one["offer"], accepts=True)
        await _sharing(alice).state_link(alice.branch())
        await carol.joiner.follow_branch(_sharing(alice).capability_of(alice.branch()))

        async def read() -> list[str | None]:
            for _ in range(2):  # the first brings what the second shows
                await together(alice, bob)
                await meet(alice, carol)
                await meet(bob, carol)
                shown = await _comments_of(carol).show(document, 100)
            return [item["text"] for item in shown["items"]]

        async with trio.open_nursery() as nursery:
            nursery.start_soon(StatedComments(alice.hub, alice.author, _documents(alice)).run)
            assert await read() == ["well said", "BUY PILLS"]
            before = alice.branch().commit_count
            if ended_by == "its author":
                await _inbox(bob).answer("repo", made[1]["offer"], accepts=False)
                assert await read() == ["well said"], "bob may not write there, so alice's node does"
            else:
                offer = CommitId(BlockId(parse_id(made[1]["offer"])))
                _, ingested = alice.author.write(
                    alice.replica.root_branch(_repo(alice, "repo")), Answer(offer, False)
                )
                alice.hub.announce(ingested)
                assert await read() == ["well said"]
            await trio.sleep(600)
            assert alice.branch().commit_count <= before + 1, "and once"
            nursery.cancel_scope.cancel()


@pytest.mark.extended
async def test_answers_that_crossed_leave_in_the_dict_what_holds_though_one_node_stopped(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, bob, carol = nodes
    with fail_after(240):
        await share(alice, bob, carol)
        await members_of(alice).grant("", id_text(bob.author.user), "admin")
        made = await _comments_of(carol).write("repo:main", "BUY PILLS")
        await together(alice, bob, carol)
        offer = CommitId(BlockId(parse_id(made["offer"])))
        of = {one.key: StatedComments(one.hub, one.author, _documents(one)) for one in (alice, bob)}

        async def answer(node: Node, *accepts: bool) -> None:
            for one in accepts:
                _, ingested = node.author.write(
                    node.replica.root_branch(_repo(node, "repo")), Answer(offer, one)
                )
                node.hub.announce(ingested)
                await of[node.key].keep_level(_repo(node, "repo"))

        async def stated() -> bool:
            found = await _documents(bob).read_entries(DICT, "repo:main", [made["offer"]], STATED_COMMENTS)
            return any(entry.values for entry in found.values())

        await answer(alice, True)
        await together(alice, bob, carol)
        await of[bob.key].keep_level(_repo(bob, "repo"))
        await answer(alice, False, True)  # puts the comment again
        await answer(bob, False, True, False)  # and this holds: more follow each other
        await together(alice, bob)
        assert await stated()
        await of[bob.key].keep_level(_repo(bob, "repo"))
        assert not await stated()


async def test_all_comments_are_listed_page_after_page(nodes: list[Node]) -> None:
    alice = nodes[0]
    comments = _comments_of(alice)

    async def pages(limit: int) -> list[list[str | None]]:
        found: list[list[str | None]] = []
        cursor: str | None = ""
        while cursor is not None:
            page = await comments.show("repo:main", limit, cursor)
            found.append([item["text"] for item in page["items"]])
            cursor = page["cursor"]
        return found

    with fail_after(60):
        alice.create_repo()
        for number in range(3):
            made = await comments.write("repo:main", f"comment {number}")
            await _inbox(alice).answer("repo", made["offer"], accepts=True)
        assert await pages(100) == [["comment 0", "comment 1", "comment 2"]]
        assert await pages(2) == [["comment 1", "comment 2"], ["comment 0"]]
        asked = await comments.ask_trust("repo:main")
        await _inbox(alice).answer("repo", asked["offer"], accepts=True)
        for number in range(3):
            await comments.write("repo:main", f"trusted {number}")
        assert [text for page in reversed(await pages(2)) for text in page] == [
            *(f"comment {number}" for number in range(3)),
            *(f"trusted {number}" for number in range(3)),
        ]
        assert len(await pages(100)) == 1
        for cursor in ("x", f"{made['offer']}.x", f"{made['offer']}.-1"):
            with pytest.raises(ServiceError) as caught:
                await comments.show("repo:main", 2, cursor)
            assert caught.value.code == "bad_request"


async def test_a_page_of_comments_is_filled_past_deleted_ones_within_a_bound(
    nodes: list[Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    alice = nodes[0]
    comments = _comments_of(alice)
    with fail_after(60):
        alice.create_repo()
        made = [await comments.write("repo:main", f"comment {number}") for number in range(6)]
        for one in made:
            await _inbox(alice).answer("repo", one["offer"], accepts=True)
        for one in made[2:5]:  # not withdrawn, as its author's node may be stopped between the two
            await comments._posts.delete(one["commit"])
        page = await comments.show("repo:main", 2)
        assert [item["text"] for item in page["items"]] == ["comment 1", "comment 5"]
        monkeypatch.setattr(comments_module, "COMMENTS_LOOKED_MAX", 2)
        found: list[list[str | None]] = []
        cursor: str | None = ""
        while cursor is not None:
            page = await comments.show("repo:main", 2, cursor)
            found.append([item["text"] for item in page["items"]])
            cursor = page["cursor"]
        assert found == [["comment 5"], [], [], ["comment 0", "comment 1"]]


async def test_a_comment_that_could_not_be_followed_is_followed_the_next_time_it_is_shown(
    nodes: list[Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    alice, followed = nodes[0], list[AcceptedOffer]()

    def follow(_: Replica, __: Repo, offers: Sequence[AcceptedOffer]) -> bool:
        followed.extend(offers)
        if len(followed) == 1:
            raise StorageError("the disk is full")
        return True

    with fail_after(60):
        alice.create_repo()
        comments = _comments_of(alice)
        offer = AcceptedOffer(
            as_commit_id(b"o" * 32), alice.author.user, Offer(alice.branch().branch_id, False, "", b"")
        )
        monkeypatch.setattr(comments_module, "follow_offers", follow)
        monkeypatch.setattr(comments, "_show", lambda *_: ({"items": [], "cursor": None}, [offer]))
        with pytest.raises(StorageError):
            await comments.show("repo:main", 9)
        for _ in range(2):
            await comments.show("repo:main", 9)
        assert followed == [offer, offer], "and then no more: a link that lies leads nowhere"


@pytest.mark.slow
async def test_comments_of_many_strangers_and_long_ones_are_bounded(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, bob, _ = nodes
    with fail_after(240):
        await share(alice, bob)
        target = _branch(bob, "repo:main")
        with pytest.raises(ServiceError, match="at most 900 characters") as caught:
            await _comments_of(bob).write("repo:main", "x" * (COMMENT_SIZE_MAX + 1))
        assert caught.value.code == "too_large"
        longest = await _comments_of(bob).write("repo:main", "x" * COMMENT_SIZE_MAX)
        answer = await _comments_of(bob).write("repo:main", "y" * COMMENT_SIZE_MAX, longest["commit"])
        root = bob.replica.root_branch(_repo(bob, "repo"))
        _, ingested = bob.author.write_many(
            root,
            lambda _: [
                Draft(Offer(target.branch_id, False, f"spam {number}", b"-"))
                for number in range(OFFERS_OF_AUTHOR_MAX)
            ],
        )
        bob.hub.announce(ingested)
        await together(alice, bob)
        everything = await _offers(alice, limit=1000)
        assert len(everything) == OFFERS_OF_AUTHOR_MAX, "of one author the latest, however many there are"
        assert {one["offer"] for one in everything}.isdisjoint({longest["offer"], answer["offer"]})
        assert len(await _offers(alice, limit=10)) == 10
        assert not [one for one in alice.replica.repos.values() if one.name.startswith(COMMENTS_REPO)], (
            "no branch of a stranger is followed before a comment is accepted"
        )


@pytest.mark.slow
async def test_an_offer_that_was_accepted_once_many_others_had_come_is_read_from_the_store(
    nodes: list[Node],
) -> None:
    alice = nodes[0]
    alice.create_repo()
    root = alice.replica.root_branch(_repo(alice, "repo"))
    drafts = [
        Draft(Offer(_branch(alice, "repo:main").branch_id, False, f"note {number}", b"link"))
        for number in range(OFFERS_OF_AUTHOR_MAX + 1)
    ]
    written, _ = alice.author.write_many(root, lambda _: drafts)
    alice.author.write(root, Answer(written[0].commit_id, accepts=True))
    first, *others = _inbox(alice).find_offers(_repo(alice, "repo"))
    assert (first.operation.commit_id, first.is_accepted) == (written[0].commit_id, True)
    assert (first.body.note, first.body.link, len(others)) == ("note 0", b"link", OFFERS_OF_AUTHOR_MAX)


@pytest.mark.slow
async def test_of_offers_that_are_read_from_the_store_one_that_is_damaged_does_not_take_the_others_along(
    nodes: list[Node],
) -> None:
    alice = nodes[0]
    alice.create_repo()
    repo, branch = _repo(alice, "repo"), _branch(alice, "repo:main")
    drafts = [
        Draft(Offer(branch.branch_id, False, f"note {number}", b"link"))
        for number in range(OFFERS_OF_AUTHOR_MAX + 3)
    ]
    root = alice.replica.root_branch(repo)
    written, _ = alice.author.write_many(root, lambda _: drafts)
    early = [one.commit_id for one in written[:3]]
    alice.author.write_many(root, lambda _: [Draft(Answer(one, accepts=True)) for one in early])
    with alice.replica.database.write() as connection:
        rows = load_rows(connection, early)
        for commit_id, place in ((early[0], 0), (early[1], -1)):  # the commit's own block, and the body's
            num = unpack_nums(rows[commit_id].block_nums)[place]
            connection.execute(update(blocks).where(blocks.c.num == num).values(encoded=b"damaged"))
    alice.is_damaged = True
    assert [one.body.note for one in find_accepted(alice.replica, repo)] == ["note 2"]
    assert len(_inbox(alice).find_offers(repo)) == OFFERS_OF_AUTHOR_MAX + 1
    follow_accepted(alice.replica, repo)  # as each change of the root branch has it done


@pytest.mark.slow
async def test_who_is_no_member_offers_nothing_and_what_an_excluded_offered_is_gone(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, bob, carol = nodes
    with fail_after(240):
        await share(alice, bob)
        await carol.joiner.follow(alice.capability())
        await meet(alice, carol)
        with pytest.raises(ServiceError, match="only members"):
            await _comments_of(carol).write("repo:main", "hello?")
        offer = (await _comments_of(bob).write("repo:main", "while I was here"))["offer"]
        await members_of(alice).remove("", id_text(bob.author.user), "")
        await meet(alice, bob)
        assert (await _offers(alice)) == []
        with pytest.raises(ServiceError):
            await _inbox(alice).answer("repo", offer, accepts=True)


@pytest.mark.slow
async def test_a_fork_of_a_repo_offers_commits_back(nodes: list[Node], autojump_clock: MockClock) -> None:
    alice, bob, _ = nodes
    with fail_after(240):
        await share(alice, bob)
        await members_of(alice).remove("", id_text(bob.author.user), "read")
        alice.write(alice.branch(), "original")
        await together(alice, bob)
        merging = Merging(bob.hub, bob.author, lambda name: _branch(bob, name))
        forked = await merging.fork_repo(_repo(bob, "repo"), "mine")
        assert forked["branches"][0]["carried"] == 1
        assert bob.replica.permission(_repo(bob, "mine"), bob.author.user) is Permission.OWNER
        bob.author.write(_branch(bob, "mine:main"), Post("better"))
        offer = (await _inbox(bob).offer("mine:main", "repo:main", "please take it", pulls=True))["offer"]
        await meet(alice, bob)
        (shown,) = await _offers(alice)
        assert (shown["kind"], shown["note"], shown["commits"]) == ("pull", "please take it", 0)

        assert (
            _inbox(alice).count_waiting(_repo(alice, "repo")),
            _inbox(bob).count_waiting(_repo(bob, "repo")),
        ) == (1, 0)

        async def is_merged() -> bool:
            (one,) = await _offers(alice)
            return one["merged"]

        async def refuses_to_merge() -> None:
            with pytest.raises(ServiceError, match="the offer is open: it is merged once") as refused:
                await _inbox(alice).merge("repo", offer)
            of_repo = id_text(_repo(alice, "repo").repo_id)[:12]
            assert f"`ravel inbox accept {of_repo} {offer[:12]}`" in refused.value.advice

        await refuses_to_merge()
        with pytest.raises(ServiceError, match="nothing of the offered branch is here"):
            await _inbox(alice).preview("repo", offer)
        for _ in range(2):
            await _inbox(alice).fetch("repo", offer)
        await meet(alice, bob)
        ((shown,), early) = await _offers(alice), await _inbox(alice).preview("repo", offer)
        assert (shown["status"], [one["text"] for one in early["posts"]]) == ("open", ["better"])
        assert [(one["author"], one["count"]) for one in early["authors"]] == [(id_text(bob.author.user), 1)]
        await refuses_to_merge()
        await _inbox(alice).answer("repo", offer, accepts=True)
        assert _inbox(alice).count_waiting(_repo(alice, "repo")) == 0
        await meet(alice, bob)
        assert not await is_merged()
        look = await _inbox(alice).preview("repo", offer)
        assert (look["carried"], look["kinds"]) == (1, [{"kind": "post", "count": 1}])
        assert [(one["author"], one["text"]) for one in look["posts"]] == [
            (id_text(bob.author.user), "better")
        ]
        assert not await is_merged(), "a look writes nothing"
        merged = await _inbox(alice).merge("repo", offer)
        assert await is_merged()
        assert merged["carried"] == 1, "what came from here is known"
        items = (await Merging(alice.hub, alice.author, alice.branch).state("main", 100))["items"]
        (taken,) = [item for item in items if item["text"] == "better"]
        assert taken["author"] == id_text(alice.author.user)
        assert taken["origin"]["author"] == id_text(bob.author.user)
        assert (await _inbox(alice).merge("repo", offer))["carried"] == 0
        assert (await _inbox(alice).preview("repo", offer))["posts"] == []
        bob.author.write(_branch(bob, "mine:main"), Post("and better"))
        await meet(alice, bob)
        await meet(alice, bob)
        assert not await is_merged(), "there is more now"
        assert (await _inbox(alice).merge("repo", offer))["carried"] == 1
        fork = _repo(alice, f"(mine by {id_text(bob.author.user)[:8]})")
        assert [one.name for one in alice.replica.branches.values() if one.repo_num == fork.num] == ["main"]


@pytest.mark.slow
async def test_an_offer_of_something_unrelated_is_not_merged_and_one_that_is_unreadable_is_said(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, bob, _ = nodes
    with fail_after(240):
        await share(alice, bob)
        repo, _ = bob.author.founding.create_repo("other")
        bob.author.founding.create_branch(repo, "main")
        bob.author.write(_branch(bob, "other:main"), Post("of another kind"))
        with pytest.raises(ServiceError, match="of one repo"):
            await _inbox(bob).offer("repo:main", "repo:main", "", pulls=True)
        offer = (await _inbox(bob).offer("other:main", "repo:main", "", pulls=True))["offer"]
        root = bob.replica.root_branch(_repo(bob, "repo"))
        document = _branch(bob, "repo:main").branch_id
        written, ingested = bob.author.write(root, Offer(document, False, "", b"\xff not a link"))
        bob.hub.announce(ingested)
        await meet(alice, bob)
        for one in (offer, id_text(written.commit_id)):
            await _inbox(alice).answer("repo", one, accepts=True)
        await meet(alice, bob)
        await meet(alice, bob)
        views = {item["offer"]: item for item in (await _offers(alice))}
        assert [views[one]["readable"] for one in (offer, id_text(written.commit_id))] == [True, False]
        with pytest.raises(ServiceError, match="no common ancestor"):
            await _inbox(alice).merge("repo", offer)
        with pytest.raises(ServiceError, match="M12"):
            bob.author.write(root, Answer(as_commit_id(b"x" * 32), False))
        with pytest.raises(ServiceError, match="M12"):
            bob.author.write(root, Offer(BranchId(b"x" * 32), False, "", b""))


@pytest.mark.slow
async def test_what_was_followed_by_itself_can_be_forgotten(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, bob, _ = nodes
    with fail_after(240):
        repo, branch = alice.create_repo()
        alice.write(branch, "one")
        sharing = _inbox(alice)._sharing
        await sharing.state_link(branch)
        link = sharing.capability_of(branch)
        await bob.joiner.follow_branch(link)
        await meet(alice, bob)
        assert len(ids(bob)) == 2
        with bob.replica.change() as change:
            forget_repo(change.connection, bob.repo().num)
        assert not bob.replica.repos
        assert not bob.replica.branches
        await bob.joiner.begin(alice.invite(repo))
        await together(alice, bob)
        assert ids(alice) == ids(bob)


@pytest.mark.slow
async def test_an_accepted_link_that_lies_is_passed_over_for_good(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    """Bob's link says that the document's own branch is another repo's: it is not followed, nor tried for ever."""
    alice, bob, _ = nodes
    with fail_after(240):
        await share(alice, bob)
        document = _branch(bob, "repo:main")
        sharing = _inbox(bob)._sharing
        await sharing.state_link(document)
        link = replace(sharing.capability_of(document), repo=b"r" * 32)
        body = Offer(document.branch_id, False, "", encode(link))
        written, ingested = bob.author.write(bob.replica.root_branch(_repo(bob, "repo")), body)
        bob.hub.announce(ingested)
        await meet(alice, bob)
        await _inbox(alice).answer("repo", id_text(written.commit_id), accepts=True)
        await meet(alice, bob)
        assert len(alice.replica.repos) == 1
        alice.write(alice.branch(), "goes on")
        await together(alice, bob)


async def test_statements_of_comments_are_looked_for_in_a_fifth_of_the_time_amid_changes(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each look waits for the memberships that a flood's transactions hold, and holds them itself."""
    with open_nodes(tmp_path, "alice") as (alice,):
        stated, looks = StatedComments(alice.hub, alice.author, _documents(alice)), list[int | None]()

        async def look_slowly(tick: int | None) -> int:
            looks.append(tick)
            alice.hub.changes.ring()
            await trio.sleep(0.02)
            return 0

        monkeypatch.setattr(stated, "_look", look_slowly)
        with trio.move_on_after(10):
            await stated.run()
        assert 95 <= len(looks) <= 101
