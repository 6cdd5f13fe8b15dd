"""Writing one text together on the page: two browsers at two nodes, one of which is away for a while."""

import re
from base64 import b64decode
from pathlib import Path

import pytest
from pycrdt import Doc, Text

from tests.e2e.browser import Browser
from tests.e2e.cluster import Peer, join, peers, until, until_equal
from tests.e2e.page_steps import by_command as _by_command
from tests.e2e.page_steps import enter as _enter
from tests.e2e.page_steps import open_panel as _open
from tests.e2e.page_steps import picture as _picture
from tests.e2e.page_steps import press_with as _press_with
from tests.e2e.page_steps import says as _says
from tests.e2e.page_steps import submit as _submit
from tests.e2e.page_steps import tab_to as _tab_to
from tests.support.yjs_vectors import read_vector

pytestmark = [pytest.mark.slow, pytest.mark.extended]
INSIDE = "document.getElementById('text-editor')?.shadowRoot"
SHOWN = f"""(() => {{
  const content = {INSIDE}?.querySelector('.cm-content')?.cloneNode(true);
  content?.querySelectorAll('.other, .other-typed').forEach((one) => one.remove());
  return content ? [...content.querySelectorAll('.cm-line')].map((line) => line.textContent).join('\\n') : null;
}})()"""
KEPT = """new Promise((tell) => {
  const opened = indexedDB.open("ravel-texts", 1);
  opened.onsuccess = () => {
    const asked = opened.result.transaction("unsaved").objectStore("unsaved").count();
    asked.onsuccess = () => tell(asked.result);
  };
})"""
CARETS = f"[...({INSIDE}?.querySelectorAll('.other') ?? [])].map((one) => one.textContent.replaceAll('\u2060', ''))"
TYPED = f"[...({INSIDE}?.querySelectorAll('.other-typed') ?? [])].map((one) => one.firstChild.data).join()"
HOLD_PUSHES = """(() => {
  const { fetch } = window;
  const held = new Promise((resolve) => { window.release = resolve; });
  window.fetch = async (address, options) => {
    if (options?.method === "POST" && String(address).endsWith("/text")) await held;
    return fetch(address, options);
  };
})()"""


def _in_kept_changes(steps: str) -> str:
    return f"(async () => {{ const {{ keep, takeKept }} = await import('/web/state/kept_changes.js'); {steps} }})()"


def _edit(opened: Browser, argument: str = "") -> None:
    """Open the text, and go into the editor, by keys where it is the main text."""
    if argument:
        _open(opened, "text", argument)
    else:
        _by_command(opened, "text")
    opened.until(f"{INSIDE}?.querySelector('.cm-content')")
    _tab_to(opened, "#text-editor")


def _is_standing(state: str) -> str:
    return f"document.getElementById('text-state')?.dataset.state === '{state}'"


def _is_saved() -> str:
    return f"{_is_standing('saved')} && document.getElementById('text-state').dataset.unsaved === '0'"


