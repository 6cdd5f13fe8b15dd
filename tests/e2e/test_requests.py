"""Asking to be let into a repo, as people do: by commands, across restarts, and by a relay alone."""

import json
import re
from pathlib import Path

import pytest

from tests.e2e.cluster import Peer, peers, run_ravel, until, until_equal

pytestmark = pytest.mark.slow


def _permission(peer: Peer) -> str:
    return next((one["permission"] for one in peer.client.list_repos()["repos"]), "")


def _waiting(peer: Peer) -> list[str]:
    return [
        one["request"] for one in peer.client.list_all_requests()["requests"] if one["status"] == "waiting"
    ]


def test_a_user_asks_and_is_let_in(tmp_path: Path) -> None:
    with peers(tmp_path, "alice", "bob") as (alice, bob):
        alice.client.create_repo("photos")
        alice.client.write_post("main", "hello")
        link = run_ravel(alice, "repo", "invite", "photos", "--ask", "--local").stdout.strip()
        assert link.startswith("ravel:ask:")
        run_ravel(bob, "repo", "follow", link, code=8)
        asked = run_ravel(bob, "repo", "join", "-", stdin=link + "\n").stdout
        assert "waiting for an answer; code: " in asked
        assert "when an admin has answered" in asked
        until(lambda: len(_waiting(alice)) == 1, "alice sees who asks")
        bob.kill()
        [request] = _waiting(alice)
        listed = run_ravel(alice, "requests", "list").stdout
        code = re.split("[;.\n]", asked.partition("code: ")[2])[0]
        assert code in listed
        assert "1 user asks to be let in" in run_ravel(alice, "repo", "list").stdout
        run_ravel(alice, "requests", "accept", "photos", request[:8])
        bob.start()
        until(lambda: _permission(bob) == "write", "bob is a member")
        until_equal(alice, bob, "main")
        bob.client.write_post("main", "hi")
        until_equal(alice, bob, "main")
        assert "accepted" in run_ravel(alice, "requests", "list", "photos").stdout
        again = run_ravel(bob, "repo", "join", link, "--json", code=6).stdout
        assert json.loads(again)["error"]["message"] == "you are a member of photos"
        run_ravel(alice, "requests", "close", "photos", "nothing-like-it", "--yes", code=4)
        [made] = alice.client.list_ask_links("photos")["links"]
        assert "closed" in run_ravel(alice, "requests", "close", "photos", made["lobby"][:8], "--yes").stdout


@pytest.mark.extended
def test_who_asks_and_who_answers_are_never_online_together(tmp_path: Path) -> None:
    alice, bob, relay = (Peer(tmp_path / name, introduces=False) for name in ("alice", "bob", "relay"))
    try:
        config = relay.home / "config.toml"
        config.write_text(config.read_text().replace("enabled = false", "enabled = true"))
        relay.start()
        alice.start()
        alice.client.add_peer(relay.listen, str(relay.client.show_status()["node"]), relay=True)
        alice.client.create_repo("notes")
        alice.client.write_post("main", "a line from alice")
        until(lambda: relay.client.list_relayed_topics()["size"] > 0, "the relay keeps something")
        made = alice.client.make_ask_link("notes", expires_seconds=3600, uses=1)
        assert relay.listen in made["addresses"]
        until(lambda: len(relay.client.list_relayed_topics()["topics"]) == 4, "the relay keeps the lobby")
        run_ravel(alice, "repo", "sync", "notes", "--timeout", "30")
        until(lambda: _is_confirmed(alice), "all is durable there")
        alice.stop()

        bob.start()
        bob.client.join_repo(made["link"])
        until(
            lambda: [one["status"] for one in bob.client.list_all_requests()["made"]] == ["waiting"], "asked"
        )
        until(lambda: _is_confirmed(bob), "the request is durable there")
        bob.stop()

        alice.start()
        until(lambda: len(_waiting(alice)) == 1, "alice sees who asks")
        alice.client.answer_request("notes", _waiting(alice)[0], accepts=True)
        until(lambda: _is_confirmed(alice), "the answer is durable there")
        alice.stop()

        bob.start()
        until(lambda: _permission(bob) == "write", "bob is a member")
        until(lambda: bob.client.show_digest("main")["commits"] == 2, "what alice wrote has come")
    finally:
        for peer in (alice, bob, relay):
            peer.close()


def _is_confirmed(peer: Peer) -> bool:
    topics = [topic for one in peer.client.show_status()["peers"] for topic in one["topics"]]
    return bool(topics) and all(
        topic["state"] == "in sync" and topic["to_send"] + topic["sent"] == topic["confirmed"]
        for topic in topics
    )
