"""Standing of a repo as an answer: its state, and the parts of the sentence that people read.

`node.observe.standing` looks at connections and the store. Nothing here does.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from node.ingest.people import SHORT_ID_LENGTH
from node.network.peer_views import Stall
from node.sync.sync_progress import progress_of, seconds_left
from protocol.formats.text import id_text
from protocol.ids import PeerId, TopicKey
from protocol.limits.peers import STATED_COUNT_MAX
from ravel.types.peers import CalledPeer
from ravel.types.repos import NamedPeer, RepoHolder, RepoStanding, StandingPart
from ravel.types.requests import AskView
from ravel.types.values import SyncProgress
from storage.peers.peers import Holder

UNHELD_COUNTED_MAX: Final = 1000
"""Commits of one branch that are counted as on this node alone, a millisecond: people need no larger number. Files too."""
BELIEVED_SECONDS: Final = 600
"""For how long a peer is believed that states to have commits and sends none: other topics may be compared before, or come
on a slow line."""
QUIET_SAID_SECONDS: Final = 30
"""Seconds without a commit from a peer that has some, after which the standing says so."""
_PEERS_NAMED_MAX: Final = 3
_SAID_WITHOUT_PEERS: Final = ("in_sync", "syncing", "alone", "not_shared", "waiting", "joining")
"""States of which the parts may name peers."""
_ENDED: Final = ("cut_off", "former", "damaged")
"""States in which it does not matter who holds the same."""
_INCOMING: Final = ("behind", "behind_quiet", "comparing", "topics_waiting", "follows_parts")
"""Parts on commits to come: to a user whose place passed on none do."""


@dataclass(frozen=True, slots=True)
class Link:
    """Standing of a repo with one connected peer that follows it."""

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

    waiting: int = 0
    """Topics of the repo that wait for their turn to be compared."""
    is_joined: bool = True
    """The peer follows a topic of the repo; else it may, for some wait."""
    stall: Stall | None = None
    """The longest of its topics."""
    follows_all: bool = True
    """The peer follows all topics that are written on now: who was excluded follows those of earlier epochs."""
    reads_on: bool = True
    """The peer follows a topic of the epoch in use, or of a branch in it, and so reads what is written from now on."""
    keeps: frozenset[int] | None = None
    """Branches whose bodies the peer keeps; of others it has headers alone. None: of all."""
    days: int = 0
    """Days of which the peer keeps posts; 0: of any age."""

    @property
    def has_all(self) -> bool:
        """True if the peer has all that is here, with the bodies."""
        return self.is_level and self.keeps is None and not self.days

    @property
    def is_coming(self) -> bool:
        """True if the peer has more, as far as it can be believed: one that sends none for long may have none."""
        return self.behind > 0 and self.quiet_seconds < BELIEVED_SECONDS

    @property
    def changes_alone(self) -> bool:
        """True if a look may find another rate or wait, though nothing has come or gone."""
        return self.is_coming or bool(self.going) or (self.unsent != 0 and not self.refused)


@dataclass(frozen=True, slots=True)
class Outlook:
    """Knowledge of the network about one repo at a moment."""

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
    parts: Mapping[int, int] = field(default_factory=dict)
    """Number of the latest commit that a peer had of each branch, of peers that keep contents of some branches alone."""
    recent: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    """Number of the latest commit that a peer had of each branch, of peers that keep posts of some days, and the time
    (unix ms) from which on they have posts."""
    foreign: int = 0
    """Connected peers that send messages which this version does not know."""


@dataclass(frozen=True, slots=True)
class PeerStanding:
    """Standing of one peer in a repo: connected (`link`), or as last seen to hold all (`held_at`, unix milliseconds)."""

    peer: PeerId
    is_relay: bool
    link: Link | None
    held_at: int | None


NO_OUTLOOK: Final = Outlook((), 0, {}, None)
"""Outlook of a repo that came this moment."""


@dataclass(frozen=True, slots=True)
class Unheld:
    """Counts of this user's commits and files that no other node is known to have; None if unknown."""

    commits: int | None = 0
    files: int = 0
    """Files whose content no peer has fetched whole from this node, and no relay has said to keep."""


