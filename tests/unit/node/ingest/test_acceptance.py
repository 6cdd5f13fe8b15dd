"""The way in: every kind of bad commit and bad publication has its own verdict, and loses nothing."""

from dataclasses import replace

import pytest
from sqlalchemy import select

from node.authoring.author import Author
from node.ingest.acceptance import accept_batch, accept_own, retry_kept
from node.ingest.publication_parsing import open_batch
from node.ingest.replica import Replica
from protocol import signing
from protocol.block import Reference, encrypt_block
from protocol.body import BranchAdd, BranchRoot, Invite, Join, Permission, encode_body
from protocol.codec import encode
from protocol.commit import (
    Commit,
    Content,
    HeaderKeys,
    Links,
    TanglePlace,
    create_commit,
    lipmaa,
    open_commit,
)
from protocol.content import Post
from protocol.ids import BranchId, CommitId, Signature, TopicKey, UserId
from protocol.keys import BlockKey, GivenKey, InvitationSeed, ReadKey, UserSeed
from protocol.limits.peers import PENDING_COUNT_MAX
from protocol.object import build_object
from protocol.proofs import prove_invitation
from protocol.publication import (
    create_publication,
    decode_publication,
    encode_publication,
    open_sealed_key,
)
from storage.commits import pending as waiting_module
from storage.commits.heads import load_heads
from storage.commits.pending import UNREAD, PendingPublication, count_pending, count_rejections, keep_pending
from storage.repos.repos import Branch
from storage.schema.schema import commits, feed_forks
from tests.support.builders import NOW_MS, STORE_KEY, World, give, timeline
from tests.support.ids import as_commit_id, as_object_id

WRITER = UserSeed(b"w" * 32)


def _open(world: World, encoded: bytes) -> Commit:
    publication = decode_publication(encoded)
    branch = world.branch
    return open_commit(
        publication.blocks[0], open_sealed_key(publication, branch.read_key), branch.convergence_secret
    )


def _forge(
    world: World,
    *,
    seed: UserSeed = WRITER,
    branch: Branch | None = None,
    acks: tuple[CommitId, ...] | None = None,
    links: Links | None = None,
    body: bytes | None = None,
    signed_by: UserSeed | None = None,
    **changes: object,
) -> bytes:
    """A publication by anyone who holds the secrets but not necessarily the rights: each argument breaks one thing."""
    target = branch or world.branch
    key, secret = signing.key_pair(seed)
    if signed_by is not None:
        secret = signing.key_pair(signed_by)[1]
    acks = (target.facts.root_id,) if acks is None else acks
    reference, blocks = build_object(
        encode_body(Post("forged")) if body is None else body, target.convergence_secret
    )
    fields: dict[str, object] = {
        "author": key,
        "branch": target.branch_id,
        "epoch": world.repo.init_id,
        "feed_sequence": 1,
        "feed_previous": None,
        "tangles": (TanglePlace("group", world.repo.init_id, (world.repo.init_id,)),),
        "timestamp": NOW_MS,
        "metadata": b"",
        "body": reference,
        "keys": HeaderKeys(acks=(GivenKey(b""),) * len(acks)),
    }
    content = Content(**(fields | changes))  # type: ignore[arg-type]  # a table of overrides
    commit, block = create_commit(acks, links or Links(), content, secret, target.convergence_secret)
    return _publish(target, commit.key, (block, *blocks))


def _publish(branch: Branch, key: bytes, blocks: tuple[object, ...]) -> bytes:
    assert branch.topic_seed is not None
    publication = create_publication(branch.topic_seed, branch.read_key, key, blocks, b"n" * 24)  # type: ignore[arg-type]  # blocks
    encoded = tuple(block.encoded for block in publication.blocks)
    return encode_publication(publication.topic, publication.sealed_key, encoded, publication.signature)


