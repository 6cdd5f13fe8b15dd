"""What a person does about the node on its page, and what the page tells by itself: each journey in a real Chromium."""

import json
import zipfile
from pathlib import Path

import pytest

from ravel import RavelError, connect
from tests.e2e.browser import CHROMIUM, Browser
from tests.e2e.cluster import join, peers, run_ravel, until, until_equal
from tests.e2e.page_steps import (
    ROWS,
    by_command,
    enter,
    open_panel,
    picture,
    posts,
    press_on,
    retype,
    says,
    submit,
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.extended,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here (Debian: apt install chromium)"),
]
_REFUSE = """(() => {
  const real = window.fetch;
  const refusal = { error: { code: "not_permitted", message: "not today" } };
  const refuse = () => Response.json(refusal, { status: 403 });
  window.fetch = async (address, given) => (given?.method === "PUT" ? refuse() : real(address, given));
})()"""
_HIDE = """(() => {
  Object.defineProperty(document, "visibilityState", { configurable: true, get: () => "%s" });
  document.dispatchEvent(new Event("visibilitychange"));
})()"""
_DRAW = """(async () => {
  const code = document.querySelector("svg.qr").cloneNode(true);
  code.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  for (const [name, size] of [["width", 800], ["height", 800]]) code.setAttribute(name, size);
  const image = new Image();
  image.src = URL.createObjectURL(new Blob([code.outerHTML], { type: "image/svg+xml" }));
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 900;
  const context = canvas.getContext("2d");
  context.fillStyle = "white";
  context.fillRect(0, 0, 900, 900);
  context.drawImage(image, 50, 50, 800, 800);
  window.picture = await new Promise((done) => canvas.toBlob(done));
})()"""
_CHOOSE = """(() => {
  const data = new DataTransfer();
  data.items.add(new File([picture], "code.png", { type: "image/png" }));
  const field = document.getElementById("scan-file");
  field.files = data.files;
  field.dispatchEvent(new Event("change", { bubbles: true }));
})()"""
_LISTEN = """(() => {
  window.told = [];
  const note = (title, { body, tag }) => told.push([title, body, tag]);
  window.Notification = class { constructor(...said) { note(...said); } };
  Notification.permission = "granted";
  Notification.requestPermission = async () => "granted";
  ServiceWorkerRegistration.prototype.showNotification = async (...said) => note(...said);
})()"""


def test_a_tick_that_the_node_refuses_shows_again_how_things_are(tmp_path: Path, page: Browser) -> None:
    with peers(tmp_path, "alice") as (alice,):
        alice.client.create_repo("notes")
        opened = json.loads(run_ravel(alice, "open", "--no-browser", "--json").stdout)["address"]
        page.open(f"{alice.client.url}/")
        page.until("document.getElementById('login')")
        page.evaluate(_REFUSE)  # before the page takes what it fetches with
        page.evaluate(f"location.hash = '#{opened.partition('#')[2]}'")
        page.until("document.getElementById('repos')")
        for panel, tick in (("branches", "kept-files"), ("settings", "plain-network.map_port")):
            open_panel(page, panel)
            field = f"document.getElementById('{tick}')"
            page.until(field)
            was = page.evaluate(f"{field}.checked")
            page.click(f"[id='{tick}']")
            page.until(says("not today", "document.getElementById('problem')"))
            page.until(f"{field}.checked === {json.dumps(was)}")
            page.click("#problem button")


