"""Exports by the daemon: in a process of their own, on schedule, and never in anybody's way."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import trio
from structlog.testing import capture_logs
from trio.testing import MockClock

import node.exports.exports
from node.care.doctor import OK, WARNING, check_export
from node.exports.exports import FIRST_SECONDS_MAX, RETRY_SECONDS, Exports
from node.home.config_layers import load_settings
from node.home.config_sections import Config, ExportConfig
from node.home.home import PSEUDONYM_KEY_NAME, Home, load_pseudonym_key
from node.runtime.errors import ServiceError
from node.runtime.metrics import render
from ravel.exports.schema import MANIFEST_NAME
from ravel.types.node import ExportResult
from storage.engine.database import StorageError
from storage.export.manifest import decode_manifest
from tests.e2e.cluster import until
from tests.support.builders import STORE_KEY, World
from tests.support.machine import fail_after


def _exports(folder: Path, config: ExportConfig | None = None) -> Exports:
    home = Home(folder, Config(export=config or ExportConfig()))
    return Exports(home, "node", lambda: 1_700_000_000.0, STORE_KEY, has_quotas=True)


class Scripted(Exports):
    """Exports that fail as they are told, and note when."""

    def __init__(self, interval: int, fails: list[bool]) -> None:
        home = Home(Path("nowhere"), Config(export=ExportConfig(interval=interval)))
        super().__init__(home, "node", trio.current_time, STORE_KEY, has_quotas=False)
        self._fails = fails
        self.times: list[float] = []
        self.is_done = trio.Event()
        self.unjudged_repos = 0

    async def _run(self, _request: bytes) -> ExportResult:
        self.times.append(trio.current_time())
        if len(self.times) == len(self._fails):
            self.is_done.set()
        if self._fails[min(len(self.times), len(self._fails)) - 1]:
            raise StorageError("the disk is full")
        await trio.sleep(30)
        return {
            "path": "export",
            "commits": 5,
            "added": 1,
            "relayed": 0,
            "parts": 1,
            "watermark": 5,
            "unjudged_repos": self.unjudged_repos,
        }


async def _run_all(exports: Scripted) -> list[float]:
    with fail_after(10**7):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(exports.run)
            await exports.is_done.wait()
            nursery.cancel_scope.cancel()
    return [later - earlier for earlier, later in zip(exports.times, exports.times[1:], strict=False)]


async def test_exports_run_on_schedule(autojump_clock: MockClock) -> None:
    exports = Scripted(60, [False] * 4)
    assert await _run_all(exports) == pytest.approx([3600.0] * 3)
    assert exports.times[0] <= FIRST_SECONDS_MAX


async def test_a_failed_export_is_tried_again_after_a_pause_that_doubles(autojump_clock: MockClock) -> None:
    exports = Scripted(5, [True, True, True, True, False, True, True])
    pauses = await _run_all(exports)
    assert pauses == pytest.approx([RETRY_SECONDS, 120.0, 240.0, 300.0, 300.0, RETRY_SECONDS])
    assert exports.state.failures == 6


async def test_without_an_interval_nothing_is_exported(autojump_clock: MockClock) -> None:
    with fail_after(1):
        await Scripted(0, [False]).run()


async def test_a_failure_is_shown_until_an_export_goes_well(autojump_clock: MockClock) -> None:
    exports = Scripted(0, [True, False])
    with pytest.raises(StorageError):
        await exports.write()
    assert exports.status()["last_error"] == "the disk is full"
    check = check_export(exports.status())
    assert (check.state, check.detail) == (WARNING, "the disk is full")
    assert "ravel_export_faulty 1\n" in render(exports.families())
    assert "ravel_export_failures_total 1\n" in render(exports.families())
    await exports.write()
    status = exports.status()
    assert (status["last_error"], status["failures"], status["commits"]) == ("", 1, 5)
    assert check_export(status).state == OK
    assert "ravel_export_faulty 0\n" in render(exports.families())


async def test_that_members_of_some_repos_are_not_told_is_logged(autojump_clock: MockClock) -> None:
    exports = Scripted(0, [False])
    with capture_logs() as logs:
        await exports.write()
        assert logs == []
        exports.unjudged_repos = 2
        await exports.write()
    assert [(line["log_level"], line["repos"]) for line in logs] == [("warning", 2)]


@pytest.mark.extended
@pytest.mark.slow
async def test_an_export_is_written_beside_writers_by_another_process(tmp_path: Path) -> None:
    world = World(tmp_path)
    try:
        with fail_after(60), world.replica.database.write():
            summary = await _exports(tmp_path, ExportConfig(blocks=True)).write()
        assert (summary["commits"], summary["added"], summary["parts"]) == (3, 3, 7)
        assert summary["path"] == str(tmp_path / "exports")
        content = (tmp_path / "exports" / MANIFEST_NAME).read_bytes()
        manifest = decode_manifest(content, "it", "node")
        assert manifest.quotas is not None
        assert manifest.quotas.total == 10_240 << 20
        assert manifest.has_blocks
        assert len(manifest.tables["blocks"]) == 1
        assert manifest.holdings is not None
        assert (manifest.holdings.blocks, manifest.holdings.referenced_blocks) == (6, 6)
    finally:
        world.close()


@pytest.mark.slow
async def test_what_goes_wrong_in_the_process_is_said(tmp_path: Path) -> None:
    with fail_after(60), pytest.raises(ServiceError, match=r"ravel\.sqlite is not there"):
        await _exports(tmp_path).write()


@pytest.mark.slow
async def test_without_arrow_an_export_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node.exports.exports, "find_spec", lambda _name: None)
    with pytest.raises(ServiceError, match="PyArrow is not installed") as refused:
        await _exports(tmp_path).write()
    assert refused.value.code == "missing_extra"
    assert "[export]" in refused.value.advice


@pytest.mark.extended
@pytest.mark.slow
def test_a_daemon_needs_no_arrow() -> None:
    code = """
