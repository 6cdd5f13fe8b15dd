"""A first sync between two daemons, of which one is killed in the middle: it goes on where it was, and shows how far."""

import json
import os
import re
import signal
import threading
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from protocol.formats.links import parse_invitation
from protocol.formats.text import id_text
from ravel.types.peers import TopicView
from tests.e2e.browser import CHROMIUM, Browser
from tests.e2e.cluster import Peer, peers, run_ravel, until, until_equal
from tests.e2e.page_steps import enter, picture

_COUNT = 8000


def _topic(peer: Peer) -> TopicView | None:
    """How the writers' topic stands with the one connected peer."""
    found = [one for other in peer.client.list_peers()["peers"] for one in other["topics"]]
    return next((one for one in found if one["kind"] == "writers"), None)


def _count(peer: Peer, repo: str) -> int:
    """How many commits of the repo's one branch are there."""
    branches = peer.client.list_branches(repo)["branches"]
    return branches[0]["commits"] if branches else 0


def _share(alice: Peer, folder: Path) -> tuple[str, str, str]:
    """Alice imports a chain of _COUNT posts; gives the repo's id, the branch's, and a link for another member."""
    repo = str(alice.client.create_repo("shared")["repo"])
    branch = str(alice.client.list_branches(repo)["branches"][0]["branch"])
    lines = folder / "posts.jsonl"
    items = (
        {
            "id": str(number),
            "parents": [str(number - 1)] if number else [],
            "author": "a",
            "time": 1,
            "text": f"post {number}",
        }
        for number in range(_COUNT)
    )
    lines.write_text("".join(f"{json.dumps(item)}\n" for item in items))
    run_ravel(alice, "import", "jsonl", str(lines), "--branch", branch)
    link = alice.client.create_invitation(repo, permission="write", expires_seconds=3600)["invitation"]
    return repo, branch, str(link)


@pytest.mark.extended
@pytest.mark.slow
@pytest.mark.parametrize("killed", ["receiver", "sender"])
def test_a_first_sync_goes_on_after_a_kill(tmp_path: Path, killed: str) -> None:
    with peers(tmp_path, "alice", "bob") as (alice, bob):
        repo, branch, link = _share(alice, tmp_path)
        voucher = parse_invitation(link).voucher
        assert voucher is not None, "much is to come"
        heads = [id_text(one) for one in voucher.states.heads]
        assert heads == alice.client.list_branches(repo)["branches"][0]["heads"]
        bob.client.join_repo(link)
        until(lambda: _count(bob, repo) > _COUNT // 4, "a part has come")
        had = _count(bob, repo)
        victim = bob if killed == "receiver" else alice
        victim.kill()
        victim.start()
        done: list[CompletedProcess[str]] = []
        waiting = threading.Thread(
            target=lambda: done.append(run_ravel(bob, "repo", "sync", "shared", forks=False))
        )
        waiting.start()
        total = until_equal(alice, bob, branch, seconds=60)["commits"]
        until(lambda: (one := _topic(bob)) is not None and one["state"] == "in sync", "all is confirmed")
        received, sent = _topic(bob), _topic(alice)
        assert received is not None
        assert sent is not None
        assert received["received"] <= total - had
        assert sent["sent"] == received["received"], "nothing came that was there"
        assert received["progress"] is sent["progress"] is None
        waiting.join()
        assert done[0].returncode == 0
        [shown] = bob.client.list_repos()["repos"]
        assert {one["code"] for one in shown["standing"]["parts"]} == {"in_sync"}, "nobody's word is needed"
        for line in done[0].stderr.splitlines():
            assert re.match(r"synced \d+ of \d+ commits|waiting: ", line)


@pytest.mark.extended
@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")
def test_pages_of_both_sides_show_how_far_a_first_sync_is(
    tmp_path: Path, page: Browser, bobs: Browser
) -> None:
    """Each daemon stands still while the other one's page is looked at, so that the sync is not over before."""
    bar = "document.querySelector('.title progress.transfer')"
    with peers(tmp_path, "alice", "bob") as (alice, bob):
        repo, branch, link = _share(alice, tmp_path)
        enter(page, alice)
        enter(bobs, bob)
        bob.client.join_repo(link)
        until(lambda: _count(bob, repo) > _COUNT // 4, "a part has come")
        os.kill(bob.pid, signal.SIGSTOP)
        page.until(bar)
        picture(page, "sending")
        os.kill(alice.pid, signal.SIGSTOP)
        os.kill(bob.pid, signal.SIGCONT)
        bobs.until(bar)
        os.kill(alice.pid, signal.SIGCONT)
        until_equal(alice, bob, branch, seconds=60)
        for window in (page, bobs):
            window.until(f"!{bar}")
            assert window.complaints() == []


@pytest.mark.extended
@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")
@pytest.mark.parametrize("by_relay", [False, True])
def test_a_newcomer_reads_the_newest_posts_while_the_past_comes(
    tmp_path: Path, page: Browser, by_relay: bool
) -> None:
    """The source stands still while the newcomer is looked at, then dies in the middle."""
    with peers(tmp_path, "alice", "bob", "relay") as (alice, bob, relay):
        source = alice
        if by_relay:
            source = relay
            relay.stop()
            config = relay.home / "config.toml"
            config.write_text(config.read_text().replace("enabled = false", "enabled = true", 1))
            relay.start()
            alice.client.add_peer(relay.listen, str(relay.client.show_status()["node"]), relay=True)
        repo, branch, link = _share(alice, tmp_path)
        if by_relay:
            run_ravel(alice, "repo", "sync", "shared", "--timeout", "60")
            alice.stop()
        enter(page, bob)
        bob.client.join_repo(link)
        until(lambda: _has_arriving(bob, repo, branch), "the newest posts are here")
        os.kill(source.pid, signal.SIGSTOP)
        window = bob.client.show_timeline(branch, before_position=2**52, limit=5)
        assert window["total"] < _COUNT // 2
        arriving = window["arriving"]
        assert [item["text"] for item in arriving["items"]] == [
            f"post {number}" for number in range(_COUNT - 5, _COUNT)
        ]
        assert arriving["waiting"] == 0
        assert arriving["earlier"] + window["total"] >= _COUNT - 250
        assert f"post {_COUNT - 1}" in run_ravel(bob, "log", branch).stdout
        page.until(f"document.getElementById('arriving')?.innerText.includes('post {_COUNT - 1}')")
        assert "earlier posts are on their way" in page.text()
        shown = "getComputedStyle(document.querySelector('#arriving li')).contentVisibility"
        assert page.evaluate(shown) == "visible", "else they flicker while thousands come above them"
        assert not page.evaluate("document.getElementById('new-above')"), "what comes is the past"
        picture(page, "arriving")
        source.kill()
        source.start()
        if by_relay:
            alice.start()
        until_equal(alice, bob, branch, seconds=60)
        assert "arriving" not in bob.client.show_timeline(branch, before_position=2**52, limit=5)
        page.until("!document.getElementById('arriving')")
        page.until(f"document.getElementById('timeline').innerText.includes('post {_COUNT - 1}')")
        assert page.complaints() == []


def _has_arriving(peer: Peer, repo: str, branch: str) -> bool:
    """Whether the newest posts are here."""
    known = any(one["repo"] == repo for one in peer.client.list_repos()["repos"])
    if not known or not any(one["branch"] == branch for one in peer.client.list_branches(repo)["branches"]):
        return False
    return "arriving" in peer.client.show_timeline(branch, before_position=2**52, limit=5)
