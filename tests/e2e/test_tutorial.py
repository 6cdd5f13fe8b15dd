"""The tutorial's app and the two that it names, run as it says, with real nodes."""

import re
import subprocess
import sys
from functools import partial
from pathlib import Path

import httpx
import pytest

from tests.e2e.cluster import Peer, join, peers, run_ravel, until, until_equal

pytestmark = pytest.mark.slow
EXAMPLES = Path(__file__).parents[2] / "examples"


def _app(name: str, *arguments: str) -> "subprocess.Popen[str]":
    command = [sys.executable, str(EXAMPLES / name), *arguments]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_the_tutorials_app_writes_reads_and_follows(tmp_path: Path) -> None:
    text = (EXAMPLES.parent / "docs/apps/tutorial.md").read_text()
    [code] = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    [(home, create)] = re.findall(r"^\$ ravel --home (\S+) (token create .*) > token$", text, re.MULTILINE)
    with peers(tmp_path, "alice") as (alice,):
        alice.client.create_repo("notes")
        (tmp_path / "token").write_text(run_ravel(alice, *create.split()).stdout)
        (tmp_path / "notebook.py").write_text(code.replace(home, str(alice.home)))

        def start(*words: str) -> "subprocess.Popen[str]":
            command = [sys.executable, "-u", "notebook.py", *words]
            return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=tmp_path)

        for words in ((), ("add",)):
            told = subprocess.run(
                [sys.executable, "notebook.py", *words], stderr=subprocess.PIPE, text=True, cwd=tmp_path
            )
            assert "notebook.py add TEXT | list | follow" in told.stderr
            assert "Traceback" not in told.stderr
        commit = start("add", "first note").communicate()[0].strip()
        assert start("list").communicate()[0].splitlines()[-1].endswith(" first note")
        follow = start("follow")
        assert follow.stdout is not None
        assert [follow.stdout.readline().split()[0] for _ in range(2)] == ["reset", "edit"]
        assert follow.stdout.readline().split() == ["edit", "insert", commit[:12]]
        follow.kill()
        follow.communicate()


def test_the_page_of_json_documents_runs_as_it_says(tmp_path: Path) -> None:
    text = (EXAMPLES.parent / "docs/apps/json.md").read_text()
    edit, find, declare, check = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    with peers(tmp_path, "alice") as (alice,):
        alice.client.create_repo("friends")
        code = f"{edit}\n{find}\n{declare}\n".replace(
            "ravel.connect()", f"ravel.connect({str(alice.home)!r})"
        )
        code += "".join(f"    {line}\n" for line in check.splitlines())
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    shown, followed, *found, faults = done.stdout.splitlines()
    assert shown == followed
    assert found == ["card/1 2026-03-01", "['card/1'] [] [] []"]
    assert ("'title': 'Tea', 'votes': 1}]" in shown, faults) == (True, "[]")


def test_the_examples_stay_short() -> None:
    for name in ("chat.py", "shopping.py"):
        assert len((EXAMPLES / name).read_text().splitlines()) < 100


@pytest.mark.extended
def test_two_people_chat_and_see_one_order(tmp_path: Path) -> None:
    with peers(tmp_path, "alice", "bob") as (alice, bob):
        _, branch = join(alice, bob)
        until(lambda: bob.client.list_repos()["repos"][0]["permission"] == "write", "bob may write")
        chats = [_app("chat.py", str(peer.home), branch) for peer in (alice, bob)]
        for number, chat in enumerate(chats):
            assert chat.stdin is not None
            chat.stdin.write(f"hello from {number}\n")
            chat.stdin.flush()
        until(lambda: len(_posts(alice, branch)) == len(_posts(bob, branch)) == 2, "both have both")
        for chat in chats:
            assert chat.stdout is not None
            shown: list[str] = []
            while len(shown) < 2:  # the screens come one after another, an empty line before each
                line = chat.stdout.readline().strip()
                shown = [*shown, line] if line else []
            assert [line.split("> ")[1] for line in shown] == _posts(alice, branch)
            chat.kill()
            chat.communicate()


def _posts(peer: Peer, branch: str) -> list[str]:
    return [
        item["text"]
        for item in peer.client.show_timeline(branch, after_position=-1, limit=100)["items"]
        if item["text"]
    ]


@pytest.mark.extended
def test_a_shopping_list_is_one_also_after_time_apart(tmp_path: Path) -> None:
    with peers(tmp_path, "alice", "bob") as (alice, bob):
        _, branch = join(alice, bob)
        until(lambda: bob.client.list_repos()["repos"][0]["permission"] == "write", "bob may write")
        apps = [_app("shopping.py", str(peer.home), branch, "0") for peer in (alice, bob)]
        pages = [app.stdout.readline().strip() for app in apps if app.stdout is not None]
        assert httpx.post(pages[0], data={"add": "pears & plums"}).headers["location"] == "/"
        until(lambda: "pears &amp; plums" in httpx.get(pages[1]).text, "bob sees it")
        httpx.post(pages[1], data={"remove": "pears & plums"})
        httpx.post(pages[0], data={"add": "tea"})
        until_equal(alice, bob, branch)
        for page in pages:
            until(partial(_shows_tea_alone, page), "all see the tea and no pears")
        assert (
            httpx.post(pages[0], data={"add": "x"}, headers={"Origin": "http://evil.example"}).status_code
            == 403
        )
        for app in apps:
            app.kill()
            app.communicate()


def _shows_tea_alone(page: str) -> bool:
    text = httpx.get(page).text
    return "tea" in text and "pears" not in text
