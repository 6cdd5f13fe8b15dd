"""Files on long ways: a GiB between two members behind symmetric routers, and one whose holder moves meanwhile. `make nets`.

The first two know an invitation and a relay, and also write one text. All bytes go through the relay, at the rate that it
allows a peer; MIB=256 makes the file smaller.
"""

import hashlib
import os
import time
from base64 import b64decode
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import pytest
from pycrdt import Doc, Text

from protocol.limits.formats import MIB
from tests.e2e.cluster import until
from tests.networks.cases import PAIRS, join, members, path_of
from tests.networks.kernel_nets import Machine
from tests.networks.routers import RouterKind
from tests.networks.test_moving import joined
from tests.support.machine import patience
from tests.support.processes import run_command

pytestmark = pytest.mark.slow

_SIZE: Final = int(os.environ.get("MIB", "1024")) * MIB
_LINES: Final = 20
_MOVED_SIZE: Final = 8 * MIB


def _type(machine: Machine, name: str) -> None:
    """Write lines into the text, each after what is there, as an editor does."""
    client = machine.client.open_text("main")["client"]
    for number in range(_LINES):
        editor: Doc[Text] = Doc(client_id=client)  # it goes on where the text stands
        editor.apply_update(b64decode(machine.client.pull_text("main")["update"]))
        before = editor.get_state()
        text = editor.get("text", type=Text)
        text += f"{name} {number}\n"
        machine.client.push_text("main", editor.get_update(before))


def _read(machine: Machine) -> str:
    return machine.client.pull_text("main", root="text")["text"] or ""


def _digest(path: Path) -> str:
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def test_two_behind_symmetric_routers_write_one_text_and_exchange_a_file(tmp_path: Path) -> None:
    case = PAIRS[RouterKind.SYMMETRIC, RouterKind.SYMMETRIC]
    with members(tmp_path, case) as found:
        alice, bob = found.alice, found.bob
        assert join(case, found, patience(30)).path == "relayed"
        until(
            lambda: all(one["permission"] == "write" for one in bob.client.list_repos()["repos"]),
            "bob is a member",
        )
        with ThreadPoolExecutor() as pool:
            list(pool.map(_type, (alice, bob), ("alice", "bob")))
        until(lambda: _read(alice) == _read(bob), "both show one text")
        lines = _read(alice).splitlines()
        assert sorted(lines) == sorted(
            f"{name} {number}" for name in ("alice", "bob") for number in range(_LINES)
        )
        source, target = tmp_path / "source", tmp_path / "target"
        with source.open("wb") as content:
            for _ in range(_SIZE // MIB):
                content.write(os.urandom(MIB))
        alice.run("file", "add", "main", str(source))
        until(lambda: bool(bob.client.list_files("main")["files"]), "bob knows the file")
        began = time.monotonic()
        bob.run("file", "get", "main", "source", "--out", str(target))
        seconds = time.monotonic() - began
        print(f"{_SIZE // MIB} MiB in {seconds:.0f} s: {_SIZE / MIB / seconds:.1f} MiB/s")
        assert _digest(target) == _digest(source)
        assert path_of(bob, found.keys[0]) == "relayed"


def test_a_file_arrives_though_who_has_it_moves_meanwhile(tmp_path: Path) -> None:
    """The command may end meanwhile, and says that it goes on when it is run again."""
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(os.urandom(_MOVED_SIZE))
    with joined(tmp_path, rate=_MOVED_SIZE / 4) as net:
        # Alice alone has it: it is too large for the relay.
        net.alice.run("file", "add", "main", str(source))
        until(lambda: bool(net.bob.client.list_files("main")["files"]), "bob knows the file")

        def get() -> bool:
            command = ("--home", str(net.bob.home), "file", "get", "main", "source", "--out", str(target))
            with net.bob.place():
                return run_command(command, forks=False).returncode == 0

        began = net.wire.carried
        with ThreadPoolExecutor() as pool:
            getting = pool.submit(get)
            until(lambda: net.wire.carried - began > _MOVED_SIZE / 2, "some of it has come")
            assert not getting.done()
            net.move("alice")
            is_here = getting.result()
        if not is_here:
            until(get, "the rest comes from alice's new address", 120)
        assert _digest(target) == _digest(source)