def test_settings_tokens_and_health_and_a_backup_that_is_restored(tmp_path: Path, page: Browser) -> None:
    with peers(tmp_path, "alice") as (alice,):
        alice.client.create_repo("notes")
        alice.client.write_post("main", "to be kept")
        enter(page, alice)

        open_panel(page, "settings")
        page.click("[id='plain-network.map_port']")
        page.until(says("Ask the router for a way in is saved", "document.querySelector('.notices')"))
        changed = {one["setting"]: one["value"] for one in alice.client.list_settings()["settings"]}
        assert changed["network.map_port"] == "false"
        page.until("document.querySelector('#restart.strip')")
        page.until("document.getElementById('start-with-login')")
        picture(page, "plain-settings")
        page.click(".notices p:last-child button")
        page.until("!document.getElementById('restart')")
        page.fill("#setting-filter", "discover_lan")
        page.until("document.querySelectorAll('.settings > li').length === 1")
        field = "document.getElementById('value-network.discover_lan')"
        change = "dispatchEvent(new Event('change', { bubbles: true }))"
        page.evaluate(f"{field}.value = 'true'; {field}.{change}")
        page.until("document.getElementById('restart')")
        assert "discover_lan = true" in (alice.home / "config.toml").read_text()
        page.click(".notices p:last-child button")
        page.until("!document.getElementById('restart')")
        assert "discover_lan = false" in (alice.home / "config.toml").read_text()
        page.fill("#setting-filter", "api.listen")
        field = "document.getElementById('value-api.listen')"
        page.until(field)
        page.evaluate(f"{field}.value = '0.0.0.0:7475'; {field}.{change}")
        page.until(says("must be a loopback address", "document.getElementById('problem')"))
        page.until(f"{field}.value !== '0.0.0.0:7475'")
        picture(page, "settings")

        by_command(page, "phones and")
        press_on(page, "#open-remote")
        page.until(says(" up", "document.getElementById('remote-waits')"))
        assert 'tls = "*:7476"' in (alice.home / "config.toml").read_text()
        picture(page, "open-remote")
        by_command(page, "undo")
        page.until("document.getElementById('open-remote')")
        assert 'tls = ""' in (alice.home / "config.toml").read_text()

        alice.client.create_token("shop", actions=["read"], origins=["https://shop.example"])
        open_panel(page, "tokens")
        page.until(says("for pages of https://shop.example", "document.getElementById('tokens')"))
        assert page.evaluate(says("read repos", "document.getElementById('tokens')"))
        assert page.evaluate(says("may do all that you may", "document.getElementById('pages')")), "this page"
        submit(page, "#make-token", name="chat")
        page.until("document.getElementById('new-token')?.value.startsWith('ravel_')")
        picture(page, "tokens")
        token = page.evaluate("document.getElementById('new-token').value")
        app = connect(url=alice.client.url, token=token)
        assert [one["name"] for one in app.list_repos()["repos"]] == ["notes"]
        with pytest.raises(RavelError) as refused:
            app.write_post("main", "not allowed")
        assert refused.value.code == "insufficient_scope"
        page.click("button[aria-label='Revoke chat']")
        page.click("dialog[open] .danger")
        page.until(says("chat was revoked", "document.querySelector('.notices')"))
        with pytest.raises(RavelError) as refused:
            app.list_repos()
        assert refused.value.code == "unauthorized"
        app.close()

        open_panel(page, "health")
        page.until("document.querySelectorAll('#checks > li').length > 5")
        assert "warning" in page.evaluate("document.getElementById('verdict-of-checks').textContent")
        picture(page, "health")

        open_panel(page, "report")
        page.click("#make-report")
        page.until("document.getElementById('open-report')", 120)
        page.click("#open-report")
        page.until("document.getElementById('report')")
        page.until("document.getElementById('report').getBoundingClientRect().height > 300")
        picture(page, "report")
        page.press("Escape", 27)

        by_command(page, "backup")
        press_on(page, "#restore > summary")
        picture(page, "restore")
        press_on(page, "details:has(> #show-words) > summary")
        press_on(page, "#show-words > button")
        page.until("document.querySelectorAll('#words > li').length === 24")
        picture(page, "words")
        words = page.evaluate("[...document.querySelectorAll('#words > li')].map((one) => one.textContent)")
        assert words == json.loads(run_ravel(alice, "key", "words", "--json").stdout)["words"]
        press_on(page, ".link-box button")
        page.until("!document.getElementById('words')")
        retype(page, "#start-backup [name=folder]", str(tmp_path / "saved"))
        page.until("document.getElementById('backup-done')", 60)
        picture(page, "backup")
        refused_ones = [one for one in page.complaints() if "status of 400" in one]
        assert page.complaints() == refused_ones, "a refused setting, and nothing else"

        command = page.evaluate("document.querySelector('#backup-done code').textContent")
        assert command == f"ravel --home NEW restore {tmp_path / 'saved'}"
        alice.stop()
        alice.home.rename(tmp_path / "gone")
        run_ravel(alice, "restore", str(tmp_path / "saved"))
        alice.start()
        enter(page, alice)
        page.until(says("to be kept", "document.getElementById('timeline')"))


