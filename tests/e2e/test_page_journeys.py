"""What people do on the page, from the first start on, without a command: each journey in a real Chromium.

With `RAVEL_SCREENSHOTS` naming a folder, each journey leaves pictures there: light, dark, and on a phone.
"""

import gzip
import json
from pathlib import Path

import pytest
from pycrdt import Doc, Text

from tests.e2e.browser import CHROMIUM_ALONE, Browser
from tests.e2e.cluster import join, peers, run_ravel, until, until_equal
from tests.e2e.page_steps import (
    PHONE,
    ROWS,
    by_command,
    enter,
    join_by_link,
    open_panel,
    open_person,
    picture,
    posts,
    press_on,
    press_with,
    says,
    submit,
)
from tests.support.pictures import png

pytestmark = [
    pytest.mark.slow,
    pytest.mark.extended,
    pytest.mark.usefixtures("engine"),
]


def test_from_the_first_start_to_the_first_post_by_keyboard_alone(tmp_path: Path, page: Browser) -> None:
    with peers(tmp_path, "alice") as (alice,):
        enter(page, alice)
        page.until("document.getElementById('empty')")
        picture(page, "empty")
        press_with(page, "k", 75, 2)
        page.until("document.activeElement.id === 'command'")
        page.type("new repo")
        page.until("document.querySelectorAll('#found li').length === 1")
        picture(page, "palette")
        page.press("Enter", 13, "\r")
        page.until("document.activeElement.closest('#new-repo')")
        page.type("notes")
        page.press("Enter", 13, "\r")
        page.until(f"{ROWS}.length === 1")
        press_with(page, "k", 75, 2)
        page.until("document.activeElement.id === 'command'")
        page.type("write a")
        page.press("Enter", 13, "\r")
        page.until("document.activeElement.id === 'text'")
        page.type("**Hello**, [world](https://example.org)\n\n- one\n- two")
        press_with(page, "Enter", 13, 2)
        page.until(f"{ROWS}.length === 2")
        assert page.evaluate(f"{ROWS}[0].querySelector('.said strong').textContent") == "Hello"
        assert page.evaluate(f"{ROWS}[0].querySelectorAll('.said li').length") == 2
        link = f"{ROWS}[0].querySelector('.said a')"
        assert page.evaluate(f"[{link}.href, {link}.rel]") == [
            "https://example.org/",
            "noopener noreferrer nofollow",
        ]
        page.until("document.getElementById('text').value === ''")
        assert page.evaluate("document.activeElement.id") == "text"
        picture(page, "first-post")
        page.evaluate("document.querySelector('.skip').focus()")
        page.press("Enter", 13, "\r")
        page.until("document.activeElement.tagName === 'ARTICLE'")
        page.press("Enter", 13, "\r")
        page.until("document.getElementById('verdict')?.textContent === 'Counts'")
        page.press("Escape", 27)
        page.until("!document.getElementById('verdict')")
        page.until("document.activeElement.tagName === 'ARTICLE'")
        assert page.complaints() == []