def _verdict(replica: Replica, branch: Branch, item: bytes) -> str:
    ingested = give(replica, branch, [item])
    assert not ingested.accepted
    return (ingested.rejected[0].code if ingested.rejected else "") or next(iter(ingested.dropped), "")


def test_what_a_member_wrote_is_accepted_whole_and_once(world: World) -> None:
    items = world.write("a, a <- b, a <- c, b c <- d")
    replica, branch = world.copy()
    assert give(replica, branch, items).accepted
    assert give(replica, branch, items).already == 4
    assert timeline(replica, branch) == timeline(world.replica, world.branch)


def test_commits_out_of_order_wait_for_their_causes_and_are_released(world: World) -> None:
    items = world.write("a, a <- b, b <- c, c <- d")
    replica, branch = world.copy()
    for item in reversed(items[1:]):
        ingested = give(replica, branch, [item])
        assert not ingested.accepted
        assert ingested.waiting == 1
    with replica.database.read() as connection:
        assert count_pending(connection, branch.num) == 3
    assert len(give(replica, branch, items[:1]).accepted[branch.topic]) == 4
    with replica.database.read() as connection:
        assert count_pending(connection, branch.num) == 0
    assert timeline(replica, branch) == timeline(world.replica, world.branch)


def test_of_what_waited_it_is_known_when_it_came(world: World) -> None:
    items = world.write("a, a <- b, b <- c, a <- d")
    replica, branch = world.copy()
    # c comes first, and waits until b is there.
    for at, come in ((1, [items[2]]), (3, [items[0], items[3]]), (7, [items[1]])):
        accept_batch(replica, branch, open_batch(branch, come), NOW_MS + at)
    query = select(commits.c.commit_id, commits.c.arrived_at, commits.c.received_at)
    with replica.database.read() as connection:
        found = {row[0]: (row[1], row[2]) for row in connection.execute(query)}
    by_name = {name: found[world.commits[name].commit_id] for name in "abcd"}
    assert by_name == {
        "a": (None, NOW_MS + 3),
        "b": (None, NOW_MS + 7),
        "c": (NOW_MS + 1, NOW_MS + 7),
        "d": (NOW_MS + 3, NOW_MS + 7),  # of one author with c, so after it
    }


def test_waiting_commits_survive_a_restart(world: World) -> None:
    items = world.write("a, a <- b")
    replica, branch = world.copy()
    give(replica, branch, items[1:])
    replica.close()
    again = Replica(replica.database.folder, STORE_KEY)
    try:
        assert len(give(again, again.by_topic[branch.topic], items[:1]).accepted[branch.topic]) == 2
    finally:
        again.close()


def test_a_stranger_with_the_secrets_writes_nothing(world: World) -> None:
    replica, branch = world.copy()
    assert _verdict(replica, branch, _forge(world, seed=UserSeed(b"s" * 32))) == "unknown_author"


def test_a_bad_signature_is_rejected_for_good(world: World) -> None:
    item = _forge(world, signed_by=UserSeed(b"s" * 32))
    replica, branch = world.copy()
    assert _verdict(replica, branch, item) == "bad_signature"
    with replica.database.read() as connection:
        assert count_rejections(connection, branch.num) == 1


def test_an_ack_of_a_rejected_commit_is_rejected_whichever_comes_first(world: World) -> None:
    bad = _forge(world, signed_by=UserSeed(b"s" * 32))
    bad_id = decode_publication(bad).commit_id
    after = _forge(world, acks=(bad_id,))
    replica, branch = world.copy()
    assert give(replica, branch, [after]).waiting == 1
    ingested = give(replica, branch, [bad])
    assert [verdict.code for verdict in ingested.rejected] == ["bad_signature", "rejected_cause"]
    other, other_branch = world.copy()
    assert _verdict(other, other_branch, bad) == "bad_signature"
    assert _verdict(other, other_branch, after) == "rejected_cause"


