"""The way in: every kind of bad commit and bad publication has its own verdict, and loses nothing."""

from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import func, select

from node.authoring.author import Author
from node.ingest.acceptance import accept_own, retry_kept
from node.ingest.publication_parsing import open_batch
from node.ingest.replica import Replica
from protocol.codec import encode
from protocol.crypto import signing
from protocol.crypto.keys import BlockKey, InvitationSeed, ReadKey, UserSeed
from protocol.formats.block import Reference
from protocol.formats.body import BranchAdd, Invite, Join, Permission, encode_body
from protocol.formats.commit import Commit, open_commit
from protocol.formats.content import Post
from protocol.formats.object import build_object
from protocol.formats.proofs import prove_invitation
from protocol.formats.publication import (
    create_publication,
    decode_publication,
    encode_publication,
    open_hidden_key,
)
from protocol.ids import BranchId, CommitId, Signature, TopicKey
from protocol.limits.peers import PENDING_COUNT_MAX
from storage.commits import pending as waiting_module
from storage.commits.heads import load_heads
from storage.commits.pending import (
    CAUSES,
    UNREAD,
    PendingPublication,
    count_pending,
    count_rejections,
    keep_pending,
)
from storage.repos.repos import Branch
from storage.schema.schema import commits, feed_forks
from tests.support.batches import accept_whole
from tests.support.builders import (
    NOW_MS,
    STORE_KEY,
    World,
    count_accepted,
    give,
    timeline,
    writing_topic,
)
from tests.support.forging import forge, later_version, publish, target_in
from tests.support.ids import as_commit_id, as_object_id

WRITER = UserSeed(b"w" * 32)


def _open(world: World, encoded: bytes) -> Commit:
    publication, keys = decode_publication(encoded), world.replica.writing_epoch(world.repo).keys
    key = open_hidden_key(publication, keys.read_key)
    return open_commit(publication.blocks[0], key, keys.convergence_secret)


def _forge(
    world: World,
    *,
    seed: UserSeed = WRITER,
    branch: Branch | None = None,
    acks: tuple[CommitId, ...] | None = None,
    body: bytes | None = None,
    signed_by: UserSeed | None = None,
    **changes: Any,  # noqa: ANN401  # as `forge` takes them
) -> bytes:
    """Publish as someone who holds the secrets but not necessarily the rights: each argument breaks one thing."""
    target = target_in(world, branch or world.branch)
    key, secret = signing.key_pair(signed_by or seed)
    changes = {"author": signing.public_key(seed) if signed_by else key, **changes}
    follows = (target.facts.root_id,) if acks is None else acks
    return forge(
        world, target, encode_body(Post("forged")) if body is None else body, follows, secret, **changes
    )


def _verdict(replica: Replica, item: bytes) -> str:
    ingested = give(replica, [item])
    assert not ingested.accepted
    return (ingested.rejected[0].code if ingested.rejected else "") or next(iter(ingested.dropped), "")


def _count_waiting(replica: Replica, branch: Branch, reason: str = CAUSES) -> int:
    with replica.database.read() as connection:
        return count_pending(connection, branch.num, reason=reason)


def _root(replica: Replica) -> Branch:
    (repo,) = replica.repos.values()
    return replica.root_branch(repo)


def _count_rejected(replica: Replica) -> int:
    """Rejected commits of a repo are counted under its root branch."""
    with replica.database.read() as connection:
        return count_rejections(connection, _root(replica).num)


def test_what_a_member_wrote_is_accepted_whole_and_once(world: World) -> None:
    items = world.write("a, a <- b, a <- c, b c <- d")
    replica, branch = world.copy()
    assert give(replica, items).accepted
    assert give(replica, items).already == 4
    assert timeline(replica, branch) == timeline(world.replica, world.branch)


def test_commits_out_of_order_wait_for_their_causes_and_are_released(world: World) -> None:
    items = world.write("a, a <- b, b <- c, c <- d")
    replica, branch = world.copy()
    for item in reversed(items[1:]):
        ingested = give(replica, [item])
        assert not ingested.accepted
        assert ingested.waiting == 1
    assert _count_waiting(replica, branch) == 3
    assert count_accepted(give(replica, items[:1])) == 4
    assert _count_waiting(replica, branch) == 0
    assert timeline(replica, branch) == timeline(world.replica, world.branch)


