"""What becomes of a whole history, over plain sets, written for clarity alone: verdicts, members, void content, order.

Adds to `reference_membership` what it leaves out (membership-rules.md): branches, proofs of joins, content
and which of it is void (M2, M5, N1 to N3), and the verdicts V4, V6, V10 of `verifier.verify`. Slow, and knows no bytes:
commits are numbers, causes before effects.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from tests.support.reference_membership import ADMIN, MANAGE, WRITE, Deed, Op, Reference, World

ROOT: Final = "root"
_NOTHING: Final = -1
_ACTS: Final = {"branch": MANAGE, "adopt": ADMIN}
"""Operations that no rule looks at further, with what they need."""


@dataclass(frozen=True)
class End:
    """Where a removal says that a feed ended: the commit's number, or one that no commit has."""

    branch: str
    sequence: int
    number: int


@dataclass(frozen=True)
class Step:
    """One commit of a history; acks and the like are numbers of earlier ones."""

    number: int
    author: str
    kind: str  # found, branch, grant, remove, invite, join, revoke, adopt; in other branches start, post
    branch: str = ROOT
    acks: tuple[int, ...] = ()
    seen: tuple[int, ...] = ()  # outside the root branch: root branch commits that it follows
    sequence: int = 1
    previous: int | None = None
    skip: int | None = None
    user: str = ""  # whom it grants or removes; whose proof a join carries
    level: int = 0
    target: int = -1  # the invitation of a join or a revocation
    uses: int = 1
    is_late: bool = False  # an invitation that has expired
    adopted_in: str = ""
    adopted: tuple[int, ...] = ()
    ends: tuple[End, ...] = ()
    signer: str = ""  # who signs, if not the author
    known: frozenset[int] | None = None  # of an honest removal: all that its author had

    @property
    def causes(self) -> tuple[int, ...]:
        """What it cannot be judged without. Feed links are words: what they name may come later, or never."""
        return self.acks + self.seen


