"""JavaScript in Node: the client against servers that cut and refuse, and against a real node; and modules of the page."""

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

from tests.e2e.cluster import peers

NODE: Final = shutil.which("node")
FOLDER: Final = Path(__file__).parents[2] / "clients" / "js"
PAGE: Final = Path(__file__).parents[2] / "node" / "web"


def _is_new_enough() -> bool:
    if NODE is None:
        return False
    shown = subprocess.run([NODE, "--version"], check=True, capture_output=True, text=True).stdout
    found = re.match(r"v(\d+)\.(\d+)", shown)
    return found is not None and (int(found[1]), int(found[2])) >= (20, 3)


pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not _is_new_enough(), reason="there is no Node 20.3 here (Debian: apt install nodejs)"
    ),
]


def _run(name: str, **more: str) -> None:
    assert NODE is not None
    # No proxy of this machine stands between the client and a server on loopback.
    environment = {key: value for key, value in os.environ.items() if "proxy" not in key.lower()} | more
    done = subprocess.run(
        [NODE, "--test", str(FOLDER / "test" / name)],
        env=environment,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.extended
def test_cut_and_refused_requests() -> None:
    _run("cut.test.js")


@pytest.mark.parametrize("name", ["session", "devices", "groups", "people", "said", "strings"])
def test_modules_of_the_page(tmp_path: Path, name: str) -> None:
    assert NODE is not None
    for folder in ("client", "parts", "state", "strings", "vendor", "views"):
        shutil.copytree(PAGE / folder, tmp_path / folder)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    test = f"{name}.test.js"
    shutil.copy(Path(__file__).with_name(test), tmp_path)
    done = subprocess.run([NODE, "--test", str(tmp_path / test)], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.extended
def test_a_real_node(tmp_path: Path) -> None:
    with peers(tmp_path, "alice") as (alice,):
        token = (alice.home / "api-token").read_text().strip()
        _run("node.test.js", RAVEL_TEST_URL=str(alice.client.url), RAVEL_TEST_TOKEN=token)