def test_of_what_waited_it_is_known_when_it_came(world: World) -> None:
    items = world.write("a, a <- b, b <- c, a <- d")
    replica, branch = world.copy()
    topic = writing_topic(replica, branch)
    # c comes first, and waits until b is there; d waits for nothing.
    for at, come in ((1, [items[2]]), (3, [items[0], items[3]]), (7, [items[1]])):
        accept_whole(replica, topic, open_batch(topic, come), NOW_MS + at)
    query = select(commits.c.commit_id, commits.c.arrived_at, commits.c.received_at)
    with replica.database.read() as connection:
        found = {row[0]: (row[1], row[2]) for row in connection.execute(query)}
    by_name = {name: found[world.commits[name].commit_id] for name in "abcd"}
    assert by_name == {
        "a": (None, NOW_MS + 3),
        "b": (None, NOW_MS + 7),
        "c": (NOW_MS + 1, NOW_MS + 7),
        "d": (None, NOW_MS + 3),
    }


def test_commits_have_their_turns_to_come_which_no_clock_and_no_restart_moves(world: World) -> None:
    items = world.write("a, a <- b, b <- c, c <- d")
    replica, branch = world.copy()
    topic = writing_topic(replica, branch)
    for at, come in ((9, items[3]), (2, items[2])):  # the clock goes back
        accept_whole(replica, topic, open_batch(topic, [come]), NOW_MS + at)
    replica.close()
    again = Replica(replica.database.folder, STORE_KEY)
    try:
        for come in items[:2]:
            accept_whole(again, topic, open_batch(topic, [come]), NOW_MS)
        query = select(commits.c.commit_id, func.coalesce(commits.c.arrival, commits.c.num).label("turn"))
        with again.database.read() as connection:
            found = [row[0] for row in connection.execute(query.order_by("turn"))]
        assert found[-4:] == [world.commits[name].commit_id for name in "dcab"]
    finally:
        again.close()


def test_waiting_commits_survive_a_restart(world: World) -> None:
    items = world.write("a, a <- b")
    replica, _ = world.copy()
    give(replica, items[1:])
    replica.close()
    again = Replica(replica.database.folder, STORE_KEY)
    try:
        assert count_accepted(give(again, items[:1])) == 2
    finally:
        again.close()


def test_a_bad_signature_is_rejected_for_good(world: World) -> None:
    item = _forge(world, signed_by=UserSeed(b"s" * 32))
    replica, _ = world.copy()
    assert _verdict(replica, item) == "bad_signature"
    assert _count_rejected(replica) == 1


def test_an_ack_of_a_rejected_commit_is_rejected_whichever_comes_first(world: World) -> None:
    bad = _forge(world, signed_by=UserSeed(b"s" * 32))
    bad_id = decode_publication(bad).commit_id
    after = _forge(world, acks=(bad_id,))
    replica, _ = world.copy()
    assert give(replica, [after]).waiting == 1
    ingested = give(replica, [bad])
    assert [verdict.code for verdict in ingested.rejected] == ["bad_signature", "rejected_cause"]
    other, _ = world.copy()
    assert _verdict(other, bad) == "bad_signature"
    assert _verdict(other, after) == "rejected_cause"


def test_what_is_not_published_where_it_says_is_dropped_and_not_held_against_it(world: World) -> None:
    # Who holds one topic's key may publish another's commits there: that says nothing about these.
    writers = target_in(world, world.branch)
    own = replace(writers, by_writer=False)
    replica, _ = world.copy()
    assert _verdict(replica, _forge(world, epoch=b"e" * 32)) == "other_epoch"
    assert _verdict(replica, _forge(world, published_as=own)) == "other_epoch", "it says the writers' topic"
    assert _verdict(replica, _forge(world, by_writer=False)) == "other_epoch", "and it says the other one"
    assert _count_rejected(replica) == 0
    for item in (_forge(world, published_as=writers), _forge(world, by_writer=False, published_as=own)):
        assert give(replica, [item]).accepted


def test_a_second_commit_of_one_feed_place_is_kept_as_evidence(world: World) -> None:
    world.write("a")
    replica, _ = world.copy()
    root_id = world.branch.facts.root_id
    twin = _forge(world, feed_sequence=2, feed_previous=root_id)
    give(replica, world.publications(world.branch))
    assert give(replica, [twin]).accepted
    with replica.database.read() as connection:
        evidence = connection.execute(select(feed_forks.c.commit_id, feed_forks.c.feed_sequence)).all()
    assert [tuple(row) for row in evidence] == [(decode_publication(twin).commit_id, 2)]


def test_a_body_that_does_not_decode_is_rejected_and_an_unknown_kind_is_carried(world: World) -> None:
    replica, _ = world.copy()
    assert _verdict(replica, _forge(world, body=b"\x92\xa5post1\x07")) == "bad_body"
    assert _verdict(replica, _forge(world, body=b"no tag")) == "bad_body"
    known = world.branch.facts.root_id
    unknown = _forge(world, body=b"\x92\xa5poll7\x07", feed_sequence=2, feed_previous=known)
    assert give(replica, [unknown]).accepted


