"""Journeys of a small club on the page after its first day. What browsers may do otherwise is played in each.

With `RAVEL_SCREENSHOTS` naming a folder, each journey leaves pictures there: light, dark, and on a phone.
"""

import random
import resource
import shutil
from pathlib import Path

import pytest

from tests.e2e.browser import CHROMIUM_ALONE, CTRL, Browser, browser
from tests.e2e.cluster import Peer, join, peers, permissions_of, run_ravel, until, until_equal
from tests.e2e.page_steps import (
    PHONE,
    ROWS,
    by_command,
    enter,
    join_by_link,
    open_panel,
    picture,
    posts,
    retype,
    says,
    tab_to,
)
from tests.support.pictures import png

pytestmark = [pytest.mark.slow, pytest.mark.extended, pytest.mark.usefixtures("engine")]


def _send(page: Browser) -> None:
    page.press("Enter", 13, modifiers=CTRL)


def test_a_bookmark_opens_the_page_of_a_browser_that_stays_signed_in(tmp_path: Path) -> None:
    with peers(tmp_path, "alice") as (alice,):
        alice.client.create_repo("notes")
        with browser(tmp_path / "profile") as page:
            enter(page, alice)
            open_panel(page, "browsers")
            page.click("#stay")
            page.until("document.getElementById('stays')")
            picture(page, "stays")
            address = alice.client.url
        alice.stop()
        alice.start("--set", f"api.listen={address.removeprefix('http://')}")
        with browser(tmp_path / "profile") as page:
            page.open(f"{address}/")
            page.until(f"{ROWS}.length === 1")
            open_panel(page, "browsers")
            page.until("document.querySelectorAll('#browsers > li').length === 1")
            page.click("#browsers .danger")
            page.click("dialog[open] .danger")
            page.until("document.getElementById('login')")
            page.open(f"{address}/?again")
            page.until("document.getElementById('login')")
            assert alice.client.list_browsers()["browsers"] == []


def test_six_files_with_their_words_are_one_message(tmp_path: Path, page: Browser) -> None:
    names = ["1.png", "2.png", "3.png", "4.png", "plan.pdf", "beds.csv"]
    for name in names:
        (tmp_path / name).write_bytes(png() if name.endswith("png") else name.encode() * 1000)
    with peers(tmp_path, "alice") as (alice,):
        alice.client.create_repo("notes")
        enter(page, alice)
        page.until("document.getElementById('attach')")
        page.choose_files("#attach", *(tmp_path / name for name in names))
        page.until("document.querySelectorAll('.chosen-files li').length === 6")
        picture(page, "six-chosen")
        page.fill("#text", "all of the garden")
        _send(page)
        page.until(says("all of the garden", f"{ROWS}[0]"))
        page.until(f"{ROWS}[0].querySelectorAll('.picture img').length === 4", 60)
        page.until(f"{ROWS}.length === 2")
        assert page.evaluate(f"{ROWS}[0].querySelectorAll('.doc').length") == 2
        page.until(says("6 files, ", f"{ROWS}[0]"))
        assert page.evaluate(f"{ROWS}[0].querySelector('.doc [data-size]').dataset.size") == "7.8 KiB"
        picture(page, "six-files")
        last = alice.client.show_timeline("main", before_position=2**53, limit=1)["items"][0]
        named = [file["name"] for one in last["attachments"] for file in one["files"]]
        assert named == names, "the post names its files: every reader shows one row"
        assert page.complaints() == []


def test_a_pdf_opens_in_a_tab_of_its_own(tmp_path: Path, page: Browser) -> None:
    with peers(tmp_path, "alice") as (alice,):
        alice.client.create_repo("notes")
        for name, content in (("plan.pdf", b"%PDF-1.4 plan"), ("liar.pdf", b"<script>alert(1)</script>")):
            alice.client.add_file("main", content, name=name)
        enter(page, alice)
        open_panel(page, "files")
        page.evaluate(
            "window.opened = []; const make = URL.createObjectURL;"
            "URL.createObjectURL = (blob) => { opened.push(blob.type); return make.call(URL, blob); };"
            "HTMLAnchorElement.prototype.click = function () { opened.push(this.target, this.rel); }; 0"
        )
        page.click("#files [aria-label='Look at plan.pdf']")
        picture(page, "viewer-pdf")
        page.click("#open-pdf")
        page.until("opened.join() === 'application/pdf,_blank,noopener'")
        page.press("ArrowRight", 39)
        page.until(says("liar.pdf", "document.getElementById('viewer-name')"))
        page.click("#open-pdf")
        page.until(says("cannot be shown", "document.querySelector('#viewer .big')"))
        assert page.evaluate("opened.length") == 3, "what calls itself a PDF is none"
        assert page.complaints() == []


