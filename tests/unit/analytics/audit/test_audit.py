"""The audit: nothing is found in what honest nodes export, and each lie is found with its branch, commit and node."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from analytics.audit import audit
from analytics.audit import command as audit_command
from analytics.audit.blocks import BlockCounts
from analytics.command import EXIT_BAD_REQUEST, EXIT_MISMATCH, EXIT_UNEXPECTED
from analytics.reading.limits import BLOCK_SIZE_MAX
from node.authoring.author import Author
from protocol.crypto.keys import ConvergenceSecret, UserSeed
from protocol.formats.block import encrypt_block
from protocol.formats.body import Grant, Permission, Remove
from protocol.formats.publication import decode_publication
from protocol.ids import PeerId
from protocol.limits.formats import MARK_SIZE
from ravel.exports.schema import MANIFEST_NAME
from storage.relay.quotas import Visitor
from storage.relay.relay import open_topics, store_publications
from tests.support.builders import NOW_MS, World
from tests.support.exports import (
    RelayedCommit,
    Row,
    change_manifest,
    change_rows,
    export_node,
    id_of,
    listing,
    relayed,
    stated_places,
    write_export,
)
from tests.support.hard_stores import harden
from tests.support.ids import as_commit_id
from tests.support.relays import PLENTY

pytestmark = [pytest.mark.slow, pytest.mark.extended]

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
    bob = Author(world.replica, UserSeed(b"b" * 32), lambda: NOW_MS)
    root = world.replica.root_branch(world.repo)
    world.author.write(root, Grant(bob.user, Permission.WRITE))
    world.write("a, a <- b, a <- c, b <- d")
    world.write_one("f", ["c"], bob)
    export_node(world.replica.database, tmp_path / "early", "early", 1_700_000_000)
    world.checkpoint_one("e", ["d"])
    world.write("c <- g, e <- h")
    world.author.write(root, Remove(bob.user, None, ()))
    world.write("f <- i")
    relay = _relay(tmp_path / "relay", world)
    harden(world)
    for name in ("early", "late"):
        export_node(world.replica.database, tmp_path / name, name, 1_700_000_001, blocks=True)
    world.close()
    result = _audit(spark, tmp_path / "out", tmp_path / "early", tmp_path / "late", relay)
    assert result.findings == {}
    assert (result.exports, result.branches) == (3, 4), "the relay has a repo of its own"
    commits = result.commits - 3
    assert result.rows == 2 * commits + 3
    assert result.blocks.recomputed == 2 * (commits - 1) + 3 + 3, (
        "but for the damaged one's, and what was relayed, too"
    )
    assert result.blocks.absent == 2 * 5
    assert result.without_blocks == ()
    assert (result.blocks.ids, result.blocks.ids_recomputed) == (result.commits, result.commits - 1)


def _relay(folder: Path, world: World) -> Path:
    """The export of a store of its own that was given three publications of the world's branch."""
    node = World(folder / "store", is_another=True)
    visitor = Visitor(PeerId(b"p" * 32))
    with node.replica.database.write() as connection:
        open_topics(node.replica.database, connection, [world.topic().topic], visitor, PLENTY, 5)
        items = [(decode_publication(one), one) for one in world.publications(world.branch)[:3]]
        store_publications(node.replica.database, connection, 1, visitor, items, PLENTY, 7)
    export_node(node.replica.database, folder / "export", "relay", 1, blocks=True)
    node.close()
    return folder / "export"


