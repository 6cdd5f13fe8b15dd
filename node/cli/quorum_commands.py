"""quorum: who must approve of checkpoints and removals."""

from typing import Annotated

import typer

from node.cli.member_commands import KeptPermission, UserArgument
from node.cli.repo_commands import RepoArgument
from node.cli.shared import JsonOption, client, print_answer, print_json, print_table

quorum = typer.Typer(
    no_args_is_help=True, help="Signers whose approval checkpoints, and removals if they are to, need."
)

ProposalArgument = Annotated[
    str, typer.Argument(help="The proposal's id or a unique prefix, as `ravel quorum show` prints it.")
]


@quorum.command("set")
def set_quorum(
    context: typer.Context,
    repo: RepoArgument,
    signers: Annotated[list[str], typer.Option("--signer", help="A member; once for each signer.")],
    threshold: Annotated[int, typer.Option(help="How many of the signers must approve.")],
    removals: Annotated[
        bool, typer.Option("--removals", help="Excluding and demoting other members needs them too.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Name the signers. It binds anyone who becomes an admin after this: do it before you make admins."""
    print_answer(client(context).quorums.name(repo, signers, threshold, removals=removals), as_json=as_json)


@quorum.command("show")
def show(context: typer.Context, repo: RepoArgument, as_json: JsonOption = False) -> None:
    """Show who must approve, and the latest proposals with their approvals."""
    answer = client(context).quorums.show(repo)
    if as_json:
        print_json(answer)
        return
    if not answer["quorums"]:
        print("no quorum is named: `ravel quorum set` names one")
    for one in answer["quorums"]:
        covers = "checkpoints and removals" if one["removals"] else "checkpoints"
        signers = ", ".join(user[:12] for user in one["signers"])
        print(f"{one['threshold']} of {len(one['signers'])} approve of {covers}: {signers}")
    if answer["proposals"]:
        print_table(
            ("proposal", "kind", "about", "approvals", "missing", "state"),
            (
                (
                    one["proposal"][:12],
                    one["kind"],
                    (one.get("branch") or one["user"])[:12],
                    len(one["approved_by"]),
                    one["missing"],
                    one["state"],
                )
                for one in answer["proposals"]
            ),
        )


@quorum.command("propose-removal")
def propose_removal(
    context: typer.Context,
    repo: RepoArgument,
    user: UserArgument,
    keep: Annotated[
        KeptPermission | None, typer.Option("--keep", help="What the member keeps (default: nothing).")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Ask the signers to exclude or demote a member; `ravel member exclude` or `revoke` does it when they have."""
    kept = keep.value if keep is not None else ""
    print_answer(client(context).quorums.propose_removal(repo, user, kept), as_json=as_json)


@quorum.command("approve")
def approve(
    context: typer.Context, repo: RepoArgument, proposal: ProposalArgument, as_json: JsonOption = False
) -> None:
    """Sign a proposal. The last signature that a checkpoint lacks makes it."""
    print_answer(client(context).quorums.approve(repo, proposal), as_json=as_json)


@quorum.command("finish")
def finish(
    context: typer.Context, repo: RepoArgument, proposal: ProposalArgument, as_json: JsonOption = False
) -> None:
    """Make a checkpoint whose last signatures were given at the same time."""
    print_answer(client(context).quorums.finish(repo, proposal), as_json=as_json)
