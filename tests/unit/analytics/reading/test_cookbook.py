"""Everything that docs/research/cookbook.md shows runs on an export of a node, and finds rows."""

import re
from collections import Counter
from pathlib import Path
from typing import Any, Final

import duckdb
import pytest
from pyspark.sql import SparkSession

from node.authoring.author import Author
from node.authoring.drafting import Draft
from node.exports.export_headers import open_headers
from node.exports.export_worker import _open_bodies, _open_source_authors
from node.ingest.acceptance import accept_batch
from node.ingest.publication_parsing import open_batch
from protocol.crypto.keys import UserSeed
from protocol.formats.body import Grant, Permission
from protocol.formats.commit import TanglePlace
from protocol.formats.content import Imported, Post
from protocol.formats.publication import decode_publication
from ravel.exports.schema import text_id
from tests.support.builders import NOW_MS, World
from tests.support.exports import export_node
from verifier.posts import Relation, make_place

PAGE: Final = Path(__file__).parents[4] / "docs" / "research" / "cookbook.md"
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
        accept_batch(replica, topic, open_batch(topic, [item]), NOW_MS + at)
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
    assert (len(CODE), len(QUERIES)) == (10, 6)


@pytest.mark.slow
def test_the_queries_find_rows(folder: Path) -> None:
    connection = run(CODE[4], folder)["connection"]
    assert isinstance(connection, duckdb.DuckDBPyConnection)
    authors, order, shapes, replies, waits, sources = (
        connection.execute(in_world(query)).fetchall() for query in QUERIES
    )
    assert sum(row[3] for row in authors) == 9
    assert [row[0] for row in order] == [0, 1, 2, 2, 3, 4, 5]
    assert ("world", "main", 1, 1, 1) in shapes
    assert replies == [], "nobody answers"
    assert ("world", "main", 5, 5) in waits
    assert [row[1] for row in sources] == [1, 1]
    assert all(len(row[0]) == 52 for row in sources)


@pytest.mark.slow
def test_queries_of_shapes_leave_out_void_commits_and_those_of_replies_name_both_sides(
    tmp_path: Path,
) -> None:
    world = World(tmp_path / "world")
    world.tell_story()
    a, bob = world.commits["a"].commit_id, Author(world.replica, UserSeed(b"b" * 32), lambda: NOW_MS)
    world.author.write(world.replica.root_branch(world.repo), Grant(bob.user, Permission.WRITE))
    bob.write(world.branch, Draft(Post("yes"), tangles=(make_place(Relation.REPLY, a),)))
    both = TanglePlace(Relation.REPLY, a, (a, world.commits["b"].commit_id))
    world.author.write(world.branch, Draft(Post("well"), tangles=(both,)))
    export_node(world.replica.database, tmp_path / "export", "node", 1, headers=open_headers)
    world.close()
    connection = run(CODE[4], tmp_path / "export")["connection"]
    rows = connection.sql(
        "FROM commits ANTI JOIN voids USING (commit_id) SELECT acks, commit_id WHERE branch_name = 'main'"
    )
    sound = {row[1]: row[0] for row in rows.fetchall()}
    effects = Counter(ack for acks in sound.values() for ack in acks)
    merges, forks = (
        sum(count > 1 for count in counts) for counts in (map(len, sound.values()), effects.values())
    )
    shapes = connection.execute(QUERIES[2]).fetchall()
    assert ("world", "main", merges, forks, len(sound.keys() - effects.keys())) in shapes
    bob_id, ada_id = text_id(bob.user), text_id(world.author.user)
    assert {*connection.execute(QUERIES[3]).fetchall()} == {(bob_id, ada_id, 1, 1), (ada_id, ada_id, 1, 2)}


@pytest.mark.slow
def test_the_order_is_that_of_the_positions_where_many_share_a_rank(tmp_path: Path) -> None:
    world = World(tmp_path / "world")
    world.write("a, " + ", ".join(f"a <- {name}" for name in "bcdefghijklmnopqrstuvwxyz"))
    export_node(world.replica.database, tmp_path / "export", "node", 1)
    world.close()
    connection = run(CODE[4], tmp_path / "export")["connection"]
    found = connection.sql(in_world(QUERIES[1])).project("commit_id").fetchall()
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


def test_texts_are_read_and_authors_are_known_by_the_hash_that_the_docs_state(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = run(CODE[1], folder)
    assert sorted(names["texts"]) == ["a", "a text", "a text", "b", "c", "d"]
    assert sorted(body[2] for body in names["decoded"] if body[0] == "imported1") == ["Ada", "Bob"]
    run(CODE[2], folder)
    assert capsys.readouterr().out.endswith("1 commits by Ada\n")


@pytest.mark.slow
def test_two_nodes_are_compared_by_when_each_received_a_commit(folder: Path, tmp_path: Path) -> None:
    world = World(tmp_path / "other world", is_another=True)
    export_node(world.replica.database, tmp_path / "other", "other", 1)
    world.close()
    code = CODE[3].replace("/path/to/other", str(tmp_path / "other"))
    found = run(code, folder)["of_nodes"]
    assert found.isna().sum().to_dict() == {"node": 3, "other": 9}
    assert found.idxmin(axis=1).value_counts().to_dict() == {"node": 9, "other": 3}


@pytest.mark.slow
def test_pandas_delta_and_the_manifest_find_rows(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert len(run(CODE[0], folder)["commits"].arrow()) == 9
    pandas, delta, manifest = CODE[5], CODE[6], CODE[9]
    assert run(pandas, folder)["per_day"]["commits"].tolist() == [9]
    assert run(delta, folder)["commits"].version() == 1
    assert run(manifest, folder)["read"]("topics").count_rows() == 2
    assert capsys.readouterr().out.rstrip().endswith("9 14")


@pytest.mark.slow
def test_figures_find_rows(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = run(CODE[7], folder)
    assert len(names["timeline"]) == 9
    assert "waited_p50" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.extended
def test_spark_finds_rows(spark: SparkSession, folder: Path) -> None:
    names = run(CODE[8], folder)
    assert names["order"].where("fault IS NULL").count() == 9
    assert names["spark"] is spark or names["spark"].version == spark.version
