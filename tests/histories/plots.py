"""`tell` makes a history up from a seed: things done at random, and in most a plot in which they bear on each other.

The members are in groups that hear each other, and learn now and then what somebody else knows. A plot gives parts to
four of them; who may not do its part by then does not.
"""

from collections.abc import Callable
from random import Random

from tests.histories.liars import Liars
from tests.histories.members import LEVELS
from tests.histories.tales import BRANCHES, Tale
from tests.support.reference_histories import Step
from tests.support.reference_membership import ADMIN, OWNER, READ, WRITE


def tell(seed: int) -> Tale:
    """The history of that seed."""
    return Plots(Random(seed)).tale()


class Plots(Liars):
    """Makes one history up."""

    def tale(self) -> Tale:
        """Tell it: grants, then things done at random, and in most a plot in which they hang together."""
        rng = self._rng
        for name in rng.sample(self._names[1:], rng.randint(1, min(4, len(self._names) - 1))):
            self._try(self._draft("ann", "grant", user=name, level=rng.choice(LEVELS)))
        self._part()
        self._act(rng.randint(0, 5))
        if rng.random() < 0.7:
            self._groups = [(name,) for name in self._names]
            self._plot()
            self._part()
        self._act(rng.randint(0, 5))
        return Tale(self._malicious, tuple(self._history.steps.values()))

    def _act(self, count: int) -> None:
        """Do about so many things at random."""
        rng = self._rng
        length = len(self._history.steps) + count
        for _ in range(5 * count):  # in some histories, nobody can do anything any more
            if len(self._history.steps) >= length:
                break
            if rng.random() < 0.1:
                self._part()
            name = self._choose()
            if rng.random() < 0.4:
                self._hear(name, rng.choice(self._names))
            if name in self._malicious and rng.random() < 0.7:
                self._misbehave(name)
            else:
                self._behave(name)

    def _plot(self) -> None:
        """Several things that bear on each other, by members who hear only of some; who may not do its part does not."""
        rng = self._rng
        seniors = sorted(self._names, key=lambda name: (-self._level(name), rng.random()))
        first, second = rng.sample(seniors[:3], 2)
        rest = [name for name in self._names if name not in (first, second)]
        plots: tuple[Callable[[str, str, str, str], None], ...] = (
            self._adopter_falls,
            self._remover_falls,
            self._grants_fall,
            self._invitation_falls,
            self._circle,
            self._twins,
            self._twins,
            self._comes_back,
        )
        rng.choice(plots)(first, second, rng.choice(rest), rng.choice(rest))

    def _post(self, author: str) -> bool:
        return self._try(self._draft(author, "post", self._rng.choice(BRANCHES)))

    def _adopter_falls(self, first: str, second: str, third: str, _: str) -> None:
        """What the removed wrote is adopted by one who is removed."""
        self._post(third)
        self._try(self._removal(first, third))
        self._hear(second, first, third)
        for one in sorted(self._history.void(self._views[second])):
            branch = self._history.steps[one].branch
            self._try(self._draft(second, "adopt", adopted_in=branch, adopted=(one,)))
        if self._rng.random() < 0.3:
            self._hear(first, second)
        self._try(self._removal(first, second))

    def _remover_falls(self, first: str, second: str, third: str, fourth: str) -> None:
        """Who removed one that went on, and another, is removed by one who had not heard."""
        self._try(self._removal(second, third))
        self._post(third)
        self._hear(fourth, third)
        self._post(fourth)
        self._try(self._removal(second, fourth, self._rng.choice((0, READ))))
        self._try(self._removal(first, second, self._rng.choice((0, 0, WRITE, ADMIN))))

    def _grants_fall(self, first: str, second: str, third: str, fourth: str) -> None:
        """Who let others in is removed by one who had not heard; they went on."""
        self._try(self._draft(second, "grant", user=third, level=self._rng.choice(LEVELS)))
        self._hear(third, second)
        self._post(third)
        self._try(self._draft(third, "grant", user=fourth, level=WRITE))
        self._hear(fourth, third)
        self._post(fourth)
        self._try(self._removal(first, second))

    def _invitation_falls(self, first: str, second: str, third: str, fourth: str) -> None:
        """An invitation is revoked, or who made it removed, by one who had not heard of a join; another had."""
        if not self._try(self._draft(second, "invite", level=WRITE, uses=self._rng.randint(1, 2))):
            return
        invitation = max(self._history.steps)
        self._hear(first, second)
        self._hear(third, second)
        self._hear(fourth, second)
        for name in dict.fromkeys((third, fourth)):
            self._try(self._draft(name, "join", target=invitation, user=name))
            self._post(name)
            if self._rng.random() < 0.3:
                self._hear(first, name)
        if self._rng.random() < 0.4:
            self._try(self._removal(first, second))
        else:
            self._try(self._draft(first, "revoke", target=invitation))

    def _circle(self, first: str, second: str, third: str, fourth: str) -> None:
        """Two or three remove each other, and a fourth hears one of them and writes."""
        circle = (first, second, third) if self._rng.random() < 0.5 else (first, second)
        if self._rng.random() < 0.4:  # unseen by the others
            self._try(self._draft("ann", "grant", user=second, level=OWNER))
            self._hear(second, "ann")
        for author, user in zip(circle, (*circle[1:], first), strict=True):
            self._try(self._removal(author, user, self._rng.choice((0, 0, READ, ADMIN))))
        self._post(self._rng.choice(circle))
        self._hear(fourth, self._rng.choice(circle))
        self._post(fourth)

    def _twins(self, first: str, second: str, third: str, _fourth: str) -> None:
        """A feed is forked, and removals name one end of it, the other, or neither."""
        rng, branch = self._rng, self._rng.choice(BRANCHES)
        if not self._corrupt(third):
            return
        feed: list[Step] = []
        for _ in range(rng.randint(3, 5)):
            step = self._draft(third, "post", branch)
            if feed and rng.random() < 0.5:
                step = self._follow(step, rng.choice(feed))
            if self._history.add(step, is_kept=False):
                return
            feed.append(step)
            self._views[third] |= {step.number}
            if rng.random() < 0.6:
                self._views[rng.choice((first, second))] |= {step.number} | self._history.causes[step.number]
        self._try(self._removal(first, third))
        if rng.random() < 0.6:
            self._remove_with_lies(second, third)
        else:
            self._try(self._removal(second, third))

    def _comes_back(self, first: str, second: str, third: str, fourth: str) -> None:
        """An invitation is used too often, and by one who was removed since, with and without having heard of it."""
        if not self._corrupt(third) or not self._try(self._draft(second, "invite", level=WRITE)):
            return
        target = max(self._history.steps)
        for name in (first, third, fourth):
            self._hear(name, second)
        if self._rng.random() < 0.5:
            self._try(self._draft(fourth, "join", target=target, user=fourth))
            self._hear(self._rng.choice((first, third)), fourth)
        self._lie(self._draft(third, "join", target=target, user=third))
        self._hear(first, third)
        self._try(self._removal(first, third))
        if self._rng.random() < 0.7:
            self._hear(third, first)
        self._lie(self._draft(third, "join", target=target, user=third))
        self._post(third)
