"""Endpoints that care for the node: settings, keys, backups and the report."""

import os
import signal
import unicodedata
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import trio

from node.care import backups, own_keys, reports
from node.care.background import CommandResult
from node.home.config import CONFIG_NAME, default_config_text
from node.home.home import create_home
from node.home.identity import change_protection, create_keys, open_keys
from node.home.key_file import (
    Cost,
    Keys,
    Protection,
    encode_key_file,
    fresh_keys,
    seal_node_keys,
    seal_user_key,
)
from node.home.mnemonic import seed_of, words_of
from node.home.people_file import read_people
from node.home.service import service_of
from node.runtime.errors import ServiceError
from protocol.crypto.signing import public_key
from protocol.formats.text import id_text
from protocol.limits.files import KEY_FILE_SIZE_MAX
from protocol.limits.formats import KIB
from protocol.limits.users import BACKUP_PATH_SIZE_MAX, REPORT_SIZE_MAX, SETTING_SIZE_MAX, WORDS_SIZE_MAX
from ravel.types.care import BackupStatus
from storage.engine.losses import read_loss
from tests.support.keys import CHEAP, no_passphrase
from tests.support.machine import fail_after
from tests.support.served import AUTH, Served, code_of, served
from tests.support.systemctl import fake_systemctl

API = "/api/v1"


async def test_settings_are_listed_with_their_meaning_and_changed_in_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAVEL_NODE_WORKERS", "2")
    path = tmp_path / CONFIG_NAME
    path.write_text(
        default_config_text(storage="").replace("options = {}", 'options = { secret = "hunter2" }')
    )
    async with served(tmp_path) as one:
        listed = (await one.client.get(f"{API}/settings")).json()
        found = {setting["setting"]: setting for setting in listed["settings"]}
        assert "hunter2" not in str(listed)
        assert found["export.options"]["hidden"]
        assert (found["log.level"]["kind"], found["log.level"]["choices"][0]) == ("text", "debug")
        assert found["network.circuits"]["kind"] == "flag"
        assert found["relay.topic_size_max"]["about"] == found["relay.size_max"]["about"] != ""
        workers = found["node.workers"]
        assert (workers["value"], workers["source"], workers["default"]) == ("2", "environment", "4")
        changed = await one.client.put(f"{API}/settings/network.discover_lan", json={"value": "true"})
        assert changed.json() == {
            "setting": "network.discover_lan",
            "before": "false",
            "value": "true",
            "restart": True,
            "overridden_by": None,
        }
        assert "discover_lan = true" in path.read_text()
        hidden = await one.client.put(f"{API}/settings/node.workers", json={"value": "3"})
        assert hidden.json()["overridden_by"] == "RAVEL_NODE_WORKERS"
        peers = '[{ address = "a.example:7474", peer = "' + "a" * 52 + '" }]'
        await one.client.put(f"{API}/settings/network.peers", json={"value": peers})
        again = {s["setting"]: s for s in (await one.client.get(f"{API}/settings")).json()["settings"]}
        assert again["network.peers"]["value"] == peers, "what is shown can be given back"


async def test_a_node_is_started_with_the_login_or_says_what_hinders_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    keys = fresh_keys()
    create_home(tmp_path, listen="127.0.0.1:0", api="127.0.0.1:0", keys=keys)
    path = f"{API}/settings/start"
    async with served(tmp_path) as one:
        monkeypatch.setenv("PATH", str(tmp_path))
        assert (await one.client.get(path)).json() == {"starts": False, "hindrance": "no_systemd"}
        refused = await one.client.post(path, json={"starts": True})
        assert code_of(refused) == "bad_config"
        calls = fake_systemctl(tmp_path, monkeypatch)
        for starts in (True, True, False):
            answer = await one.client.post(path, json={"starts": starts})
            assert answer.json() == {"starts": starts, "hindrance": ""}
            assert service_of(tmp_path).is_installed == starts
        assert [one.split()[1:-1] for one in calls() if "able" in one] == [["enable"], ["disable"]], (
            "the daemon that runs goes on"
        )
        change_protection(tmp_path, keys, "passphrase", b"long enough", CHEAP)
        assert (await one.client.get(path)).json() == {"starts": False, "hindrance": "passphrase"}