ABSURD_TIMES = (-1, -(2**63), 2**63 - 1, 2**53)


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
            Row("stranger", ("self", "nowhere", "root")),
            *(Row(f"time {at}", ("root",), time=time) for at, time in enumerate(ABSURD_TIMES)),
            Row("feed", ("root",), feed=-3),
            Row("received", ("root",), received=-1),
            Row("can be", ("root",), time=2**53 - 1, received=0),
        ],
        [Row("twice", ("root",))],
        node="same",
        voids=["ghost"],
    )
    result = _audit(spark, tmp_path / "out", honest, liar)
    names = ["main", "loop", "ghost", *(row.name for row in DIAMOND)]
    names += ["stranger", "feed", "received", *(f"time {at}" for at in range(len(ABSURD_TIMES)))]
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
        ("missing cause", "main", "stranger", ("same (2)",)),
        ("ack of another branch", "main", "stranger", ("same (2)",)),
        *(("absurd value", "main", f"time {at}", ("same (2)",)) for at in range(len(ABSURD_TIMES))),
        ("absurd value", "main", "feed", ("same (2)",)),
        ("absurd value", "main", "received", ("same (2)",)),
        ("absurd value", "main", "negative", ("same (2)",)),
        ("dangling void", "", "ghost", ("same (2)",)),
        ("wrong position", "main", "negative", ("same (2)",)),
    }
    rows = spark.read.parquet(str(result.tables / "findings")).where("kind like '%another branch'").collect()
    loop = id_of("loop").hex()
    assert [row["detail"] for row in rows] == [f"acks {id_of('self').hex()}, of branch {loop}"]
    rows = spark.read.parquet(str(result.tables / "findings")).where("kind = 'absurd value'").collect()
    said = [row["detail"].partition(" in ")[0] for row in rows]
    assert sorted(said) == sorted(
        ["size -1", "feed_sequence -3", "received_at -1", *(f"time {time}" for time in ABSURD_TIMES)]
    )
    rows = spark.read.parquet(str(result.tables / "findings")).where("kind = 'disagreement'").collect()
    assert {(bytes(row["commit_id"]), row["detail"]) for row in rows} == {
        (id_of("left"), "copies differ in rank"),
        (id_of("right"), "copies differ in rank"),
        (id_of("merge"), "copies differ in acks"),
        (id_of("fifth"), "copies differ in acks"),
    }
    details = {example.kind: example.detail for example in reversed(result.examples)}
    assert details["missing cause"] == f"no export has {id_of('nowhere').hex()}"
    assert details["duplicate"].count("liar%20 [1]/commits/part-0000000") == 2
    (size,) = (
        row["detail"]
        for row in spark.read.parquet(str(result.tables / "findings"))
        .where("kind = 'absurd value'")
        .collect()
        if row["detail"].startswith("size")
    )
    assert size.startswith("size -1 in liar%20 [1]/commits/part-00000001.parquet row 10")


def test_silent_damages_are_found(spark: SparkSession, tmp_path: Path) -> None:
    rows = [*DIAMOND, Row("side", branch="side", source="eve")]
    good = write_export(tmp_path / "good", rows, node="good")
    bad = write_export(tmp_path / "bad", rows, node="bad", tables=_DAMAGED)

    def damage(rows: list[dict[str, Any]]) -> None:
        root, left, right, merge, side = rows
        right["sequence"] = left["sequence"]
        root["sequence"], root["arrival"] = 9, 9
        merge["acks"] *= 2
        merge["shown_at"] = 5_000
        left["time_utc"] = 5_000
        side["feed_sequence"] = 7
        side["source_author"] = id_of("another")
        root["files"] = 2
        right["repo_id"] = id_of("another")

    change_rows(bad, "commits", damage)
    result = _audit(spark, tmp_path / "out", good, bad)
    found = _found(spark, result, "main", "side", "ghost", *(row.name for row in DIAMOND))
    bad_alone, both = ("bad",), ("bad", "good")
    assert found == {
        ("duplicate", "", min("left", "right", key=id_of), bad_alone),
        ("effect before its cause", "main", "left", bad_alone),
        ("effect before its cause", "main", "right", bad_alone),
        ("effect before its cause", "main", "merge", bad_alone),
        ("ack twice", "main", "merge", bad_alone),
        ("wrong timestamp", "main", "left", bad_alone),
        ("disagreement", "side", "side", both),
        ("disagreement", "main", "right", both),
        ("disagreement", "main", "merge", both),
        ("several repos", "main", "", both),
        ("wrong files", "main", "root", bad_alone),
        ("stray row", "", "ghost", bad_alone),
        ("stray row", "", "root", bad_alone),
        ("wrong membership", "main", "root", bad_alone),
        ("absurd value", "", "", bad_alone),
        ("member of no operation", "", "", bad_alone),
        ("unknown epoch", "", "", bad_alone),
        ("accepted too", "main", "left", bad_alone),
        ("duplicate", "", "", bad_alone),
    }
    details = {row["detail"] for row in spark.read.parquet(str(result.tables / "findings")).collect()}
    assert "copies differ in feed_sequence, source_author" in details
    assert {"members: permission emperor", "memberships: reason magic", "topics: kind odd"} <= details


