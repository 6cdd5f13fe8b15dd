"""Commits whose headers say their bodies' kinds: judged without the bodies, whatever these turn out to be."""

import pytest
from sqlalchemy import select, update

from node.authoring.drafting import Draft
from node.care.fsck import check_store
from node.content.document_operations import DocumentOperationReader
from node.content.erasing import ERASABLE_KINDS, find_compactable, find_erasable
from node.content.text_reading import TextReader
from node.ingest.ingest_result import IngestResult
from node.ingest.replica import Replica
from node.observe.standing import is_topic_level
from node.timelines.commit_history import describe
from node.timelines.views import timeline_items
from protocol.crypto.keys import BlockKey, UserSeed
from protocol.formats.body import Body, encode_body, kind_name
from protocol.formats.commit import Commit, open_commit
from protocol.formats.content import Compaction, Imported, Post
from protocol.formats.declared_kind import ERASABLE, declare_kind, declared_kind
from protocol.formats.document_kinds import (
    DICT,
    SET,
    DictEdit,
    DictEntry,
    DictSnapshot,
    JsonEdit,
    JsonSnapshot,
    SaidUpdate,
    SetEdit,
    SetSnapshot,
    SnapshotEntries,
    SnapshotItems,
    TextSnapshot,
    TextUpdate,
)
from protocol.formats.publication import decode_publication, is_bare, open_hidden_key
from protocol.formats.text import id_text
from protocol.ids import ObjectId
from ravel.types.commits import TimelineItem
from storage.commits import pending as waiting_module
from storage.commits.absent_bodies import Erasure, erase_bodies
from storage.commits.blocks import DamagedBlock
from storage.commits.commits import load_timeline
from storage.commits.pending import count_rejections
from storage.engine.id_keys import id_key
from storage.repos.repos import Branch
from storage.schema.schema import blocks, commits, erasures, pending_publications
from tests.support.builders import NOW_MS, STORE_KEY, World, count_accepted, give, timeline
from tests.support.forging import BAD_BODIES, Forger, bare_of, publish
from tests.support.ids import as_commit_id
from verifier.documents import reduce_values


def _reasons(ingested: IngestResult) -> list[str]:
    return [*(one.code for one in ingested.rejected), *ingested.dropped]


def _shown(replica: Replica, branch: Branch) -> list[TimelineItem]:
    with replica.database.read() as connection:
        rows = load_timeline(connection, branch.num, 0, 1000)
        return timeline_items(connection, replica, rows, 0)


def _open(world: World, item: bytes) -> Commit:
    publication, keys = decode_publication(item), world.replica.writing_epoch(world.repo).keys
    key = open_hidden_key(publication, keys.read_key)
    return open_commit(publication.blocks[0], key, keys.convergence_secret)


def _missing(replica: Replica) -> list[bool]:
    with replica.database.read() as connection:
        return list(
            connection.execute(select(erasures.c.is_missing).order_by(erasures.c.commit_num)).scalars()
        )


def _problems(replica: Replica) -> list[str]:
    return [problem.detail for problem in check_store(replica.database.folder, STORE_KEY).problems]


def test_every_erasable_kind_is_said_and_no_other() -> None:
    bodies = (
        Post(""),
        Imported("i", "a", 1, ""),
        SetEdit((), (), ()),
        SetSnapshot("", None, ()),
        DictEdit((), (), ()),
        DictSnapshot("", None, ()),
        JsonEdit((), (), ()),
        JsonSnapshot("", None, ()),
        TextUpdate(b"u", ()),
    )
    assert {kind_name(type(body)) for body in bodies} == set(ERASABLE_KINDS)
    assert len({declare_kind(body) for body in bodies} - {b""}) == len(ERASABLE)
    assert declare_kind(TextSnapshot((SaidUpdate(as_commit_id(b"n" * 32), b"u", ()),))) == b""
    assert declare_kind(Post("words")) == b"\x92\xa5kind1\xa5post1"


