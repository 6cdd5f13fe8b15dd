"""repo: create, share, follow and leave repos."""

import re
import shlex
import sys
import time
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from node.cli.completion import complete_repos
from node.cli.inputs import read_typed
from node.cli.people import person
from node.cli.progress import show_progress
from node.cli.shared import (
    JsonOption,
    LocalOption,
    client,
    note_faults,
    note_requests,
    print_answer,
    print_fields,
    print_json,
    print_table,
    say,
)
from node.runtime.errors import ServiceError
from protocol.limits.formats import INVITATION_USE_COUNT_MAX, LINK_SIZE_MAX
from protocol.text import pasted_word
from ravel.characters import display_safe

if TYPE_CHECKING:  # types of answers: `ravel --help` must be quick
    from ravel import Client
    from ravel.types.peers import PeerView, TopicView
    from ravel.types.repos import RepoView
    from ravel.types.values import Capability

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
_NEAR_NOTES = {
    "machine": "note: the link works on this machine only",
    "network": (
        "note: the link works on this network only, as far as this node knows. To reach others: use a relay "
        "(docs/how-to/run-a-relay.md), or forward a port of the router and set network.advertise."
    ),
}
"""Reach of a link -> what its maker should know."""
_POLL_SECONDS = 0.2
_PEERS_NAMED_MAX = 3
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


class InvitedPermission(StrEnum):
    """What an invitation may grant."""

    READ = "read"
    WRITE = "write"


@repo.command("create")
def create(context: typer.Context, name: str, as_json: JsonOption = False) -> None:
    """Create a repo, with a branch called main."""
    answer = client(context).create_repo(name)
    print_json(answer) if as_json else _print_repo(answer)


def _print_repo(view: "RepoView") -> None:
    # A revision is for programs: a number that tells people nothing.
    fields = [(name, value) for name, value in view.items() if name not in ("standing", "revision")]
    print_fields([*fields, ("state", view["standing"]["sentence"])])


@repo.command("invite")
def invite(
    context: typer.Context,
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
    qr: Annotated[bool, typer.Option("--qr", help="Also print a QR code.")] = False,
    as_json: JsonOption = False,
) -> None:
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
    api = client(context)
    if ask:
        made = api.make_ask_link(
            repo,
            permission=permission.value,
            expires_seconds=seconds_of(expires),
            uses=uses or 16,
            reach=reach,
        )
        if as_json:
            print_json(made)
            return
        show_link(made["link"], made["reach"], qr=qr)
        _note_absent_relays(api, made["reach"])
        return
    answer = api.create_invitation(
        repo,
        permission=permission.value,
        expires_seconds=seconds_of(expires),
        uses=uses or 1,
        reach=reach,
        renews=renew_after_use,
    )
    if as_json:
        print_json(answer)
        return
    show_link(answer["invitation"], answer["reach"], qr=qr)
    _note_absent_relays(api, answer["reach"])


