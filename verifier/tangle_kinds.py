"""Table of tangle kinds: which commits belong to each kind, and which earlier commits each one follows.

A kind is *candidates*, a predicate, and a *recipe*, how the graph grows from its root. TANGLE_KINDS has those that Ravel
knows by name; `node.scuttlebutt.threads` makes one of its own. `KindTangle` grows one tangle of one kind from commits in any
order; its `graph` answers the questions.

Everything here is derived from what commits say, all of which their signatures cover. Whether a commit may be believed
is decided before (`verify`), and what is built here decides nothing about it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol

from protocol.formats.body import (
    Body,
    DeviceGrant,
    Grant,
    Invite,
    Join,
    Move,
    RecoveryGrant,
    Remove,
    RepoInit,
    Revoke,
    UnknownBody,
)
from protocol.formats.commit import Commit
from protocol.formats.epochs import EpochHand, EpochInit
from protocol.ids import CommitId
from verifier.tangle import Tangle

GROUP: Final = "group"
"""Kind of the tangle that ties every commit of a repo to the membership its author had seen."""
MEMBERS: Final = "members"
"""Kind of the tangle of who came and went in one epoch."""
EPOCH: Final = "epoch"
"""Kind of the tangle of what starts epochs."""
ABOUT_MEMBERS: Final = (Invite, Join, Grant, DeviceGrant, Move, RecoveryGrant, Remove, Revoke, EpochHand)
"""Bodies of the commits of MEMBERS."""
STARTS_EPOCH: Final = (RepoInit, EpochInit)
"""Bodies of the commits of EPOCH."""


class ReadCommit(Protocol):
    """Commit with its decoded body: signed and verified ones are such."""

    @property
    def commit(self) -> Commit:
        """Return the commit."""
        ...

    @property
    def body(self) -> Body | UnknownBody:
        """Return the decoded body."""
        ...


Predicate = Callable[[ReadCommit, ReadCommit], bool]
"""Predicate of a commit other than the root, and the root."""


class TangleScope(StrEnum):
    """Branches of a repo that hold the commits of a kind."""

    BRANCH = "branch"
    ROOT_BRANCH = "root branch"
    REPO = "repo"


def _never(_commit: ReadCommit, _root: ReadCommit) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class TangleKind:
    """Kind of tangle: candidates and recipe.

    `recipe` gives the ids that a commit follows, the root's aside. Ids may be given that others among them imply. What
    is no candidate and `hands_on` is not in the tangle either, but what follows it follows what it follows: so the
    commits of a kind stay tied together across others that lie between them.
    """

    name: str
    is_candidate: Predicate
    recipe: Callable[[ReadCommit], tuple[CommitId, ...]]
    hands_on: Predicate = _never
    scope: TangleScope = TangleScope.REPO


class KindTangle:
    """Tangle of one kind, growing."""

    def __init__(self, kind: TangleKind, root: ReadCommit) -> None:
        self.kind = kind
        self.root = root
        self.graph = Tangle(root.commit.commit_id)

    def add(self, commit: ReadCommit) -> tuple[CommitId, ...]:
        """Add a commit; return the ids that entered: its own and those that waited for it, or none."""
        is_candidate = self.kind.is_candidate(commit, self.root)
        if not is_candidate and not self.kind.hands_on(commit, self.root):
            return ()
        return self.graph.add(commit.commit.commit_id, self.kind.recipe(commit), is_shown=is_candidate)


def _is_of_feed(commit: ReadCommit, root: ReadCommit) -> bool:
    one, first = commit.commit, root.commit
    return (one.content.author, one.branch_id) == (first.content.author, first.branch_id)


def _feed_previous(commit: ReadCommit) -> tuple[CommitId, ...]:
    previous = commit.commit.content.feed_previous
    return () if previous is None else (previous,)


def _is_of_branch(commit: ReadCommit, root: ReadCommit) -> bool:
    return commit.commit.branch_id == root.commit.branch_id


def _acks(commit: ReadCommit) -> tuple[CommitId, ...]:
    return commit.commit.acks


def _is_of_group(commit: ReadCommit, root: ReadCommit) -> bool:
    place = commit.commit.place(GROUP)
    return _is_of_branch(commit, root) or (place is not None and place.root == root.commit.commit_id)


def _acks_and_group_previous(commit: ReadCommit) -> tuple[CommitId, ...]:
    place = commit.commit.place(GROUP)
    return commit.commit.acks + (place.previous if place else ())


def _is_of_epoch(commit: ReadCommit, root: ReadCommit) -> bool:
    return _is_of_branch(commit, root) and commit.commit.content.epoch == root.commit.commit_id


def _is_about_members(commit: ReadCommit, root: ReadCommit) -> bool:
    return _is_of_epoch(commit, root) and isinstance(commit.body, ABOUT_MEMBERS)


def _starts_epoch(commit: ReadCommit, root: ReadCommit) -> bool:
    return _is_of_branch(commit, root) and isinstance(commit.body, STARTS_EPOCH)


_KINDS: Final = (
    # What one author wrote in one branch, from the first on. An author forks it by using a place twice.
    TangleKind("feed", _is_of_feed, _feed_previous, scope=TangleScope.BRANCH),
    # All commits of a branch, from the branch's root on.
    TangleKind("branch", _is_of_branch, _acks, scope=TangleScope.BRANCH),
    # All commits of a repo, from its init on: what caused what across branches.
    TangleKind(GROUP, _is_of_group, _acks_and_group_previous),
    # Who came and went in one epoch, from the epoch's init on.
    TangleKind(MEMBERS, _is_about_members, _acks, hands_on=_is_of_branch, scope=TangleScope.ROOT_BRANCH),
    # The commits that start epochs, from the repo's init on.
    TangleKind(EPOCH, _starts_epoch, _acks, hands_on=_is_of_branch, scope=TangleScope.ROOT_BRANCH),
)
TANGLE_KINDS: Final[Mapping[str, TangleKind]] = {
    kind.name: kind for kind in sorted(_KINDS, key=lambda kind: kind.name)
}
"""Kinds of tangles by name, sorted."""
