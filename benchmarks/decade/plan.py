"""Plan of what happens in a community, and when: a pure function of its sizes and a seed. Nothing here has a key or a store.

All grows evenly: the first tenth of the time has a tenth of the members who ever come, of the repos, branches, epochs and
posts. The first repo is the *commons*, which everybody joins. The others are groups of few, each around one admin.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

YEAR_MS: Final = 31_557_600_000
BEGAN_MS: Final = 1_448_668_800_000
"""28 November 2015: ten years later is past, so no clock is wrong."""
YEARS: Final = 10
ADMINS: Final = 3
"""Members who never go. They found what there is, invite and exclude."""
GROUP_SIZE: Final = 4
"""Members of a group when it is founded, its admin included."""
_RUN_MAX: Final = 10
_WRITERS_MAX: Final = 6
"""Posts that one member writes on end, and members who write in one sitting."""
_FORKED: Final = 0.15
"""Share of runs that do not see the run before them."""
_REPLIES: Final = 0.2
"""Share of posts that answer an earlier one of the sitting."""
_LATE: Final = 0.05
"""Share of sittings from which a member goes offline with some posts, which come a while later."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes of a community at the end: all who ever were members, those of them who went, epochs of all repos."""

    members: int = 1000
    left: int = 900
    epochs: int = 200
    branches: int = 60
    repos: int = 20
    commits: int = 1_000_000


@dataclass(frozen=True, slots=True)
class Found:
    """The first admin founds a repo."""

    repo: int


@dataclass(frozen=True, slots=True)
class Admit:
    """The first admin makes users members of a repo: other admins of the commons, writers of a group."""

    repo: int
    members: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class AddBranch:
    """An admin adds a branch."""

    repo: int
    branch: int


@dataclass(frozen=True, slots=True)
class Invite:
    """An admin invites a member to the commons, by a link for one."""

    member: int
    admin: int


@dataclass(frozen=True, slots=True)
class Join:
    """A member joins the commons, and states a name."""

    member: int


@dataclass(frozen=True, slots=True)
class Leave:
    """A member leaves the commons."""

    member: int


@dataclass(frozen=True, slots=True)
class Exclude:
    """The first admin excludes members of a repo, all in one transaction."""

    repo: int
    members: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class KeepUp:
    """The first admin's node starts the epoch that is due in a repo, if any, and hands it to who lacks it."""

    repo: int
    renews: bool
    """True if it starts one in any case: an admin wants new secrets."""


@dataclass(frozen=True, slots=True)
class Run:
    """Posts that one member writes on end: for each how many posts before the run it answers, 0 for none."""

    member: int
    answers: tuple[int, ...]
    is_fork: bool
    """True if its author has not seen the run before."""


@dataclass(frozen=True, slots=True)
class Sitting:
    """Runs in one branch, which one transaction stores."""

    branch: int
    runs: tuple[Run, ...]


@dataclass(frozen=True, slots=True)
class Offline:
    """Posts that a member writes in a branch offline: others get them at `Return`."""

    late: int
    branch: int
    run: Run


@dataclass(frozen=True, slots=True)
class Return:
    """Arrival of what was written offline."""

    late: int


Happening = Found | Admit | AddBranch | Invite | Join | Leave | Exclude | KeepUp | Sitting | Offline | Return


@dataclass(frozen=True, slots=True)
class Event:
    """Event at a time (unix milliseconds). No two have the same, so the store's newest tells how far it came."""

    at: int
    what: Happening


_Add = Callable[..., None]
"""Adds happenings at a share of the whole time."""