def test_a_person_is_chosen_behind_an_at_and_a_reply_quotes_what_it_answers(
    tmp_path: Path, page: Browser, bobs: Browser
) -> None:
    with peers(tmp_path, "alice", "bob") as (alice, bob):
        alice.client.state_me("Ann Okafor", color=3)
        bob.client.state_me("Benjamin Theodor", color=9)
        _, branch = join(alice, bob)
        until_equal(alice, bob, branch)
        enter(page, alice)
        page.until(f"{ROWS}.length === 1")
        open_panel(page, "members")
        page.until(says("Benjamin", "document.getElementById('members')"))
        posts(page)
        page.fill("#text", "who has the key, ")
        page.evaluate("document.querySelector('#write [aria-label^=Mention]').click()")
        page.type("theo")
        page.until("document.querySelectorAll('#names [role=option]').length === 1")
        picture(page, "names")
        page.press("Enter", 13, "\r")
        page.until("document.getElementById('text').value.includes('@[Benjamin Theodor]')")
        _send(page)
        page.until(f"{ROWS}[0].querySelector('.mention')?.textContent === '@Benjamin Theodor'")

        enter(bobs, bob)
        bobs.until(says("who has the key", "document.getElementById('timeline')"), 60)
        assert bobs.evaluate(f"{ROWS}[0].querySelector('article').classList.contains('mine-mention')")
        bobs.evaluate(f"{ROWS}[0].querySelector('article').focus()")
        bobs.press("r", 82, "r")
        bobs.until("document.querySelector('#write .answering') && document.activeElement.id === 'text'")
        bobs.type("I have")
        _send(bobs)
        bobs.until(says("I have", f"{ROWS}[0].querySelector('.said')"))
        page.until(says("who has the key, @Benjamin Theodor", f"{ROWS}[0].querySelector('.relation')"), 60)
        assert page.evaluate(says("Ann Okafor", f"{ROWS}[0].querySelector('.relation')"))
        picture(page, "quotation")
        page.click(".relation a")
        page.until("document.getElementById('verdict')")
        assert page.complaints() == bobs.complaints() == []