def test_an_unknown_commit_version_is_kept_not_interpreted(world: World) -> None:
    replica, branch = world.copy()
    ingested = give(replica, [later_version(world)])
    assert (ingested.waiting, ingested.rejected, ingested.dropped.total()) == (1, [], 0)
    assert _count_waiting(replica, branch) == 0
    assert _count_waiting(replica, _root(replica), UNREAD) == 1, "nobody can tell of which branch it is"


def test_what_an_older_version_could_not_read_is_taken_up_at_start(world: World) -> None:
    items = world.write("a, a <- b, b <- c")
    replica, branch = world.copy()
    unread = PendingPublication(world.commits["b"].commit_id, items[1], (), UNREAD)
    with replica.database.write() as connection:
        keep_pending(replica.database, connection, writing_topic(replica, branch).num, [unread])
    give(replica, [items[0], items[2]])
    assert len(timeline(replica, branch)) == 2, "c waits for b"
    ingested = retry_kept(replica, NOW_MS)
    assert count_accepted(ingested) == 2
    assert timeline(replica, branch) == timeline(world.replica, world.branch)
    give(replica, [later_version(world)])
    assert retry_kept(replica, NOW_MS).accepted == {}
    assert _count_waiting(replica, _root(replica), UNREAD) == 1, "still of a version not known here"


def test_a_bad_publication_of_what_cannot_be_read_yet_does_not_stand_in_for_the_good_one(
    world: World,
) -> None:
    # Without its body, which an older version does not look for; the nodes that it passes it on to do.
    (good,) = world.write("a")
    replica, branch = world.copy()
    publication, key = decode_publication(good), _open(world, good).key
    bad = publish(target_in(world, branch), key, publication.blocks[:1])
    unread = [PendingPublication(publication.commit_id, item, (), UNREAD) for item in (bad, good, bad, good)]
    with replica.database.write() as connection:
        where = (replica.database, connection, writing_topic(replica, branch).num)
        assert len(keep_pending(*where, unread).unread) == 2, "each once"
        assert keep_pending(*where, unread).unread == ()
    ingested = retry_kept(replica, NOW_MS)
    assert ingested.dropped == {"missing_body": 1}
    assert count_accepted(ingested) == 1


def test_faults_of_the_publication_are_dropped_and_do_not_poison_the_commit(world: World) -> None:
    (good,) = world.write("a")
    publication, target = decode_publication(good), target_in(world, world.branch)
    blocks = tuple(block.encoded for block in publication.blocks)
    topic, hidden, signature = publication.topic, publication.hidden_key, publication.signature
    key = _open(world, good).key
    other_body = build_object(encode_body(Post("other")), target.convergence_secret)[1]
    bad = {
        "bad_topic_signature": encode_publication(topic, hidden, blocks, Signature(bytes(64))),
        "other_topic": encode_publication(TopicKey(b"t" * 32), hidden, blocks, signature),
        "missing_body": publish(target, key, (publication.blocks[0], other_body[0])),
        "surplus_blocks": publish(target, key, (*publication.blocks, other_body[0])),
        "wrong_key": publish(target, BlockKey(b"k" * 32), publication.blocks),
        "bad_publication:bad_shape": good[:-1],
    }
    hidden_otherwise = create_publication(target.seed, ReadKey(b"x" * 32), key, publication.blocks).encoded
    for is_writer in (True, False):
        replica, _ = world.copy(is_writer=is_writer)
        by_name = replica.by_topic[topic]
        for reason, item in [*bad.items(), ("wrong_key", hidden_otherwise)]:
            if is_writer and reason == "bad_topic_signature":
                continue  # it is accepted by its author's, and a writer signs itself what it passes on
            ingested = accept_whole(replica, by_name, open_batch(by_name, [item]), NOW_MS)
            assert (ingested.accepted, ingested.dropped) == ({}, {reason: 1})
        assert _count_rejected(replica) == 0
        assert give(replica, [good]).accepted