def test_a_commit_of_another_branch_or_epoch_is_dropped_and_not_held_against_it(world: World) -> None:
    """Who holds one topic's key may publish another's commits there: that says nothing about these."""
    second = world.author.create_branch(world.repo, "second")[0]
    replica, branch = world.copy()
    facts = replace(world.branch.facts, branch_id=second.branch_id)
    disguised = _forge(world, branch=replace(world.branch, facts=facts))
    assert _verdict(replica, branch, disguised) == "other_branch"
    assert _verdict(replica, branch, _forge(world, epoch=b"e" * 32)) == "other_epoch"
    with replica.database.read() as connection:
        assert count_rejections(connection, branch.num) == 0


def test_a_branch_has_one_root(world: World) -> None:
    replica, branch = world.copy()
    item = _forge(world, acks=(), body=encode_body(BranchRoot()), timestamp=NOW_MS + 1)
    assert _verdict(replica, branch, item) == "second_root"


def test_a_place_in_the_group_tangle_is_needed_and_must_be_in_the_root_branch(world: World) -> None:
    replica, branch = world.copy()
    root_id = world.branch.facts.root_id
    assert _verdict(replica, branch, _forge(world, tangles=())) == "bad_group_place"
    empty = (TanglePlace("group", world.repo.init_id, ()),)
    assert _verdict(replica, branch, _forge(world, tangles=empty)) == "bad_group_place"
    elsewhere = (TanglePlace("group", world.repo.init_id, (root_id,)),)
    assert _verdict(replica, branch, _forge(world, tangles=elsewhere)) == "bad_group_place"


def test_an_ack_of_another_branch_is_rejected(world: World) -> None:
    replica, branch = world.copy()
    assert _verdict(replica, branch, _forge(world, acks=(world.repo.init_id,))) == "ack_of_other_branch"


@pytest.mark.slow
@pytest.mark.sqlite  # its rule is not about rows, and PostgreSQL takes 15 s for it
def test_an_ack_that_another_implies_is_rejected_in_any_order_of_arrival(world: World) -> None:
    items = world.write("a, a <- b, a <- c, b c <- d, d <- e")
    ids = {name: commit.commit_id for name, commit in world.commits.items()}
    for acks, expected in (
        ("a b", ["implied_ack"]),
        ("a e", ["implied_ack"]),
        ("b d", ["implied_ack"]),
        ("b c", []),
        ("a", []),
    ):
        other = _forge(world, acks=tuple(ids[name] for name in acks.split()))
        for batches in ([items, [other]], [[other], items], [[*items, other]], [[other, *items]]):
            replica, branch = world.copy()
            rejected = [
                verdict.code for batch in batches for verdict in give(replica, branch, batch).rejected
            ]
            assert rejected == expected, acks


def test_the_graph_is_not_walked_for_an_author_without_rights(world: World) -> None:
    items = world.write("a, a <- b, b <- c")
    ids = {name: commit.commit_id for name, commit in world.commits.items()}
    replica, branch = world.copy()
    give(replica, branch, items)
    implied = (ids["a"], ids["c"])
    stranger = _forge(world, seed=UserSeed(b"s" * 32), acks=implied)
    assert _verdict(replica, branch, stranger) == "unknown_author"
    assert replica.walks.visits == 0
    assert _verdict(replica, branch, _forge(world, acks=implied)) == "implied_ack"
    assert replica.walks.visits > 0


def test_feed_links_must_lead_to_the_same_feed(world: World) -> None:
    world.write("a")
    replica, branch = world.copy()
    for item in world.publications(world.branch)[1:]:
        give(replica, branch, [item])
    a = world.commits["a"].commit_id
    root_id = world.branch.facts.root_id
    assert _verdict(replica, branch, _forge(world, feed_sequence=5, feed_previous=a)) == "bad_feed_link"
    wrong_skip = Links(lipmaa=a)
    assert lipmaa(4) == 1
    item = _forge(world, feed_sequence=4, feed_previous=root_id, links=wrong_skip)
    assert _verdict(replica, branch, item) == "bad_feed_link"