def test_own_commits_say_their_kinds_and_nothing_in_the_root_branch(world: World) -> None:
    world.write("a")
    branch = world.branch
    (item,) = world.publications(branch)[1:]
    assert give(world.copy()[0], [bare_of(item)]).accepted
    root = world.replica.root_branch(world.repo)
    (item,) = world.publications(root)[1:]
    commit = _open(world, item)
    assert (commit.content.metadata, declared_kind(commit, is_root_branch=True)) == (b"", None)
    replica, _ = world.copy()
    assert _reasons(give(replica, [bare_of(item)])) == ["bare"]


def test_in_the_root_branch_no_word_about_the_kind_counts(world: World) -> None:
    root = world.replica.root_branch(world.repo)
    item = Forger(world, branch=root).write(BAD_BODIES["no value"])
    assert _open(world, item).content.metadata == declare_kind(Post(""))
    replica, _ = world.copy()
    assert _reasons(give(replica, [bare_of(item)])) == ["bare"]
    assert _reasons(give(replica, [item])) == ["bad_body"]


@pytest.mark.slow
@pytest.mark.parametrize("name", BAD_BODIES)
def test_a_body_that_is_not_what_was_said_is_kept_and_says_nothing(world: World, name: str) -> None:
    forger = Forger(world)
    item = forger.write(BAD_BODIES[name])
    seen, unseen = world.copy(), world.copy()
    for (replica, branch), publication in ((seen, item), (unseen, bare_of(item))):
        ingested = give(replica, [publication])
        assert (_reasons(ingested), count_accepted(ingested)) == ([], 1)
        assert timeline(replica, branch) == [world.branch.facts.root_id, decode_publication(item).commit_id]
        assert _problems(replica) == []
    commit = id_text(decode_publication(item).commit_id)
    for (replica, branch), lack in ((seen, "unreadable"), (unseen, "erased")):
        shown = _shown(replica, branch)[-1]
        assert (shown["commit"], shown["kind"], shown["text"]) == (commit, "post", None)
        assert dict(shown)[lack] is True
        assert dict(describe(replica, commit))[lack] is True


def test_a_key_that_does_not_open_the_body_makes_it_unreadable(world: World) -> None:
    item = Forger(world).write(encode_body(Post("words")), body_key=BlockKey(b"k" * 32))
    replica, branch = world.copy()
    assert give(replica, [item]).accepted
    assert _shown(replica, branch)[-1]["unreadable"] is True


@pytest.mark.slow
@pytest.mark.parametrize(
    "metadata",
    [b"", b"free", declare_kind(Post("")) + b"\0", declare_kind(Post(""))[:-1], b"\x92\xa5kind1\xa5join1"],
)
def test_where_no_kind_is_said_the_body_decides_as_ever(world: World, metadata: bytes) -> None:
    forger = Forger(world)
    bad = forger.write(BAD_BODIES["no value"], metadata)
    wrong_key = Forger(world, UserSeed(b"g" * 32)).write(
        encode_body(Post("words")), metadata, body_key=BlockKey(b"k" * 32)
    )
    good = Forger(world, UserSeed(b"h" * 32)).write(encode_body(Post("words")), metadata)
    replica, branch = world.copy()
    assert _reasons(give(replica, [bare_of(bad), bare_of(good)])) == ["bare"]
    assert _reasons(give(replica, [bad, wrong_key])) == ["bad_body", "bad_body"]
    assert give(replica, [good]).accepted
    with replica.database.read() as connection:
        assert count_rejections(connection, replica.root_branch(replica.repos[branch.repo_num]).num) == 2
    compaction = Forger(world, UserSeed(b"i" * 32)).write(BAD_BODIES["compaction"], metadata)
    replica, branch = world.copy()
    assert _reasons(give(replica, [compaction])) == ["not_permitted"]


def test_a_body_whose_header_says_no_kind_is_never_erased(world: World) -> None:
    # A newcomer would take neither the commit without it nor what follows.
    forger = Forger(world)
    silent, said = [forger.write(encode_body(Post("words")), metadata) for metadata in (b"", None)]
    give(world.replica, [silent, said])
    world.author.write(world.branch, Draft(Compaction(())))
    with world.replica.database.read() as connection:
        for rows in (
            find_erasable(world.replica, connection, world.branch, NOW_MS + 1),
            find_compactable(world.replica, connection, world.branch),
        ):
            assert [row.commit_id for row in rows] == [decode_publication(said).commit_id]


