"""What two people do with each other on the pages of their nodes: files, forks and offers, approvals; and by keys alone."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from ravel import RavelError
from ravel.types.peers import PeerSettings
from tests.e2e.browser import CTRL, Browser
from tests.e2e.cluster import Peer, join, peers, run_ravel, until, until_equal
from tests.e2e.page_steps import (
    ROWS,
    by_command,
    choose_by_key,
    enter,
    open_panel,
    open_person,
    picture,
    posts,
    press_on,
    retype,
    says,
    tab_to,
    write_by_keys,
)

pytestmark = [pytest.mark.slow, pytest.mark.extended]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Peer, Peer, str]]:
    """Two nodes of members of one repo, started once, and its branch."""
    with peers(tmp_path_factory.mktemp("pair"), "alice", "bob") as (alice, bob):
        alice.client.state_me("Ann", color=3)
        bob.client.state_me("Bob", color=5)
        _, branch = join(alice, bob)
        until_equal(alice, bob, branch)
        yield alice, bob, branch


def _show(page: Browser, branch: str, panel: str = "") -> None:
    """Go to a branch, as by the list."""
    page.evaluate(f"location.hash = '#/{branch}/{panel}'")
    page.until("document.getElementById('timeline')")


def test_a_file_comes_to_the_other_and_a_fork_is_offered_and_merged_by_keys_alone(
    pair: tuple[Peer, Peer, str], tmp_path: Path, page: Browser, bobs: Browser
) -> None:
    alice, bob, branch = pair
    plan = tmp_path / "plan.txt"
    plan.write_bytes(b"step one" * 20_000)
    saved = tmp_path / "saved"
    saved.mkdir()
    enter(page, alice)
    enter(bobs, bob)
    by_command(page, "write a")
    choose_by_key(page, "#choose-files", plan)
    page.until(says("plan.txt", "document.querySelector('.chosen-files')"))
    write_by_keys(page, "the plan, step one")
    page.until(says("Bob joined", "document.getElementById('timeline')"))
    picture(page, "joined")
    page.evaluate(f"location.hash = '#/{branch}/members'")
    page.until(says("connected, has everything", "document.getElementById('members')"))
    picture(page, "members-connected")
    bobs.save_into(saved)
    bobs.until(says("the plan, step one", "document.getElementById('timeline')"), 60)
    by_command(bobs, "shared : main")
    bobs.until("document.activeElement.tagName === 'ARTICLE'")
    press_on(bobs, "article .doc[aria-label='Look at plan.txt']")
    bobs.until("document.querySelector('#viewer pre')")
    press_on(bobs, "#save-viewed")
    until(lambda: (saved / "plan.txt").exists(), "bob has it")
    assert (saved / "plan.txt").read_bytes() == plan.read_bytes()
    bobs.press("Escape", 27)

    by_command(bobs, "about this")
    press_on(bobs, "details:has(> #fork-repo) > summary")
    retype(bobs, "#fork-repo [name=name]", "mine")
    bobs.until(says("mine", "document.getElementById('branch-name')"))
    bobs.until(says("These files stay in the original: plan.txt", "document.querySelector('.notices')"))
    picture(bobs, "forked")
    write_by_keys(bobs, "a better step two")
    by_command(bobs, "comments and")
    press_on(bobs, "details:has(> #offer-this) > summary")
    assert bobs.evaluate("document.querySelector('#offer-this [name=other]').selectedOptions[0].text") == (
        "shared : main"
    )
    retype(bobs, "#offer-this [name=note]", "please take it")
    bobs.until(says("The offer was made"))
    picture(bobs, "offered")

    page.until(says("1 offer to answer", "document.getElementById('repos')"), 60)
    by_command(page, "comments and")
    page.until(says("please take it", "document.getElementById('offers')"), 60)
    picture(page, "offer")
    press_on(page, "#offers .look")
    look = "document.querySelector('#offers .look-at')"
    page.until(look, 60)  # once its commits have come
    page.until(says("a better step two", look))
    assert not page.evaluate(says("Merge 1 post", "document.getElementById('offers')")), (
        "nobody has accepted it"
    )
    picture(page, "offer-look")
    press_on(page, "#offers li > .grow > .buttons .main")
    page.until(says("Merge 1 post", look))
    press_on(page, "#offers .merge")
    page.until(says("Merged: 1 change", "document.querySelector('.notices')"), 60)
    posts(page)
    page.until(f"[...{ROWS}].some((row) => row.textContent.includes('a better step two'))")
    by_command(page, "comments and")
    page.until(says("(mine by Bob)", "document.getElementById('repos')"))
    page.until(says("All that came of it is merged", "document.getElementById('offers')"))
    picture(page, "offer-merged")
    (offered,) = [one["repo"] for one in alice.client.list_repos()["repos"] if "mine by Bob" in one["name"]]
    _show(page, alice.client.list_branches(offered)["branches"][0]["branch"])
    page.until(says("a better step two", f"{ROWS}[0]"))
    authors = f"[...new Set({ROWS}.map((row) => row.querySelector('.who').textContent))].sort()"
    assert page.evaluate(authors) == ["Ann", "Bob"], (
        "names that they state in the repo to which it was offered"
    )
    picture(page, "offered-branch")
    assert page.complaints() == bobs.complaints() == []


def _in_rows(steps: str) -> str:
    """An expression: do something with the rows of the timeline."""
    return f"import('/web/views/timeline.js').then(({{ shown: {{ value: {{ rows }} }} }}) => {{ {steps} }})"


def test_an_evening_of_changes_is_one_row_that_opens(pair: tuple[Peer, Peer, str], page: Browser) -> None:
    alice, _, branch = pair
    for number in range(5):
        alice.client.edit_set(branch, add=[f"thing {number}"])
    enter(page, alice)
    _show(page, branch)
    page.until(says("changed the list 5 times", f"{ROWS}[0]"))
    assert page.evaluate(says(" Show all", f"{ROWS}[0]")), "a space keeps it off the time"
    rows = f"{ROWS}.filter((row) => row.textContent.includes('changed the list'))"
    assert page.evaluate(f"{rows}.length") == 1
    alice.client.edit_set(branch, remove=["thing 1"])
    page.until(says("changed the list 6 times", f"{ROWS}[0]"))
    page.evaluate("document.activeElement.blur()")
    page.press("k", 75, "k")  # from where nothing has the keyboard
    page.until(
        f"document.activeElement.closest('article') && document.activeElement === {ROWS}[0].querySelector('article')"
    )
    page.press("Enter", 13, "\r")
    page.until(f"{ROWS}[0].querySelectorAll('.changes > li').length === 6")
    picture(page, "changes")
    alice.client.write_post(branch, "done")
    page.until(says("done", f"{ROWS}[0]"))
    assert page.evaluate(f"{ROWS}[1].querySelectorAll('.changes > li').length") == 6, "it stays open"
    page.press("ArrowUp", 38)
    page.until(f"document.activeElement === {ROWS}[2].querySelector('article')")
    for number, said in (
        (3, "changed the list 3 times"),
        (1, "changed the list"),
    ):  # as if the others were not loaded yet
        page.evaluate(_in_rows(f"window.all = rows.value; rows.value = all.slice(0, {number + 1})"))
        page.until(says(said, f"{ROWS}[1]"))
        page.until(f"{ROWS}.length === 2")
        page.evaluate(f"{ROWS}[1].querySelector('[aria-expanded=false]')?.click()")
        page.evaluate(f"{ROWS}[1].querySelector('article').focus()")
        page.evaluate(_in_rows("rows.value = all"))
        page.until(says("changed the list 6 times", f"{ROWS}[1]"))
        assert page.evaluate(f"document.activeElement === {ROWS}[1].querySelector('article')"), (
            "older ones came"
        )
        is_open = page.evaluate(f"{ROWS}[1].querySelectorAll('.changes > li').length") == 6
        assert is_open == (number > 1), "it stays open"
    page.click("[data-several] [aria-expanded=false]")
    page.click(".changes a")
    page.until("document.getElementById('verdict')?.textContent === 'Counts'")
    assert page.complaints() == []


def test_what_one_wrote_on_another_computer_is_ones_own(tmp_path: Path, page: Browser) -> None:
    with peers(tmp_path, "laptop", "phone") as (laptop, phone):
        laptop.client.state_me("Ann", color=3)
        repo = laptop.client.create_repo("notes")["repo"]
        link = run_ravel(laptop, "device", "add", "--local").stdout.splitlines()[0]
        run_ravel(phone, "device", "join", "-", stdin=link)
        until(lambda: len(laptop.client.list_members(repo)["members"]) == 2, "the phone has the notes")
        until(lambda: "notes" in str(phone.client.list_repos()), "the phone knows them")
        branch = laptop.client.list_branches(repo)["branches"][0]["branch"]
        until_equal(laptop, phone, branch)
        laptop.client.write_post(branch, "from the laptop")
        until_equal(laptop, phone, branch)
        phone.client.write_post(branch, f"from the phone to @{phone.client.show_status()['user']}")
        until_equal(laptop, phone, branch)

        enter(page, laptop)
        page.until(says("from the phone to @Ann", f"{ROWS}[0]"))
        page.until(f"{ROWS}[0].querySelector('.mine-mention.more .mention.mine')")
        page.click("#timeline > li:last-child [data-key=e]")
        page.until("document.getElementById('text').value.startsWith('from the phone')")
        page.fill("#text", "said otherwise")
        page.press("Enter", 13, modifiers=CTRL)
        page.until(says("said otherwise", f"{ROWS}[0]") + f" || {says('said otherwise', f'{ROWS}[1]')}")
        open_panel(page, "members")
        page.until("document.querySelectorAll('#members > li').length === 1")
        page.until(says("Your other computer has everything", "document.getElementById('standing')"))
        picture(page, "two-computers")
        until_equal(laptop, phone, branch)
        posts_there = [one["text"] for one in phone.client.show_timeline(branch, limit=10)["items"]]
        assert "said otherwise" in posts_there


def test_a_peer_that_was_removed_or_banned_comes_back_as_it_was(
    pair: tuple[Peer, Peer, str], page: Browser
) -> None:
    alice, bob, _ = pair
    node = alice.client.show_status()["node"]

    def settings() -> PeerSettings | None:
        with suppress(RavelError):  # `not_found`
            return bob.client.show_peer(node)
        return None

    before = settings()
    assert before is not None
    assert (before["from_link"], before["relay"], len(before["repos"])) == (True, False, 1)
    enter(page, bob)
    open_panel(page, "peers")
    for button in ("button:not(.danger)", ".danger"):
        page.evaluate("document.querySelector('#peers details').open = true")
        page.click(f"#peers .buttons {button}")
        page.click("dialog[open] .danger")
        until(lambda: settings() is None, "it is forgotten")
        page.click(".notices p:last-child button")
        until(lambda: settings() == before, "it is as it was")
        page.until("document.querySelector('#peers .buttons')")
    picture(page, "peers-back")
    assert [one for one in page.complaints() if "status of 404" not in one] == []


def _choose_role(page: Browser, name: str, role: str) -> None:
    """Choose what a person may do in the list of members."""
    field = f"""document.querySelector('#members [aria-label="Role of {name}"]')"""
    page.until(field)
    page.evaluate(
        f"{field}.value = '{role}'; {field}.dispatchEvent(new Event('change', {{ bubbles: true }}))"
    )


def test_roles_are_fields_where_one_may_change_them(tmp_path: Path, page: Browser) -> None:
    with peers(tmp_path, "alice", "bob", "cid") as (alice, bob, cid):
        for one, name in ((alice, "Ann"), (bob, "Bob"), (cid, "Cid")):
            one.client.state_me(name)
        repo, branch = join(alice, bob)
        alice.client.grant_permission(repo, bob.client.show_status()["user"], "admin")
        link = alice.client.create_invitation(repo, permission="write", expires_seconds=3600)["invitation"]
        cid.client.join_repo(link)
        until(lambda: len(bob.client.list_members(repo)["members"]) == 3, "bob knows all three")
        until_equal(alice, bob, branch)
        enter(page, bob)
        page.evaluate(f"location.hash = '#/{branch}/members'")
        fields = (
            "[...document.querySelectorAll('#members select')].map((one) => one.getAttribute('aria-label'))"
        )
        page.until(says("Cid", "document.getElementById('members')"))
        page.until(says("Ann", "document.getElementById('members')"))
        assert page.evaluate(fields) == ["Role of Cid"], "an admin changes neither owners nor themselves"
        options = "[...document.querySelectorAll('#members option')].map((one) => one.value)"
        assert page.evaluate(options) == ["read", "write", "manage", "admin"], (
            "nobody gives more than they have"
        )
        picture(page, "roles")
        open_person(page, "Ann")
        assert not page.evaluate("document.querySelector('#person .danger')")
        _choose_role(page, "Cid", "read")
        page.until("document.querySelector('dialog[open]')")
        page.press("Escape", 27)
        page.until("document.querySelector('#members select').value === 'write'")
        _choose_role(page, "Cid", "read")
        page.click("dialog[open] .danger")
        page.until(says("The role of Cid is Reader now", "document.querySelector('.notices')"))
        assert "read" in [one["permission"] for one in bob.client.list_members(repo)["members"]]
        assert page.complaints() == []


def test_rights_are_given_back_and_signers_approve_of_an_exclusion(tmp_path: Path, page: Browser) -> None:
    with peers(tmp_path, "alice", "bob") as (alice, bob):
        bob.client.state_me("Bob", color=5)
        repo, branch = join(alice, bob)
        until_equal(alice, bob, branch)

        def permissions() -> list[str]:
            return sorted(one["permission"] for one in alice.client.list_members(repo)["members"])

        enter(page, alice)
        open_panel(page, "members")
        page.until(says("Bob", "document.getElementById('members')"))
        _choose_role(page, "Bob", "manage")
        page.until(says("The role of Bob is Manager now", "document.querySelector('.notices')"))
        assert permissions() == ["manage", "owner"]
        page.click(".notices p:last-child button")
        page.until(says("The role of Bob is Writer now", "document.querySelector('.notices')"))
        assert permissions() == ["owner", "write"]

        open_panel(page, "quorum")
        page.until("document.querySelector('#quorum [name=signer]')")
        page.evaluate("document.getElementById('quorum').parentElement.open = true")
        page.click(f"#quorum [value='{alice.client.show_status()['user']}']")
        page.click("#quorum [name=removals]")
        page.click("#quorum > button")
        page.until(says("1 of 1 person"))
        for keeps, what, now, left in (
            ("read", "Lower Bob to Reader", "Lower to Reader now", ["owner", "read"]),
            ("", "Exclude Bob", "Exclude now", ["owner"]),
        ):
            open_panel(page, "members")
            if keeps:
                _choose_role(page, "Bob", keeps)
                page.until(says("Lower Bob to Reader in", "document.querySelector('dialog[open]')"))
            else:
                open_person(page, "Bob")
                page.click("#person .danger")
            page.click("dialog[open] .danger")
            page.until(
                says(f"Propose to {what[0].lower()}{what[1:]}?", "document.querySelector('dialog[open]')")
            )
            page.click("dialog[open] .danger")
            page.until(says("It was proposed", "document.querySelector('.notices')"))
            open_panel(page, "quorum")
            page.until(says(what, "document.querySelector('#proposals > li')"))
            page.until(says(now, "document.querySelector('#proposals .danger')"))
            page.click("#proposals .danger")
            page.until(says(f"{what} ", "document.querySelector('dialog[open]')"))
            page.click("dialog[open] .danger")
            page.until(says("done", "document.querySelector('#proposals > li')"))
            assert permissions() == left
        picture(page, "proposals")
        assert [one for one in page.complaints() if "status of 4" not in one] == []


def test_two_people_need_no_mouse(tmp_path: Path, page: Browser, bobs: Browser) -> None:
    with peers(tmp_path, "alice", "bob") as (alice, bob):
        for one, peer, name in ((page, alice, "Ann"), (bobs, bob, "Bob")):
            enter(one, peer)
            by_command(one, "names")
            one.until("document.querySelector('#me [name=name]')")
            tab_to(one, "#me [name=name]")
            one.type(name)
            one.press("Enter", 13, "\r")
            one.until(says("Saved", "document.querySelector('.notices')"))
        by_command(page, "new repo")
        page.until("document.activeElement.closest('#new-repo')")
        page.type("club")
        page.press("Enter", 13, "\r")
        page.until(f"{ROWS}.length === 1")
        by_command(page, "members")
        press_on(page, "#invite-somebody")
        press_on(page, "#invite > button")
        page.until("document.getElementById('link')?.value.startsWith('ravel:invite:')")
        link = page.evaluate("document.getElementById('link').value")

        by_command(bobs, "join")
        bobs.until("document.activeElement.name === 'link'")
        bobs.type(link)
        bobs.until("document.getElementById('link-holds')")
        tab_to(bobs, "#join-repo > button")
        bobs.press("Enter", 13, "\r")
        bobs.until(f"{ROWS}.length === 1", 60)
        bobs.until("document.getElementById('write')")
        write_by_keys(bobs, "the lamp is in the attic")
        posts(page)
        page.until(says("in the attic", f"{ROWS}[0]"), 60)

        until(lambda: len(alice.client.search(text="attic")["hits"]) == 1, "the index")
        by_command(page, "attic")
        page.until("document.querySelectorAll('#hits li').length === 1")
        tab_to(page, "#hits a")
        page.press("Enter", 13, "\r")
        page.until("document.activeElement.tagName === 'ARTICLE'")
        page.until(says("in the attic", "document.activeElement"))

        by_command(page, "members")
        page.until(says("Bob", "document.getElementById('members')"))
        press_on(page, f"#members [href$='{bob.client.show_status()['user']}']")
        page.until("document.activeElement.id === 'details-title'")
        press_on(page, "#person .danger")
        page.until("document.querySelector('dialog[open]')")
        tab_to(page, "dialog .danger")
        picture(page, "exclude-by-keys")
        tab_to(page, "dialog .danger")
        page.press("Enter", 13, "\r")
        page.until("document.getElementById('members').children.length === 1")
        bobs.until(says("no member any more", "document.getElementById('repos')"), 60)
        assert page.complaints() == bobs.complaints() == []