@dataclass(frozen=True, slots=True)
class RepoFacts:
    """Knowledge of the store about a repo."""

    is_member: bool
    was_member: bool
    is_joining: bool
    is_damaged: bool
    is_behind: bool  # members have gone on to an epoch whose secrets are not here
    has_members: bool
    refused: str = ""  # why a join by a link was refused
    behind_since: int | None = None  # unix seconds since when that is known here, where it is
    requests: int = 0  # users who ask to be let in, and wait for an answer of this user
    ask: AskView | None = None  # a request to join that is not over
    waiting: int = 0  # commits that wait for earlier ones, or for a key
    holders: tuple[str, ...] = ()  # what the members are called who have what is absent
    is_due: bool = False  # whether an epoch is due
    starters: tuple[str, ...] = ()  # what the members are called who can start it
    uncertain: str = ""  # why own commits may be absent, so that nothing is written yet
    own_forks: int = 0  # places of own feeds that were used more than once
    unread: int = 0  # commits of formats that this Ravel does not know
    damaged: int = 0  # commits whose content is damaged here
    vouched: StandingPart | None = None
    """Part that names the maker of the link, while the past of the newest posts is on its way."""
    false_voucher: str = ""
    """Name of the link's maker, if the link names posts that were rejected here."""
    false_signers: tuple[str, ...] = ()  # what the admins are called who signed other members than are here
    not_kept: int = 0  # branches whose bodies are not kept here
    kept_days: int = 0  # days of which posts are kept here; 0: of any age
    of_comments: bool = (
        False  # whether it has what this user comments, each in a branch that others follow by itself
    )
    moved_to: str = ""  # what the device is called to which this user's place passed
    claims: tuple[
        tuple[str, ...], ...
    ] = ()  # names of who passed a place on, each with those of who claim it
    signers_gone: tuple[str, ...] = ()  # what signers of quorums are called who are members no more
    next_step: tuple[str, tuple[str, ...]] | None = None
    """For a user whom friends let in: command that gives it a place of its own, and names of who can run it."""
    members: int | None = None  # how many other members there are; None where that is not known