@pytest.mark.parametrize(
    "setting, value, code",
    [
        ("network.listn", "*:1", "bad_request"),
        ("api.listen", "0.0.0.0:7475", "bad_request"),
        ("api.listen", "127.0.0.1:7474", "bad_request"),
        ("storage.url", "postgresql://a@b/c", "bad_request"),
        ("relay.enabled", "maybe", "bad_request"),
        ("log.level", "x" * (SETTING_SIZE_MAX + 1), "bad_request"),
    ],
)
async def test_a_setting_that_would_lock_its_user_out_is_refused(
    tmp_path: Path, setting: str, value: str, code: str
) -> None:
    path = tmp_path / CONFIG_NAME
    path.write_text(default_config_text())
    async with served(tmp_path) as one:
        (tmp_path / "ravel.sqlite").touch()
        answer = await one.client.put(f"{API}/settings/{setting}", json={"value": value})
    assert answer.json()["error"]["code"] == code
    assert path.read_text() == default_config_text()


async def test_words_are_the_users_key_and_need_the_passphrase(tmp_path: Path) -> None:
    create_home(tmp_path, protection="none")
    async with served(tmp_path) as one:
        keys = (await one.client.get(f"{API}/keys")).json()
        assert keys["protection"] == "none"
        answer = await one.client.post(f"{API}/keys/words", json={})
        seed = seed_of(" ".join(answer.json()["words"]))
        assert id_text(public_key(seed)) == keys["user"]


async def test_words_of_sealed_keys_need_the_passphrase(tmp_path: Path) -> None:
    create_keys(tmp_path, fresh_keys(), "passphrase", b"long enough", Cost(8 * KIB, 1))
    async with served(tmp_path) as one:
        for given, code in (({}, "locked"), ({"passphrase": "another one"}, "wrong_passphrase")):
            answer = await one.client.post(f"{API}/keys/words", json=given)
            assert answer.json()["error"]["code"] == code
        answer = await one.client.post(f"{API}/keys/words", json={"passphrase": "long enough"})
        assert len(answer.json()["words"]) == 24


async def _recover(one: Served, **given: str) -> str:
    return code_of(await one.client.post(f"{API}/keys/recovery", json=given))


async def test_an_unused_key_gives_way_to_that_of_words_and_to_that_of_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    signals: list[int] = []
    monkeypatch.setattr(os, "kill", lambda _, number: signals.append(number))
    create_home(tmp_path, name="Anna by mistake")
    before, first, second = open_keys(tmp_path, no_passphrase), fresh_keys(), fresh_keys()
    words = " ".join(words_of(first.user_seed))
    files = [
        encode_key_file(one).decode()
        for one in (
            seal_user_key(first.user_seed, b"long enough", CHEAP),
            seal_node_keys(second, "none", b""),  # of a backup
        )
    ]
    async with served(tmp_path) as one:
        shown = (await one.client.get(f"{API}/keys")).json()
        assert (shown["unused"], shown["recovered"]) == (True, False)
        for given, code in (
            ({}, "bad_request"),
            ({"words": words, "key_file": files[0]}, "bad_request"),
            ({"words": words[4:]}, "bad_input"),
            ({"words": "x" * (WORDS_SIZE_MAX + 1)}, "bad_request"),
            ({"key_file": "{}"}, "bad_input"),
            ({"key_file": "x" * (KEY_FILE_SIZE_MAX + 1)}, "bad_request"),
            ({"key_file": files[0]}, "locked"),
            ({"key_file": files[0], "file_passphrase": "another one"}, "wrong_passphrase"),
        ):
            assert await _recover(one, **given) == code, given
        assert (open_keys(tmp_path, no_passphrase), signals) == (before, [])
        assert await _recover(one, words=words.upper()) == "done"
        assert signals == [signal.SIGHUP]
        made = await one.client.post(f"{API}/repos", json={"name": "notes"})
        assert code_of(made) == "feed_uncertain", "nothing is signed any more with the key that went"
    assert open_keys(tmp_path, no_passphrase) == replace(before, user_seed=first.user_seed)
    assert read_people(tmp_path).me.name is None
    loss = read_loss(one.node.replica.database.folder)
    assert loss is not None
    assert (loss.cause, loss.has_past, loss.repos) == ("recovered", True, None)
    async with served(tmp_path) as one:
        shown = (await one.client.get(f"{API}/keys")).json()
        assert (shown["unused"], shown["recovered"]) == (True, True)
        assert await _recover(one, words=words) == "already_exists"
        assert await _recover(one, key_file=files[1]) == "done", "the key of words is on paper"
    assert open_keys(tmp_path, no_passphrase).user_seed == second.user_seed


