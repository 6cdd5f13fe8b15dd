"""The export as one ZIP file: what is in it, who gets it, and what is refused."""

import io
import json
import zipfile
from pathlib import Path

import pytest

from node.exports import archives
from node.exports.archives import Archives
from node.runtime.errors import ServiceError
from protocol.limits.users import EXPORT_MANIFEST_SENT_MAX
from ravel.exports import schema
from storage.export import views
from tests.support.blocking import inline
from tests.support.served import AUTH, served

API = "/api/v1"
MADE_AT = 1_700_000_000
PARTS = {"commits/one.parquet": b"first" * 500_000, "commits/two.parquet": b"second", "voids/x.parquet": b""}


def _write_export(folder: Path, *paths: str, created_at: int = MADE_AT) -> None:
    """An export whose manifest names these parts, or all."""
    for path, content in PARTS.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    listed = [{"path": path, "rows": 1, "bytes": len(PARTS.get(path, b""))} for path in paths or PARTS]
    manifest = {"format": "ravel-export", "created_at": created_at, "tables": {"commits": listed}}
    (folder / archives.MANIFEST_NAME).write_text(json.dumps(manifest))
    (folder / archives.VIEWS_NAME).write_text("CREATE VIEW")


async def _sent(folder: Path) -> bytes:
    some = Archives(str(folder), inline())
    return b"".join([chunk async for chunk in some.send(await some.open())])


def test_names_are_those_of_the_format() -> None:
    own = (archives.MANIFEST_NAME, archives.KEPT_NAME, archives.VIEWS_NAME)
    assert own == (schema.MANIFEST_NAME, schema.KEPT_NAME, views.VIEWS_NAME)


async def test_the_listed_parts_are_sent_also_those_that_were_replaced_meanwhile(tmp_path: Path) -> None:
    _write_export(tmp_path)
    (tmp_path / "commits" / "unlisted.parquet").write_bytes(b"of a newer export")
    kept = tmp_path / "kept" / "commits"
    kept.mkdir(parents=True)
    (tmp_path / "commits" / "two.parquet").rename(kept / "two.parquet")
    with zipfile.ZipFile(io.BytesIO(await _sent(tmp_path))) as packed:
        assert packed.testzip() is None
        found = {info.filename: packed.read(info) for info in packed.infolist()}
        assert packed.infolist()[0].date_time == (2023, 11, 14, 22, 13, 20)
    below = {name.removeprefix("ravel-export-2023-11-14/"): content for name, content in found.items()}
    assert set(below) == {*PARTS, "manifest.json", "views.sql"}
    assert {path: below[path] for path in PARTS} == PARTS


@pytest.mark.parametrize(
    "paths, created_at",
    [(("../secret",), MADE_AT), (("commits/../../secret.parquet",), MADE_AT), ((), 0), ((), 1 << 62)],
)
async def test_an_altered_manifest_sends_nothing(
    paths: tuple[str, ...], created_at: int, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text("a key")
    folder = tmp_path / "exports"
    _write_export(folder, *paths, created_at=created_at)
    with pytest.raises(ServiceError) as refused:
        await _sent(folder)
    assert refused.value.code == "storage_failed"


async def test_a_part_that_is_gone_cuts_the_file_off(tmp_path: Path) -> None:
    _write_export(tmp_path, "commits/one.parquet", "commits/gone.parquet")
    some = Archives(str(tmp_path), inline())
    with pytest.raises(ServiceError) as refused:
        [chunk async for chunk in some.send(await some.open())]
    assert refused.value.code == "storage_failed"


async def test_a_browser_gets_it_once_for_a_code(tmp_path: Path) -> None:
    async with served(tmp_path) as one:
        shown = (await one.client.get(f"{API}/export")).json()
        assert (shown["made_at"], shown["size"]) == (None, None)
        folder = Path(shown["destination"])
        code = (await one.client.post(f"{API}/export/codes")).json()
        assert (await one.client.get(code["path"])).status_code == 404
        _write_export(folder)
        shown = (await one.client.get(f"{API}/export")).json()
        assert (shown["made_at"], shown["size"] > 2_500_000) == (MADE_AT, True)
        made, other = [(await one.client.post(f"{API}/export/codes")).json() for _ in range(2)]
        del one.client.headers["Authorization"]
        refused = await one.client.head(made["path"])
        assert (refused.status_code, refused.headers["allow"]) == (405, "GET"), "the code is good still"
        saved = await one.client.get(made["path"])
        assert (
            saved.headers["content-disposition"] == "attachment; filename*=UTF-8''ravel-export-2023-11-14.zip"
        )
        assert zipfile.ZipFile(io.BytesIO(saved.content)).testzip() is None
        assert (await one.client.get(made["path"])).status_code == 401
        assert (await one.client.get("/export")).status_code == 401
        assert (await one.client.get(other["path"].replace("/export", "/report"))).status_code == 401
        with (folder / archives.MANIFEST_NAME).open("r+b") as file:
            file.truncate(EXPORT_MANIFEST_SENT_MAX + 1)
        assert (await one.client.get(other["path"])).status_code == 413
        assert (await one.client.get(f"{API}/export", headers=AUTH)).status_code == 413


async def test_a_browser_is_told_of_a_part_that_is_gone_before_anything_is_sent(tmp_path: Path) -> None:
    async with served(tmp_path) as one:
        folder = Path((await one.client.get(f"{API}/export")).json()["destination"])
        _write_export(folder, "commits/gone.parquet")
        code = (await one.client.post(f"{API}/export/codes")).json()
        answer = await one.client.get(code["path"])
        assert (answer.status_code, answer.json()["error"]["code"]) == (507, "storage_failed")


async def test_exports_elsewhere_are_not_here_to_be_sent() -> None:
    some = Archives("s3://bucket/exports", inline())
    assert (await some.show())["made_at"] is None
    with pytest.raises(ServiceError) as refused:
        await some.open()
    assert refused.value.code == "not_found"