@CHROMIUM_ALONE
def test_what_is_known_of_a_person_stands_beside_the_members(tmp_path: Path, page: Browser) -> None:
    with peers(tmp_path, "alice", "bob") as (alice, bob):
        alice.client.state_me("Ann Okafor", color=3)
        bob.client.state_me("Benjamin Theodor", color=9)
        _, branch = join(alice, bob)
        for number in range(3):
            bob.client.write_post(branch, f"mine {number}")
        alice.client.write_post(branch, "not his")
        until_equal(alice, bob, branch)
        enter(page, alice)
        by_command(page, "people")
        row = f"#members [href$='{bob.client.show_status()['user']}']"
        page.until(f"""document.querySelector("{row}")?.textContent === 'Benjamin Theodor'""")
        tab_to(page, row)
        page.press("Enter", 13, "\r")
        page.until("document.activeElement.id === 'details-title'")
        page.until(says("Benjamin Theodor", "document.activeElement"))
        page.until(says("invited by you", "document.getElementById('since')"))
        page.until(says("connected, has everything", "document.getElementById('computers')"), 60)
        page.until(says("invited by you", "document.querySelector('#members > li:last-child')"))
        page.until(says("founded it", "document.querySelector('#members > li')"))
        assert page.evaluate("document.getElementById('members') !== null"), (
            "the view it is opened from stays"
        )
        picture(page, "person")

        retype(page, "#petname input", "Ben")
        page.until("document.activeElement.matches('#petname input')")
        page.until(says("Calls itself Benjamin Theodor", "document.getElementById('person')"))
        page.until("document.getElementById('details-title').textContent === 'Ben'")
        tab_to(page, "#person .danger")
        page.press("Escape", 27)
        page.until(f"""document.activeElement.matches("{row}")""")
        assert page.evaluate("document.getElementById('person')") is None
        by_command(page, "ben")
        page.until("document.getElementById('person')")
        page.click("#person .danger")
        page.click("dialog[open] .danger")
        page.until("document.querySelectorAll('#members > li').length === 1")
        page.until(says("Not a member", "document.getElementById('person')"))
        page.click("#to-posts-by")
        page.until("document.querySelectorAll('#posts-by > li').length === 3")
        assert page.evaluate("document.querySelector('#posts-by .said').textContent") == "mine 2"
        assert page.evaluate("document.getElementById('details-title').textContent").startswith(
            "Posts by Ben"
        )
        picture(page, "posts-by")
        page.evaluate("history.back()")
        page.until("document.getElementById('person')")
        page.until(says("Ann Okafor excluded", "document.getElementById('person')"))
        open_panel(page, "about")
        page.until(says("not a member", "document.getElementById('holders')"), 60)
        open_panel(page, "settings")
        page.until(says("Connected with Ben", "document.getElementById('company')"))

        bobs = bob.client.create_repo("bobs")["repo"]
        link = bob.client.create_invitation(bobs, permission="write", expires_seconds=3600)["invitation"]
        alice.client.join_repo(link)
        bob.client.join_as_device(alice.client.invite_device()["link"])
        until(lambda: permissions_of(alice).get("bobs") == "write", "alice may write in what bob owns")
        open_panel(page, "devices")
        page.until("document.querySelectorAll('#devices > li').length === 2", 60)
        of_devices = [one["repo"] for one in alice.client.list_repos()["repos"] if one["of_devices"]]
        assert len(of_devices) == 1
        assert not page.evaluate(
            "[...document.querySelectorAll('.repo bdi')].some((one) => one.textContent === 'devices')"
        )
        page.click("#devices .danger")
        page.click("dialog[open] .danger")
        page.until("document.querySelectorAll('#devices > li').length === 1", 60)
        until(lambda: bool(bob.client.list_devices()["removed_by"]), "bob's computer knows", 60)
        enter(page, bob)
        open_panel(page, "devices")
        page.until(says("removed from the devices of", "document.getElementById('device-removed')"))
        assert not page.evaluate(says("your only device"))

        bob.client.join_as_device(alice.client.invite_device()["link"])
        alice.client.promote_device(bob.client.show_status()["user"])
        enter(page, alice)
        open_panel(page, "devices")
        page.until(says("Your place has passed to", "document.getElementById('device-moved')"))
        assert not page.evaluate(says("your only device"))
        assert not page.evaluate("!!document.getElementById('add-device')"), "it adds none any more"
        page.until(says("passed on", "document.getElementById('repos')"))
        picture(page, "device-moved")
        assert not page.evaluate(says("to come from"))
        assert page.complaints() == []


@CHROMIUM_ALONE
def test_an_offer_is_read_before_it_is_merged(tmp_path: Path, page: Browser) -> None:
    with peers(tmp_path, "alice", "bob") as (alice, bob):
        bob.client.state_me("Benjamin Theodor Maximilian von Hohenstein-Wiesenthal")
        repo, branch = join(alice, bob)
        alice.client.write_post(branch, "the plan")
        alice.client.edit_set(branch, add=["peas"])
        until_equal(alice, bob, branch)
        fork = bob.client.fork_repo(repo, name="ideas")["branches"][0]["branch"]
        bob.client.write_post(fork, "beans along the wall")
        bob.client.edit_set(fork, add=["pumpkin"], remove=["peas"])
        bob.client.make_offer(branch, source=fork, note="two ideas", pulls=True)
        enter(page, alice)
        page.evaluate(f"location.hash = '#/{branch}/inbox'")
        page.until(says("two ideas", "document.getElementById('offers')"), 60)
        page.click("#offers .look")
        page.until(says("beans along the wall", "document.querySelector('#offers .look-at')"), 60)
        changed = (
            "[...document.querySelectorAll('#offers .diff > div')].map((one) => one.lastChild.textContent)"
        )
        assert page.evaluate(changed) == ["removed: peas", "added: pumpkin"]
        page.show(*PHONE, "light")
        box = "document.querySelector('#offers .look-at')"
        assert page.evaluate(f"{box}.scrollWidth <= {box}.clientWidth"), "a long name is cut"
        picture(page, "offer-read")
        assert not page.evaluate("document.querySelector('#offers .merge')"), "first somebody accepts"
        page.click("#offers li > .grow > .buttons .main")
        page.click("#offers .merge")
        page.until(says("Merged", "document.querySelector('.notices')"), 60)
        posts(page)
        page.until(says("beans along the wall", "document.getElementById('timeline')"))
        assert page.complaints() == []