import sys
sys.modules |= dict.fromkeys(("pyarrow", "fsspec", "numpy", "pandas", "duckdb", "pyspark"))
import node.daemon, node.cli.main, node.cli.command_table, node.api.api, node.care.doctor, node.network.websocket
"""
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": os.pathsep.join(sys.path)})


async def test_a_daemon_that_stops_waits_for_no_export(tmp_path: Path) -> None:
    """The export reads from a pipe that nobody fills: it would never end."""

    os.mkfifo(tmp_path / "ravel.sqlite")
    exports = _exports(tmp_path)
    with fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(exports.write)
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
    assert exports.state.failures == 0


def test_the_key_of_pseudonyms_is_made_once_and_for_its_owner_alone(tmp_path: Path) -> None:
    key = load_pseudonym_key(tmp_path)
    assert load_pseudonym_key(tmp_path) == key
    path = tmp_path / PSEUDONYM_KEY_NAME
    assert path.stat().st_mode & 0o777 == 0o600
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / PSEUDONYM_KEY_NAME).write_bytes(path.read_bytes())
    (tmp_path / "other" / PSEUDONYM_KEY_NAME).chmod(0o600)
    assert load_pseudonym_key(tmp_path / "other") == key
    path.chmod(0o644)
    with pytest.raises(ServiceError, match="can be read by others"):
        load_pseudonym_key(tmp_path)


def test_a_damaged_key_of_pseudonyms_is_noticed(tmp_path: Path) -> None:
    key = load_pseudonym_key(tmp_path)
    path = tmp_path / PSEUDONYM_KEY_NAME
    text = path.read_bytes()
    for place in range(len(text) - 1):
        path.write_bytes(text[:place] + bytes([text[place] ^ 1]) + text[place + 1 :])
        with pytest.raises(ServiceError, match="is damaged"):
            load_pseudonym_key(tmp_path)
    path.write_bytes(text)
    assert load_pseudonym_key(tmp_path) == key


def _settings(tmp_path: Path, text: str, *options: str) -> tuple[Config, dict[str, object]]:
    path = tmp_path / "config.toml"
    path.write_text(text)
    config, settings = load_settings(path, {}, options)
    return config, {one.key: one.value for one in settings}


def test_options_are_read_and_not_shown(tmp_path: Path) -> None:
    text = (
        '[export]\ndestination = "s3://b/x"\noptions = { key = "hunter2", deep = { secret = "hunter3" } }\n'
    )
    config, shown = _settings(tmp_path, text)
    assert config.export.options == {"key": "hunter2", "deep": {"secret": "hunter3"}}
    assert shown["export.options"] == {"key": "***", "deep": "***"}
    assert "hunter" not in repr(config)
    config, shown = _settings(tmp_path, "", 'export.options={ key = "hunter2" }')
    assert config.export.options == {"key": "hunter2"}
    assert shown["export.options"] == {"key": "***"}


@pytest.mark.parametrize(
    "line, says",
    [
        ("interval = -1", "from 0"),
        ("interval = 525601", "to 525600"),
        ("interval = true", "a number"),
        ("keep = 87601", "to 87600"),
        ("parts = 1", "from 2"),
        ("parts = 10001", "to 10000"),
        ('options = "hunter2"', "is a table"),
        ('destination = "s3://key:hunter2@bucket/x"', "no user, password"),
        ("destination = 7", "is a text"),
        ("bodies = 1", "true or false"),
        ("blocks = 1", "true or false"),
        ('format = "csv"', "one of parquet, delta"),
        ("format = [1]", "is a text"),
        ("bodies = true\npseudonyms = true", "name authors"),
    ],
)
def test_a_bad_value_is_refused_and_no_secret_repeated(tmp_path: Path, line: str, says: str) -> None:
    with pytest.raises(ServiceError, match=says) as caught:
        _settings(tmp_path, f"[export]\n{line}\n")
    assert caught.value.code == "bad_config"
    assert "hunter" not in str(caught.value)


@pytest.mark.slow
def test_an_export_gives_way_in_a_session_of_its_own_too() -> None:
    worker = subprocess.Popen(
        [sys.executable, "-P", "-m", "node.exports.export_worker"],
        stdin=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        group = Path(f"/proc/{worker.pid}/autogroup")
        if not (group.exists() and group.read_text().startswith("/autogroup")):
            pytest.skip("this system does not share its processors out by sessions")
        until(lambda: group.read_text().endswith("nice 10\n"), "it has gone behind")
    finally:
        worker.kill()
        worker.communicate()