def test_two_write_one_text_together_while_one_is_away(tmp_path: Path, page: Browser, bobs: Browser) -> None:
    other = bobs
    with peers(tmp_path, "alice", "bob") as (alice, bob):
        alice.client.state_me("Ann Lee", color=3)
        bob.client.state_me("Bob Ray", color=5)
        _, branch = join(alice, bob)
        until_equal(alice, bob, branch)
        _enter(page, alice)
        _enter(other, bob)
        _edit(page)
        page.type("We meet on Monday.")
        page.until(_is_saved())
        _edit(other)
        other.until(f"{SHOWN} === 'We meet on Monday.'", 60)
        other.until(f"{CARETS}.join() === 'Ann Lee'")
        other.evaluate(HOLD_PUSHES)
        for word in ("Agenda", ": "):
            other.type(word)
        page.until(f"{TYPED} === 'Agenda: '")
        low = (
            f"(() => {{ const box = {INSIDE}.querySelector('.cm-scroller').getBoundingClientRect();"
            f"return {INSIDE}.elementFromPoint(box.left + 40, box.bottom - 5); }})()"
        )
        page.until(f"{low}?.closest('.cm-content')")  # a click below the words goes into the text
        assert page.evaluate(SHOWN) == "We meet on Monday.", "it is seen, and nothing was stored"
        _picture(page, "text-typed")
        other.evaluate("release()")
        page.until(f"{SHOWN} === 'Agenda: We meet on Monday.'", 60)
        page.until(f"{TYPED} === ''")
        page.until("document.getElementById('word-count').textContent === '5 words'")
        page.until(f"{CARETS}.join() === 'Bob Ray'")
        page.until(_says("also here: Bob Ray"))
        _press_with(page, "a", 65, 2)
        other.until(f"{INSIDE}.querySelector('.other-selection')")
        _picture(other, "text-together")

        address = bob.client.url.removeprefix("http://")
        bob.stop()
        other.until(_is_standing("offline"))
        _tab_to(other, "#text-editor")
        other.type("(bob, away) ")
        other.until("Number(document.getElementById('text-state').dataset.unsaved) > 0")
        other.until(_says("kept in this browser", "document.getElementById('text-state')"))
        _picture(other, "text-offline")
        page.press("End", 35)
        page.press("Enter", 13, "\r")
        page.type("Bring cake.")
        page.until(_is_saved())
        page.until("!document.getElementById('text-others').textContent")
        until(lambda: other.evaluate(KEPT) == 1, "the browser keeps it")
        other.open("about:blank")
        bob.start("--api", address)  # where its page is
        _enter(other, bob)
        _edit(other)
        both = "Agenda: (bob, away) We meet on Monday.\\nBring cake."
        for opened in (other, page):
            opened.until(f"{SHOWN} === '{both}'", 90)
            opened.until(_is_saved())
        until_equal(alice, bob, branch)
        texts = {peer.client.pull_text(branch, root="text")["text"] for peer in (alice, bob)}
        assert texts == {both.replace("\\n", "\n")}, "and so says the command line's call"
        assert len(alice.client.show_state(branch, kind="text")["items"]) <= 9, "not one for each key"

        until(lambda: other.evaluate(KEPT) == 0, "what is saved is kept no more")
        address = alice.client.url.removeprefix("http://")
        alice.stop()
        page.until(_is_standing("offline"))
        page.type(" Two.")
        alice.start("--api", address)
        other.until(f"{SHOWN} === '{both} Two.'", 90)

        _press_with(page, "z", 90, 2)
        page.until(f"!{SHOWN}.includes('Two')")
        assert page.evaluate(SHOWN).startswith("Agenda: (bob, away)"), "what others wrote stays"
        page.until("document.querySelectorAll('.written > li').length >= 2")
        of_bob = "[...document.querySelectorAll('.written > li')].find((one) => one.textContent.includes('Bob Ray'))"
        assert re.search(r"\d\d:\d\d.*, \d change", page.evaluate(f"{of_bob}.textContent")), "who wrote when"
        page.evaluate(
            "window.print = () => { window.printed = document.getElementById('printed').textContent; }"
        )
        page.click("#print-text")
        page.until("window.printed")
        is_there = "document.getElementById('printed') !== null"
        assert page.evaluate(is_there), "a phone's print() returns before the page is drawn"
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        assert not page.evaluate(is_there)
        assert page.evaluate("window.printed").startswith("Main textAgenda: (bob, away)"), (
            "all of it, drawn apart"
        )
        page.click("#keep-text")
        page.until(_says("Kept as Main text", "document.querySelector('.notices')"))
        [kept] = alice.client.list_files(branch)["files"]
        with alice.client.get_file(branch, kept["file"]) as download:
            assert b"".join(download.pieces).decode() == page.evaluate(SHOWN)
        page.evaluate("document.querySelectorAll('.panel details').forEach((one) => { one.open = true })")
        _submit(page, "#new-text", title="Shopping")
        page.until("location.hash.endsWith('/text/Shopping')")
        page.until(f"{SHOWN} === ''")
        page.evaluate(f"{INSIDE}.querySelector('.cm-content').focus()")
        page.type("milk")
        page.evaluate("document.querySelectorAll('.panel details').forEach((one) => { one.open = true })")
        _submit(page, "#rename-text", title="What to buy")
        page.until(_is_saved())
        other.until(_says("What to buy", "document.querySelector('.panel')"), 60)
        _edit(other, "Shopping")
        other.until(f"{SHOWN} === 'milk'", 60)
        _picture(page, "texts")
        until(lambda: bob.client.pull_text(branch, root="Shopping")["text"] == "milk", "by its name")
        page.evaluate(f"{INSIDE}.querySelector('.cm-content').focus()")
        page.press("Escape", 27)
        page.press("Tab", 9)
        assert page.evaluate("document.activeElement.id") != "text-editor", (
            "Tab leaves it, Escape closes nothing"
        )
        page.until("document.getElementById('text-editor')")
        assert [one for one in page.complaints() if "ERR_" not in one] == []


