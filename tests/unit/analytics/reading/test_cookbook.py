"""Everything that docs/research/cookbook.md shows runs on an export of a node, and finds rows."""

import re
from pathlib import Path
from typing import Any, Final

import duckdb
import pytest
from blake3 import blake3
from pyspark.sql import SparkSession

import ravel
from node.exports.export_worker import _open_bodies, _open_source_authors
from node.ingest.publication_parsing import open_batch
from protocol.formats.content import Imported
from protocol.formats.publication import decode_publication
from tests.support.batches import accept_whole
from tests.support.builders import NOW_MS, World
from tests.support.exports import export_node

PAGE: Final = Path(__file__).parents[4] / "docs" / "research" / "cookbook.md"
PRIVACY: Final = PAGE.with_name("privacy.md")
BLOCKS: Final = re.findall(
    r"^```(python|sql)\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
)
CODE: Final = [code for language, code in BLOCKS if language == "python"]
QUERIES: Final = [code for language, code in BLOCKS if language == "sql"]
SHOWN: Final = "/path/to/export"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An export after an earlier one, of a node that took in commits out of order, among them imported ones."""
    world = World(tmp_path / "world")
    world.write("a, a <- b, a <- c, b c <- d")
    for name in ("Ada", "Bob"):
        world.author.write(world.branch, Imported(f"of {name}", name, 1_600_000_000_000, "a text"))
    replica, _ = world.copy()
    for at, item in enumerate(reversed(world.publications(world.branch))):
        topic = replica.by_topic[decode_publication(item).topic]
        accept_whole(replica, topic, open_batch(topic, [item]), NOW_MS + at)
        if at == 3:
            export_node(replica.database, tmp_path / "export", "node", 1)
    plan: dict[str, Any] = {
        "source_authors": _open_source_authors,
        "bodies": _open_bodies,
        "parts_max": 1,
        "delta": True,
    }
    export_node(replica.database, tmp_path / "export", "node", 2, **plan)
    world.close()
    return tmp_path / "export"


def run(code: str, folder: Path) -> dict[str, Any]:
    """Run a block of the page; gives its names. What it prints is for readers."""
    assert code.count(SHOWN) == 1, "one place to change"
    names: dict[str, Any] = {}
    exec(compile(code.replace(SHOWN, str(folder)), str(PAGE), "exec"), names)  # noqa: S102  # of our own page
    return names


def in_world(query: str) -> str:
    """A query of the page for the repo of the fixture."""
    return query.replace("'notes'", "'world'")


def test_the_page_shows_what_is_run_here() -> None:
    assert (len(CODE), len(QUERIES)) == (6, 1)


@pytest.mark.slow
def test_the_queries_find_rows(folder: Path) -> None:
    connection = run(CODE[2], folder)["connection"]
    assert isinstance(connection, duckdb.DuckDBPyConnection)
    order = connection.execute(in_world(QUERIES[0])).fetchall()
    assert [row[0] for row in order] == [0, 1, 2, 2, 3, 4, 5]


@pytest.mark.slow
def test_the_order_is_that_of_the_positions_where_many_share_a_rank(tmp_path: Path) -> None:
    world = World(tmp_path / "world")
    world.write("a, " + ", ".join(f"a <- {name}" for name in "bcdefghijklmnopqrstuvwxyz"))
    export_node(world.replica.database, tmp_path / "export", "node", 1)
    world.close()
    connection = run(CODE[2], tmp_path / "export")["connection"]
    found = connection.sql(in_world(QUERIES[0])).project("commit_id").fetchall()
    placed = "SELECT ravel_id(commit_id) FROM commits WHERE branch_name = 'main' ORDER BY position"
    assert found == connection.sql(placed).fetchall()
    # Texts sort otherwise: digits stand before letters there, and after them in base32.
    assert [row[0] for row in found[2:]] != sorted(row[0] for row in found[2:])


@pytest.mark.slow
def test_days_are_those_of_utc_whatever_the_session_had(folder: Path) -> None:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'Pacific/Auckland'")
        connection.execute("SET VARIABLE export = ?", [str(folder)])
        connection.execute((folder / "views.sql").read_text())
        day = "strftime(time_utc, '%Y-%m-%d') = strftime(make_timestamp(time * 1000), '%Y-%m-%d')"
        assert connection.sql("FROM commits").aggregate(f"bool_and({day})").fetchall() == [(True,)]


def test_texts_are_read(folder: Path) -> None:
    names = run(CODE[1], folder)
    assert sorted(names["texts"]) == ["a", "a text", "a text", "b", "c", "d"]
    assert sorted(body[2] for body in names["decoded"] if body[0] == "imported1") == ["Ada", "Bob"]


def test_imported_authors_are_known_by_the_hash_that_the_page_of_privacy_states(folder: Path) -> None:
    [tag] = re.findall(r'`b"([^"]+)"`', " ".join(PRIVACY.read_text(encoding="utf-8").split()))
    authors = ravel.open_export(folder).table("commits").arrow()["source_author"].to_pylist()
    assert authors.count(blake3(tag.encode() + b"Ada").digest()) == 1


@pytest.mark.slow
def test_the_client_and_delta_find_rows(folder: Path) -> None:
    assert len(run(CODE[0], folder)["commits"].arrow()) == 9
    assert run(CODE[3], folder)["commits"].version() == 1


@pytest.mark.slow
def test_figures_find_rows(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = run(CODE[4], folder)
    assert len(names["timeline"]) == 9
    assert "waited_p50" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.extended
def test_spark_finds_rows(spark: SparkSession, folder: Path) -> None:
    names = run(CODE[5], folder)
    assert names["order"].where("fault IS NULL").count() == 9
    assert names["spark"] is spark or names["spark"].version == spark.version
