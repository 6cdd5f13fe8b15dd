"""Real web servers before a node, nginx and Caddy, with the configurations that the pages print.

The text is taken out of the page, so that what it says is what is tried. Only what a test cannot have is exchanged: ports,
names and certificates of others.
"""

import os
import re
import shutil
import socket
import subprocess
import textwrap
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from tests.e2e.cluster import until

PAGES: Final = Path(__file__).resolve().parents[2] / "docs" / "communities"
PROGRAMS: Final = {"nginx": "nginx-light", "caddy": "caddy"}
"""Program -> Debian's package."""
_FENCED: Final = re.compile(r"^( *)```[a-z]*\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
_SET: Final = re.compile(r"^\$ ravel config set (\S+) (.+?)(?: +# .*)?$", re.MULTILINE)
_NGINX: Final = """
daemon off;
pid {folder}/nginx.pid;
error_log stderr;
worker_processes 1;
events {{ }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    scgi_temp_path {folder}/scgi;
    uwsgi_temp_path {folder}/uwsgi;
{blocks}
}}
"""
_CADDY: Final = """
{{
    admin off
    auto_https disable_redirects
    storage file_system {folder}
    servers {{
        protocols h1 h2
    }}
}}
{blocks}
"""


def find_program(name: str) -> str:
    """The path of nginx or Caddy. Without it the test is skipped; in CI it fails."""
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin")  # where Debian puts servers
    if found is None:
        said = f"there is no {name} here, so its configuration was not tried (Debian: apt install {PROGRAMS[name]})"
        assert not os.environ.get("CI"), said
        pytest.skip(said)
    return found


def blocks_below(page: str, heading: str) -> list[str]:
    """The blocks of code of a section of a page, without their indentation."""
    text = (PAGES / page).read_text(encoding="utf-8")
    section = text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return [textwrap.dedent(block) for _, block in _FENCED.findall(section)]


def settings_in(blocks: list[str]) -> dict[str, str]:
    """Setting -> value, of `ravel config set` in these blocks; quotes of the shell are taken off."""
    return {name: value.strip("'\"") for block in blocks for name, value in _SET.findall(block)}


def find_block(blocks: list[str], mark: str) -> str:
    """The one block that has a mark."""
    (found,) = [block for block in blocks if mark in block]
    return found


def exchange(text: str, others: Mapping[str, str]) -> str:
    """The text with other values. Each must stand there: else the page has changed, and the test with it."""
    for old, new in others.items():
        assert old in text, f"{old!r} is not in the page's configuration:\n{text}"
        text = text.replace(old, new)
    return text


@contextmanager
def reserve_port() -> Iterator[int]:
    """A free port of loopback that no other program is given meanwhile; one that takes it by number gets it.

    It is bound and does not listen: with SO_REUSEADDR on both sides a listener may have it, too.
    """
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        yield int(holder.getsockname()[1])


@contextmanager
def nginx(folder: Path, port: int, blocks: str) -> Iterator[None]:
    """nginx with these `server` blocks, of which one listens on a port."""
    command = [find_program("nginx"), "-p", str(folder), "-e", "stderr", "-c", str(folder / "nginx.conf")]
    with _run(folder, "nginx.conf", _NGINX.format(folder=folder, blocks=blocks), command, port):
        yield


@contextmanager
def caddy(folder: Path, port: int, blocks: str) -> Iterator[None]:
    """Caddy with these sites, of which one listens on a port."""
    command = [find_program("caddy"), "run", "--adapter", "caddyfile", "--config", str(folder / "Caddyfile")]
    with _run(folder, "Caddyfile", _CADDY.format(folder=folder, blocks=blocks), command, port):
        yield


@contextmanager
def _run(folder: Path, name: str, text: str, command: list[str], port: int) -> Iterator[None]:
    folder.mkdir()
    (folder / name).write_text(text, encoding="utf-8")
    log = folder / "log"
    environment = {**os.environ, "HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    with log.open("wb") as stream:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream, env=environment
        )
    try:
        until(lambda: _listens(process, port, log), f"{command[0]} listens")
        yield
    finally:
        process.terminate()
        process.wait()


def _listens(process: "subprocess.Popen[bytes]", port: int, log: Path) -> bool:
    assert process.poll() is None, log.read_text()
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0
