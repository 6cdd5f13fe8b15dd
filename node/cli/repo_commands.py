"""repo: create, share, follow and leave repos."""

from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from node.cli import words
from node.cli.answers import Fields, Outcome, Table, marks, prints, short
from node.cli.completion import complete_repos
from node.cli.links import (
    QrOption,
    capability_outcome,
    demanded_reach,
    link_notes,
    link_outcome,
    print_link,
    read_link,
)
from node.cli.printing import calendar_text, is_terminal, is_verbose, moment, say_wrapped, state_word
from node.cli.shared import (
    LocalOption,
    YesOption,
    client,
    confirm,
    note_faults,
    note_requests,
)
from node.cli.status_view import print_standings
from node.cli.syncing import print_synced, wait_in_sync
from node.cli.wording import author, parse_duration, person, spoken_duration, time_of
from node.observe.sentences import called, standing_sentence
from node.runtime.errors import ServiceError
from node.runtime.wording import counted, date_text
from protocol.limits.formats import INVITATION_USE_COUNT_MAX, OWNER_COUNT_MAX

if TYPE_CHECKING:  # types of answers: `ravel --help` must be quick
    from ravel import Client
    from ravel.types.members import CheckpointList, LeaveResult
    from ravel.types.repos import EpochList, HolderList, LinkView, NewEpoch, RepoFork, RepoHolder, RepoView
    from ravel.types.values import Empty, RootCommit

repo = typer.Typer(no_args_is_help=True, help="Create, share, join and list repos.")

RepoArgument = Annotated[
    str,
    typer.Argument(
        help="Name, id, or unique prefix of an id. Where it may be left out: the repo in use, or the only one; with --yes, "
        "the only one.",
        autocompletion=complete_repos,
    ),
]
_ASK_LINK = "ravel:ask:"
_LEADS_TO = {
    "invite": "membership",
    "ask": "a request, which an admin answers",
    "read": "a repo to read",
    "branch": "a branch to read",
}


class KeptFiles(StrEnum):
    """Files whose contents come before they are opened."""

    ON_DEMAND = "on-demand"
    ALL = "all"


class InvitedPermission(StrEnum):
    """A permission that an invitation may grant."""

    READ = "read"
    WRITE = "write"


@repo.command("create")
@prints(words.REPO_CREATED)
def create(
    api: "Client",
    name: str,
    founders: Annotated[
        list[str] | None,
        typer.Option(
            "--founder", help="The id of a user who owns it too, and joins by any link; repeat it for each."
        ),
    ] = None,
    council: Annotated[
        int | None,
        typer.Option(
            min=2,
            max=OWNER_COUNT_MAX,
            help="How many founders must agree to exclude a founder. It is more than half of them.",
        ),
    ] = None,
) -> "RepoView":
    """Create a repo, with a branch called main.

    Only a council can exclude a founder. Founders and council stay as you create them.
    """
    return api.create_repo(name, founders=founders or (), council=council)