def describe_standing(
    facts: RepoFacts, outlook: Outlook, unheld: Unheld, called: Callable[[PeerId], CalledPeer], here: int = 0
) -> RepoStanding:
    """Return the standing as an answer: its state, and the parts of the sentence that people read.

    `called` says what a peer is called. `here` counts the repo's commits on this node.
    """
    state, parts = _membership_parts(facts)
    if facts.uncertain and not state:
        state = "waiting"
    guests = 0 if facts.of_comments else _count_guests(facts, outlook)
    if facts.of_comments:  # each is in an offer, too: the repo that has this tells who holds it
        unheld = replace(unheld, commits=0)
    link_state, link_parts = _network_parts(outlook, unheld, called)
    if facts.of_comments and link_state in ("alone", "not_shared"):
        link_parts = [{"code": "own_comments"}, *_count_parts(unfetched_files=unheld.files)]
    if state not in _ENDED:
        if facts.uncertain:
            parts.append({"code": "uncertain", "reason": facts.uncertain})
        if facts.vouched is not None:
            parts.append(facts.vouched)
        if facts.false_voucher:
            parts.append({"code": "false_voucher", "people": [facts.false_voucher]})
        if facts.false_signers:
            parts.append({"code": "false_checkpoint", "people": list(facts.false_signers)})
        parts += _unsettled_parts(facts)
        parts += _count_parts(own_forks=facts.own_forks, unread=facts.unread, damaged=facts.damaged)
        if (
            facts.ask is None or link_state != "in_sync"
        ):  # else a peer has the request, and of the repo nothing is here
            parts += link_parts
        parts += _count_parts(
            guests=guests,
            requests=facts.requests,
            not_kept=facts.not_kept,
            older_not_kept=facts.kept_days,
        )
    elif facts.moved_to:  # until another has the move, nobody knows of it
        parts += [one for one in link_parts if one["code"] not in _INCOMING]
        parts += _unsettled_parts(facts)
    return {
        "state": state or link_state,
        "parts": parts,
        "in_sync_with": [id_text(peer) for peer in sorted(outlook.level_since)],
        "since": min(outlook.level_since.values(), default=None),
        "behind": max((link.behind for link in outlook.links if link.is_coming), default=0),
        "progress": None if outlook.level_since or facts.moved_to else _progress(outlook, here),
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


def view_holder(one: PeerStanding, called: CalledPeer, members: Collection[str] | None = None) -> RepoHolder:
    """Return a peer's standing as an answer. `members` are users' ids; None: they are not known."""
    owner = called["owner"]
    return {
        **called,
        "peer": id_text(one.peer),
        "relay": one.is_relay,
        "connected": one.link is not None,
        "member": None if members is None or owner is None else owner["user"] in members,
        "has_all": one.link is not None and one.link.has_all,
        "keeps": None if one.link is None or one.link.keeps is None else len(one.link.keeps),
        "keeps_days": None if one.link is None else one.link.days or None,
        "lacks": one.link.unsent if one.link is not None and one.link.follows_all else None,
        "held_at": None if one.held_at is None else one.held_at // 1000,
    }


def _count_parts(**counts: int) -> list[StandingPart]:
    return [{"code": code, "count": count} for code, count in counts.items() if count]


def _unsettled_parts(facts: RepoFacts) -> list[StandingPart]:
    """Return what members have to settle where a key moved, was copied or was lost."""
    parts: list[StandingPart] = [{"code": "place_claimed", "people": list(names)} for names in facts.claims]
    if facts.signers_gone:
        parts.append({"code": "signers_gone", "people": list(facts.signers_gone)})
    if facts.next_step is not None:
        command, admins = facts.next_step
        parts.append({"code": "let_in", "people": list(admins), "reason": command})
    return parts


def without_peers(standing: RepoStanding) -> RepoStanding:
    """Return a standing for a caller that may read repos, and not see the node's peers."""
    state, parts = standing["state"], standing["parts"]
    if state in _SAID_WITHOUT_PEERS:
        parts = [{"code": state}]
    elif state == "former":
        parts = parts[:1]  # where a place passed on, the others say who has the move
    return {**standing, "parts": parts, "in_sync_with": []}


def _membership_parts(facts: RepoFacts) -> tuple[str, list[StandingPart]]:
    if facts.is_damaged:
        return "damaged", [{"code": "membership_damaged"}]
    if facts.ask is not None:
        admin = facts.ask["admin_name"] or facts.ask["admin"][:SHORT_ID_LENGTH]
        reason = facts.ask["reason"] or facts.ask["code"]
        return "joining", [{"code": f"ask_{facts.ask['status']}", "people": [admin], "reason": reason}]
    if facts.is_joining:
        return "joining", [{"code": "joining"}]
    since: StandingPart = {"code": "", "at": facts.behind_since}
    if facts.is_member:
        if facts.is_behind:
            return "waiting", [{**since, "code": "secrets_missing", "people": list(facts.holders)}]
        return _absent_parts(facts)
    if facts.moved_to:
        return "former", [{"code": "former", "people": [facts.moved_to]}]
    if facts.was_member:
        return (
            ("cut_off", [{**since, "code": "excluded"}])
            if facts.is_behind
            else ("former", [{"code": "former"}])
        )
    if facts.is_behind:
        return "cut_off", [{**since, "code": "link_ended"}]
    state, absent = _absent_parts(facts)
    refused: list[StandingPart] = [{"code": "join_refused", "reason": facts.refused}] if facts.refused else []
    return state, [*refused, {"code": "reading" if facts.has_members else "reading_branches"}, *absent]


def _absent_parts(facts: RepoFacts) -> tuple[str, list[StandingPart]]:
    """Return what is absent, and who can help."""
    parts: list[StandingPart] = []
    if facts.waiting:
        parts.append({"code": "causes_missing", "count": facts.waiting, "people": list(facts.holders)})
    if facts.is_due:
        parts.append({"code": "epoch_due", "people": list(facts.starters)})
    return ("waiting" if facts.waiting else ""), parts


def _count_guests(facts: RepoFacts, outlook: Outlook) -> int:
    """Count at least the peers that read on and are no member's: relays are told apart, members have one node each.

    Who was excluded follows topics of earlier epochs alone, and is not counted.
    """
    if facts.members is None:
        return 0
    followers = {
        link.peer for link in outlook.links if link.is_joined and link.reads_on and not link.is_relay
    }
    return max(0, len(followers) - facts.members)


def _network_parts(
    outlook: Outlook, unheld: Unheld, called: Callable[[PeerId], CalledPeer]
) -> tuple[str, list[StandingPart]]:
    state, parts = _links_parts(outlook, unheld, called)
    if unheld.commits is None:
        parts.append({"code": "unheld_unknown"})
    for code, count in (("unheld", unheld.commits or 0), ("unfetched_files", unheld.files)):
        if count:
            parts.append({"code": code, "count": count, "least": count >= UNHELD_COUNTED_MAX})
    return state, parts


def _links_parts(
    outlook: Outlook, unheld: Unheld, called: Callable[[PeerId], CalledPeer]
) -> tuple[str, list[StandingPart]]:
    def named(peer: PeerId, *, is_relay: bool) -> NamedPeer:
        return {**called(peer), "peer": id_text(peer), "relay": is_relay}

    if outlook.level_since:
        is_relay = {link.peer: link.is_relay for link in outlook.links}
        level = sorted(outlook.level_since)
        shown = [named(peer, is_relay=is_relay.get(peer, False)) for peer in level[:_PEERS_NAMED_MAX]]
        at, more = min(outlook.level_since.values()), len(level) - len(shown)
        return "in_sync", [{"code": "in_sync", "peers": shown, "count": more, "at": at}]
    if not outlook.connected:
        parts: list[StandingPart] = [{"code": "alone"}]
        if outlook.last is not None and not unheld.commits:
            holder = named(outlook.last.peer, is_relay=outlook.last_is_relay)
            parts.append({"code": "held", "peers": [holder], "at": outlook.last.held_at // 1000})
        return "alone", parts
    if not outlook.links:
        return "not_shared", [{"code": "not_shared", "count": outlook.connected, "foreign": outlook.foreign}]
    link = _told_link(outlook)
    part: StandingPart = {"code": "", "peers": [named(link.peer, is_relay=link.is_relay)]}
    if link.refused:
        return "syncing", [{**part, "code": "refused", "reason": link.refused}]
    if link.stall is not None and not link.is_coming:
        count: StandingPart = {"code": "", "count": link.unsent} if link.unsent else {"code": ""}
        stalled: StandingPart = {**count, "at": link.stall.since, "reason": link.stall.because}
        return "syncing", [{**part, **stalled, "code": "stalled"}]
    if link.unsent is None:
        return "syncing", [{**part, "code": "comparing"}]
    if link.behind:
        part = {**part, "count": link.behind, "least": link.behind >= STATED_COUNT_MAX}
        if link.quiet_seconds >= QUIET_SAID_SECONDS:
            return "syncing", [{**part, "code": "behind_quiet", "seconds": link.quiet_seconds}]
        return "syncing", [{**part, **_pace(link.behind, link.coming), "code": "behind"}]
    if not link.unsent and link.waiting:
        return "syncing", [{**part, "code": "topics_waiting", "count": link.waiting}]
    if not link.unsent and link.is_level and link.keeps is not None:
        return "syncing", [{**part, "code": "keeps_parts", "count": len(link.keeps)}]
    if not link.unsent and link.is_level and link.days:
        return "syncing", [{**part, "code": "keeps_recent", "count": link.days}]
    if not link.unsent:
        return "not_shared", [{**part, "code": "follows_parts"}]
    return "syncing", [{**part, **_pace(link.unsent, link.going), "code": "sending", "count": link.unsent}]


def _told_link(outlook: Outlook) -> Link:
    """Return the link to tell people of: receiving goes before sending, the fastest before others."""
    coming = [link for link in outlook.links if link.is_coming and not link.refused]
    if coming:
        return max(coming, key=lambda one: (one.coming or 0.0, -one.behind))
    return min(
        outlook.links,
        key=lambda one: (bool(one.refused), not one.is_joined, one.behind, one.unsent or 0),
    )


def _progress(outlook: Outlook, here: int) -> SyncProgress | None:
    if not outlook.links:
        return None
    link = _told_link(outlook)
    if link.is_coming:
        return progress_of(here, link.behind, link.coming, is_receiving=True)
    if link.unsent and not link.refused and link.stall is None:
        return progress_of(here, link.unsent, link.going, is_receiving=False)
    return None


def _pace(left: int, rate: float | None) -> StandingPart:
    """Return how fast a transfer goes, and how long the rest takes; nothing where that is not known."""
    if rate is None or rate < 1:
        return {"code": ""}
    seconds = seconds_left(left, rate)
    found: StandingPart = {"code": "", "rate": round(rate)}
    return found if seconds is None else {**found, "seconds": seconds}
