"""The check of a store: a good one has nothing to say, and each kind of damage is found and named."""

from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import delete, text, update
from trio.testing import MockClock

from node.authoring.drafting import Draft
from node.care.fsck import check_store
from node.content.search_indexer import SearchIndexer
from protocol.formats.body import Body, encode_body, tag_of
from protocol.formats.content import FileEntry, Files, Post
from protocol.formats.declared_kind import declare_kind
from protocol.formats.document_kinds import SetEdit
from protocol.formats.object import build_object
from protocol.formats.publication import decode_publication, encode_publication
from protocol.formats.text import id_text
from protocol.ids import PeerId
from protocol.limits.files import FSCK_PROBLEMS_SHOWN_MAX
from storage.check.check_integrity import CheckFindings, count_rows
from storage.commits.search_index import IndexItem, load_state, replace_text
from storage.commits.search_texts import keep_content, load_due, mark_texts_due
from storage.engine.database import Database
from storage.engine.id_keys import pack_nums
from storage.relay.quotas import Visitor
from storage.schema.document_schema import documents
from storage.schema.schema import commits
from storage.topics import sketches as sketches_module
from storage.topics.difference import REPLICA
from storage.topics.topic_sets import TopicSet
from tests.support.builders import STORE_KEY, World, give
from tests.support.forging import Forger, sign_at_random
from tests.support.machine import fail_after
from tests.support.nodes import Node, meet, members_of, open_nodes, share, together
from tests.support.relays import fill_relay


def _world(folder: Path) -> World:
    """A fork and a merge, a checkpoint, and a commit that waits."""
    return World(folder, tell=_tell)


def _tell(world: World) -> None:
    world.name_quorum()
    world.write("a, a <- b, a <- c, b c <- d")
    world.checkpoint_one("k", ["d"])
    world.write("k <- e")


@pytest.mark.slow
def test_a_good_store_has_no_problems(tmp_path: Path) -> None:
    world = _world(tmp_path)
    findings = check_store(tmp_path, STORE_KEY)
    assert findings.problems == []
    with world.replica.database.read() as connection:
        rows = count_rows(connection)
    assert findings.checked["commits"] == rows["commits"] > 8
    assert findings.checked["blocks"] == rows["blocks"]
    world.close()


