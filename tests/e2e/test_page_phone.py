"""The page under a finger: everything to press is 44 pixels high, in every view, and nothing runs out sideways."""

import json
from pathlib import Path

import pytest

from tests.e2e.browser import CHROMIUM, Browser
from tests.e2e.cluster import join, peers, until_equal
from tests.e2e.page_steps import PHONE, WIDE, enter, says

pytestmark = [
    pytest.mark.slow,
    pytest.mark.extended,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here (Debian: apt install chromium)"),
]
_OF_BRANCH = (
    *(
        "",
        "for-you",
        "unread",
        "set/Guests",
        "about",
        "members",
        "branches",
        "files",
        "set",
        "dict",
        "text",
        "written",
        "inbox",
        "quorum",
        "search",
    ),
    *("new", "join"),
)
_OF_NODE = (
    *("settings", "people", "devices", "browsers", "peers", "backup", "health", "storage", "tokens"),
    *("report", "log"),
)
# A link in the words that somebody wrote is as high as its line; a box counts with the words beside it,
# and a link that spans its row with the row, where the row's lower edge belongs to the link.
_SMALL = """(() => {
  const found = [];
  for (const one of document.querySelectorAll("a[href], button, summary, select, input, textarea, [role=option]")) {
    if (one.closest(".said, .skip") || !one.checkVisibility({ visibilityProperty: true })) continue;
    const row = one.matches(".whole-row") ? one.closest(".line, .member") : null;
    one.scrollIntoView({ block: "center" });
    const edge = row?.getBoundingClientRect();
    const spans = edge && document.elementFromPoint((edge.left + edge.right) / 2, edge.bottom - 3) === one;
    const box = spans ? row : ["checkbox", "radio"].includes(one.type) ? (one.closest("label") ?? one) : one;
    let { left, right, top, bottom } = box.getBoundingClientRect();
    for (let outer = box.parentElement; outer; outer = outer.parentElement) {
      const { overflowY } = getComputedStyle(outer);
      if (/auto|scroll/.test(overflowY)) break; // it comes into view as one scrolls
      if (!/hidden|clip/.test(overflowY)) continue;
      const clip = outer.getBoundingClientRect();
      [left, right] = [Math.max(left, clip.left), Math.min(right, clip.right)];
      [top, bottom] = [Math.max(top, clip.top), Math.min(bottom, clip.bottom)];
    }
    const [width, height] = [right - left, bottom - top];
    if (width <= 1 || height <= 1) continue; // for readers alone
    if (height < 43.9 || width < 43.9) found.push(`${box.outerHTML.slice(0, 120)} ${width}x${height}`);
  }
  return found;
})()"""


def test_everything_to_press_has_44_pixels_on_a_phone(tmp_path: Path, page: Browser) -> None:
    with peers(tmp_path, "alice", "bob") as (alice, bob):
        _, branch = join(alice, bob)
        bob.client.state_me("Benjamin Theodor Maximilian von Hohenstein-Wittelsbach", color=8)
        post = alice.client.write_post(branch, "Who shuts the cold frames on **Friday**?\n" * 16)
        alice.client.reply_to_post(post["commit"], "I do.")
        alice.client.add_file(branch, b"1,2\n", name="seed-budget.csv")
        alice.client.edit_set(branch, add=["hose", "pots"])
        alice.client.edit_set(branch, add=["twine"])
        alice.client.edit_set(branch, name="Guests", add=["Noor"])
        alice.client.edit_dict(branch, put={"rain": "12 mm"})
        alice.client.create_branch(alice.client.list_repos()["repos"][0]["repo"], "tools")
        until_equal(alice, bob, branch)
        enter(page, alice)
        page.show(*PHONE, "light")
        small: dict[str, list[str]] = {}
        person = f"person/{bob.client.show_status()['user']}"
        for view in (*_OF_BRANCH, f"commit/{post['commit']}", person, *_OF_NODE):
            page.evaluate(f"location.hash = '#/{branch}/{view}'")
            page.until("document.querySelector('.panel, #timeline') && !document.querySelector('.skeleton')")
            page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
            page.until("!document.querySelector('.skeleton')")
            small[view] = page.evaluate(_SMALL)
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), view
        page.evaluate("location.hash = '#/'")
        page.until("document.getElementById('repos').checkVisibility()")
        small["list"] = page.evaluate(_SMALL)
        page.click("#commands")
        page.until("document.querySelectorAll('#found li').length > 5")
        small["palette"] = page.evaluate(_SMALL)
        page.press("Escape", 27)
        page.evaluate("sessionStorage.clear()")
        page.reload()
        page.until("document.getElementById('login')")
        small["login"] = page.evaluate(_SMALL)
        assert "\n".join(f"{view}: {one}" for view, found in small.items() for one in found) == ""
        assert page.complaints() == []


