"""Two devices of one person and a friend, three daemons, by commands: one link for all repos, shown as one, one lost."""

import json
from functools import partial
from pathlib import Path

import pytest

from node.runtime.errors import ERROR_KINDS
from tests.e2e.cluster import JsonObject, Peer, peers, run_ravel, until, until_equal

pytestmark = pytest.mark.slow


def _json(peer: Peer, *command: str) -> JsonObject:
    answer: JsonObject = json.loads(run_ravel(peer, *command, "--json").stdout)
    return answer


def _user(peer: Peer) -> str:
    return str(peer.client.show_status()["user"])


def _held(peer: Peer) -> dict[str, str]:
    return {str(repo["name"]): str(repo["permission"]) for repo in peer.client.list_repos()["repos"]}


def _persons(peer: Peer, repo: str) -> dict[str, str]:
    return {item["user"]: item["person"] for item in peer.client.list_members(repo)["members"]}


def _shows(peer: Peer, persons: dict[str, str]) -> bool:
    return persons.items() <= _persons(peer, "friends").items()


@pytest.mark.extended
def test_a_second_device_gets_all_repos_by_one_link_and_is_removed_by_one_command(tmp_path: Path) -> None:
    with peers(tmp_path, "laptop", "phone", "friend") as (laptop, phone, friend):
        laptop.client.create_repo("notes")
        friends = friend.client.create_repo("friends")["repo"]
        laptop.client.join_repo(
            friend.client.create_invitation(friends, permission="write", expires_seconds=3600)["invitation"]
        )
        until(lambda: _held(laptop).get("friends") == "write", "the laptop is in the friend's repo")

        link = run_ravel(laptop, "device", "add", "--local", "--qr").stdout
        assert "█" in link or "▀" in link
        shown = run_ravel(phone, "device", "join", "-", stdin=link.splitlines()[0]).stdout
        assert _user(laptop) in shown
        until(lambda: _held(phone).get("notes") == "owner", "the phone owns the notes too")
        until(lambda: "friends" in _held(phone), "it follows the friend's repo")
        of_devices = [one["name"] for one in phone.client.list_repos()["repos"] if one["of_devices"]]
        assert of_devices == ["devices"], "the page leaves it out"
        laptop.kill()  # restarted, it goes on where it was
        laptop.start()
        laptop.client.create_repo("later")
        until(lambda: _held(phone).get("later") == "owner", "and what comes later")
        until(lambda: _held(phone).get("friends") == "write", "it may write there, without an admin")
        until(lambda: "friends" in _held(friend), "the friend's daemon answers")
        both = {_user(phone): _user(laptop), _user(laptop): _user(laptop)}
        for peer in (laptop, phone, friend):
            until(partial(_shows, peer, both), "all see one person")
        rows = run_ravel(friend, "member", "list", "friends").stdout.splitlines()
        assert f"{_user(phone)}\twrite\t{_user(laptop)[:12]}\t" in rows
        devices = _json(phone, "device", "list")["devices"]
        assert not any(repo["lacking"] for item in devices for repo in item["repos"])
        stands = run_ravel(laptop, "device", "list").stdout
        assert f"{_user(phone)[:12]}\tfriends\twrite\t" in stands

        branch = phone.client.list_branches("friends")["branches"][0]["branch"]
        run_ravel(phone, "write", branch, "from the phone")
        until_equal(friend, phone, branch)
        (item,) = [one for one in _json(friend, "log", branch)["items"] if one["text"] == "from the phone"]
        assert (item["author"], item["person"]) == (_user(phone), _user(laptop))
        run_ravel(phone, "device", "add", code=ERROR_KINDS["not_permitted"].exit_code)

        done = {
            one["name"]: one for one in _json(laptop, "device", "remove", _user(phone)[:12], "--yes")["repos"]
        }
        assert {name: (one["excluded"], one["advice"]) for name, one in done.items()} == dict.fromkeys(
            ["notes", "later", "friends", "devices"], (True, "")
        )
        until(lambda: _user(phone) not in _persons(friend, "friends"), "the friend has heard of it")
        changes = friend.client.list_member_changes("friends")["changes"]
        assert {"device_added", "device_removed"} <= {one["kind"] for one in changes}
        until(lambda: _held(phone)["notes"] == "former", "the phone is out")
        assert len(_json(laptop, "device", "list")["devices"]) == 1


@pytest.mark.extended
def test_a_link_that_was_used_makes_no_device_and_says_so(tmp_path: Path) -> None:
    with peers(tmp_path, "laptop", "phone", "other") as (laptop, phone, other):
        laptop.client.create_repo("notes")
        link = run_ravel(laptop, "device", "add", "--local").stdout.splitlines()[0]
        run_ravel(phone, "device", "join", "-", stdin=link)
        until(lambda: _held(phone).get("notes") == "owner", "the phone is a device")
        refused = run_ravel(other, "device", "join", "-", stdin=link, code=ERROR_KINDS["expired"].exit_code)
        assert "makes you no device: it has been used up" in refused.stderr
        assert "ravel device add" in refused.stderr
        assert _held(other) == {}, "nothing of that person's stays"
