"""Malicious members: whatever one can do who has the secrets and writes bytes by hand. Much of it is rejected."""

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Final

from tests.histories.members import Members
from tests.histories.tales import BRANCHES, FOUNDING
from tests.support.reference_histories import ROOT, End, Step
from tests.support.reference_membership import READ, WRITE

_NOBODY: Final = -1


class Liars(Members):
    """Members of whom up to two are malicious."""

    def _lie(self, step: Step) -> None:
        """Do it anyway; whether others of the group hear of it is the liar's choice."""
        if not self._history.add(step) and self._rng.random() < 0.6:
            self._publish(step)

    def _corrupt(self, name: str) -> bool:
        """Make one more malicious, if that is not one too many."""
        if len(self._malicious | {name}) <= 2:
            self._malicious |= {name}
        return name in self._malicious

    def _misbehave(self, author: str) -> None:
        """Something that only who writes bytes by hand can do."""
        tricks: tuple[Callable[[str], None], ...] = (
            self._overreach,
            self._overreach,
            self._backdate,
            self._backdate,
            self._backdate,
            self._fork,
            self._exclude_everyone,
            self._forge,
            self._imply,
            self._rejoin,
            self._remove_with_lies,
            self._adopt_anything,
            self._write_on,
        )
        self._rng.choice(tricks)(author)

    def _any_idea(self, author: str, view: Collection[int]) -> Step:
        kinds = ("post", "post", "grant", "remove", "invite", "join", "revoke", "adopt")
        step = self._idea(author, self._rng.choice(kinds), view)
        step = step or self._draft(author, "post", self._rng.choice(BRANCHES), view)
        return replace(step, known=None)

    def _some_view(self) -> set[int]:
        """A few commits that anyone has, and all that they need."""
        accepted = [one for one in self._history.steps if one not in self._history.rejected]
        chosen = self._rng.sample(accepted, min(len(accepted), self._rng.randint(1, 3)))
        return set(range(len(FOUNDING))).union(chosen, *(self._history.causes[one] for one in chosen))

    def _overreach(self, author: str) -> None:
        self._lie(self._any_idea(author, self._views[author]))

    def _backdate(self, author: str) -> None:
        """As if it had been made earlier; the feed goes on from its end, or forks."""
        step = self._any_idea(author, self._some_view())
        if self._rng.random() < 0.5:
            now = self._draft(author, step.kind, step.branch)
            step = replace(step, sequence=now.sequence, previous=now.previous, skip=now.skip)
        self._lie(step)

    def _fork(self, author: str) -> None:
        """A commit after any of the author's own, those that were rejected included."""
        step = self._any_idea(author, self._views[author])
        feed = [
            one for one in self._history.steps.values() if (one.author, one.branch) == (author, step.branch)
        ]
        if feed:
            step = self._follow(step, self._rng.choice(feed))
        self._lie(step)

    def _exclude_everyone(self, author: str) -> None:
        view = set(self._views[author]) if self._rng.random() < 0.5 else self._some_view()
        for user in self._rng.sample(self._names, min(3, len(self._names))):
            step = self._draft(author, "remove", view=view, user=user)
            self._lie(step)
            if step.number not in self._history.rejected:
                view |= {step.number}

    def _forge(self, author: str) -> None:
        """In another's name."""
        other = self._rng.choice([one for one in self._names if one != author])
        self._lie(replace(self._any_idea(other, self._views[author]), signer=author))

    def _imply(self, author: str) -> None:
        """Acks that are not only the heads, and what was rejected."""
        step = self._any_idea(author, self._views[author])
        before = [one.number for one in self._history.steps.values() if one.branch == step.branch]
        acks = tuple(self._rng.sample(before, min(len(before), self._rng.randint(1, 3))))
        self._lie(replace(step, acks=acks))

    def _rejoin(self, author: str) -> None:
        """By any invitation, with any proof, and with whatever past suits."""
        invitations = self._known("invite", self._history.steps)
        if not invitations:
            return self._overreach(author)
        target = self._rng.choice(invitations)
        view = self._history.causes[target] | {target} | set(range(len(FOUNDING)))
        view |= self._rng.choice((set(), self._views[author]))
        proof = author if self._rng.random() < 0.8 else self._rng.choice(self._names)
        return self._lie(self._draft(author, "join", view=view, target=target, user=proof))

    def _remove_with_lies(self, author: str, user: str = "") -> None:
        """Ends that are not the feed's, or no commit's at all, and commits that are still to come."""
        rng, history = self._rng, self._history
        user = user or rng.choice(self._names)
        feed = [one for one in history.steps.values() if one.author == user and one.branch != ROOT]
        ends = [End(rng.choice(BRANCHES), rng.randint(1, 5), _NOBODY)] if rng.random() < 0.3 else []
        for one in rng.sample(feed, min(len(feed), 2)):
            sequence = one.sequence + rng.choice((-1, 0, 0, 0, 1))
            ends.append(End(rng.choice((one.branch, one.branch, *BRANCHES)), max(sequence, 1), one.number))
        kept = {end.branch: end for end in ends}.values() if rng.random() < 0.9 else ends
        level = rng.choice((0, 0, 0, READ, WRITE))
        self._lie(self._draft(author, "remove", user=user, level=level, ends=tuple(kept)))

    def _adopt_anything(self, author: str) -> None:
        """Commits that are not void, or not known to anyone else."""
        posts = self._known("post", self._history.steps) or [2]
        adopted = tuple(self._rng.sample(posts, min(len(posts), self._rng.randint(1, 3))))
        branch = self._history.steps[adopted[0]].branch
        self._lie(self._draft(author, "adopt", adopted_in=branch, adopted=adopted))

    def _write_on(self, author: str) -> None:
        """As if nothing had happened since some moment: several posts in a row."""
        view, branch = self._some_view(), self._rng.choice(BRANCHES)
        for _ in range(self._rng.randint(1, 4)):
            step = self._draft(author, "post", branch, view)
            self._lie(step)
            if step.number in self._history.rejected:
                return
            view |= {step.number}
