"""What becomes of a whole history, over plain sets, written for clarity alone: verdicts, members, void content, order.

Adds to `reference_membership` what it leaves out (docs/reference/membership-rules.md): branches, invitations and joins
(M2 to M4, M8, R3), content and which of it is void (M5, N1 to N3), and the verdicts V4, V6 of `verifier.verify`. Slow,
and knows no bytes: commits are numbers, causes before effects.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from tests.support.reference_membership import ADMIN, MANAGE, OWNER, WRITE, Op, Reference

ROOT: Final = "root"
_NOTHING: Final = -1


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
        """What it cannot be judged without."""
        links = tuple(link for link in (self.previous, self.skip) if link is not None)
        return self.acks + self.seen + links


class Rules(Reference):
    """The reference, invitations included: a join is a grant to its author, a revocation a removal of nobody."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: dict[int, Step] = {}
        self._known: dict[frozenset[int], frozenset[int]] = {}

    def take(self, step: Step, past: frozenset[int]) -> bool:
        """Judge a root branch commit by its past, and keep it if it may be."""
        number = step.number
        self.steps[number] = step
        if step.kind in ("found", "grant", "remove"):
            is_plain = len({end.branch for end in step.ends}) == len(step.ends)
            return is_plain and self.admit(number, Op(step.author, past, step.kind, step.user, step.level))
        op = Op(step.author, past)
        counting = self.counting(past)
        needs, is_legal = ADMIN, True
        match step.kind:
            case "branch":
                needs = MANAGE
            case "invite":
                is_legal = step.level <= WRITE
            case "revoke":
                is_legal = self.is_kind(step.target, "invite", past)
                op = replace(op, kind="remove")
            case "join":
                needs, is_legal = 0, self._may_join(step, past, counting)
                if is_legal:
                    op = replace(op, kind="grant", user=step.author, level=self.steps[step.target].level)
        if not is_legal or self.level(step.author, past, past, counting) < needs:
            return False
        self.ops[number], self.needs[number] = op, needs
        return True

    def is_kind(self, number: int, kind: str, within: Collection[int], target: int | None = None) -> bool:
        """Whether an operation among these is of a kind (and aimed at an invitation)."""
        if number not in within or self.steps[number].kind != kind:
            return False
        return target is None or self.steps[number].target == target

    def _may_join(self, step: Step, past: frozenset[int], counting: frozenset[int]) -> bool:
        target = step.target
        if not self.is_kind(target, "invite", past) or not self.counts(target, past, counting):
            return False
        removals = [one for one in counting if self.ops[one].user == step.author]
        joins = [one for one in past if self.is_kind(one, "join", past, target)]
        joined = {self.ops[one].author for one in joins if self.counts(one, past, counting)}
        return (
            not any(self.is_kind(one, "revoke", counting, target) for one in counting)
            and all(one in self.ops[target].past for one in removals)
            and not self.steps[target].is_late
            and (step.author in joined or len(joined) < self.steps[target].uses)
            and step.user == step.author
        )

    def counts(self, number: int, whole: frozenset[int], counting: frozenset[int]) -> bool:
        """Whether an operation counts, when these removals and revocations do (R2, R3)."""
        if self.steps[number].kind != "join":
            return super().counts(number, whole, counting)
        target, past = self.steps[number].target, self.ops[number].past
        revocations = [one for one in counting if self.is_kind(one, "revoke", counting, target)]
        is_void = any(one not in past and number not in self.ops[one].past for one in revocations)
        return not is_void and self.counts(target, whole, counting)

    def counting(self, whole: frozenset[int]) -> frozenset[int]:
        """The removals and revocations that count among `whole`; what is not new is remembered."""
        if whole not in self._known:
            self._known[whole] = super().counting(whole)
        return self._known[whole]

    def _could_void(self, removal: int, number: int) -> bool:
        rests_on, ahead = {number}, [number]
        for one in ahead:
            author, past = self.ops[one].author, self.ops[one].past
            if self.steps[one].kind == "join":
                supports = {self.steps[one].target}
            else:
                supports = {
                    other
                    for other in past
                    if (self.ops[other].kind == "grant" and self.ops[other].user == author)
                    or (self.ops[other].kind == "found" and self.ops[other].author == author)
                }
            ahead += supports - rests_on
            rests_on |= supports
        unseen = rests_on - {removal} - self.ops[removal].past
        if self.steps[removal].kind == "revoke":
            return any(self.is_kind(one, "join", unseen, self.steps[removal].target) for one in unseen)
        op = self.ops[removal]
        return op.user != op.author and any(self.ops[one].author == op.user for one in unseen)


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
        if any(ack in self.ancestors[other] for ack in step.acks for other in step.acks):
            return "refused"  # for this or for the author's rights, which Ravel looks at first
        past = self.seen[step.number]
        if step.branch == ROOT:
            return "" if self.rules.take(step, past) else "refused"
        level = self.rules.level(step.author, past, past, self.rules.counting(past))
        return "" if level >= WRITE else "refused"

    def accepted(self, branch: str, within: Collection[int] | None = None) -> list[int]:
        """Accepted commits of a branch (among some)."""
        chosen = self.steps if within is None else sorted(within)
        return [one for one in chosen if one not in self.rejected and self.steps[one].branch == branch]

    def heads(self, branch: str, within: Collection[int] | None = None) -> list[int]:
        """Accepted commits of a branch that none of the others (among some) acks."""
        chosen = self.accepted(branch, within)
        acked = {ack for one in chosen for ack in self.steps[one].acks}
        return [one for one in chosen if one not in acked]

    def ordered(self, branch: str, ids: Mapping[int, bytes]) -> list[int]:
        """Accepted commits of a branch by (rank, id)."""
        ranks: dict[int, int] = {}
        chosen = self.accepted(branch)
        for one in chosen:
            ranks[one] = 1 + max((ranks[ack] for ack in self.steps[one].acks), default=-1)
        return sorted(chosen, key=lambda one: (ranks[one], ids[one]))

    def void(self, within: Collection[int] | None = None) -> dict[int, str]:
        """Void content (when only some commits are there), each with the first rule that makes it so."""
        whole = frozenset(self.accepted(ROOT, within))
        counting = self.rules.counting(whole)
        branches = {self.steps[one].branch for one in (self.steps if within is None else within)} - {ROOT}
        contents = [one for branch in sorted(branches) for one in self.accepted(branch, within)]
        found = {one: self._void_rule(one, whole, counting, contents) for one in contents}
        return {one: rule for one, rule in found.items() if rule}

    def _void_rule(
        self, number: int, whole: frozenset[int], counting: frozenset[int], contents: list[int]
    ) -> str:
        rules, content, seen = self.rules, self.steps[number], self.seen[number]
        if self.adoptions(number, whole):
            return ""  # N3
        for one in counting:
            removal = rules.steps[one]
            is_aimed = removal.kind == "remove" and removal.user == content.author != removal.author
            if (
                is_aimed
                and removal.level < WRITE
                and one not in seen
                and not self._names(removal, content, contents)
            ):
                return "N2"
        return "" if rules.level(content.author, seen, whole, counting) >= WRITE else "N1"

    def adoptions(self, number: int, whole: frozenset[int]) -> list[int]:
        """Adoptions of a content commit that count."""
        counting = self.rules.counting(whole)
        return [
            one
            for one in whole
            if number in self.rules.steps[one].adopted
            and self.rules.steps[one].adopted_in == self.steps[number].branch
            and self.rules.counts(one, whole, counting)
        ]

    def _names(self, removal: Step, content: Step, contents: list[int]) -> bool:
        feed = [self.steps[one] for one in contents]
        feed = [one for one in feed if (one.author, one.branch) == (content.author, content.branch)]
        return any(
            end.branch == content.branch
            and content.sequence <= end.sequence
            and self._leads_to(end, content, feed)
            for end in removal.ends
        )

    def _leads_to(self, end: End, content: Step, feed: list[Step]) -> bool:
        """Whether an end's feed contains the commit: any does that has no place up to there twice."""
        places = [one.sequence for one in feed if one.sequence <= end.sequence]
        if len(places) == len(set(places)):
            return True
        by_number = {one.number: one for one in feed}
        way: list[int] = []
        step = by_number.get(end.number)
        if step is not None and step.sequence == end.sequence:
            while step is not None:
                way.append(step.number)
                step = by_number.get(_NOTHING if step.previous is None else step.previous)
        return content.number in way

    def given(self) -> dict[str, int]:
        """The highest permission that a chain of grants from the founder ever gave to each, removals left aside."""
        rules = self.rules
        given: dict[int, tuple[str, int]] = {}
        highest: dict[str, int] = {}
        invited: set[int] = set()
        for number, op in sorted(rules.ops.items()):
            step = rules.steps[number]
            held = max([0, *(given[one][1] for one in op.past & given.keys() if given[one][0] == op.author)])
            if step.kind == "invite" and held >= ADMIN:
                invited.add(number)
            elif step.kind == "found":
                given[number] = (op.author, OWNER)
            elif step.kind == "join" and step.target in invited:
                given[number] = (op.author, rules.steps[step.target].level)
            elif step.kind == "grant" and held >= max(ADMIN, op.level):
                given[number] = (op.user, op.level)
        for user, level in given.values():
            highest[user] = max(highest.get(user, 0), level)
        return highest

    @staticmethod
    def _closure(numbers: Iterable[int], of: Mapping[int, frozenset[int]]) -> frozenset[int]:
        chosen = frozenset(numbers)
        return chosen.union(*(of[one] for one in chosen))
