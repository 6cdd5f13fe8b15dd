"""member: who is in a repo, and what they may do."""

import sys
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated

import typer

from node.cli.people import person
from node.cli.repo_commands import RepoArgument
from node.cli.shared import JsonOption, client, iso_time, print_answer, print_json, print_table

member = typer.Typer(no_args_is_help=True, help="Members of a repo, their rights, and invitations.")

_ID_WIDTH = 12
_LABELS = {"voided": "void or again counted"}
"""Fields that have another name for people."""
UserArgument = Annotated[
    str, typer.Argument(help="The member's name, id, or a unique prefix of it; `ravel id` prints it there.")
]


class GrantedPermission(StrEnum):
    """What a member may hold; each includes those before it."""

    READ = "read"
    WRITE = "write"
    MANAGE = "manage"
    ADMIN = "admin"
    OWNER = "owner"


class KeptPermission(StrEnum):
    """What a member may be taken down to."""

    READ = "read"
    WRITE = "write"
    MANAGE = "manage"
    ADMIN = "admin"


@member.command("list")
def list_members(context: typer.Context, repo: RepoArgument, as_json: JsonOption = False) -> None:
    """List the members of a repo and their permissions. Devices of one person stand together."""
    answer = client(context).list_members(repo)
    if as_json:
        print_json(answer)
        return
    print_table(
        ("user", "permission", "device of", "name"),
        (
            (
                item["user"],
                item["permission"],
                "" if item["person"] == item["user"] else item["person"][:_ID_WIDTH],
                item["name"],
            )
            for item in answer["members"]
        ),
    )


@member.command("grant")
def grant(
    context: typer.Context,
    repo: RepoArgument,
    user: UserArgument,
    permission: GrantedPermission,
    as_json: JsonOption = False,
) -> None:
    """Give a user a permission. A user who only follows the repo becomes a member.

    This node hands the repo's current keys to who lacks them. Who does not have the repo yet needs an invitation (`ravel
    repo invite`) instead.
    """
    _print_change(client(context).grant_permission(repo, user, permission.value), as_json=as_json)


@member.command("revoke")
def revoke(
    context: typer.Context,
    repo: RepoArgument,
    user: UserArgument,
    keeps: Annotated[
        KeptPermission, typer.Option(help="The permission that the member keeps.")
    ] = KeptPermission.READ,
    as_json: JsonOption = False,
) -> None:
    """Lower a member's permission; the user stays a member. What the member writes without having seen it becomes void."""
    _print_change(client(context).remove_member(repo, user, keeps=keeps.value), as_json=as_json)


@member.command("exclude")
def exclude(
    context: typer.Context,
    repo: RepoArgument,
    user: UserArgument,
    person: Annotated[
        bool,
        typer.Option(
            "--person", help="Include all other devices of the same person, as `member list` shows them."
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Exclude a member. Its commits that no member has seen are revoked, and no new ones are accepted.

    The repo gets new secrets, sealed to each remaining member. The excluded keep what they could read before; they
    read, write and follow nothing after.
    """
    answer = client(context).remove_member(repo, user, person=person)
    others = answer["other_devices"]
    _print_change(answer if as_json else {**answer, "other_devices": len(others)}, as_json=as_json)
    if others and not as_json:
        again = f"ravel member exclude {repo} {others[0]}{' --person' if len(others) > 1 else ''}"
        print(f"note: that person has other devices, which are members still: {again}", file=sys.stderr)


@member.command("invitations")
def invitations(context: typer.Context, repo: RepoArgument, as_json: JsonOption = False) -> None:
    """List the invitations of a repo: author, permission, expiry and number of joins."""
    answer = client(context).list_invitations(repo)
    if as_json:
        print_json(answer)
        return
    print_table(
        ("invitation", "author", "permission", "joined", "expires", "revoked"),
        (
            (
                item["invitation"],
                person(item["author_name"], item["author"]),
                item["permission"],
                f"{len(item['joined'])} of {item['uses']}",
                iso_time(item["expires_at"]),
                "yes" if item["revoked"] else "no",
            )
            for item in answer["invitations"]
        ),
    )


@member.command("uninvite")
def uninvite(
    context: typer.Context,
    repo: RepoArgument,
    invitation: Annotated[str, typer.Argument(help="Its id, as `ravel member invitations` lists it.")],
    as_json: JsonOption = False,
) -> None:
    """Revoke an invitation. Joins by it that this node has not seen do not count."""
    _print_change(client(context).revoke_invitation(repo, invitation), as_json=as_json)


def _print_change(answer: Mapping[str, object], *, as_json: bool) -> None:
    """A change of members: commits that became void by it, or count again."""
    print_answer(
        answer if as_json else {_LABELS.get(name, name): value for name, value in answer.items()},
        as_json=as_json,
    )
