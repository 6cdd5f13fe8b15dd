"""A relay as a daemon of its own, between members who are never online together."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import select

from node.home.identity import open_keys
from node.ingest.replica import Replica
from protocol.formats.text import id_text, parse_id
from protocol.ids import AnyId, TopicKey
from storage.commits.commits import iterate_arrivals
from storage.schema.schema import authors
from tests.e2e.cluster import Peer, run_ravel, until
from tests.support.keys import no_passphrase

pytestmark = pytest.mark.slow


def _digest(peer: Peer) -> str:
    return str(peer.client.show_digest("main")["digest"])


@pytest.mark.extended
def test_two_members_who_are_never_online_together(tmp_path: Path) -> None:
    alice, bob, relay = (Peer(tmp_path / name) for name in ("alice", "bob", "relay"))
    try:
        config = relay.home / "config.toml"
        config.write_text(config.read_text().replace("enabled = false", "enabled = true"))
        relay.start()
        run_ravel(alice, "relay", "list", code=13)
        alice.start()
        assert "relay.enabled true" in run_ravel(alice, "relay", "list", code=10).stderr
        alice.client.add_peer(relay.listen, str(relay.client.show_status()["node"]), relay=True)
        alice.client.create_repo("notes")
        alice.client.write_post("main", "a line from alice")
        until(lambda: relay.client.list_relayed_topics()["size"] > 0, "the relay keeps something")
        link = alice.client.create_invitation("notes", permission="write", expires_seconds=3600, uses=1)
        assert relay.listen in link["addresses"]
        shown = run_ravel(alice, "repo", "sync", "notes", "--timeout", "30", "--json").stdout
        assert json.loads(shown)["held_by"] == [{"peer": relay.client.show_status()["node"], "relay": True}]
        (topics,) = (one["topics"] for one in alice.client.show_status()["peers"])
        assert sorted(topic["confirmed"] for topic in topics) == [1, 4], "all that was sent is durable there"
        assert "relay" in run_ravel(alice, "status").stdout
        alice.stop()

        bob.start()
        bob.client.join_repo(link["invitation"])
        until(lambda: _count(bob) == 2, "what alice wrote has come")
        until(lambda: _permission(bob) == "write", "bob is a member")
        bob.client.write_post("main", "a line from bob")
        until(lambda: _is_in_sync(bob), "all is kept")
        digest = _digest(bob)
        bob.stop()

        alice.start()
        until(lambda: _count(alice) == 3, "what bob wrote has come")
        assert _digest(alice) == digest
        listed = run_ravel(relay, "relay", "list").stdout
        assert len(listed.splitlines()) == 5, "columns, two topics, what they take, and who may add more"
        topic = relay.client.list_relayed_topics()["topics"][0]["topic"]
        assert "Pinned" in run_ravel(relay, "relay", "pin", topic[:8]).stdout
        known = str(alice.client.show_status()["node"])
        run_ravel(relay, "relay", "allow", known)
        listed = run_ravel(relay, "relay", "list").stdout
        assert f"allowed  {known}" in listed
        assert listed.count("known peers\n") == 2
        run_ravel(relay, "relay", "deny", known[:8])
        assert relay.client.list_relayed_topics()["allowed"] == []
        assert relay.client.show_status()["repos"] == 0
        alice.stop()
        _look_for_secrets(alice, bob, relay, TopicKey(parse_id(topic)))
    finally:
        for peer in (alice, bob, relay):
            peer.close()


def _look_for_secrets(alice: Peer, bob: Peer, relay: Peer, topic: TopicKey) -> None:
    """That the running relay holds nothing that opens a commit, nor who wrote it: on disk, in its log, in memory."""
    secrets = {b"a line from alice", b"a line from bob"}
    for home in (alice.home, bob.home):
        replica = Replica(home, open_keys(home, no_passphrase).store_key)
        for epoch in replica.tables.epochs.values():
            secrets |= {epoch.key, *epoch.keys, epoch.writers_secret or epoch.key} - {epoch.topic}
        secrets |= {topic.seed for topic in replica.topics.values() if topic.seed is not None}
        with replica.database.read() as connection:
            nums = [branch.num for branch in replica.branches.values()]
            secrets.update(row.commit_key for row in iterate_arrivals(connection, nums))
            secrets.update(connection.execute(select(authors.c.user)).scalars())
        replica.close()
    assert len(secrets) > 15
    wanted = (
        secrets
        | {id_text(AnyId(secret)).encode() for secret in secrets}
        | {s.hex().encode() for s in secrets}
    )
    on_disk = b"".join(path.read_bytes() for path in sorted(relay.home.rglob("*")) if path.is_file())
    assert bytes(topic) in on_disk
    assert not [secret for secret in wanted if secret in on_disk]
    is_topic_seen = False
    for memory in _memory(relay.pid):
        is_topic_seen |= bytes(topic) in memory
        assert not [secret for secret in wanted if secret in memory]
    assert is_topic_seen, "the memory was looked at: what a relay knows is there"


def _memory(pid: int) -> Iterator[bytes]:
    """What a child of this process holds in memory that is not a file's, one mapping after another."""
    with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            places, rights, _, _, inode, *_ = line.split()
            begin, end = (int(place, 16) for place in places.split("-"))
            if not rights.startswith("rw") or inode != "0":
                continue
            memory.seek(begin)
            yield memory.read(end - begin)


def _count(peer: Peer) -> int:
    branches = peer.client.list_branches("notes")["branches"]
    return sum(int(branch["commits"]) for branch in branches)


def _permission(peer: Peer) -> str:
    return str(peer.client.list_repos()["repos"][0]["permission"])


def _is_in_sync(peer: Peer) -> bool:
    connected = [one for one in peer.client.show_status()["peers"] if one["state"] == "connected"]
    topics = [topic["state"] for one in connected for topic in one["topics"]]
    return bool(topics) and set(topics) == {"in sync"}
