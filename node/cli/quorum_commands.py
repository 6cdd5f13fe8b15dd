"""quorum: who must approve of checkpoints and removals."""

from typing import TYPE_CHECKING, Annotated

import typer

from node.cli.member_commands import KeptPermission, UserArgument
from node.cli.people import ID_WIDTH, person
from node.cli.repo_commands import RepoArgument
from node.cli.shared import JsonOption, client, print_answer, print_json, print_table

if TYPE_CHECKING:  # types of answers: `ravel --help` must be quick
    from ravel.types.quorums import ProposalView

quorum = typer.Typer(no_args_is_help=True, help="Set who must approve checkpoints and, optionally, removals.")

ProposalArgument = Annotated[
    str, typer.Argument(help="The proposal's id or a unique prefix, as `ravel quorum show` prints it.")
]


@quorum.command("set")
def set_quorum(
    context: typer.Context,
    repo: RepoArgument,
    signers: Annotated[
        list[str], typer.Option("--signer", help="A member who signs; repeat it for each signer.")
    ],
    threshold: Annotated[int, typer.Option(help="How many of the signers must approve.")],
    removals: Annotated[
        bool, typer.Option("--removals", help="Also require them for excluding and demoting members.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Set the signers. It binds anyone who becomes an admin after this: do it before you make admins."""
    print_answer(client(context).set_quorum(repo, signers, threshold, removals=removals), as_json=as_json)


@quorum.command("show")
def show(context: typer.Context, repo: RepoArgument, as_json: JsonOption = False) -> None:
    """Show the signers, and the latest proposals with their approvals."""
    answer = client(context).show_quorum(repo)
    if as_json:
        print_json(answer)
        return
    if not answer["quorums"]:
        print("no quorum is named: `ravel quorum set` names one")
    for one in answer["quorums"]:
        covers = "checkpoints and removals" if one["removals"] else "checkpoints"
        signers = ", ".join(map(person, one["signer_names"], one["signers"]))
        print(f"{one['threshold']} of {len(one['signers'])} approve of {covers}: {signers}")
    if answer["proposals"]:
        print_table(
            ("proposal", "kind", "about", "approvals", "missing", "state"),
            (
                (
                    one["proposal"][:12],
                    one["kind"],
                    _subject(one),
                    len(one["approved_by"]),
                    one["missing"],
                    one["state"],
                )
                for one in answer["proposals"]
            ),
        )


def _subject(one: "ProposalView") -> str:
    branch = one.get("branch")
    return branch[:ID_WIDTH] if branch else person(one["user_name"], one["user"])


@quorum.command("propose-removal")
def propose_removal(
    context: typer.Context,
    repo: RepoArgument,
    user: UserArgument,
    keep: Annotated[
        KeptPermission | None,
        typer.Option("--keep", help="The permission that the member keeps (default: none)."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Propose to exclude or demote a member. Once approved, run `ravel member exclude` or `revoke`."""
    kept = keep.value if keep is not None else ""
    print_answer(client(context).propose_removal(repo, user, keeps=kept), as_json=as_json)


@quorum.command("approve")
def approve(
    context: typer.Context, repo: RepoArgument, proposal: ProposalArgument, as_json: JsonOption = False
) -> None:
    """Sign a proposal. The last signature that a checkpoint lacks makes it."""
    print_answer(client(context).approve_proposal(repo, proposal), as_json=as_json)


@quorum.command("finish")
def finish(
    context: typer.Context, repo: RepoArgument, proposal: ProposalArgument, as_json: JsonOption = False
) -> None:
    """Write the checkpoint of a proposal whose last approvals were concurrent."""
    print_answer(client(context).make_checkpoint(repo, proposal), as_json=as_json)
