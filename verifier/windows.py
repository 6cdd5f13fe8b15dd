"""Confirms commits whose past is not here: a window of a branch's newest ones.

Each rule that rejects is local (`verify`). So all that a window cannot know of a commit is whether its whole past is there
and accepted. A *witness* answers it: a commit by somebody whom this node trusts that says `whole`, and that nothing here
rejects. Its author had accepted all that it follows, and ids fix what that is. What stands on confirmed commits is judged in
full.

A commit is

- *rejected*, if a rule rejects it by what is here: then every replica rejects it;
- *confirmed*, if it is a witness or in the past of one, or if the rules accept it and all that it acks is confirmed or
  accepted. Heads that a believed link names are witnesses, too: what stands at and before them rests on its maker's word;
- else it *waits*: nothing is said of it.

Who says `whole` of a commit that is rejected has lied, and witnesses nothing more.

If those who are trusted are honest, what is confirmed is accepted by every full replica. A confirmed commit proves nothing
to others: it is neither acked, nor sent, nor counted. It is *listed* if it would not be void though no removal named it
(N2): which commits a removal names, only the past tells.
"""

from collections.abc import Collection, Container, Mapping, Sequence
from dataclasses import dataclass, field

from protocol.crypto.keys import EpochKey
from protocol.formats.body import Checkpoint, Permission
from protocol.formats.content import Compaction
from protocol.ids import CommitId, EpochId, Mark, UserId, root_branch
from verifier.facts import BranchFacts, CommitFacts, CommitLookup, TopicFacts
from verifier.membership import Membership
from verifier.refusal import CommitRefused
from verifier.tangle_kinds import GROUP
from verifier.verify import Accepted, Misplaced, Rejected, SignedCommit, judge
from verifier.void_rules import find_void


@dataclass(frozen=True, slots=True)
class WindowCommit:
    """A signed commit of a window, and facts of the topic that it came on."""

    signed: SignedCommit
    topic: TopicFacts


@dataclass(slots=True)
class Standing:
    """Standing of a window's commits."""

    confirmed: list[CommitId] = field(default_factory=list)
    """By stated rank, then id: among commits that passed as many checkpoints, the order in which a full replica has them."""
    listed: list[CommitId] = field(default_factory=list)
    """Of these, those that are not void, whatever their past is."""
    by_word: set[CommitId] = field(default_factory=set)
    """Of the confirmed ones, those that a link alone confirms, or lists."""
    waiting: list[CommitId] = field(default_factory=list)
    rejected: dict[CommitId, Rejected] = field(default_factory=dict)
    misplaced: list[CommitId] = field(default_factory=list)


class _WindowLookup:
    """Lookup in what is accepted here, and in the window beside it (`CommitLookup`)."""

    def __init__(self, base: CommitLookup, beside: Mapping[CommitId, CommitFacts]) -> None:
        self._base = base
        self._beside = beside
        self.rejected: dict[CommitId, Rejected] = {}

    def accepted(self, commit_id: CommitId) -> CommitFacts | None:
        if commit_id in self.rejected:
            return None
        return self._base.accepted(commit_id) or self._beside.get(commit_id)

    def is_rejected(self, commit_id: CommitId) -> bool:
        return commit_id in self.rejected or self._base.is_rejected(commit_id)

    def epoch_key(self, epoch: EpochId, mark: Mark) -> EpochKey | None:
        return self._base.epoch_key(epoch, mark)


def find_witnesses(membership: Membership, own: Collection[UserId]) -> frozenset[UserId]:
    """Return the users whose `whole` statements this node believes: present owners and admins, and this user's devices.

    Costs O(members). A user who ever lost a right is not among them, even if it was given back.
    """
    now = membership.now()
    members = now.members()
    admins = {user for user, held in members.items() if held >= Permission.ADMIN}
    return frozenset(
        user for user in admins | (set(own) & members.keys()) if not now.counting_removals_of(user)
    )


