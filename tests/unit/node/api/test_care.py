"""Endpoints that care for the node: settings, keys, backups and the report."""

from pathlib import Path

import pytest
import trio

from node.care import backups, reports
from node.care.background import CommandResult
from node.home.config import CONFIG_NAME, default_config_text
from node.home.home import create_home
from node.home.identity import create_keys
from node.home.key_file import Cost, fresh_keys
from node.home.mnemonic import seed_of
from node.runtime.errors import ServiceError
from protocol.crypto.signing import public_key
from protocol.formats.text import id_text
from protocol.limits.formats import KIB
from protocol.limits.users import BACKUP_PATH_SIZE_MAX, REPORT_SIZE_MAX, SETTING_SIZE_MAX
from ravel.types.care import BackupStatus
from tests.support.machine import fail_after
from tests.support.served import AUTH, Served, served

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
        return CommandResult(0, {"files": 3, "size": 5000})

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
        (tmp_path / ".made.part").mkdir()
        (tmp_path / ".made.part" / "store").write_bytes(b"x" * 700)
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