def test_two_nodes_invite_join_and_exclude_by_page_alone(
    tmp_path: Path, page: Browser, bobs: Browser
) -> None:
    with peers(tmp_path, "alice", "bob") as (alice, bob):
        enter(page, alice)
        open_panel(page, "new")
        submit(page, "#new-repo", name="shared")
        page.until(f"{ROWS}.length === 1")
        page.click(".empty .main")
        page.until("document.getElementById('invite-dialog')")
        page.press("Escape", 27)
        page.until("!document.getElementById('invite-dialog')")
        page.click("#invite-somebody")
        page.click("#invite > button")
        page.until("document.getElementById('link')?.value.startsWith('ravel:invite:')")
        picture(page, "invitation")
        page.until(says("One person can join by this link", "document.getElementById('invitation')"))
        link = page.evaluate("document.getElementById('link').value")

        enter(bobs, bob)
        open_panel(bobs, "join")
        submit(bobs, "#join-repo", link="no link")
        bobs.until("document.getElementById('problem').textContent.trim().length > 10")
        picture(bobs, "bad-link")
        bobs.fill("#join-repo [name=link]", link)
        assert bobs.evaluate("document.querySelector('#join-repo [name=follow]')") is None, (
            "not before a look"
        )
        bobs.until(says("Join shared", "document.querySelector('#join-repo > button')"))
        bobs.until("document.querySelector('#join-repo [name=follow]')")
        assert bobs.evaluate(says("You are a member at once", "document.getElementById('link-holds')"))
        assert bob.client.list_repos()["repos"] == [], "nothing was done so far"
        picture(bobs, "link-holds")
        bobs.evaluate("document.querySelector('#join-repo [name=link]').focus()")
        bobs.press("Enter", 13, "\r")
        bobs.until(f"{ROWS}.length === 1")
        bobs.until("document.getElementById('write')")
        bobs.until(says("You are a member of shared now"))
        assert not bobs.evaluate(says("Joining shared"))
        page.until(says("joined. The link gives nothing any more", "document.getElementById('joined-by-it')"))
        page.press("Escape", 27)
        page.until("!document.getElementById('invite-dialog')")
        bobs.fill("#text", "hello from bob")
        bobs.click("#write .main")
        open_panel(bobs, "members")  # before it is answered
        posts(page)
        page.until(f"{says('hello from bob', ROWS + '[0]')}")
        open_panel(page, "members")

        open_panel(bobs, "people")
        submit(bobs, "#me", name="Bob")
        page.until(says("Bob", "document.getElementById('members')"))
        open_person(page, "Bob")
        page.click("#person .danger")
        page.until("document.querySelector('dialog[open]')")
        picture(page, "question")
        page.click("dialog .danger")
        page.until("document.getElementById('members').children.length === 1")
        bobs.until(says("no member any more", "document.getElementById('repos')"))
        open_panel(bobs, "about")
        bobs.until("document.querySelector('#may-not a[href$=about]')")
        assert len(bobs.evaluate("document.getElementById('standing').textContent")) > 20, (
            "a sentence says why"
        )
        picture(bobs, "removed")
        assert page.complaints() == []


@CHROMIUM_ALONE
def test_somebody_asks_to_be_let_in_and_is(tmp_path: Path, page: Browser, bobs: Browser) -> None:
    with peers(tmp_path, "alice", "bob") as (alice, bob):
        alice.client.create_repo("shared")
        bob.client.state_me("Bob", color=2)
        enter(page, alice)
        page.until(f"{ROWS}.length === 1")
        open_panel(page, "members")
        page.click("#invite-somebody")
        page.click("#invite-dialog [value=ask]")
        page.click("#invite > button")
        page.until("document.getElementById('asking')?.value.startsWith('ravel:ask:')")
        picture(page, "ask-link")
        enter(bobs, bob)
        open_panel(bobs, "join")
        link = page.evaluate("document.getElementById('asking').value")
        page.click("#invite-dialog footer button")
        page.until("document.querySelectorAll('#open-links li').length === 1")
        join_by_link(bobs, link)
        bobs.until("document.querySelector('#asked .code')", 60)
        page.until("document.querySelector('#requests .code')", 60)
        codes = [one.evaluate("document.querySelector('.code').textContent") for one in (page, bobs)]
        assert codes[0] == codes[1]
        assert len(codes[0].split()) == 6
        page.until(says("1 person asks to be let in", "document.getElementById('repos')"))
        picture(page, "request")
        picture(bobs, "asked")
        page.click("#requests .main")
        page.until("document.getElementById('members').children.length === 2", 60)
        page.until("!document.getElementById('requests')")
        page.until("document.querySelectorAll('#open-links li').length === 1")  # it is for others, too
        bobs.until("document.querySelector('[data-branch]')", 60)
        bobs.click("[data-branch]")
        bobs.until("document.getElementById('write')", 60)
        bobs.until(f"{ROWS}.length === 1")
        assert page.complaints() == bobs.complaints() == []


