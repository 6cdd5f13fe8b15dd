"""How a repo stands with others, as an answer: what is known of it, the state, and the sentence that people read.

`node.observe.standing` looks at connections and the store. Nothing here does.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from node.contract.repos import RepoStanding
from node.contract.values import SyncProgress
from node.runtime.wording import counted, date_text, duration_text
from node.sync.sync_progress import progress_of, seconds_left
from protocol.ids import PeerId, TopicKey
from protocol.limits.peers import STATED_COUNT_MAX
from protocol.text import id_text
from storage.peers.peers import Holder

UNHELD_COUNTED_MAX: Final = 1000
"""Commits of one branch that are counted as on this node alone, a millisecond: people need no larger number. Files too."""
BELIEVED_SECONDS: Final = 600
"""For how long a peer is believed that states to have commits and sends none: other topics may be compared before, or come
on a slow line."""
QUIET_SAID_SECONDS: Final = 30
"""From when on it is said that none comes."""
_PEERS_NAMED_MAX: Final = 3
_ID_SHOWN_SIZE: Final = 12
_WITHOUT_PEERS: Final = {
    "in_sync": "in sync with a peer",
    "syncing": "not in sync yet",
    "alone": "no peer is connected",
    "not_shared": "no connected peer follows it",
    "waiting": "waiting for what is not here",
    "joining": "joining",
}
"""State -> a sentence that names no peer, where the full one does."""
_ENDED: Final = ("cut_off", "former", "damaged")


@dataclass(frozen=True, slots=True)
class Link:
    """How a repo stands with one connected peer that follows it."""

    peer: PeerId
    is_relay: bool
    is_level: bool
    """The peer and this node hold the same of every branch."""
    behind: int
    """Commits that the peer states to have and that are not here; STATED_COUNT_MAX of a topic stands for any number."""
    unsent: int | None
    """Commits that are here and not known to be durable there; None while that is being compared."""
    refused: str
    coming: float | None = None
    """Commits of those that come in a second; 0.0: none any more; None: not known."""
    going: float | None = None
    """The same of those that are sent."""
    held: frozenset[TopicKey] = frozenset()
    """Topics of which the peer has all that is here: one that was excluded has those of earlier epochs."""
    quiet_seconds: int = 0
    """For how long none has come, while the peer states that it has more: in steps of 30, BELIEVED_SECONDS at most."""

    @property
    def is_coming(self) -> bool:
        """Whether the peer has more, as far as it can be believed: who sends none of it for long may have none."""
        return self.behind > 0 and self.quiet_seconds < BELIEVED_SECONDS

    @property
    def changes_alone(self) -> bool:
        """Whether a look may find another rate or wait, though nothing has come or gone."""
        return self.is_coming or bool(self.going)


@dataclass(frozen=True, slots=True)
class Outlook:
    """What the network knows of one repo at a moment."""

    links: tuple[Link, ...]
    connected: int
    """Peers that are connected, whatever they follow."""
    level_since: Mapping[PeerId, int]
    """Unix seconds since when a peer holds the same, as far as was looked."""
    last: Holder | None
    """The peer that was last seen to hold all that was here, and up to which commit; None: none was."""
    last_is_relay: bool = False
    held: Mapping[TopicKey, int] = field(default_factory=dict)
    """Topics of which a peer was seen to have all, since the start, with the last commit's number then."""
    foreign: int = 0
    """Of the peers that are connected, those that say what this version does not know."""


NO_OUTLOOK: Final = Outlook((), 0, {}, None)
"""Of a repo that came this moment."""