def test_a_tab_forgets_of_others_only_what_it_has_taken(standing: Peer, page: Browser) -> None:
    _enter(page, standing)
    steps = """
      const bytes = (...some) => [Uint8Array.from(some)];
      await keep("branch", "writes on", bytes(1));
      await keep("branch", "is closed", bytes(2));
      const taken = await takeKept("branch");
      await keep("branch", "writes on", bytes(1, 3));
      await taken.forget();
      const said = (some) => some.changes.map((one) => [...one].join()).join(" ");
      return [said(taken), said(await takeKept("branch"))];"""
    # Sorted by session: "is closed" is before "writes on".
    assert page.evaluate(_in_kept_changes(steps)) == ["2 1", "1,3"]


def test_changes_are_kept_after_the_browser_has_closed_or_lost_its_database(
    standing: Peer, page: Browser
) -> None:
    """Browsers do so where storage is short, where data is cleared, and on phones that slept."""
    _enter(page, standing)
    steps = """
      const { open } = IDBFactory.prototype;
      let last;
      IDBFactory.prototype.open = function (...how) {
        const request = open.apply(this, how);
        request.addEventListener("success", () => { last = request.result; });
        return request;
      };
      const save = (byte) => keep("closed", "tab", [Uint8Array.of(byte)]).catch((error) => error.name);
      const said = [await save(1)];
      last.close();
      said.push(await save(2));
      last.dispatchEvent(new Event("close"));
      last.close();
      said.push(await save(3));
      said.push(await new Promise((tell) => {
        const deleting = indexedDB.deleteDatabase("ravel-texts");
        deleting.onsuccess = () => tell("deleted");
        deleting.onblocked = () => tell("blocked");
      }));
      said.push(await save(4));
      const opens = IDBFactory.prototype.open;
      last.close();
      IDBFactory.prototype.open = () => { throw new DOMException("no", "UnknownError"); };
      said.push(await save(5));
      IDBFactory.prototype.open = opens;
      said.push(await save(6));
      IDBFactory.prototype.open = open;
      said.push([...(await takeKept("closed")).changes[0]].join());
      return said;"""
    expected = [True, True, True, "deleted", True, "UnknownError", True, "6"]
    assert page.evaluate(_in_kept_changes(steps)) == expected


def test_what_neither_node_nor_browser_keeps_outlives_a_lock_of_the_page(
    tmp_path: Path, page: Browser
) -> None:
    may_close = """(() => {
      const asked = new Event("beforeunload", { cancelable: true });
      dispatchEvent(asked);
      return !asked.defaultPrevented;
    })()"""
    with peers(tmp_path, "alice") as (alice,):
        alice.client.create_repo("shared")
        _enter(page, alice)
        _edit(page)
        assert page.evaluate(may_close)
        page.evaluate("""(() => {
          const { put } = IDBObjectStore.prototype;
          const { fetch } = window;
          IDBObjectStore.prototype.put = () => { throw new Error("no room"); };
          window.fetch = async (to, how) => {
            if (how?.method === "POST") throw new TypeError("away");
            return fetch(to, how);
          };
          window.mend = () => { IDBObjectStore.prototype.put = put; window.fetch = fetch; };
          window.token = sessionStorage.getItem("ravel-token");
        })()""")
        page.type("Not lost.")
        assert not page.evaluate(may_close), "at once, before it could be kept"
        page.evaluate("import('/web/state/session.js').then((found) => found.lock())")
        page.until(_says("1 change of a text is in this tab alone", "document.getElementById('login')"))
        assert not page.evaluate(may_close)
        page.evaluate("mend()")
        page.fill("#token", page.evaluate("token"))
        page.click("#login-form button")
        _open(page, "text")
        page.until(f"{SHOWN} === 'Not lost.'", 60)
        page.until(_is_saved())
        page.until(may_close)
        assert alice.client.pull_text("main", root="text")["text"] == "Not lost."