def test_a_second_commit_of_one_feed_place_is_kept_as_evidence(world: World) -> None:
    world.write("a")
    replica, branch = world.copy()
    root_id = world.branch.facts.root_id
    twin = _forge(world, feed_sequence=2, feed_previous=root_id)
    give(replica, branch, world.publications(world.branch))
    assert give(replica, branch, [twin]).accepted
    with replica.database.read() as connection:
        evidence = connection.execute(select(feed_forks.c.commit_id, feed_forks.c.feed_sequence)).all()
    assert [tuple(row) for row in evidence] == [(decode_publication(twin).commit_id, 2)]


def test_keys_that_open_nothing_and_acks_that_leave_out_the_own_last_commit_are_accepted(
    world: World,
) -> None:
    """docs/protocol.md, section 6: what looks wrong and is not."""
    replica, branch = world.copy()
    root_id = world.branch.facts.root_id
    first = _forge(
        world, feed_sequence=2, feed_previous=root_id, keys=HeaderKeys(acks=(GivenKey(b"g" * 32),))
    )
    feed_previous = decode_publication(first).commit_id
    beside = _forge(world, feed_sequence=3, feed_previous=feed_previous, acks=(root_id,))
    for item in (first, beside):
        assert give(replica, branch, [item]).accepted


def test_a_body_that_does_not_decode_is_rejected_and_an_unknown_kind_is_carried(world: World) -> None:
    replica, branch = world.copy()
    assert _verdict(replica, branch, _forge(world, body=b"\x92\xa5post1\x07")) == "bad_body"
    assert _verdict(replica, branch, _forge(world, body=b"no tag")) == "bad_body"
    known = world.branch.facts.root_id
    unknown = _forge(world, body=b"\x92\xa5poll7\x07", feed_sequence=2, feed_previous=known)
    assert give(replica, branch, [unknown]).accepted


def test_an_unknown_commit_version_is_kept_not_interpreted(world: World) -> None:
    replica, branch = world.copy()
    block, key = encrypt_block(
        b"\x92\xa7commit2\xc0", world.branch.convergence_secret, acks=(as_commit_id(b"a" * 32),)
    )
    ingested = give(replica, branch, [_publish(world.branch, key, (block,))])
    assert (ingested.waiting, ingested.rejected, ingested.dropped.total()) == (1, [], 0)
    with replica.database.read() as connection:
        assert count_pending(connection, branch.num) == 0
        assert count_pending(connection, branch.num, reason=UNREAD) == 1


def test_what_an_older_version_could_not_read_is_taken_up_at_start(world: World) -> None:
    items = world.write("a, a <- b, b <- c")
    replica, branch = world.copy()
    unread = PendingPublication(world.commits["b"].commit_id, items[1], (), UNREAD)
    with replica.database.write() as connection:
        keep_pending(replica.database, connection, branch, [unread])
    give(replica, branch, [items[0], items[2]])
    assert len(timeline(replica, branch)) == 2, "c waits for b"
    ingested = retry_kept(replica, NOW_MS)
    assert len(ingested.accepted[branch.topic]) == 2
    assert timeline(replica, branch) == timeline(world.replica, world.branch)
    block, key = encrypt_block(
        b"\x92\xa7commit2\xc0", world.branch.convergence_secret, acks=(as_commit_id(b"a" * 32),)
    )
    give(replica, branch, [_publish(world.branch, key, (block,))])
    assert retry_kept(replica, NOW_MS).accepted == {}
    with replica.database.read() as connection:
        assert count_pending(connection, branch.num, reason=UNREAD) == 1, "still of a version not known here"