@dataclass(frozen=True, slots=True)
class Unheld:
    """What this user wrote and no other node is known to have. None: nothing is known of it."""

    commits: int | None = 0
    files: int = 0
    """Files whose content no peer has fetched whole from this node, and no relay has said to keep."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What the store knows of a repo."""

    is_member: bool
    was_member: bool
    is_joining: bool
    is_damaged: bool
    is_behind: bool  # members have gone on to an epoch whose secrets are not here
    has_members: bool
    refused: str = ""  # why a join by a link was refused
    behind_since: int | None = None  # unix seconds since when that is known here, where it is
    requests: int = 0  # users who ask to be let in, and wait for an answer of this user
    asking: str = ""  # of a request to join that is not over: how it stands, in a sentence
    waiting: int = 0  # commits that wait for earlier ones, or for a key
    holders: tuple[str, ...] = ()  # what the members are called who have what is absent
    is_due: bool = False  # whether an epoch is due
    starters: tuple[str, ...] = ()  # what the members are called who can start it
    uncertain: str = ""  # why own commits may be absent, so that nothing is written yet
    own_forks: int = 0  # places of own feeds that were used more than once
    unread: int = 0  # commits of formats that this Ravel does not know
    damaged: int = 0  # commits whose content is damaged here
    members: int | None = None  # how many other members there are; None where that is not known


def describe_standing(
    facts: Facts, outlook: Outlook, unheld: Unheld, name_of: Callable[[PeerId], str], here: int = 0
) -> RepoStanding:
    """The standing as an answer: its state, and the sentence that people read.

    `name_of` gives what this user calls a peer, empty for nothing. `here` are the repo's commits on this node.
    """
    state, sentence = _membership_part(facts)
    if facts.uncertain and not state:
        state = "waiting"
    guests = _count_guests(facts, outlook)
    link_state, link_sentence = _network_part(outlook, unheld, name_of)
    if facts.asking and link_state == "in_sync":
        link_sentence = ""  # a peer has the request, and of the repo nothing is here
    level = sorted(outlook.level_since)
    return {
        "state": state or link_state,
        # Of one that is cut off, who else holds what it has is beside the point.
        "sentence": sentence
        if state in _ENDED
        else "; ".join(
            filter(
                None,
                (
                    sentence,
                    _own_feeds_part(facts),
                    _unshown_part(facts),
                    link_sentence,
                    _guests_part(guests),
                    _requests_part(facts),
                ),
            )
        ),
        "in_sync_with": [id_text(peer) for peer in level],
        "since": min(outlook.level_since.values(), default=None),
        "behind": max((link.behind for link in outlook.links if link.is_coming), default=0),
        "progress": None if outlook.level_since else _progress(outlook, here),
        "unheld": unheld.commits,
        "unread": facts.unread,
        "damaged": facts.damaged,
        "guests": guests,
        "uncertain": facts.uncertain,
        "own_forks": facts.own_forks,
        "unfetched_files": unheld.files,
        "held_at": None if outlook.last is None else outlook.last.held_at // 1000,
        "behind_since": facts.behind_since if facts.is_behind else None,
        "waiting": facts.waiting,
        "epoch_due": facts.is_due,
        "helpers": list(facts.starters or facts.holders),
    }


def without_peers(standing: RepoStanding) -> RepoStanding:
    """The same for a caller that may read repos, and not see the node's peers."""
    sentence = _WITHOUT_PEERS.get(standing["state"], standing["sentence"])
    return {**standing, "sentence": sentence, "in_sync_with": []}


def _membership_part(facts: Facts) -> tuple[str, str]:
    if facts.is_damaged:
        return "damaged", "who is a member cannot be told: commits of the membership are damaged here"
    if facts.asking:
        return "joining", facts.asking
    if facts.is_joining:
        return "joining", "joining: the membership has not come yet"
    since = "" if facts.behind_since is None else f" since {date_text(facts.behind_since)}"
    if facts.is_member:
        if facts.is_behind:
            return (
                "waiting",
                f"waiting for secrets{since}: members have gone on to new ones, and none has handed them to this node yet"
                f"{_people_part(facts.holders, 'has', 'have')}",
            )
        return _absent_part(facts)
    if facts.was_member:
        if facts.is_behind:
            return (
                "cut_off",
                f"cut off{since}: you are no member any more, and what members write since is not for this node",
            )
        return "former", "you are no member any more, and read what was shared with you"
    if facts.is_behind:
        return (
            "cut_off",
            f"cut off{since}: the repo got new secrets by an exclusion or a renewal, and your link opens nothing newer; "
            "ask a member for a new one",
        )
    refused = f"your invitation was refused ({facts.refused}); " if facts.refused else ""
    what = "the repo" if facts.has_members else "single branches"
    state, absent = _absent_part(facts)
    return state, "; ".join(filter(None, (f"{refused}reading {what} without being a member", absent)))


