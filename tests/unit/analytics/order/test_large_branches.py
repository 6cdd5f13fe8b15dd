"""Giants on a real Spark: whatever the graph and the ranges, the order is the kernel's, commit by commit."""

import random
from bisect import bisect_right
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from blake3 import blake3
from pyspark.sql import DataFrame, SparkSession

from analytics.order import large_branches as giants
from analytics.order import rank_check as witness
from analytics.order.branch_tasks import LargeBranchRefused
from analytics.order.linearize import (
    LINEARIZATION_COLUMNS,
    OrderedBranches,
    digest_giants,
    digest_orders,
    keep_order,
    linearize,
    order_branches,
)
from analytics.reading import limits
from analytics.reading.export_reader import load_commits, local_rows
from tests.support.builders import World, timeline
from tests.support.exports import export_node, id_of
from tests.support.read_exports import read_export

pytestmark = [pytest.mark.slow, pytest.mark.extended]

SCHEMA = (
    "branch_id binary, commit_id binary, acks array<binary>, sequence bigint, rank bigint, "
    "body_kind string, is_void boolean"
)
Commit = tuple[str, str, tuple[str, ...], int, int | None, str, bool]
"""Branch, name, acks, sequence, stated rank, body kind, whether void."""


def _frame(spark: SparkSession, commits: Sequence[Commit]) -> DataFrame:
    rows = [
        (bytearray(id_of(branch)), bytearray(id_of(name)), [bytearray(id_of(ack)) for ack in acks], *others)
        for branch, name, acks, *others in commits
    ]
    return spark.createDataFrame(rows, SCHEMA)


def _order(frame: DataFrame) -> dict[tuple[bytes, bytes], tuple[Any, ...]]:
    rows = frame.collect()
    found = {(bytes(row[0]), bytes(row[1])): tuple(row)[2:] for row in rows}
    assert len(found) == len(rows)
    return found


def _check(spark: SparkSession, commits: Sequence[Commit], giant_from: int) -> None:
    frame = _frame(spark, commits)
    assert _order(linearize(frame, giant_from)) == _order(linearize(frame, 1 << 40))


def _sound(spec: Sequence[tuple[str, tuple[int, ...], str, bool]]) -> list[Commit]:
    """Commits that ack earlier ones of their branch by index, with the ranks that these give."""
    commits: list[Commit] = []
    ranks: list[int] = []
    for number, (branch, acked, kind, is_void) in enumerate(spec):
        causes = [index for index in acked if commits[index][0] == branch]
        ranks.append(1 + max((ranks[index] for index in causes), default=-1))
        acks = tuple(commits[index][1] for index in causes)
        commits.append((branch, f"{branch}/c{number}", acks, number, ranks[-1], kind, is_void))
    return commits


def _random_graph(generator: random.Random, branch: str) -> list[Commit]:
    """A sound history, in which some is then forged: ranks, sequences, acks of what is later, elsewhere or nowhere."""
    count = generator.randrange(8, 32)
    spec: list[tuple[str, tuple[int, ...], str, bool]] = []
    for number in range(count):
        recent = range(max(0, number - 6), number)
        acked = tuple(generator.sample(recent, min(len(recent), generator.randrange(4))))
        kind = generator.choice(["post", "post", "post", "checkpoint"])
        if repeated := [past[1] for past in spec if past[2] == "checkpoint" and generator.random() < 0.1]:
            acked, kind = repeated[0][::-1], "checkpoint"  # of the same heads, which count once
        spec.append((branch, acked, kind, generator.random() < 0.1))
    commits = _sound(spec)
    for index in generator.sample(range(count), generator.randrange(4)):
        _, name, acks, sequence, rank, kind, is_void = commits[index]
        match generator.choice(["rank", "sequence", "ack", "nothing"]):
            case "rank":
                rank = generator.choice([None, -1, 0, 3, rank, 2**63 - 1])
            case "sequence":
                sequence = generator.randrange(count)
            case "ack":
                acks = (*acks, generator.choice([name, "nowhere", "0/c1", f"{branch}/c{count - 1}"]))
        commits[index] = (branch, name, tuple(dict.fromkeys(acks)), sequence, rank, kind, is_void)
    return commits