def test_a_sync_ends_where_the_peer_has_erased_what_is_needed() -> None:
    assert not is_topic_level("in sync", 3, bodiless=False)
    assert is_topic_level("in sync", 3, bodiless=True)
    assert not is_topic_level("receiving", 3, bodiless=True)


def test_what_is_wrong_with_the_publication_is_its_carriers_fault(world: World) -> None:
    forger = Forger(world)
    item, other = forger.write(encode_body(Post("words"))), forger.write(encode_body(Post("more")))
    whole, more = decode_publication(item), decode_publication(other)
    bare = decode_publication(bare_of(item))
    replica, _ = world.copy()
    key = _open(world, item).key
    for sent, reason in (
        (whole.blocks[:1], "missing_body"),
        ((whole.blocks[0], more.blocks[1]), "missing_body"),
        ((*whole.blocks, more.blocks[1]), "surplus_blocks"),
        ((*whole.blocks, whole.blocks[1]), "surplus_blocks"),
    ):
        assert _reasons(give(replica, [publish(forger.target, key, sent)])) == [reason]
    assert bare.body_id == whole.blocks[1].block_id
    assert bare.publication_id == whole.publication_id
    assert give(replica, [item]).accepted


def _row(replica: Replica, item: bytes) -> dict[str, object]:
    """Return all that the store says of a commit but its arrival."""
    wanted = decode_publication(item).commit_id
    with replica.database.read() as connection:
        row = connection.execute(select(commits).where(commits.c.commit_id == wanted)).one()
        return {name: row._mapping[name] for name in ("rank", "body_kind", "size", "passed", "signature")}


@pytest.mark.slow
def test_a_body_that_comes_later_is_taken_and_then_all_is_as_if_it_had_come_at_once(world: World) -> None:
    items = world.write("a, a <- b, a <- c, b c <- d")
    whole, late = world.copy(), world.copy()
    give(whole[0], items)
    replica, _ = late
    assert count_accepted(give(replica, [bare_of(item) for item in items])) == 4
    assert timeline(*whole) == timeline(*late)
    assert [item["text"] for item in _shown(*late)[1:]] == [None] * 4
    assert _missing(replica) == [True] * 4
    ingested = give(replica, [bare_of(items[0]), *items[1:3]])
    assert (ingested.already, len(ingested.filled)) == (3, 2)
    assert give(replica, items).filled == {
        decode_publication(item).commit_id for item in (items[0], items[3])
    }
    assert give(replica, items).filled == set()
    assert (_missing(replica), _problems(replica)) == ([], [])
    assert _shown(*late) == _shown(*whole)
    assert [_row(replica, item) for item in items] == [_row(whole[0], item) for item in items]


def test_bare_and_whole_of_one_batch_come_to_the_whole_one(world: World) -> None:
    (item,) = world.write("a")
    replica, branch = world.copy()
    ingested = give(replica, [bare_of(item), item])
    assert (count_accepted(ingested), len(ingested.filled)) == (1, 1)
    assert _shown(replica, branch)[-1]["text"] == "a"


