"""The poll and the board of examples/ in a real browser, from a server of another origin; and what other pages get."""

import http.server
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from ravel.home import read_run_file
from tests.e2e.browser import CHROMIUM, Browser
from tests.e2e.cluster import Peer, join, peers, run_ravel, until, until_equal

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/apps/browser.md"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here (Debian: apt install chromium)"),
]


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Nothing on the terminal."""


@contextmanager
def _serving(folder: Path) -> Iterator[int]:
    """What `python -m http.server` does, on a free port."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


def _connect(page: Browser, peer: Peer, token: str, voter: str) -> None:
    page.until("document.querySelector('#connect [name=url]')")
    page.evaluate("for (const field of document.querySelectorAll('#connect input')) field.value = ''")
    url = f"http://{read_run_file(peer.home).api}"
    for name, value in (("url", url), ("branch", "friends:main"), ("token", token), ("voter", voter)):
        page.fill(f"#connect [name={name}]", value)
    page.click("#connect button")


def _ask(page: Browser, form: str, name: str, value: str) -> None:
    page.fill(f"#{form} [name={name}]", value)
    page.click(f"#{form} button")


@pytest.mark.extended
def test_a_poll_is_kept_by_pages_of_one_origin_alone(tmp_path: Path, page: Browser) -> None:
    with (
        peers(tmp_path, "alice") as (alice,),
        _serving(ROOT) as port,
    ):
        alice.client.create_repo("friends")
        origin = f"http://localhost:{port}"
        command = re.search(r"^\$ ravel (token create .*)$", PAGE.read_text(), re.MULTILINE)
        assert command is not None
        words = command[1].replace("http://localhost:8000", origin).split()
        token = run_ravel(alice, *words).stdout.strip()
        assert f"pages of {origin}" in run_ravel(alice, "token", "list").stdout

        page.open(f"http://127.0.0.1:{port}/examples/poll/")
        _connect(page, alice, token, "mallory")
        page.until("document.getElementById('message').textContent.includes('does not answer')")
        assert page.evaluate("document.getElementById('poll').hidden"), (
            "a page of another origin gets nothing"
        )

        page.open(f"{origin}/examples/poll/")
        _connect(page, alice, token, "ann")
        page.until("!document.getElementById('poll').hidden")
        _ask(page, "ask", "question", "What shall we <b>drink</b>?")
        page.until("document.getElementById('question').textContent === 'What shall we <b>drink</b>?'")
        for option in ("tea", "coffee"):
            _ask(page, "add", "option", option)
        page.until("document.querySelectorAll('#options li').length === 2")
        page.evaluate("document.querySelectorAll('#options button')[1].click()")
        page.until("document.getElementById('options').innerText.includes('tea: 1')")
        alice.client.edit_dict("friends:main", put={"poll/vote/bob": "tea"})
        page.until("document.getElementById('options').innerText.includes('tea: 2')")
        assert page.barriers() == []
        run_ravel(alice, "token", "revoke", "poll", "--yes")
        page.evaluate("document.querySelectorAll('#options button')[0].click()")
        page.until("document.getElementById('message').textContent !== ''")
        assert [said for said in page.complaints() if "Security Policy" in said] == []


@pytest.mark.extended
def test_a_board_is_kept_by_a_page_and_a_program_at_once(tmp_path: Path, page: Browser) -> None:
    with (
        peers(tmp_path, "alice") as (alice,),
        _serving(ROOT) as port,
    ):
        alice.client.create_repo("friends")
        origin = f"http://localhost:{port}"
        words = f"token create --name board --branch friends:main --actions read,write --origin {origin}"
        token = run_ravel(alice, *words.split()).stdout.strip()
        page.open(f"{origin}/examples/board/")
        page.until("document.querySelector('#connect [name=url]')")
        page.evaluate("document.querySelector('#connect [name=url]').value = ''")
        url = f"http://{read_run_file(alice.home).api}"
        for name, value in (("url", url), ("branch", "friends:main"), ("token", token)):
            page.fill(f"#connect [name={name}]", value)
        page.click("#connect button")
        page.until("document.querySelectorAll('section').length === 3")
        page.fill("section form [name=title]", "buy <b>tea</b>")
        page.click("section form button")
        page.until("document.querySelectorAll('article').length === 1")
        board = alice.client.document("friends:main", "board")
        (card,) = board.read()["value"]["todo"]
        assert card["title"] == "buy <b>tea</b>"
        board.add("votes", 3, item=card["$id"])
        page.until("document.querySelector('article').innerText.includes('buy <b>tea</b> (3)')")
        page.evaluate("[...document.querySelectorAll('article button')].at(-2).click()")
        page.until("document.querySelectorAll('section')[1].querySelector('article')")
        assert board.read()["value"] == {"todo": [], "doing": [{**card, "votes": 3}]}
        assert page.barriers() == []
        assert [said for said in page.complaints() if "Security Policy" in said] == []


