"""Steps that journeys through the page have in common.

With `RAVEL_SCREENSHOTS` naming a folder, `picture` leaves pictures there: light, dark, and on a phone.
"""

import json
import os
from pathlib import Path
from typing import Final

import pytest

from tests.e2e.browser import Browser
from tests.e2e.cluster import Peer, run_ravel

ROWS: Final = "[...document.querySelectorAll('#timeline > li')].reverse()"
"""Rows of the timeline, the newest first: it stands at the end."""
WIDE: Final = (1400, 900)
PHONE: Final = (390, 844)
_OF_COLORS: Final = ("color-contrast", "link-in-text-block")
"""Rules of axe-core about what differs between themes."""


def enter(page: Browser, peer: Peer) -> None:
    """Open a node's page with a code, and wait for its list."""
    page.open(json.loads(run_ravel(peer, "open", "--no-browser", "--json").stdout)["address"])
    page.until("document.getElementById('repos') && !document.querySelector('#repos .skeleton')")


def picture(page: Browser, name: str) -> None:
    """Look at it in both themes and on a phone, and find no barriers; keep the pictures if they are wanted."""
    folder = os.environ.get("RAVEL_SCREENSHOTS")
    for size, theme in ((WIDE, "light"), (WIDE, "dark"), (PHONE, "light")):
        if theme == "dark" and not page.has_themes:
            continue
        page.show(*size, theme)
        page.until(
            "!document.getAnimations().some((one) => one.playState === 'running' && !one.effect.target.closest('.skeleton'))"
        )
        if page.shows_barriers:
            assert page.barriers(_OF_COLORS if theme == "dark" else ()) == [], (name, size, theme)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (name, size, theme)
        if folder:
            page.screenshot(Path(folder) / f"{name}-{size[0]}-{theme}.png")
    page.show(*WIDE, "light")


def says(text: str, where: str = "document.body") -> str:
    """An expression: whether an element has a text."""
    return f"{where}?.textContent.includes({json.dumps(text)})"


def open_panel(page: Browser, panel: str, argument: str = "") -> None:
    """Open a panel, and wait until it is loaded."""
    page.evaluate(
        "location.hash = ['#',"
        "location.hash.split('/')[1] || document.querySelector('[data-branch]')?.dataset.branch || '-',"
        f"'{panel}', '{argument}'].join('/')"
    )
    page.until("document.querySelector('.panel') && !document.querySelector('.panel .skeleton')")


def open_person(page: Browser, name: str) -> None:
    """Open what is known of a member, beside the list of members."""
    rows = "[...document.querySelectorAll('#members .whole-row')]"
    row = f"{rows}.find((one) => one.textContent.includes({json.dumps(name)}))"
    page.until(row)
    page.evaluate(f"{row}.click()")
    page.until("document.querySelector('#person') && !document.querySelector('#person .skeleton')")


def posts(page: Browser) -> None:
    """Go from a panel to the posts of the branch, and wait for them."""
    page.evaluate("location.hash = location.hash.split('/').slice(0, 2).join('/')")
    page.until("document.getElementById('timeline')")


def submit(page: Browser, form: str, **fields: str) -> None:
    """Fill a form and send it."""
    for name, value in fields.items():
        page.fill(f"{form} [name={name}]", value)
    page.click(f"{form} > button")


def join_by_link(page: Browser, link: str) -> None:
    """Paste a link, see what it holds, and join, ask or read by it."""
    page.fill("#join-repo [name=link]", link)
    page.until("document.getElementById('link-holds')")
    page.click("#join-repo > button")


def by_command(page: Browser, asked: str) -> None:
    """Run a command by its name, as by keyboard alone: Ctrl+K, some letters, Enter."""
    press_with(page, "k", 75, 2)
    page.until("document.activeElement.id === 'command'")
    page.type(asked)
    page.until("document.querySelector('#found [aria-selected=true]')")
    page.press("Enter", 13, "\r")
    page.until("!document.getElementById('palette')")


def tab_to(page: Browser, selector: str, presses_max: int = 60) -> None:
    """Press Tab until an element has the focus."""
    for _ in range(presses_max):
        if page.evaluate(f"document.activeElement.matches({json.dumps(selector)})"):
            return
        page.press("Tab", 9)
    raise AssertionError(f"{presses_max} presses of Tab do not reach {selector}")


def press_on(page: Browser, selector: str) -> None:
    """Go to an element by Tab once it is there, and press Enter on it."""
    if not page.presses_buttons:
        pytest.skip("Firefox, driven so, does not press a button by Enter")
    page.until(f"document.querySelector({json.dumps(selector)})")
    tab_to(page, selector)
    page.press("Enter", 13, "\r")


def retype(page: Browser, selector: str, said: str) -> None:
    """Go to a field by Tab, type something in place of what is there, and press Enter."""
    page.until(f"document.querySelector({json.dumps(selector)})")
    tab_to(page, selector)
    page.select_all()
    page.type(said)
    page.press("Enter", 13, "\r")


def choose_by_key(page: Browser, selector: str, path: Path) -> None:
    """Press a button that asks for files, and choose one."""
    page.choose_in_dialog(lambda: press_on(page, selector), path)


def write_by_keys(page: Browser, said: str) -> None:
    """Write a post in the branch that is shown."""
    by_command(page, "write a")
    page.until("document.activeElement.id === 'text'")
    page.type(said)
    press_with(page, "Enter", 13, 2)
    page.until(says(said, f"{ROWS}[0]"))


def press_with(page: Browser, key: str, code: int, modifiers: int) -> None:
    """Press a key with others held: 2 is Ctrl."""
    page.press(key, code, modifiers=modifiers)