async def test_sealed_keys_stay_sealed_with_the_same_passphrase(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "kill", lambda *_: None)
    monkeypatch.setattr(own_keys, "change_protection", partial(change_protection, cost=CHEAP))
    before, seed = fresh_keys(), fresh_keys().user_seed
    create_keys(tmp_path, before, "passphrase", "lärmend genug".encode(), CHEAP)
    words = " ".join(words_of(seed))
    async with served(tmp_path) as one:
        assert await _recover(one, words=words) == "locked"
        assert await _recover(one, words=words, passphrase="another one") == "wrong_passphrase"
        decomposed = unicodedata.normalize("NFD", "lärmend genug")
        assert await _recover(one, words=words, passphrase=decomposed) == "done"
    held = open_keys(tmp_path, lambda: "lärmend genug".encode())
    assert held == replace(before, user_seed=seed)


async def test_a_key_that_is_in_place_is_taken_up_whatever_fails_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the node would go on writing with the key that went, until its next start."""
    signals: list[int] = []

    def change(home: Path, keys: Keys, protection: Protection, secret: bytes, *, fails_first: bool) -> None:
        if not fails_first:
            change_protection(home, keys, protection, secret)
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "kill", lambda _, number: signals.append(number))
    create_home(tmp_path)
    before, seed = open_keys(tmp_path, no_passphrase), fresh_keys().user_seed
    words = " ".join(words_of(seed))
    async with served(tmp_path) as one:
        monkeypatch.setattr(own_keys, "change_protection", partial(change, fails_first=True))
        assert await _recover(one, words=words) == "storage_failed"
        assert (open_keys(tmp_path, no_passphrase), signals) == (before, [])
        one.node.replica.own_feeds.check_user()
        monkeypatch.setattr(own_keys, "change_protection", partial(change, fails_first=False))
        assert await _recover(one, words=words) == "done"
        assert signals == [signal.SIGHUP]
    assert open_keys(tmp_path, no_passphrase).user_seed == seed


async def test_a_key_that_was_used_gives_way_to_none(tmp_path: Path) -> None:
    create_home(tmp_path)
    before = open_keys(tmp_path, no_passphrase)
    words = " ".join(words_of(fresh_keys().user_seed))
    async with served(tmp_path) as one:
        repo, _ = one.node.create_repo()
        for is_here in (True, False):
            assert not (await one.client.get(f"{API}/keys")).json()["unused"]
            answer = await one.client.post(f"{API}/keys/recovery", json={"words": words})
            error = answer.json()["error"]
            assert (error["code"], "up --words" in error["next"]) == ("already_exists", True)
            if is_here:  # and then not: others have what was written there
                await one.node.joiner.forget(repo)
    assert open_keys(tmp_path, no_passphrase) == before


async def _backup(one: Served, folder: Path | str) -> tuple[int, BackupStatus]:
    answer = await one.client.post(f"{API}/backups", json={"folder": str(folder)})
    return answer.status_code, answer.json()


async def _ended(one: Served) -> BackupStatus:
    with fail_after(10):
        while True:
            shown: BackupStatus = (await one.client.get(f"{API}/backups")).json()
            if not shown["running"]:
                return shown


async def test_a_backup_goes_on_beside_requests_and_one_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    goes_on, asked = trio.Event(), []

    async def run(home: Path, *arguments: str, seconds_max: float) -> CommandResult:
        asked.append(arguments)
        assert seconds_max > 0
        await goes_on.wait()
        if len(asked) > 2:
            return CommandResult(0, {"files": 3})
        if len(asked) > 1:
            raise ServiceError("storage_failed", "the disk is full", "make room")
        return CommandResult(0, {"files": 3, "written": 5000})

    monkeypatch.setattr(backups, "run_command", run)
    (tmp_path / "node").mkdir()
    async with served(tmp_path / "node") as one:
        for bad in ("relative", str(tmp_path / "node" / "in"), str(tmp_path / "no" / "such"), "/a\nb"):
            assert (await _backup(one, bad))[0] == 400, bad
        assert (await _backup(one, tmp_path))[0] == 409
        assert (await _backup(one, "/" + "x" * BACKUP_PATH_SIZE_MAX))[0] == 400
        status, begun = await _backup(one, tmp_path / "made")
        assert (status, begun["running"], begun["finished_at"]) == (200, True, None)
        assert (await _backup(one, tmp_path / "other"))[0] == 409
        (tmp_path / "made" / ".part").mkdir(parents=True)
        (tmp_path / "made" / ".part" / "pages").write_bytes(b"x" * 700)
        assert (await one.client.get(f"{API}/backups")).json()["size"] == 700
        goes_on.set()
        shown = await _ended(one)
        assert (shown["files"], shown["size"], shown["error"]) == (3, 5000, "")
        assert shown["restore_command"] == f"ravel --home NEW restore {tmp_path}/made"
        await _backup(one, tmp_path / "fails")
        shown = await _ended(one)
        assert shown["error"] == "the disk is full (make room)"
        await _backup(one, tmp_path / "odd")
        assert "in another form" in (await _ended(one))["error"]
    assert asked[0] == ("backup", str(tmp_path / "made"))


async def test_a_folder_that_cannot_be_looked_at_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    really_exists = Path.exists

    def exists(path: Path) -> bool:
        if path.is_relative_to(tmp_path):
            return really_exists(path)
        raise PermissionError(13, "Permission denied")  # as Python 3.11 does below a folder of another user

    async with served(tmp_path) as one:
        monkeypatch.setattr(Path, "exists", exists)
        for folder in ("~nosuchuser/here", "/root/ravel"):
            answer = await one.client.post(f"{API}/backups", json={"folder": folder})
            error = answer.json()["error"]
            assert (error["code"], bool(error["next"])) == ("bad_request", True), folder
        assert (await one.client.get(f"{API}/backups")).json()["suggested"]


async def test_the_report_is_shown_once_for_a_code_and_can_do_nothing(tmp_path: Path) -> None:
    async with served(tmp_path) as one:
        assert (await one.client.get(f"{API}/report")).json()["finished_at"] is None
        (tmp_path / reports.FOLDER_NAME).mkdir()
        report = tmp_path / reports.FOLDER_NAME / "report.html"
        report.write_text('<h1>the report</h1><a class="file" href="csv/lags.csv">CSV</a>')
        assert (await one.client.get(f"{API}/report")).json()["finished_at"] is not None
        made = (await one.client.post(f"{API}/report/codes")).json()
        del one.client.headers["Authorization"]
        assert (await one.client.head(made["path"])).status_code == 405, "the code is good still"
        shown = await one.client.get(made["path"])
        assert shown.text == '<h1>the report</h1><a class="file" data-path="csv/lags.csv">CSV</a>', (
            "no file is there"
        )
        policy = shown.headers["content-security-policy"]
        assert policy.startswith("sandbox; default-src 'none';")
        assert "script" not in policy
        assert "allow" not in policy
        assert shown.headers["cache-control"] == "no-store"
        assert (await one.client.get(made["path"])).status_code == 401
        assert (await one.client.get("/report")).status_code == 401
        code = (await one.client.post(f"{API}/report/codes", headers=AUTH)).json()
        assert (await one.client.post("/open", json={"code": code["code"]})).status_code == 401, (
            "a code of a report opens no page"
        )
        with report.open("wb") as file:
            file.truncate(REPORT_SIZE_MAX + 1)
        assert (await one.client.get(code["path"])).status_code == 413