def test_files_are_attached_shown_and_saved(tmp_path: Path, page: Browser) -> None:
    photo = tmp_path / "picture.png"
    photo.write_bytes(png())
    liar = tmp_path / "liar.png"
    liar.write_bytes(b"<svg onload=alert(1)>")
    saved = tmp_path / "saved"
    saved.mkdir()
    with peers(tmp_path, "alice") as (alice,):
        alice.client.create_repo("notes")
        enter(page, alice)
        page.save_into(saved)
        page.until("document.getElementById('attach')")
        page.choose_files("#attach", photo, liar)
        page.until("document.querySelectorAll('.chosen-files li').length === 2")
        page.fill("#text", "see the picture")
        page.click("#write .main")
        page.until(f"{ROWS}.length === 2")
        page.until("document.querySelector('.picture img')?.naturalWidth === 64")
        assert page.evaluate("document.querySelectorAll('.picture img').length") == 1, (
            "the liar is no picture"
        )
        page.click("article .picture[aria-label='Look at picture.png']")
        page.until("document.querySelector('#viewer .big img')?.naturalWidth === 64")
        picture(page, "viewer")
        page.press("ArrowRight", 39)
        page.until(says("cannot be shown", "document.querySelector('#viewer .big')"))
        page.press("ArrowLeft", 37)
        page.click("#save-viewed")
        kept = saved / "picture.png"
        until(lambda: kept.exists() and kept.read_bytes() == png(), "it is saved")
        page.press("Escape", 27)
        page.until("!document.getElementById('viewer')")
        picture(page, "files")
        open_panel(page, "files")
        page.until("document.querySelectorAll('#files > tr').length === 2")
        page.until(says("Files 2", "document.querySelector('.tabs')"))
        page.until(says("Pictures 2", "document.querySelector('.tools')"))
        page.until("document.querySelector('#latest .picture img')?.naturalWidth === 64")
        picture(page, "files-panel")
        page.click("#as-grid")
        page.until("document.querySelector('#files .picture img')?.naturalWidth === 64")
        picture(page, "files-grid")
        posts(page)
        page.evaluate(
            """(() => {
              const data = new DataTransfer();
              data.items.add(new File(["dropped"], "dropped.txt"));
              const event = new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true });
              document.getElementById("write").dispatchEvent(event);
              const pasted = new DataTransfer();
              pasted.items.add(new File(["pasted"], "pasted.txt"));
              const paste = new Event("paste", { bubbles: true, cancelable: true });
              Object.defineProperty(paste, "clipboardData", { value: pasted }); // Firefox lets no script give it files
              document.getElementById("text").dispatchEvent(paste);
            })()"""
        )
        page.until("document.querySelectorAll('.chosen-files li').length === 2")
        page.click("#write .main")
        page.until("document.querySelectorAll('.chosen-files li').length === 0")
        open_panel(page, "files")
        page.until("document.querySelectorAll('#files > *').length === 4")
        assert page.evaluate(says("pasted.txt", "document.querySelector('#files > *')")), "the latest first"
        page.click(".tools .chip:nth-of-type(2)")
        page.until("document.querySelectorAll('#files > *').length === 2")
        page.click(".tools .chip:nth-of-type(1)")
        page.fill("#find-file", "PASTED")
        page.until(says("pasted.txt", "document.querySelector('#files > *:only-child')"))
        picture(page, "files-found")
        page.fill("#find-file", "nothing of this name")
        page.until(says("No file is called so"))
        page.fill("#find-file", "")
        page.click(".tools .icon:has(+ #as-grid)")
        alice.client.add_file("notes:main", png(), name="copy.png")
        page.until("document.querySelectorAll('#files > tr').length === 5")
        page.click("#files [aria-label='Remove copy.png']")
        page.click("dialog[open] .danger")
        page.until("document.querySelectorAll('#files > tr').length === 4")
        page.until(says("picture.png", "document.getElementById('files')"))
        assert page.complaints() == []


@CHROMIUM_ALONE
def test_of_many_files_the_latest_stand_first(tmp_path: Path, page: Browser) -> None:
    with peers(tmp_path, "alice") as (alice,):
        alice.client.create_repo("notes")
        for first in (0, 600):
            folder = tmp_path / str(first)
            folder.mkdir()
            for number in range(first, first + 600):
                (folder / f"{number:04}.txt").write_text(str(number))
            run_ravel(alice, "file", "add", "main", *map(str, sorted(folder.iterdir())))
        enter(page, alice)
        open_panel(page, "files")
        page.until(says("1199.txt", "document.querySelector('#files > tr')"))
        page.until(says("1 to 100 of 1200"))
        page.until(says("Files 100+", "document.querySelector('.tabs')"))
        page.evaluate("[...document.querySelectorAll('.panel .buttons button')].at(-1).click()")
        page.until(says("1099.txt", "document.querySelector('#files > tr')"))
        page.fill("#find-file", "0007")
        page.until(says("0007.txt", "document.querySelector('#files > tr:only-child')"))
        page.fill("#find-file", "")
        alice.client.add_file("main", b"new", name="new.txt")
        page.until(says("new.txt", "document.querySelector('#files > tr')"))
        assert page.complaints() == []


