"""What counts for a post is a function of the set of commits: the store finds what the rule says, whatever comes first."""

import tempfile
from collections.abc import Mapping
from contextlib import closing, suppress
from pathlib import Path
from random import Random
from typing import Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from node.authoring.author import Author
from node.authoring.drafting import Draft
from node.ingest.replica import Replica, load_blocks_of, open_stored
from node.runtime.errors import ServiceError
from node.timelines.views import timeline_items
from protocol.crypto.keys import UserSeed
from protocol.formats.body import Body, Grant, Hide, Permission, Remove, UnknownBody
from protocol.formats.commit import Commit, TanglePlace
from protocol.formats.content import Imported, Post
from protocol.ids import BranchId, CommitId, UserId
from storage.commits.commits import load_timeline
from storage.commits.post_index import load_changes, load_replies, load_versions, place_of
from storage.repos.repos import Branch
from tests.support.builders import NOW_MS, World, give
from tests.support.memberships import USERS, commit_id, make_commit, make_init, replay_shuffled
from tests.support.reference_posts import PostFacts, ResolvedPost, resolve_post
from verifier.posts import Relation, find_hidden, find_relation, make_place

_KINDS: Final = ("post", "imported", "reply", "edit", "edit", "edit", "delete")
_AUTHORS: Final = ("ann", "ben", "cat")
Step = tuple[str, str, int, frozenset[int]]
"""Author, kind, which earlier commit it is about, and which of the last ones it follows."""

steps = st.lists(
    st.tuples(
        st.sampled_from(_AUTHORS),
        st.sampled_from(_KINDS),
        st.integers(0, 30),
        st.frozensets(st.integers(0, 3), min_size=1, max_size=2),
    ),
    min_size=1,
    max_size=12,
)


def _tell(world: World, authors: Mapping[str, Author], story: list[Step], checkpoint: int) -> None:
    """Write the story. What a commit is about need not be in its past: it follows some of the last four commits."""
    made: list[CommitId] = []
    for number, (name, kind, about, follows) in enumerate(story):
        acks = [made[-1 - back] for back in sorted(follows) if back < len(made)]
        acks = acks[:1] if len(acks) > 1 and about % 2 else acks
        target = made[about % len(made)] if made else world.branch.facts.root_id
        body: Body = Post(f"{number}")
        tangles: tuple[TanglePlace, ...] = ()
        if kind == "imported":
            body = Imported(f"{number}", name, 0, f"{number}")
        elif kind != "post":
            tangles = (make_place(Relation(kind), target),)
        for chosen in (acks, acks[:1]):  # one may be implied by the other
            with suppress(ServiceError):
                draft = Draft(body, tuple(chosen) or (world.branch.facts.root_id,), tangles=tangles)
                written, _ = authors[name].write(world.branch, draft)
                break
        made.append(written.commit_id)
        if number == checkpoint:
            world.commits["c"] = written
            world.checkpoint_one("checkpoint", ["c"])


def _facts(replica: Replica, branch: Branch) -> dict[CommitId, PostFacts]:
    found = {}
    with replica.database.read() as connection:
        for row in load_timeline(connection, branch.num, 0, 1000):
            commit, _ = open_stored(replica, row, load_blocks_of(connection, [row])[row.num])
            stated = find_relation(commit, is_root_branch=False)
            found[row.commit_id] = PostFacts(
                row.commit_id, place_of(row), branch.branch_id, row.author, row.body_kind, stated
            )
    return found


def _by_the_store(
    replica: Replica, branch: Branch, persons: Mapping[UserId, UserId]
) -> dict[CommitId, ResolvedPost]:
    found = {}
    with replica.database.read() as connection:
        rows = load_timeline(connection, branch.num, 0, 1000)
        changes = load_changes(connection, rows, persons)
        for row in rows:
            change = changes.get(row.num)
            edit = None if change is None or change.edit is None else change.edit.commit_id
            versions = load_versions(connection, row, persons, 1000)
            deletions = [one.commit_id for one in versions if one.relation == "delete"]
            edits = [one.commit_id for one in versions if one.relation == "edit"]
            assert (change is not None and change.is_deleted) == bool(deletions)
            assert edit == (edits[-1] if edits else None)
            found[row.commit_id] = ResolvedPost(edit, deletions[0] if deletions else None)
            replies = load_replies(connection, branch.num, row.commit_id, 1000)
            assert all(one.relation == "reply" for one in replies)
    return found


