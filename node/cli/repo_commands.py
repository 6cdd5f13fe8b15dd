"""repo, use: create, share, follow and leave repos, and choose one."""

import shlex
import time
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from node.cli.answers import Fields, Outcome, Table, marks, print_fields, prints
from node.cli.completion import complete_repos
from node.cli.links import (
    QrOption,
    absent_relays,
    demanded_reach,
    link_outcome,
    print_capability,
    print_link,
    read_link,
    with_reach,
)
from node.cli.progress import show_progress
from node.cli.shared import LocalOption, client, note_faults, note_requests, say, settings
from node.cli.wording import author, parse_duration
from node.observe.sentences import standing_sentence
from node.runtime.errors import ServiceError
from node.runtime.wording import counted
from protocol.limits.formats import INVITATION_USE_COUNT_MAX
from ravel.characters import display_safe

if TYPE_CHECKING:  # types of answers: `ravel --help` must be quick
    from ravel import Client
    from ravel.types.branches import BranchView
    from ravel.types.members import LeaveResult
    from ravel.types.peers import PeerView, TopicView
    from ravel.types.repos import EpochList, NewEpoch, RepoFork, RepoStanding, RepoView
    from ravel.types.values import Capability, Empty

repo = typer.Typer(no_args_is_help=True, help="Create, share, join and list repos.")

RepoArgument = Annotated[
    str, typer.Argument(help="Name, id, or unique prefix of an id.", autocompletion=complete_repos)
]
_NOT_YET = "\nNo peer of the link has answered yet; the daemon goes on trying. `ravel status` shows how."
_COMING = "\n`ravel repo sync {name}` waits until all is here, and shows how far it is."
_ASK_LINK = "ravel:ask:"
_ASKED = "\nThe daemon goes on by itself when an admin has answered. `ravel repo list` shows how it stands."
_BODILESS = (
    "Not here: commits whose bodies are needed to judge them and that peer has erased, and what follows them. "
    "They come from a peer that has the bodies."
)
_POLL_SECONDS = 0.2
_PEERS_NAMED_MAX = 3


class InvitedPermission(StrEnum):
    """A permission that an invitation may grant."""

    READ = "read"
    WRITE = "write"


def print_repo(view: "RepoView") -> None:
    """Print a repo. Its revision is for programs: a number that tells people nothing."""
    shown = [(name, value) for name, value in view.items() if name not in ("standing", "revision")]
    print_fields([*shown, ("state", standing_sentence(view["standing"]))])


@repo.command("create")
@prints(print_repo)
def create(api: "Client", name: str) -> "RepoView":
    """Create a repo, with a branch called main."""
    return api.create_repo(name)


@repo.command("invite")
@prints(print_link)
def invite(
    api: "Client",
    repo: RepoArgument,
    permission: Annotated[
        InvitedPermission, typer.Option(help="The permission that it grants.")
    ] = InvitedPermission.WRITE,
    expires: Annotated[str, typer.Option(help="How long it is valid: 30m, 12h, 7d.")] = "7d",
    uses: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=INVITATION_USE_COUNT_MAX,
            help="How many users may join by it (1 if not said), or ask by it (16, at most 128).",
        ),
    ] = None,
    ask: Annotated[
        bool,
        typer.Option("--ask", help="Make a link by which users ask, and that has no secret of the repo."),
    ] = False,
    renew_after_use: Annotated[
        bool,
        typer.Option(
            "--renew-after-use",
            help="Renew the repo's secrets once the bearer link is used up or revoked: it then opens nothing new.",
        ),
    ] = False,
    local: LocalOption = False,
    qr: QrOption = False,
) -> Outcome:
    """Print an invitation link: a bearer link, or with --ask a link that asks.

    A bearer link is a secret: anyone who has it reads the repo, also when it is used up, until the repo is renewed. Who
    joins by it waits for nobody.

    Who has a link that asks can ask, and no more. You see who asks with `ravel requests list`, and accept or refuse.

    A link names addresses of this node, and peers that have the repo, or of them relays alone. A note says where it does
    not reach everybody.
    """
    reach = demanded_reach(local=local)
    if ask and renew_after_use:
        raise ServiceError(
            "bad_request",
            "a link that asks has no secret that could be renewed",
            "leave --renew-after-use out",
        )
    if ask:
        made = api.make_ask_link(
            repo,
            permission=permission.value,
            expires_seconds=parse_duration(expires),
            uses=uses or 16,
            reach=reach,
        )
        absent = absent_relays(api, made["reach"])
        return link_outcome(made, made["link"], made["reach"], qr=qr, absent=absent)
    answer = api.create_invitation(
        repo,
        permission=permission.value,
        expires_seconds=parse_duration(expires),
        uses=uses or 1,
        reach=reach,
        renews=renew_after_use,
    )
    absent = absent_relays(api, answer["reach"])
    return link_outcome(answer, answer["invitation"], answer["reach"], qr=qr, absent=absent)