class Plan:
    """The life of one community."""

    def __init__(self, sizes: Sizes, seed: int) -> None:
        """Plan it. Costs O(commits)."""
        if not sizes.members - sizes.left > ADMINS or sizes.repos > sizes.branches:
            raise ValueError(f"more than {ADMINS} members stay, and each repo has a branch")
        self.sizes = sizes
        self.seed = seed
        self._rng = Random(seed)  # noqa: S311  # the same life in every run
        self._branches = self._spread_branches()
        self._stays = self._plan_stays()
        self._groups = self._plan_groups()
        self.events = self._plan_events()

    @property
    def year(self) -> int:
        """Return how many events the first tenth of the time has."""
        end = BEGAN_MS + YEAR_MS
        return sum(event.at < end for event in self.events)

    def _spread_branches(self) -> list[tuple[float, int]]:
        """Return when each branch begins, and its repo. Groups have two each, or one; all others are of the commons."""
        sizes = self.sizes
        each = 2 if sizes.branches >= 2 * sizes.repos else 1
        rest = sizes.branches - each * (sizes.repos - 1)
        begins = [
            ((repo + place / each) / sizes.repos, repo)
            for repo in range(1, sizes.repos)
            for place in range(each)
        ]
        return sorted([*begins, *((place / rest, 0) for place in range(rest))])

    def _plan_stays(self) -> list[tuple[float, float]]:
        """Return for each member when it comes and goes, as shares of the whole time; inf for who stays."""
        sizes = self.sizes
        comes = [0.0] * ADMINS + [(place + 0.5) / sizes.members for place in range(ADMINS, sizes.members)]
        mean = (sizes.members - sizes.left) / sizes.members
        ends = sorted(
            (at + self._rng.expovariate(1 / mean), member)
            for member, at in enumerate(comes)
            if member >= ADMINS
        )
        goes = {member: end for end, member in ends[: sizes.left]}
        last = 1 - 0.25 / sizes.members
        # As many as are to go have gone at the end: who would go after it goes before.
        scale = min(1.0, last / max(goes.values(), default=last))
        return [
            (at, math.inf if (end := goes.get(member)) is None else max(end * scale, min(at + 1e-3, last)))
            for member, at in enumerate(comes)
        ]

    def _plan_groups(self) -> dict[int, tuple[int, ...]]:
        """Return who is in each group when it is founded, but for the first admin."""
        groups = {}
        for repo in range(1, self.sizes.repos):
            at = repo / self.sizes.repos
            here = [one for one, (come, go) in enumerate(self._stays) if one > 0 and come < at < go]
            groups[repo] = tuple(sorted(self._rng.sample(here, min(GROUP_SIZE - 1, len(here)))))
        return groups

    def _plan_events(self) -> list[Event]:
        places: list[tuple[float, int, Happening]] = []

        def add(share: float, *happenings: Happening) -> None:
            places.extend((share, len(places), one) for one in happenings)

        for repo in range(self.sizes.repos):
            members = tuple(range(1, ADMINS)) if repo == 0 else self._groups[repo]
            add(repo / self.sizes.repos, Found(repo), Admit(repo, members), KeepUp(repo, renews=False))
        for branch, (begins, repo) in enumerate(self._branches):
            add(begins, AddBranch(repo, branch))
        for member, (come, _) in enumerate(self._stays):
            if member >= ADMINS:
                add(come, Invite(member, member % ADMINS), Join(member), KeepUp(0, renews=False))
        self._plan_goings(add)
        self._plan_sittings(add)
        places.sort(key=lambda one: (one[0], one[1]))
        span = YEARS * YEAR_MS
        events: list[Event] = []
        at = BEGAN_MS
        for share, _, what in places:
            at = max(at + 1, BEGAN_MS + int(share * span))
            events.append(Event(at, what))
        return events

    def _plan_goings(self, add: "_Add") -> None:
        """Plan when members go: several at a time, and each time the repo gets a new epoch."""
        sizes = self.sizes
        in_groups = sum(
            math.isfinite(self._stays[one][1]) for group in self._groups.values() for one in group
        )
        renewals = max(1, sizes.epochs - sizes.repos - in_groups)
        goers = sorted((go, member) for member, (_, go) in enumerate(self._stays) if math.isfinite(go))
        done = 0
        for number in range(renewals):
            # The last is a moment before the end.
            share = (number + 1) / renewals * (1 - 0.1 / max(10, sizes.members))
            gone = []
            while done < len(goers) and (goers[done][0] <= share or number == renewals - 1):
                gone.append(goers[done][1])
                done += 1
            leaving, excluded = gone[::2], tuple(gone[1::2])
            add(share, *(Leave(one) for one in leaving))
            if excluded:
                add(share, Exclude(0, excluded))
            add(share, KeepUp(0, renews=not gone))
            for member in gone:
                for repo, group in self._groups.items():
                    if member in group:
                        add(share, Exclude(repo, (member,)), KeepUp(repo, renews=False))
                self._stays[member] = (self._stays[member][0], share)

    def _plan_sittings(self, add: "_Add") -> None:
        sizes, rng = self.sizes, self._rng
        size = max(10, min(250, sizes.commits // 60))
        count = -(-sizes.commits // size)
        away: dict[int, float] = {}
        returns: list[tuple[float, int]] = []
        late, left = 0, sizes.commits
        for number in range(count):
            share = (number + 0.5) / count
            known = [place for place, (begins, _) in enumerate(self._branches) if begins < share]
            branch = rng.choices(known, [1 / (1 + place) for place in range(len(known))])[0]
            repo = self._branches[branch][1]
            here = [one for one in self._present(repo, share) if away.get(one, 0.0) < share]
            here = rng.sample(here, min(len(here), rng.randint(2, _WRITERS_MAX)))
            posts = min(size, left)
            left -= posts
            if len(here) > 2 and posts > _RUN_MAX and rng.random() < max(_LATE, 2 / count):
                member, back = here.pop(), share + rng.uniform(0.5, 2.5) * 0.01
                if member >= ADMINS and self._stays[member][1] > back and back < 1:
                    run = self._plan_run(member, rng.randint(1, 5), 0, is_fork=False)
                    posts -= len(run.answers)
                    add(share, Offline(late, branch, run))
                    returns.append((back, late))
                    away[member] = back
                    late += 1
            add(share, Sitting(branch, tuple(self._plan_runs(here, posts))))
        for back, number in returns:
            add(back, Return(number))

    def _present(self, repo: int, share: float) -> Sequence[int]:
        members = range(len(self._stays)) if repo == 0 else (0, *self._groups[repo])
        return [one for one in members if self._stays[one][0] < share < self._stays[one][1]]

    def _plan_runs(self, members: Sequence[int], posts: int) -> Iterator[Run]:
        rng, done, last = self._rng, 0, -1
        can_fork = False
        while done < posts:
            others = [one for one in members if one != last] or members
            member = rng.choice(others)
            is_fork = can_fork and member != last and rng.random() < _FORKED
            run = self._plan_run(member, min(posts - done, rng.randint(1, _RUN_MAX)), done, is_fork=is_fork)
            yield run
            # A run that forks is not forked from: its author may be the one before.
            can_fork, done, last = not is_fork, done + len(run.answers), member

    def _plan_run(self, member: int, count: int, before: int, *, is_fork: bool) -> Run:
        rng = self._rng
        answers = tuple(
            rng.randint(1, min(20, before)) if before and rng.random() < _REPLIES else 0 for _ in range(count)
        )
        return Run(member, answers, is_fork)