@pytest.mark.extended
def test_a_board_is_kept_by_a_page_and_a_program_on_nodes_that_are_apart(
    tmp_path: Path, page: Browser
) -> None:
    with (
        peers(tmp_path, "alice", "bob") as (alice, bob),
        _serving(ROOT) as port,
    ):
        _, branch = join(alice, bob)
        until(lambda: bob.client.list_repos()["repos"][0]["permission"] == "write", "bob may write")
        origin = f"http://localhost:{port}"
        words = f"token create --name board --branch {branch} --actions read,write --origin {origin}"
        token = run_ravel(alice, *words.split()).stdout.strip()
        page.open(f"{origin}/examples/board/")
        page.until("document.querySelector('#connect [name=url]')")
        page.evaluate("document.querySelector('#connect [name=url]').value = ''")
        api = read_run_file(alice.home).api
        for name, value in (("url", f"http://{api}"), ("branch", branch), ("token", token)):
            page.fill(f"#connect [name={name}]", value)
        page.click("#connect button")
        _ask_board(page, "buy tea")
        page.until("document.getElementById('boards').innerText.includes('board: 1 open')")
        until_equal(alice, bob, branch)

        bob.stop()
        _ask_board(page, "from the page, alone")
        page.evaluate("[...document.querySelectorAll('article button')][1].click()")  # tea is begun
        page.until("document.querySelectorAll('section')[1].querySelector('article')")
        alice.stop()
        bob.start()
        terminal = _terminal(bob, branch)
        assert terminal.stdin is not None
        for line in ("add from a terminal, alone", "vote 0", "move 0 done"):
            print(line, file=terminal.stdin, flush=True)
        shown = bob.client.document(branch, "board")
        until(lambda: len(shown.read()["value"].get("done", [])) == 1, "bob's edits are written")
        alice.start("--api", api)
        until_equal(alice, bob, branch)
        value = alice.client.document(branch, "board").read()["value"]
        assert value == shown.read()["value"]
        votes = {card["title"]: card.get("votes") for cards in value.values() for card in cards}
        assert votes == {
            "buy tea": 1,
            "from the page, alone": None,
            "from a terminal, alone": None,
        }
        for title in votes:
            page.until(f"document.getElementById('columns').innerText.includes('{title}')")
        page.until("document.getElementById('boards').innerText.includes('board: ')")
        assert "from the page, alone" in terminal.communicate()[0], "shown by a query that is followed"


def _ask_board(page: Browser, title: str) -> None:
    count = page.evaluate("document.querySelectorAll('article').length")
    page.until("document.querySelectorAll('section').length === 3")
    page.fill("section form [name=title]", title)
    page.click("section form button")
    page.until(f"document.querySelectorAll('article').length === {count + 1}")


def _terminal(peer: Peer, branch: str) -> "subprocess.Popen[str]":
    command = [sys.executable, str(ROOT / "examples/board.py"), str(peer.home), branch]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_blocks_of_the_page_name_what_the_client_has() -> None:
    [block] = re.findall(r"```js\n(.*?)```", PAGE.read_text(), re.DOTALL)
    used = set(re.findall(r"ravel\.(\w+)\(", block))
    types = (ROOT / "clients/js/ravel.d.ts").read_text()
    assert used == {name for name in used if f"  {name}(" in types}
    app = (ROOT / "examples/poll/poll.js").read_text()
    assert used <= set(re.findall(r"ravel\.(\w+)\(", app))
    assert len(app.splitlines()) < 150