def test_nodes_that_state_tangles_and_dependencies_of_a_commit_otherwise_are_found(
    spark: SparkSession, tmp_path: Path
) -> None:
    def stated(ack: str, dep: str) -> dict[str, list[dict[str, object]]]:
        row = {"sequence": 4, "commit_id": id_of("merge"), "deps": [id_of(dep)], "negative_deps": []}
        places = stated_places(
            ("reply", "root", "root", ()),
            ("reply", "root", "left", ("root",)),
            ("reply", "root", "right", (ack,)),
        )
        return {"tangles": places, "dependencies": [row]}

    exports = [
        write_export(tmp_path / node, DIAMOND, node=node, tables=stated(*said))
        for node, said in {"one": ("root", "left"), "two": ("left", "right")}.items()
    ]
    result = _audit(spark, tmp_path / "out", *exports)
    found = _found(spark, result, "main", *(row.name for row in DIAMOND))
    assert found == {("disagreement", "main", name, ("one", "two")) for name in ("right", "merge")}
    details = {example.detail for example in result.examples}
    assert details == {"rows of tangles differ", "rows of dependencies differ"}


_MEMBER: dict[str, object] = {
    "repo_id": id_of("repo"),
    "member": id_of("bob"),
    "permission": "emperor",
    "person": None,
}
_DAMAGED: dict[str, list[dict[str, object]]] = {
    "memberships": [
        {
            "sequence": 1, "commit_id": id_of("root"), "repo_id": id_of("repo"), "operation": "grant",
            "member": id_of("ada"), "permission": "read", "epoch": None, "reason": "magic", "sealed_to": -1,
            "counts": True,
        }
    ],
    "members": [_MEMBER, _MEMBER],
    "topics": [
        {"topic": id_of("t"), "repo_id": id_of("repo"), "kind": "odd", "branch_id": None, "epoch": id_of("none")}
    ],
    "tangles": stated_places(("reply", "root", "ghost", ("root",))),
    "pending": [
        {
            "commit_id": id_of("left"), "topic": id_of("t"), "branch_id": None, "reason": "causes", "lacking": 1,
            "size": 1, "arrived_at": None, "arrival": 1,
        }
    ],
}  # fmt: skip


BLOCK_KINDS = {"wrong id", "wrong acks", "malformed block", "missing block", "stray block", "dangling block"}


