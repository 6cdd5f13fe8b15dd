"""Sentences for people on what the node answers in states, codes and counts. The page has its own table of them."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

from node.runtime.wording import counted, date_text, duration_text, size_text
from protocol.limits.peers import CLOCK_DRIFT_MAX_SECONDS

if TYPE_CHECKING:  # types of answers: commands must start at once
    from ravel.types.node import ClockComparison, KeyUse, StoreBound
    from ravel.types.peers import PeerView
    from ravel.types.repos import NamedPeer, RepoStanding, StandingPart


def standing_sentence(standing: "RepoStanding", when: Callable[[float], str] = date_text) -> str:
    """Say how a repo stands with others, in one sentence. `when` words Unix seconds, in UTC by default."""
    with _worded_times(when):
        return "; ".join(_PARTS[one["code"]](one) for one in standing["parts"] if one["code"] in _PARTS)


def called(peer: "NamedPeer | PeerView") -> str:
    """Name a peer: as this user calls it, else by whose it is ("Ben", "Ben's laptop"); empty where neither is known."""
    owner = peer["owner"]
    if peer["name"] or owner is None:
        return peer["name"]
    if owner["earlier"] and (owner["mine"] or owner["name"]):
        return "your earlier computer" if owner["mine"] else f"{owner['name']}'s earlier computer"
    if owner["mine"]:
        return f"your {owner['device']}" if owner["device"] else "your other computer"
    return f"{owner['name']}'s {owner['device']}" if owner["name"] and owner["device"] else owner["name"]


def part_sentence(part: "StandingPart") -> str:
    """Say one part of a standing."""
    return _PARTS[part["code"]](part)


@contextmanager
def _worded_times(when: Callable[[float], str]) -> Iterator[None]:
    token = _when.set(when)
    try:
        yield
    finally:
        _when.reset(token)


def _since(part: "StandingPart") -> str:
    at = part.get("at")
    return "" if at is None else f" since {_when.get()(at)}"


def _count(part: "StandingPart", one: str, many: str = "") -> str:
    return f"{'at least ' if part.get('least') else ''}{counted(part['count'], one, many)}"


def _verb(part: "StandingPart", one: str, many: str) -> str:
    return one if part["count"] == 1 else many


def _peers(part: "StandingPart") -> str:
    names = [
        called(one) or f"{'relay' if one['relay'] else 'peer'} {one['peer'][:_ID_SHOWN_LENGTH]}"
        for one in part.get("peers", ())
    ]
    more = part["count"] if part["code"] == "in_sync" and names else 0
    return (", ".join(names) or "a peer") + (f" and {more} more" if more else "")


def _helpers(part: "StandingPart", one: str, many: str) -> str:
    """Return who helps, behind a comma: ", which ann has", ", which ann or ben have". Empty where nobody is known."""
    names = part["people"]
    return f", which {_named(names, 'or')} {one if len(names) == 1 else many}" if names else ""


def _named(names: list[str], word: str) -> str:
    """Return some names, joined by a word, the first of many."""
    named = names[:_PEOPLE_NAMED_MAX]
    if len(names) > _PEOPLE_NAMED_MAX:
        named = [*named[:-1], f"{len(names) - _PEOPLE_NAMED_MAX + 1} others"]
    return f" {word} ".join(named)


def _pace(part: "StandingPart") -> str:
    if "rate" not in part:
        return ""
    left = f", {duration_text(part['seconds'])} left" if "seconds" in part else ""
    return f" ({part['rate']} a second{left})"


def _quiet(part: "StandingPart") -> str:
    more = "more than " if part["seconds"] >= _QUIET_MAX_SECONDS else ""
    return (
        f"behind by {_count(part, 'commit')} as {_peers(part)} states, "
        f"which has sent none for {more}{duration_text(part['seconds'])}"
    )


def _stalled(part: "StandingPart") -> str:
    is_silent = part["reason"] != "takes_nothing"
    if "count" in part:
        what = f"{_count(part, 'commit')} {_verb(part, 'is', 'are')} to go to"
    else:
        what = "comparing with" if is_silent else "commits are to go to"
    behaviour = "of which nothing has been heard" if is_silent else "which has confirmed none"
    return f"{what} {_peers(part)}, {behaviour}{_since(part)}"


def _not_shared(part: "StandingPart") -> str:
    if "count" not in part:
        return "no connected peer follows it"
    foreign = f" ({part['foreign']} of another version of Ravel)" if part.get("foreign") else ""
    return f"{_count(part, 'peer')} {_verb(part, 'is', 'are')} connected{foreign}, and none follows this repo"


def _let_in(part: "StandingPart") -> str:
    """Say what gives a key that friends let in a place of its own."""
    said = "friends let this key in as your device"
    if not part["reason"]:
        return f"{said}, and nobody who is left can give it a place of its own; `ravel repo fork` goes on without them"
    if not part["people"]:
        return f"{said}; `{part['reason']}` gives it a place of its own"
    return f"{said}; for a place of its own, have {_named(part['people'], 'or')} run `{part['reason']}`"


_when: Final[ContextVar[Callable[[float], str]]] = ContextVar("when", default=date_text)
"""Words of Unix seconds in the sentence that is being made."""
_ID_SHOWN_LENGTH: Final = 12
_PEOPLE_NAMED_MAX: Final = 3
_QUIET_MAX_SECONDS: Final = 600
"""Seconds from which on the node counts no further (`node.observe.standing_view.BELIEVED_SECONDS`)."""
_HERE_ALONE: Final = "on this computer only, as far as known"
_PARTS: Final[Mapping[str, Callable[["StandingPart"], str]]] = {
    "membership_damaged": lambda _: (
        "who is a member cannot be told: commits of the membership are damaged here"
    ),
    "ask_sending": lambda _: "asking to join: the request goes out when a node of the link is met",
    "ask_waiting": lambda one: (
        f"asked {one['people'][0]} to be let in, and waiting for an answer; code: {one['reason']}"
    ),
    "ask_accepted": lambda _: "let in: the repo has not come yet",
    "ask_refused": lambda one: f"{one['people'][0]} refused the request; `ravel requests cancel` removes it",
    "ask_closed": lambda _: (
        "the link was ended and nobody answered; ask for a new one, `ravel requests cancel` removes this"
    ),
    "ask_expired": lambda _: (
        "the link has expired and nobody answered; ask for a new one, `ravel requests cancel` removes this"
    ),
    "ask_failed": lambda one: (
        f"the link lets you ask nothing: {one['reason']}; `ravel requests cancel` removes it"
    ),
    "joining": lambda _: "joining: the membership has not come yet",
    "secrets_missing": lambda one: (
        f"waiting for secrets{_since(one)}: members have gone on to new ones, and none has handed them to this node yet"
        f"{_helpers(one, 'has', 'have')}"
    ),
    "excluded": lambda one: (
        f"cut off{_since(one)}: you are no member any more, and what members write since is not for this node"
    ),
    "former": lambda one: (
        f"your place has passed to {one['people'][0]}: what is here stays, and this computer writes no more"
        if one.get("people")
        else "you are no member any more, and read what was shared with you"
    ),
    "link_ended": lambda one: (
        f"cut off{_since(one)}: the repo got new secrets by an exclusion or a renewal, and your link opens nothing newer; "
        "ask a member for a new one"
    ),
    "join_refused": lambda one: f"your invitation was refused ({one['reason']})",
    "reading": lambda _: "reading the repo without being a member",
    "reading_branches": lambda _: "reading single branches without being a member",
    "causes_missing": lambda one: (
        f"{_count(one, 'commit')} {_verb(one, 'waits', 'wait')} for earlier ones that are not here"
        f"{_helpers(one, 'has', 'have')}"
    ),
    "waiting": lambda _: "waiting for what is not here",
    "epoch_due": lambda _: (  # nothing to do: any writer's node starts them
        "the members have changed: new secrets come with the next post, or by themselves within minutes"
    ),
    "uncertain": lambda one: f"you cannot write yet: peers are asked for commits of yours ({one['reason']})",
    "vouched": lambda one: f"newest posts as {one['people'][0]} had them ({_when.get()(one['at'] or 0)})",
    "false_voucher": lambda one: f"the link of {one['people'][0]} names posts that were rejected here",
    "false_checkpoint": lambda one: (
        f"{_named(one['people'], 'and')} signed other members than follow from what is here"
    ),
    "place_claimed": lambda one: (
        f"{_named(one['people'][1:], 'and')} each claim the place of {one['people'][0]}, whose key was copied: ask "
        f"{one['people'][0]} in person which id is right, and have an admin exclude the others"
    ),
    "signers_gone": lambda one: (
        f"{_named(one['people'], 'and')} {'signs' if len(one['people']) == 1 else 'sign'} no more for the quorum: "
        "`ravel quorum set` names the signers anew"
    ),
    "let_in": _let_in,
    "own_forks": lambda one: f"{_count(one, 'place')} of your feed {_verb(one, 'was', 'were')} used twice",
    "unread": lambda one: (
        f"{_count(one, 'commit')} {_verb(one, 'is', 'are')} of a newer format, which this Ravel does not show"
    ),
    "damaged": lambda one: (
        f"{_count(one, 'commit')} {_verb(one, 'is', 'are')} damaged here, and asked of peers"
    ),
    "in_sync": lambda one: f"in sync with {_peers(one)}{_since(one)}",
    "own_comments": lambda _: (
        "what you comment; others get each comment with what it is about, once it is accepted"
    ),
    "alone": lambda _: "nobody else is connected",
    "held": lambda one: f"{_peers(one)} had all commits ({_when.get()(one['at'] or 0)})",
    "not_shared": _not_shared,
    "syncing": lambda _: "not in sync yet",
    "refused": lambda one: f"{_peers(one)} takes no more of it: {refusal_sentence(one['reason'])}",
    "comparing": lambda one: f"comparing with {_peers(one)}",
    "behind": lambda one: f"behind by {_count(one, 'commit')}, to come from {_peers(one)}{_pace(one)}",
    "behind_quiet": _quiet,
    "keeps_parts": lambda one: (
        f"{_peers(one)} has all commits, and "
        + (
            f"keeps contents of {_count(one, 'branch', 'branches')} alone"
            if one["count"]
            else "not all contents"
        )
    ),
    "keeps_recent": lambda one: f"{_peers(one)} has all commits, and keeps posts of {_count(one, 'day')}",
    "older_not_kept": lambda one: (
        f"posts and files older than {_count(one, 'day')} need not be here, and come when you open them"
    ),
    "not_kept": lambda one: (
        f"contents of {_count(one, 'branch', 'branches')} are not kept here, and come when you open them"
    ),
    "follows_parts": lambda one: (
        f"nobody who follows all of it is connected: {_peers(one)} follows parts, or it as before its members changed"
    ),
    "topics_waiting": lambda one: (
        f"{_count(one, 'topic')} {_verb(one, 'waits', 'wait')} to be compared with {_peers(one)}"
    ),
    "sending": lambda one: f"sending {_count(one, 'commit')} to {_peers(one)}{_pace(one)}",
    "stalled": _stalled,
    "unheld_unknown": lambda _: "no other computer is known to have what you wrote",
    "unheld": lambda one: f"{_of_yours(one, 'commits')} {_HERE_ALONE}",
    "unfetched_files": lambda one: f"{_of_yours(one, 'files')} {_HERE_ALONE}",
    "guests": lambda one: (
        f"at least {one['count']} of the peers that follow it {_verb(one, 'is', 'are')} no member's"
    ),
    "requests": lambda one: f"{_count(one, 'user')} {_verb(one, 'asks', 'ask')} to be let in",
}
"""Code of a part of a standing -> its words."""


def _of_yours(part: "StandingPart", what: str) -> str:
    least = "at least " if part.get("least") else ""
    return f"{least}{part['count']} of your {what} {_verb(part, 'is', 'are')}"


_OPERATOR: Final = "ask who runs it for more room, or remove files and run `ravel gc --removed`"
_REFUSALS: Final[Mapping[str, tuple[str, str]]] = {
    "account_full": (
        "your account there has used its quota",
        "ask who runs it for more (`ravel relay change NAME --quota` there), or use a further relay",
    ),
    "peer_full": ("this node has brought as much as one may", _OPERATOR),
    "subnet_full": (
        "nodes of your network have brought as much as they may",
        "ask who runs it for an account",
    ),
    "topic_full": ("the repo has as much there as one may", _OPERATOR),
    "relay_full": ("it is full", "use a further relay: `ravel peer add --relay HOST:PORT PEER-ID`"),
    "topic_forgotten": ("it made room, and takes the repo again later", ""),
    "not_known": ("it takes what accounts and peers that it knows bring", "ask who runs it for an account"),
    "not_kept": (
        "it follows the repo itself, and fetches a file when somebody opens it there",
        "open the file there (`ravel file get`), or use a relay that does not follow the repo",
    ),
    "file_too_large": (
        "a file is larger than all that it keeps for one",
        "ask who runs it for more room, or use a further relay",
    ),
    "bad_topic_signature": ("you may not write there", ""),
    "bad_file": ("the file has changed or is damaged here", "`ravel fsck` checks the store"),
    "incomplete": ("the file has not come whole", ""),
}
"""Code of a relay's refusal -> why, and what the user of this node can do."""