def confirm(
    window: Sequence[WindowCommit],
    branch: BranchFacts,
    lookup: CommitLookup,
    membership: Membership,
    witnesses: Container[UserId],
    vouched: Collection[CommitId] = (),
    *,
    has_past: bool = False,
    has_invitation: bool = True,
) -> Standing:
    """Find what of a window is confirmed. Costs O(window and its acks), and what judging it asks of the membership.

    Args:
        window: Commits of one branch that are not accepted here, in any order, each once.
        branch: Facts of the branch, which is no root branch.
        lookup: What is accepted and rejected here.
        membership: Grown by all root branch commits that are accepted here.
        witnesses: Users who are believed where they say `whole`.
        vouched: Heads of the branch that a believed link names.
        has_past: Whether commits of the branch are accepted here. Then all that the link's maker had of the root branch is.
        has_invitation: Whether the link's invitation is here, and so all removals that its maker knew. Else what stands on
            the heads waits.
    """
    by_rank = sorted(window, key=lambda one: (one.signed.commit.rank, one.signed.commit.commit_id))
    beside = {one.signed.commit.commit_id: _facts_of(one.signed, branch) for one in by_rank}
    # The rules look up what the place of an acked commit names, so one whose place is not here is taken for absent.
    usable = {
        commit_id: facts
        for commit_id, facts in beside.items()
        if all(_is_of_root(lookup.accepted(one), branch) for one in facts.seen)
    }
    known = _WindowLookup(lookup, usable)
    standing, passing, liars = Standing(), set[CommitId](), set[UserId]()
    believed: dict[CommitId, UserId] = {}
    for one in by_rank:
        commit = one.signed.commit
        verdict = judge(one.signed, one.topic, branch, known, membership)
        match verdict:
            case Rejected():
                known.rejected[commit.commit_id] = verdict
                usable.pop(commit.commit_id, None)
                if commit.content.whole:
                    liars.add(commit.content.author)
                continue
            case Misplaced():
                usable.pop(commit.commit_id, None)
                standing.misplaced.append(commit.commit_id)
                continue
            case Accepted():
                passing.add(commit.commit_id)
            case _:
                pass
        if commit.content.whole and commit.content.author in witnesses:
            believed[commit.commit_id] = commit.content.author
    standing.rejected = known.rejected
    honest = [commit_id for commit_id, author in believed.items() if author not in liars]
    fallen = known.rejected.keys() | set(standing.misplaced)
    confirmed = _with_past(honest, beside, fallen)
    named = _with_past(vouched, beside, fallen)
    by_word = named - confirmed
    for one in by_rank:
        commit_id = one.signed.commit.commit_id
        if commit_id in fallen:
            continue
        acks = [ack for ack in one.signed.commit.acks if lookup.accepted(ack) is None]
        if commit_id in passing and all(ack in confirmed for ack in acks):
            confirmed.add(commit_id)
            by_word.discard(commit_id)
        elif (
            has_invitation
            and commit_id in passing
            and all(ack in confirmed or ack in by_word for ack in acks)
        ):
            by_word.add(commit_id)
        if commit_id not in confirmed and commit_id not in by_word:
            standing.waiting.append(commit_id)
            continue
        standing.confirmed.append(commit_id)
        if commit_id in usable:
            may_write = commit_id not in by_word or _may_write(one.signed, usable[commit_id], membership)
            is_listed = may_write and _counts(one.signed, usable[commit_id], membership)
        elif is_listed := commit_id in named and not has_past:
            # Also of a witness's: without its place, that it is not void is the word of the link, which names no void heads.
            by_word.add(commit_id)
        (standing.listed if is_listed else standing.waiting).append(commit_id)
    standing.by_word = by_word
    return standing


def _may_write(signed: SignedCommit, facts: CommitFacts, membership: Membership) -> bool:
    """Return True if the author held at a commit's place what it needs. A witness has looked, and no rule may so far."""
    try:
        membership.authorise_content(facts.author, facts.seen, _needs(signed))
    except CommitRefused:
        return False
    return True


def _needs(signed: SignedCommit) -> Permission:
    return Permission.MANAGE if isinstance(signed.body, Compaction) else Permission.WRITE


def _counts(signed: SignedCommit, facts: CommitFacts, membership: Membership) -> bool:
    """Return True if a commit is not void, whichever removals name it. Of a checkpoint that is not looked at."""
    if isinstance(signed.body, Checkpoint):
        return False
    commit_id, branch = signed.commit.commit_id, facts.branch_id
    author, seen = facts.author, facts.seen
    return (
        find_void(membership, commit_id, branch, author, seen, lambda _: False, needs=_needs(signed)) is None
    )


def _facts_of(signed: SignedCommit, branch: BranchFacts) -> CommitFacts:
    commit = signed.commit
    place = commit.place(GROUP)
    seen = () if place is None else place.previous
    return CommitFacts(branch.branch_id, commit.content.author, commit.rank, commit.acks, seen)


def _is_of_root(facts: CommitFacts | None, branch: BranchFacts) -> bool:
    return facts is not None and facts.branch_id == root_branch(branch.repo_id)


def _with_past(
    believed: Collection[CommitId], beside: Mapping[CommitId, CommitFacts], fallen: Container[CommitId]
) -> set[CommitId]:
    """Return some commits and what of the window is in their past."""
    found: set[CommitId] = set()
    ahead = list(believed)
    while ahead:
        commit_id = ahead.pop()
        if commit_id in found or commit_id not in beside or commit_id in fallen:
            continue
        found.add(commit_id)
        ahead += beside[commit_id].acks
    return found