def _print_joined(shown: "tuple[RepoView, str]") -> None:
    view, note = shown
    print_repo(view)
    if note:
        print(note)


@repo.command("join")
@prints(_print_joined)
def join(
    api: "Client",
    link: Annotated[
        str, typer.Argument(help="ravel:invite:... or ravel:ask:..., or - to read it from standard input.")
    ],
    follow: Annotated[
        bool, typer.Option("--follow", help="Read the repo without being a member where the link makes none.")
    ] = False,
) -> Outcome:
    """Join a repo by a bearer link, or ask to be let in by a link that asks, and replicate it from the link's peers.

    A request waits until an admin answers, also across restarts. `ravel requests list` shows it with its code, and
    `ravel requests cancel` takes it back.

    With - the link is read from standard input: arguments can be seen by every user of the machine.
    """
    text = read_link(link).strip()
    answer = api.join_repo(text, follow=follow)
    note = ""
    if answer["permission"] == "joining":
        note = _ASKED if text.startswith(_ASK_LINK) else _NOT_YET
    elif answer["standing"]["state"] == "syncing":
        note = _COMING.format(name=shlex.quote(display_safe(answer["name"] or answer["repo"])))
    return Outcome(answer, shown=(answer, note))


@repo.command("capability")
@prints(print_capability)
def capability(api: "Client", repo: RepoArgument, local: LocalOption = False) -> "Capability":
    """Print the repo's read capability. It is a secret: anyone who has it reads the repo, unseen by members.

    It opens all there is, and what follows until somebody is excluded or the repo is renewed.

    To share with a person who shall be a member, use `ravel repo invite`.
    """
    return with_reach(api.share_repo(repo), local=local)


@repo.command("follow")
@prints(lambda answer: _print_joined((answer, "" if answer["commits"] else _NOT_YET)))
def follow(
    api: "Client",
    link: Annotated[
        str, typer.Argument(help="ravel:read:... or ravel:branch:..., or - to read it from standard input.")
    ],
) -> "RepoView":
    """Read and replicate a repo, or a single branch, by its read capability. You do not become a member.

    With - the link is read from standard input: arguments can be seen by every user of the machine.
    """
    return api.follow_repo(read_link(link))


@dataclass(frozen=True, slots=True)
class _SyncState:
    """A repo at one look: its branches, the peers with its topics, and how it stands; None while it is not listed."""

    branches: "list[BranchView]"
    peers: "list[tuple[PeerView, list[TopicView]]]"
    view: "RepoView | None"

    @classmethod
    def load(cls, api: "Client", repo: str) -> "_SyncState":
        branches = api.list_branches(repo)["branches"]
        ids = {item["branch"] for item in branches} | {item["repo"] for item in branches}
        peers = [
            (peer, [topic for topic in peer["topics"] if topic["repo"] in ids])
            for peer in api.list_peers()["peers"]
        ]
        return cls(
            branches, peers, next((one for one in api.list_repos()["repos"] if one["repo"] in ids), None)
        )

    @property
    def standing(self) -> "RepoStanding | None":
        return None if self.view is None else self.view["standing"]

    @property
    def held_by(self) -> "list[PeerView]":
        level = [] if self.standing is None else self.standing["in_sync_with"]
        return [peer for peer, _ in self.peers if peer["peer"] in level]

    def reason(self) -> str | None:
        """Return why to wait on, empty while commits come; None where there is nothing to wait for."""
        standing = self.standing
        if standing is None:
            return self._why_none_can_sync()
        if standing["state"] == "cut_off":
            return None  # who is cut off waits for keys that it does not get
        if not self.held_by:
            return self._why_none_can_sync()
        uncertain = standing["uncertain"]
        return f"peers are asked for commits of yours ({uncertain})" if uncertain else None

    def _why_none_can_sync(self) -> str:
        if not self.peers:
            return "no peer is connected, and this node dials none (`ravel peer add HOST:PORT PEER`)"
        connected = [topics for peer, topics in self.peers if peer["state"] == "connected"]
        if not connected:
            tried = ", ".join(
                peer["address"] + (f" ({peer['last_error']})" if peer["last_error"] else "")
                for peer, _ in self.peers[:_PEERS_NAMED_MAX]
            )
            return f"no peer is connected; this node dials {tried}"
        if not any(topic["state"] != "not joined" for topics in connected for topic in topics):
            return f"no connected peer follows this repo ({len(connected)} connected)"
        waiting = max(peer["waiting_topics"] for peer, _ in self.peers)
        return f"{counted(waiting, 'topic')} not compared yet with a peer" if waiting else ""


