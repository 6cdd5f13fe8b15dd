"""The way in of epochs and branches: inits that wait for keys, first commits that wait for branches, closed epochs."""

from dataclasses import replace

import pytest
from msgspec import structs
from sqlalchemy import select

from node.authoring import epoch_starts
from node.authoring.author import Author
from node.authoring.drafting import AuthorKeys, CommitPosition, Draft, Target, aim, encode_draft
from node.authoring.epoch_starts import EpochStarting, make_init
from node.ingest.acceptance import accept_batch, release_more, retry_kept
from node.ingest.ingest_result import IngestResult
from node.ingest.publication_parsing import open_batch
from node.ingest.replica import Replica
from protocol.crypto.hashing import branch_read_key, branch_secret
from protocol.crypto.keys import EpochKey, TopicSeed, UserSeed
from protocol.crypto.signing import key_pair
from protocol.formats.body import BranchLink, encode_body
from protocol.formats.content import Post
from protocol.formats.epochs import NONCE_SIZE, EpochStatement, seal_topic
from protocol.formats.publication import create_publication, decode_publication, open_hidden_key
from protocol.ids import CommitId, EpochId, RepoId, TopicKey
from storage.check.check_derived import check_graph, check_sums
from storage.check.check_integrity import CheckFindings
from storage.commits.commits import load_rows
from storage.commits.pending import count_pending
from storage.engine.id_keys import id_key
from storage.repos.epochs import Epoch, Topic, add_epoch, epoch_keys
from storage.repos.repos import Branch
from storage.schema.schema import topic_inits
from storage.topics.difference import LINKED, plan_sending
from storage.topics.publishing import load_publications
from tests.support.builders import NOW_MS, STORE_KEY, World, count_accepted, give, timeline, writing_topic
from tests.support.forging import forge, heads_of, rank_behind, target_in
from verifier.verify import key_mark

_USER, _SECRET = key_pair(UserSeed(b"w" * 32))


def _root(world: World) -> Branch:
    return world.replica.root_branch(world.repo)


def _start(world: World) -> tuple[Epoch, bytes]:
    """Start an epoch; gives it, and its init as it was published."""
    world.author.start_epoch(world.repo)
    return world.replica.writing_epoch(world.repo), world.publications(_root(world))[-1]


def _sent(replica: Replica, topic: TopicKey) -> list[bytes]:
    """Return what is sent on a topic to a peer that has nothing of it."""
    found = replica.by_topic[topic]
    with replica.database.read() as connection:
        return load_publications(connection, found, plan_sending(connection, found.num, ()).nums, 1 << 20)


def _learn(replica: Replica, epoch: Epoch, key: EpochKey | None = None) -> None:
    """Take up an epoch's key, or another one that is said to be that."""
    (repo,) = replica.repos.values()
    learned = replace(epoch, repo_num=repo.num, key=key or epoch.key, writers_topic=None, claimed_by=_USER)
    with replica.change() as change:
        add_epoch(replica.database, change.connection, learned)
        change.unreleased[id_key(key_mark(epoch.epoch_id))] = False


def _count_waiting(replica: Replica) -> int:
    with replica.database.read() as connection:
        return count_pending(connection)


def _codes(ingested: IngestResult) -> list[str]:
    return [*(one.code for one in ingested.rejected), *ingested.dropped]


def _stands_on(replica: Replica, commit_id: CommitId) -> list[TopicKey]:
    """Return the topic on which a commit was published, then further ones on which it stands."""
    with replica.database.read() as connection:
        row = load_rows(connection, [commit_id])[commit_id]
        query = select(topic_inits.c.topic_num).where(topic_inits.c.commit_num == row.num)
        nums = [row.topic_num, *connection.execute(query).scalars()]
    return [replica.topics[num].topic for num in nums]


