"""Rules for commits that start, open or hand over epochs, or state prekeys (M9 to M11, M16, E2).

The rules stand in membership-rules.md. Who holds the key of an epoch judges what starts or hands it over. Whether an epoch
opens all that its commit follows (E4) is asked of every commit, and stands in `verifier.verify`. A member's boxes go to its
newest prekey: who copied the home before that was drawn opens nothing that is sealed after it.
"""

from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise
from typing import Final

from protocol.crypto.epoch_boxes import BOX_SIZE, Sealer, epoch_mark, is_prekey
from protocol.crypto.keys import EpochKey
from protocol.formats.body import Permission
from protocol.formats.epochs import (
    EpochHand,
    EpochInit,
    EpochOpen,
    EpochStatement,
    Prekey,
    StartParts,
    open_keys,
    open_topic,
)
from protocol.ids import EpochId, Mark, RepoId, UserId
from protocol.limits.formats import PREKEYS_UNUSED_MAX
from verifier.epochs import Epochs, describe_epoch
from verifier.operations import EpochStart, Operation, Operations
from verifier.refusal import CommitRefused
from verifier.resolution import Resolution

_MARKS_REMEMBERED_MAX: Final = 4096


@lru_cache(maxsize=_MARKS_REMEMBERED_MAX)  # making one costs as much as judging a commit
def mark_of(repo_id: RepoId, key: EpochKey) -> Mark:
    """Compute the mark of the epoch that has this key."""
    return epoch_mark(key, repo_id)


def epoch_statement(operation: Operation) -> EpochStatement:
    """Return what the operation that starts an epoch states of it."""
    return operation.body.states  # type: ignore[union-attr]  # both kinds of inits have it


def check_statement(repo_id: RepoId, states: EpochStatement, key: EpochKey) -> None:
    """Raise CommitRefused unless the writers' topic is stated under the epoch's key.

    It may be a key that cannot sign: nothing verifies under that, and members publish on the epoch's own topic, as where
    nobody holds the secret. A check would rest a verdict on the curve, and split nodes for good where libraries differ.
    """
    if open_topic(key, repo_id, states) is None:
        raise CommitRefused("bad_epoch", "M9: its writers' topic is not stated under the epoch's key")


def check_init(
    epochs: Epochs,
    before: Resolution,
    body: EpochInit,
    parts: StartParts,
    repo_id: RepoId,
    key: EpochKey,
    published_in: EpochId,
    *,
    checks_boxes: bool,
) -> EpochStart:
    """Raise CommitRefused if an init breaks M9, which demands what E2 describes; return the epoch that it starts.

    `key` must give the mark that the init states. Costs a multiplication on the curve (60 us) for each box. An init that
    was accepted before is read without `checks_boxes`: its boxes are taken to be right.
    """
    plan = describe_epoch(before)
    if len(parts.boxes) != BOX_SIZE * len(plan.members):
        raise CommitRefused("bad_epoch", "M9: not one box for each member")
    if len(parts.writers_boxes) != BOX_SIZE * len(plan.writers):
        raise CommitRefused("bad_epoch", "M9: not one writers' box for each member who may write")
    if any(epoch_statement(one).mark == body.states.mark for one in epochs.started_within(before)):
        raise CommitRefused("bad_epoch", "M9: the key of an earlier epoch")
    check_statement(repo_id, body.states, key)
    given = open_keys(key, repo_id, body.states.mark, parts.keys)
    if given is None:
        raise CommitRefused(
            "bad_epoch", "M9: the keys of earlier epochs are not stated under the epoch's key"
        )
    for one in given:
        _check_key(epochs, before, repo_id, one.epoch, one.key, "M9")
    if published_in not in {one.epoch for one in given}:
        raise CommitRefused("bad_epoch", "M9: it does not give the key of the epoch that it is published in")
    if checks_boxes:
        sealer = Sealer.of_epoch(key, repo_id)
        if any(
            sealer.seal(user, before.prekey_of(user))
            != parts.boxes[BOX_SIZE * place : BOX_SIZE * (place + 1)]
            for place, user in enumerate(plan.members)
        ):
            raise CommitRefused("bad_epoch", "M9: a box does not give the epoch's key")
    return epochs.describe_start(plan, {one.epoch for one in given})


def check_open(epochs: Epochs, before: Resolution, body: EpochOpen, repo_id: RepoId) -> None:
    """Raise CommitRefused unless a commit opens epochs of its past by their own keys (M11). Costs O(epochs opened)."""
    _check_order([one.epoch for one in body.epochs], "M11")
    for one in body.epochs:
        _check_key(epochs, before, repo_id, one.epoch, one.key, "M11")


def check_hand(
    epochs: Epochs,
    before: Resolution,
    body: EpochHand,
    repo_id: RepoId,
    key: EpochKey | None,
    *,
    checks_boxes: bool,
) -> None:
    """Raise CommitRefused unless a commit hands members an epoch of its past, in the right boxes (M10).

    Costs a multiplication on the curve (60 us) for each box. `key` gives the mark that it names, where one is held.
    """
    started = _find(epochs, before, body.epoch, "M10")
    states = epoch_statement(started)
    if (body.mark, body.writers_mark) != (states.mark, states.writers_mark):
        raise CommitRefused("bad_epoch", "M10: the epoch's init says another mark")
    _check_order([item.user for item in body.boxes], "M10")
    assert key is not None, "its init was accepted, which waits for the key"
    sealer = Sealer.of_epoch(key, repo_id)
    for item in body.boxes:
        held = before.permission(item.user)
        if held is None:
            raise CommitRefused("bad_epoch", "M10: a box for who is no member")
        if item.writers_box is not None and held < Permission.WRITE:
            raise CommitRefused("bad_epoch", "M10: a writers' box for who may not write")
        if checks_boxes and sealer.seal(item.user, before.prekey_of(item.user)) != item.box:
            raise CommitRefused("bad_epoch", "M10: a box does not give the epoch's key")


def _check_key(
    epochs: Epochs, before: Resolution, repo_id: RepoId, epoch: EpochId, key: EpochKey, rule: str
) -> None:
    if epoch_statement(_find(epochs, before, epoch, rule)).mark != mark_of(repo_id, key):
        raise CommitRefused("bad_epoch", f"{rule}: another key than the epoch's")


def _find(epochs: Epochs, before: Resolution, epoch: EpochId, rule: str) -> Operation:
    started = epochs.find(epoch)
    if started is None or not epochs.is_within(epoch, before.heads):
        raise CommitRefused("bad_epoch", f"{rule}: no such epoch in the commit's past")
    return started


def _check_order(named: Iterable[EpochId | UserId], rule: str) -> None:
    if any(later <= earlier for earlier, later in pairwise(named)):
        raise CommitRefused("bad_epoch", f"{rule}: not in order, or named twice")


def check_prekey(
    operations: Operations, author: UserId, body: Prekey, before: Resolution, epochs: Iterable[Operation]
) -> None:
    """Raise CommitRefused unless a user may state this prekey after `before`, which has these `epochs` (M16).

    Costs O(prekeys of the user), and O(epochs) for each of them that no epoch knows.
    """
    if not is_prekey(body.key):
        raise CommitRefused("bad_prekey", "M16: a key of small order")
    latest = sorted(epochs, key=lambda one: -one.num)
    unused = [
        one
        for one in before.prekeys_of(author)
        if not any(operations.precedes(one, epoch) for epoch in latest)
    ]
    if len(unused) >= PREKEYS_UNUSED_MAX:
        raise CommitRefused("bad_prekey", "M16: too many since the last epoch")
