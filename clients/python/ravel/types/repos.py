"""Types of answers: repos."""

from typing import Annotated, Literal, NotRequired, TypedDict

from ravel.types.peers import CalledPeer
from ravel.types.values import Count, Id, PersonText, SyncProgress, means, one_of


class NamedPeer(CalledPeer):
    """A peer as people are told of it."""

    peer: Id
    relay: bool


class StandingPart(TypedDict):
    """One thing that people are told of a repo: a code, with the values that belong to it."""

    code: Annotated[
        str,
        one_of(
            "alone", "ask_accepted", "ask_closed", "ask_expired", "ask_failed", "ask_refused", "ask_sending", "ask_waiting",
            "behind", "behind_quiet", "causes_missing", "comparing", "damaged", "epoch_due", "excluded", "false_checkpoint",
            "false_voucher", "follows_parts", "former", "guests", "held", "in_sync", "join_refused", "joining",
            "keeps_parts", "keeps_recent", "let_in", "link_ended", "membership_damaged", "not_kept", "not_shared",
            "older_not_kept", "own_comments", "own_forks", "place_claimed", "reading", "reading_branches", "refused",
            "requests", "secrets_missing", "sending", "signers_gone", "stalled", "syncing", "topics_waiting", "uncertain",
            "unfetched_files", "unheld", "unheld_unknown", "unread", "vouched", "waiting",
            description="The page and the command line have a sentence for each.",
        ),
    ]  # fmt: skip
    count: NotRequired[
        Annotated[
            int, means("Count of what the code names; of `in_sync`: of peers beside those named.", ge=0)
        ]
    ]
    least: NotRequired[Annotated[bool, means("There may be more than are counted.")]]
    at: NotRequired[Annotated[int | None, means("Unix seconds. Null: not known.")]]
    peers: NotRequired[list[NamedPeer]]
    people: NotRequired[
        Annotated[
            list[str],
            means(
                "Names of members who can help, were asked, signed something false or no more, or whose word is shown; of "
                "`place_claimed`: the member, then who claim its place."
            ),
        ]
    ]
    reason: NotRequired[
        Annotated[
            str,
            means(
                "A code or words that people read; of `ask_waiting`: the code to compare; of `let_in`: the command that "
                "gives the key a place of its own. Empty: nobody can give it one."
            ),
        ]
    ]
    foreign: NotRequired[Annotated[int, means("Number of these peers with another version of Ravel.", ge=0)]]
    rate: NotRequired[Annotated[int, means("Commits a second.", ge=0)]]
    seconds: NotRequired[
        Annotated[int, means("Seconds left; of `behind_quiet`: for how long nothing has come.", ge=0)]
    ]


