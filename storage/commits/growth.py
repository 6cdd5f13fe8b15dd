"""Counts what came, by day and by cause, of the latest commits alone: a long history costs no more than a year's."""

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Final, NamedTuple

from sqlalchemy import Connection, case, func, select

from protocol.limits.users import GROWTH_COMMIT_COUNT_MAX, GROWTH_DAY_COUNT_MAX
from storage.engine.queries import sum_of
from storage.schema.schema import branches, commits, files, repos, topic_inits

POSTS: Final = "posts"
FILES: Final = "files"
MEMBERS: Final = "members"
EPOCHS: Final = "epochs"
GROWTH_CAUSES: Final = (POSTS, FILES, MEMBERS, EPOCHS)
"""Why a store grows: what is written in branches; files; what is said of members, branches and rights; secrets for them."""
_DAY_MS: Final = 24 * 60 * 60 * 1000
_FILES_KIND: Final = "files"
_EPOCH_KINDS: Final = ("epoch-init", "epoch-open", "epoch-hand", "prekey")
_ROOT_BRANCHES: Final = (
    select(branches.c.num)
    .join(repos, (repos.c.num == branches.c.repo_num) & (repos.c.init_id == branches.c.root_id))
    .scalar_subquery()
)


class Growth(NamedTuple):
    """Count of commits that came, and the bytes of their blocks; for files also the bytes that authors state."""

    commits: int
    size: int


class Day(NamedTuple):
    """Growth of one day, for each of GROWTH_CAUSES."""

    day: int  # since 1970-01-01 in UTC
    causes: Mapping[str, Growth]

    @property
    def all(self) -> Growth:
        """Return what came for all causes."""
        return add_growth(self.causes.values())


class Held(NamedTuple):
    """Commits by the day they came: all, those of root branches, and inits of epochs.

    A repo's own init begins its first epoch, and is in no day.
    """

    commits: int
    root_commits: int
    repos: int
    inits: Mapping[int, int]

    @property
    def epochs(self) -> int:
        """Count the epochs that began with all these."""
        return self.repos + sum(self.inits.values())


def add_growth(parts: Iterable[Growth]) -> Growth:
    """Return the sum."""
    added = list(parts)
    return Growth(sum(one.commits for one in added), sum(one.size for one in added))


def load_growth(connection: Connection) -> list[Day]:
    """Load what came on the latest GROWTH_DAY_COUNT_MAX days, the latest first. Costs O(commits looked at).

    The latest GROWTH_COMMIT_COUNT_MAX commits are looked at: of more, the earliest day given is not whole.
    """
    of_branch = case((commits.c.branch_num.in_(_ROOT_BRANCHES), MEMBERS), else_=POSTS)
    kind = commits.c.body_kind
    cause = case((kind.in_(_EPOCH_KINDS), EPOCHS), (kind == _FILES_KIND, FILES), else_=of_branch)
    day = (commits.c.received_at // _DAY_MS).label("day")
    latest = (
        select(day, cause.label("cause"), commits.c.num, commits.c.size)
        .order_by(commits.c.num.desc())
        .limit(GROWTH_COMMIT_COUNT_MAX)
        .subquery()
    )
    query = select(latest.c.day, latest.c.cause, func.count(), sum_of(latest.c.size), func.min(latest.c.num))
    query = query.group_by(latest.c.day, latest.c.cause).order_by(latest.c.day.desc())
    found: dict[int, dict[str, Growth]] = {}
    first: int | None = None
    for on, name, count, size, num in connection.execute(
        query.limit(GROWTH_DAY_COUNT_MAX * len(GROWTH_CAUSES))
    ):
        found.setdefault(on, dict.fromkeys(GROWTH_CAUSES, Growth(0, 0)))[name] = Growth(count, size)
        if name == FILES:
            first = num if first is None else min(first, num)
    if first is not None:
        _add_stated_sizes(connection, found, first)
    return [Day(*one) for one in islice(found.items(), GROWTH_DAY_COUNT_MAX)]


def _add_stated_sizes(connection: Connection, found: Mapping[int, dict[str, Growth]], first: int) -> None:
    """Add the sizes of files that came with this commit, or one after it."""
    day = commits.c.received_at // _DAY_MS
    query = select(day.label("day"), files.c.size).join_from(
        files, commits, commits.c.num == files.c.commit_num
    )
    # Grouped by a column: PostgreSQL takes an expression with a parameter for another one each time.
    stated = query.where(files.c.commit_num >= first).subquery()
    sizes = select(stated.c.day, sum_of(stated.c.size)).group_by(stated.c.day)
    for on, size in connection.execute(sizes):
        if on in found:
            count, before = found[on][FILES]
            found[on][FILES] = Growth(count, before + size)


def count_held(connection: Connection) -> Held:
    """Count what is here. Costs O(branches + inits of epochs)."""
    root = case((branches.c.num.in_(_ROOT_BRANCHES), branches.c.commit_count), else_=0)
    query = select(sum_of(branches.c.commit_count), sum_of(root)).select_from(branches)
    all_repos = connection.execute(select(func.count()).select_from(repos)).scalar_one()
    inits = select(topic_inits.c.commit_num).distinct().subquery()
    days = select((commits.c.received_at // _DAY_MS).label("day")).join_from(
        inits, commits, commits.c.num == inits.c.commit_num
    )
    came = connection.execute(select(days.subquery().c.day)).scalars()
    return Held(*connection.execute(query).one(), all_repos, Counter(came))
