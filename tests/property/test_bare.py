"""Bodies come to some nodes and not to others, and some are not what their commits say: all nodes judge and order alike."""

import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from node.care.fsck import check_store
from node.ingest.replica import Replica
from node.timelines.views import timeline_items
from protocol.formats.body import encode_body
from protocol.formats.content import Post
from protocol.formats.publication import decode_publication
from protocol.ids import CommitId
from storage.commits.commits import digest_timeline, load_timeline
from storage.repos.repos import Branch
from tests.support.builders import STORE_KEY, World, give
from tests.support.forging import BAD_BODIES, Forger, bare_of
from tests.support.strategies import histories

# Each example fills stores: 200 of them would take minutes.
_SLOW_STORE = settings(
    max_examples=min(25, settings().max_examples),
    suppress_health_check=[HealthCheck.too_slow],
    deadline=None,
)


def _said(replica: Replica, branch: Branch) -> list[tuple[object, ...]]:
    """What the timeline shows of each commit, and whether its body is here."""
    with replica.database.read() as connection:
        rows = load_timeline(connection, branch.num, 0, 1000)
        items = timeline_items(connection, replica, rows, 0)
    return [
        (one["position"], one["commit"], one["rank"], one["kind"], one["text"], "erased" in one)
        for one in items
    ]


def _digest(replica: Replica, branch: Branch) -> tuple[str, int]:
    with replica.database.read() as connection:
        return digest_timeline(connection, branch.num)


@pytest.mark.slow
@_SLOW_STORE
@given(dag=histories(), data=st.data())
def test_with_any_bodies_seen_or_not_in_any_order_verdicts_and_order_are_the_same(
    dag: list[list[int]], data: st.DataObject
) -> None:
    bodies = {"good": encode_body(Post("words")), **BAD_BODIES}
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder) / "world")
        try:
            forger = Forger(world)
            items: list[bytes] = []
            ids: list[CommitId] = []
            rejected: set[bytes] = set()
            for number, acks in enumerate(dag):
                name = data.draw(st.sampled_from([*bodies, "good", "good", "nothing said"]))
                body, metadata = (
                    (bodies["bad shape"], b"") if name == "nothing said" else (bodies[name], None)
                )
                items.append(forger.write(body, metadata, [ids[ack] for ack in acks]))
                ids.append(decode_publication(items[-1]).commit_id)
                if name == "nothing said" or any(ids[ack] in rejected for ack in acks):
                    rejected.add(ids[number])
            nodes = [world.copy() for _ in range(2)]
            codes: list[Counter[CommitId]] = []
            for replica, _ in nodes:
                bare = data.draw(st.sets(st.sampled_from(items)))
                arriving = data.draw(st.permutations(items))
                seen: Counter[CommitId] = Counter()
                for item in arriving:
                    # Of a commit that says nothing of its body nobody takes a bare one: that comes whole as well.
                    parts = [bare_of(item)] if item in bare else []
                    if not parts or decode_publication(item).commit_id in rejected:
                        parts.append(item)
                    for part in parts:
                        refused = give(replica, [part]).rejected
                        seen.update(verdict.commit_id for verdict in refused)
                codes.append(seen)
            assert codes[0] == codes[1]
            assert set(codes[0]) == rejected
            assert _digest(*nodes[0]) == _digest(*nodes[1])
            first, second = (_said(*node) for node in nodes)
            assert [one[:4] for one in first] == [one[:4] for one in second]
            for replica, _ in nodes:
                give(replica, data.draw(st.permutations(items)))
                assert check_store(replica.database.folder, STORE_KEY).problems == []
            assert _said(*nodes[0]) == _said(*nodes[1])
            assert not any(lacks for *_, lacks in _said(*nodes[0]))
        finally:
            world.close()