class Rules(Reference):
    """The reference, which is told what it looks at of each commit."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: dict[int, Step] = {}

    def take(self, step: Step, past: frozenset[int]) -> bool:
        """Judge a root branch commit by its past, and keep it if it may be."""
        self.steps[step.number] = step
        if len({end.branch for end in step.ends}) < len(step.ends):
            return False  # M7
        if step.kind == "join" and step.user != step.author:
            return False  # M4: another's proof
        return self.admit(step.number, _as_op(step, past))


def _as_op(step: Step, past: frozenset[int]) -> Op:
    if step.kind in _ACTS:
        return Op(step.author, past, level=_ACTS[step.kind])
    names = (step.author,) if step.kind == "found" else ()
    user = step.user if step.kind in ("grant", "remove") else ""
    return Op(step.author, past, step.kind, user, step.level, names, step.target, step.uses, step.is_late)


class History:
    """A history with its outcome by the rules. Commits are added causes first."""

    def __init__(self, steps: Iterable[Step] = ()) -> None:
        self.steps: dict[int, Step] = {}
        self.rules = Rules()
        self.rejected: dict[int, str] = {}
        self.seen: dict[int, frozenset[int]] = {}  # root branch commits in the past by which it is judged
        self.causes: dict[int, frozenset[int]] = {}  # all that must be there before it
        self.ancestors: dict[int, frozenset[int]] = {}  # in its own branch
        for step in steps:
            self.add(step)

    def add(self, step: Step, *, is_kept: bool = True) -> str:
        """Judge a commit; gives why it is rejected, or nothing. What is not kept is forgotten if it is rejected."""
        number = step.number
        self.ancestors[number] = self._closure(step.acks, self.ancestors)
        is_root = step.branch == ROOT
        self.seen[number] = self.ancestors[number] if is_root else self._closure(step.seen, self.ancestors)
        code = self._judge(step)
        if code and not is_kept:
            return code
        self.causes[number] = self._closure(step.causes, self.causes)
        self.steps[number] = step
        if code:
            self.rejected[number] = code
        return code

    def _judge(self, step: Step) -> str:
        if step.signer:
            return "bad_signature"
        if any(cause in self.rejected for cause in step.causes):
            return "rejected_cause"
        if any(ack in self.steps[other].acks for ack in step.acks for other in step.acks):
            return "refused"  # V10
        past = self.seen[step.number]
        if any(one not in past for ack in step.acks for one in self.steps[ack].seen):
            return "refused"  # V6: its place lacks what those of its acks have
        if step.branch == ROOT:
            return "" if self.rules.take(step, past) else "refused"
        return "" if self.rules.world(past).level(step.author) >= WRITE else "refused"

    def accepted(self, branch: str, within: Collection[int] | None = None) -> list[int]:
        """Accepted commits of a branch (among some)."""
        chosen = self.steps if within is None else sorted(within)
        return [one for one in chosen if one not in self.rejected and self.steps[one].branch == branch]

    def heads(self, branch: str, within: Collection[int] | None = None) -> list[int]:
        """Accepted commits of a branch that none of the others (among some) acks."""
        chosen = self.accepted(branch, within)
        acked = {ack for one in chosen for ack in self.steps[one].acks}
        return [one for one in chosen if one not in acked]

    def void(self, within: Collection[int] | None = None) -> dict[int, str]:
        """Void content (when only some commits are there), each with the first rule that makes it so."""
        world = self.rules.world(frozenset(self.accepted(ROOT, within)))
        branches = {self.steps[one].branch for one in (self.steps if within is None else within)} - {ROOT}
        contents = [one for branch in sorted(branches) for one in self.accepted(branch, within)]
        found = {one: self._void_rule(one, world, contents) for one in contents}
        return {one: rule for one, rule in found.items() if rule}

    def _void_rule(self, number: int, world: World, contents: list[int]) -> str:
        content = self.steps[number]
        if self.adoptions(number, world):
            return ""  # N3
        named_by = frozenset(
            one
            for one in world.counting()
            if self.rules.steps[one].kind == "remove"
            and self.rules.steps[one].user != self.rules.steps[one].author
            and self._names(self.rules.steps[one], content, contents)
        )
        return "" if world.may(Deed(content.author, self.seen[number], named_by), WRITE) else "N1"

    def adoptions(self, number: int, world: World) -> list[int]:
        """Adoptions of a content commit that count."""
        return [
            one
            for one in sorted(world.whole)
            if number in self.rules.steps[one].adopted
            and self.rules.steps[one].adopted_in == self.steps[number].branch
            and world.counts(one)
        ]

    def _names(self, removal: Step, content: Step, contents: list[int]) -> bool:
        """Return True if a removal names a commit (N2)."""
        feed = [self.steps[one] for one in contents]
        feed = [one for one in feed if (one.author, one.branch) == (content.author, content.branch)]
        return any(
            end.branch == content.branch and content.number in _named_by(end, feed) for end in removal.ends
        )

    @staticmethod
    def _closure(numbers: Iterable[int], of: Mapping[int, frozenset[int]]) -> frozenset[int]:
        chosen = frozenset(numbers)
        return chosen.union(*(of[one] for one in chosen))


def _named_by(end: End, feed: list[Step]) -> set[int]:
    """Return the accepted commits of a feed that an end names."""
    by_number = {one.number: one for one in feed}
    step = by_number.get(end.number)
    if step is None or step.sequence != end.sequence:
        places = [one.sequence for one in feed if one.sequence <= end.sequence]
        is_forked = len(places) > len(set(places))
        return set() if is_forked else {one.number for one in feed if one.sequence <= end.sequence}
    way = {step.number}
    while (before := by_number.get(_NOTHING if step.previous is None else step.previous)) is not None:
        if before.sequence != step.sequence - 1:
            break
        way.add(before.number)
        step = before
    return way