def _wait_in_sync(api: "Client", repo: str, timeout: float) -> _SyncState:
    """Look at a repo until a peer holds the same, and show progress. Raises ServiceError `incomplete`."""
    until = time.monotonic() + timeout
    said, is_moving = "", False
    with show_progress("synced", "commit", None) as synced:
        while (reason := (state := _SyncState.load(api, repo)).reason()) is not None:
            progress = None if state.standing is None else state.standing["progress"]
            if progress is not None:
                is_moving = True
                synced(progress["done"], progress["total"], progress["seconds_left"])
            if reason not in ("", said):
                say(f"waiting: {reason}")
            said = reason
            if time.monotonic() > until:
                raise ServiceError(
                    "incomplete",
                    f"not in sync after {timeout:.0f} s{f': {reason}' if reason else ''}",
                    "`ravel status` tells how each branch stands with each peer",
                )
            time.sleep(_POLL_SECONDS)  # the daemon is another process, and has no answer that waits for this
        if is_moving and state.view is not None:
            synced(state.view["commits"], state.view["commits"])
    return state


def _print_synced(answer: Mapping[str, object]) -> None:
    shown = [(name, answer[name]) for name in ("repo", "branches", "commits", "bodiless")]
    print_fields([*shown, ("state", standing_sentence(answer["standing"]))])  # type: ignore[arg-type]  # as it is made below
    for holder in answer["held_by"]:  # type: ignore[attr-defined]  # as well
        print(f"held by {'relay' if holder['relay'] else 'peer'} {holder['peer']}")
    if answer["bodiless"]:
        print(_BODILESS)


@repo.command("sync")
@prints(_print_synced)
def sync(
    api: "Client",
    repo: RepoArgument,
    timeout: Annotated[float, typer.Option(min=0, help="Seconds after which the command gives up.")] = 3600,
) -> Mapping[str, object]:
    """Wait until this node and a connected peer hold the same commits of a repo, and show progress.

    Of a user who wrote elsewhere before, it waits until all is here that the user wrote.
    Tells who holds it: what a peer or relay has confirmed is durable there.
    """
    state = _wait_in_sync(api, repo, timeout)
    held_by = state.held_by
    is_relay = {peer["peer"]: peer["relay"] for peer in held_by}  # one may have two connections
    return {
        "repo": repo,
        "branches": len(state.branches),
        "commits": sum(int(item["commits"]) for item in state.branches),
        "bodiless": all(
            any(topic["bodiless"] for topic in topics) for peer, topics in state.peers if peer in held_by
        ),
        "held_by": [{"peer": peer, "relay": relay} for peer, relay in sorted(is_relay.items())],
        "standing": state.standing,
    }


def _print_repos(shown: Mapping[str, object]) -> None:
    Table(
        "repos",
        "repo",
        "name",
        "permission",
        "branches",
        "commits",
        ("state", lambda item: standing_sentence(item["standing"])),
    )(shown)
    note_requests(shown["repos"])  # type: ignore[arg-type]  # as it is made below
    note_faults(shown["faults"])  # type: ignore[arg-type]  # as well