def test_an_init_waits_for_its_key_and_nobody_is_asked_for_it(world: World) -> None:
    replica, _ = world.copy()
    epoch, item = _start(world)
    ingested = give(replica, [item])
    assert (ingested.waiting, ingested.wanted) == (1, {})
    _learn(replica, epoch, EpochKey(b"x" * 32))
    assert not release_more(replica, NOW_MS).accepted
    assert _count_waiting(replica) == 1, "the key does not give the mark that the init states"
    _learn(replica, epoch)
    ingested = release_more(replica, NOW_MS)
    assert (count_accepted(ingested), list(ingested.also_on)) == (1, [epoch.topic])
    assert _stands_on(replica, CommitId(epoch.epoch_id)) == [decode_publication(item).topic, epoch.topic]
    assert replica.writing_epoch(replica.tables.of_id[world.repo.repo_id]).key == epoch.key


def test_an_init_whose_key_came_just_before_a_crash_is_judged_at_the_next_start(world: World) -> None:
    replica, _ = world.copy()
    epoch, item = _start(world)
    give(replica, [item])
    _learn(replica, epoch)
    replica.close()
    again = Replica(replica.database.folder, STORE_KEY)
    try:
        assert count_accepted(retry_kept(again, NOW_MS)) == 1
    finally:
        again.close()


@pytest.mark.parametrize("is_writer", [True, False])
def test_an_init_is_taken_on_the_topic_of_the_epoch_that_it_starts(world: World, *, is_writer: bool) -> None:
    replica, _ = world.copy(is_writer=is_writer)
    epoch, item = _start(world)
    (own,) = _sent(world.replica, epoch.topic)
    one, other = decode_publication(item), decode_publication(own)
    assert (one.commit_id, one.blocks) == (other.commit_id, other.blocks)
    assert one.hidden_key != other.hidden_key
    _learn(replica, epoch)
    assert count_accepted(give(replica, [own])) == 1
    assert give(replica, [item]).already == 1
    assert _stands_on(replica, one.commit_id) == [one.topic, other.topic]
    assert _sent(replica, other.topic) == [own], "whoever holds the key makes the same one"
    assert (item in _sent(replica, one.topic)) == is_writer, "where it came it was not signed for that topic"


# --- branches ---


def test_a_first_commit_waits_until_its_branch_is_added(world: World) -> None:
    replica, _ = world.copy()
    side = world.author.founding.create_branch(world.repo, "side")[0]
    (first,), pin = world.publications(side), world.publications(_root(world))[-1]
    ingested = give(replica, [first])
    assert (ingested.waiting, ingested.wanted) == (1, {}), "no peer can be asked for what adds it"
    assert give(replica, [first]).waiting == 1
    assert count_accepted(give(replica, [pin])) == 2
    added = replica.tables.find_branch(1, side.branch_id)
    assert added is not None
    assert timeline(replica, added) == timeline(world.replica, side)


def test_a_first_commit_whose_branch_was_added_just_before_a_crash_is_judged_at_the_next_start(
    world: World,
) -> None:
    replica, _ = world.copy()
    side = world.author.founding.create_branch(world.repo, "side")[0]
    give(replica, world.publications(side))
    topic = writing_topic(replica, replica.branches[1])
    batch = open_batch(topic, world.publications(_root(world))[-1:])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("node.ingest.acceptance_transaction.find_released", lambda *_, **__: [])
        assert count_accepted(accept_batch(replica, topic, batch, NOW_MS)) == 1
    replica.close()
    again = Replica(replica.database.folder, STORE_KEY)
    try:
        assert count_accepted(retry_kept(again, NOW_MS)) == 1
    finally:
        again.close()


# --- what an epoch opens ---


