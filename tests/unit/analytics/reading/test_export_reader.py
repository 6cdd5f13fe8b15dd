"""An export is checked whole before Spark sees it: each way to be wrong has an error that names the file."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analytics.reading.export_reader import SPARK_SCHEMAS
from protocol.limits.formats import FILE_COUNT_MAX, FILE_SIZE_MAX
from ravel.exports import checking
from ravel.exports.checking import COUNT_MAX, CREATED_AT_MAX, FILE_BYTES_MAX, MANIFEST_NUMBER_MAX, ExportError
from ravel.exports.schema import COMMITS, MANIFEST_NAME, SCHEMA_VERSION, TABLES, TIME_END
from tests.support.exports import Row, change_rows, listing, write_export
from tests.support.read_exports import read_export

PART = "part-00000001.parquet"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_export(tmp_path / "export", [Row("a"), Row("b", ("a",))], [Row("c", ("b",))])


def _change_manifest(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    path = folder / MANIFEST_NAME
    manifest = json.loads(path.read_bytes())
    change(manifest)
    path.write_text(json.dumps(manifest), encoding="utf-8")


def _replace_part(folder: Path, table: pa.Table) -> None:
    """Put another table in the place of the first part, with a manifest that fits it."""
    path = folder / "commits" / PART
    pq.write_table(table, path)
    _change_manifest(
        folder, lambda manifest: manifest["tables"]["commits"].__setitem__(0, listing(path, table.num_rows))
    )


def test_a_sound_export_is_read(folder: Path) -> None:
    export = read_export(folder)
    assert (export.node, export.rows, export.watermark, len(export.parts)) == ("node", 3, 3, 2)


def test_a_folder_without_a_manifest_says_what_makes_one(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match=r"manifest\.json is not there.*ravel export"):
        read_export(tmp_path)


@pytest.mark.parametrize(
    "content, says",
    [
        (b"", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b'{"format": "ravel-ex', "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "not the manifest"),
        (b'{"format": "other"}', "not the manifest"),
        (b'{"format": "ravel-export"}', "no schema version"),
        (b'{"format": "ravel-export", "schema_version": true}', "no schema version"),
        (b'{"format": "ravel-export", "schema_version": 1}', "not a manifest"),
        (b'{"format": "ravel-export", "schema_version": 1, "tables": []}', "not a manifest"),
        (b'{"format": "ravel-export", "schema_version": 1, "tables": {"commits": 3}}', "not a manifest"),
        (b'{"format": "ravel-export", "schema_version": 1, "tables": {"commits": [7]}}', "not a manifest"),
    ],
)
def test_what_is_no_manifest_is_refused(tmp_path: Path, content: bytes, says: str) -> None:
    (tmp_path / MANIFEST_NAME).write_bytes(content)
    with pytest.raises(ExportError, match=says):
        read_export(tmp_path)


@pytest.mark.parametrize(
    "version, way", [(SCHEMA_VERSION + 1, "update Ravel"), (SCHEMA_VERSION - 1, "no schema")]
)
def test_another_schema_is_refused_with_what_to_do(folder: Path, version: int, way: str) -> None:
    _change_manifest(folder, lambda manifest: manifest.update(schema_version=version))
    with pytest.raises(ExportError, match=way):
        read_export(folder)


@pytest.mark.parametrize("path", ["../elsewhere.parquet", "/etc/passwd", "commits/../../x", 7])
def test_a_part_outside_of_the_folder_is_refused(folder: Path, path: object) -> None:
    _change_manifest(folder, lambda manifest: manifest["tables"]["commits"][0].update(path=path))
    with pytest.raises(ExportError, match="outside"):
        read_export(folder)


def test_a_part_listed_twice_is_refused(folder: Path) -> None:
    _change_manifest(
        folder,
        lambda manifest: manifest["tables"]["commits"].append(manifest["tables"]["commits"][0]),
    )
    with pytest.raises(ExportError, match="twice"):
        read_export(folder)


def test_a_missing_part_is_named(folder: Path) -> None:
    (folder / "commits" / PART).unlink()
    with pytest.raises(ExportError, match=f"{PART} is missing"):
        read_export(folder)


def test_a_part_that_was_cut_off_is_named(folder: Path) -> None:
    path = folder / "commits" / PART
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ExportError, match=f"{PART} has .* bytes, the manifest says"):
        read_export(folder)


def test_one_flipped_bit_is_found(folder: Path) -> None:
    path = folder / "commits" / PART
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(ExportError, match=f"{PART} was altered"):
        read_export(folder)


def test_a_part_that_is_no_parquet_file_is_refused(folder: Path) -> None:
    path = folder / "commits" / PART
    path.write_bytes(b"PAR1 is how one begins, and PAR1")
    _change_manifest(folder, lambda manifest: manifest["tables"]["commits"].__setitem__(0, listing(path, 2)))
    with pytest.raises(ExportError, match="not a Parquet file"):
        read_export(folder)


def test_another_number_of_rows_than_listed_is_refused(folder: Path) -> None:
    _change_manifest(folder, lambda manifest: manifest["tables"]["commits"][0].update(rows=3))
    with pytest.raises(ExportError, match="has 2 rows, the manifest says 3"):
        read_export(folder)


def test_a_footer_that_counts_otherwise_than_its_row_groups_is_refused(folder: Path) -> None:
    path = folder / "commits" / PART
    content = path.read_bytes()
    number_then_groups = b"\x16\x04\x19\x1c"  # of FileMetaData: field 3, twice 2 rows; field 4, a list of one
    assert content.count(number_then_groups) == 1
    path.write_bytes(content.replace(number_then_groups, b"\x16\x02\x19\x1c"))
    _change_manifest(folder, lambda manifest: manifest["tables"]["commits"].__setitem__(0, listing(path, 1)))
    with pytest.raises(ExportError, match=f"{PART} says that it has 1 rows, its row groups have 2"):
        read_export(folder)


class Change(Protocol):
    """Puts a value into a manifest."""

    def __call__(self, manifest: dict[str, Any], value: object) -> None: ...


def _set(*keys: str | int) -> Change:
    def change(manifest: dict[str, Any], value: object) -> None:
        holder: Any = manifest
        for key in keys[:-1]:
            holder = holder[key]
        holder[keys[-1]] = value

    return change


@pytest.mark.parametrize(
    "change, largest",
    [
        (_set("watermark"), MANIFEST_NUMBER_MAX),
        (_set("blocks_from"), MANIFEST_NUMBER_MAX),
        (_set("relay_blocks_from"), MANIFEST_NUMBER_MAX),
        (_set("quotas", "total"), MANIFEST_NUMBER_MAX),
        (_set("quotas", "topic"), MANIFEST_NUMBER_MAX),
        (_set("holdings", "referenced_bytes"), MANIFEST_NUMBER_MAX),
        (_set("tables", "commits", 0, "rows"), None),
        (_set("tables", "commits", 0, "bytes"), None),
    ],
)
def test_numbers_that_cannot_be_are_refused(folder: Path, change: Change, largest: int | None) -> None:
    held = {"blocks": 1, "bytes": 1, "referenced_blocks": 1, "referenced_bytes": 1}
    _change_manifest(folder, lambda manifest: manifest.update(quotas={"total": 1, "topic": 1}, holdings=held))
    if largest is not None:
        for sound in (0, largest):
            _change_manifest(folder, partial(change, value=sound))
            read_export(folder)
    over = 2**63 if largest is None else largest + 1
    for value in (-1, over, float("inf"), 1.0, True, "7", None):
        _change_manifest(folder, partial(change, value=value))
        with pytest.raises(ExportError, match=r"manifest\.json is not a manifest.*no whole number from 0 to"):
            read_export(folder)


def test_an_export_can_be_as_young_as_a_time_may_be(folder: Path) -> None:
    assert CREATED_AT_MAX == TIME_END // 1000 - 1
    _change_manifest(folder, partial(_set("created_at"), value=CREATED_AT_MAX))
    assert read_export(folder).created_at == CREATED_AT_MAX
    _change_manifest(folder, partial(_set("created_at"), value=CREATED_AT_MAX + 1))
    with pytest.raises(
        ExportError, match=r"manifest\.json says that it was made after the year 2199: created_at is 7"
    ):
        read_export(folder)
    for value in (-1, 1.0, True, "7", None):
        _change_manifest(folder, partial(_set("created_at"), value=value))
        with pytest.raises(ExportError, match=r"manifest\.json is not a manifest.*no whole number from 0 to"):
            read_export(folder)


@pytest.mark.parametrize("place", ["part", "folder", "kept"])
def test_a_part_behind_a_symbolic_link_is_refused(folder: Path, tmp_path: Path, place: str) -> None:
    parts, elsewhere = folder / "commits", tmp_path / "elsewhere"
    if place == "part":
        (parts / PART).rename(elsewhere)
        (parts / PART).symlink_to(elsewhere)
    elif place == "folder":
        parts.rename(elsewhere)
        parts.symlink_to(elsewhere)
    else:
        parts.rename(elsewhere)
        (folder / "kept").mkdir()
        (folder / "kept" / "commits").symlink_to(elsewhere)
    with pytest.raises(ExportError, match="symbolic link"):
        read_export(folder)


def test_an_export_behind_a_symbolic_link_is_read(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(folder)
    assert read_export(tmp_path / "link").rows == 3


def test_many_parts_are_checked_with_progress_and_the_first_wrong_one_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checking, "_PROGRESS_SECONDS", 0.0)
    parts = [[Row(f"c{number}")] for number in range(40)]
    folder = write_export(tmp_path / "export", *parts)
    told: list[str] = []
    assert read_export(folder, progress=told.append).rows == 40
    assert told[-1] == "    40 of 40 parts"
    assert len(told) == 40
    for number in (31, 7, 23):
        path = folder / "commits" / f"part-{number:08d}.parquet"
        path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ExportError, match=r"part-00000007\.parquet has"):
        read_export(folder)


@pytest.mark.parametrize(
    "column, value, said",
    [
        ("acks", [b"short"], "acks holds an id that has not 32 bytes"),
        ("acks", [bytes(32), bytes(33)], "acks holds an id"),
        ("size", COUNT_MAX + 1, f"size is beyond {COUNT_MAX}"),
        ("size", -COUNT_MAX - 1, "size is beyond"),
        ("blocks", 2**62, "blocks is beyond"),
        ("file_bytes", FILE_BYTES_MAX + 1, f"file_bytes is beyond {FILE_BYTES_MAX}"),
    ],
)
def test_a_value_that_would_stop_the_analysis_is_refused_with_its_row(
    tmp_path: Path, column: str, value: object, said: str
) -> None:
    folder = write_export(tmp_path / "export", [Row("a"), Row("b", ("a",)), Row("c", ("a", "b"))])
    change_rows(folder, "commits", lambda rows: rows[2].update({column: value}))
    with pytest.raises(ExportError, match=rf"row 2 \(from 0\): {said}"):
        read_export(folder)


def test_the_largest_counts_are_read(tmp_path: Path) -> None:
    folder = write_export(tmp_path / "export", [Row("a", size=COUNT_MAX), Row("b", ("a",), size=-COUNT_MAX)])
    assert read_export(folder).rows == 2


def test_whatever_an_author_says_of_files_leaves_the_node_s_export_readable(tmp_path: Path) -> None:
    assert FILE_BYTES_MAX == FILE_COUNT_MAX * FILE_SIZE_MAX
    folder = write_export(tmp_path / "export", [Row("a", file_bytes=FILE_BYTES_MAX)])
    assert read_export(folder).rows == 1


def test_columns_that_differ_by_case_alone_are_refused(folder: Path) -> None:
    table = pq.read_table(folder / "commits" / PART)
    _replace_part(folder, table.append_column("RANK", table["rank"]))
    with pytest.raises(ExportError, match="by no more than case"):
        read_export(folder)


def test_a_column_that_lacks_or_is_of_another_type_is_named(folder: Path) -> None:
    table = pq.read_table(folder / "commits" / PART)
    _replace_part(folder, table.drop_columns(["rank"]))
    with pytest.raises(ExportError, match="rank"):
        read_export(folder)
    at = COMMITS.get_field_index("acks")
    _replace_part(folder, table.set_column(at, "acks", pa.array(["x", "y"])))
    with pytest.raises(ExportError, match="acks"):
        read_export(folder)


@pytest.mark.parametrize("table", SPARK_SCHEMAS)
def test_spark_reads_the_columns_that_the_export_writes(table: str) -> None:
    names = {
        "bigint": pa.int64(),
        "string": pa.string(),
        "binary": pa.binary(32),
        "boolean": pa.bool_(),
        "array<binary>": COMMITS.field("acks").type,
    }
    columns = [column.split() for column in SPARK_SCHEMAS[table].split(",")]
    fields = [field for field in TABLES[table] if not pa.types.is_timestamp(field.type)]
    assert [name for name, _ in columns] == [field.name for field in fields]
    for name, spark_type in columns:
        expected = pa.binary() if name == "content" else names[spark_type]
        assert TABLES[table].field(name).type == expected


def test_every_table_but_bodies_is_read() -> None:
    assert {*SPARK_SCHEMAS, "bodies"} == set(TABLES)


def test_blocks_are_looked_at_where_they_are_asked_for(tmp_path: Path) -> None:
    row = {"sequence": 1, "commit_id": b"c" * 32, "block_id": b"c" * 32, "child_ids": []}
    folder = write_export(tmp_path / "export", [Row("a")], tables={"blocks": [row]}, blocks_from=0)
    export = read_export(folder, with_blocks=True)
    assert ([part.rows for part in export.tables["blocks"]], export.has_blocks) == ([1], True)
    export.tables["blocks"][0].path.unlink()
    export = read_export(folder)
    assert (export.tables["blocks"], export.has_blocks) == ((), True)
    with pytest.raises(ExportError, match="is missing"):
        read_export(folder, with_blocks=True)


@pytest.mark.parametrize("column, row", [("author", 0), ("acks", 1), ("rank", 1)])
def test_a_null_is_refused_with_file_and_row(folder: Path, column: str, row: int) -> None:
    table = pq.read_table(folder / "commits" / PART)
    loose = table.cast(pa.schema([field.with_nullable(True) for field in COMMITS]))
    at = COMMITS.get_field_index(column)
    values = table[column].to_pylist()
    values[row] = None
    kind = COMMITS.field(at).type
    _replace_part(folder, loose)
    read_export(folder)
    _replace_part(folder, loose.set_column(at, column, pa.array(values, kind)))
    with pytest.raises(ExportError, match=rf"{PART} row {row} \(from 0\): {column} is null"):
        read_export(folder)


def test_a_list_that_may_hold_nulls_is_of_another_type(folder: Path) -> None:
    table = pq.read_table(folder / "commits" / PART)
    at = COMMITS.get_field_index("acks")
    loose = pa.list_(pa.field("element", pa.binary(32)))
    _replace_part(folder, table.set_column(at, "acks", table["acks"].cast(loose)))
    with pytest.raises(ExportError, match="of other types: acks"):
        read_export(folder)


def test_what_all_rows_count_together_has_a_bound_over_parts(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checking, "SUM_MAX", 6)  # each of its three commits has two blocks
    monkeypatch.setattr(checking, "_SUMMED", {("commits", "blocks")})
    read_export(folder)
    monkeypatch.setattr(checking, "SUM_MAX", 5)
    with pytest.raises(ExportError, match=rf"{PART[:-9]}2.parquet: blocks adds up to more than 5"):
        read_export(folder)
