"""The audit: nothing is found in what honest nodes export, and each lie is found with its branch, commit and node."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from analytics import audit
from analytics.command import EXIT_MISMATCH
from node.outbound import Author
from protocol.body import Grant, Permission, Remove
from storage.export_schema import MANIFEST_NAME
from tests.builders import NOW_MS, World
from tests.exports import Row, export_node, id_of, listing, write_export

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

DIAMOND = [Row("root"), Row("left", ("root",)), Row("right", ("root",)), Row("merge", ("left", "right"))]

Found = set[tuple[str, str, str, tuple[str, ...]]]
"""Kind, branch, commit (names), nodes."""


def _audit(spark: SparkSession, out: Path, *exports: Path) -> audit.AuditResult:
    return audit.run(exports, out, progress=lambda _: None, spark=spark)


def _found(spark: SparkSession, result: audit.AuditResult, *names: str) -> Found:
    """All findings, in the names of which ids are hashes."""
    named = {id_of(name): name for name in names} | {b"": ""}
    rows = spark.read.parquet(str(result.tables / "findings")).collect()
    assert sum(result.findings.values()) == len(rows)
    return {
        (
            row["kind"],
            named[bytes(row["branch_id"] or b"")],
            named[bytes(row["commit_id"] or b"")],
            tuple(row["nodes"]),
        )
        for row in rows
    }


def test_exports_of_one_store_at_two_moments_contradict_nothing(spark: SparkSession, tmp_path: Path) -> None:
    world = World(tmp_path / "world")
    world.name_quorum()
    bob = Author(world.replica, b"b" * 32, lambda: NOW_MS)
    root = world.replica.root_branch(world.repo)
    world.author.write(root, Grant(bob.user, Permission.WRITE, None))
    world.write("a, a <- b, a <- c, b <- d")
    world.write_one("f", ["c"], bob)
    export_node(world.replica.database, tmp_path / "early", "early", 1_700_000_000)
    world.checkpoint_one("e", ["d"])
    world.write("c <- g, e <- h")
    world.author.write(root, Remove(bob.user, None, ()))
    world.write("f <- i")
    for name in ("early", "late"):
        export_node(world.replica.database, tmp_path / name, name, 1_700_000_001)
    world.close()
    result = _audit(spark, tmp_path / "out", tmp_path / "early", tmp_path / "late")
    assert result.findings == {}
    assert (result.exports, result.branches) == (2, 2)
    assert result.rows == 2 * result.commits


def test_what_contradicts_itself_or_others_is_found_with_its_node(
    spark: SparkSession, tmp_path: Path
) -> None:
    honest = write_export(tmp_path / "honest", [*DIAMOND, Row("fifth", ("merge",))], node="same")
    liar = write_export(
        tmp_path / "liar%20 [1]",  # Spark spells this in a way of its own
        [
            Row("root"),
            Row("right", ("root",), rank=0),  # its rank here, so that the liar's order differs as well
            Row("left", ("root",), rank=4),
            Row("other root"),
            Row("merge", ("left",)),
            Row("fifth", ("merge", "root")),
            Row("orphan", ("nowhere",)),
            Row("child", ("orphan",)),
            Row("self", ("self",), branch="loop"),
            Row("twice", ("root",)),
            Row("negative", ("root",), size=-1, position=0),
        ],
        [Row("twice", ("root",))],
        node="same",
        voids=["ghost"],
    )
    result = _audit(spark, tmp_path / "out", honest, liar)
    names = ["main", "loop", "ghost", *(row.name for row in DIAMOND)]
    names += ["other root", "orphan", "child", "self", "twice", "negative", "fifth"]
    assert _found(spark, result, *names) == {
        ("disagreement", "main", "right", ("same", "same (2)")),
        ("disagreement", "main", "left", ("same", "same (2)")),
        ("disagreement", "main", "merge", ("same", "same (2)")),
        ("disagreement", "main", "fifth", ("same", "same (2)")),
        ("wrong rank", "main", "right", ("same (2)",)),
        ("wrong rank", "main", "left", ("same (2)",)),
        ("divergence", "main", "", ("same", "same (2)")),
        ("several roots", "main", "", ("same", "same (2)")),
        ("missing cause", "main", "orphan", ("same (2)",)),
        ("behind a missing cause", "main", "child", ("same (2)",)),
        ("cycle", "loop", "self", ("same (2)",)),
        ("no root", "loop", "", ("same (2)",)),
        ("duplicate", "main", "twice", ("same (2)",)),
        ("absurd value", "main", "negative", ("same (2)",)),
        ("dangling void", "", "ghost", ("same (2)",)),
        ("wrong position", "main", "negative", ("same (2)",)),
    }
    rows = spark.read.parquet(str(result.tables / "findings")).where("kind = 'disagreement'").collect()
    assert {(bytes(row["commit_id"]), row["detail"]) for row in rows} == {
        (id_of("left"), "copies differ in rank"),
        (id_of("right"), "copies differ in rank"),
        (id_of("merge"), "copies differ in acks"),
        (id_of("fifth"), "copies differ in acks"),
    }
    details = {example.kind: example.detail for example in result.examples}
    assert details["missing cause"] == f"no export has {id_of('nowhere').hex()}"
    assert details["duplicate"].count("liar%20 [1]/commits/part-0000000") == 2
    assert details["absurd value"].startswith("size -1 in liar%20 [1]/commits/part-00000001.parquet row 10")


def test_the_command_says_what_it_found_and_ends_with_its_exit_code(tmp_path: Path) -> None:
    rows = [Row("root"), Row("tip", ("root",), rank=7)]
    folder = write_export(tmp_path / "export", rows)
    command = [sys.executable, "-P", "-m", "node.cli.main", "--home", str(tmp_path), "audit", str(folder)]
    command += ["--out", str(tmp_path / "out"), "--master", "local[1]", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == EXIT_MISMATCH, done.stderr
    answer = json.loads(done.stdout)
    assert answer["findings"] == {"wrong rank": 1}
    assert answer["examples"][0]["detail"] == "states 7, the acks give 1"
    assert "4/4 count" in done.stderr


@pytest.mark.parametrize("stage", ["3/4 look at every row", "2/4 start Spark"])
def test_a_job_that_fails_says_where_and_of_what(tmp_path: Path, stage: str) -> None:
    folder = write_export(tmp_path / "export", DIAMOND)
    if stage.startswith("3"):
        # A page that was altered before the manifest was made: only reading it shows that.
        path = folder / "commits" / "part-00000001.parquet"
        content = bytearray(path.read_bytes())
        content[4:400] = bytes(396)
        path.write_bytes(content)
        manifest = json.loads((folder / MANIFEST_NAME).read_bytes())
        manifest["tables"]["commits"] = [listing(path, len(DIAMOND))]
        (folder / MANIFEST_NAME).write_text(json.dumps(manifest))
    master = "local[1]" if stage.startswith("3") else "nonsense"
    command = [
        sys.executable,
        "-P",
        "-m",
        "analytics.audit_command",
        str(folder),
        "--out",
        str(tmp_path / "out"),
    ]
    done = subprocess.run([*command, "--master", master], capture_output=True, text=True, check=False)
    said = done.stderr.splitlines()[-2]
    if stage.startswith("3"):
        assert (done.returncode, said[:29]) == (1, "error: Spark failed at 3/4 lo")
        assert str(folder) in said
    else:
        assert (done.returncode, said[:28]) == (3, "error: Spark does not start ")
    assert "Traceback" not in done.stderr