def _choose_age(page: Browser, days: int) -> None:
    field = "document.getElementById('kept-age')"
    page.until(field)
    page.evaluate(
        f"{field}.value = '{days}'; {field}.dispatchEvent(new Event('change', {{ bubbles: true }}))"
    )


@CHROMIUM_ALONE
def test_branches_are_forked_merged_archived_and_tagged(tmp_path: Path, page: Browser) -> None:
    with peers(tmp_path, "alice") as (alice,):
        alice.client.create_repo("notes")
        alice.client.write_post("main", "first")
        enter(page, alice)
        main = page.evaluate("document.querySelector('[data-branch]').dataset.branch")
        open_panel(page, "branches")
        submit(page, "#fork-branch", name="draft")
        page.until("document.getElementById('branch-name').textContent.includes('draft')")
        page.until("document.getElementById('text')")
        page.fill("#text", "written apart")
        page.click("#write .main")
        page.until(f"{says('written apart', ROWS + '[0]')}")
        page.evaluate(f"location.hash = '#/{main}/branches'")
        page.until("document.getElementById('merge-branch')")
        page.click("#merge-branch > button")
        page.until(f"[...{ROWS}].some((row) => row.textContent.includes('written apart'))")
        page.until(says("Merged", "document.querySelector('.notices')"))
        picture(page, "branches")
        lines = [{"id": "1", "parents": []}, {"id": "2", "parents": ["1"]}]
        told = [
            {**one, "author": "Kim", "time": 1_700_000_000, "text": f"told long ago {one['id']}"}
            for one in lines
        ]
        packed = tmp_path / "old.jsonl.gz"
        packed.write_bytes(gzip.compress("\n".join(map(json.dumps, told)).encode()))
        page.evaluate("document.getElementById('import').parentElement.open = true")
        page.choose_files("#import [name=file]", packed)
        page.click("#import > button")
        page.until(says("2 posts imported", "document.querySelector('.notices')"))
        page.until(f"[...{ROWS}].some((row) => row.textContent.includes('told long ago 2'))")
        assert alice.client.list_imported("main", source="old.jsonl")["items"] == ["1", "2"]
        packed.with_suffix("").write_text("{}\n")
        page.choose_files("#import [name=file]", packed.with_suffix(""))
        page.click("#import > button")
        page.until(says("Line 1 of old.jsonl is no post", "document.getElementById('problem')"))
        picture(page, "import")
        assert page.evaluate(says("Line 1", "document.getElementById('problem')")), (
            "it stays until it is seen"
        )
        _choose_age(page, 90)
        page.until(
            says("Posts and files of the last 90 days are kept here", "document.querySelector('.notices')")
        )
        assert alice.client.show_keeping("notes")["last_days"] == 90
        page.click(".notices p:last-child button")
        page.until("document.getElementById('kept-age').value === ''")
        page.evaluate(  # in a store of today nothing is old
            "import('/web/state/session.js').then(({ api }) => {"
            "  const [show, old] = [api.showKeeping.bind(api), { older_here: 3, keepers: 0 }];"
            "  const value = async (of) => ({ ...(await show(of)), ...(of.last_days && old) });"
            "  Object.defineProperty(api, 'showKeeping', { value });"
            "})"
        )
        _choose_age(page, 30)
        page.until(
            says("3 older posts and files of others are here", "document.querySelector('dialog[open]')")
        )
        picture(page, "give-up")
        page.press("Escape", 27)
        page.until("document.getElementById('kept-age').value === ''")
        assert alice.client.show_keeping("notes")["last_days"] is None, "one is asked first"
        page.click("#branches li:nth-child(2) button:last-of-type")
        page.until("document.querySelectorAll('[data-branch]').length === 1")
        page.click(".notices p:last-child button")
        page.until("document.querySelectorAll('[data-branch]').length === 2")
        page.click("#branches li:nth-child(2) button")
        page.until(says("draft is the main branch now", "document.querySelector('.notices')"))
        page.until(says("draft", "document.querySelector('#branches li')"))
        page.click(".notices p:last-child button")
        page.until(says("main", "document.querySelector('#branches li')"))
        page.evaluate(f"{ROWS}[0].querySelector('.when').click()")
        page.until("document.getElementById('tag')")
        page.evaluate("document.getElementById('tag').parentElement.open = true")
        submit(page, "#tag", name="v1")
        page.until(says("v1", "document.querySelector('.notices')"))
        picture(page, "commit")
        assert [one["name"] for one in alice.client.list_tags("notes")["tags"]] == ["v1"]
        assert page.complaints() == []


