"""The models of a study: their shapes are what they are said to be, and deliveries respect feeds."""

from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.study.tangle_models import (
    LURKER_SHARE,
    LURKERS_PER_ACTIVE,
    MODELS,
    MORE_REFERENCES,
    PARTITION_COMMITS,
    Graph,
    deliver_in_order,
    deliver_random_feed,
    from_rows,
    lurkers,
    partitions,
    two_feeds,
    two_feeds_first,
    two_feeds_more,
)


def ranks_of(graph: Graph) -> list[int]:
    """By the definition."""
    ranks: list[int] = []
    for causes in graph.causes:
        ranks.append(1 + max((ranks[cause] for cause in causes), default=-1))
    return ranks


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
@given(height=st.integers(1, 200), width=st.integers(4, 20), seed=st.integers(0, 1000))
def test_causes_come_first_each_feed_is_a_chain_and_a_seed_repeats(
    model: str, height: int, width: int, seed: int
) -> None:
    graph = MODELS[model](height, width, seed)
    assert len(graph) == len(graph.feeds) == height
    assert sorted(graph.names) == list(range(height))
    last: dict[int, int] = {}
    for commit, (causes, feed) in enumerate(zip(graph.causes, graph.feeds, strict=True)):
        assert all(cause < commit for cause in causes)
        assert len(set(causes)) == len(causes) <= 2 + MORE_REFERENCES * model.endswith("references")
        assert last.get(feed) in (None, *causes)
        last[feed] = commit
    assert MODELS[model](height, width, seed) == graph
    assert height < 10 or MODELS[model](height, width, seed + 1) != graph


@pytest.mark.parametrize("width", [4, 64])
@pytest.mark.parametrize("model", [two_feeds, two_feeds_first, two_feeds_more])
def test_the_papers_model_has_two_commits_at_every_rank(
    model: Callable[[int, int, int], Graph], width: int
) -> None:
    graph = model(2000, width, 1)
    assert set(Counter(ranks_of(graph)).values()) == {2}
    assert len(set(graph.feeds)) == width


@pytest.mark.slow
def test_lurkers_write_little() -> None:
    graph = lurkers(20_000, 4, 1)
    by_lurkers = sum(feed >= 4 for feed in graph.feeds) / len(graph)
    assert abs(by_lurkers - LURKER_SHARE) < LURKER_SHARE / 4
    assert max(graph.feeds) < 4 * (1 + LURKERS_PER_ACTIVE)


def test_halves_that_are_partitioned_do_not_ack_each_other() -> None:
    graph = partitions(PARTITION_COMMITS * 2, 8, 1)
    apart = range(PARTITION_COMMITS + 8, PARTITION_COMMITS * 2)
    for commit in apart:
        recent = [cause for cause in graph.causes[commit] if cause >= PARTITION_COMMITS + 8]
        assert all((graph.feeds[cause] < 4) == (graph.feeds[commit] < 4) for cause in recent)


@given(st.integers(1, 300), st.integers(4, 20), st.integers(0, 1000))
def test_a_delivery_holds_everything_once_and_each_feed_in_order(height: int, width: int, seed: int) -> None:
    graph = two_feeds(height, width, seed)
    assert deliver_in_order(graph, seed) == list(range(height))
    delivered = deliver_random_feed(graph, seed)
    assert sorted(delivered) == list(range(height))
    for feed in set(graph.feeds):
        of_feed = [commit for commit in delivered if graph.feeds[commit] == feed]
        assert of_feed == sorted(of_feed)


def test_a_real_tangle_becomes_a_graph() -> None:
    rows = [(b"m", [], b"ada"), (b"b", [b"m", b"gone"], b"bob"), (b"z", [b"m", b"b", b"m"], b"ada")]
    assert from_rows(rows) == Graph([(), (0,), (0, 1)], [0, 1, 0], [1, 0, 2])


def test_the_first_of_equally_long_feeds_is_meant_where_that_is_the_rule() -> None:
    graph = two_feeds_first(2000, 8, 1)
    drawn = two_feeds(2000, 8, 1)

    def share_of_first(graph: Graph) -> float:
        acked = [
            graph.feeds[cause]
            for causes, feed in zip(graph.causes, graph.feeds, strict=True)
            for cause in causes
            if graph.feeds[cause] != feed
        ]
        return sum(feed < 4 for feed in acked) / len(acked)

    assert share_of_first(graph) > 0.65
    assert 0.4 < share_of_first(drawn) < 0.6
