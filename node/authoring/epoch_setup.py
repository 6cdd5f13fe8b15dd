"""Completes a new epoch: publishes keys of earlier epochs and its branch topics; also tells when one is due.

`node.authoring.author` starts epochs; `node.membership.epoch_secrets` opens later what was not known then.
"""

from collections.abc import Callable, Iterable
from typing import Final

from node.ingest.replica import Replica
from protocol import signing
from protocol.body import Body
from protocol.epochs import BranchTopic, EarlierEpoch, EpochAdd, EpochHistory, EpochInit
from protocol.ids import BranchId, EpochId, TopicKey, root_branch
from protocol.keys import ReadSecret, WriteSecret
from protocol.limits.formats import EPOCH_HISTORY_COUNT_MAX, EPOCH_TOPIC_COUNT_MAX
from storage.engine.id_keys import chunks
from storage.repos.repos import Branch, Epoch, Repo, branch_keys
from verifier.epochs import find_preferred, is_epoch_due
from verifier.membership import Membership, mark_of

_EARLIER_OPENED: Final = 64
"""Latest earlier epochs that an epoch's history opens at least: who catches up takes one step for so many."""
WriteOn = Callable[[Branch, Body], None]


def is_due(replica: Replica, repo: Repo, membership: Membership) -> bool:
    """Whether a new epoch is due (E2), or the last has the first one's secrets: that says no mark to compare with (M9)."""
    now, operations = membership.now(), membership.operations
    if is_epoch_due(operations, now):
        return True
    if len(operations.epochs) < 2:
        return False
    first = replica.tables.epochs_of(repo, membership).get(operations.epochs[0].started_epoch)
    body = find_preferred(now.epoch_tips()).body
    return (
        first is not None
        and isinstance(body, EpochInit)
        and body.mark == mark_of(repo.repo_id, first.read_secret)
    )


def set_up_epoch(replica: Replica, repo: Repo, epoch: Epoch, write_on: WriteOn) -> None:
    """Open what a new epoch follows, and the latest of what is before that; and state its topics to readers."""
    assert epoch.write_secret is not None, "it was just made"
    with replica.membership_lock:
        operations = replica.membership(repo.repo_id).operations
        started = operations[epoch.epoch_id]
        before = [one.started_epoch for one in operations.epochs if operations.precedes(one, started)]
        branches = sorted(operations.branches())
    assert isinstance(started.body, EpochInit), "it was just started"
    chosen = dict.fromkeys([*started.body.previous, *reversed(before[-_EARLIER_OPENED:])])
    open_earlier(replica, repo, epoch.epoch_id, chosen, write_on)
    root = replica.by_topic[topic_in(repo, epoch.read_secret, epoch.write_secret, root_branch(repo.repo_id))]
    for part in chunks(branches, EPOCH_TOPIC_COUNT_MAX):
        topics = tuple(
            BranchTopic(branch, topic_in(repo, epoch.read_secret, epoch.write_secret, branch))
            for branch in part
        )
        body = EpochAdd(epoch.epoch_id, epoch.author, started.body.mark, topics, ())
        write_on(root, body)


def open_earlier(
    replica: Replica, repo: Repo, epoch_id: EpochId, chosen: Iterable[EpochId], write_on: WriteOn
) -> None:
    """Open those of the chosen epochs whose secrets are here to anyone who reads this one."""
    with replica.membership_lock:
        membership = replica.membership(repo.repo_id)
        operations = membership.operations
        here = replica.tables.epochs_of(replica.repos[repo.num], membership)
        earlier = [
            EarlierEpoch(raw, operations[raw].author, here[raw].read_secret) for raw in chosen if raw in here
        ]
    root = replica.root_branch_in(here[epoch_id])
    write_on(root, EpochHistory(tuple(earlier[:EPOCH_HISTORY_COUNT_MAX])))


def topic_in(
    repo: Repo, read_secret: ReadSecret, write_secret: WriteSecret, branch_id: BranchId, generation: int = 0
) -> TopicKey:
    """The topic of a branch in an epoch of these secrets."""
    seed = branch_keys(repo.repo_id, read_secret, write_secret, branch_id, generation).topic_seed
    assert seed is not None, "the write secret is there"
    return signing.public_key(seed)
