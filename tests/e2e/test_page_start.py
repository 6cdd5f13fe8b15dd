"""The first start on the page, and what waits for a person in all repos: in a real Chromium."""

import json
from pathlib import Path

import pytest

from tests.e2e.browser import CHROMIUM_ALONE, Browser, browser
from tests.e2e.cluster import join, peers, until, until_equal
from tests.e2e.page_steps import ROWS, enter, open_panel, picture, says

pytestmark = [
    pytest.mark.slow,
    pytest.mark.extended,
    pytest.mark.usefixtures("engine"),
]
_STEP = "document.getElementById('start')?.dataset.step"


def test_the_first_start_asks_the_name_and_offers_the_words_once(tmp_path: Path, page: Browser) -> None:
    with peers(tmp_path, "alice") as (alice,):
        enter(page, alice)
        page.until(f"{_STEP} === 'name'")
        page.until("document.activeElement?.name === 'name'")
        page.type("Ann Okafor")
        own = page.evaluate("[...document.querySelector('#start .av').classList].at(-1)")
        assert page.evaluate("document.querySelector('#start-name :checked').className") == own, (
            "it is marked"
        )
        page.click("#start-name .p4")
        picture(page, "start-name")
        page.click("#start-name > button")
        page.until(f"{_STEP} === 'key'")
        me = alice.client.show_me()
        assert (me["name"], me["color"]) == ("Ann Okafor", 6)
        page.until(says("in the clear", "document.getElementById('start')"))
        page.click("#show-words > button")
        page.until("document.querySelectorAll('#words li').length === 24")
        picture(page, "start-words")
        page.click("#words-written")
        page.until(f"{_STEP} === 'begin'")
        assert page.evaluate(says("Ann Okafor?", "document.getElementById('start')"))
        picture(page, "start-begin")
        open_panel(page, "people")
        page.until("document.querySelector('#me :checked')?.className === 'p4'")
        page.click("#me .p7")
        page.click("#me > button")
        page.until(says("Saved", "document.querySelector('.notices')"))
        assert (alice.client.show_me()["name"], alice.client.show_me()["color"]) == ("Ann Okafor", 10)
        picture(page, "names-and-colors")
        page.evaluate("location.hash = ''")
        page.reload()
        page.until(f"{_STEP} === 'begin'")
        page.click(".way:nth-child(2)")
        page.until("document.activeElement.closest('#new-repo')")
        page.type("garden")
        page.press("Enter", 13, "\r")
        page.until(f"{ROWS}.length === 1")
        empty = "document.querySelector('#timeline + .empty')"
        page.until(says("Nothing is written here yet", empty))
        above = f"document.querySelector('#timeline').getBoundingClientRect().bottom <= {empty}.getBoundingClientRect().top"
        only = "document.querySelector('.pane')"
        page.until(says("You are its only member so far", only))
        assert not page.evaluate(says("else is connected", only)), "nobody else could be"
        assert page.evaluate(above), "who began the branch stands above that nothing was written since"
        assert page.evaluate(says("Write the first post below", empty))
        alice.client.edit_branch("garden:main", archived=True)
        page.until(f"!{says('Write the first post below', empty)}")
        assert page.evaluate(says("Nothing is written here yet", empty))
        assert page.complaints() == []


@CHROMIUM_ALONE
def test_what_is_typed_is_answered_by_what_one_does_there(tmp_path: Path, page: Browser) -> None:
    with peers(tmp_path, "alice") as (alice,):
        alice.client.create_repo("garden")
        enter(page, alice)
        page.until(f"{ROWS}.length === 1")
        words = "one.innerText.split('\\n').map((word) => word.trim()).filter(Boolean).join(', ')"
        found = f"[...document.querySelectorAll('#found li')].map((one) => {words})"
        for asked, expected in {
            "exclude": ["Exclude somebody, People"],
            "rename": ["Rename this branch, Branches and marks", "Change your name or color, Names"],
            "uninstall": ["Remove Ravel: ravel uninstall in a terminal, Settings"],
        }.items():
            page.click("#commands")
            page.until("document.activeElement.id === 'command'")
            assert not page.evaluate(says("Exclude somebody", "document.getElementById('found')")), (
                "before a word is typed, places alone"
            )
            page.type(asked)
            page.until(
                f"JSON.stringify({found}) === {json.dumps(json.dumps(expected, separators=(',', ':')))}"
            )
            page.press("Enter", 13, "\r")
            page.until("!document.getElementById('palette')")
        page.until(says("To remove Ravel"))
        assert (
            page.evaluate("document.querySelector('.panel .command code').textContent") == "ravel uninstall"
        )
        assert page.complaints() == []


@CHROMIUM_ALONE
def test_mentions_requests_and_offers_of_all_repos_stand_in_one_list(tmp_path: Path, page: Browser) -> None:
    with peers(tmp_path, "alice", "bob") as (alice, bob):
        alice.client.state_me("Ann", color=3)
        bob.client.state_me("Ben", color=8)
        _, branch = join(alice, bob)
        until(lambda: "Ann" in str(bob.client.list_members("shared")), "bob knows the name")
        enter(page, alice)
        open_panel(page, "for-you")
        page.until(says("Nobody waits for you"))
        page.evaluate("location.hash = '#/-/for-you'")
        bob.client.write_post(branch, "@[Ann] can you bring the long hose?", resolve_mentions=True)
        until_equal(alice, bob, branch)
        page.until(says("can you bring the long hose", "document.getElementById('for-you')"), 60)
        page.until(says("1", "document.querySelector('#to-for-you .badge')"))
        picture(page, "for-you")
        page.click("#for-you .button")
        page.until(says("long hose", "document.activeElement"))
        page.until("!document.querySelector('#to-for-you .badge')")
        open_panel(page, "for-you")
        bob.client.write_post(branch, "@[Ann] and the short one?", resolve_mentions=True)
        page.click("#for-you .answer")
        page.until(says("@Ann and the short one", "document.querySelector('#write .answering')"))
        assert page.complaints() == []


def test_a_browser_set_to_german_gets_a_german_page(tmp_path: Path) -> None:
    with (
        peers(tmp_path, "alice") as (alice,),
        browser(tmp_path / "deutsch", "de-AT,de") as page,
    ):
        enter(page, alice)
        assert page.evaluate("[navigator.language, document.documentElement.lang]") == ["de-AT", "de"]
        page.until(says("Wie nennen dich andere?", "document.getElementById('start')"))
        picture(page, "german-start")
        alice.client.state_me("Ann", color=3)
        alice.client.create_repo("Garten")
        alice.client.write_post("main", "Beetplan fürs Frühjahr: Tomaten an die Südwand.")
        page.until(f"{ROWS}.length === 2")
        assert page.evaluate(says("Heute, ", "document.getElementById('timeline')"))
        assert page.evaluate(says("hat den Zweig begonnen", "document.getElementById('timeline')"))
        assert page.evaluate("document.getElementById('text').placeholder") == "Schreiben in Garten / main"
        assert page.evaluate(
            "[...document.querySelectorAll('.tabs a')].map((one) => one.firstChild.data)"
        ) == [*("Beiträge", "Notizen", "Dateien", "Angebote", "Personen")]
        picture(page, "german-posts")
        for panel in ("members", "inbox", "about", "settings", "peers", "backup"):
            open_panel(page, panel)
            picture(page, f"german-{panel}")
        open_panel(page, "person", alice.client.show_status()["user"])
        page.until(says("Hat es gegründet", "document.getElementById('since')"))
        picture(page, "german-person")
        assert page.complaints() == []