def test_what_is_new_is_shown_told_and_remembered_by_the_node(tmp_path: Path, page: Browser) -> None:
    with peers(tmp_path, "alice", "bob") as (alice, bob):
        bob.client.state_me("Bob", color=3)
        _, branch = join(alice, bob)
        alice.client.write_post(branch, "an old post")
        until_equal(alice, bob, branch)
        enter(page, alice)
        page.evaluate(_LISTEN)
        page.until(f"{ROWS}.length === 2")
        until(lambda: alice.client.show_unseen(branch)["visited"], "the first visit is noted")
        open_panel(page, "settings")
        page.evaluate(
            "import('/web/state/notices.js').then(({ notices, turnOn }) => turnOn().then(() => notices.value))"
        )
        page.evaluate(_HIDE % "hidden")
        bob.client.write_post(branch, "one")
        bob.client.write_post(branch, f"two for @{alice.client.show_status()['user']}")
        page.until("document.title === '(2) Ravel'")
        badge = "document.querySelector('[data-branch] .badge')?.textContent.trim()"
        page.until(f"{badge} === '@ 2 unread'")
        page.until("told.length === 1")
        (title, body, _) = page.evaluate("told[0]")
        assert (title, body) == ("Bob mentions you", "shared : main")
        picture(page, "unread")
        open_panel(page, "unread")
        page.until(says("shared / main", "document.getElementById('unread')"))
        assert page.evaluate("document.querySelector('#to-unread .facts').firstChild.data") == "2"
        picture(page, "all-unread")

        posts(page)
        page.evaluate(_HIDE % "visible")
        page.until("document.querySelectorAll('#timeline > li.fresh').length === 2")
        page.until("document.querySelector('#timeline .since')")
        page.until("document.title === 'Ravel'")
        assert page.evaluate(f"{ROWS}[1].querySelector('.since') !== null"), "before the older of the two"
        until(lambda: alice.client.list_unseen()["branches"] == [], "the node knows, for all its pages")
        picture(page, "new-since")
        bob.client.write_post(branch, "seen as it comes")
        page.until(f"{ROWS}.length === 5")
        until(lambda: alice.client.list_unseen()["branches"] == [], "what is in view is seen")
        assert page.evaluate("document.querySelectorAll('#timeline > li.fresh').length") == 2
        assert page.evaluate("told.length") == 1
        open_panel(page, "unread")
        page.until(says("You have read everything"))
        bob.client.write_post(branch, "three")
        page.click("#see-all")
        page.until("!document.getElementById('unread')")
        assert alice.client.list_unseen()["branches"] == [], "nobody has opened it"
        posts(page)

        open_panel(page, "members")
        page.click("#invite-somebody")
        page.click("#invite > button")
        page.until("document.querySelector('svg.qr')")
        page.evaluate(_DRAW)
        link = page.evaluate("document.getElementById('link').value")
        open_panel(page, "join")
        page.evaluate(_CHOOSE)
        page.until(f"document.querySelector('#join-repo textarea').value === {json.dumps(link)}", 60)
        picture(page, "scanned")
        open_panel(page, "settings")

        page.until("navigator.serviceWorker.controller", 60)
        run_ravel(alice, "config", "set", "api.listen", alice.client.url.removeprefix("http://"))
        page.until("caches.keys().then((names) => names.length === 1)", 60)
        kept = page.evaluate(
            "caches.keys().then(([name]) => caches.open(name)).then((cache) => cache.keys())"
            ".then((all) => all.map((one) => new URL(one.url).pathname))"
        )
        assert "/" in kept
        assert all(path == "/" or path.startswith("/web/") for path in kept), "no answer of the API"
        alice.stop()
        page.until("document.getElementById('lost')", 60)
        picture(page, "lost")
        page.evaluate("location.hash = ['#', location.hash.split('/')[1], 'people'].join('/')")
        page.until("document.querySelector('.panel .skeleton') && !document.getElementById('me')", 60)
        assert page.evaluate("document.body.innerText.split('does not answer').length") == 2, "said once"
        page.reload()
        page.until("document.getElementById('away')", 60)
        picture(page, "away")
        alice.start()
        posts(page)
        page.until(f"{ROWS}.length === 6", 60)
        page.until("document.getElementById('live').textContent === 'All is well'")


