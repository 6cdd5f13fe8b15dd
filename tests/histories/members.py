"""Honest members: each knows some of the history, and does what that allows. Nothing that they do is rejected."""

from collections.abc import Collection
from dataclasses import replace
from random import Random
from typing import Final

from protocol.formats.commit import lipmaa
from tests.histories.tales import BRANCHES, FOUNDING
from tests.support.memberships import NAMES
from tests.support.reference_histories import ROOT, End, History, Step
from tests.support.reference_membership import ADMIN, OWNER, READ, WRITE

LEVELS: Final = (READ, WRITE, WRITE, ADMIN, ADMIN, ADMIN, ADMIN, ADMIN, OWNER)
"""What is granted, as often as it stands here."""


class Members:
    """The members of one history, what each of them knows, and the history that they make."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._names = NAMES[: rng.randint(3, 8)]
        self._malicious = frozenset(rng.sample(self._names, rng.choice((0, 1, 1, 2))))
        self._history = History(FOUNDING)
        self._views = {name: set(range(len(FOUNDING))) for name in self._names}
        self._groups: list[tuple[str, ...]] = [self._names]

    def _choose(self) -> str:
        """Who acts next: often one who has not heard of what was done last, the one removed by it above all."""
        rng = self._rng
        last = self._history.steps[max(self._history.steps)]
        deaf = [name for name in self._names if last.number not in self._views[name]]
        if last.user in deaf and rng.random() < 0.6:
            return last.user
        chosen = deaf if deaf and rng.random() < 0.5 else self._names
        return max(rng.choices(chosen, k=2), key=self._level)

    # --- who hears whom ---

    def _part(self) -> None:
        """Part into new groups, in which everything is heard at once; what was known before need not be told."""
        places = self._rng.choice((2, 3, len(self._names)))
        group_of = {name: self._rng.randrange(places) for name in self._names}
        self._groups = [
            tuple(name for name in self._names if group_of[name] == place) for place in range(places)
        ]

    def _publish(self, step: Step) -> None:
        news = {step.number} | self._history.causes[step.number]
        group = next(group for group in self._groups if step.author in group)
        for name in group:
            self._views[name] |= news

    def _try(self, step: Step) -> bool:
        """Do it if it is allowed."""
        if self._history.add(step, is_kept=False):
            return False
        self._publish(step)
        return True

    def _hear(self, name: str, *others: str) -> None:
        self._views[name].update(*(self._views[other] for other in others))

    # --- commits ---

    def _draft(
        self, author: str, kind: str, branch: str = ROOT, view: Collection[int] | None = None, **said: object
    ) -> Step:
        """A commit on the heads of a view (by default all that the author knows)."""
        history = self._history
        known = self._views[author] if view is None else view
        feed = [history.steps[one] for one in history.accepted(branch, known)]
        feed = [one for one in feed if one.author == author]
        tip = max(feed, key=lambda one: (one.sequence, -one.number), default=None)
        seen = () if branch == ROOT else tuple(history.heads(ROOT, known))
        step = Step(len(history.steps), author, kind, branch, tuple(history.heads(branch, known)), seen)
        return replace(self._follow(step, tip), **said)  # type: ignore[arg-type]  # a table of fields

    def _follow(self, step: Step, tip: Step | None) -> Step:
        """The same at the place of the feed after `tip`."""
        if tip is None:
            return step
        sequence = tip.sequence + 1
        skip: int | None = None
        if lipmaa(sequence) != sequence - 1:
            skip, at = tip.number, tip
            while at.sequence != lipmaa(sequence):
                assert at.previous is not None
                skip, at = at.previous, self._history.steps[at.previous]
        return replace(step, sequence=sequence, previous=tip.number, skip=skip)

    def _ends(self, user: str, view: Collection[int]) -> tuple[End, ...]:
        found = []
        for branch in BRANCHES:
            feed = [self._history.steps[one] for one in self._history.accepted(branch, view)]
            feed = [one for one in feed if one.author == user]
            if feed:
                tip = max(feed, key=lambda one: (one.sequence, -one.number))
                found.append(End(branch, tip.sequence, tip.number))
        return tuple(found)

    def _known(self, kind: str, view: Collection[int]) -> list[int]:
        """Commits of a kind in a view."""
        return [one for one in sorted(view) if self._history.steps[one].kind == kind]

    def _removal(self, author: str, user: str, level: int = 0, view: Collection[int] | None = None) -> Step:
        """As an honest node makes it: it states where the feeds end that it has."""
        known = frozenset(self._views[author] if view is None else view)
        ends = self._ends(user, known)
        return self._draft(author, "remove", view=known, user=user, level=level, ends=ends, known=known)

    # --- the honest ---

    def _behave(self, author: str) -> None:
        """Something that the author's own node allows, if that comes to mind in a few attempts."""
        rng, view = self._rng, self._views[author]
        level = self._level(author)
        weights = {"join": 4}
        if level:
            weights["leave"] = 1
        if level >= WRITE:
            weights["post"] = 9
        if level >= ADMIN:
            weights |= {"grant": 6, "remove": 30, "invite": 3, "revoke": 4, "adopt": 12}
        for _ in range(3):
            (kind,) = rng.choices(list(weights), list(weights.values()))
            step = self._idea(author, kind, view)
            if step is not None and self._try(step):
                return

    def _idea(self, author: str, kind: str, view: Collection[int]) -> Step | None:
        """A commit of a kind with what else it says made up."""
        rng = self._rng
        match kind:
            case "post":
                return self._draft(author, "post", rng.choice(BRANCHES), view)
            case "grant":
                return self._draft(
                    author, "grant", view=view, user=rng.choice(self._names), level=rng.choice(LEVELS)
                )
            case "remove" | "leave":
                user = author if kind == "leave" else self._victim(author, view)
                return self._removal(author, user, rng.choice((0, 0, 0, 0, READ, WRITE, ADMIN)), view)
            case "invite":
                uses, level = rng.randint(1, 2), rng.choice((READ, WRITE, WRITE))
                return self._draft(
                    author, "invite", view=view, level=level, uses=uses, is_late=rng.random() < 0.1
                )
            case "join" | "revoke":
                invitations = self._known("invite", view)
                if not invitations:
                    return None
                user = author if kind == "join" else ""
                return self._draft(author, kind, view=view, target=rng.choice(invitations), user=user)
            case "adopt":
                void = sorted(self._history.void(view))
                if not void:
                    return None
                branch = self._history.steps[rng.choice(void)].branch
                chosen = [one for one in void if self._history.steps[one].branch == branch]
                adopted = tuple(rng.sample(chosen, rng.randint(1, len(chosen))))
                return self._draft(author, "adopt", view=view, adopted_in=branch, adopted=adopted)
        raise AssertionError(kind)

    def _level(self, author: str, view: Collection[int] | None = None) -> int:
        """What somebody holds in a view, their own by default."""
        past = frozenset(self._history.accepted(ROOT, self._views[author] if view is None else view))
        return self._history.rules.world(past).level(author)

    def _victim(self, author: str, view: Collection[int]) -> str:
        """Whom to remove: often who did something last, unseen, or else is out of reach, so that much contradicts."""
        rng = self._rng
        last = self._history.steps[max(self._history.steps)]
        if last.number not in view and rng.random() < 0.5:
            return last.author
        near = next(group for group in self._groups if author in group)
        others = [one for one in self._names if one != author]
        members = [one for one in others if self._level(one, view) >= WRITE]
        away = [one for one in members if one not in near]
        return rng.choice((away if rng.random() < 0.8 else members) or members or others)