def _absent_part(facts: Facts) -> tuple[str, str]:
    """What is absent, and who can help."""
    parts = []
    if facts.waiting:
        verb = "waits" if facts.waiting == 1 else "wait"
        have = _people_part(facts.holders, "has", "have")
        parts.append(f"{counted(facts.waiting, 'commit')} {verb} for earlier ones that are not here{have}")
    if facts.is_due:
        start = _people_part(facts.starters, "starts", "start")
        parts.append(f"new secrets are due since the members have changed{start}")
    return ("waiting" if facts.waiting else ""), "; ".join(parts)


def _people_part(names: Sequence[str], verb: str, verb_of_many: str) -> str:
    """Who helps, behind a comma: "ann has them", "ann or ben have them". Empty where nobody is known."""
    if not names:
        return ""
    named = list(names[:_PEERS_NAMED_MAX])
    if len(names) > _PEERS_NAMED_MAX:
        named[-1] = f"{len(names) - _PEERS_NAMED_MAX + 1} others"
    return f", which {' or '.join(named)} {verb if len(names) == 1 else verb_of_many}"


def _own_feeds_part(facts: Facts) -> str:
    """What keeps this user from writing, and what writing in two places has left."""
    parts = []
    if facts.uncertain:
        parts.append(f"you cannot write yet: peers are asked for commits of yours ({facts.uncertain})")
    if facts.own_forks:
        verb = "was" if facts.own_forks == 1 else "were"
        parts.append(f"{counted(facts.own_forks, 'place')} of your feed {verb} used twice")
    return "; ".join(parts)


def _unshown_part(facts: Facts) -> str:
    """What is here, as peers see it, and cannot be shown."""
    parts = []
    if facts.unread:
        verb = "is" if facts.unread == 1 else "are"
        parts.append(
            f"{counted(facts.unread, 'commit')} {verb} of a newer format, which this Ravel does not show"
        )
    if facts.damaged:
        verb = "is" if facts.damaged == 1 else "are"
        parts.append(f"{counted(facts.damaged, 'commit')} {verb} damaged here, and asked of peers")
    return "; ".join(parts)


def _count_guests(facts: Facts, outlook: Outlook) -> int:
    """Count at least the peers that follow a repo and are no member's: relays are told apart, members have one node each."""
    if facts.members is None:
        return 0
    return max(0, len({link.peer for link in outlook.links if not link.is_relay}) - facts.members)


def _guests_part(guests: int) -> str:
    if not guests:
        return ""
    return f"at least {guests} of the peers that follow it {'is' if guests == 1 else 'are'} no member's"


def _requests_part(facts: Facts) -> str:
    if not facts.requests:
        return ""
    who = "1 user asks" if facts.requests == 1 else f"{facts.requests} users ask"
    return f"{who} to be let in"