def test_to_a_new_member_nothing_is_new_since_a_last_visit_and_own_imports_never_are(
    tmp_path: Path, page: Browser
) -> None:
    with peers(tmp_path, "alice", "bob") as (alice, bob):
        _, branch = join(alice, bob)
        for number in range(3):
            alice.client.write_post(branch, f"post {number}")
        until_equal(alice, bob, branch)
        own = bob.client.create_repo("own")["repo"]
        items = [
            {"id": str(number), "parents": [], "author": "", "time": 0, "text": "old"}
            for number in range(1000)
        ]
        bob.client.import_commits("own:main", items, "git")
        enter(page, bob)
        page.evaluate(f"location.hash = '#/{branch}'")
        page.until(f"{ROWS}.length === 4")
        until(lambda: bob.client.show_unseen(branch)["visited"], "the first visit is noted")
        assert (
            page.evaluate("document.querySelectorAll('#timeline > li.fresh, #timeline .since').length") == 0
        )
        assert bob.client.list_unseen()["branches"][0]["repo"] == own
        assert page.evaluate("document.querySelectorAll('[data-branch] .badge').length") == 0
        page.evaluate("location.hash = '#/-/people'")
        page.evaluate(_HIDE % "hidden")
        alice.client.write_post(branch, "later")
        until_equal(alice, bob, branch)
        posts(page)
        page.evaluate(_HIDE % "visible")
        page.until("document.querySelectorAll('#timeline > li.fresh').length === 1")


def test_an_export_is_saved_and_the_log_is_searched(tmp_path: Path, page: Browser) -> None:
    saved = tmp_path / "saved"
    saved.mkdir()
    with peers(tmp_path, "alice") as (alice,):
        alice.client.create_repo("notes")
        enter(page, alice)
        page.save_into(saved)
        open_panel(page, "storage")
        page.click("#export")
        page.click("#save-export")
        until(lambda: any(saved.glob("*.zip")), "it is saved", 60)
        (archive,) = saved.glob("*.zip")
        with zipfile.ZipFile(archive) as packed:
            assert packed.testzip() is None
            assert any("/commits/" in name for name in packed.namelist())
        picture(page, "exported")

        open_panel(page, "log")
        page.until("document.querySelectorAll('.log > li').length >= 2")
        page.fill("#log-filter", "READY")
        page.until("document.querySelectorAll('.log > li').length === 1")
        page.evaluate(
            "const level = document.getElementById('log-level'); level.value = 'error';"
            "level.dispatchEvent(new Event('change', { bubbles: true }))"
        )
        page.until(says("No line fits"))
        page.click("#save-log")
        until(lambda: (saved / "ravel.log").exists(), "the log is saved")
        assert "level='info'" in (saved / "ravel.log").read_text()
        page.evaluate(
            "document.getElementById('log-level').value = '';"
            "document.getElementById('log-level').dispatchEvent(new Event('change', { bubbles: true }))"
        )
        page.fill("#log-filter", "level")
        picture(page, "log")

        open_panel(page, "peers")
        page.evaluate("document.getElementById('join-relay').parentElement.open = true")
        submit(page, "#join-relay", link="ravel:relay:no")
        page.until("document.getElementById('problem').textContent.trim().length > 10")
        picture(page, "join-relay")
        assert [one for one in page.complaints() if "status of 4" not in one] == []