@repo.command("invite")
@prints(print_link)
def invite(
    api: "Client",
    repo: RepoArgument = "",
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
        absent = link_notes(api, made["reach"], made["addresses"])
        whom = f"Whoever opens this link within {spoken_duration(expires)} may ask to be let into {repo}."
        about = f"{whom} {_users(uses or 16)}"
        return link_outcome(made, made["link"], made["reach"], qr=qr, about=about, absent=absent)
    answer = api.create_invitation(
        repo,
        permission=permission.value,
        expires_seconds=parse_duration(expires),
        uses=uses or 1,
        reach=reach,
        renews=renew_after_use,
    )
    absent = link_notes(api, answer["reach"], answer["addresses"])
    may = "write" if permission is InvitedPermission.WRITE else "read"
    whom = (
        f"Whoever opens this link within {spoken_duration(expires)} may {may} in {repo}. {_users(uses or 1)}"
    )
    about = f"{whom} Send it by a channel that you trust."
    return link_outcome(answer, answer["invitation"], answer["reach"], qr=qr, about=about, absent=absent)


def _users(uses: int) -> str:
    return "It works once." if uses == 1 else f"It works for {uses} users."


@repo.command("look")
@prints(
    Fields(
        "name",
        ("made by", lambda item: item["by"] or "(not said)"),
        ("leads to", lambda item: _LEADS_TO[item["kind"]]),
        ("you may", "permission"),
        ("good until", lambda item: "for ever" if item["expires_at"] is None else moment(item["expires_at"])),
        ("comes from", lambda item: ", ".join(called(one) or one["address"] for one in item["peers"])),
        ("here as", lambda item: item["here"] or ""),
    )
)
def look(
    api: "Client",
    link: Annotated[str, typer.Argument(help="The link, or - to read it from standard input.")],
) -> "LinkView":
    """Show the content of a link before you join or follow by it. Its maker wrote the names."""
    return api.look_at_link(read_link(link).strip())


@repo.command("join")
@prints(words.REPO_JOINED)
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
    asks = text.startswith(_ASK_LINK)
    answer = api.join_repo(text, follow=follow)
    return Outcome(answer, shown={**answer, "asks": asks})


@repo.command("capability")
@prints(print_link)
def capability(api: "Client", repo: RepoArgument = "", local: LocalOption = False) -> Outcome:
    """Print the repo's read capability. It is a secret: anyone who has it reads the repo, unseen by members.

    It opens all there is, and what follows until somebody is excluded or the repo is renewed.

    To share with a person who shall be a member, use `ravel repo invite`.
    """
    about = "Whoever has this link reads the repo, until it is renewed. Send it by a channel that you trust."
    return capability_outcome(api, api.share_repo(repo), about, local=local)


@repo.command("follow")
@prints(words.REPO_FOLLOWED)
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


@repo.command("sync")
@prints(print_synced)
def sync(
    api: "Client",
    repo: RepoArgument = "",
    timeout: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="Seconds after which the command gives up. Otherwise it does so after an hour, and within a minute "
            "where nobody is there to sync with.",
        ),
    ] = None,
) -> Outcome:
    """Wait until this node and a connected peer hold the same commits of a repo, and show progress.

    Of a user who wrote elsewhere before, it waits until all is here that the user wrote.
    Tells who holds it: what a peer or relay has confirmed is durable there.
    """
    state = wait_in_sync(api, repo, timeout)
    return Outcome(state.answer(repo), shown={**state.answer(repo), **state.told(api, repo)})


_REPOS = Table(
    "repos",
    short("repo"),
    "name",
    "permission",
    "branches",
    "commits",
    (
        "state",
        lambda item: state_word(
            standing_sentence(item["standing"], calendar_text if is_terminal() else date_text)
        ),
    ),
)


class _ReposPrinter:
    """Printer of repos: on a terminal a sentence on each, unless all is asked for; else a table."""

    has_more = True

    def __call__(self, shown: "dict[str, Any]") -> None:
        """Print them."""
        if not shown["repos"]:
            words.NO_REPOS(shown)
        elif is_terminal() and not is_verbose():
            print_standings(shown["repos"])
        else:
            _REPOS(shown)
        note_requests(shown["repos"])
        note_faults(shown["faults"])


@repo.command("list")
@prints(_ReposPrinter())
def list_repos(context: typer.Context) -> Outcome:
    """List the repos of this node, and how each stands with others."""
    api = client(context)
    answer, faults = api.list_repos(), api.show_status()["faults"]
    return Outcome(answer, shown={"repos": answer["repos"], "faults": faults})


def _state_of(item: "RepoHolder") -> str:
    keeps = item["keeps"]
    part = "" if keeps is None else "has not all contents"
    if keeps:
        part = f"keeps contents of {counted(keeps, 'branch', 'branches')} alone"
    days = "" if item["keeps_days"] is None else f"keeps posts of {counted(item['keeps_days'], 'day')}"
    states = (
        "connected" if item["connected"] else "",
        part,
        days,
        "not a member" if item["member"] is False else "",
    )
    return ", ".join(map(state_word, filter(None, states)))


@repo.command("holders")
@prints(
    Table(
        "holders",
        ("computer", lambda item: called(item) or f"{'relay ' if item['relay'] else ''}{item['peer'][:12]}"),
        ("state", _state_of),
        ("lacks", lambda item: "" if item["lacks"] is None else state_word(counted(item["lacks"], "commit"))),
        ("had all", time_of("held_at")),
        short("peer"),
    )
)
def holders(api: "Client", repo: RepoArgument = "") -> "HolderList":
    """List who has what of a repo: computers that follow it now, and those that were seen to hold all of it."""
    return api.list_holders(repo)