def test_who_follows_two_epochs_writes_in_one_that_opens_the_other(world: World) -> None:
    replica, branch = world.copy()
    (repo,) = replica.repos.values()
    Author(replica, UserSeed(b"w" * 32), lambda: NOW_MS).start_epoch(repo)
    theirs, (their_init,) = replica.writing_epoch(repo), _sent(replica, replica.writing_epoch(repo).topic)
    ours, _ = _start(world)
    _learn(world.replica, theirs)
    assert count_accepted(give(world.replica, [their_init])) == 1
    root_id, body = branch.facts.root_id, encode_body(Post("a"))
    acks, both = (root_id,), heads_of(world, _root(world))
    assert len(both) == 2
    ours = world.replica.tables.held_epochs(world.repo.num)[ours.epoch_id]
    target = aim(world.branch.facts, world.branch.num, ours)
    assert _codes(give(world.replica, [forge(world, target, body, acks, _SECRET)])) == ["closed_epoch"]
    merge = aim(_root(world).facts, _root(world).num, ours)
    item = forge(world, merge, encode_body(Post("merge")), both, _SECRET)
    assert _codes(give(world.replica, [item])) == ["closed_epoch"], "in the root branch as elsewhere"
    written, ingested = world.author.write(world.branch, Post("opened"))
    assert {len(nums) for nums in ingested.accepted.values()} == {2}, "what opens it, and the post"
    epoch = world.replica.writing_epoch(world.repo)
    assert epoch.epoch_id == min(ours.epoch_id, theirs.epoch_id)
    assert decode_publication(written.encoded).topic in (epoch.topic, epoch.writers_topic)


# --- what an init may state ---


def _make(world: World, published_in: Epoch, key: EpochKey) -> EpochStarting:
    """Make an epoch with this key that follows all that the world knows of."""

    def make(repo_num: int, repo_id: RepoId) -> tuple[Epoch, EpochStatement]:
        epoch, states = real(repo_num, repo_id)
        epoch = replace(epoch, key=key)
        topic = epoch_starts.find_writers_topic(epoch)
        sealed = seal_topic(key, repo_id, epoch.keys.mark, topic, bytes(NONCE_SIZE))
        return epoch, EpochStatement(epoch.keys.mark, states.writers_mark, sealed)

    real, replica = epoch_starts.make_epoch, world.replica
    with pytest.MonkeyPatch.context() as patch, replica.membership_lock:
        patch.setattr(epoch_starts, "make_epoch", make)
        membership = replica.membership(world.repo.repo_id)
        return make_init(membership, replica.tables, world.repo, heads_of(world, _root(world)), published_in)


def _publish(world: World, made: EpochStarting, target: Target, seed: TopicSeed) -> bytes:
    """Make the init of an epoch, as the holder of a topic's seed publishes it there."""
    acks = heads_of(world, _root(world))
    place = CommitPosition(target.epoch.epoch_id, 1, acks=acks, rank=rank_behind(world, acks))
    draft = Draft(made.body, acks, further_blocks=made.blocks)
    drafted = encode_draft(AuthorKeys(_USER, _SECRET), NOW_MS, target, draft, place)
    return create_publication(seed, target.epoch.keys.read_key, drafted.commit.key, drafted.blocks).encoded


def _take(world: World, made: EpochStarting, item: bytes) -> Epoch:
    """Give the init to the world's node, which holds the key."""
    epoch = made.named(EpochId(decode_publication(item).commit_id))
    _learn(world.replica, epoch)
    assert count_accepted(give(world.replica, [item])) == 1
    return world.replica.tables.held_epochs(world.repo.num)[epoch.epoch_id]


def test_an_init_that_was_published_on_the_topic_of_the_epoch_that_it_starts_stands_there_once(
    world: World,
) -> None:
    # An epoch before may have stated that topic as its writers' topic: nobody knows its key then.
    root, repo_id = _root(world), world.repo.repo_id
    later = EpochKey(b"2" * 32)
    keys = epoch_keys(repo_id, later)
    first = _make(world, world.replica.writing_epoch(world.repo), EpochKey(b"1" * 32))
    states = first.body.states
    sealed = seal_topic(first.epoch.key, repo_id, states.mark, keys.topic, bytes(NONCE_SIZE))
    body = structs.replace(first.body, states=structs.replace(states, writers_topic=sealed))
    target = target_in(world, root)
    first = replace(first, body=body)
    epoch = _take(world, first, _publish(world, first, target, target.seed))
    assert (epoch.writers_topic, epoch.writers_seed) == (keys.topic, None)
    second = _make(world, epoch, later)
    target = replace(aim(root.facts, root.num, epoch), by_writer=True)
    started = _take(world, second, _publish(world, second, target, keys.topic_seed))
    assert _stands_on(world.replica, CommitId(started.epoch_id)) == [keys.topic]
    findings = CheckFindings()
    with world.replica.database.read() as connection:
        check_graph(connection, findings)
        check_sums(connection, findings)
    assert findings.problems == []
    assert len(_sent(world.replica, keys.topic)) == 1