@CHROMIUM_ALONE
def test_a_comment_is_read_by_an_admin_before_others_see_it(tmp_path: Path, page: Browser) -> None:
    with peers(tmp_path, "alice", "bob") as (alice, bob):
        bob.client.state_me("Ben", color=8)
        _, branch = join(alice, bob)
        until_equal(alice, bob, branch)
        for said in ("a good remark", "an unkind one"):
            bob.client.write_comment(branch, said)
        enter(page, alice)
        page.evaluate(f"location.hash = '#/{branch}/inbox'")
        for said in ("a good remark", "an unkind one"):
            page.until(says(said, "document.getElementById('offers')"), 60)
        picture(page, "comments-to-answer")
        offer = "[...document.querySelectorAll('#offers > li')].find((one) => one.textContent.includes('%s'))"
        page.evaluate(f"{offer % 'a good remark'}.querySelector('.main').click()")
        page.until(says("a good remark", "document.getElementById('comments')"), 60)
        page.evaluate(f"[...{offer % 'an unkind one'}.querySelectorAll('button')].at(-1).click()")
        page.until(says("refused", offer % "an unkind one"))
        until(lambda: len(bob.client.list_comments(branch)["items"]) == 1, "bob sees one")
        assert page.complaints() == []


def test_who_lost_a_computer_comes_back_by_the_words_on_the_page_alone(tmp_path: Path, page: Browser) -> None:
    with peers(tmp_path, "alice", "bob", "again") as (alice, bob, again):
        alice.client.state_me("Ann", color=3)
        repo, branch = join(bob, alice)
        until_equal(alice, bob, branch)
        alice.client.write_post(branch, "written before")
        until_equal(alice, bob, branch)
        user = alice.client.show_status()["user"]
        enter(page, alice)
        open_panel(page, "backup")
        page.evaluate("document.querySelector('details:has(> #show-words)').open = true")
        page.click("#show-words > button")
        page.until("document.querySelectorAll('#words > li').length === 24")
        words = page.evaluate("[...document.querySelectorAll('#words > li')].map((one) => one.textContent)")
        page.evaluate("document.querySelector('#restore').open = true")
        page.until(says("has been used", "document.getElementById('restore')"))
        alice.stop()
        run_ravel(alice, "uninstall", "--yes", "home")
        assert not alice.home.exists()

        again.client.state_me("Pressed too fast")
        enter(page, again)
        open_panel(page, "backup", "restore")
        page.until("document.getElementById('recover')")
        page.fill("#recover textarea", " ".join([*words[1:], words[0]]))
        page.click("#recover > button")
        page.click("dialog[open] .danger")
        page.until(says("checksum", "document.getElementById('problem')"))
        picture(page, "recover")
        page.fill("#recover textarea", " ".join(words))
        page.click("#recover > button")
        page.click("dialog[open] .danger")
        page.until("document.getElementById('recovered')", 60)
        picture(page, "recovered")
        assert again.client.show_status()["user"] == user
        assert again.client.show_me()["name"] is None
        link = bob.client.create_invitation(repo, permission="write", expires_seconds=3600)["invitation"]
        page.evaluate("location.hash = ''")
        # Asked neither for a name nor for words.
        page.until("document.querySelector('#start[data-step=begin]')")
        page.click("#start .way")
        join_by_link(page, link)
        page.until(says("written before", "document.getElementById('timeline')"), 60)
        page.until("document.getElementById('text')", 60)
        page.fill("#text", "written after")
        _send(page)
        page.until(says("written after", f"{ROWS}[0]"))
        until_equal(bob, again, branch)
        until(lambda: again.client.show_me()["name"] == "Ann", "the name comes with the repo")
        run_ravel(bob, "feed", "check", branch)
        picture(page, "back-again")