def _print_keeping(shown: Mapping[str, Any]) -> None:
    """Print whose contents are kept."""
    _print_kept_branches(shown)
    if shown["files"] == "all":
        say_wrapped("Files come by themselves.")
    if shown["last_days"] is not None:
        say_wrapped(f"Contents of posts are kept for {counted(shown['last_days'], 'day')}.")
    if shown["bound_days"] is not None:
        days = counted(shown["bound_days"], "day")
        say_wrapped(
            f"The bound on the store (storage.size_max) has them kept for {days}, as far as it needs room."
        )
    if shown["last_days"] is None and shown["bound_days"] is None:
        return
    if shown["older_absent"]:
        say_wrapped(f"Older posts and files that come when you open them: {shown['older_absent']:,}.")
    if shown["older_here"]:
        say_wrapped(_tell_older(shown))


def _tell_older(shown: Mapping[str, Any]) -> str:
    """Say what becomes of older posts that are here."""
    return (
        f"Older posts and files of others here: {shown['older_here']:,}. Their contents leave this computer once a member's "
        f"computer that keeps posts of any age shows that it has them. Such computers connected now: {shown['keepers']:,}. "
        "What you wrote here stays."
    )


def _print_kept_branches(shown: Mapping[str, Any]) -> None:
    if shown["branches"] is None:
        say_wrapped(f"{shown['name']}: the contents of all branches are kept here.")
        return
    kept = ", ".join(shown["names"]) or "no branch"
    say_wrapped(f"{shown['name']}: the contents of {kept} are kept here.")
    if not shown["not_kept"]:
        say_wrapped("It has no other branch now; those that are added later are not kept.")
        return
    others = counted(shown["not_kept"], "other branch", "other branches")
    say_wrapped(f"Not kept here: those of {others}, {counted(shown['absent'], 'commit')}.")


def _parse_days(text: str) -> int:
    """Return the days of a time such as 90d; 0 for all. Raises ServiceError."""
    if text == "all":
        return 0
    try:
        days, rest = divmod(parse_duration(text), 24 * 60 * 60)
    except ServiceError:
        days, rest = 0, 0  # its advice names minutes and hours, which are refused here
    if rest or not days:
        raise ServiceError("bad_request", f"{text!r} is no number of whole days", "say 90d, or all")
    return days


@repo.command("keep")
@prints(_print_keeping)
def keep(
    api: "Client",
    repo: RepoArgument = "",
    branches: Annotated[
        str | None,
        typer.Option(help="Names of branches, with commas between them; an empty text for none, or all."),
    ] = None,
    last: Annotated[
        str | None, typer.Option(help="Days of which posts are kept, as 90d; all: of any age.")
    ] = None,
    files: Annotated[
        KeptFiles | None, typer.Option(help="Files come when they are opened, or all come by themselves.")
    ] = None,
    yes: YesOption = False,
) -> Outcome:
    """Choose which contents of a repo this computer keeps, or show that.

    Of other branches, also such as are added later, you have who wrote when, and contents once you open them: they come from
    a peer. What is here already stays, and what you write. With --files all, files of kept branches come unasked while a GiB
    of the disk is free.

    Contents of posts older than --last, and of their files, leave this computer once a connected computer of a member, which
    keeps posts of any age, has sent each again to show that it has it; the daemon then frees their room. What you wrote here
    stays, and documents.

    Other computers are told, and count this one for what it keeps alone. `ravel config set storage.size_max` bounds what all
    repos take together.
    """
    days = None if last is None else _parse_days(last)
    answer = api.show_keeping(repo, last_days=days or None)
    if days and answer["older_here"]:
        confirm(f"{_tell_older(answer)} Give up those older than {last}?", yes=yes)
    if (branches, days, files) != (None, None, None):
        named = [one.strip() for one in (branches or "").split(",")]
        chosen = None if branches == "all" else [one for one in named if one]
        answer = api.set_keeping(
            repo,
            answer["branches"] if branches is None else chosen,
            last_days=answer["last_days"] if days is None else days or None,
            files=answer["files"] if files is None else "all" if files is KeptFiles.ALL else "on_demand",
        )
    there = {one["branch"]: one["name"] for one in api.list_branches(answer["repo"])["branches"]}
    name = next((one["name"] for one in api.list_repos()["repos"] if one["repo"] == answer["repo"]), repo)
    kept = sorted(there.get(one, one[:12]) for one in answer["branches"] or ())
    return Outcome(answer, shown={**answer, "name": name, "names": kept})


