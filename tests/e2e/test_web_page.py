"""The web page in a real browser: how it is opened, what it shows and follows, and what it must never do."""

import json
from pathlib import Path

import pytest

from node.runtime.errors import ERROR_KINDS
from tests.e2e.browser import CHROMIUM, Browser
from tests.e2e.cluster import Peer, join, peers, run_ravel, until, until_equal
from tests.e2e.damage import harm
from tests.e2e.page_steps import ROWS, open_person, posts, says

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here (Debian: apt install chromium)"),
]
NAMES = "[...document.querySelectorAll('ul.repos > li summary bdi')].map((one) => one.textContent)"
HOSTILE = "<img src=x onerror=document.title='taken'> <b>bold</b> \u202e‮"


def _enter(page: Browser, peer: Peer) -> None:
    """Open the page as `ravel open` does."""
    answer = json.loads(run_ravel(peer, "open", "--no-browser", "--json").stdout)
    page.open(answer["address"])
    page.until("document.getElementById('node')")


def _show(page: Browser, panel: str, argument: str = "") -> None:
    """Open a panel beside what is shown."""
    page.evaluate(
        f"location.hash = location.hash.replace(/^#?$/, '#/-').split('/').slice(0, 2).join('/') + '/{panel}/{argument}'"
    )


def _firsts(page: Browser) -> list[str]:
    return list(page.evaluate(f"[...{ROWS}].map((row) => row.querySelector('.said').textContent)"))


def test_a_code_opens_the_page_once_and_the_token_stays_in_its_tab(tmp_path: Path, page: Browser) -> None:
    with peers(tmp_path, "alice") as (alice,):
        address = json.loads(run_ravel(alice, "open", "--no-browser", "--json").stdout)["address"]
        page.open(address)
        page.until("document.getElementById('node')")
        page.until("document.getElementById('empty')")
        assert page.evaluate("location.href") == f"{alice.client.url}/", "the code is gone from the address"
        token = (alice.home / "api-token").read_text().strip()
        own = page.evaluate("sessionStorage.getItem('ravel-token')")
        assert own.startswith("ravel_"), "a token of its own, and not the node's"
        assert page.evaluate("[document.cookie, localStorage.length]") == ["", 0]
        page.open(f"{alice.client.url}/#reload")
        page.until("document.getElementById('node')")
        page.evaluate("location.hash = '#/-/settings'")
        page.click("#leave")
        page.until("document.getElementById('login')")
        assert page.evaluate("sessionStorage.length") == 0
        assert page.complaints() == []

        page.open("about:blank")
        page.open(address)
        page.until("document.getElementById('login-error')?.textContent.includes('ravel open')")
        page.evaluate("document.getElementById('token').value = 'wrong'; document.forms[0].requestSubmit()")
        page.until(
            "document.getElementById('login-error')?.textContent.includes('does not know that API token')"
        )
        page.evaluate(
            f"document.getElementById('token').value = {token!r}; document.forms[0].requestSubmit()"
        )
        page.until("document.getElementById('node')")
        assert {url.split("/")[2] for url in page.requested() if url.startswith("http")} == {
            alice.client.url.removeprefix("http://")
        }, "nothing comes from elsewhere"
        assert not any(token in url or own in url for url in page.requested())


@pytest.mark.extended
def test_the_timeline_is_followed_and_what_others_wrote_is_text(tmp_path: Path, page: Browser) -> None:
    with peers(tmp_path, "alice") as (alice,):
        alice.client.create_repo(f"notes {HOSTILE[:40]}")
        alice.client.write_post("main", HOSTILE)
        _enter(page, alice)
        page.until(f"{ROWS}.length === 2")
        alice.client.write_post("main", "second")
        page.until(f"{ROWS}.length === 3")
        _show(page, "storage")
        page.until("document.getElementById('sizes')?.textContent.includes('free')")
        assert page.evaluate("document.querySelectorAll('#growth > li').length") == 1
        assert not page.evaluate(r"/\d{4}-\d\d/.test(document.querySelector('.panel').textContent)"), (
            "in words"
        )
        assert page.evaluate("document.getElementById('relay')") is None
        posts(page)
        assert _firsts(page) == ["second", HOSTILE, "began the branch"]
        assert (
            page.evaluate(
                "document.querySelectorAll('#timeline img, #timeline .said b, #timeline bdi b, #repos img').length"
            )
            == 0
        )
        assert page.evaluate("document.title") == "Ravel"

        items = [
            {"id": name, "parents": parents, "author": HOSTILE, "time": 2**40, "text": name}
            for name, parents in (("a", []), ("b", ["a"]), ("c", ["a"]), ("d", ["b", "c"]))
        ]
        alice.client.import_commits("main", items, "test")
        page.until(f"{ROWS}.length === 7")
        page.evaluate(
            f"[...{ROWS}].find((row) => row.querySelector('.said').textContent === 'd').querySelector('.when').click()"
        )
        page.until("document.querySelectorAll('.tangle [aria-current] line').length >= 2")
        page.evaluate("document.getElementById('text').value = 'from the page'")
        page.evaluate("document.getElementById('write').requestSubmit()")
        page.until(f"[...{ROWS}].some((row) => row.textContent.includes('from the page'))")

        assert page.complaints() == []
        alice.stop()  # what the browser was fetching fails in several words of its own
        page.until("document.getElementById('live').textContent.includes('not connected')")
        assert page.evaluate(f"{ROWS}.length") == 8, "what was shown stays"


