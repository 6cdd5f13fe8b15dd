"""Two devices of one person and a friend, three daemons, by commands: one link for all repos, shown as one, one lost."""

from functools import partial
from pathlib import Path

import pytest

from node.runtime.errors import ERROR_KINDS
from tests.e2e.cluster import (
    Peer,
    ask,
    peers,
    permissions_of,
    persons_of,
    run_ravel,
    until,
    until_equal,
    user_of,
)

pytestmark = pytest.mark.slow


def _shows(peer: Peer, persons: dict[str, str]) -> bool:
    return persons.items() <= persons_of(peer, "friends").items()


@pytest.mark.extended
def test_a_second_device_gets_all_repos_by_one_link_and_is_removed_by_one_command(tmp_path: Path) -> None:
    with peers(tmp_path, "laptop", "phone", "friend") as (laptop, phone, friend):
        laptop.client.create_repo("notes")
        friends = friend.client.create_repo("friends")["repo"]
        laptop.client.join_repo(
            friend.client.create_invitation(friends, permission="write", expires_seconds=3600)["invitation"]
        )
        until(lambda: permissions_of(laptop).get("friends") == "write", "the laptop is in the friend's repo")

        link = run_ravel(laptop, "device", "add", "--local", "--qr").stdout
        assert "█" in link or "▀" in link
        shown = run_ravel(phone, "device", "join", "-", stdin=link.splitlines()[0]).stdout
        assert user_of(laptop) in shown
        until(lambda: permissions_of(phone).get("notes") == "owner", "the phone owns the notes too")
        until(lambda: "friends" in permissions_of(phone), "it follows the friend's repo")
        of_devices = [one["name"] for one in phone.client.list_repos()["repos"] if one["of_devices"]]
        assert of_devices == ["devices"], "the page leaves it out"
        laptop.kill()  # restarted, it goes on where it was
        laptop.start()
        laptop.client.create_repo("later")
        until(lambda: permissions_of(phone).get("later") == "owner", "and what comes later")
        until(lambda: permissions_of(phone).get("friends") == "write", "it may write there, without an admin")
        until(lambda: "friends" in permissions_of(friend), "the friend's daemon answers")
        both = {user_of(phone): user_of(laptop), user_of(laptop): user_of(laptop)}
        for peer in (laptop, phone, friend):
            until(partial(_shows, peer, both), "all see one person")
        rows = run_ravel(friend, "member", "list", "friends").stdout.splitlines()
        assert f"{user_of(phone)}\twrite\t{user_of(laptop)[:12]}\t" in rows
        devices = ask(phone, "device", "list")["devices"]
        assert not any(repo["lacking"] for item in devices for repo in item["repos"])
        stands = run_ravel(laptop, "device", "list").stdout
        assert f"{user_of(phone)[:12]}\tfriends\twrite\t" in stands

        branch = phone.client.list_branches("friends")["branches"][0]["branch"]
        run_ravel(phone, "write", branch, "from the phone")
        until_equal(friend, phone, branch)
        (item,) = [one for one in ask(friend, "log", branch)["items"] if one["text"] == "from the phone"]
        assert (item["author"], item["person"]) == (user_of(phone), user_of(laptop))
        run_ravel(phone, "device", "add", code=ERROR_KINDS["not_permitted"].exit_code)

        done = {
            one["name"]: one for one in ask(laptop, "device", "remove", user_of(phone)[:12], "--yes")["repos"]
        }
        assert {name: (one["excluded"], one["advice"]) for name, one in done.items()} == dict.fromkeys(
            ["notes", "later", "friends", "devices"], (True, "")
        )
        until(lambda: user_of(phone) not in persons_of(friend, "friends"), "the friend has heard of it")
        changes = friend.client.list_member_changes("friends")["changes"]
        assert {"device_added", "device_removed"} <= {one["kind"] for one in changes}
        until(lambda: permissions_of(phone)["notes"] == "former", "the phone is out")
        assert len(ask(laptop, "device", "list")["devices"]) == 1


@pytest.mark.extended
def test_a_link_that_was_used_makes_no_device_and_says_so(tmp_path: Path) -> None:
    with peers(tmp_path, "laptop", "phone", "other") as (laptop, phone, other):
        laptop.client.create_repo("notes")
        link = run_ravel(laptop, "device", "add", "--local").stdout.splitlines()[0]
        run_ravel(phone, "device", "join", "-", stdin=link)
        until(lambda: permissions_of(phone).get("notes") == "owner", "the phone is a device")
        again = run_ravel(
            phone, "device", "join", "-", stdin=link, code=ERROR_KINDS["already_exists"].exit_code
        )
        assert "this is a device of" in again.stderr
        refused = run_ravel(other, "device", "join", "-", stdin=link, code=ERROR_KINDS["expired"].exit_code)
        assert "makes you no device: it has been used up" in refused.stderr
        assert "ravel device add" in refused.stderr
        assert permissions_of(other) == {}, "nothing of that person's stays"