def test_documents_are_edited_as_tables(tmp_path: Path, page: Browser) -> None:
    with peers(tmp_path, "alice") as (alice,):
        alice.client.create_repo("notes")
        enter(page, alice)
        open_panel(page, "set")
        for item in ("milk", "bread"):
            submit(page, "#add-item", item=item)
            page.until(says(item, "document.getElementById('items')"))
        page.click("#items button")
        page.until("document.querySelectorAll('#items > li').length === 1")
        by_command(page, "undo")
        page.until("document.querySelectorAll('#items > li').length === 2")
        picture(page, "set")
        open_panel(page, "dict")
        submit(page, "#add-entry", key="colour", value="green")
        page.until("document.querySelector('#entries .cell')?.value === 'green'")
        page.fill("#entries .cell", "blue")
        page.press("Enter", 13, "\r")
        until(
            lambda: alice.client.show_entry("main", key="colour")["value"] == "blue",
            "the value is saved",
        )
        picture(page, "dict")
        open_panel(page, "text")
        page.until("document.getElementById('text-editor')?.shadowRoot")
        picture(page, "text")
        assert page.complaints() == []


@CHROMIUM_ALONE
def test_lists_and_tables_are_made_named_and_removed(tmp_path: Path, page: Browser) -> None:
    with peers(tmp_path, "alice") as (alice,):
        alice.client.create_repo("notes")
        alice.client.edit_set("main", name="Guests", add=["Noor"])
        alice.client.document("main", "board").put("title", "Tea")  # of an app: the page has no view of it
        enter(page, alice)
        open_panel(page, "set")
        page.until("document.querySelectorAll('#notes a').length === 4")
        page.click("#new-note")
        picture(page, "new-note")
        submit(page, "#make-note", title="Tools in the shed", first="hose")
        page.until(says("hose", "document.getElementById('items')"))
        assert page.evaluate("decodeURIComponent(location.hash)").endswith("/set/Tools in the shed")
        submit(page, "#add-item", item="rake")
        page.until(says("rake", "document.getElementById('items')"))
        shown = alice.client.show_set("main", name="Tools in the shed")
        assert [one["item"] for one in shown["items"]] == ["hose", "rake"]
        page.until("document.querySelector('#notes [aria-current] small')?.textContent === '2'")
        open_panel(page, "dict")
        page.until(says("Notes 2", "document.querySelector('.tabs')"))
        page.evaluate("history.back()")
        page.until(says("rake", "document.getElementById('items')"))
        picture(page, "named-set")
        page.click(".more summary")
        submit(page, "#rename-note", title="Shed")
        page.until(says("Shed", "document.querySelector('#notes [aria-current]')"))
        page.click("#new-note")
        page.click("#note-dialog [value=dict]")
        submit(page, "#make-note", title="Phones", first="Ben", value="555")
        page.until("document.querySelector('#entries .cell')?.value === '555'")
        picture(page, "named-dict")
        page.click(".more summary")
        page.click("#remove-note")
        page.until("document.querySelector('dialog[open]')")
        page.click("dialog .danger")
        page.until("document.querySelectorAll('#notes a').length === 5")
        assert not page.evaluate(says("board", "document.getElementById('notes')"))
        listed = alice.client.list_documents("main")["documents"]
        assert [(one["kind"], one["name"], one["title"]) for one in listed if one["kind"] != "json"] == [
            ("set", "Guests", ""),
            ("set", "Tools in the shed", "Shed"),
        ]
        assert page.complaints() == []


