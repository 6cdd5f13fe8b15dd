"""What the pages for developers of apps show runs as it stands there, and gives what it says."""

import re
import subprocess
import sys
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from pycrdt import Doc, Text

from ravel import Client, StreamEvent
from tests.e2e.cluster import Peer, run_ravel, until

pytestmark = [pytest.mark.slow, pytest.mark.extended]
ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "apps" / "python.md"
API_PAGE: Final = ROOT / "docs" / "apps" / "http-api.md"
DATA_PAGE: Final = ROOT / "docs" / "apps" / "data-model.md"
LINES: Final = ROOT / "examples" / "old_branch_lines.py"


def test_the_lines_of_the_page_run(standing: Peer) -> None:
    section = PAGE.read_text().partition("## Keep and find\n")[2].partition("\n## ")[0]
    keep, find = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    names: dict[str, Any] = {"client": standing.client}
    exec(keep, names)  # noqa: S102  # lines of our own page
    assert names["said"] == ["On tangles", "Worth reading twice."]
    assert names["marks"][names["post"]] == "read"
    assert {"bread", "tea"} <= set(names["items"])

    def is_found() -> bool:
        exec(find, names)  # noqa: S102  # a snippet of the docs
        return ("post", names["post"], "On tangles") in names["hits"]

    until(is_found, "the index")
    window = standing.client.show_timeline("notes:main", order="time", limit=1)
    older = standing.client.show_timeline("notes:main", order="time", limit=1, before=str(window["previous"]))
    assert window["items"] != older["items"]


def test_the_lines_about_comments_run(standing: Peer) -> None:
    section = PAGE.read_text().partition("## Comments\n")[2].partition("\n## ")[0]
    [block] = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    names: dict[str, Any] = {"client": standing.client}
    exec(block, names)  # noqa: S102  # lines of our own page
    assert names["shown"] == ["Is that right?"]


def test_an_editor_types_as_the_page_of_the_data_model_says(standing: Peer) -> None:
    [block] = re.findall(r"```python\n(.*?)```", DATA_PAGE.read_text(), re.DOTALL)
    names: dict[str, Any] = {"client": standing.client}
    exec(block.replace('"main"', '"notes:main"'), names)  # noqa: S102  # lines of our own page
    pulled = Doc[Any]()
    pulled.apply_update(b64decode(standing.client.pull_text("notes:main")["update"]))
    assert str(pulled.get("notes", type=Text)) == "first "


def test_lines_of_a_branch_are_imported_as_they_were(standing: Peer, tmp_path: Path) -> None:
    command = [sys.executable, str(LINES), str(standing.home), "notes:main"]
    done = subprocess.run(command, capture_output=True, check=True)
    (tmp_path / "main.jsonl").write_bytes(done.stdout)
    standing.client.create_branch("notes", "carried")
    run_ravel(standing, "import", "jsonl", str(tmp_path / "main.jsonl"), "--branch", "notes:carried")
    texts = [
        [item["text"] for item in standing.client.show_timeline(branch, limit=1000)["items"] if item["text"]]
        for branch in ("notes:main", "notes:carried")
    ]
    assert [text for text in texts[1] if not text.startswith("(")] == texts[0]


class _Bounded:
    """A client whose streams end after a change of a dict, as a program would end them."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def __getattr__(self, name: str) -> object:
        return getattr(self._client, name)

    @contextmanager
    def watch_edits(self, branch: str, *, since: str) -> Iterator[Iterator[StreamEvent]]:
        with self._client.watch_edits(branch, since=since) as events:
            yield _up_to_a_dict(events)


def _up_to_a_dict(events: Iterator[StreamEvent]) -> Iterator[StreamEvent]:
    for event in events:
        yield event
        if event.data.get("item", {}).get("kind") == "dict":
            return


def test_the_python_of_the_api_page_runs(standing: Peer, capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"```python\n(.*?)```", API_PAGE.read_text(), re.DOTALL)
    assert len(blocks) == 2
    standing.client.edit_dict("notes:main", put={"read": "yes"})
    names: dict[str, Any] = {"client": _Bounded(standing.client)}
    for block in blocks:
        exec(block.replace('"main"', '"notes:main"'), names)  # noqa: S102  # lines of our own page
    assert {"notes/a.txt", "notes/b.txt"} <= {
        one["name"] for one in standing.client.list_files("notes:main")["files"]
    }
    assert "'read'" in capsys.readouterr().out


def test_no_page_names_a_package_that_is_on_no_index() -> None:
    pages = [
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("clients/*/*.md"),
        *ROOT.glob("examples/*.py"),
        ROOT / "README.md",
    ]
    pages += [*ROOT.glob("clients/python/ravel/**/*.py"), *ROOT.glob("node/home/*.py")]
    named = re.compile(
        r"pip install [^`\n]*(?<![/.\w])'?ravel-(client|node)(?![\w-]*\.whl)(?!\[[a-z0-9,]*\] @)"
    )
    assert [str(page) for page in pages if named.search(page.read_text())] == []
