"""member, quorum: who is in a repo, what they may do, and who must approve of checkpoints and removals."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from node.cli import words
from node.cli.answers import ID_WIDTH, Outcome, Table, marks, prints, short
from node.cli.printing import (
    calendar_text,
    is_terminal,
    is_verbose,
    moment,
    print_table,
    say_wrapped,
    state_word,
)
from node.cli.repo_commands import RepoArgument
from node.cli.shared import YesOption, confirm
from node.cli.wording import author, person, time_of
from node.observe.sentences import part_sentence
from node.runtime.errors import ServiceError
from node.runtime.language import in_language
from node.runtime.wording import counted, date_text
from ravel.characters import composed, display_safe

if TYPE_CHECKING:  # types of answers: `ravel --help` must be quick
    from ravel import Client
    from ravel.types.members import InvitationList, MembershipChange, MemberView, RemovalResult
    from ravel.types.node import NodeStatus
    from ravel.types.peers import PeerView
    from ravel.types.quorums import Proposal, ProposalView, QuorumState
    from ravel.types.repos import StandingPart
    from ravel.types.values import RootCommit

member = typer.Typer(no_args_is_help=True, help="Members of a repo, their rights, and invitations.")
quorum = typer.Typer(no_args_is_help=True, help="Set who must approve checkpoints and, optionally, removals.")

UserArgument = Annotated[
    str, typer.Argument(help="The member's name, id, or a unique prefix of it; `ravel id` prints it there.")
]
ProposalArgument = Annotated[
    str, typer.Argument(help="The proposal's id or a unique prefix, as `ravel quorum show` prints it.")
]


AloneOption = Annotated[bool, typer.Option("--alone", help="Leave other devices of the same person in.")]


class GrantedPermission(StrEnum):
    """A permission that a member may hold; each includes those before it."""

    READ = "read"
    WRITE = "write"
    MANAGE = "manage"
    ADMIN = "admin"
    OWNER = "owner"


class KeptPermission(StrEnum):
    """A permission that a member may be taken down to."""

    READ = "read"
    WRITE = "write"
    MANAGE = "manage"
    ADMIN = "admin"


_CHANGES = 1000
"""Changes of members that are looked through for when somebody left: the latest."""
_ARRIVALS = {
    "founded": lambda came: in_language("founded it"),
    "invited": lambda came: in_language(f"invited by {author(came)}"),
    "granted": lambda came: in_language(f"added by {author(came)}"),
    "device_added": lambda came: in_language(f"device added by {author(came)}"),
    "recovered": lambda came: in_language(
        f"let in by the friends {', '.join(map(person, came['friend_names'], came['friends']))}"
    ),
}


def _came(item: Mapping[str, Any]) -> str:
    """Say how a member came, and when; empty where that is not known."""
    came = item["came"]
    if came is None:
        return ""
    said = _ARRIVALS[came["kind"]](came)
    if came["time"] is not None:
        said = f"{said}, {calendar_text(came['time'])}"
    if came["place_of"] is None:
        return said
    before, since = came["place_of"][:ID_WIDTH], calendar_text(came["place_since"])
    return f"{said}; " + in_language(f"in the place of {before} since {since}")


_MEMBERS = Table(
    "members",
    "user",
    "permission",
    ("device of", lambda item: "" if item["person"] == item["user"] else item["person"][:ID_WIDTH]),
    "name",
    more=(("came", _came),),
)


class _MembersPrinter:
    """Printer of members: by name on a terminal; a pipe and `--verbose` get whole ids."""

    has_more = True

    def __call__(self, answer: "dict[str, Any]") -> None:
        """Print them: a person is a row, and each device where all is asked for."""
        if not is_terminal() or is_verbose():
            _MEMBERS(answer)
            return
        people: dict[str, list[MemberView]] = {}
        for item in answer["members"]:
            people.setdefault(item["person"], []).append(item)
        said = f"{answer['repo']} · {in_language(counted(len(people), 'person', 'people'))}"
        print(display_safe(said))
        rows = (self._row(one, answer["status"]) for one in people.values())
        print_table(("person", "may", "computers", "joined", "seen", "id"), rows)
        for one in answer["claims"]:
            claim: StandingPart = {
                "code": "place_claimed",
                "people": [person(one["name"], one["user"]), *one["claimant_names"]],
            }
            say_wrapped(f"{part_sentence(claim)}.")

    def _row(self, devices: "list[MemberView]", status: "NodeStatus") -> tuple[str, ...]:
        first, users = devices[0], {one["user"] for one in devices}
        own = in_language(" (you)") if status["user"] in users else ""
        name = person(first["name"], "") if first["name"] else in_language("no name yet")
        times = [one["came"]["time"] for one in devices if one["came"] is not None]
        began = min((one for one in times if one is not None), default=None)
        return (
            f"{name}{own}",
            state_word(first["permission"]),
            str(len(devices)),
            "" if began is None else calendar_text(began),
            in_language("this computer") if own else self._seen(users, status["peers"]),
            first["user"][:ID_WIDTH],
        )

    def _seen(self, users: set[str], peers: "list[PeerView]") -> str:
        """Say when a computer of a person was reached last; empty where none is known to be theirs."""
        theirs = [one for one in peers if one["owner"] is not None and one["owner"]["user"] in users]
        if any(one["state"] == "connected" for one in theirs):
            return in_language("connected")
        times = [one["reached_at"] for one in theirs if one["reached_at"] is not None]
        return moment(max(times)) if times else ""


@member.command("list")
@prints(_MembersPrinter())
def list_members(api: "Client", repo: RepoArgument = "") -> Outcome:
    """List the people of a repo, what they may and when their computers were seen; --verbose lists each device."""
    answer = api.list_members(repo)
    return Outcome(answer, shown={**answer, "repo": repo, "status": api.show_status()})


@member.command("grant")
@prints(words.GRANTED)
def grant(
    api: "Client",
    repo: RepoArgument,
    user: UserArgument,
    permission: GrantedPermission,
) -> "MembershipChange":
    """Give a user a permission. A user who only follows the repo becomes a member.

    This node hands the repo's current keys to who lacks them. Who does not have the repo yet needs an invitation (`ravel
    repo invite`) instead.
    """
    return api.grant_permission(repo, user, permission.value)


@member.command("revoke")
@prints(words.REVOKED)
def revoke(
    api: "Client",
    repo: RepoArgument,
    user: UserArgument,
    keeps: Annotated[
        KeptPermission, typer.Option(help="The permission that the member keeps.")
    ] = KeptPermission.READ,
    alone: AloneOption = False,
    yes: YesOption = False,
) -> "RemovalResult":
    """Lower a member's permission, on all its devices; the user stays a member.

    What the member writes without having seen it becomes void.
    """

    def question() -> str:
        one = _find(api.list_members(repo)["members"], repo, user)
        called = person(one["name"], one["user"])
        return (
            f"{called} will hold the permission {keeps.value} in {repo}, and what is written without knowing of this will "
            f"not count. Demote {called}?"
        )

    confirm(question, yes=yes)
    return api.remove_member(repo, user, keeps=keeps.value, person=not alone)


def _find(members: "Sequence[MemberView]", repo: str, user: str) -> "MemberView":
    """Find the member that a text means. Raises ServiceError `not_found`."""
    from node.runtime.resolve import PREFIX_SIZE_MIN, did_you_mean

    wanted = composed(user)
    for one in members:
        names = {composed(name) for name in (one["name"], one["stated_name"], one["petname"]) if name}
        if wanted in names or (len(user) >= PREFIX_SIZE_MIN and one["user"].startswith(user)):
            return one
    names = {name for one in members for name in (one["name"], one["stated_name"], one["petname"]) if name}
    near = did_you_mean(user, sorted(names))
    raise ServiceError(
        "not_found", f"no member is called {user!r}{near}", f"`ravel member list {repo}` shows members"
    )


def _left(api: "Client", repo: str, user: str) -> str:
    """Return the question about somebody who left, by name or id; empty where nobody did."""
    from node.runtime.resolve import PREFIX_SIZE_MIN

    wanted = composed(user)
    for one in reversed(api.list_member_changes(repo, limit=_CHANGES)["changes"]):
        is_meant = wanted == composed(one["author_name"]) or (
            len(user) >= PREFIX_SIZE_MIN and one["author"].startswith(user)
        )
        if one["kind"] in ("left", "moved") and is_meant:
            called = person(one["author_name"], one["author"])
            return (
                f"{called} left on {date_text(one['time'])}. From now on nothing counts in {repo} that this key writes "
                f"beside its leave. Exclude {called} from {repo}?"
            )
    return ""


@member.command("exclude")
@prints(words.EXCLUDED)
def exclude(
    api: "Client",
    repo: RepoArgument,
    user: UserArgument,
    alone: AloneOption = False,
    yes: YesOption = False,
) -> "RemovalResult":
    """Exclude a member, with all its devices. Commits that no member has seen are revoked, and no new ones are accepted.

    The repo gets new secrets, sealed to each remaining member. The excluded keep what they could read before; they
    read, write and follow nothing after.
    """

    def question() -> str:
        members = api.list_members(repo)["members"]
        try:
            one = _find(members, repo, user)
        except ServiceError:
            if about_left := _left(api, repo, user):
                return about_left
            raise
        if one["user"] == api.show_status()["user"]:  # as the node says, before anybody is asked
            raise ServiceError("bad_request", "that is this computer", f"`ravel repo leave {quote(repo)}`")
        called = person(one["name"], one["user"])
        others = [
            person(other["stated_name"] or "", other["user"])  # all are called as the person is
            for other in members
            if not alone and other["person"] == one["person"] and other["user"] != one["user"]
        ]
        said = [f"{called} will read and write nothing new in {repo}."]
        if others:
            said.append(
                f"{counted(len(others), 'device')} of the same person will go along: {', '.join(others)}."
            )
        said.append(
            "What was written until now stays; what is written without knowing of this will not count. "
            f"Exclude {called} from {repo}?"
        )
        return " ".join(said)

    confirm(question, yes=yes)
    return api.remove_member(repo, user, person=not alone)


@member.command("invitations")
@prints(
    Table(
        "invitations",
        short("invitation"),
        ("author", author),
        "permission",
        ("joined", lambda item: f"{len(item['joined'])} {state_word('of')} {item['uses']}"),
        ("expires", time_of("expires_at")),
        ("revoked", marks("revoked")),
    )
)
def invitations(api: "Client", repo: RepoArgument = "") -> "InvitationList":
    """List the invitations of a repo: author, permission, expiry and number of joins."""
    return api.list_invitations(repo)


@member.command("uninvite")
@prints(words.UNINVITED)
def uninvite(
    api: "Client",
    repo: RepoArgument,
    invitation: Annotated[str, typer.Argument(help="Its id, as `ravel member invitations` lists it.")],
    yes: YesOption = False,
) -> "MembershipChange":
    """Revoke an invitation. Joins by it that this node has not seen do not count."""
    confirm(f"Nobody will join {repo} by this invitation any more. Revoke it?", yes=yes)
    return api.revoke_invitation(repo, invitation)


@quorum.command("set")
@prints(words.QUORUM_SET)
def set_quorum(
    api: "Client",
    signers: Annotated[
        list[str], typer.Option("--signer", help="A member who signs; repeat it for each signer.")
    ],
    threshold: Annotated[int, typer.Option(help="How many of the signers must approve.")],
    repo: RepoArgument = "",
    removals: Annotated[
        bool, typer.Option("--removals", help="Also require them for excluding and demoting members.")
    ] = False,
) -> "RootCommit":
    """Set the signers. It binds anyone who becomes an admin after this: do it before you make admins."""
    return api.set_quorum(repo, signers, threshold, removals=removals)


def _subject(one: "ProposalView") -> str:
    branch = one.get("branch")
    return branch[:ID_WIDTH] if branch else person(one["user_name"], one["user"])


def _print_quorum(answer: "QuorumState") -> None:
    if (council := answer["council"]) is not None:
        founders = ", ".join(map(person, council["signer_names"], council["signers"]))
        say_wrapped(f"{council['threshold']} founders together exclude any member, founders too: {founders}")
    elif not answer["quorums"]:
        say_wrapped("no quorum is named: `ravel quorum set` names one")
    for one in answer["quorums"]:
        covers = "checkpoints and removals" if one["removals"] else "checkpoints"
        signers = ", ".join(map(person, one["signer_names"], one["signers"]))
        say_wrapped(f"{one['threshold']} of {len(one['signers'])} approve of {covers}: {signers}")
    if answer["proposals"]:
        approvals = ("approvals", lambda one: len(one["approved_by"]))
        Table("proposals", short("proposal"), "kind", ("about", _subject), approvals, "missing", "state")(
            answer
        )


@quorum.command("show")
@prints(_print_quorum)
def show(api: "Client", repo: RepoArgument = "") -> "QuorumState":
    """Show the signers, and the latest proposals with their approvals."""
    return api.show_quorum(repo)


@quorum.command("propose-removal")
@prints(words.PROPOSED)
def propose_removal(
    api: "Client",
    repo: RepoArgument,
    user: UserArgument,
    keep: Annotated[
        KeptPermission | None,
        typer.Option("--keep", help="The permission that the member keeps (default: none)."),
    ] = None,
    alone: AloneOption = False,
) -> "Proposal":
    """Propose to exclude or demote a member with its devices. Once approved, run `ravel member exclude` or `revoke`."""
    kept = keep.value if keep is not None else ""
    return api.propose_removal(repo, user, keeps=kept, person=not alone)


@quorum.command("approve")
@prints(words.APPROVED)
def approve(api: "Client", repo: RepoArgument, proposal: ProposalArgument) -> "Proposal":
    """Sign a proposal. The last signature that a checkpoint lacks makes it."""
    return api.approve_proposal(repo, proposal)


@quorum.command("finish")
@prints(words.FINISHED)
def finish(api: "Client", repo: RepoArgument, proposal: ProposalArgument) -> "Proposal":
    """Write the checkpoint of a proposal whose last approvals were concurrent."""
    return api.make_checkpoint(repo, proposal)
