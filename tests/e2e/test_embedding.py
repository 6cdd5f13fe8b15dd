"""The how-to on embedding: its code, run as an app would, and what it says of failures."""

import re
import subprocess
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from node.runtime.errors import ERROR_KINDS
from ravel import Client
from ravel.home import is_locked
from tests.support.processes import RAVEL

PAGE = Path(__file__).parents[2] / "docs/how-to/embed-ravel.md"
pytestmark = [pytest.mark.slow, pytest.mark.extended]
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
