"""`ravel.open_export`: what is read is what the manifests list, in the types of each library."""

import runpy
import subprocess
import sys
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import ravel
from analytics.session import start_session
from protocol.formats.text import id_text
from protocol.ids import AnyId
from ravel.exports.checking import ExportError
from ravel.exports.schema import SCHEMA_VERSION, TABLES
from tests.support.exports import Row, change_manifest, id_of, write_export
from tests.support.read_exports import read_export

ROOT = Path(__file__).parents[3]
ROWS = [Row("a", received=1), Row("b", ("a",), source="ann"), Row("c", ("a", "b"), "other")]


@pytest.fixture
def folders(tmp_path: Path) -> list[Path]:
    return [
        write_export(tmp_path / "one[1]", ROWS[:1], ROWS[1:], node="one"),
        write_export(tmp_path / "two", ROWS[:2], node="two", voids=["b"]),
    ]


def test_tables_of_several_exports_are_one_with_the_node_of_each_row(folders: list[Path]) -> None:
    export = ravel.open_export(folders)
    table = export.table("commits").arrow()
    assert table["node"].to_pylist() == ["one"] * 3 + ["two"] * 2
    assert table["commit_id"].to_pylist() == [id_of(name) for name in "abcab"]
    assert table["acks"].to_pylist()[2] == [id_of("a"), id_of("b")]
    assert (table.schema.field("received_at").metadata or {})[b"unit"] == b"ms since 1970-01-01 UTC"
    assert export.table("voids").arrow().to_pylist() == [{"commit_id": id_of("b"), "node": "two"}]
    for name in export.tables:
        assert export.table(name).arrow().schema.names == [*TABLES[name].names, "node"]
    assert "blocks" not in export.tables
    assert "blocks" in ravel.open_export(folders[0], with_blocks=True).tables
    with pytest.raises(
        KeyError, match=r"no bodies in this export: .* bodies = true`; there are commits, voids"
    ):
        export.table("bodies")
    with pytest.raises(KeyError, match=r"blocks are read after open_export\(\.\.\., with_blocks=True\)"):
        export.table("blocks")
    with pytest.raises(KeyError, match="no table 'people'; there are commits"):
        export.table("people")


def test_bodies_are_a_table_where_the_export_has_them(tmp_path: Path) -> None:
    body = {
        "sequence": 1,
        "commit_id": id_of("a"),
        "body_kind": "post",
        "document": "",
        "body": b"\x92\xa5post1\xa5hello",
    }
    path = write_export(tmp_path / "export", ROWS, tables={"bodies": [body]})
    change_manifest(path, has_bodies=True)
    export = ravel.open_export(path)
    assert "bodies" in export.tables
    assert export.table("bodies").arrow().to_pylist() == [body | {"node": "node"}]
    assert read_export(path).tables["bodies"] == (), "an analysis reads nothing that people wrote"
    without = ravel.open_export(path, with_bodies=False)
    with pytest.raises(KeyError, match="bodies were left out"):
        without.table("bodies")
    next((path / "bodies").iterdir()).write_bytes(b"altered")
    with pytest.raises(ExportError, match="bodies"):
        ravel.open_export(path)


def test_what_was_opened_says_what_it_is(folders: list[Path]) -> None:
    export = ravel.open_export(folders)
    assert repr(export).startswith(
        "<export of node one, 3 commits, made at 2023-11-14 00:00 UTC; of node two, 2 commits"
    )
    assert repr(export.table("voids")) == "<table voids: 1 rows of commit_id, node>"