@repo.command("fork")
@prints(words.REPO_FORKED)
def fork(
    api: "Client", repo: RepoArgument, name: Annotated[str, typer.Argument(help="Of the new repo.")]
) -> "RepoFork":
    """Create a repo of your own that continues another. Each commit is written again and names its origin.

    Commits that are written there can be offered back: `ravel inbox offer`. A fork that was cut short is finished by the
    same command.
    """
    return api.fork_repo(repo, name)


@repo.command("forget")
@prints(words.REPO_FORGOTTEN)
def forget(
    api: "Client",
    repo: RepoArgument,
    accept_loss: Annotated[
        bool, typer.Option("--accept-loss", help="Also where no other node is known to hold all of it.")
    ] = False,
    yes: YesOption = False,
) -> "Empty":
    """Delete a repo from this node, with all its commits and files. What others hold stays with them.

    You stay a member: `ravel repo leave` ends that. `ravel gc` then frees the space of what no other repo needs.
    """

    def question() -> str:
        api.list_branches(repo)  # whether there is such a repo is told first
        return f"All commits and files of {repo} will be deleted from this computer. Delete {repo}?"

    confirm(question, yes=yes)
    return api.forget_repo(repo, accept_loss=accept_loss)


@repo.command("epochs")
@prints(
    Table(
        "epochs",
        short("epoch"),
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
def list_epochs(api: "Client", repo: RepoArgument = "") -> "EpochList":
    """List the epochs of a repo. Each has its own secrets; every exclusion starts a new one."""
    return api.list_epochs(repo)


@repo.command("renew")
@prints(words.REPO_RENEWED)
def renew(api: "Client", repo: RepoArgument = "", yes: YesOption = False) -> "NewEpoch":
    """Create new secrets for a repo's members. Leaked links open its past and nothing new.

    Anyone who follows by a read capability and is no member needs a new one.
    """
    confirm(
        f"Links to {repo} that were handed out will open nothing new, and who reads by one needs another. Renew {repo}?",
        yes=yes,
    )
    return api.start_epoch(repo)


@repo.command("checkpoint")
@prints(words.MEMBERS_SIGNED)
def sign_members(api: "Client", repo: RepoArgument = "") -> "RootCommit":
    """Sign who the members are and what they may do, as it follows from all that is here. Needs the permission of an admin.

    Every node of a member computes the same from the same commits. One that comes to something else says who signed what.
    """
    return api.sign_members(repo)


@repo.command("checkpoints")
@prints(
    Table(
        "checkpoints",
        short("checkpoint"),
        ("signed by", author),
        ("time", time_of("time")),
        (
            "",
            lambda item: state_word(item["state"] if item["admin"] else f"{item['state']}, no admin now"),
        ),
        empty=words.NO_CHECKPOINTS,
    )
)
def list_checkpoints(api: "Client", repo: RepoArgument = "") -> "CheckpointList":
    """List the signed statements of who the members are, and mark the false ones."""
    return api.list_checkpoints(repo)


def _devices_along(api: "Client", repo: str) -> list[str]:
    """Return names of the devices that leave a repo with the first one; none on another."""
    devices = api.list_devices()["devices"]
    if not any(one["first"] and one["this"] for one in devices):
        return []
    return [
        person(one["name"], one["user"])
        for one in devices
        if any(of["permission"] and repo in (of["repo"], of["name"]) for of in one["repos"])
    ]


@repo.command("leave")
@prints(words.REPO_LEFT)
def leave(
    api: "Client",
    repo: RepoArgument,
    force: Annotated[bool, typer.Option("--force", help="Leave even as the last owner.")] = False,
    yes: YesOption = False,
) -> "LeaveResult":
    """Leave a repo, on the first device with all devices of the person. What is here stays here, and is replicated."""

    def question() -> str:
        api.list_branches(repo)  # whether there is such a repo is told first
        said = [f"You will read and write nothing new in {repo}, and come back by an invitation alone."]
        if others := _devices_along(api, repo):
            said.append(
                f"{counted(len(others), 'other device')} of yours will go along: {', '.join(others)}."
            )
        return " ".join((*said, f"Leave {repo}?"))

    confirm(question, yes=yes)
    return api.leave_repo(repo, force=force)