@repo.command("join")
def join(
    context: typer.Context,
    link: Annotated[
        str, typer.Argument(help="ravel:invite:... or ravel:ask:..., or - to read it from standard input.")
    ],
    follow: Annotated[
        bool, typer.Option("--follow", help="Read the repo without being a member where the link makes none.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Join a repo by a bearer link, or ask to be let in by a link that asks, and replicate it from the link's peers.

    A request waits until an admin answers, also across restarts. `ravel requests list` shows it with its code, and
    `ravel requests cancel` takes it back.

    With - the link is read from standard input: arguments can be seen by every user of the machine.
    """
    text = given(link).strip()
    answer = client(context).join_repo(text, follow=follow)
    if as_json:
        print_json(answer)
        return
    _print_repo(answer)
    if answer["permission"] == "joining":
        print(_ASKED if text.startswith(_ASK_LINK) else _NOT_YET)
    elif answer["standing"]["state"] == "syncing":
        print(_COMING.format(name=shlex.quote(display_safe(answer["name"] or answer["repo"]))))


@repo.command("capability")
def capability(
    context: typer.Context, repo: RepoArgument, local: LocalOption = False, as_json: JsonOption = False
) -> None:
    """Print the repo's read capability. It is a secret: anyone who has it reads the repo, unseen by members.

    It opens all there is, and what follows until somebody is excluded or the repo is renewed.

    To share with a person who shall be a member, use `ravel repo invite`.
    """
    show_capability(client(context).share_repo(repo), local=local, as_json=as_json)


@repo.command("follow")
def follow(
    context: typer.Context,
    link: Annotated[
        str, typer.Argument(help="ravel:read:... or ravel:branch:..., or - to read it from standard input.")
    ],
    as_json: JsonOption = False,
) -> None:
    """Read and replicate a repo, or a single branch, by its read capability. You do not become a member.

    With - the link is read from standard input: arguments can be seen by every user of the machine.
    """
    answer = client(context).follow_repo(given(link))
    if as_json:
        print_json(answer)
        return
    _print_repo(answer)
    if not answer["commits"]:
        print(_NOT_YET)


@repo.command("sync")
def sync(
    context: typer.Context,
    repo: RepoArgument,
    timeout: Annotated[float, typer.Option(min=0, help="Seconds after which the command gives up.")] = 3600,
    as_json: JsonOption = False,
) -> None:
    """Wait until this node and a connected peer hold the same commits of a repo, and show progress.

    Of a user who wrote elsewhere before, it waits until all is here that the user wrote.
    Tells who holds it: what a peer or relay has confirmed is durable there.
    """
    api = client(context)
    until = time.monotonic() + timeout
    reason, is_moving = "", False
    with show_progress("synced", "commit", None) as synced:
        while True:
            branches = api.list_branches(repo)["branches"]
            ids = {item["branch"] for item in branches} | {item["repo"] for item in branches}
            peers = [
                (peer, [topic for topic in peer["topics"] if topic["repo"] in ids])
                for peer in api.list_peers()["peers"]
            ]
            view = next((one for one in api.list_repos()["repos"] if one["repo"] in ids), None)
            standing = view["standing"] if view is not None else None
            progress = standing["progress"] if standing is not None else None
            if progress is not None:
                is_moving = True
                synced(progress["done"], progress["total"], progress["seconds_left"])
            level = standing["in_sync_with"] if standing is not None else []
            held_by = [peer for peer, _ in peers if peer["peer"] in level]
            uncertain = standing["uncertain"] if standing is not None else ""
            if (held_by and not uncertain) or (standing is not None and standing["state"] == "cut_off"):
                break  # who is cut off waits for keys that it does not get
            found = (
                f"peers are asked for commits of yours ({uncertain})"
                if held_by
                else _why_none_can_sync(peers)
            )
            if found != reason:
                reason = found
                if reason:
                    say(f"waiting: {reason}")
            if time.monotonic() > until:
                raise ServiceError(
                    "incomplete",
                    f"not in sync after {timeout:.0f} s{f': {reason}' if reason else ''}",
                    "`ravel status` tells how each branch stands with each peer",
                )
            time.sleep(_POLL_SECONDS)  # the daemon is another process, and has no answer that waits for this
        if is_moving and view is not None:
            synced(view["commits"], view["commits"])
    commits = sum(int(item["commits"]) for item in branches)
    bodiless = all(any(topic["bodiless"] for topic in topics) for peer, topics in peers if peer in held_by)
    answer = {"repo": repo, "branches": len(branches), "commits": commits, "bodiless": bodiless}
    is_relay = {peer["peer"]: peer["relay"] for peer in held_by}  # one may have two connections
    holders = [{"peer": peer, "relay": relay} for peer, relay in sorted(is_relay.items())]
    assert standing is not None, "it was looked at"
    if as_json:
        print_json({**answer, "held_by": holders, "standing": standing})
        return
    print_fields([*answer.items(), ("state", standing["sentence"])])
    for holder in holders:
        print(f"held by {'relay' if holder['relay'] else 'peer'} {holder['peer']}")
    if bodiless:
        print(_BODILESS)


def _why_none_can_sync(peers: list[tuple["PeerView", list["TopicView"]]]) -> str:
    """Why no peer can have the repo now; empty where one that follows it is connected."""
    if not peers:
        return "no peer is connected, and this node dials none (`ravel peer add HOST:PORT PEER`)"
    connected = [topics for peer, topics in peers if peer["state"] == "connected"]
    if not connected:
        tried = ", ".join(
            peer["address"] + (f" ({peer['last_error']})" if peer["last_error"] else "")
            for peer, _ in peers[:_PEERS_NAMED_MAX]
        )
        return f"no peer is connected; this node dials {tried}"
    if not any(topic["state"] != "not joined" for topics in connected for topic in topics):
        return f"no connected peer follows this repo ({len(connected)} connected)"
    return ""


@repo.command("list")
def list_repos(context: typer.Context, as_json: JsonOption = False) -> None:
    """List the repos of this node."""
    api = client(context)
    answer = api.list_repos()
    if as_json:
        print_json(answer)
        return
    print_table(
        ("repo", "name", "permission", "branches", "commits", "state"),
        (
            (
                item["repo"],
                item["name"],
                item["permission"],
                item["branches"],
                item["commits"],
                item["standing"]["sentence"],
            )
            for item in answer["repos"]
        ),
    )
    note_requests(answer["repos"])
    note_faults(api.show_status())


@repo.command("fork")
def fork(
    context: typer.Context,
    repo: RepoArgument,
    name: Annotated[str, typer.Argument(help="Of the new repo.")],
    as_json: JsonOption = False,
) -> None:
    """Create a repo of your own that continues another. Each commit is written again and names its origin.

    Commits that are written there can be offered back: `ravel inbox offer`.
    """
    answer = client(context).fork_repo(repo, name)
    if as_json:
        print_json(answer)
        return
    carried = sum(branch["carried"] for branch in answer["branches"])
    print_fields(
        [
            ("repo", answer["repo"]),
            ("name", name),
            ("branches", len(answer["branches"])),
            ("commits", carried),
        ]
    )
    if answer["files_left"]:
        print(f"note: files are not copied: {', '.join(answer['files_left'])}", file=sys.stderr)


@repo.command("forget")
def forget(
    context: typer.Context,
    repo: RepoArgument,
    accept_loss: Annotated[
        bool, typer.Option("--accept-loss", help="Also where no other node is known to hold all of it.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Delete a repo from this node, with all its commits and files. What others hold stays with them.

    You stay a member: `ravel repo leave` ends that. `ravel gc` then frees the space of what no other repo needs.
    """
    answer = client(context).forget_repo(repo, accept_loss=accept_loss)
    if as_json:
        print_json(answer)


@repo.command("epochs")
def list_epochs(context: typer.Context, repo: RepoArgument, as_json: JsonOption = False) -> None:
    """List the epochs of a repo. Each has its own secrets; every exclusion starts a new one."""
    answer = client(context).list_epochs(repo)
    if as_json:
        print_json(answer)
        return
    print_table(
        ("epoch", "author", "readers", "follows", ""),
        (
            (
                item["epoch"],
                person(item["author_name"], item["author"]),
                item["readers"],
                " ".join(one[:12] for one in item["follows"]),
                ", ".join(
                    word
                    for word, holds in (
                        ("current", item["current"]),
                        ("does not count", not item["counts"]),
                        ("not open here", not item["open"]),
                    )
                    if holds
                ),
            )
            for item in answer["epochs"]
        ),
    )


@repo.command("renew")
def renew(context: typer.Context, repo: RepoArgument, as_json: JsonOption = False) -> None:
    """Create new secrets for a repo's members. Leaked links open its past and nothing new.

    Anyone who follows by a read capability and is no member needs a new one.
    """
    answer = client(context).start_epoch(repo)
    print_answer(answer, as_json=as_json)


@repo.command("leave")
def leave(
    context: typer.Context,
    repo: RepoArgument,
    force: Annotated[bool, typer.Option("--force", help="Leave even as the last owner.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Leave a repo. What is here stays here, and goes on being replicated."""
    answer = client(context).leave_repo(repo, force=force)
    print_answer(answer, as_json=as_json)


def demanded_reach(*, local: bool) -> str:
    """How far a link must reach: beyond this machine, unless the user wants one for this machine."""
    return "machine" if local else "network"


def show_link(link: str, reach: str, *, qr: bool) -> None:
    """Print a link, and draw it on the terminal if that was asked for."""
    print(link)
    if qr:
        from node.api.qr import print_qr

        print(print_qr(link), end="")
    note_reach(reach)


def show_capability(answer: "Capability", *, local: bool, as_json: bool) -> None:
    """Print a read capability. Raises ServiceError where it would work on this machine only and that is not wanted."""
    if answer["reach"] == "machine" and not local:
        raise ServiceError(
            "bad_config",
            f"the link would work on this machine only: it names {', '.join(answer['addresses'])}",
            "ravel config set network.listen '*:7474', then `ravel down` and `ravel up`; for a trial: --local",
        )
    if as_json:
        print_json(answer)
        return
    print(answer["capability"])
    note_reach(answer["reach"])


def given(link: str) -> str:
    """A link that was given, or is to be read from standard input: a line of a terminal, all of a pipe or a file.

    Where mail or a chat has put it on several lines, these are one link.
    """
    return pasted_word(read_typed(2 * LINK_SIZE_MAX) if link == "-" else link)


def note_reach(reach: str) -> None:
    """Say so where a link does not reach everybody."""
    if reach != "anywhere":
        print(_NEAR_NOTES[reach], file=sys.stderr)


def _note_absent_relays(api: "Client", reach: str) -> None:
    """Where a link does not reach everybody, name the relays of this user that are not connected: it has none of them."""
    if reach == "anywhere":
        return
    for one in api.list_peers()["peers"]:
        is_away = one["state"] != "connected" and one["source"] == "configured"
        if is_away and api.show_peer(one["peer"])["relay"]:
            print(
                f"note: the relay at {one['address']} is not connected, so the link does not name it: "
                f"{one['last_error'] or 'it has not answered yet'}. Make a new link once `ravel peer list` shows it as "
                "connected.",
                file=sys.stderr,
            )


def seconds_of(text: str) -> int:
    """A time such as 30m, 12h or 7d. Raises ServiceError."""
    found = re.fullmatch(r"([0-9]{1,6})([smhd])", text)
    if found is None or int(found[1]) == 0:
        raise ServiceError("bad_request", f"{text!r} is not a time", "say 30m, 12h or 7d")
    return int(found[1]) * _UNITS[found[2]]