def test_no_export_counts_twice(folders: list[Path], tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(folders[0])
    for again in (folders[0], link, f"file://{folders[0]}"):
        with pytest.raises(ExportError, match="is given twice"):
            ravel.open_export([folders[0], again])
    later = write_export(tmp_path / "later", ROWS[:1], node="one")
    with pytest.raises(ExportError, match="are both of node one, whose rows would count twice"):
        ravel.open_export([folders[0], later])


def test_ids_are_texts_where_they_are_asked_for(folders: list[Path]) -> None:
    export = ravel.open_export(folders)
    for name in export.tables:
        raw, text = export.table(name), export.table(name, text_ids=True)
        assert text.arrow().schema.equals(text.schema(), check_metadata=True)
        assert raw.arrow().schema.equals(raw.schema(), check_metadata=True)
    table = export.table("commits", text_ids=True).arrow()
    assert table["commit_id"].to_pylist() == [id_text(AnyId(id_of(name))) for name in "abcab"]
    assert table["acks"].to_pylist()[2] == [id_text(AnyId(id_of(name))) for name in "ab"]
    assert table["source_author"].to_pylist()[:2] == [None, id_text(AnyId(id_of("ann")))]
    with pytest.raises(ValueError, match="Spark reads ids as bytes"):
        export.table("commits", text_ids=True).spark(None)  # type: ignore[arg-type]  # before the session is used


def test_some_columns_are_read_alone_and_rows_come_as_a_stream(folders: list[Path]) -> None:
    export = ravel.open_export(folders)
    table = export.table("commits", columns=["acks", "node", "commit_id"], text_ids=True)
    rows = table.batches().read_all()
    assert rows.column_names == ["acks", "node", "commit_id"]
    assert rows["commit_id"].to_pylist() == [id_text(AnyId(id_of(name))) for name in "abcab"]
    assert export.table("commits", columns=["node"]).arrow()["node"].to_pylist() == ["one"] * 3 + ["two"] * 2
    with pytest.raises(KeyError, match="no column wrong; commits has sequence, commit_id"):
        export.table("commits", columns=["wrong"])


@pytest.mark.slow
def test_pandas_polars_and_duckdb_get_the_same_rows(folders: list[Path]) -> None:
    commits = ravel.open_export(str(folders[0])).table("commits")
    assert commits.polars()["commit_id"].to_list() == [id_of(name) for name in "abc"]
    assert commits.polars().columns == commits.arrow().column_names
    frame = commits.pandas()
    assert [bytes(raw) for raw in frame["commit_id"]] == [id_of(name) for name in "abc"]
    assert str(frame["received_utc"].dtype) == "datetime64[ms, UTC]"
    counted = commits.duckdb().aggregate("branch_name, count(*) AS n").order("branch_name").fetchall()
    assert counted == [("main", 2), ("other", 1)]
    with duckdb.connect() as connection:
        assert len(commits.duckdb(connection).fetchall()) == 3


@pytest.mark.slow
@pytest.mark.extended
def test_spark_reads_the_same_rows_itself(folders: list[Path], tmp_path: Path) -> None:
    session: SparkSession = start_session("local[1]", rows=0, log_path=tmp_path / "spark.log")
    try:
        export = ravel.open_export(folders)
        for name in ("commits", "voids", "topics"):
            expected = export.table(name).arrow()
            read = pa.table(export.table(name).spark(session).toArrow())
            assert read.schema.names == expected.schema.names
            assert sorted(map(repr, read.to_pylist())) == sorted(map(repr, expected.to_pylist()))
    finally:
        session.stop()


def test_what_is_altered_or_gone_is_refused(folders: list[Path], tmp_path: Path) -> None:
    export = ravel.open_export(folders[1])
    (part,) = (folders[1] / "commits").iterdir()
    content = part.read_bytes()
    part.unlink()
    with pytest.raises(ExportError, match="is gone: open the export again"):
        export.table("commits").arrow()
    part.write_bytes(content[:-9] + b"otherwise")
    with pytest.raises(ExportError, match="was altered"):
        ravel.open_export(folders[1])
    change_manifest(folders[0], schema_version=SCHEMA_VERSION + 1)
    with pytest.raises(ExportError, match="update Ravel"):
        ravel.open_export(folders)
    with pytest.raises(ExportError, match="no export is named"):
        ravel.open_export([])
    with pytest.raises(ExportError, match=r"manifest\.json is not there"):
        ravel.open_export(tmp_path)


@pytest.mark.slow
def test_without_pyarrow_it_says_what_to_install_and_the_client_works() -> None:
    code = (
        "import sys; sys.modules['pyarrow'] = None; import ravel; ravel.connect; assert 'httpx' not in sys.modules\n"
        "try: ravel.open_export\nexcept ImportError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install pyarrow blake3 fsspec pandas" in done.stdout


@pytest.mark.slow
def test_the_notebook_answers_its_questions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    export = write_export(tmp_path / "export", ROWS)
    monkeypatch.setenv("RAVEL_EXPORT", str(export))
    names = runpy.run_path(str(ROOT / "examples" / "export_notebook.py"))
    assert names["by_author"]["commits"].sum() == 3
    assert names["merges"].fetchall() == [("other", 1)]
    assert len(names["order"]) == 2, "the commit in the other branch lacks its parents there"
