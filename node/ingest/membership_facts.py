"""Facts that follow from a repo's membership and that readers ask for often: devices, stated names, hidden posts, lobbies.

They are computed when a membership has changed, and then stand for all readers, who wait for no lock.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final
from unicodedata import normalize

from protocol.formats.body import Move
from protocol.formats.profiles import Profile
from protocol.ids import RepoId, UserId
from verifier.devices import find_persons
from verifier.membership import Membership
from verifier.places import find_agreed, find_heirs, find_moves, find_recovered
from verifier.posts import Hidden, find_hidden
from verifier.resolution import Settled


@dataclass(frozen=True, slots=True)
class StatedName:
    """Name and color that a member states of itself, at unix milliseconds."""

    name: str | None
    color: int | None
    stated_at: int


Stated = Mapping[UserId, StatedName]
Persons = Mapping[UserId, UserId]
Moved = Mapping[UserId, tuple[UserId, int]]


@dataclass(frozen=True, slots=True)
class MembershipFacts:
    """Facts of one repo, as it was last committed."""

    has_devices: bool
    """True if a member states devices."""
    persons: Persons
    """Members who are devices of others, with these others."""
    stated: Stated
    hidden: Hidden
    lobby_of: RepoId | None
    """The repo that users ask for here; None: this is no lobby."""
    settled: Settled | None
    counts: tuple[int, int]
    """Statements of names, and of what is hidden, that these facts were made from; `settled` likewise."""
    has_own_user: bool = False
    """True if this node's user is a member."""
    moved: Moved = field(default_factory=dict)
    """Users whose place passed to a device, with that one and when, in unix milliseconds as they say, causes first."""


NO_FACTS: Final = MembershipFacts(False, MappingProxyType({}), MappingProxyType({}), {}, None, None, (0, 0))


def find_facts(
    membership: Membership | None, before: MembershipFacts, own_user: UserId | None
) -> MembershipFacts:
    """Find the facts of a membership; returns `before` itself if nothing differs. Hold `membership_lock`.

    Names and hidden posts are looked for only where statements of them, or the verdicts on these, have changed.
    """
    if membership is None:
        return NO_FACTS
    now = membership.now()
    counts = membership.profiles.change_count, len(membership.hides)
    is_settled = now.settled == before.settled
    stated, hidden = before.stated, before.hidden
    if not is_settled or counts[0] != before.counts[0]:
        stated = find_stated(membership) if counts[0] else {}
    if not is_settled or counts[1] != before.counts[1]:
        hidden = find_hidden(membership) if counts[1] else {}
    has_devices = bool(membership.device_statements)
    words, operations = membership.device_statements, membership.operations
    moves = find_agreed(find_moves(operations, now), words, now) if has_devices else {}
    heirs = find_heirs(moves)
    persons = find_persons(now, words, heirs) if has_devices else {}
    persons = find_recovered(operations, now, heirs) | persons
    ordered = operations.in_order(moves.values())
    moved = {one.author: (one.body.user, one.timestamp) for one in ordered if isinstance(one.body, Move)}
    lobby_of = membership.lobbies.target(membership.operations)
    has_own_user = own_user is not None and now.permission(own_user) is not None
    facts = MembershipFacts(
        has_devices, persons, stated, hidden, lobby_of, now.settled, counts, has_own_user, moved
    )
    return before if facts == before else facts


def find_stated(membership: Membership) -> dict[UserId, StatedName]:
    """Find what members of a repo, former ones too, state of themselves. Hold `membership_lock`."""
    found = {}
    for user, one in membership.profiles.find_latest(membership.operations, membership.now()).items():
        assert isinstance(one.body, Profile), "as it is listed"
        name = None if one.body.name is None else normalize("NFC", one.body.name)
        found[user] = StatedName(name, one.body.color, one.timestamp)
    return found