def test_a_bare_one_waits_for_causes_and_a_whole_one_takes_its_place_within_the_bound(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = "words " * 20  # longer than the id that stands for them
    items = [
        world.write_one(name, acks)
        for name, acks in (("a", []), ("b" + long, ["a"]), ("c" + long, ["b" + long]))
    ]
    replica, branch = world.copy()
    for item in items[1:]:
        assert give(replica, [bare_of(item)]).waiting == 1

    def kinds() -> list[bool]:
        with replica.database.read() as connection:
            kept = pending_publications.c
            query = select(kept.publication).order_by(kept.pending_num)
            return [is_bare(one) for one in connection.execute(query).scalars()]

    size = len(bare_of(items[2])) + len(items[1])
    monkeypatch.setattr(waiting_module, "PENDING_SIZE_MAX", 2 * (size - 1))
    give(replica, items[1:2])
    assert kinds() == [True, True], "a byte over"
    monkeypatch.setattr(waiting_module, "PENDING_SIZE_MAX", 2 * size)  # an author's half
    give(replica, items[1:])
    assert kinds() == [False, True]
    give(replica, [bare_of(items[1])])
    assert kinds() == [False, True], "a bare one never takes the place of a whole one"
    assert count_accepted(give(replica, items[:1])) == 3
    assert [item["text"] for item in _shown(replica, branch)[1:]] == ["a", "b" + long, None]


def test_what_this_node_has_erased_itself_does_not_come_back(world: World) -> None:
    items = world.write("a, a <- b")
    replica, branch = world.copy()
    give(replica, [items[0], bare_of(items[1])])
    with replica.database.write() as connection:
        row = load_timeline(connection, branch.num, 1, 1)[0]
        body_id = decode_publication(items[0]).blocks[1].block_id
        erase_bodies(
            connection, branch.num, [Erasure(row.num, row.topic_num, row.block_nums, ObjectId(body_id))], 1
        )
    assert give(replica, items).filled == {decode_publication(items[1]).commit_id}
    assert [item["text"] for item in _shown(replica, branch)[1:]] == [None, "b"]
    assert (_missing(replica), _problems(replica)) == ([False], [])


@pytest.mark.slow
def test_documents_hold_the_same_with_bodies_that_say_nothing_and_without_them(world: World) -> None:
    """Snapshots may name such commits: that counts for all, or for nobody."""
    forger = Forger(world)

    def write(said: Body, body: bytes | None = None, after: bytes | None = None) -> bytes:
        acks = () if after is None else (decode_publication(after).commit_id,)
        return forger.write(encode_body(said) if body is None else body, declare_kind(said), acks)

    bad = b"\x91\xa4set1"
    word = write(SetEdit((), (), ()), bad)
    put = write(DictEdit((), (), ()), bad, word)
    update = write(TextUpdate(b"u", ()), bad, put)
    unread = write(SetSnapshot("", None, ()), bad, update)  # covers nothing
    name = decode_publication(word).commit_id
    set_snapshot = write(SetSnapshot("", None, (SnapshotItems(name, ("pears",)),)), after=unread)
    puts = SnapshotEntries(decode_publication(put).commit_id, (DictEntry("size", "large"),))
    dict_snapshot = write(DictSnapshot("", None, (puts,)), after=set_snapshot)
    items = [word, put, update, unread, set_snapshot, dict_snapshot]
    seen, unseen = world.copy(), world.copy()
    give(seen[0], items)
    give(unseen[0], [*map(bare_of, items[:4]), *items[4:]])
    for replica, branch in (seen, unseen):
        assert timeline(replica, branch) == timeline(*seen)
        reader = DocumentOperationReader(replica)
        with replica.database.read() as connection:
            said = {
                kind.name: [one for one, _ in reader.read(connection, branch, kind)] for kind in (SET, DICT)
            }
            edits = TextReader(replica).read(connection, branch).edits
        assert [key for key, entry in reduce_values(said["set"]).items() if entry.values] == ["pears"]
        assert reduce_values(said["dict"])["size"].values[0].value == "large"
        # A text cannot be told without it: no snapshot could prove what such a body was.
        assert [one.is_missing for one in edits] == [replica is unseen[0]]
        give(replica, items)
        assert _shown(replica, branch) == _shown(*seen), "also once they have come"


def test_a_damaged_block_is_not_taken_for_a_body_that_says_nothing(world: World) -> None:
    (item,) = world.write("a")
    replica, branch = world.copy()
    give(replica, [item])
    body = decode_publication(item).blocks[1]
    with replica.database.write() as connection:
        here = blocks.c.id_key == id_key(body.block_id)
        connection.execute(update(blocks).where(here).values(encoded=body.encoded[:-1] + b"!"))
    with pytest.raises(DamagedBlock):
        _shown(replica, branch)
    assert any("missing_body" in problem for problem in _problems(replica))