def test_words_that_the_node_does_not_take_are_shown_and_typed_again(tmp_path: Path, page: Browser) -> None:
    """Another program of the same user goes on under the page's client id, while the page cannot be heard."""
    with peers(tmp_path, "alice") as (alice,):
        alice.client.create_repo("shared")
        _enter(page, alice)
        _edit(page)
        page.type("Before.")
        page.until(_is_saved())
        thief: Doc[Text] = Doc()
        thief.apply_update(b64decode(alice.client.pull_text("main")["update"]))
        (client,) = read_vector(thief.get_state())
        thief = Doc(client_id=client)
        thief.apply_update(b64decode(alice.client.pull_text("main")["update"]))
        seen = thief.get_state()
        thief.get("text", type=Text).insert(0, "Stolen. ")
        page.evaluate("""(() => {
          const { fetch } = window;
          window.fetch = async (to, how) => {
            if (how?.method === "POST") throw new TypeError("away");
            return fetch(to, how);
          };
          window.mend = () => { window.fetch = fetch; };
        })()""")
        page.type(" Not lost.")
        alice.client.push_text("main", thief.get_update(seen))
        page.evaluate("mend()")
        page.until(_is_standing("refused"), 60)
        page.until(_says("says something else already", "document.getElementById('text-unsaved')"))
        page.until(_says(" Not lost.", "document.querySelector('#text-unsaved pre')"))
        assert page.evaluate(KEPT) == 1, "and the browser keeps them"
        _picture(page, "text-refused")
        page.click("#text-unsaved button")
        page.until(f"{SHOWN} === 'Stolen. Before. Not lost.'")
        page.until(_is_saved())
        page.until("!document.getElementById('text-unsaved')")
        assert alice.client.pull_text("main", root="text")["text"] == "Stolen. Before. Not lost."
        until(lambda: page.evaluate(KEPT) == 0, "what is saved is kept no more")
        page.evaluate(f"{INSIDE}.querySelector('.cm-content').focus()")
        page.press("End", 35)
        page.type(" On.")
        page.until(_is_saved())
        text = alice.client.pull_text("main", root="text")["text"]
        assert text == "Stolen. Before. Not lost. On.", "under another id"


def test_a_push_that_the_text_does_not_show_is_not_taken_for_saved(standing: Peer, page: Browser) -> None:
    _enter(page, standing)
    found = page.evaluate("""(async () => {
      const { LiveText } = await import("/web/state/live_text.js");
      const { Y } = await import("/web/vendor/editor.js");
      const problems = [];
      let shown = 0;
      const api = {
        async *watchText(_, { onState }) {
          onState(true);
          yield { name: "update", data: { update: "AAA=" } };
          live.document.value.getText("text").insert(0, "words");
          await live.push();
          const missed = [live.refusal.value !== "", live.unsavedCount.value, live.unsavedWords];
          shown = 5;
          live.refusal.value = "";
          await live.push();
          seen.push(missed, [live.refusal.value, live.unsavedCount.value], live.document.value.clientID);
          live.end();
        },
        openText: async () => ({ client: 4711, clock: 0 }),
        pushText: async () => ({ commit: null, has: [{ client: 4711, clock: shown }] }),
        tellPresence: async () => ({}),
      };
      const seen = [];
      const onError = (error) => problems.push(error.message);
      const live = new LiveText({ api, branch: "missed", mayWrite: true, Y, onError, onEnd: () => {} });
      await live.open();
      return [...seen, problems.length];
    })()""")
    assert found == [[True, 1, "words"], ["", 0], 4711, 1]