@pytest.mark.extended
def test_people_are_shown_by_their_names(tmp_path: Path, page: Browser) -> None:
    with peers(tmp_path, "alice", "bob") as (alice, bob):
        alice.client.state_me("Ann", color=3)
        _, branch = join(alice, bob)
        alice.client.write_post(branch, "hello")
        _enter(page, bob)
        who = f"[...{ROWS}].map((row) => row.querySelector('.who').textContent)[0]"
        page.until(f"{who} === 'Ann'")
        _show(page, "members")
        members = "document.getElementById('members')"
        page.until(members)
        page.until(f"[...{members}.querySelectorAll('.person')].some((one) => one.textContent === 'Ann')")
        assert page.evaluate(f"{members}.querySelectorAll('.av.p2').length") >= 1, "the color that she stated"
        posts(page)
        alice.client.set_petname(bob.client.show_status()["user"], "\u0410nn")
        bob.client.state_me("\u0410nn", color=None)
        mark = f" [{alice.client.show_status()['user'][:8]}]"
        page.until(f"{who} === 'Ann{mark}'")  # the rows that are there follow
        long = "<b>" + "x" * 60 + "</b>"
        bob.client.set_petname(alice.client.show_status()["user"], long[:64])
        bob.client.write_post(branch, "again")
        page.until(f"[...{ROWS}].some((row) => row.querySelector('.who').textContent.startsWith('<b>xxxx'))")
        assert (
            page.evaluate(
                "document.querySelectorAll('#timeline .said b, #timeline bdi b, #members bdi b').length"
            )
            == 0
        )
        assert page.complaints() == []


@pytest.mark.extended
def test_a_page_goes_on_after_the_daemon_was_started_again(tmp_path: Path, page: Browser) -> None:
    with peers(tmp_path, "alice") as (alice,):
        config = alice.home / "config.toml"
        port = alice.client.url.rpartition(":")[2]
        config.write_text(
            config.read_text().replace('listen = "127.0.0.1:0"', f'listen = "127.0.0.1:{port}"')
        )
        alice.client.create_repo("notes")
        _enter(page, alice)
        page.until(f"{ROWS}.length === 1")
        alice.stop()
        page.until("document.getElementById('live').textContent.includes('not connected')")
        page.fill("#text", "in vain")
        page.click("#write .row > :last-child")
        page.until("document.getElementById('problem').textContent.includes('does not answer')")
        alice.start()
        page.until("!document.getElementById('problem').textContent.trim()")
        alice.client.write_post("main", "written after")
        page.until(f"{ROWS}.length === 2")
        assert _firsts(page)[0] == "written after"


@pytest.mark.extended
def test_a_view_that_cannot_be_loaded_says_so_and_comes_when_it_can(tmp_path: Path, page: Browser) -> None:
    with peers(tmp_path, "alice") as (alice,):
        config = alice.home / "config.toml"
        port = alice.client.url.rpartition(":")[2]
        config.write_text(
            config.read_text().replace('listen = "127.0.0.1:0"', f'listen = "127.0.0.1:{port}"')
        )
        alice.client.create_repo("notes")
        _enter(page, alice)
        page.until(f"{ROWS}.length === 1")
        assert not any(url.endswith("/views/settings.js") for url in page.requested()), (
            "not before it is opened"
        )
        _forget_worker(page)
        alice.stop()
        page.until("document.getElementById('live').textContent.includes('not connected')")
        page.evaluate("location.hash = '#/-/settings'")
        page.until("document.querySelector('#no-view [role=alert]')")
        page.click("#no-view button")
        page.until("document.querySelector('#no-view button')")
        alice.start()
        page.until("document.getElementById('live').textContent.includes('All is well')")
        page.evaluate("document.querySelector('#no-view button')?.click()")
        page.until("document.getElementById('setting-filter')")


