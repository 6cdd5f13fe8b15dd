"""Persons whose keys change, on daemons by commands: a phone takes a laptop's place; friends let a lost home in again."""

from functools import partial
from pathlib import Path

import pytest

from node.runtime.errors import ERROR_KINDS, ServiceError
from tests.e2e.cluster import (
    JsonObject,
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

pytestmark = [pytest.mark.slow, pytest.mark.extended]
_NOT_PERMITTED = ERROR_KINDS["not_permitted"].exit_code


def _main(peer: Peer, repo: str) -> str:
    return str(
        next(one["branch"] for one in peer.client.list_branches(repo)["branches"] if one["name"] == "main")
    )


def _join(peer: Peer, host: Peer, repo: str) -> None:
    link = host.client.create_invitation(repo, permission="write", expires_seconds=3600)["invitation"]
    peer.client.join_repo(link)
    until(lambda: permissions_of(peer).get(repo) == "write", "it has joined")


def _posts(peer: Peer, branch: str) -> dict[str, JsonObject]:
    return {str(item["text"]): item for item in ask(peer, "log", branch)["items"]}


def test_a_phone_takes_the_place_of_a_laptop_while_a_member_is_away(tmp_path: Path) -> None:
    with peers(tmp_path, "laptop", "phone", "friend") as (laptop, phone, friend):
        laptop.client.create_repo("notes")
        friend.client.create_repo("friends")
        _join(laptop, friend, "friends")
        link = run_ravel(laptop, "device", "add", "--local").stdout.splitlines()[0]
        run_ravel(phone, "device", "join", "-", stdin=link)
        until(lambda: permissions_of(phone).get("notes") == "owner", "the phone owns the notes too")
        until(lambda: permissions_of(phone).get("friends") == "write", "and may write to the friend's repo")
        both = {user_of(phone): user_of(laptop), user_of(laptop): user_of(laptop)}
        until(lambda: both.items() <= persons_of(friend, "friends").items(), "the friend sees one person")
        branch = _main(friend, "friends")
        run_ravel(laptop, "write", branch, "from the laptop")
        until_equal(laptop, friend, branch)
        friend.kill()

        old, new = user_of(laptop), user_of(phone)
        done = ask(laptop, "device", "promote", new[:12], "--yes")["repos"]
        assert {one["name"]: (one["moved"], one["advice"]) for one in done} == dict.fromkeys(
            ["notes", "friends", "devices"], (True, "")
        )
        assert "passed before" in run_ravel(laptop, "device", "promote", new[:12], "--yes").stdout
        shown = run_ravel(laptop, "status").stdout
        assert "your place has passed to" in shown
        run_ravel(laptop, "write", branch, "too late", code=_NOT_PERMITTED)
        assert "Your place has passed to the computer" in run_ravel(laptop, "device", "list").stdout
        until(lambda: old not in persons_of(phone, "friends"), "the phone has heard of it")

        friend.start()
        until(lambda: persons_of(friend, "friends").get(old) is None, "and the friend, who was away")
        run_ravel(phone, "write", branch, "from the phone")
        until(lambda: "from the phone" in _posts(friend, branch), "the phone writes in its place")
        posts = _posts(friend, branch)
        assert [posts[f"from the {one}"]["person"] for one in ("laptop", "phone")] == [new, new]
        kinds = [one["kind"] for one in friend.client.list_member_changes("friends")["changes"]]
        assert kinds[-1] == "moved"
        phone.client.create_repo("later")
        assert ask(phone, "device", "list")["devices"][0]["user"] == new
        assert run_ravel(phone, "device", "add", "--local").stdout.startswith("ravel:device:")


def _friends(*lost: Peer) -> None:
    """Have the first found a repo, in which the others are and are its friends."""
    ann, *others = lost
    ann.client.create_repo("club")
    for one in others:
        _join(one, ann, "club")
    users = [user_of(one) for one in others]
    named = ask(ann, "recovery", "friends", *users, "--need", "2")["repos"]
    assert [(one["name"], one["changed"]) for one in named] == [("club", True)]
    for one in others:
        until(partial(_is_friend, one, user_of(ann)), "each hears of it")


def _is_friend(peer: Peer, user: str) -> bool:
    return user in {one["user"] for one in peer.client.list_friends()["persons"]}


def test_a_lost_home_comes_back_by_two_of_three_friends(tmp_path: Path) -> None:
    with peers(tmp_path, "ann", "ben", "cat", "dan", "new") as (ann, ben, cat, dan, new):
        _friends(ann, ben, cat, dan)
        old, key, branch = user_of(ann), user_of(new), _main(ann, "club")
        with pytest.raises(ServiceError, match="is nobody in your repos"):
            ann.client.name_friends(["eve"])
        with pytest.raises(ServiceError, match="is nobody in your repos"):
            ben.client.sign_recovery("eve", key)
        run_ravel(ann, "write", branch, "before the loss")
        for one in (ben, cat, dan):
            until_equal(ann, one, branch)
        ann.kill()

        shown = run_ravel(cat, "recovery", "show").stdout
        assert "club" in shown
        assert "2/3" in shown
        run_ravel(ben, "recovery", "sign", old, key, code=ERROR_KINDS["bad_request"].exit_code)
        texts = [run_ravel(one, "recovery", "sign", old, key, "--yes").stdout.strip() for one in (ben, cat)]
        short = run_ravel(dan, "recovery", "finish", texts[0], code=_NOT_PERMITTED).stdout
        assert "1 of 2 friends have signed" in short
        finished = run_ravel(dan, "recovery", "finish", *texts).stdout
        assert "let in" in finished
        assert "repo capability REPO" in finished
        assert "in before" in run_ravel(dan, "recovery", "finish", *texts).stdout

        link = run_ravel(dan, "repo", "capability", "club", "--local").stdout.strip().splitlines()[0]
        run_ravel(new, "repo", "follow", "-", stdin=link)
        until(lambda: permissions_of(new).get("club") == "owner", "the new key owns it, as the lost one did")
        run_ravel(new, "write", branch, "after the loss")
        for one in (ben, cat, dan):
            until(partial(_has, one, branch, "after the loss"), "each has what it writes")
            assert persons_of(one, "club")[key] == old
        assert _posts(ben, branch)["after the loss"]["person"] == old
        (told,) = [
            one for one in ben.client.list_member_changes("club")["changes"] if one["kind"] == "recovered"
        ]
        assert (told["user"], told["author"]) == (key, old)
        assert sorted(told["friends"]) == sorted([user_of(ben), user_of(cat)])
        run_ravel(new, "recovery", "show")


def _has(peer: Peer, branch: str, text: str) -> bool:
    return text in _posts(peer, branch)