def test_blocks_that_are_not_what_is_said_of_them_are_found(spark: SparkSession, tmp_path: Path) -> None:
    world = World(tmp_path / "world")
    names = [
        "early",
        "gone",
        "sound",
        "flipped",
        "cut",
        "long",
        "hidden",
        "sized",
        "mothered",
        "dangling",
        "acks",
        "extra",
    ]
    world.write(", ".join(names))
    ids = {name: written.commit_id for name, written in world.commits.items()}
    for name in ("forged", "honest"):
        export_node(world.replica.database, tmp_path / name, name, 1, blocks=True)
    world.close()

    def change(rows: list[dict[str, Any]]) -> None:
        own = {name: next(row for row in rows if row["block_id"] == raw) for name, raw in ids.items()}
        body = {
            name: next(row for row in rows if row["commit_id"] == raw and row["content"] is None)
            for name, raw in ids.items()
        }
        content = own["flipped"]["content"]
        own["flipped"]["content"] = content[:-1] + bytes([content[-1] ^ 1])
        own["cut"].update(content=own["cut"]["content"][:-1], size=own["cut"]["size"] - 1)
        own["long"].update(content=bytes(BLOCK_SIZE_MAX + 1), size=BLOCK_SIZE_MAX + 1)
        own["hidden"]["content"] = None
        own["sized"]["size"] += 1
        own["mothered"]["child_ids"] = [id_of("nowhere")]
        body["dangling"]["child_ids"] = [body["dangling"]["block_id"], id_of("nowhere")]
        body["sound"]["size"] = -1
        rows.remove(own["gone"])
        rows.remove(own["early"])
        rows.remove(body["early"])
        rows.append(
            own["sound"] | {"commit_id": id_of("stray"), "block_id": id_of("stray's"), "content": None}
        )

    change_rows(tmp_path / "forged", "blocks", change)
    root = world.branch.facts.root_id

    def lie(rows: list[dict[str, Any]]) -> None:
        for row in rows:
            if row["commit_id"] == ids["acks"]:
                row["acks"] = [ids["sound"]]

    change_rows(tmp_path / "forged", "commits", lie)
    # Up to there commits may have been forgotten before blocks were asked for; the next one may not.
    manifest = json.loads((tmp_path / "forged" / MANIFEST_NAME).read_bytes())
    exported = pq.read_table(tmp_path / "forged" / manifest["tables"]["commits"][0]["path"]).to_pylist()
    early = next(row["sequence"] for row in exported if row["commit_id"] == ids["early"])
    change_manifest(tmp_path / "forged", blocks_from=early)
    change_manifest(tmp_path / "honest", has_blocks=False)  # though there are some
    relay = _forged_relay(tmp_path)
    result = _audit(spark, tmp_path / "out", tmp_path / "forged", tmp_path / "honest", relay)
    assert result.without_blocks == ()
    rows = [
        row
        for row in spark.read.parquet(str(result.tables / "findings")).collect()
        if row["kind"] in BLOCK_KINDS | {"absurd value"}
    ]
    named: dict[bytes, str] = {
        **{raw: name for name, raw in ids.items()},
        id_of("stray"): "stray",
        **{block.block_id: name for name, block in RELAYED.items()},
    }
    assert {(row["kind"], named[bytes(row["commit_id"])], *row["nodes"]) for row in rows} == {
        ("wrong id", "flipped", "forged"),
        ("wrong id", "cut", "forged"),
        ("malformed block", "cut", "forged"),
        ("malformed block", "long", "forged"),
        ("malformed block", "hidden", "forged"),
        ("malformed block", "sized", "forged"),
        ("malformed block", "mothered", "forged"),
        ("dangling block", "mothered", "forged"),
        ("dangling block", "dangling", "forged"),
        ("missing block", "gone", "forged"),
        ("stray block", "stray", "forged"),
        ("wrong acks", "acks", "forged"),
        ("absurd value", "sound", "forged"),
        ("wrong acks", "other acks", "relay"),
        ("missing block", "bodies alone", "relay"),
        ("missing block", "lost", "relay"),
        ("stray block", "unknown", "relay"),
    }
    assert len(rows) == 17
    details = {(row["kind"], named[bytes(row["commit_id"])]): row["detail"] for row in rows}
    assert details["wrong acks", "acks"] == f"its block has 1: {root.hex()}"
    assert details["malformed block", "long"].startswith("1048577 bytes, at most 1048576, in forged/blocks/")
    assert details["dangling block", "dangling"] == f"no export has {id_of('nowhere').hex()}"
    assert details["missing block", "gone"] == "its own block has no row"
    assert details["stray block", "stray"].startswith("no row states its commit, in forged/blocks/")
    branches = {named[bytes(row["commit_id"])]: row["branch_id"] for row in rows}
    assert bytes(branches["gone"] or b"") == world.branch.branch_id
    assert branches["stray"] is branches["other acks"] is None


RELAYED = {
    name: encrypt_block(
        name.encode().ljust(size),
        ConvergenceSecret(b"c" * 32),
        acks=(as_commit_id(id_of("cause")),),
        rank=1,
        mark=b"m" * MARK_SIZE,
    )[0]
    for name, size in [
        ("forgotten", 9),
        ("lost", 9),
        ("full", BLOCK_SIZE_MAX - 60),
        ("other acks", 9),
        ("bodies alone", 9),
        ("unknown", 9),
    ]
}
"""Blocks of commits that a relay has; one is as large as there can be."""