def test_waiting_commits_are_bounded(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    assert PENDING_COUNT_MAX > 2
    monkeypatch.setattr(waiting_module, "PENDING_COUNT_MAX", 4)  # an author's half is two
    items = world.write("a, a <- b, b <- c, c <- d")
    replica, _ = world.copy()
    assert [give(replica, [item]).waiting for item in items[1:]] == [1, 1, 0]


def test_a_failed_transaction_changes_nothing(world: World) -> None:
    items = world.write("a")
    replica, branch = world.copy()
    before = timeline(replica, branch)

    def fail(_connection: object) -> None:
        raise RuntimeError("power cut")

    topic = writing_topic(replica, branch)
    with pytest.raises(RuntimeError):
        accept_own(replica, lambda _: [(topic, open_batch(topic, items))], NOW_MS, after=fail)
    assert timeline(replica, branch) == before
    assert give(replica, items).accepted


def test_a_branch_is_seen_by_others_when_it_is_committed_and_never_if_it_is_not(world: World) -> None:
    root = world.replica.root_branch(world.repo)
    replica, _ = world.copy()
    items = world.publications(root)
    added = world.author.founding.create_branch(world.repo, "side")[0].branch_id
    (pin,) = [item for item in world.publications(root) if item not in items]
    meanwhile: list[bool] = []

    def look(_connection: object) -> None:
        meanwhile.append(bool(replica.tables.with_id(added)))

    def fail(connection: object) -> None:
        look(connection)
        raise RuntimeError("power cut")

    ours = writing_topic(replica, _root(replica))
    with pytest.raises(RuntimeError):
        accept_own(replica, lambda _: [(ours, open_batch(ours, [pin]))], NOW_MS, after=fail)
    assert not replica.tables.with_id(added)
    accept_own(replica, lambda _: [(ours, open_batch(ours, [pin]))], NOW_MS, after=look)
    assert meanwhile == [False] * 2
    assert replica.tables.with_id(added)


def _root_verdict(world: World, body: object, *, seed: UserSeed = WRITER, **changes: Any) -> str:  # noqa: ANN401  # as `_forge` takes them
    """Return the verdict on a root branch commit by the holder of `seed`."""
    root = world.replica.root_branch(world.repo)
    replica, _ = world.copy()
    changes = {"acks": (world.repo.init_id,)} | changes
    if seed == WRITER:
        changes |= {"feed_sequence": 2, "feed_previous": world.repo.init_id}
    item = _forge(world, branch=root, seed=seed, body=encode(body), **changes)
    ingested = give(replica, [item])
    return "accepted" if ingested.accepted else ingested.rejected[0].code


@pytest.mark.slow
def test_only_an_owner_adds_branches_and_invites(world: World) -> None:
    add = BranchAdd(
        BranchId(b"b" * 32),
        "x",
        Reference(as_object_id(b"b" * 32), BlockKey(b"k" * 32)),
    )
    invite = Invite(signing.key_pair(InvitationSeed(b"i" * 32))[0], Permission.WRITE, 1, NOW_MS + 1)
    for body in (add, invite):
        assert _root_verdict(world, body) == "accepted"
        assert _root_verdict(world, body, seed=UserSeed(b"s" * 32)) == "unknown_author"
    another_root = BranchAdd(
        BranchId(b"b" * 32),
        "x",
        Reference(as_object_id(b"c" * 32), BlockKey(b"k" * 32)),
    )
    assert _root_verdict(world, another_root) == "bad_branch"
    too_much = Invite(signing.key_pair(InvitationSeed(b"i" * 32))[0], Permission.OWNER, 1, NOW_MS + 1)
    assert _root_verdict(world, too_much) == "not_permitted"


@pytest.mark.slow
def test_a_join_needs_its_invitations_proof_time_and_use(world: World) -> None:
    root = world.replica.root_branch(world.repo)
    seed = InvitationSeed(b"i" * 32)
    body = Invite(signing.key_pair(seed)[0], Permission.WRITE, 1, NOW_MS + 1000)
    invitation = world.author.write(root, body)[0].commit_id
    stranger = UserSeed(b"s" * 32)
    user = signing.public_key(stranger)
    proof = prove_invitation(seed, world.repo.repo_id, user)
    on_it: dict[str, object] = {"acks": (invitation,)}
    assert _root_verdict(world, Join(invitation, proof), seed=stranger, **on_it) == "accepted"
    late = on_it | {"timestamp": NOW_MS + 1001}
    assert _root_verdict(world, Join(invitation, proof), seed=stranger, **late) == "invitation_expired"
    assert _root_verdict(world, Join(invitation, proof), seed=UserSeed(b"z" * 32), **on_it) == "bad_proof"
    assert (
        _root_verdict(world, Join(as_commit_id(b"x" * 32), proof), seed=stranger, **on_it)
        == "unknown_invitation"
    )
    joined = Author(world.replica, stranger, lambda: NOW_MS).write(root, Join(invitation, proof))[0].commit_id
    other = UserSeed(b"z" * 32)
    second = Join(invitation, prove_invitation(seed, world.repo.repo_id, signing.public_key(other)))
    assert _root_verdict(world, second, seed=other, acks=(joined,)) == "invitation_used"


def test_a_branch_is_added_once(world: World) -> None:
    pinned = Reference(as_object_id(world.branch.branch_id), BlockKey(b"k" * 32))
    add = BranchAdd(world.branch.branch_id, "again", pinned)
    root = world.replica.root_branch(world.repo)
    with world.replica.database.read() as connection:
        head = load_heads(connection, root.num, 1)[0][0]
    assert _root_verdict(world, add, acks=(head,)) == "branch_exists"
