"""Chooses the root branch heads that a commit acks, where there are more than it can name. Pure.

Any member may make any number of heads, a reader by leaving again and again. A commit that names some of them must itself be
rightful: its epoch was started in its past (E5), and its author may write it by just these (M5, M9).
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final

from protocol.formats.body import Permission, RepoInit
from protocol.formats.epochs import EpochHand, EpochInit
from protocol.ids import CommitId, EpochId, UserId
from protocol.limits.formats import ACK_COUNT_MAX
from verifier.membership import Membership
from verifier.operations import Operation

_QUESTIONS_MAX: Final = 4 * ACK_COUNT_MAX
"""Questions whether more heads may be acked: each head that is left out costs one."""

IsRightful = Callable[[tuple[CommitId, ...]], bool]
"""True if the author may write the commit that acks these heads."""


def interleave_authors(membership: Membership, heads: Iterable[CommitId]) -> list[CommitId]:
    """Sort heads: the latest of each author, then the second of each, and so on. So no author's flood hides the others'."""
    operations = membership.operations
    latest = operations.in_order(operations[one] for one in heads)[::-1]
    seen, turns = Counter[UserId](), list[tuple[int, int, CommitId]]()
    for place, one in enumerate(latest):
        turns.append((seen[one.author], place, one.commit_id))
        seen[one.author] += 1
    return [one[-1] for one in sorted(turns)]


def choose_heads(heads: Sequence[CommitId], is_rightful: IsRightful) -> tuple[CommitId, ...]:
    """Choose as many heads as a commit can ack while its author has the right to it; none if no choice gives the right.

    Some heads take the author's right away, and others restore it. So find a few that suffice, then add as many as fit.
    Costs O(log heads) questions if one head suffices and none must be left out.
    """
    bases = [tuple(heads), *((one,) for one in heads)] if heads else []
    base = next((one for one in bases if is_rightful(one)), ())
    chosen = _drop_needless(base, is_rightful)
    if len(chosen) > ACK_COUNT_MAX:
        return ()
    known = set(chosen)
    ahead = [[one for one in heads if one not in known]] if chosen else []
    for _ in range(_QUESTIONS_MAX):
        if not ahead or len(chosen) == ACK_COUNT_MAX:
            break
        part = ahead.pop()
        count = ACK_COUNT_MAX - len(chosen)
        fitting, rest = part[:count], part[count:]
        half = len(fitting) // 2
        if is_rightful((*chosen, *fitting)):
            chosen += fitting
            further = [rest]
        else:
            further = [rest, fitting[half:], fitting[:half]] if half else [rest]
        ahead += [one for one in further if one]
    return tuple(chosen)


def _drop_needless(heads: Sequence[CommitId], is_rightful: IsRightful) -> list[CommitId]:
    """Leave out heads, large parts first, as long as the others suffice."""
    needed, size = list(heads), len(heads)
    while size > 1:
        size, start = (size + 1) // 2, 0
        while start < len(needed):
            fewer = needed[:start] + needed[start + size :]
            if fewer and is_rightful(tuple(fewer)):
                needed = fewer
            else:
                start += size
    return needed


def choose_followed(
    membership: Membership,
    user: UserId,
    epoch: EpochId,
    heads: tuple[CommitId, ...],
    named: CommitId | None = None,
) -> tuple[CommitId, ...]:
    """Choose what a commit in an epoch acks, whose past this opens, by a user who may not open epochs (E4).

    It leaves the user what it holds now, and has an invitation in its past that the user names, if any.
    """
    epochs, held = membership.epochs, membership.now().permission(user) or 0
    invitation = None if named is None else membership.operations.find(named)

    def is_rightful(acks: tuple[CommitId, ...]) -> bool:
        return (
            epochs.is_within(epoch, acks)
            and (invitation is None or membership.operations.is_within(invitation, acks))
            and (membership.at(acks).permission(user) or 0) >= held
        )

    followed = epochs.find_followable(epoch, heads)
    if len(followed) <= ACK_COUNT_MAX and (followed == heads or (followed and is_rightful(followed))):
        return followed
    chosen = choose_heads(interleave_authors(membership, followed), is_rightful)
    if chosen or not followed:
        return chosen
    # Each takes away what the user needs, by what this epoch does not open: it acks what they follow.
    followed = epochs.find_followable(epoch, heads, lambda one: is_rightful((one,)))
    return choose_heads(interleave_authors(membership, followed), is_rightful)


def may_merge(membership: Membership, user: UserId, epoch: EpochId, heads: tuple[CommitId, ...]) -> bool:
    """Return True if a merge of these heads in an epoch is rightful."""
    held = membership.at(heads).permission(user) or 0
    return held >= Permission.WRITE and membership.epochs.is_within(epoch, heads)


def choose_merged(
    membership: Membership, user: UserId, epoch: EpochId, heads: Iterable[CommitId]
) -> tuple[CommitId, ...]:
    """Choose heads for a merge in an epoch by a user who may write."""
    return choose_heads(interleave_authors(membership, heads), partial(may_merge, membership, user, epoch))


def choose_closed(
    membership: Membership, user: UserId, heads: Sequence[CommitId], held: Iterable[EpochId]
) -> tuple[EpochId, tuple[CommitId, ...]] | None:
    """Choose heads for a merge that opens nothing, and its epoch: that opens them already. Of several the largest merge."""
    groups: dict[EpochId, list[CommitId]] = {one: [] for one in held}
    for head in heads:
        followed = followed_in(membership.operations[head])
        if followed in groups:
            groups[followed].append(head)
    merges = [
        (epoch, choose_merged(membership, user, epoch, group))
        for epoch, group in sorted(groups.items())
        if len(group) > 1
    ]
    fitting = [one for one in merges if len(one[1]) > 1]
    return max(fitting, key=lambda one: len(one[1]), default=None)


def choose_for_init(membership: Membership, user: UserId, heads: Sequence[CommitId]) -> tuple[CommitId, ...]:
    """Choose heads for an epoch's init: such that the rules ask for an epoch after them, else as an admin may."""
    ordered = interleave_authors(membership, heads)

    def is_due(acks: tuple[CommitId, ...]) -> bool:
        before = membership.at(acks)
        return (before.permission(user) or 0) >= Permission.WRITE and membership.epochs.is_due(before)

    def is_admin(acks: tuple[CommitId, ...]) -> bool:
        return (membership.at(acks).permission(user) or 0) >= Permission.ADMIN

    return choose_heads(ordered, is_due) or choose_heads(ordered, is_admin)


def followed_in(operation: Operation) -> EpochId:
    """Return the epoch that opens what a commit follows (E4)."""
    if isinstance(operation.body, EpochHand):
        return operation.body.epoch
    if isinstance(operation.body, RepoInit | EpochInit):
        return operation.started_epoch
    return operation.epoch