def test_posts_are_answered_edited_deleted_and_hidden(tmp_path: Path, page: Browser) -> None:
    with peers(tmp_path, "alice", "bob") as (alice, bob):
        alice.client.state_me("Ann Lee", color=3)
        _, branch = join(alice, bob)
        first = bob.client.write_post(branch, "lunch?")["commit"]
        until_equal(alice, bob, branch)
        enter(page, alice)
        row = f"document.querySelector(\"[data-commit='{first}']\")"
        page.until(row)

        def act(label: str, where: str = row) -> None:
            page.evaluate(f"{where}.querySelector('.does [aria-label=\"{label}\"]').click()")

        def do(label: str, where: str = row) -> None:
            act("About this post", where)
            page.until("document.querySelector('.post-actions button')")
            found = "[...document.querySelectorAll('.post-actions button')]"
            page.evaluate(f"{found}.find((one) => one.textContent === '{label}').click()")

        act("Reply")
        page.until("document.querySelector('#write .answering') && document.activeElement.id === 'text'")
        page.type("yes, says @[Ann Lee]")
        press_with(page, "Enter", 13, 2)
        page.until(f"{ROWS}.length === 3")
        mine = f"{ROWS}[0]"
        page.until(says("answers ", f"{mine}.querySelector('.relation')"))
        page.until(f"{mine}.querySelector('.mention')?.textContent === '@Ann Lee'")
        act("Edit", mine)
        page.until("document.activeElement.value === 'yes, says @[Ann Lee]'")
        page.evaluate("document.activeElement.select()")
        page.type("no")
        press_with(page, "Enter", 13, 2)
        page.until(f"{ROWS}.length === 4")
        page.until(
            f"[...{ROWS}].some((row) => row.textContent.includes('(edited)') && row.textContent.includes('no'))"
        )
        bob.client.edit_post(first, "supper?")
        page.until(says("supper?", row), 60)
        do("Hide")
        page.until(says("Hidden by Ann Lee", row))
        picture(page, "posts")
        page.click(".notices p:last-child button")
        page.until(says("supper?", row))
        page.evaluate(f"{row}.querySelector('.when').click()")
        page.until("document.querySelectorAll('.panel details').length >= 2")
        page.evaluate("document.querySelectorAll('.panel details').forEach((one) => { one.open = true })")
        page.until("document.querySelectorAll('#versions > li').length === 2")
        page.click(".panel [href*='/thread/']")
        page.until("document.querySelectorAll('#thread > li').length === 2")
        picture(page, "thread")
        page.click("#answer-thread")
        page.until("document.querySelector('#write .answering')")
        page.click("#write .answering button")
        reply = f"[...{ROWS}].find((row) => row.textContent.includes('(edited)') && row.textContent.includes('no'))"
        do("Delete", reply)
        page.click("dialog[open] .danger")
        page.until(f"[...{ROWS}].some((row) => row.textContent.includes('Deleted by its author'))")
        assert page.complaints() == []


@CHROMIUM_ALONE
def test_a_void_commit_is_explained_and_made_to_count_by_keys_alone(tmp_path: Path, page: Browser) -> None:
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
        bob.client.write_post(branch, "unseen by alice")
        until_equal(bob, carol, branch)
        alice.client.remove_member("shared", bob.client.show_status()["user"])
        carol.client.add_peer(alice.listen, node)
        enter(page, alice)
        struck = "document.querySelectorAll('#timeline > li.void').length"
        page.until(f"{struck} === 1")
        by_command(page, "shared : main")
        page.until("document.activeElement.tagName === 'ARTICLE'")
        while not page.evaluate("document.activeElement.closest('li').matches('.void, :first-child')"):
            page.press("ArrowUp", 38)
        page.press("Enter", 13, "\r")
        page.until("document.getElementById('verdict')?.textContent === 'Does not count'")
        picture(page, "void")
        press_on(page, "#adopt")
        page.until("document.getElementById('verdict').textContent === 'Counts'")
        page.until(f"{struck} === 0")
        page.press("Escape", 27)
        page.until("document.activeElement.tagName === 'ARTICLE'")
        assert page.complaints() == []


