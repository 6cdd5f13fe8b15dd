"""Types of answers: repos. Made from the table of endpoints by `make reference`."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from ravel.types.peers import PeerOwner
from ravel.types.values import SyncProgress


class RepoList(TypedDict):
    """The repos of this node."""

    repos: list[RepoView]
    gone: list[str]
    """Repos that are no longer there, where `complete` is false."""
    cursor: str
    """Of this moment: names it in `since` to get what has changed after it."""
    complete: bool
    """True: these are all repos. False: those that have changed since the cursor."""


class RepoView(TypedDict):
    """A repo."""

    repo: str
    name: str
    permission: str
    """What this user may do; `former`: was a member; `joining`: no peer has answered yet, or the user has asked to
    join; `damaged`: the membership cannot be computed.
    """
    whole: bool
    """False: this node follows single branches of it, and knows neither its members nor its name."""
    branches: int
    commits: int
    requests: int
    """How many users ask to be let in, and wait for an answer of this user."""
    offers: int
    """How many offers wait for an answer of this user."""
    revision: int
    """Another one after each change of what is stored of the repo and its branches."""
    standing: RepoStanding


class RepoFork(TypedDict):
    """A repo that continues another."""

    repo: str
    name: str
    branches: list[ForkedBranch]
    files_left: list[str]
    """Names of files that were not carried."""


class EpochList(TypedDict):
    """The epochs of a repo."""

    epochs: list[EpochView]
    """Causes first."""


class NewEpoch(TypedDict):
    """An epoch that was started."""

    epoch: str
    repo: str


class TagList(TypedDict):
    """The named commits of a repo."""

    tags: list[TagView]


class RepoStanding(TypedDict):
    """State of a repo beside other nodes and members, as far as this node knows."""

    state: str
    """`in_sync`: a connected peer holds the same. `syncing`: a peer that follows it is connected. `alone`: no peer
    is connected. `not_shared`: none that is connected follows it. `cut_off`: members have secrets that this
    node will not get. `former`: no member any more. `waiting`: for secrets that a member hands over, for
    commits that come before others here, or for own ones that may be absent (`uncertain`).
    """
    parts: list[StandingPart]
    """Parts to show, in this order. Clients ignore a part whose code they do not know."""
    in_sync_with: list[str]
    """Connected peers that hold the same."""
    since: int | None
    """Unix seconds since when the first of them does, as far as was looked."""
    behind: int
    """Commits that a connected peer states to have and this node has not; of one that sends none for ten minutes
    they do not count.
    """
    progress: SyncProgress | None
    """Of the fastest transfer from a peer, else of one to a peer. Null: there is none."""
    unheld: int | None
    """Own commits that no other node is known to hold. Null: nothing is known of it."""
    unread: int
    """Commits of formats that this Ravel does not know, nor shows."""
    damaged: int
    """Commits whose content is damaged here, and asked of peers."""
    guests: int
    """At least so many connected peers follow it and are neither relays nor members'. A member has one."""
    uncertain: str
    """Why own commits may be absent here: nothing is written until a peer was compared. Empty: none are."""
    own_forks: int
    """Places of this user's feeds that were used more than once, in all branches."""
    unfetched_files: int
    """Own files whose content no peer has fetched whole from this node, and no relay has said to keep. Of one
    branch the latest 1,000 that no peer has fetched are looked at.
    """
    held_at: int | None
    """Unix seconds when another node was last seen to hold all commits that were here. Null: none was."""
    behind_since: int | None
    """Unix seconds since when it is known here that members write with secrets that are not here. Null: they are
    here, or nothing is known of it.
    """
    waiting: int
    """Commits that wait here for earlier ones, or for a key."""
    epoch_due: bool
    """Members start new secrets before they write on: who may read has changed."""
    helpers: list[str]
    """What members are called who can start the secrets that are due, else who have what is absent here; 8 at
    most.
    """


class ForkedBranch(TypedDict):
    """A branch of a fork."""

    branch: str
    carried: int
    """Count of commits that were written again."""


class EpochView(TypedDict):
    """An epoch of a repo."""

    epoch: str
    author: str
    author_name: str
    """Name of the person: this user's, else its own, as of the time of the answer. In brackets follows the
    beginning of the id, where another person looks alike. Empty: only the id is known. A name proves nothing.
    """
    follows: list[str]
    """The epochs that it replaces."""
    readers: int
    """The number of members who got its key in its init."""
    counts: bool
    tip: bool
    """No epoch follows it."""
    clean: bool
    """True if members may write in it, since only members read it."""
    open: bool
    """This node has its secrets."""
    current: bool
    """This node writes in it."""


class TagView(TypedDict):
    """A named commit."""

    name: str
    branch: str
    commit: str


class StandingPart(TypedDict):
    """One thing that people are told of a repo: a code, with the values that belong to it."""

    code: str
    """The page and the command line have a sentence for each."""
    count: NotRequired[int]
    """Count of what the code names; of `in_sync`: of peers beside those named."""
    least: NotRequired[bool]
    """There may be more than are counted."""
    at: NotRequired[int | None]
    """Unix seconds. Null: not known."""
    peers: NotRequired[list[NamedPeer]]
    people: NotRequired[list[str]]
    """Names of members who can help, were asked, or signed something false."""
    reason: NotRequired[str]
    """A code or words that people read; of `ask_waiting`: the code to compare."""
    foreign: NotRequired[int]
    """Number of these peers with another version of Ravel."""
    rate: NotRequired[int]
    """Commits a second."""
    seconds: NotRequired[int]
    """Seconds left; of `behind_quiet`: for how long nothing has come."""


class NamedPeer(TypedDict):
    """A peer as people are told of it."""

    name: str
    """Name that this user gave the peer (`ravel name`). Empty: none."""
    owner: PeerOwner | None
    """Person whose node this is. Null: no member has said so."""
    peer: str
    relay: bool