def test_what_was_done_is_said_between_the_newest_post_and_the_field(tmp_path: Path, page: Browser) -> None:
    with peers(tmp_path, "alice") as (alice,):
        alice.client.create_repo("notes")
        for number in range(30):
            alice.client.write_post("main", f"post {number}")
        enter(page, alice)
        page.until("document.querySelectorAll('#timeline > li').length > 20")
        branch = alice.client.list_branches("notes")["branches"][0]["branch"]
        page.evaluate(f"location.hash = '#/{branch}'")
        for size in (WIDE, PHONE):
            page.show(*size, "light")
            for said in ("Saved.", "main was archived, and stands among the others of its repo no more."):
                page.evaluate(
                    "import('/web/state/session.js').then(({ tell }) => "
                    f"tell({json.dumps(said)}, () => {{}}).toString())"
                )
            page.until("document.querySelectorAll('.toast').length === 2")
            page.until(
                "((last, toasts, field) => last.bottom <= toasts.top && toasts.bottom <= field.top)("
                "...['#timeline > li:last-child article', '.toasts', '#write']"
                ".map((one) => document.querySelector(one).getBoundingClientRect()))"
            )
        assert page.complaints() == []


def test_many_repos_and_long_names_run_out_sideways_nowhere(tmp_path: Path, page: Browser) -> None:
    name = "Benjamin-Theodor-Maximilian-von-Hohenstein-Wittelsbach-Lippe"
    assert len(name) == 60
    with peers(tmp_path, "alice") as (alice,):
        alice.client.state_me(name, color=8)
        repos = [alice.client.create_repo(f"{name[:50]} {number}")["repo"] for number in range(43)]
        for number in range(59):
            branch = alice.client.create_branch(repos[0], f"{name[:50]} {number}")["branch"]
        alice.client.write_post(branch, f"{'x' * 300} https://example.org/{'y' * 300}")
        enter(page, alice)
        page.show(*PHONE, "light")
        for view in (
            "",
            f"{branch}",
            f"{branch}/members",
            f"{branch}/about",
            f"{branch}/branches",
            "-/people",
        ):
            page.evaluate(f"location.hash = '#/{view}'")
            page.until("!document.querySelector('.skeleton')")
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), view
        page.evaluate("location.hash = '#/'")
        page.until("document.querySelectorAll('#repos details.repo').length === 43")
        assert page.evaluate("document.querySelectorAll('#repos details.repo[open]').length") <= 1, (
            "they fold"
        )
        names = "[...document.querySelectorAll('#repos details.repo > summary bdi')].map((one) => one.textContent)"
        alice.client.write_post(branch, "the newest of all")
        page.until(f"{names}[0] === {json.dumps(name[:50] + ' 0')}")
        page.click("#filter")
        page.until("document.activeElement.id === 'filter-by'")
        page.type(" 42")
        page.until(f"{names}.join() === {json.dumps(f'{name[:50]} 0,{name[:50]} 42')}")
        shown = page.evaluate("document.querySelectorAll('#repos [data-branch]').length")
        assert shown == 2, "of a repo that is not called so, the branch that is"
        page.press("Escape", 27)
        page.until(f"{names}.length === 43")
        page.evaluate("Date.now = ((now) => () => now() + 40 * 86400000)(Date.now)")
        page.click("#filter")  # the list is drawn again
        page.until(says("42 more repos", "document.querySelector('#quiet > summary')"))
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert page.complaints() == []