@repo.command("list")
@prints(_print_repos)
def list_repos(api: "Client") -> Outcome:
    """List the repos of this node."""
    answer = api.list_repos()
    return Outcome(answer, shown={"repos": answer["repos"], "faults": api.show_status()["faults"]})


def _print_fork(answer: "RepoFork") -> None:
    Fields(
        "repo",
        "name",
        ("branches", lambda one: len(one["branches"])),
        ("commits", lambda one: sum(branch["carried"] for branch in one["branches"])),
    )(answer)
    if answer["files_left"]:
        say(f"note: files are not copied: {', '.join(answer['files_left'])}")


@repo.command("fork")
@prints(_print_fork)
def fork(
    api: "Client", repo: RepoArgument, name: Annotated[str, typer.Argument(help="Of the new repo.")]
) -> "RepoFork":
    """Create a repo of your own that continues another. Each commit is written again and names its origin.

    Commits that are written there can be offered back: `ravel inbox offer`.
    """
    return api.fork_repo(repo, name)


@repo.command("forget")
@prints(lambda _: print("deleted from this node"))
def forget(
    api: "Client",
    repo: RepoArgument,
    accept_loss: Annotated[
        bool, typer.Option("--accept-loss", help="Also where no other node is known to hold all of it.")
    ] = False,
) -> "Empty":
    """Delete a repo from this node, with all its commits and files. What others hold stays with them.

    You stay a member: `ravel repo leave` ends that. `ravel gc` then frees the space of what no other repo needs.
    """
    return api.forget_repo(repo, accept_loss=accept_loss)


@repo.command("epochs")
@prints(
    Table(
        "epochs",
        "epoch",
        ("author", author),
        "readers",
        ("follows", lambda item: " ".join(one[:12] for one in item["follows"])),
        (
            "",
            lambda item: marks("current", ("does not count", "void"), ("not open here", "closed"))(
                {"current": item["current"], "void": not item["counts"], "closed": not item["open"]}
            ),
        ),
    )
)
def list_epochs(api: "Client", repo: RepoArgument) -> "EpochList":
    """List the epochs of a repo. Each has its own secrets; every exclusion starts a new one."""
    return api.list_epochs(repo)


@repo.command("renew")
@prints()
def renew(api: "Client", repo: RepoArgument) -> "NewEpoch":
    """Create new secrets for a repo's members. Leaked links open its past and nothing new.

    Anyone who follows by a read capability and is no member needs a new one.
    """
    return api.start_epoch(repo)


@repo.command("leave")
@prints()
def leave(
    api: "Client",
    repo: RepoArgument,
    force: Annotated[bool, typer.Option("--force", help="Leave even as the last owner.")] = False,
) -> "LeaveResult":
    """Leave a repo. What is here stays here, and goes on being replicated."""
    return api.leave_repo(repo, force=force)


def _print_used(answer: Mapping[str, object]) -> None:
    if answer["repo"]:
        print(display_safe(f"names of branches mean those of {answer['name']} ({answer['repo']}) first"))
    else:
        print("no repo is chosen: names of branches must be unique, or have the form REPO:NAME")


@prints(_print_used)
def use(
    context: typer.Context,
    repo: RepoArgument = "",
    none: Annotated[bool, typer.Option("--none", help="Choose no repo.")] = False,
) -> Mapping[str, object]:
    """Choose the repo whose branches are meant by their names alone, or show it. Without it, names must be unique.

    After `ravel use notes` the branch `main` is notes:main, also where other repos have a branch of that name.
    """
    from node.home.default_repo import load_default_repo, store_default_repo
    from node.runtime.resolve import resolve
    from protocol.formats.text import parse_id

    home = settings(context).home
    if repo and none:
        raise ServiceError("bad_request", "a repo and --none contradict each other", "give one of them")
    repos = client(context).list_repos()["repos"]
    names = {one["repo"]: one["name"] for one in repos}
    if repo or none:
        found = [(parse_id(one["repo"]), one["name"], one["repo"]) for one in repos]
        chosen = resolve("repo", repo, found) if repo else ""
        store_default_repo(home, chosen)
    else:
        chosen = load_default_repo(home)
    if chosen not in names:  # it was deleted since
        chosen = ""
    return {"repo": chosen or None, "name": names.get(chosen)}