def test_a_long_timeline_is_loaded_by_windows_in_both_directions(tmp_path: Path, page: Browser) -> None:
    count, day = 5000, 86_400
    start = 1_700_000_000
    with peers(tmp_path, "alice") as (alice,):
        alice.client.create_repo("notes")
        for begin in range(0, count, 500):
            items = [
                {
                    "id": str(number),
                    "parents": [str(number - 1)] if number else [],
                    "author": "a",
                    "time": start + number * day // 10,
                    "text": f"item {number}",
                }
                for number in range(begin, begin + 500)
            ]
            alice.client.import_commits("main", items, "test")
        enter(page, alice)
        page.until(f"{ROWS}.length >= 200")
        assert page.evaluate(f"{ROWS}.length") < 500, "not all at once"
        page.evaluate("document.getElementById('posts').scrollTo(0, 0)")
        page.until(f"{ROWS}.length >= 400")
        page.until("document.getElementById('posts').scrollTop > 500")  # what was read stays in view
        page.evaluate(
            "const date = document.getElementById('jump'); date.value = '2023-12-15';"
            "date.dispatchEvent(new Event('change', { bubbles: true }))"
        )
        page.until("document.activeElement.tagName === 'ARTICLE'")
        when = page.evaluate("document.activeElement.querySelector('time').dateTime")
        assert when[:10] in {"2023-12-14", "2023-12-15"}, when
        assert page.evaluate(f"{ROWS}.length") <= 700
        alice.client.write_post("main", "written meanwhile")
        page.click("#newest")
        page.until(f"{says('written meanwhile', ROWS + '[0]')}")
        assert page.complaints() == []


def test_every_panel_opens_without_barriers(tmp_path: Path, page: Browser) -> None:
    with peers(tmp_path, "alice", "bob") as (alice, bob):
        alice.client.state_me("Ann", color=3)
        join(alice, bob)
        enter(page, alice)
        page.until(f"{ROWS}.length === 1")
        names = ("about", "members", "inbox", "quorum", "peers", "people", "devices", "storage", "log")
        for panel in names:
            open_panel(page, panel)
            picture(page, f"panel-{panel}")
        page.evaluate("document.activeElement.blur()")
        page.press("?", 191, "?")
        page.until("document.getElementById('keys')")
        picture(page, "keys")
        page.press("Escape", 27)
        page.until("!document.getElementById('keys')")
        open_panel(page, "inbox")
        submit(page, "#comment", said="a remark")
        page.until(says("a remark", "document.getElementById('comments')"))
        press_on(page, "#comments button")  # the answer to it
        submit(page, "#comment", said="an answer")
        page.until(says("a remark", "document.querySelector('#comments blockquote')"))
        alice.stop()
        page.until(says("not connected", "document.getElementById('live')"))
        open_panel(page, "peers")
        page.until(says("unknown", "document.getElementById('peers')"))
        assert "good" not in page.evaluate("document.getElementById('peers').innerHTML"), "nothing is green"
        picture(page, "away")


def test_texts_that_would_hold_the_page_up_are_shown_as_they_are(tmp_path: Path, page: Browser) -> None:
    with peers(tmp_path, "alice") as (alice,):
        alice.client.create_repo("notes")
        enter(page, alice)
        page.until(f"{ROWS}.length === 1")
        page.fill(
            "#text",
            "<script>document.title = 'taken'</script>\n\n![x](https://example.org/a.png) [j](javascript:alert(1))",
        )
        page.click("#write .main")
        page.until(f"{ROWS}.length === 2")
        said = f"{ROWS}[0].querySelector('.said')"
        assert page.evaluate(f"{said}.querySelectorAll('script, img').length") == 0
        assert page.evaluate(f"[...{said}.querySelectorAll('a')].map((one) => one.href)") == [
            "https://example.org/a.png"
        ]
        assert page.evaluate("document.title") == "Ravel"
        shown = ("'a'.repeat(4000)", "'> '.repeat(3) + 'quoted'", "'*a '.repeat(200)")
        plain = (
            "'a'.repeat(4001)",
            "'*a '.repeat(201)",
            "'> '.repeat(40) + 'quoted'",
            "'1. '.repeat(300)",
            "'x\\n\\n'.repeat(1300)",
        )
        found = (
            "import('/web/parts/markdown.js').then(({ nodesOf }) => "
            f"[{', '.join((*shown, *plain))}].map((text) => nodesOf(text) !== null))"
        )
        expected = [True] * len(shown) + [False] * len(plain)
        # What all texts of ten seconds may take together can be used up on a busy machine.
        until(lambda: page.evaluate(found) == expected, "some are formatted, and some are not")
        assert page.complaints() == []