def test_any_graph_has_the_kernels_order_and_digest_kept_by_spark_or_in_files(
    spark: SparkSession, tmp_path: Path
) -> None:
    # All in one frame: a branch each, since every run of Spark costs seconds.
    generator = random.Random(1)
    graphs = [_random_graph(generator, str(number)) for number in range(10)]
    frame = _frame(spark, [commit for graph in graphs for commit in graph])
    frame = frame.selectExpr(
        "*", "sequence % 5 AS time", "sequence % 7 AS shown_at", "concat('note ', sequence) AS note"
    )
    expected, kept, in_files = (
        order_branches(
            frame, giant_from, carried=["note"], with_shapes=True, with_digests=True, folder=folder
        )
        for giant_from, folder in ((1 << 40, None), (14, None), (14, tmp_path / "ordered [1]"))
    )
    for ordered in (kept, in_files):
        assert ordered.giants
        assert ordered.order.columns == expected.order.columns
        assert _order(_without_digests(ordered)) == _order(_without_digests(expected))
    assert digest_giants(kept) == [], "nothing was written that could be read"
    assert keep_order(spark, kept, tmp_path, ()) is None
    stated = keep_order(spark, in_files, tmp_path / "stated", ())
    assert stated
    assert _order(stated.frame.select(*LINEARIZATION_COLUMNS)) == _order(
        expected.order.select(*LINEARIZATION_COLUMNS)
    )
    assert _digests(in_files) == _digests(expected)


def _without_digests(ordered: OrderedBranches) -> DataFrame:
    return ordered.order.drop("digest")


def _digests(ordered: OrderedBranches) -> dict[bytes, str]:
    in_tasks = ordered.order.where("digest IS NOT NULL").select("branch_id", "digest").collect()
    found = {bytes(branch_id): digest for branch_id, digest in in_tasks}
    of_giants = {one.branch_id: one.digest for one in digest_giants(ordered)}
    assert not found.keys() & of_giants.keys()
    return found | of_giants


def test_very_many_causes_in_other_ranges_are_joined_and_not_handed_round(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(witness, "BROADCAST_COUNT_MAX", 3)
    sound = _feeds(60, 8)
    found = _ordered(spark, sound, 10)
    assert found.rank_rounds == 0
    ranks = {bytes(row["commit_id"]): row["rank"] for row in found.order.where("fault_code = 0").collect()}
    assert ranks == {id_of(name): rank for _, name, _, _, rank, _, is_void in sound if not is_void}


def _feeds(count: int, feeds: int, checkpoint_every: int = 0) -> list[Commit]:
    """A busy branch: some feeds, now and then a merge of all."""
    generator = random.Random(count)
    tips = [0] * feeds
    spec: list[tuple[str, tuple[int, ...], str, bool]] = [("main", (), "post", False)]
    for number in range(1, count):
        feed = generator.randrange(feeds)
        merges = generator.random() < 0.1
        acked = tuple(dict.fromkeys(tips)) if merges else (tips[feed],)
        if generator.random() < 0.5 and not merges:
            acked = (*acked, *(tip for tip in tips[:1] if tip not in acked))
        is_checkpoint = bool(checkpoint_every) and number % checkpoint_every == 0
        spec.append(("main", acked, "checkpoint" if is_checkpoint else "post", generator.random() < 0.02))
        tips[feed] = number
    return _sound(spec)


def _ordered(spark: SparkSession, commits: Sequence[Commit], range_size: int) -> giants.LargeBranchOrder:
    frame = _frame(spark, commits)
    linearize(frame, 1 << 40)  # ships the code
    rows = frame.selectExpr(
        "branch_id", "commit_id", "acks", "sequence", "rank",
        "cast(case when is_void then 1 when body_kind = 'checkpoint' then 2 else 0 end as tinyint) as mark",
    )  # fmt: skip
    return giants.order_giants(rows, {id_of("main"): len(commits)}, range_size)


def test_a_row_goes_to_the_range_of_the_last_bound_that_is_not_above_it(spark: SparkSession) -> None:
    generator = random.Random(1)
    names = ["tangle", "rank", "commit_id"]
    keys = [
        (generator.randrange(2), generator.randrange(-2, 3), bytes([generator.randrange(4)]))
        for _ in range(80)
    ]
    frame = local_rows(spark, "tangle int, rank bigint, commit_id binary", keys)
    for bounds in ([], sorted(keys[:1]), sorted(keys[:9])):
        rows = frame.select(*names, giants.range_of(names, bounds)).collect()
        assert [row[3] for row in rows] == [bisect_right(bounds, key) for key in keys]


def test_ranks_that_solve_the_equations_take_no_round_however_deep(spark: SparkSession) -> None:
    chain = _sound([("main", (number - 1,) if number else (), "post", False) for number in range(600)])
    found = _ordered(spark, chain, 200)
    assert found.rank_rounds == 0
    places = {row["commit_id"]: (row["rank"], row["position"]) for row in found.order.collect()}
    assert places == {id_of(commit[1]): (n, n) for n, commit in enumerate(chain)}


def test_rounds_follow_the_ranges_and_not_the_depth(spark: SparkSession) -> None:
    chain = _sound([("main", (number - 1,) if number else (), "post", False) for number in range(600)])
    forged = [(*commit[:4], 0, *commit[5:]) for commit in chain]
    found = _ordered(spark, forged, 100)
    assert found.rank_rounds <= 6
    places = {row["commit_id"]: (row["rank"], row["position"]) for row in found.order.collect()}
    assert places == {id_of(commit[1]): (n, n) for n, commit in enumerate(chain)}


def test_checkpoints_of_a_giant_are_passed_as_in_a_task(spark: SparkSession) -> None:
    commits = _feeds(400, 5, checkpoint_every=90)
    found = _ordered(spark, commits, 100)
    assert (found.rank_rounds, found.checkpoint_rounds) == (0, 3)
    _check(spark, commits, 200)


def test_acceptance_orders_that_no_node_had_take_more_rounds_to_the_same_order(spark: SparkSession) -> None:
    """Two nodes' exports as one: sequences have no common meaning; and the ranks are forged as well. Small ones beside."""
    commits = _feeds(300, 4)
    generator = random.Random(1)
    mixed = [
        (*commit[:3], commit[3] + generator.randrange(60), generator.randrange(300), *commit[5:])
        for commit in commits
    ]
    small = [(f"small {n}", f"s{n}", (), n, 0, "post", False) for n in range(5)]
    _check(spark, [*mixed, *small], 100)


def test_a_nodes_own_export_has_the_nodes_timelines_as_giants(spark: SparkSession, tmp_path: Path) -> None:
    world = World(tmp_path / "world")
    world.tell_story()
    export_node(world.replica.database, tmp_path / "export", "node", 1_700_000_000)
    expected = {
        branch.branch_id: blake3(b"".join(timeline(world.replica, branch))).hexdigest()
        for branch in (world.branch, world.replica.root_branch(world.repo))
    }
    world.close()
    commits = load_commits(spark, read_export(tmp_path / "export")).persist()
    ordered = order_branches(commits, 6, with_digests=True, folder=tmp_path / "ordered")
    rows = digest_orders(ordered.order).collect()
    of_giants = {one.branch_id: one.digest for one in digest_giants(ordered)}
    of_others = ordered.order.where("digest IS NOT NULL").collect()
    commits.unpersist()
    assert {bytes(row["branch_id"]): row["digest"] for row in rows} == expected
    assert of_giants.keys() == ordered.giants.keys()
    assert world.branch.branch_id in of_giants
    assert of_giants | {bytes(row["branch_id"]): row["digest"] for row in of_others} == expected


@pytest.fixture
def limit(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, int], None]:
    return lambda name, value: monkeypatch.setattr(limits, name, value)


