"""Persons whose keys change, on the page: a computer takes another's place, and friends let in a key."""

from pathlib import Path

import pytest

from tests.e2e.browser import Browser
from tests.e2e.cluster import Peer, join, peers, until
from tests.e2e.page_steps import enter, open_panel, picture, says, submit

pytestmark = [pytest.mark.slow, pytest.mark.extended, pytest.mark.usefixtures("engine")]


def _user(peer: Peer) -> str:
    return str(peer.client.show_status()["user"])


def _held(peer: Peer) -> dict[str, str]:
    return {str(repo["name"]): str(repo["permission"]) for repo in peer.client.list_repos()["repos"]}


def test_a_computer_gives_its_place_to_another_on_the_page(tmp_path: Path, page: Browser) -> None:
    with peers(tmp_path, "alice", "phone") as (alice, phone):
        alice.client.create_repo("notes")
        phone.client.join_as_device(alice.client.invite_device()["link"])
        until(lambda: _held(phone).get("notes") == "owner", "the phone is a device")
        enter(page, alice)
        open_panel(page, "devices")
        page.until("document.querySelector('#devices .promote')", 60)
        page.click("#devices .promote")
        page.until(says("writes no more", "document.querySelector('dialog[open]')"))
        picture(page, "promote-question")
        page.click("dialog[open] .danger")
        page.until(says("Your place has passed to", "document.getElementById('device-moved')"), 60)
        page.until("document.getElementById('pass-rest')")
        until(
            lambda: [one["first"] for one in phone.client.list_devices()["devices"]] == [True],
            "it is the first",
        )
        assert page.complaints() == []


def test_friends_let_in_a_new_key_on_the_page(tmp_path: Path, page: Browser) -> None:
    with peers(tmp_path, "ann", "ben", "new") as (ann, ben, new):
        repo, _ = join(ann, ben)
        until(lambda: _held(ben).get("shared") == "write", "ben is a member")
        until(lambda: len(ann.client.list_members(repo)["members"]) == 2, "ann knows it")
        enter(page, ann)
        open_panel(page, "devices")
        page.until(says("Nobody can let you in again", "document.getElementById('friends')"))
        page.evaluate("document.querySelector('#friends details').open = true")
        submit(page, "#name-friends", friends=_user(ben))
        page.until("document.querySelector('dialog[open] .danger')")
        page.click("dialog[open] .danger")
        page.until(says("1 must sign", "document.getElementById('own-friends')"))
        picture(page, "friends")
        until(lambda: bool(ben.client.list_friends()["persons"]), "ben hears of it")

        enter(page, new)
        open_panel(page, "devices", "lost")
        page.until("document.getElementById('lost-keys')?.open")
        key = page.evaluate("document.getElementById('own-id').textContent")
        assert key == _user(new)
        picture(page, "lost-keys")

        enter(page, ben)
        open_panel(page, "devices")
        page.until("document.getElementById('sign')")
        page.evaluate("for (const id of ['sign', 'finish']) document.getElementById(id).open = true")
        page.evaluate("document.querySelector('#sign-recovery [type=checkbox]').click()")
        submit(page, "#sign-recovery", user=str(key))
        page.until("document.getElementById('signed')?.value.startsWith('ravel:recovery:')")
        text = str(page.evaluate("document.getElementById('signed').value"))
        half = len(text) // 2
        submit(page, "#finish-recovery", texts=f"{text[:half]}\n{text[half:]}")
        page.until(says("let in", "document.getElementById('finished')"))
        page.until(says("adds its own id under People", "document.getElementById('finished')"))
        picture(page, "recovered")
        assert page.complaints() == []

        new.client.follow_repo(ben.client.share_repo(repo)["capability"])
        until(lambda: _held(new).get("shared") == "owner", "the new key owns it, as the lost one did")
        enter(page, new)
        open_panel(page, "devices")
        page.until(says("add your own id under People", "document.querySelector('.panel')"))