class RepoStanding(TypedDict):
    """State of a repo beside other nodes and members, as far as this node knows."""

    state: Annotated[
        str,
        one_of(
            "in_sync", "syncing", "alone", "not_shared", "cut_off", "former", "waiting", "joining", "damaged",
            description=(
                "`in_sync`: a connected peer holds the same. `syncing`: a peer that follows it is connected. `alone`: no "
                "peer is connected. `not_shared`: none that is connected follows it. `cut_off`: members have secrets that "
                "this node will not get. `former`: no member any more. `waiting`: for secrets that a member hands over, for "
                "commits that come before others here, or for own ones that may be absent (`uncertain`)."
            )
        )
    ]  # fmt: skip
    parts: Annotated[
        list[StandingPart],
        means("Parts to show, in this order. Clients ignore a part whose code they do not know."),
    ]
    in_sync_with: Annotated[list[Id], means("Connected peers that hold the same.")]
    since: Annotated[
        int | None, means("Unix seconds since when the first of them does, as far as was looked.")
    ]
    behind: Annotated[
        int,
        means(
            "Commits that a connected peer states to have and this node has not; of one that sends none for ten "
            "minutes they do not count.",
            ge=0,
        ),
    ]
    progress: Annotated[
        SyncProgress | None,
        means("Of the fastest transfer from a peer, else of one to a peer. Null: there is none."),
    ]
    unheld: Annotated[
        int | None, means("Own commits that no other node is known to hold. Null: nothing is known of it.")
    ]
    unread: Annotated[Count, means("Commits of formats that this Ravel does not know, nor shows.")]
    damaged: Annotated[Count, means("Commits whose content is damaged here, and asked of peers.")]
    guests: Annotated[
        int,
        means(
            "At least so many connected peers follow what is new and are neither relays nor members'. A member has one.",
            ge=0,
        ),
    ]
    uncertain: Annotated[
        str,
        means(
            "Why own commits may be absent here: nothing is written until a peer was compared. Empty: none are."
        ),
    ]
    own_forks: Annotated[
        int, means("Places of this user's feeds that were used more than once, in all branches.", ge=0)
    ]
    unfetched_files: Annotated[
        int,
        means(
            "Own files whose content no peer has fetched whole from this node, and no relay has said to keep. "
            "Of one branch the latest 1,000 that no peer has fetched are looked at.",
            ge=0,
        ),
    ]
    held_at: Annotated[
        int | None,
        means(
            "Unix seconds when another node was last seen to hold all commits that were here. Null: none was."
        ),
    ]
    behind_since: Annotated[
        int | None,
        means(
            "Unix seconds since when it is known here that members write with secrets that are not here. "
            "Null: they are here, or nothing is known of it."
        ),
    ]
    waiting: Annotated[int, means("Commits that wait here for earlier ones, or for a key.", ge=0)]
    epoch_due: Annotated[
        bool, means("Members start new secrets before they write on: who may read has changed.")
    ]
    helpers: Annotated[
        list[str],
        means(
            "What members are called who can start the secrets that are due, else who have what is absent here; "
            "8 at most."
        ),
    ]


class RepoHolder(NamedPeer):
    """A peer that follows a repo, or was seen to hold all of it."""

    connected: bool
    member: Annotated[
        bool | None, means("False: it is the computer of who is no member. Null: whose it is is not known.")
    ]
    has_all: Annotated[bool, means("It is connected, and holds the same as this node.")]
    keeps: Annotated[
        int | None,
        means(
            "Branches of which it keeps all contents that are here; 0 while it may still fetch some. Null: it keeps all, "
            "or is not connected."
        ),
    ]
    keeps_days: Annotated[
        int | None, means("Days of which it keeps posts. Null: of any age, or it is not connected.")
    ]
    lacks: Annotated[
        int | None,
        means(
            "Commits that are here and not known to be durable there. Null: it is compared, follows parts of the repo "
            "(as who was excluded), or is not connected."
        ),
    ]
    held_at: Annotated[
        int | None, means("Unix seconds when it was last seen to hold all that was here. Null: never.")
    ]


class RepoKeeping(TypedDict):
    """Contents of a repo that this node keeps. Headers of all commits are always kept."""

    repo: Id
    branches: Annotated[
        list[Id] | None,
        means("Branches whose contents are kept. Of others they come when they are opened. Null: all."),
    ]
    not_kept: Annotated[int, means("Branches whose contents are not kept.", ge=0)]
    absent: Annotated[int, means("Commits of these branches whose contents are not here.", ge=0)]
    last_days: Annotated[
        int | None,
        means("Days of which posts are kept; older ones come when they are opened. Null: of any age."),
    ]
    bound_days: Annotated[
        int | None,
        means(
            "Days of which posts are kept at most, since the store's size is bounded (`storage.size_max`)."
        ),
    ]
    files: Annotated[
        Literal["on_demand", "all"],
        means("`all`: contents of files come by themselves. `on_demand`: once they are opened."),
    ]
    older_here: Annotated[
        int,
        means(
            "Older posts and files of others whose contents are here. They go once a keeper has shown them.",
            ge=0,
        ),
    ]
    older_absent: Annotated[
        int,
        means(
            "Older posts and files whose contents left, or did not come. They come when they are opened.",
            ge=0,
        ),
    ]
    keepers: Annotated[
        int,
        means("Connected computers of members that keep posts of any age, and are asked to show them.", ge=0),
    ]


class HolderList(TypedDict):
    """Peers of a repo, and what each has of it."""

    holders: Annotated[
        list[RepoHolder], means("Connected ones first, then who held all last: 64 that are away at most.")
    ]