def _forged_relay(tmp_path: Path) -> Path:
    taken = [name for name in RELAYED if name != "unknown"]
    commits = relayed(*[RelayedCommit(name, ("cause",)) for name in taken])
    for row, name in zip(commits, taken, strict=True):
        row["commit_id"] = RELAYED[name].block_id
    commits[taken.index("other acks")]["acks"] = [id_of("another cause")]
    sequences = dict(zip(taken, range(1, 9), strict=False)) | {"unknown": 9}
    blocks: list[dict[str, object]] = [
        {
            "sequence": sequences[name],
            "commit_id": block.block_id,
            "block_id": block.block_id,
            "size": len(block.encoded),
            "child_ids": [],
            "content": block.encoded,
        }
        for name, block in RELAYED.items()
        if name not in ("forgotten", "lost")
    ]
    for block in blocks:
        if block["commit_id"] == RELAYED["bodies alone"].block_id:
            block |= {"block_id": id_of("a body"), "content": None}
    tables = {"relay_commits": commits, "relay_blocks": blocks}
    return write_export(tmp_path / "relay", [], node="relay", tables=tables, blocks_from=1)


def test_a_person_is_told_how_much_was_recomputed_and_for_whom_nothing(tmp_path: Path) -> None:
    result = audit.AuditResult(
        5, 7, 6, 1, BlockCounts(12, 5, 2, 6, 3), ("n1", "n2", "n3", "n4"), (), {}, (), tmp_path, 1.0
    )
    *told, last = audit_command.as_text(result).splitlines()[2:]
    assert told == [
        "blocks   12: 5 ids recomputed, 2 not at their nodes",
        "ids recomputed for 3 of 6 commits",
        "4 of 5 exports have no blocks: n1, n2, n3, ...",
    ]
    assert "only a part was checked" in last
    assert "config set export.blocks true" in last
    whole = replace(result, blocks=BlockCounts(12, 6, 2, 6, 6), without_blocks=())
    assert len(audit_command.as_text(whole).splitlines()) == 4
    assert audit_command.as_text(whole).splitlines()[-1] == "nothing is wrong"


def test_the_command_says_what_it_found_and_ends_with_its_exit_code(
    spark_for_commands: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [Row("root"), Row("tip", ("root",), rank=7)]
    folder = write_export(tmp_path / "export", rows, blocks_from=2)
    change_manifest(folder, blocks_from=2)
    assert audit_command.main([str(folder), "--out", str(tmp_path / "out"), "--json"]) == EXIT_MISMATCH
    told = capsys.readouterr()
    answer = json.loads(told.out)
    assert answer["findings"] == {"wrong rank": 1}
    counts = {"rows": 0, "recomputed": 0, "absent": 0, "ids": 2, "ids_recomputed": 0}
    assert (answer["without_blocks"], answer["blocks"]) == (["node"], counts), (
        "though it says that it has them"
    )
    assert answer["examples"][0]["detail"] == "states 7, the acks give 1"
    assert "4/4 count" in told.err


def test_a_file_that_cannot_be_read_ends_the_job_with_its_name_and_the_stage(
    spark_for_commands: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_export(tmp_path / "export", DIAMOND)
    # A page that was altered before the manifest was made: only reading it shows that.
    path = folder / "commits" / "part-00000001.parquet"
    content = bytearray(path.read_bytes())
    content[4:400] = bytes(396)
    path.write_bytes(content)
    change_manifest(folder, tables={"commits": [listing(path, len(DIAMOND))]})
    assert audit_command.main([str(folder), "--out", str(tmp_path / "out")]) == EXIT_UNEXPECTED
    told = capsys.readouterr().err
    assert told.splitlines()[-2].startswith("error: Spark failed at 3/4 look at every row")
    assert str(folder) in told
    assert "Traceback" not in told


def test_a_master_that_spark_does_not_know_is_a_clear_error(tmp_path: Path) -> None:
    """In a process of its own, as `ravel audit` runs it."""
    folder = write_export(tmp_path / "export", DIAMOND)
    command = [sys.executable, "-P", "-m", "node.cli.main", "--home", str(tmp_path), "audit", str(folder)]
    command += ["--out", str(tmp_path / "out")]
    done = subprocess.run([*command, "--master", "nonsense"], capture_output=True, text=True, check=False)
    assert done.returncode == EXIT_BAD_REQUEST, done.stderr
    assert done.stderr.splitlines()[-2].startswith("error: Spark does not start ")
    assert "Traceback" not in done.stderr
