"""What a join costs each node that takes it in: the same, however many members and epochs a repo has."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

from node.authoring.author import Author
from node.authoring.drafting import Draft
from node.ingest.ingest_result import IngestResult
from node.membership.epoch_duties import EpochDuties
from node.membership.epoch_keys import KeyTaker
from protocol.crypto.keys import InvitationSeed, UserSeed
from protocol.crypto.signing import key_pair
from protocol.formats.body import Grant, Invite, Join, Permission
from protocol.formats.proofs import prove_invitation
from tests.support.builders import NOW_MS, World

_INVITATION = InvitationSeed(b"i" * 32)
_LAYERS = ("/verifier/", "/node/membership/")


def _count_calls(work: Callable[[], object]) -> int:
    """Calls of functions that judge, and of those that look for duties."""
    count = 0

    def note(frame: FrameType, event: str, _arg: object) -> None:
        nonlocal count
        count += event == "call" and any(layer in frame.f_code.co_filename for layer in _LAYERS)

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def _calls_of_a_join(folder: Path, members: int, epochs: int) -> int:
    world = World(folder)
    owner, replica, repo = world.author, world.replica, world.repo
    root = replica.root_branch(repo)
    users = [key_pair(UserSeed(number.to_bytes(32)))[0] for number in range(members)]
    owner.write_many(root, [Draft(Grant(user, Permission.WRITE)) for user in users])
    for _ in range(epochs):
        owner.start_epoch(replica.repos[repo.num])
    invitation = Invite(key_pair(_INVITATION)[0], Permission.WRITE, 8, NOW_MS + 1)
    written, _ = owner.write(root, invitation)
    keys, duties = KeyTaker(replica, owner), EpochDuties(replica, owner)

    def join(number: int) -> None:
        joiner = Author(replica, UserSeed(b"j" * 31 + bytes([number])), lambda: NOW_MS)
        proof = prove_invitation(_INVITATION, repo.repo_id, joiner.user)
        joiner.write(root, Join(written.commit_id, proof))
        keys.take(replica.repos[repo.num])
        duties.perform(replica.repos[repo.num], 0.0, IngestResult())

    for number in range(2):  # the first finds out of all members what the next go on with
        join(number)
    calls = _count_calls(lambda: join(2))
    world.close()
    return calls


def test_a_join_costs_the_same_with_more_members_or_epochs(tmp_path: Path) -> None:
    few = _calls_of_a_join(tmp_path / "few", 4, 2)
    assert _calls_of_a_join(tmp_path / "members", 32, 2) <= few + 8
    assert _calls_of_a_join(tmp_path / "epochs", 4, 8) <= few + 8


def _writes_of_a_hand_over(folder: Path, epochs: int) -> tuple[int, int]:
    """Transactions of a hand-over to a follower, and the commits that they store."""
    world = World(folder)
    owner, replica, repo = world.author, world.replica, world.repo
    for _ in range(epochs):
        owner.start_epoch(replica.repos[repo.num])
    duties, stored = EpochDuties(replica, owner), IngestResult()
    assert duties.perform(replica.repos[repo.num], 0.0, stored) is None
    owner.write(replica.root_branch(repo), Grant(key_pair(UserSeed(b"f" * 32))[0], Permission.WRITE))
    before = replica.database.commit_count
    duties.perform(replica.repos[repo.num], 0.0, stored)
    writes = replica.database.commit_count - before
    world.close()
    return writes, sum(map(len, stored.accepted.values()))


def test_a_follower_is_told_in_each_epoch_by_one_transaction(tmp_path: Path) -> None:
    assert _writes_of_a_hand_over(tmp_path / "few", 2) == (1, 3)
    assert _writes_of_a_hand_over(tmp_path / "many", 8) == (1, 9)
