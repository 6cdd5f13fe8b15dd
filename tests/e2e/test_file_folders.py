"""Folders through a real daemon: many files by one command, cut anywhere, and again."""

import json
import random
import re
import subprocess
from pathlib import Path

import pytest

from node.runtime.errors import ERROR_KINDS
from tests.e2e.cluster import JsonObject, Peer, peers, run_ravel, until
from tests.support.machine import patience
from tests.support.processes import RAVEL

pytestmark = pytest.mark.slow


def _listed(peer: Peer) -> list[str]:
    names: list[str] = []
    after: int | None = 0
    while after is not None:
        window = peer.client.list_files("main", after=after, limit=1000)
        names += [file["name"] for file in window["files"]]
        after = window["next"]
    return names


def _add(peer: Peer, *arguments: object) -> JsonObject:
    done = run_ravel(peer, "file", "add", "main", *map(str, arguments), "--json")
    answer: JsonObject = json.loads(done.stdout)
    return answer


@pytest.mark.extended
def test_a_folder_goes_in_by_one_command_and_a_second_changes_nothing(tmp_path: Path) -> None:
    folder, noise = tmp_path / "photos", random.Random(1)
    for number in range(1200):
        path = folder / str(number % 7) / f"{number} ü.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(noise.randbytes(number))
    (folder / "large").write_bytes(noise.randbytes(9_000_000))
    (folder / ".cache").mkdir()
    (folder / "link").symlink_to("/etc/passwd")
    alone = tmp_path / "alone"
    alone.write_bytes(b"content")
    with peers(tmp_path, "alice") as (alice,):
        alice.client.create_repo("notes")
        first = _add(alice, folder, alone)
        size = 9_000_007 + sum(range(1200))
        assert first == {
            "files": 1202,
            "added": 1202,
            "already": 0,
            "bytes": size,
            "skipped": 2,
            "first_skipped": [
                {"path": str(folder / ".cache"), "reason": "hidden"},
                {"path": str(folder / "link"), "reason": "link"},
            ],
        }
        wanted = sorted(
            f"photos/{path.relative_to(folder)}"
            for path in folder.rglob("*")
            if path.is_file() and not path.is_symlink()
        )
        assert sorted(_listed(alice)) == ["alone", *wanted]
        run_ravel(alice, "file", "get", "main", "photos/1/1 ü.jpg", "-o", str(tmp_path / "out"))
        assert (tmp_path / "out").read_bytes() == (folder / "1" / "1 ü.jpg").read_bytes()
        run_ravel(alice, "file", "get", "main", "photos/large", "-o", str(tmp_path / "out large"))
        assert (tmp_path / "out large").read_bytes() == (folder / "large").read_bytes()
        back = tmp_path / "back"
        got = run_ravel(alice, "file", "get", "main", "photos/3/", "-o", str(back), "--json").stdout
        assert json.loads(got)["files"] == 171
        assert {one.name: one.read_bytes() for one in back.iterdir()} == {
            one.name: one.read_bytes() for one in (folder / "3").iterdir()
        }
        refused = run_ravel(alice, "file", "get", "main", "photos/3", "-o", str(back), code=6).stderr
        assert "--force" in refused
        (folder / "new").write_bytes(b"new")
        again = run_ravel(alice, "file", "add", "main", str(folder), str(alone))
        assert "Added 1 file. " in again.stdout
        assert f"{folder}/link  (link)" in again.stdout
        assert f"read {size + 3} of {size + 3} bytes" in again.stderr
        one = _add(alice, alone)
        assert (one["name"], one["size"], one["is_new"]) == ("alone", 7, False)
        assert len(_listed(alice)) == 1203
        for arguments in (
            ("-", str(alone)),
            (str(alone), str(alone)),
            (str(folder), str(alone), "--name", "x"),
        ):
            run_ravel(
                alice, "file", "add", "main", *arguments, code=ERROR_KINDS["bad_request"].exit_code, stdin="x"
            )


@pytest.mark.extended
def test_a_daemon_that_is_killed_meanwhile_has_what_the_command_says_and_the_rest_comes_again(
    tmp_path: Path,
) -> None:
    folder, noise = tmp_path / "folder", random.Random(1).randbytes(4_000_000)
    folder.mkdir()
    for number in range(60):
        (folder / f"{number:02}").write_bytes(number.to_bytes(4, "big") + noise)
    with peers(tmp_path, "alice") as (alice,):
        alice.client.create_repo("notes")
        command = subprocess.Popen(
            [*RAVEL, "--home", str(alice.home), "file", "add", "main", str(folder)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        until(lambda: bool(_listed(alice)), "some are added")
        alice.kill()
        said = command.communicate(timeout=patience(30))[1]
        lost = ("not_running", "interrupted")  # before a batch, or in one
        assert command.returncode in [ERROR_KINDS[code].exit_code for code in lost], said
        told = re.search(r"durable files: ([0-9]+), the last is '([^']*)'", said)
        assert told is not None or "no file was added" in said, said
        count = 0 if told is None else int(told[1])  # 0: the answer about the first ones was lost
        in_flight = re.search(r"the ([0-9]+) after it were added all or not at all", said)
        alice.start()
        listed = _listed(alice)
        assert len(listed) in (count, count + int(in_flight[1] if in_flight else 0))
        assert told is None or listed[count - 1] == told[2]
        assert len(list((alice.home / "packs").glob("*"))) == -(-len(listed) // 16)
        answer = _add(alice, folder)
        assert (answer["files"], answer["already"]) == (60, len(listed))
        assert sorted(_listed(alice)) == [f"folder/{number:02}" for number in range(60)]
