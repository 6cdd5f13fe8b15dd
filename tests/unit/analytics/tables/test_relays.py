"""What exports of relays and of pseudonyms tell, counted by hand."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from analytics import analyze
from analytics.audit import audit
from analytics.reading.export_reader import load_commits
from tests.support.analyses import Counted
from tests.support.exports import DAY_MS, T0_MS, RelayedCommit, Row, id_of, relayed, write_export
from tests.support.read_exports import read_export

pytestmark = pytest.mark.slow

TAKEN = (
    RelayedCommit("a"),
    RelayedCommit("b", ("a",), size=200, received=T0_MS + 1000),
    RelayedCommit("c", ("a",), blocks=3, received=T0_MS + 3000),
    RelayedCommit("x", (), "forgotten", received=0),  # taken before arrivals were written down
)
KEPT = [
    {"topic": id_of("t"), "is_pinned": True, "commits": 3, "size": 800, "touched_at": T0_MS},
    {"topic": id_of("empty"), "is_pinned": False, "commits": 0, "size": 0, "touched_at": T0_MS},
]


def _relay(folder: Path, node: str = "relay") -> Path:
    return write_export(
        folder,
        node=node,
        tables={"relay_commits": relayed(*TAKEN), "relay_topics": KEPT},
        quotas={"total": 8000, "topic": 1600, "peer": 1},
    )


def test_topics_and_quotas_are_counted_as_by_hand(tmp_path: Path) -> None:
    exports = [
        read_export(_relay(tmp_path / "one")),
        read_export(_relay(tmp_path / "again")),  # of the same node: counted once
        read_export(write_export(tmp_path / "two", [Row("a")], node="replica")),
    ]
    with Counted(exports, tmp_path / "out") as counted:
        counted.catalog.write(["relays", "relay_topics", "relay_growth"])
        found = counted.table("relay_topics", "node", "topic")
        whole = counted.table("relays", "node")
        growth = counted.table("relay_growth", "node", "bucket_start")
        period = counted.catalog.period("relayed", "received_at")
    assert found["relay", id_of("t")] == {
        "commits": 3,
        "blocks": 7,
        "bytes": 800,
        "heads": 2,
        "first_received": T0_MS,
        "last_received": T0_MS + 3000,
        "is_kept": True,
        "is_pinned": True,
        "kept_commits": 3,
        "kept_bytes": 800,
        "quota_use": 0.5,
    }
    gone = found["relay", id_of("forgotten")]
    assert (gone["commits"], gone["is_kept"], gone["kept_bytes"], gone["first_received"]) == (
        1,
        False,
        0,
        None,
    )
    assert found["relay", id_of("empty")]["commits"] == 0
    assert len(found) == 3
    assert whole == {
        "relay": {
            "topics": 3,
            "kept_topics": 2,
            "pinned_topics": 1,
            "commits": 4,
            "kept_commits": 3,
            "blocks": 9,
            "bytes": 1100,
            "kept_bytes": 800,
            "quota": 8000,
            "quota_use": 0.1,
            "first_received": T0_MS,
            "last_received": T0_MS + 3000,
        }
    }
    assert period is not None
    assert (period.start, period.end, period.bucket) == (T0_MS, T0_MS + 3000, 1000)
    assert growth == {
        ("relay", T0_MS): {"commits": 1, "bytes": 300, "bytes_in_all": 300},
        ("relay", T0_MS + 1000): {"commits": 1, "bytes": 200, "bytes_in_all": 500},
        ("relay", T0_MS + 3000): {"commits": 1, "bytes": 300, "bytes_in_all": 800},
    }


def test_edits_are_counted_as_they_were_delivered(tmp_path: Path) -> None:
    kinds = (("a", "move"), ("b", "remove"), ("b", "insert"), ("a", "move"))
    edits = [
        {
            "sequence": 10 + at,
            "branch_id": id_of("main"),
            "commit_id": id_of(name),
            "kind": kind,
            "passed_before": None if kind == "insert" else 0,
            "passed_after": None if kind == "remove" else 1,
        }
        for at, (name, kind) in enumerate(kinds)
    ]
    rows = [Row("a"), Row("b", ("a",)), Row("z", branch="quiet")]
    exports = [read_export(write_export(tmp_path / "one", rows, tables={"edits": edits}))]
    with Counted(exports, tmp_path / "out") as counted:
        counted.catalog.write(["edits"])
        found = counted.table("edits", "branch_id")
    assert found[id_of("main")] == {
        "node": "node",
        "commits": 2,
        "returns": 1,
        "moves": 2,
        "removes": 1,
        "edits_per_commit": 3.0,
    }
    assert found[id_of("quiet")]["edits_per_commit"] == 1.0


def test_the_export_of_a_relay_alone_has_a_report(tmp_path: Path) -> None:
    result = analyze.run(
        _relay(tmp_path / "export"), tmp_path / "out", progress=lambda _: None, engine="local"
    )
    assert (result.commits, result.is_right) == (0, True)
    page = result.report.read_text(encoding="utf-8")
    assert "<h2>Relays</h2>" in page
    assert "10.0%" in page
    lines = (tmp_path / "out" / "csv" / "relays.csv").read_text().splitlines()
    assert lines[1].startswith('"relay",3,2,1,4,3,9,1100,800,8000,0.1,')


@pytest.mark.extended
def test_authors_under_different_keys_contradict_nothing(spark: SparkSession, tmp_path: Path) -> None:
    plain = [Row("a"), Row("b", ("a",), time=T0_MS + DAY_MS)]
    hidden = [Row("a", author="hidden"), Row("b", ("a",), author="hidden", time=T0_MS + DAY_MS)]
    one = read_export(write_export(tmp_path / "one", plain, node="one"))
    two = read_export(write_export(tmp_path / "two", hidden, node="two", pseudonyms="11"))
    liar = read_export(write_export(tmp_path / "liar", hidden, node="liar"))
    disputed = "count_if(is_disputed) as disputed"
    assert load_commits(spark, one, two).selectExpr(disputed).collect()[0]["disputed"] == 0
    assert load_commits(spark, one, liar).selectExpr(disputed).collect()[0]["disputed"] == 2
    said: list[str] = []
    result = audit.run([one.source, two.source], tmp_path / "audit", progress=said.append, spark=spark)
    assert dict(result.findings) == {}
    assert any("different keys" in line for line in said)