def _network_part(outlook: Outlook, unheld: Unheld, name_of: Callable[[PeerId], str]) -> tuple[str, str]:
    alone = _alone_part(unheld)
    if outlook.level_since:
        since = date_text(min(outlook.level_since.values()))
        return "in_sync", f"in sync with {_named(outlook, name_of)} since {since}{alone}"
    if not outlook.connected:
        held = ""
        if outlook.last is not None and not unheld.commits:
            holder = _called(outlook.last.peer, name_of, is_relay=outlook.last_is_relay)
            held = f"; {holder} had all commits on {date_text(outlook.last.held_at // 1000)}"
        return "alone", f"no peer is connected{held}{alone}"
    if not outlook.links:
        count = f"{outlook.connected} peer is" if outlook.connected == 1 else f"{outlook.connected} peers are"
        foreign = f" ({outlook.foreign} of another version of Ravel)" if outlook.foreign else ""
        return "not_shared", f"{count} connected{foreign}, and none follows this repo{alone}"
    link = _told_link(outlook)
    who = _called(link.peer, name_of, is_relay=link.is_relay)
    if link.refused:
        return "syncing", f"{who} takes no more of it: {link.refused}{alone}"
    if link.unsent is None:
        return "syncing", f"comparing with {who}{alone}"
    if link.behind:
        return "syncing", f"behind by {_behind_part(link, who)}{alone}"
    if not link.unsent:
        return "not_shared", f"{who} follows parts of it, or the repo as it was before an exclusion{alone}"
    return (
        "syncing",
        f"sending {counted(link.unsent, 'commit')} to {who}{_pace(link.unsent, link.going)}{alone}",
    )


def _told_link(outlook: Outlook) -> Link:
    """The one that people are told of: what comes goes before what is sent, the fastest before others."""
    coming = [link for link in outlook.links if link.is_coming and not link.refused]
    if coming:
        return max(coming, key=lambda one: (one.coming or 0.0, -one.behind))
    return min(outlook.links, key=lambda one: (bool(one.refused), one.behind, one.unsent or 0))


def _progress(outlook: Outlook, here: int) -> SyncProgress | None:
    if not outlook.links:
        return None
    link = _told_link(outlook)
    if link.is_coming:
        return progress_of(here, link.behind, link.coming, is_receiving=True)
    if link.unsent and not link.refused:
        return progress_of(here, link.unsent, link.going, is_receiving=False)
    return None


def _behind_part(link: Link, who: str) -> str:
    least = "at least " if link.behind >= STATED_COUNT_MAX else ""
    what = f"{least}{counted(link.behind, 'commit')}"
    if link.quiet_seconds >= QUIET_SAID_SECONDS:
        more = "more than " if link.quiet_seconds >= BELIEVED_SECONDS else ""
        return f"{what} as {who} states, which has sent none for {more}{duration_text(link.quiet_seconds)}"
    return f"{what}, to come from {who}{_pace(link.behind, link.coming)}"


def _pace(left: int, rate: float | None) -> str:
    """In brackets: how fast it goes, and how long the rest takes. Empty where nothing tells."""
    if not rate:
        return ""
    seconds = seconds_left(left, rate)
    rest = "" if seconds is None else f", {duration_text(seconds)} left"
    return f" ({rate:.0f} a second{rest})" if rate >= 1 else ""


def _alone_part(unheld: Unheld) -> str:
    """What is on this node alone, as far as known."""
    unknown = "; whether what you wrote is elsewhere is not known" if unheld.commits is None else ""
    named = [
        f"{'at least ' if count >= UNHELD_COUNTED_MAX else ''}{count} of your {what}"
        for count, what in ((unheld.commits or 0, "commits"), (unheld.files, "files"))
        if count
    ]
    if not named:
        return unknown
    is_one = (unheld.commits or 0) + unheld.files == 1
    return f"{unknown}; {' and '.join(named)} {'is' if is_one else 'are'} on this node alone, as far as known"


def _named(outlook: Outlook, name_of: Callable[[PeerId], str]) -> str:
    is_relay = {link.peer: link.is_relay for link in outlook.links}
    peers = sorted(outlook.level_since)
    names = [_called(one, name_of, is_relay=is_relay.get(one, False)) for one in peers[:_PEERS_NAMED_MAX]]
    more = f" and {len(peers) - _PEERS_NAMED_MAX} more" if len(peers) > _PEERS_NAMED_MAX else ""
    return ", ".join(names) + more


def _called(peer: PeerId, name_of: Callable[[PeerId], str], *, is_relay: bool) -> str:
    return name_of(peer) or f"{'relay' if is_relay else 'peer'} {id_text(peer)[:_ID_SHOWN_SIZE]}"