def test_the_page_types_under_ids_of_the_node_alone(standing: Peer, page: Browser) -> None:
    _enter(page, standing)
    found = page.evaluate("""(async () => {
      const { LiveText } = await import("/web/state/live_text.js");
      const { Y } = await import("/web/vendor/editor.js");
      const textOf = (bytes) => btoa(String.fromCharCode(...bytes));
      const typed = (client, words) => {
        const made = new Y.Doc();
        made.clientID = client;
        made.getText("text").insert(0, words);
        return textOf(Y.encodeStateAsUpdate(made));
      };
      const seen = [];
      const see = () => seen.push([live.client.value, live.document.value.clientID === live.client.value]);
      let asked = 100;
      const api = {
        async *watchText(_, { onState }) {
          onState(true);
          seen.push(live.isReady.value);
          yield { name: "update", data: { update: typed(7, "others") } };
          see();
          yield { name: "update", data: { update: typed(101, "words under the page's own id") } };
          see();
          yield { name: "whole", data: { update: typed(7, "others") } };
          see();
          live.end();
        },
        openText: async () => ({ client: ++asked, clock: 0 }),
        tellPresence: async () => ({}),
      };
      const live = new LiveText({ api, branch: "ids", mayWrite: true, Y, onError: () => {}, onEnd: () => {} });
      await live.open();
      return seen;
    })()""")
    assert found == [False, [101, True], [101, True], [102, True]], (
        "another one where the document is made anew"
    )


def test_a_change_that_cannot_be_read_does_not_end_the_text(standing: Peer, page: Browser) -> None:
    _enter(page, standing)
    found = page.evaluate("""(async () => {
      const { LiveText } = await import("/web/state/live_text.js");
      const { Y } = await import("/web/vendor/editor.js");
      const theirs = new Y.Doc();
      theirs.getText("text").insert(0, "still here");
      theirs.getMap("ravel-titles").set("ravel-titles", "no text");
      const update = btoa(String.fromCharCode(...Y.encodeStateAsUpdate(theirs)));
      const problems = [];
      async function* watchText(_, { onState }) {
        onState(true);
        yield { name: "update", data: { update } };
        for (const name of ["update", "whole"]) yield { name, data: { update: "////" } };
        yield { name: "presence", data: { others: ["one"] } };
        live.end();
      }
      const onError = (error) => problems.push(error.message);
      const live = new LiveText({ api: { watchText }, branch: "unread", Y, onError, onEnd: () => {} });
      await live.open();
      const shown = live.document.value.getText("text").toString();
      return [shown, live.others.value, problems.length, live.texts.map((one) => one.root)];
    })()""")
    assert found == ["still here", ["one"], 2, ["text"]]


def test_a_text_that_one_may_no_more_change_takes_no_keys(tmp_path: Path, page: Browser) -> None:
    with peers(tmp_path, "alice", "bob") as (alice, bob):
        repo, branch = join(alice, bob)
        user = bob.client.show_me()["user"]
        until(
            lambda: user in {one["user"] for one in alice.client.list_members(repo)["members"]}, "bob is here"
        )
        until_equal(alice, bob, branch)
        _enter(page, bob)
        _edit(page)
        page.type("Before.")
        page.until(_is_saved())
        editable = f"{INSIDE}?.querySelector('.cm-content')?.contentEditable"
        assert page.evaluate(editable) == "true"
        alice.client.remove_member(repo, user)
        page.until(_is_standing("read"), 60)
        page.until(f"{editable} === 'false'")
        page.evaluate(f"{INSIDE}.querySelector('.cm-content').focus()")
        page.type("after")
        page.until(f"{SHOWN} === 'Before.'")  # it is read anew, as by one who may read alone
        assert page.evaluate("document.getElementById('text-state').dataset.unsaved") == "0"