class LinkPeer(CalledPeer):
    """A peer that a link names."""

    peer: Id
    address: Annotated[str, means("`host:port`, or `wss://host:port/path`.")]


class LinkView(TypedDict):
    """Content of a link, without its secrets. Names are as its maker wrote them."""

    kind: Annotated[
        str,
        one_of(
            "invite",
            "ask",
            "read",
            "branch",
            description="`invite`: one joins by it. `ask`: one asks to be let in. `read`, `branch`: one reads.",
        ),
    ]
    repo: Id
    name: Annotated[str, means("The repo's; of a `branch` link the branch's.")]
    by: Annotated[str | None, means("Name of who made it. Null: it does not say.")]
    permission: Annotated[str, one_of("read", "write", description="What it gives, or asks for.")]
    expires_at: Annotated[int | None, means("Unix seconds. Null: it does not expire.")]
    expired: Annotated[bool, means("True by the clock of this node.")]
    here: Annotated[
        str | None, means("What the repo is called that is on this node already. Null: it is not.")
    ]
    peers: Annotated[list[LinkPeer], means("Where it says that the repo is found.")]


class RepoView(TypedDict):
    """A repo."""

    repo: Id
    name: str
    permission: Annotated[
        str,
        one_of(
            "owner", "admin", "manage", "write", "read", "former", "joining", "damaged",
            description=(
                "What this user may do; `former`: was a member; `joining`: no peer has answered yet, or the user has "
                "asked to join; `damaged`: the membership cannot be computed."
            )
        )
    ]  # fmt: skip
    whole: Annotated[
        bool,
        means("False: this node follows single branches of it, and knows neither its members nor its name."),
    ]
    of_devices: Annotated[
        bool,
        means("True: this user's devices find each other in it; people need not meet it among their repos."),
    ]
    branches: Count
    commits: Count
    requests: Annotated[
        int, means("How many users ask to be let in, and wait for an answer of this user.", ge=0)
    ]
    offers: Annotated[int, means("How many offers wait for an answer of this user.", ge=0)]
    revision: Annotated[
        int, means("Another one after each change of what is stored of the repo and its branches.", ge=0)
    ]
    standing: RepoStanding


class RepoList(TypedDict):
    """The repos of this node."""

    repos: list[RepoView]
    gone: Annotated[list[Id], means("Repos that are no longer there, where `complete` is false.")]
    cursor: Annotated[str, means("Of this moment: names it in `since` to get what has changed after it.")]
    complete: Annotated[
        bool, means("True: these are all repos. False: those that have changed since the cursor.")
    ]


class ForkedBranch(TypedDict):
    """A branch of a fork."""

    branch: Id
    carried: Annotated[int, means("Count of commits that were written again.", ge=0)]


class RepoFork(TypedDict):
    """A repo that continues another."""

    repo: Id
    name: str
    branches: list[ForkedBranch]
    files_left: Annotated[list[str], means("Names of files that were not carried.")]


class EpochView(TypedDict):
    """An epoch of a repo."""

    epoch: Id
    author: Id
    author_name: PersonText
    follows: Annotated[list[Id], means("The epochs that it replaces.")]
    readers: Annotated[int, means("The number of members who got its key in its init.", ge=0)]
    counts: bool
    tip: Annotated[bool, means("No epoch follows it.")]
    clean: Annotated[bool, means("True if members may write in it, since only members read it.")]
    open: Annotated[bool, means("This node has its secrets.")]
    current: Annotated[bool, means("This node writes in it.")]


class EpochList(TypedDict):
    """The epochs of a repo."""

    epochs: Annotated[list[EpochView], means("Causes first.")]


class NewEpoch(TypedDict):
    """An epoch that was started."""

    epoch: Id
    repo: Id


class FreshKey(TypedDict):
    """A fresh key of this user that was stated in a repo."""

    commit: Id
    repo: Id
    epoch: Annotated[
        Id | None,
        means("The epoch that was started, from which on it counts. Null: an admin has to start one."),
    ]


class TagView(TypedDict):
    """A named commit."""

    name: str
    branch: Id
    commit: Id


class TagList(TypedDict):
    """The named commits of a repo."""

    tags: list[TagView]