def test_more_checkpoints_than_a_giant_may_have_are_refused_with_their_number(
    spark: SparkSession, limit: Callable[[str, int], None]
) -> None:
    commits = _feeds(60, 3, checkpoint_every=10)
    checkpoints = sum(commit[5] == "checkpoint" and not commit[6] for commit in commits)
    limit("LARGE_BRANCH_CHECKPOINT_COUNT_MAX", checkpoints)
    _ordered(spark, commits, 60)
    limit("LARGE_BRANCH_CHECKPOINT_COUNT_MAX", checkpoints - 1)
    with pytest.raises(LargeBranchRefused, match=f"has {checkpoints} checkpoints.*--giant-from"):
        _ordered(spark, commits, 100)


def test_a_boundary_over_its_bound_is_refused_with_the_branch(
    spark: SparkSession, limit: Callable[[str, int], None]
) -> None:
    star: list[Commit] = [("main", "root", (), 0, 1, "post", False)]
    star += [("main", f"c{n}", ("root",), n, 1, "post", False) for n in range(1, 40)]
    limit("BOUNDARY_SIZE_MAX", 24 * 3)  # each of the other ranges acks the root, one commit of another range
    _ordered(spark, star, 10)
    limit("BOUNDARY_SIZE_MAX", 24 * 3 - 1)
    with pytest.raises(LargeBranchRefused, match=f"branch {id_of('main').hex()[:16]} of 40 commits"):
        _ordered(spark, star, 10)


def test_more_rounds_than_allowed_are_refused(spark: SparkSession, limit: Callable[[str, int], None]) -> None:
    chain = _sound([("main", (number - 1,) if number else (), "post", False) for number in range(40)])
    forged = [(*commit[:4], 0, *commit[5:]) for commit in chain]
    rounds = _ordered(spark, forged, 10).rank_rounds
    limit("WAVE_COUNT_MAX", rounds - 1)
    with pytest.raises(LargeBranchRefused, match="not ranked after"):
        _ordered(spark, forged, 10)
