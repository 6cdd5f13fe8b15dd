"""Writes that are prepared again: after their preparation came an epoch that the one in use does not open (V12)."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from node.ingest.ingest_result import IngestResult
from protocol.formats.body import Permission
from protocol.formats.content import Post
from protocol.formats.epochs import EpochOpen
from storage.repos.repos import Repo
from tests.unit.node.membership.epoch_people import Person, open_people


def _begin(people: list[Person]) -> None:
    """Alice founds a repo, in which bob is an admin, too; both start an epoch beside one another."""
    alice, bob = people
    alice.found().grant(bob, permission=Permission.ADMIN)
    bob.follow(alice).hear(alice)
    alice.author.start_epoch(alice.repo)
    bob.author.start_epoch(bob.repo)


@pytest.fixture
def people(tmp_path: Path) -> Iterator[list[Person]]:
    with open_people(tmp_path, "alice", "bob", begin=_begin) as made:
        yield made


@pytest.fixture(autouse=True)
def meanwhile(people: list[Person], monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have bob's epoch come to alice after the next preparation."""
    alice, bob = people
    prepare, coming = alice.author.preparation.prepare, [bob]

    def prepare_and_hear(repo: Repo, stored: IngestResult) -> None:
        prepare(repo, stored)
        if coming:
            alice.hear(coming.pop())

    monkeypatch.setattr(alice.author.preparation, "prepare", prepare_and_hear)
    yield
    assert not coming
    operations = alice.replica.membership(alice.repo.repo_id).operations
    assert [one for one in operations.authored_by(alice.user) if isinstance(one.body, EpochOpen)]


def test_a_post_is(people: list[Person]) -> None:
    alice, _ = people
    main = next(one for one in alice.replica.branches.values() if one.name == "main")
    alice.author.write(main, Post("hello"))


def test_a_new_branch_is(people: list[Person]) -> None:
    alice, bob = people
    stored = IngestResult()
    branch, _ = alice.author.founding.create_branch(alice.repo, "plans", stored=stored)
    assert sum(map(len, stored.accepted.values())) == 3, "what opens the epoch, and the branch with its first"
    bob.hear(alice)
    assert branch.branch_id in {one.branch_id for one in bob.replica.branches.values()}