def test_a_bad_publication_of_what_cannot_be_read_yet_does_not_stand_in_for_the_good_one(
    world: World,
) -> None:
    """Without its body, which an older version does not look for; the nodes that it passes it on to do."""
    (good,) = world.write("a")
    replica, branch = world.copy()
    publication, key = decode_publication(good), _open(world, good).key
    bad = _publish(world.branch, key, publication.blocks[:1])
    unread = [PendingPublication(publication.commit_id, item, (), UNREAD) for item in (bad, good, bad, good)]
    with replica.database.write() as connection:
        assert len(keep_pending(replica.database, connection, branch, unread).unread) == 2, "each once"
        assert keep_pending(replica.database, connection, branch, unread).unread == ()
    ingested = retry_kept(replica, NOW_MS)
    assert ingested.dropped == {"missing_body": 1}
    assert len(ingested.accepted[branch.topic]) == 1


def test_faults_of_the_publication_are_dropped_and_do_not_poison_the_commit(world: World) -> None:
    (good,) = world.write("a")
    publication = decode_publication(good)
    blocks = tuple(block.encoded for block in publication.blocks)
    topic, sealed, signature = publication.topic, publication.sealed_key, publication.signature
    commit = _open(world, good)
    other_body = build_object(encode_body(Post("other")), world.branch.convergence_secret)[1]
    assert world.branch.topic_seed is not None
    wrong_key = create_publication(
        world.branch.topic_seed, world.branch.read_key, BlockKey(b"k" * 32), publication.blocks, b"n" * 24
    )
    broken_seal = create_publication(
        world.branch.topic_seed, ReadKey(b"x" * 32), commit.key, publication.blocks, b"n" * 24
    )
    bad = {
        "bad_topic_signature": encode_publication(topic, sealed, blocks, Signature(bytes(64))),
        "other_topic": encode_publication(TopicKey(b"t" * 32), sealed, blocks, signature),
        "missing_body": _publish(world.branch, commit.key, (publication.blocks[0], other_body[0])),
        "surplus_blocks": _publish(world.branch, commit.key, (*publication.blocks, other_body[0])),
        "wrong_key": encode_publication(topic, wrong_key.sealed_key, blocks, wrong_key.signature),
        "seal_broken": encode_publication(topic, broken_seal.sealed_key, blocks, broken_seal.signature),
        "bad_publication:bad_shape": good[:-1],
    }
    for is_writer in (True, False):
        replica, branch = world.copy(is_writer=is_writer)
        for reason, item in bad.items():
            if is_writer and reason == "bad_topic_signature":
                continue  # it is accepted by its author's, and a writer signs itself what it passes on
            assert _verdict(replica, branch, item) == reason
        with replica.database.read() as connection:
            assert count_rejections(connection, branch.num) == 0
        assert give(replica, branch, [good]).accepted


