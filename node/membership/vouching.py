"""Makes the voucher of a link: the newest posts of a repo as they are accepted here (`formats.links.Voucher`)."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from node.authoring.author import Author
from node.ingest.replica import Replica
from node.ingest.tables import Tables
from protocol.formats.epochs import GivenEpoch
from protocol.formats.links import EarlierPosts, NewestPosts, Voucher
from protocol.formats.proofs import voucher_digest
from protocol.ids import CommitId
from protocol.limits.formats import LINK_HEAD_COUNT_MAX
from protocol.limits.peers import WINDOW_ASK_COUNT, WINDOW_BEHIND_MIN
from storage.commits.commits import TimelineRow, count_commits, load_rows, load_timeline
from storage.commits.heads import load_heads
from storage.repos.epochs import Epoch
from storage.repos.repos import Repo

_HEADS_LOOKED_AT: Final = 16
"""Heads of a branch of which those are chosen that a link names."""


def make_voucher(
    replica: Replica,
    author: Author,
    repo: Repo,
    epoch: Epoch,
    invitation: CommitId,
    name: str | None,
    at: int,
) -> Voucher | None:
    """Sign the newest posts of a repo's main branch, else of its largest, for the link of an invitation. Costs O(1).

    None where the repo is so small that all of it comes as soon.

    Args:
        replica: What is here.
        author: The maker of the link.
        repo: The repo.
        epoch: The epoch that the link opens.
        invitation: The commit of the invitation.
        name: What the maker calls itself.
        at: The time, unix milliseconds.
    """
    tables = replica.read_tables()
    branches = tables.branches_in(repo.num)
    topic = None if epoch.writers_topic is None else tables.by_topic.get(epoch.writers_topic)
    if topic is None or sum(one.commit_count for one in branches) < WINDOW_BEHIND_MIN:
        return None
    others = [one for one in branches if not one.facts.is_root_branch]
    branch = max(others, key=lambda one: (one.is_main, one.commit_count, -one.num), default=None)
    if branch is None:
        return None
    with replica.database.read() as connection:
        heads = [commit_id for commit_id, _ in load_heads(connection, branch.num, _HEADS_LOOKED_AT)]
        rows = load_rows(connection, heads)
        start = max(0, count_commits(connection, branch.num) - WINDOW_ASK_COUNT)
        newest = load_timeline(connection, branch.num, start, WINDOW_ASK_COUNT)
    before = _choose_earlier(tables, epoch, newest)
    places = {(epoch.num, topic.num), *(() if before is None else (before[:2],))}
    fit = [rows[one] for one in heads if (rows[one].epoch_num, rows[one].topic_num) in places]
    chosen = [one for one in fit if not one.is_void][:LINK_HEAD_COUNT_MAX]
    if not chosen:
        return None
    states = NewestPosts(
        author.user,
        name,
        at,
        topic.topic,
        None if before is None else before[2],
        branch.branch_id,
        branch.name,
        max(one.rank for one in chosen),
        tuple(one.commit_id for one in chosen),
    )
    return Voucher(states, author.sign(voucher_digest(repo.repo_id, invitation, states)))


def _choose_earlier(
    tables: Tables, epoch: Epoch, newest: Sequence[TimelineRow]
) -> tuple[int, int, EarlierPosts] | None:
    """Choose the epoch that has the most of the newest commits beside a new one, with the numbers of it and its topic."""
    count = Counter(one.epoch_num for one in newest)
    if count.pop(epoch.num, 0) * 2 >= len(newest) or not count:
        return None
    [(num, _)] = count.most_common(1)
    found = tables.epochs.get(num)
    topic = None if found is None or found.writers_topic is None else tables.by_topic.get(found.writers_topic)
    if found is None or topic is None:
        return None
    return num, topic.num, EarlierPosts(GivenEpoch(found.epoch_id, found.key), topic.topic)