def test_who_kept_a_key_file_comes_back_by_it_on_the_page(tmp_path: Path, page: Browser) -> None:
    sealed, passphrase = tmp_path / "ann.key", tmp_path / "passphrase"
    passphrase.write_text("four random words")
    passphrase.chmod(0o600)
    with peers(tmp_path, "alice", "again") as (alice, again):
        user = alice.client.show_status()["user"]
        run_ravel(alice, "key", "export", str(sealed), "--new-passphrase-file", str(passphrase))
        alice.stop()

        enter(page, again)
        open_panel(page, "backup", "restore")
        page.until("document.getElementById('recover-file')")
        page.evaluate("document.getElementById('recover-file').closest('details').open = true")
        page.choose_files("#recover-file [name=file]", sealed)
        for typed in ("", "three random words"):
            page.fill("#recover-file [name=filePassphrase]", typed)
            page.click("#recover-file > button")
            page.click("dialog[open] .danger")
            page.until(says("passphrase", "document.getElementById('problem')"))
            picture(page, f"recover-by-file-{'wrong' if typed else 'none'}")
            page.click("#problem button")
        assert again.client.show_status()["user"] != user
        page.fill("#recover-file [name=filePassphrase]", "four random words")
        page.click("#recover-file > button")
        page.click("dialog[open] .danger")
        page.until("document.getElementById('recovered')", 60)
        picture(page, "recovered-by-file")
        assert again.client.show_status()["user"] == user


@CHROMIUM_ALONE
def test_a_second_computer_with_ones_key_is_said(tmp_path: Path, page: Browser) -> None:
    with peers(tmp_path, "alice", "bob") as (alice, bob):
        _, branch = join(bob, alice)
        until_equal(alice, bob, branch)
        enter(page, alice)
        alice.client.write_post(branch, "from the first")
        until_equal(alice, bob, branch)
        run_ravel(alice, "backup", str(tmp_path / "backup"))
        copy = Peer(tmp_path / "copy")
        shutil.rmtree(copy.home)
        run_ravel(copy, "restore", str(tmp_path / "backup"))
        try:
            copy.start()
            page.until("document.querySelector('.amiss')", 60)
            page.until(says("Another computer uses your key", "document.querySelector('.amiss')"))
            picture(page, "second-key")
            until(lambda: "uses" in run_ravel(alice, "status").stdout, "the terminal says so, too")
        finally:
            copy.close()


@CHROMIUM_ALONE
def test_a_store_over_its_bound_is_said_and_not_that_all_is_well(tmp_path: Path, page: Browser) -> None:
    with peers(tmp_path, "alice") as (alice,):
        alice.client.create_repo("notes")
        (tmp_path / "large").write_bytes(random.Random(1).randbytes(2 << 20))
        run_ravel(alice, "file", "add", "main", str(tmp_path / "large"))
        run_ravel(alice, "config", "set", "storage.size_max", "1")
        alice.stop()
        alice.start()
        enter(page, alice)
        page.until(says("What is left is yours", "document.querySelector('.amiss')"), 60)
        page.until(says("needs your attention", "document.getElementById('live')"))
        open_panel(page, "storage")
        page.until(says("What is left is yours", "document.getElementById('bound-state')"))


@CHROMIUM_ALONE
def test_a_full_disk_is_said_and_what_was_typed_stays(tmp_path: Path, page: Browser) -> None:
    with peers(tmp_path, "alice") as (alice,):
        alice.client.create_repo("notes")
        enter(page, alice)
        page.until(f"{ROWS}.length === 1")
        soft, hard = resource.prlimit(alice.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(alice.pid, resource.RLIMIT_FSIZE, (1, hard))
        page.fill("#text", "said in vain")
        _send(page)
        page.until("document.getElementById('problem').textContent.trim().length > 10")
        assert page.evaluate("document.getElementById('text').value") == "said in vain"
        page.until("document.querySelector('.amiss')", 60)
        picture(page, "full-disk")
        resource.prlimit(alice.pid, resource.RLIMIT_FSIZE, (soft, hard))
        page.until("!document.querySelector('.amiss')", 60)
        page.evaluate("document.getElementById('text').focus()")
        _send(page)
        page.until(says("said in vain", f"{ROWS}[0]"), 60)