def refusal_sentence(code: str) -> str:
    """Say why a relay takes no more of something. A later version's code stays as it is."""
    return _REFUSALS[code][0] if code in _REFUSALS else code


def refusal_advice(code: str) -> str:
    """Return the next step after a relay has refused; empty if there is none."""
    return _REFUSALS[code][1] if code in _REFUSALS else ""


def displaced_sentence(use: "KeyUse") -> str:
    """Say that another node uses this node's key; empty where nothing shows that."""
    at = use["displaced_at"]
    if at is None:
        return ""
    return f"another node uses this node's key: peers took it for this one until {date_text(at)}"


def own_commits_sentence(use: "KeyUse") -> str:
    """Say that commits of this user came from a peer that this node did not have; empty where none did."""
    at = use["own_commits_came_at"]
    if at is None:
        return ""
    return (
        f"commits that you wrote and this node did not have came from a peer at {date_text(at)}: "
        "it was set back, or another node uses your key"
    )


def bound_sentence(bound: "StoreBound | None") -> str:
    """Say why the store takes more than it may; empty where it does not, or room is being made."""
    if bound is None or bound["state"] not in _OVER_BOUND:
        return ""
    sizes = f"{size_text(bound['size'])} of the {size_text(bound['size_max'])} that it may"
    return f"the store takes {sizes}: {_OVER_BOUND[bound['state']]}"


