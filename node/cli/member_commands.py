"""member, quorum: who is in a repo, what they may do, and who must approve of checkpoints and removals."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from node.cli.answers import ID_WIDTH, Outcome, Table, print_fields, prints, short
from node.cli.repo_commands import RepoArgument
from node.cli.shared import say
from node.cli.wording import author, person, time_of

if TYPE_CHECKING:  # types of answers: `ravel --help` must be quick
    from ravel import Client
    from ravel.types.members import InvitationList, MemberList, MembershipChange, RemovalResult
    from ravel.types.quorums import Proposal, ProposalView, QuorumState
    from ravel.types.values import RootCommit

member = typer.Typer(no_args_is_help=True, help="Members of a repo, their rights, and invitations.")
quorum = typer.Typer(no_args_is_help=True, help="Set who must approve checkpoints and, optionally, removals.")

UserArgument = Annotated[
    str, typer.Argument(help="The member's name, id, or a unique prefix of it; `ravel id` prints it there.")
]
ProposalArgument = Annotated[
    str, typer.Argument(help="The proposal's id or a unique prefix, as `ravel quorum show` prints it.")
]


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


@member.command("list")
@prints(
    Table(
        "members",
        "user",
        "permission",
        ("device of", lambda item: "" if item["person"] == item["user"] else item["person"][:ID_WIDTH]),
        "name",
    )
)
def list_members(api: "Client", repo: RepoArgument) -> "MemberList":
    """List the members of a repo and their permissions. Devices of one person stand together."""
    return api.list_members(repo)


def _print_change(answer: "MembershipChange | RemovalResult") -> None:
    """Print a change of members: the commits that became void by it, or count again; devices only by their number."""
    shown: dict[str, object] = {**answer}
    others = shown.get("other_devices")
    print_fields(
        (
            "void or again counted" if name == "voided" else name,
            len(others) if name == "other_devices" and isinstance(others, list) else value,
        )
        for name, value in shown.items()
    )


def _print_exclusion(shown: "tuple[RemovalResult, str]") -> None:
    answer, repo = shown
    _print_change(answer)
    if others := answer["other_devices"]:
        again = f"ravel member exclude {repo} {others[0]}{' --person' if len(others) > 1 else ''}"
        say(f"note: that person has other devices, which are members still: {again}")


@member.command("grant")
@prints(_print_change)
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
@prints(_print_change)
def revoke(
    api: "Client",
    repo: RepoArgument,
    user: UserArgument,
    keeps: Annotated[
        KeptPermission, typer.Option(help="The permission that the member keeps.")
    ] = KeptPermission.READ,
) -> "RemovalResult":
    """Lower a member's permission; the user stays a member. What the member writes without having seen it becomes void."""
    return api.remove_member(repo, user, keeps=keeps.value)


@member.command("exclude")
@prints(_print_exclusion)
def exclude(
    api: "Client",
    repo: RepoArgument,
    user: UserArgument,
    person: Annotated[
        bool,
        typer.Option(
            "--person", help="Include all other devices of the same person, as `member list` shows them."
        ),
    ] = False,
) -> Outcome:
    """Exclude a member. Its commits that no member has seen are revoked, and no new ones are accepted.

    The repo gets new secrets, sealed to each remaining member. The excluded keep what they could read before; they
    read, write and follow nothing after.
    """
    answer = api.remove_member(repo, user, person=person)
    return Outcome(answer, shown=(answer, repo))


@member.command("invitations")
@prints(
    Table(
        "invitations",
        "invitation",
        ("author", author),
        "permission",
        ("joined", lambda item: f"{len(item['joined'])} of {item['uses']}"),
        ("expires", time_of("expires_at")),
        ("revoked", lambda item: "yes" if item["revoked"] else "no"),
    )
)
def invitations(api: "Client", repo: RepoArgument) -> "InvitationList":
    """List the invitations of a repo: author, permission, expiry and number of joins."""
    return api.list_invitations(repo)


@member.command("uninvite")
@prints(_print_change)
def uninvite(
    api: "Client",
    repo: RepoArgument,
    invitation: Annotated[str, typer.Argument(help="Its id, as `ravel member invitations` lists it.")],
) -> "MembershipChange":
    """Revoke an invitation. Joins by it that this node has not seen do not count."""
    return api.revoke_invitation(repo, invitation)


@quorum.command("set")
@prints()
def set_quorum(
    api: "Client",
    repo: RepoArgument,
    signers: Annotated[
        list[str], typer.Option("--signer", help="A member who signs; repeat it for each signer.")
    ],
    threshold: Annotated[int, typer.Option(help="How many of the signers must approve.")],
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
    if not answer["quorums"]:
        print("no quorum is named: `ravel quorum set` names one")
    for one in answer["quorums"]:
        covers = "checkpoints and removals" if one["removals"] else "checkpoints"
        signers = ", ".join(map(person, one["signer_names"], one["signers"]))
        print(f"{one['threshold']} of {len(one['signers'])} approve of {covers}: {signers}")
    if answer["proposals"]:
        approvals = ("approvals", lambda one: len(one["approved_by"]))
        Table("proposals", short("proposal"), "kind", ("about", _subject), approvals, "missing", "state")(
            answer
        )


@quorum.command("show")
@prints(_print_quorum)
def show(api: "Client", repo: RepoArgument) -> "QuorumState":
    """Show the signers, and the latest proposals with their approvals."""
    return api.show_quorum(repo)


@quorum.command("propose-removal")
@prints()
def propose_removal(
    api: "Client",
    repo: RepoArgument,
    user: UserArgument,
    keep: Annotated[
        KeptPermission | None,
        typer.Option("--keep", help="The permission that the member keeps (default: none)."),
    ] = None,
) -> "Proposal":
    """Propose to exclude or demote a member. Once approved, run `ravel member exclude` or `revoke`."""
    kept = keep.value if keep is not None else ""
    return api.propose_removal(repo, user, keeps=kept)


@quorum.command("approve")
@prints()
def approve(api: "Client", repo: RepoArgument, proposal: ProposalArgument) -> "Proposal":
    """Sign a proposal. The last signature that a checkpoint lacks makes it."""
    return api.approve_proposal(repo, proposal)


@quorum.command("finish")
@prints()
def finish(api: "Client", repo: RepoArgument, proposal: ProposalArgument) -> "Proposal":
    """Write the checkpoint of a proposal whose last approvals were concurrent."""
    return api.make_checkpoint(repo, proposal)
