"""The page on embedding: its code, run as an app would, and what it says of failures."""

import ast
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from node.runtime.errors import ERROR_KINDS
from ravel import Client
from ravel.home import is_locked
from tests.e2e.cluster import until
from tests.support.processes import RAVEL

PAGE = Path(__file__).parents[2] / "docs/apps/embed.md"
pytestmark = [pytest.mark.slow, pytest.mark.extended]
APP = """
import subprocess, sys, time
daemon = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
daemon.stdin.write(b"of the app")
daemon.stdin.close()
print(daemon.stdout.readline().decode(), flush=True)
time.sleep(600)
"""
"""An app that begins a daemon, and then neither ends it nor heeds it."""
Embedded = Callable[[Path, bytes], AbstractContextManager[Client]]


def test_a_node_lives_as_long_as_its_app_and_keeps_what_it_wrote(tmp_path: Path) -> None:
    text = PAGE.read_text(encoding="utf-8")
    [code] = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(code, str(PAGE), "exec"), names)  # noqa: S102  # what the page says
    names["RAVEL"] = RAVEL
    embedded: Embedded = names["embedded"]
    assert ERROR_KINDS["already_running"].exit_code == names["ALREADY_RUNNING"]
    assert f"{ERROR_KINDS['wrong_passphrase'].exit_code} for a wrong passphrase" in text

    home = tmp_path / "app" / "ravel"
    home.parent.mkdir()
    with embedded(home, b"of the app") as client:
        client.create_repo("notes")
        client.write_post("main", "kept")
        assert home.stat().st_mode & 0o077 == 0
        with embedded(home, b"of the app") as second:
            assert second.show_status()["node"] == client.show_status()["node"], "its daemon is found"
        assert client.show_status()["uptime_seconds"] >= 0, "what only found it does not stop it"
    assert not is_locked(home)
    with (
        pytest.raises(RuntimeError, match=str(ERROR_KINDS["wrong_passphrase"].exit_code)),
        embedded(home, b"no"),
    ):
        pass
    with embedded(home, b"of the app") as client:
        assert [item["text"] for item in client.show_timeline("main")["items"]] == [None, "kept"]
    assert not is_locked(home)
    assert (
        subprocess.run([*RAVEL, "--home", str(home), "status"], capture_output=True, check=False).returncode
        == 13
    )
    if shutil.which("setpriv") is not None:
        _end_with_the_app(home, text)


def _end_with_the_app(home: Path, page: str) -> None:
    """What the page says of apps that are killed."""
    found = re.search(r"`RAVEL = (\[.*?\])`", page, re.DOTALL)
    assert found is not None
    *prefix, ravel = ast.literal_eval(found[1])
    assert ravel == "ravel"
    command = [*prefix, *RAVEL, "--home", str(home), "--passphrase-file", "-", "run"]
    with subprocess.Popen([sys.executable, "-c", APP, *command], stdout=subprocess.PIPE) as app:
        assert app.stdout is not None
        assert app.stdout.readline().startswith(b"ready:")
        app.kill()
    until(lambda: not is_locked(home), "the daemon has ended with the app")