HARM = {"junk": b"junk" * 8, "zero": b"\0"}
SQL: dict[str, tuple[str, str]] = {
    "rank": ("UPDATE commits SET rank = rank + 1 WHERE rank = 3", "rank"),
    "ack_that_is_not_there": ("UPDATE commits SET acks = :junk WHERE rank = 3", "ack"),
    "head_that_is_missing": ("DELETE FROM heads WHERE branch_num = 2", "head"),
    "head_that_is_none": (
        "INSERT INTO heads SELECT topic_num, commit_id, branch_num, rank, false FROM commits"
        " WHERE rank = 1 AND branch_num = 2",
        "head",
    ),
    "head_marked": ("UPDATE heads SET is_acked = true", "head"),
    "branch_count": ("UPDATE branches SET commit_count = commit_count + 1", "count"),
    "void_count": ("UPDATE branches SET void_count = 1", "count"),
    "topic_count": ("UPDATE topics SET commit_count = 0", "count"),
    "order_shown": ("UPDATE order_spans SET shown = shown + 1 WHERE branch_num = 2", "order"),
    "order_size": ("UPDATE order_spans SET size = size - 1 WHERE branch_num = 2", "order"),
    "order_missing": ("DELETE FROM order_spans WHERE branch_num = 2", "order"),
    "order_begins_late": ("UPDATE order_spans SET rank = 1 WHERE branch_num = 2", "order"),
    "order_higher_level": (
        "INSERT INTO order_spans SELECT branch_num, 1, 0, 1, commit_id, 1, shown FROM order_spans",
        "order",
    ),
    "display_time": ("UPDATE commits SET display_time = display_time + 1 WHERE rank = 3", "time"),
    "passed": ("UPDATE commits SET passed = passed + 1 WHERE rank = 2", "passed"),
    "void": ("UPDATE commits SET is_void = true WHERE branch_num = 2 AND rank = 2", "void"),
    "feed_evidence": (
        "INSERT INTO feed_forks SELECT branch_num, commit_id, author_num, feed_sequence FROM commits LIMIT 1",
        "feed",
    ),
    "author": ("UPDATE commits SET author_num = 999 WHERE rank = 2", "reference"),
    "sequence": ("UPDATE commits SET feed_sequence = 77 WHERE rank = 2", "commit"),
    "body_kind": ("UPDATE commits SET body_kind = 'file' WHERE rank = 2", "commit"),
    "timestamp": ("UPDATE commits SET timestamp = timestamp + 1 WHERE rank = 2", "commit"),
    "commit_key": (
        "UPDATE commits SET commit_key = :junk WHERE branch_num = 2 AND rank = 2",
        "commit",
    ),
    "place": ("UPDATE commits SET place_num = 1 WHERE branch_num = 2 AND rank = 3", "commit"),
    "place_that_is_not_there": (
        "UPDATE commits SET place_num = 99 WHERE branch_num = 2 AND rank = 3",
        "reference",
    ),
    "init_on_a_topic": (
        "INSERT INTO topic_inits SELECT topic_num, num FROM commits WHERE rank = 3",
        "commit",
    ),
    "writers_topic": ("UPDATE epochs SET writers_topic_num = topic_num", "repo"),
    "block_bytes": ("UPDATE blocks SET encoded = :junk WHERE num = 9", "block"),
    "block_missing": ("DELETE FROM blocks WHERE num = 9", "commit"),
    "block_of_another": (
        "UPDATE commits SET block_nums = (SELECT block_nums FROM commits WHERE num = 2) WHERE num = 6",
        "commit",
    ),
    "id_key": ("UPDATE commits SET id_key = 5 WHERE rank = 3", "commit"),
    "checkpoint_forgotten": ("DELETE FROM checkpoints", "commit"),
    "topic_missing": ("UPDATE commits SET topic_num = 99 WHERE rank = 2", "reference"),
    "repo_secret": ("UPDATE epochs SET key = :junk", "repo"),
    "waiting": (
        "INSERT INTO pending (num, branch_num, topic_num, id_key, commit_id, author_key, reason, size, cause_count, "
        "lacking) SELECT 1, 2, 2, id_key, commit_id, 0, 'causes', 0, 0, 0 FROM commits WHERE num = 5",
        "waiting",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("damage", SQL)
def test_damage_is_found(tmp_path: Path, damage: str) -> None:
    world = _world(tmp_path)
    statement, kind = SQL[damage]
    with world.replica.database.write() as connection:
        assert connection.execute(text(statement), HARM).rowcount > 0, "the damage is done"
    world.close()
    findings = check_store(tmp_path, STORE_KEY)
    assert kind in findings.kinds, findings.kinds


def with_file(folder: Path) -> Node:
    """A node with a file in a pack."""
    node = Node(folder, "alice")
    _, branch = node.create_repo()
    reference, blocks = build_object(bytes(range(256)) * 10_000, node.epoch().convergence_secret)
    with node.replica.packs.draft() as draft:
        for block in blocks:
            draft.put(block)
        draft.finish()
        entry = Files((FileEntry("name", 2_560_000),))
        node.author.write(
            branch, Draft(entry, files=(reference,)), after=lambda connection, _: draft.keep(connection)
        )
        draft.is_kept = True
    return node


def _flip(pack: Path) -> None:
    content = bytearray(pack.read_bytes())
    content[1000] ^= 1
    pack.write_bytes(content)


PACKS: dict[str, tuple[Callable[[Path], object], str]] = {
    "flipped": (_flip, "block"),
    "cut": (lambda pack: pack.write_bytes(pack.read_bytes()[:-1]), "pack"),
    "gone": (lambda pack: pack.unlink(), "pack"),
}


@pytest.mark.slow
@pytest.mark.parametrize("damage", PACKS)
def test_damage_of_packs_is_found(tmp_path: Path, damage: str) -> None:
    with_file(tmp_path).replica.close()
    good = check_store(tmp_path, STORE_KEY)
    assert (good.problems, good.checked["files"], good.checked["files_incomplete"]) == ([], 1, 0)
    (pack,) = (tmp_path / "packs").iterdir()
    harm, kind = PACKS[damage]
    harm(pack)
    assert kind in check_store(tmp_path, STORE_KEY).kinds


@pytest.mark.parametrize(
    "statement",
    ["UPDATE files SET name = 'other'", "DELETE FROM files", "INSERT INTO file_removals VALUES (1, 2)"],
)
def test_files_are_compared_with_what_commits_say(tmp_path: Path, statement: str) -> None:
    node = with_file(tmp_path)
    with node.replica.database.write() as connection:
        connection.execute(text(statement))
    node.replica.close()
    assert "file" in check_store(tmp_path, STORE_KEY).kinds


@pytest.mark.slow
def test_content_that_never_came_is_no_damage(tmp_path: Path) -> None:
    node = with_file(tmp_path)
    with node.replica.database.write() as connection:
        connection.execute(text("DELETE FROM pack_blocks"))
        connection.execute(text("DELETE FROM packs"))
    node.replica.close()
    findings = check_store(tmp_path, STORE_KEY)
    assert (findings.problems, findings.checked["files_incomplete"]) == ([], 1)
    assert findings.checked["unnamed_packs"] == 1


@pytest.mark.sqlite
def test_a_damaged_page_is_found(tmp_path: Path) -> None:
    world = _world(tmp_path)
    world.close()
    path = tmp_path / "ravel.sqlite"
    content = bytearray(path.read_bytes())
    content[-4096] = 0  # the kind of the last page
    path.write_bytes(content)
    assert "database" in check_store(tmp_path, STORE_KEY).kinds


@pytest.mark.slow
async def test_voids_are_as_the_rules_say(tmp_path: Path, autojump_clock: MockClock) -> None:
    with fail_after(120), open_nodes(tmp_path, "alice", "bob", "carol") as (alice, bob, carol):
        await share(alice, bob, carol)
        bob.write(bob.branch(), "seen by all")
        await together(alice, bob, carol)
        bob.write(bob.branch(), "unseen")
        await together(carol, bob)
        await members_of(alice).remove("", id_text(bob.author.user), "")
        await together(alice, carol)
        await meet(bob, carol)
        for node in (alice, bob, carol):
            assert check_store(tmp_path / node.seed.rstrip(b"-").decode(), STORE_KEY).problems == []
        carol.is_damaged = True
        with carol.replica.database.write() as connection:
            done = connection.execute(text("UPDATE commits SET is_void = false WHERE is_void"))
            assert done.rowcount == 1
            connection.execute(text("UPDATE branches SET void_count = 0"))
            connection.execute(text("UPDATE order_spans SET shown = size"))
        findings = check_store(tmp_path / "carol", STORE_KEY)
        assert findings.kinds == {"void": 1}


def test_problems_are_counted_beyond_what_is_shown() -> None:
    findings = CheckFindings()
    for number in range(FSCK_PROBLEMS_SHOWN_MAX + 1):
        findings.add("rank", str(number), "wrong")
    assert len(findings.problems) == FSCK_PROBLEMS_SHOWN_MAX
    assert findings.kinds.total() == FSCK_PROBLEMS_SHOWN_MAX + 1


RELAYED = {
    "count": ("UPDATE relay_topics SET commit_count = 77", "count"),
    "acks": ("UPDATE relay_commits SET acks = :junk", "relayed"),
    "publication": ("UPDATE relay_commits SET publication = :zero", "relayed"),
    "other_commit": ("UPDATE relay_commits SET commit_id = :junk WHERE num = 1", "relayed"),
    "other_publication": (
        "UPDATE relay_commits SET publication_id = :junk WHERE num = 1",
        "relayed",
    ),
    "other_key": ("UPDATE relay_commits SET publication_key = 9 WHERE num = 1", "relayed"),
    "no_first": ("UPDATE relay_commits SET is_variant = true WHERE num = 1", "relayed"),
    "topic": ("UPDATE relay_commits SET topic_num = 9", "reference"),
    "no_note": ("DELETE FROM relay_bare", "relayed"),
    "note": ("INSERT INTO relay_bare (topic_num, commit_num) VALUES (1, 1)", "relayed"),
    "note_of_none": ("UPDATE relay_bare SET commit_num = 99", "reference"),
    "size": ("UPDATE relay_topics SET size = 1", "count"),
    "file_size": ("UPDATE relay_topics SET file_size = 1", "count"),
    "sum": ("UPDATE relay_sums SET size = size + 1", "count"),
    "no_sum": ("DELETE FROM relay_sums", "count"),
    "size_of_file": ("UPDATE relay_files SET size = size + 1", "count"),
    "block": ("UPDATE relay_blocks SET encoded = :zero WHERE num = 2", "relayed"),
    "inner_block": ("UPDATE relay_blocks SET encoded = :zero WHERE num = 1", "relayed"),
    "no_block": ("DELETE FROM relay_blocks WHERE num = 2", "reference"),
    "no_link": ("DELETE FROM relay_file_blocks WHERE block_num = 2", "relayed"),
    "no_root": ("DELETE FROM relay_file_blocks WHERE block_num = 1", "relayed"),
    "no_file": ("DELETE FROM relay_files", "reference"),
    "no_account": ("DELETE FROM relay_accounts", "reference"),
    "quota": ("UPDATE relay_accounts SET quota = -5", "account"),
}


@pytest.mark.slow
@pytest.mark.parametrize("damage", [None, *RELAYED])
def test_what_is_kept_for_others_is_checked_as_far_as_it_can_be(tmp_path: Path, damage: str | None) -> None:
    world = _world(tmp_path / "writer")
    (tmp_path / "relay").mkdir()
    database = Database(tmp_path / "relay")
    count = fill_relay(database, world, Visitor(PeerId(b"p" * 32)))
    world.close()
    statement, kind = RELAYED[damage] if damage else ("", "")
    if damage:
        with database.write() as connection:
            connection.execute(text(statement), HARM)
    database.close()
    findings = check_store(tmp_path / "relay", STORE_KEY)
    assert findings.checked["relayed"] == count > 5
    assert findings.checked["relayed_blocks"] == (2 if damage == "no_block" else 3)
    assert (kind in findings.kinds) if damage else (findings.problems == [])


@pytest.mark.slow
@pytest.mark.parametrize("of_publications", [False, True])
def test_what_topics_are_compared_by_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, of_publications: bool
) -> None:
    world = _world(tmp_path)
    monkeypatch.setattr(sketches_module, "_WRITTEN_AFTER", 1)
    database = world.replica.database
    kept = sketches_module.Sketches(database)
    with database.read() as connection:
        topic = world.topic()
        kept.symbols(connection, TopicSet(REPLICA, topic.num, topic.topic, of_publications, topic))
    kept.write()
    good = check_store(tmp_path, STORE_KEY)
    assert (good.problems, good.checked["sketches"]) == ([], 1)
    for column in ("digest", "prefix"):
        with database.write() as connection:
            old = connection.execute(text(f"SELECT {column} FROM sketches")).scalar_one()  # noqa: S608  # columns of this test
            new = bytes([old[0] ^ 1]) + old[1:] if column == "digest" else old[:-1] + bytes([old[-1] ^ 1])
            connection.execute(text(f"UPDATE sketches SET {column} = :new"), {"new": new})  # noqa: S608  # as above
        assert "sketch" in check_store(tmp_path, STORE_KEY).kinds
        with database.write() as connection:
            connection.execute(text(f"UPDATE sketches SET {column} = :old"), {"old": old})  # noqa: S608  # as above
    world.close()


SEARCH: dict[str, str] = {
    "key": "UPDATE search_state SET hash_key = :junk",
    "ahead": "UPDATE search_state SET upto = 99999",
    "words_gone": "DELETE FROM search_words",
    "word_gone": "DELETE FROM search_words WHERE word IN (SELECT max(word) FROM search_words)",
    "words_of_another_place": "UPDATE search_words SET places = :junk WHERE part_num > 0",
    "part_gone": "DELETE FROM search_parts WHERE num > 0",
    "part_of_another_branch": "UPDATE search_parts SET branch_num = 999",
    "text": "UPDATE search_texts SET content = :junk",
}


def with_index(folder: Path) -> Node:
    """A node with two posts and a text, and an index of both."""
    node = Node(folder, "alice")
    _, branch = node.create_repo()
    for said in ("a red house", "…"):
        node.write(branch, said)
    indexer = SearchIndexer(node.hub, is_enabled=True)
    while indexer.work():
        pass
    with node.replica.database.write() as connection:
        mark_texts_due(connection, [branch.num])
        due, state = load_due(connection, 0), load_state(connection)
        assert due is not None
        assert state is not None
        assert keep_content(connection, due, pack_nums([branch.num]), b"clear")
        last = connection.execute(text("SELECT max(num) FROM commits")).scalar_one()
        replace_text(connection, state.key, branch.num, IndexItem(last, branch.num, 1, 1, ["wclear"]))
    return node


@pytest.mark.parametrize("damage", SEARCH)
def test_a_search_index_that_is_not_that_of_the_posts_is_found(tmp_path: Path, damage: str) -> None:
    node = with_index(tmp_path)
    good = check_store(tmp_path, STORE_KEY)
    assert (good.problems, good.checked["searched"], good.checked["search_parts"]) == ([], 2, 2)
    with node.replica.database.write() as connection:
        junk = {"junk": b"j" * 4} if ":junk" in SEARCH[damage] else {}
        connection.execute(text(SEARCH[damage]), junk)
    assert set(check_store(tmp_path, STORE_KEY).kinds) == {"search"}
    node.replica.close()


@pytest.mark.parametrize("body", [Post("x"), SetEdit(("a",), (), ())], ids=["post", "set"])
def test_a_kind_that_an_older_version_did_not_know_is_no_damage(tmp_path: Path, body: Body) -> None:
    world = World(tmp_path)
    item = Forger(world).write(encode_body(body), declare_kind(body))
    assert give(world.replica, [item]).accepted
    with world.replica.database.write() as connection:
        change = update(commits).where(commits.c.rank == 1, commits.c.branch_num == world.branch.num)
        assert connection.execute(change.values(body_kind=f"unknown:{tag_of(type(body))}")).rowcount == 1
        connection.execute(delete(documents))  # it kept none of these
    world.close()
    assert check_store(tmp_path, STORE_KEY).problems == []


def test_another_valid_signature_of_the_topic_is_no_damage(tmp_path: Path) -> None:
    """A writer can make any number of them for one commit, with other random numbers than Ed25519 prescribes."""
    world = World(tmp_path)
    first, second = world.write("a, a <- b")
    found = decode_publication(second)
    seed = world.topic().seed
    assert seed is not None
    signature = sign_at_random(seed, found.digest)
    assert signature != found.signature
    blocks = tuple(block.encoded for block in found.blocks)
    replica, _ = world.copy()
    signed = encode_publication(found.topic, found.hidden_key, blocks, signature)
    assert give(replica, [signed]).waiting == 1
    assert give(replica, [first]).accepted
    world.close()
    assert check_store(replica.database.folder, STORE_KEY).problems == []