def test_waiting_commits_are_bounded(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    assert PENDING_COUNT_MAX > 2
    monkeypatch.setattr(waiting_module, "PENDING_COUNT_MAX", 4)  # an author's half is two
    items = world.write("a, a <- b, b <- c, c <- d")
    replica, branch = world.copy()
    assert [give(replica, branch, [item]).waiting for item in items[1:]] == [1, 1, 0]


def test_a_failed_transaction_changes_nothing(world: World) -> None:
    items = world.write("a")
    replica, branch = world.copy()
    before = timeline(replica, branch)

    def fail(_connection: object) -> None:
        raise RuntimeError("power cut")

    with pytest.raises(RuntimeError):
        accept_own(replica, lambda _: [(branch, open_batch(branch, items))], NOW_MS, after=fail)
    assert timeline(replica, branch) == before
    assert give(replica, branch, items).accepted


def test_a_branch_is_seen_by_others_when_it_is_committed_and_never_if_it_is_not(world: World) -> None:
    root = world.replica.root_branch(world.repo)
    replica, _ = world.copy()
    items = world.publications(root)
    added = world.author.create_branch(world.repo, "side")[0]
    (pin,) = [item for item in world.publications(root) if item not in items]
    meanwhile: list[bool] = []

    def look(_connection: object) -> None:
        meanwhile.append(added.topic in replica.by_topic)

    def fail(connection: object) -> None:
        look(connection)
        raise RuntimeError("power cut")

    ours = replica.by_topic[root.topic]
    with pytest.raises(RuntimeError):
        accept_own(replica, lambda _: [(ours, open_batch(ours, [pin]))], NOW_MS, after=fail)
    assert added.topic not in replica.by_topic
    accept_own(replica, lambda _: [(ours, open_batch(ours, [pin]))], NOW_MS, after=look)
    assert meanwhile == [False] * 2
    assert added.topic in replica.by_topic


def _root_verdict(world: World, body: object, *, seed: bytes = b"w" * 32, **changes: object) -> str:
    """The verdict on a root branch commit by the holder of `seed`."""
    root = world.replica.root_branch(world.repo)
    replica, _ = world.copy()
    changes = {"tangles": (), "acks": (world.repo.init_id,)} | changes
    if seed == b"w" * 32:
        changes |= {"feed_sequence": 2, "feed_previous": world.repo.init_id}
    item = _forge(world, branch=root, seed=seed, body=encode(body), **changes)  # type: ignore[arg-type]  # overrides
    ingested = give(replica, replica.by_topic[root.topic], [item])
    return "accepted" if ingested.accepted else ingested.rejected[0].code


@pytest.mark.slow
def test_only_an_owner_adds_branches_and_invites(world: World) -> None:
    add = BranchAdd(
        BranchId(b"b" * 32),
        "x",
        0,
        TopicKey(b"t" * 32),
        Reference(as_object_id(b"b" * 32), BlockKey(b"k" * 32)),
    )
    invite = Invite(signing.key_pair(InvitationSeed(b"i" * 32))[0], Permission.WRITE, 1, NOW_MS + 1)
    for body in (add, invite):
        assert _root_verdict(world, body) == "accepted"
        assert _root_verdict(world, body, seed=b"s" * 32) == "unknown_author"
    another_root = BranchAdd(
        BranchId(b"b" * 32),
        "x",
        0,
        TopicKey(b"t" * 32),
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
    assert _root_verdict(world, Join(invitation, proof), seed=b"z" * 32, **on_it) == "bad_proof"
    assert (
        _root_verdict(world, Join(as_commit_id(b"x" * 32), proof), seed=stranger, **on_it)
        == "unknown_invitation"
    )
    joined = Author(world.replica, stranger, lambda: NOW_MS).write(root, Join(invitation, proof))[0].commit_id
    other = InvitationSeed(b"z" * 32)
    second = Join(invitation, prove_invitation(seed, world.repo.repo_id, UserId(signing.public_key(other))))
    assert _root_verdict(world, second, seed=other, acks=(joined,)) == "invitation_used"


def test_a_branch_is_added_once(world: World) -> None:
    pinned = Reference(as_object_id(world.branch.branch_id), BlockKey(b"k" * 32))
    add = BranchAdd(world.branch.branch_id, "again", 0, TopicKey(b"t" * 32), pinned)
    root = world.replica.root_branch(world.repo)
    with world.replica.database.read() as connection:
        head = load_heads(connection, root.num, 1)[0][0]
    assert _root_verdict(world, add, acks=(head,)) == "branch_exists"


def test_a_topic_that_the_repo_does_not_give_is_not_followed(world: World) -> None:
    root = world.replica.root_branch(world.repo)
    add = BranchAdd(
        BranchId(b"b" * 32),
        "taken over",
        0,
        world.branch.topic,
        Reference(as_object_id(b"b" * 32), BlockKey(b"k" * 32)),
    )
    for is_writer in (True, False):
        replica, branch = world.copy(is_writer=is_writer)
        item = _forge(
            world,
            branch=root,
            body=encode_body(add),
            tangles=(),
            acks=(world.repo.init_id,),
            feed_sequence=2,
            feed_previous=world.repo.init_id,
        )
        assert give(replica, replica.by_topic[root.topic], [item]).accepted
        assert replica.by_topic[branch.topic].branch_id == world.branch.branch_id
        assert len(replica.branches) == 2