def _shown(replica: Replica, branch: Branch) -> list[dict[str, object]]:
    with replica.database.read() as connection:
        rows = load_timeline(connection, branch.num, 0, 1000)
        return [dict(item) for item in timeline_items(connection, replica, rows, 0)]


@pytest.mark.slow
@pytest.mark.timeout(300)  # whole stores, written and filled again and again
# Each example fills stores.
@settings(
    max_examples=min(40, settings().max_examples),
    suppress_health_check=[HealthCheck.too_slow],
    deadline=None,
)
@given(
    story=steps,
    checkpoint=st.integers(-6, 11),
    removes=st.booleans(),
    shares=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_every_order_of_arrival_shows_the_same_posts(
    story: list[Step], checkpoint: int, removes: bool, shares: bool, seed: int
) -> None:
    rng = Random(seed)
    with tempfile.TemporaryDirectory() as folder, closing(World(Path(folder) / "world")) as world:
        world.name_quorum()
        root = world.replica.root_branch(world.repo)
        authors = {"ann": world.author}
        for name in ("ben", "cat"):
            authors[name] = Author(world.replica, UserSeed(name.encode().ljust(32)), lambda: NOW_MS)
            world.author.write(root, Grant(authors[name].user, Permission.WRITE))
        replica, branch = world.copy()
        _tell(world, authors, story, checkpoint)
        if removes:
            world.author.write(root, Remove(authors["cat"].user, None, ()))
        persons = {authors["cat"].user: authors["ben"].user} if shares else {}
        items = [*world.publications(world.branch), *world.publications(root)]
        rng.shuffle(items)
        for item in items:
            give(replica, [item])
        facts = _facts(world.replica, world.branch)
        expected = {
            raw: resolve_post(
                one,
                facts.values(),
                lambda first, second: persons.get(first, first) == persons.get(second, second),
            )
            for raw, one in facts.items()
        }
        assert _by_the_store(world.replica, world.branch, persons) == expected
        assert _by_the_store(replica, branch, persons) == expected
        assert _shown(replica, branch) == _shown(world.replica, world.branch)


# --- hiding ---

_BRANCH: Final = BranchId(b"b" * 32)
_POSTS: Final = tuple(commit_id(number) for number in range(200, 203))
Statement = tuple[Commit, Body | UnknownBody]


@st.composite
def hidings(draw: st.DrawFn) -> list[Statement]:
    """A repo of two admins and a writer, who hide posts concurrently; some are removed, or are admins no more."""
    made: list[Statement] = [(make_commit(0, "ann", ()), make_init())]
    for number, (name, level) in enumerate((("ben", Permission.ADMIN), ("cat", Permission.WRITE)), 1):
        made.append((make_commit(number, "ann", (number - 1,)), Grant(USERS[name], level)))
    for number in range(len(made), len(made) + draw(st.integers(1, 25))):
        author = draw(st.sampled_from(_AUTHORS))
        seen = draw(st.sets(st.integers(max(2, number - 5), number - 1), min_size=1, max_size=3))
        said: Body
        if draw(st.integers(0, 9)):
            chosen = draw(st.sets(st.sampled_from(_POSTS), min_size=1))
            said = Hide(_BRANCH, tuple(sorted(chosen)), draw(st.booleans()))
        else:
            keeps = draw(st.sampled_from([None, Permission.WRITE]))
            said = Remove(USERS[draw(st.sampled_from(_AUTHORS[1:]))], keeps, ())
        made.append((make_commit(number, author, tuple(seen)), said))
    return made


@given(hidings(), st.integers(0, 1000))
def test_every_order_of_arrival_hides_the_same(history: list[Statement], seed: int) -> None:
    first, second = (replay_shuffled(history, Random(seed + more)) for more in (0, 1))
    assert find_hidden(first) == find_hidden(second)
    older = replay_shuffled([(commit, _as_known_before(body)) for commit, body in history], Random(seed))
    assert older.operations.heads() == first.operations.heads(), "older nodes accept and reject the same"
    for hider in find_hidden(first).get(_BRANCH, {}).values():
        assert hider in (USERS["ann"], USERS["ben"]), "a writer hides nothing"


def _as_known_before(body: Body | UnknownBody) -> Body | UnknownBody:
    return UnknownBody("hide1") if isinstance(body, Hide) else body
