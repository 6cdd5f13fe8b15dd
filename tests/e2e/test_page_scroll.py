"""What one reads stays where it is: posts that come in above or below are counted, and a button leads to them."""

from pathlib import Path

import pytest

from tests.e2e.browser import CHROMIUM, Browser
from tests.e2e.cluster import join, peers, until_equal
from tests.e2e.page_steps import PHONE, enter, picture, says

pytestmark = [
    pytest.mark.slow,
    pytest.mark.extended,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here (Debian: apt install chromium)"),
]
_EYE = """(() => {
  const place = document.getElementById("posts").getBoundingClientRect();
  const rows = [...document.querySelectorAll("#timeline article")];
  const row = rows.find((one) => one.getBoundingClientRect().top >= place.top);
  return [row.dataset.main, Math.round(row.getBoundingClientRect().top - place.top)];
})()"""

_AT_END = """(() => {
  const { scrollTop, scrollHeight, clientHeight } = document.getElementById("posts");
  return scrollHeight - scrollTop - clientHeight < 2;
})()"""


def test_posts_that_come_in_above_and_below_leave_what_one_reads_at_its_place(
    tmp_path: Path, page: Browser
) -> None:
    with peers(tmp_path, "alice", "bob") as (alice, bob):
        _, branch = join(alice, bob)
        alice.client.write_post(branch, "begun together")
        until_equal(alice, bob, branch)
        alice.stop()
        late = [bob.client.write_post(branch, f"late {number}\n" * 3)["commit"] for number in range(3)]
        bob.stop()
        alice.start()
        for number in range(70):
            alice.client.write_post(branch, f"post {number}")
        enter(page, alice)
        page.evaluate(f"location.hash = '#/{branch}'")
        page.until(says("post 69", "document.getElementById('timeline')"))
        page.until(_AT_END)
        alice.client.write_post(branch, "who is at the end follows")
        page.until(says("at the end follows", "document.getElementById('timeline')"))
        page.until(_AT_END)
        assert page.evaluate("document.getElementById('new-below')") is None

        page.evaluate("document.querySelectorAll('#timeline article')[20].scrollIntoView({ block: 'start' })")
        page.until("document.querySelectorAll('#timeline article').length > 70")
        page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        before = page.evaluate(_EYE)
        bob.start()
        page.until("document.getElementById('new-above')?.textContent === '3 came in above'")
        assert page.evaluate(_EYE) == before
        bob.client.write_post(branch, "and one below")
        page.until("document.getElementById('new-below')?.textContent === '1 new post'")
        assert page.evaluate(_EYE) == before
        picture(page, "arrivals")
        page.click("#new-above")
        page.until(f"document.activeElement.dataset.main === {late[0]!r}")
        page.until("!document.getElementById('new-above')")
        page.click("#new-below")
        page.until(f"{says('and one below', 'document.activeElement')}")
        page.until("!document.getElementById('new-below')")

        page.evaluate("document.getElementById('posts').scrollTop = 0")
        page.show(*PHONE, "light")
        page.fill("#text", "my own post leads to the end")
        page.evaluate("document.getElementById('write').requestSubmit()")
        page.until(says("leads to the end", "document.getElementById('timeline')"))
        page.until(_AT_END)
        assert page.complaints() == []