def test_a_link_topic_that_an_init_states_as_its_writers_topic_carries_both(world: World) -> None:
    # Who has no link there takes all that is written on it, so who has one must.
    root = _root(world)
    world.author.write(root, BranchLink(world.branch.branch_id))
    (link,) = world.replica.tables.links_of(world.branch.num)
    world.write("a")
    seen = _sent_by_link(world, link)
    made = _make(world, world.replica.writing_epoch(world.repo), EpochKey(b"1" * 32))
    states = made.body.states
    sealed = seal_topic(made.epoch.key, world.repo.repo_id, states.mark, link.topic, bytes(NONCE_SIZE))
    made = replace(
        made, body=structs.replace(made.body, states=structs.replace(states, writers_topic=sealed))
    )
    target = target_in(world, root)
    epoch = _take(world, made, _publish(world, made, target, target.seed))
    assert epoch.writers_topic == link.topic
    side = world.author.founding.create_branch(world.repo, "side")[0]
    assert link.seed is not None
    for branch in (side, world.branch):
        written = replace(aim(branch.facts, branch.num, epoch), by_writer=True)
        item = forge(
            world,
            written,
            encode_body(Post("by the author of the init")),
            (branch.facts.root_id,),
            _SECRET,
            seed=link.seed,
        )
        assert _codes(give(world.replica, [item])) == []
        assert _stands_on(world.replica, decode_publication(item).commit_id) == [link.topic]
        again = world.replica.by_topic[link.topic]
        num = _number(world.replica, item)
        with world.replica.database.read() as connection:
            assert load_publications(connection, again, [num], 1) == [item]
    assert give(world.replica, seen).already == len(seen) > 1
    assert _sent_by_link(world, world.replica.by_topic[link.topic]) == seen
    with world.replica.database.read() as connection:
        findings = CheckFindings()
        check_graph(connection, findings)
        check_sums(connection, findings)
    assert findings.problems == []


def _sent_by_link(world: World, link: Topic) -> list[bytes]:
    with world.replica.database.read() as connection:
        return load_publications(
            connection, link, plan_sending(connection, link.num, (), LINKED).nums, 1 << 20
        )


def _number(replica: Replica, item: bytes) -> int:
    commit_id = decode_publication(item).commit_id
    with replica.database.read() as connection:
        return load_rows(connection, [commit_id])[commit_id].num


def test_a_link_topic_carries_its_branch_alone(world: World) -> None:
    side = world.author.founding.create_branch(world.repo, "side")[0]
    world.author.write(_root(world), BranchLink(world.branch.branch_id))
    (link,) = world.replica.tables.links_of(world.branch.num)
    epoch = world.replica.writing_epoch(world.repo)
    read_key = branch_read_key(branch_secret(epoch.key, world.branch.branch_id))
    assert link.seed is not None
    for branch, codes in ((side, ["other_branch"]), (world.branch, [])):
        acks = (branch.facts.root_id,)
        one = decode_publication(
            forge(world, target_in(world, branch), encode_body(Post("a")), acks, _SECRET)
        )
        key = open_hidden_key(one, epoch.keys.read_key)
        item = create_publication(link.seed, read_key, key, one.blocks).encoded
        assert _codes(give(world.replica, [item])) == codes
        if not codes:
            own, is_there = one.topic, world.replica.by_topic[one.topic].is_link
            assert (_stands_on(world.replica, one.commit_id), is_there) == ([own], False), "as it says"