def _forget_worker(page: Browser) -> None:
    """Have the browser keep no file of the page for when the node is away, as one does that was never here before."""
    page.evaluate(
        "window.isForgotten = false;"
        "navigator.serviceWorker.ready.then(async (one) => {"
        "  await one.unregister();"
        "  for (const name of await caches.keys()) await caches.delete(name);"
        "  window.isForgotten = true;"
        "})"
    )
    page.until("window.isForgotten")


@pytest.mark.extended
def test_only_repos_that_have_changed_are_asked_for(tmp_path: Path, page: Browser) -> None:
    with peers(tmp_path, "alice") as (alice,):
        ids = {name: alice.client.create_repo(name)["repo"] for name in ("one", "two", "three")}
        _enter(page, alice)
        page.until(f"{NAMES}.sort().join() === 'one,three,two'")
        page.until("document.querySelector('#timeline')")
        page.events.clear()
        alice.client.write_post("two:main", "hello")
        until(
            lambda: page.evaluate("true") and any(ids["two"] in url for url in page.requested()),
            "its branches are asked for",
        )
        alice.client.create_repo("four")
        page.until(f"{NAMES}.sort().join() === 'four,one,three,two'")
        alice.client.forget_repo(ids["three"], accept_loss=True)
        page.until(f"{NAMES}.sort().join() === 'four,one,two'")
        asked = [url for url in page.requested() if "/repos" in url]
        branches = [url for url in asked if url.endswith("/branches")]
        assert not any(ids[name] in url for url in branches for name in ("one", "three")), (
            "nothing of it has changed"
        )
        assert sum(ids["two"] in url for url in branches) == 1
        assert all("since=" in url for url in asked if "/repos?" in url or url.endswith("/repos"))
        assert page.complaints() == []


@pytest.mark.extended
def test_what_becomes_void_is_struck_and_comes_back(tmp_path: Path, page: Browser) -> None:
    with peers(tmp_path, "alice", "bob", "carol", introduces=False) as (alice, bob, carol):
        _, branch = join(alice, bob)
        carol.client.join_repo(
            alice.client.create_invitation("shared", permission="write", expires_seconds=3600)["invitation"]
        )
        until_equal(alice, carol, branch)
        until_equal(alice, bob, branch)
        node = alice.client.show_status()["node"]
        for peer in (bob, carol):
            peer.client.remove_peer(node)
        bob.client.add_peer(carol.listen, carol.client.show_status()["node"])
        lost = bob.client.write_post(branch, "unseen by alice")["commit"]
        until_equal(bob, carol, branch)
        _enter(page, carol)
        page.until(f"[...{ROWS}].some((row) => row.textContent.includes('unseen by alice'))")
        _show(page, "peers")
        page.until("document.getElementById('peers')?.textContent.includes('connected')")
        _show(page, "members")
        page.until("document.getElementById('members')?.children.length === 3")
        alice.client.remove_member("shared", bob.client.show_status()["user"])
        carol.client.add_peer(alice.listen, node)
        struck = "document.querySelectorAll('#timeline > li.void').length"
        page.until("document.getElementById('members').children.length === 2")
        posts(page)
        page.until(f"{struck} === 1")
        page.open(f"{carol.client.url}/#reload")
        page.until(f"{struck} === 1")  # found again, not only followed
        alice.client.adopt_commits(branch, [lost])
        page.until(f"{struck} === 0")
        assert page.complaints() == []


@pytest.mark.extended
def test_devices_of_one_person_stand_together(tmp_path: Path, page: Browser) -> None:
    with peers(tmp_path, "laptop", "phone") as (laptop, phone):
        laptop.client.create_repo("notes")
        phone.client.join_as_device(laptop.client.invite_device(expires_seconds=3600)["link"])
        until(lambda: _shown_as_one(laptop), "both have said so")
        user = phone.client.show_status()["user"]
        branch = laptop.client.list_branches("notes")["branches"][0]["branch"]
        until_equal(laptop, phone, branch)
        phone.client.write_post(branch, "from the phone")
        until_equal(laptop, phone, branch)
        _enter(page, laptop)
        page.until(f"[...{ROWS}].some((row) => row.textContent.includes('from the phone'))")
        page.evaluate("[...document.querySelectorAll('[data-branch]')].at(0).click()")
        page.until("location.hash.length > 50")
        _show(page, "members")
        members = "document.getElementById('members')"
        page.until(f"{members}?.children.length === 1")
        page.until(says("2 devices", members))
        first = laptop.client.show_status()["user"]
        open_person(page, first[:16])
        page.until("document.querySelectorAll('#computers > li').length === 2")
        assert page.evaluate(says("'s device 2", "document.getElementById('computers')"))
        assert page.evaluate(says(user, "document.getElementById('person')")), "for experts"
        posts(page)
        named = f"[...{ROWS}].flatMap((row) => [...row.querySelectorAll('article .who')]).map((who) => who.textContent)"
        page.until(f"new Set({named}).size === 1")
        assert page.evaluate(f"{named}[0]") == first[:12]
        assert page.complaints() == []


