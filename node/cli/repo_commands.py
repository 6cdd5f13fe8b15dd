"""repo, member: repos and who is in them."""

import re
import sys
from enum import StrEnum
from typing import Annotated

import typer

from node.cli.shared import JsonOption, client, print_fields, print_json, print_table
from node.config import is_loopback
from node.errors import ServiceError

repo = typer.Typer(no_args_is_help=True, help="Create, share, join and list repos.")
member = typer.Typer(no_args_is_help=True, help="Members of a repo.")

RepoArgument = Annotated[str, typer.Argument(help="Name, id, or unique prefix of an id.")]
_LINK_LINE_SIZE_MAX = 16_384  # characters; a longer line is no link
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


class InvitedPermission(StrEnum):
    """What an invitation may grant."""

    READ = "read"
    WRITE = "write"


@repo.command("create")
def create(context: typer.Context, name: str, as_json: JsonOption = False) -> None:
    """Create a repo, with a branch called main."""
    answer = client(context).create_repo(name)
    print_json(answer) if as_json else print_fields(answer.items())


@repo.command("invite")
def invite(
    context: typer.Context,
    repo: RepoArgument,
    permission: Annotated[InvitedPermission, typer.Option(help="What it grants.")] = InvitedPermission.WRITE,
    expires: Annotated[str, typer.Option(help="How long it is valid: 30m, 12h, 7d.")] = "7d",
    as_json: JsonOption = False,
) -> None:
    """Print an invitation link. It is a secret: whoever has it can read the repo."""
    answer = client(context).invite(repo, permission.value, _seconds(expires))
    if as_json:
        print_json(answer)
        return
    print(answer["invitation"])
    if all(is_loopback(address) for address in answer["addresses"]):
        print(
            "note: the link works on this machine only; others need [network] listen or advertise set",
            file=sys.stderr,
        )


@repo.command("join")
def join(
    context: typer.Context,
    link: Annotated[str, typer.Argument(help="ravel:invite:..., or - to read it from standard input.")],
    as_json: JsonOption = False,
) -> None:
    """Join a repo by an invitation link, and replicate it from the peers that the link names.

    With - the link is read from standard input: arguments can be seen by every user of the machine.
    """
    if link == "-":
        link = sys.stdin.readline(_LINK_LINE_SIZE_MAX).strip()
    answer = client(context).join(link)
    if as_json:
        print_json(answer)
        return
    print_fields(answer.items())
    if answer["permission"] == "joining":
        print(
            "\nNo peer of the invitation has answered yet; the daemon goes on trying. `ravel status` shows how."
        )


@repo.command("list")
def list_repos(context: typer.Context, as_json: JsonOption = False) -> None:
    """List the repos of this node."""
    answer = client(context).list_repos()
    if as_json:
        print_json(answer)
        return
    columns = ("repo", "name", "permission", "branches", "commits")
    print_table(columns, ([item[column] for column in columns] for item in answer["repos"]))


@member.command("list")
def list_members(context: typer.Context, repo: RepoArgument, as_json: JsonOption = False) -> None:
    """List the members of a repo and what they may do."""
    answer = client(context).list_members(repo)
    if as_json:
        print_json(answer)
        return
    print_table(("user", "permission"), ((item["user"], item["permission"]) for item in answer["members"]))


def _seconds(text: str) -> int:
    found = re.fullmatch(r"([0-9]{1,6})([smhd])", text)
    if found is None or int(found[1]) == 0:
        raise ServiceError("bad_request", f"{text!r} is not a time", "say 30m, 12h or 7d")
    return int(found[1]) * _UNITS[found[2]]