_OVER_BOUND: Final = {
    "alone": "old contents leave once a member's computer that keeps posts of any age is connected",
    "stuck": "what is left is yours, or recent, or documents, or no other computer shows it",
}
"""Why nothing leaves a store that is over its bound."""


def clock_sentence(clock: "ClockComparison") -> str:
    """Return how far the clock differs from those of members who write now; empty if it does not."""
    ahead = clock["ahead_seconds"]
    if ahead is None or abs(ahead) <= CLOCK_DRIFT_MAX_SECONDS:
        return ""
    who = (
        "the member who writes now"
        if clock["authors"] == 1
        else f"the {clock['authors']} members who write now"
    )
    return f"{duration_text(abs(ahead))} {'ahead of' if ahead > 0 else 'behind'} that of {who}"


def version_word(peer: "PeerView") -> str:
    """Name the version of a peer beside this node's: "newer", "older", "another"; empty where no difference is known."""
    if peer["newer_features"] and not peer["older_features"]:
        return "newer"
    if peer["older_features"] and not peer["newer_features"]:
        return "older"
    return "another" if peer["newer_features"] or peer["unknown_messages"] else ""


def version_sentence(peer: "PeerView") -> str:
    """Say how a peer's version differs from this node's; empty where no difference is known."""
    word = version_word(peer)
    if not word:
        return ""
    parts = []
    if peer["newer_features"]:
        parts.append(f"it has {', '.join(peer['newer_features'])}, which this node lacks")
    if peer["older_features"]:
        parts.append(f"it lacks {', '.join(peer['older_features'])}, which this node has")
    if peer["unknown_messages"]:
        count = counted(peer["unknown_messages"], "message")
        parts.append(f"it sent {count} of kinds that this node does not know")
    article = "a newer" if word == "newer" else "an older" if word == "older" else "another"
    return f"{article} Ravel: {', and '.join(parts)}"