def _shown_as_one(peer: Peer) -> bool:
    members = peer.client.list_members("notes")["members"]
    return len(members) == 2 and len({item["person"] for item in members}) == 1


@pytest.mark.extended
def test_invitations_and_exports_are_made_on_the_page(tmp_path: Path, page: Browser) -> None:
    with peers(tmp_path, "alice") as (alice,):
        alice.client.create_repo("notes")
        _enter(page, alice)
        page.until(f"{ROWS}.length === 1")
        _show(page, "members")
        page.click("#invite-somebody")
        page.click("#invite > button")
        page.until("document.getElementById('link')?.value.startsWith('ravel:invite:')")
        (invitation,) = alice.client.list_invitations("notes")["invitations"]
        assert (invitation["permission"], invitation["uses"]) == ("write", 1)
        page.until("document.querySelector('.qr path').hasAttribute('d')")
        alarm = page.evaluate("document.querySelector('#invitation .error').textContent")
        assert "no other computer can reach" in alarm, (
            "a link of a loopback address alone is no use to others"
        )
        drawn = alice.client.draw_qr(page.evaluate("document.getElementById('link').value"))
        assert page.evaluate("document.querySelector('.qr path').getAttribute('d')") == drawn["path"]
        _show(page, "storage")
        page.until("document.getElementById('export')")
        page.evaluate("document.getElementById('export').click()")
        page.until("document.getElementById('exported').textContent.includes(' changes')", 120)
        until(lambda: (alice.home / "exports").is_dir(), "the export is there")
        assert page.complaints() == []


@pytest.mark.extended
def test_what_was_damaged_is_said(tmp_path: Path, page: Browser) -> None:
    with peers(tmp_path, "alice") as (alice,):
        alice.client.create_repo("notes")
        for text in ("first", "second"):
            alice.client.write_post("main", text)
        alice.stop()
        harm(alice.home / "ravel.sqlite")
        run_ravel(alice, "fsck", "--repair", code=ERROR_KINDS["damaged"].exit_code)
        alice.start()
        _enter(page, alice)
        page.until(f"{ROWS}.length === 3")
        assert _firsts(page)[0] == "A post, damaged here"
        page.until(
            "document.getElementById('live').textContent.includes('2 damaged, asked of other computers')"
        )
        assert all("status of 500" in said for said in page.complaints()), (
            "members and voids cannot be computed"
        )


@pytest.mark.extended
def test_the_page_is_used_by_keyboard_and_fits_a_phone(tmp_path: Path, page: Browser) -> None:
    with peers(tmp_path, "alice") as (alice,):
        alice.client.create_repo("notes")
        alice.client.write_post("main", "first\n\nand a second paragraph " + "long" * 100)
        page.show(360, 700, "dark")
        _enter(page, alice)
        page.until(f"{ROWS}.length === 2")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (
            "nothing to scroll sideways"
        )
        reached = _tab_through(page)
        assert {"commands", "add", "A", "SUMMARY"} <= reached, "the list, and the ways to the other views"
        page.click("[data-branch]")
        page.until("document.getElementById('timeline')")
        assert {"text", "BUTTON", "ARTICLE"} <= _tab_through(page)
        _show(page, "storage")
        page.until("document.getElementById('export')")
        assert {"export", "leave"} <= _tab_through(page)
        posts(page)
        page.evaluate(f"{ROWS}[0].querySelector('article').focus()")
        page.press("ArrowUp", 38)
        page.until(f"document.activeElement === {ROWS}[1].querySelector('article')")
        page.press("ArrowDown", 40)
        page.press("Enter", 13, "\r")
        page.until("document.getElementById('verdict')?.textContent === 'Counts'")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def _tab_through(page: Browser) -> set[str]:
    """Return what the first 30 presses of Tab reach: ids, or names of elements without."""
    reached = set()
    for _ in range(30):
        page.press("Tab", 9)
        reached.add(page.evaluate("document.activeElement.id || document.activeElement.tagName"))
    return reached