@CHROMIUM_ALONE
def test_a_token_for_reading_alone_gets_a_page_for_reading(tmp_path: Path, page: Browser) -> None:
    with peers(tmp_path, "alice") as (alice,):
        alice.client.create_repo("notes")
        alice.client.write_post("main", "to be read")
        made = alice.client.create_token("screen", ["read"])
        page.open(alice.client.url)
        page.fill("#token", made["token"])
        page.click("#login-form button")
        page.until(f"{ROWS}.length === 2")
        for absent in ("#write", "#add", "[href$=settings]"):
            assert page.evaluate(f"document.querySelector('{absent}')") is None, absent
        open_panel(page, "members")
        assert page.evaluate("document.getElementById('invite')") is None
        assert page.evaluate("document.getElementById('problem').textContent.trim()") == ""
        alice.client.revoke_token("screen")
        page.click("[data-branch]")
        page.evaluate("location.hash = '#/-/set'")
        page.until("document.getElementById('login') || document.querySelector('.panel .error')")


@CHROMIUM_ALONE
def test_an_old_post_is_found_and_shown_at_its_place(tmp_path: Path, page: Browser) -> None:
    with peers(tmp_path, "alice") as (alice,):
        run_ravel(alice, "repo", "create", "notes")
        run_ravel(alice, "branch", "create", "notes", "side")
        lines = [
            "The keys lie under the third flowerpot",
            *(f"post number {number}" for number in range(450)),
        ]
        run_ravel(alice, "write", "notes:main", "-", stdin="\n".join(lines))
        run_ravel(alice, "write", "notes:side", "flowers for the table")
        enter(page, alice)
        until(
            lambda: run_ravel(alice, "search", "flowerpot", "--json").stdout.count('"commit"') == 1,
            "the index",
        )
        side = (
            "[...document.querySelectorAll('[data-branch]')].find((one) => one.textContent.includes('side'))"
        )
        page.evaluate(f"{side}.click()")
        page.until(f"{ROWS}.length === 2")
        open_panel(page, "search")
        page.until("document.activeElement.name === 'asked'")
        page.type("flow")
        page.until("document.querySelectorAll('#hits li').length === 2")
        picture(page, "search")
        page.type("erpot")
        page.until("document.querySelectorAll('#hits li').length === 1")
        page.click("#hits a")
        page.until(says("third flowerpot", "document.activeElement"))
        assert page.evaluate("document.activeElement.tagName") == "ARTICLE"
        assert page.evaluate("document.getElementById('newest') !== null"), "the window is an old one"
        page.evaluate(f"{side}.click()")
        page.until(f"{ROWS}.length === 2")
        press_with(page, "k", 75, 2)
        page.until("document.activeElement.id === 'command'")
        page.type("third flowerpot")
        page.until(says("notes / main", "document.querySelector('#found [aria-selected=true]')"))
        picture(page, "palette-hits")
        page.press("Enter", 13, "\r")
        page.until(says("third flowerpot", "document.activeElement"))
        page.show(*PHONE, "light")
        open_panel(page, "search", "flowerpot")
        page.until("document.querySelectorAll('#hits li').length === 1")
        page.click("#hits a")
        page.until(says("third flowerpot", "document.activeElement"))
        document = Doc[Text](client_id=alice.client.open_text("notes:side")["client"])
        document["text"] = Text("Seeds of the sunflower go into the ground in May")
        alice.client.push_text("notes:side", document.get_update())
        until(lambda: "sunflower" in run_ravel(alice, "search", "sunflower").stdout, "the text's reading")
        open_panel(page, "search", "sunflower")
        page.until("document.querySelectorAll('#hits li').length === 1")
        page.click("#hits a")
        page.until(says("into the ground in May", "document.getElementById('text-editor')?.shadowRoot"))
        open_panel(page, "search", "nothing-like-that")
        page.until(says("Nothing has all these words"))
        assert page.complaints() == []
