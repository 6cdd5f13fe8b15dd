"""Commits as values: what their authors sign. Two histories with the same commits are the same.

A commit is a number; causes have smaller ones. Keys are names: the key of an epoch is the number of the init that first used
it, so who "has key 7" can open all that is sealed with it. Nothing here judges.
"""

from typing import NamedTuple

from tests.model.switches import SETTINGS, at_reset

NONE, READ, WRITE, MANAGE, ADMIN, OWNER = range(6)
ROOT = -1  # the root branch
NEW = -2  # the branch of which this commit is to be the first
NOBODY = -3  # a key, or a writers' secret, that nobody has

# Each history begins with the founding by F, which makes these members at once, and with a grant of admin to B by F: so B is
# junior to A. C is a founder of whom no commit says that it holds anything: it came by a link (`Settings.cofounder`).
FOUNDERS = ("F", "G", "C")
FIRST_MEMBERS = {"F": OWNER, "G": OWNER, "A": ADMIN, "U": WRITE, "V": WRITE, "W": WRITE, "R": READ}
DECIDING = frozenset({"found", "grant", "invite", "join", "remove", "revoke", "quorum", "approve"})


class Found(NamedTuple):
    """The founding. `holders` are taken to have written in the founding epoch, by its writers' topic if they may write."""

    levels: tuple[tuple[str, int], ...]
    holders: tuple[str, ...]


class Grant(NamedTuple):
    """A permission given to a user."""

    user: str
    level: int


class Remove(NamedTuple):
    """A permission taken down to `level`; `names` are content commits that stand as if they were in its past."""

    user: str
    level: int
    names: frozenset[int] = frozenset()


class Invite(NamedTuple):
    """An invitation to read or write."""

    level: int


class Join(NamedTuple):
    """A join by an invitation; also a revocation of one."""

    invitation: int


class Quorum(NamedTuple):
    """Signers of whom so many must approve each removal."""

    threshold: int
    signers: tuple[str, ...]


class Init(NamedTuple):
    """A new epoch. `boxes` and `writers` are users with a box and a writers' box; `opens` are epochs whose keys it gives.

    A changed node states another's `key` or writers' `topic`, makes wrong boxes, or gives wrong keys.
    """

    boxes: tuple[str, ...]
    writers: tuple[str, ...]
    opens: frozenset[int]
    key: int | None = None
    topic: int | None = None
    wrong: frozenset[str] = frozenset()
    wrong_writers: frozenset[str] = frozenset()
    wrong_keys: frozenset[int] = frozenset()
    number: int = 0


class Open(NamedTuple):
    """Keys of other epochs; also the body of a merge of root heads."""

    epochs: frozenset[int]
    wrong: frozenset[int] = frozenset()


class Hand(NamedTuple):
    """An epoch handed to users, to some of them with its writers' secret."""

    epoch: int
    users: tuple[str, ...]
    writers: tuple[str, ...] = ()
    wrong: frozenset[str] = frozenset()


class Branch(NamedTuple):
    """A branch, by its first commit: for `add`, `link` and `offer`."""

    first: int


class Text(NamedTuple):
    """Anything else that is said, with words that name other commits (feed links, deps)."""

    number: int = 0
    words: frozenset[int] = frozenset()


Body = Found | Grant | Remove | Invite | Join | Quorum | Init | Open | Hand | Branch | Text


class Commit(NamedTuple):
    """Signed content of a commit. `is_marked` says whether the branch's mark is right."""

    kind: str
    author: str
    epoch: int
    by_writer: bool
    branch: int
    acks: frozenset[int]
    places: frozenset[int]
    rank: int
    body: Body
    is_marked: bool = True


START = frozenset({0, 1})

ALL: list[Commit] = []
PAST: list[frozenset[int]] = []  # by acks, places and, before, theirs
SEEN: list[frozenset[int]] = []  # root branch commits before it, by which it is judged
RIGHTS: list[frozenset[int]] = []  # those of them that decide about members
_NUMBERS: dict[Commit, int] = {}


def number_of(commit: Commit) -> int:
    """Return the number of a commit, the same for the same."""
    known = _NUMBERS.get(commit)
    if known is None:
        known = _NUMBERS[commit] = len(ALL)
        causes = commit.acks | commit.places
        past = causes.union(*(PAST[one] for one in causes))
        near = commit.acks if commit.branch == ROOT else commit.places
        seen = frozenset(one for one in near.union(*(PAST[one] for one in near)) if ALL[one].branch == ROOT)
        ALL.append(commit._replace(branch=known) if commit.branch == NEW else commit)
        PAST.append(past)
        SEEN.append(seen)
        RIGHTS.append(deciding(seen))
    return known


def deciding(commits: frozenset[int]) -> frozenset[int]:
    """Return those that decide about members."""
    return frozenset(one for one in commits if ALL[one].kind in DECIDING)


def causes_of(one: int) -> frozenset[int]:
    """Return acks and places: what must be accepted before the commit is judged."""
    return ALL[one].acks | ALL[one].places


def inits(commits: frozenset[int]) -> list[int]:
    """Return the epochs that these start, in the order of their numbers."""
    return sorted(one for one in commits if ALL[one].kind in ("found", "init"))


def identity(one: int) -> int:
    """Return the place of a commit among all by id: an arbitrary order, turned round by the salt."""
    return -one if SETTINGS.salt else one


def key_of(epoch: int) -> int:
    """Return the name of an epoch's key."""
    body = ALL[epoch].body
    return body.key if isinstance(body, Init) and body.key is not None else epoch


def writers_topic(epoch: int) -> int:
    """Return the name of the secret behind the writers' topic that an epoch states."""
    body = ALL[epoch].body
    return body.topic if isinstance(body, Init) and body.topic is not None else epoch


def followed_by(one: int) -> int:
    """Return the epoch whose holders can follow a commit (E4): an init's own, a hand-over's, else the commit's."""
    body = ALL[one].body
    return one if isinstance(body, Init) else body.epoch if isinstance(body, Hand) else ALL[one].epoch


def describe(one: int) -> str:
    """Return a commit in words."""
    commit = ALL[one]
    about = ""
    if isinstance(commit.body, Grant | Remove):
        about = f" of {commit.body.user} ({commit.body.level})"
    elif isinstance(commit.body, Hand):
        about = f" to {' '.join(commit.body.users)}"
    where = f"{ALL[commit.epoch].author}'s epoch" if commit.epoch > 0 else "the founding epoch"
    return f"{commit.author}'s {commit.kind}{about} in {where}"


@at_reset
def _found() -> None:
    for kept in (ALL, PAST, SEEN, RIGHTS):
        kept.clear()
    _NUMBERS.clear()
    levels = {**FIRST_MEMBERS, **({"C": OWNER} if SETTINGS.cofounder else {})}
    body = Found(tuple(sorted(levels.items())), tuple(sorted({*FIRST_MEMBERS, "B"} - {"F"})))
    number_of(Commit("found", "F", 0, False, ROOT, frozenset(), frozenset(), 0, body))
    number_of(Commit("grant", "F", 0, True, ROOT, frozenset({0}), frozenset(), 1, Grant("B", ADMIN)))
