"""branch, write, log: branches and their timelines."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from node.cli.completion import complete_branches
from node.cli.lines import write_lines
from node.cli.people import author_of, person
from node.cli.posts import check_text, post_text
from node.cli.repo_commands import RepoArgument, show_capability
from node.cli.shared import (
    JsonOption,
    LocalOption,
    client,
    first_line,
    iso_time,
    print_answer,
    print_fields,
    print_json,
    print_table,
)
from node.runtime.errors import ServiceError
from node.runtime.wording import counted
from protocol.limits.users import POSTS_COUNT_MAX
from ravel.characters import display_safe

if TYPE_CHECKING:  # types of answers: `ravel --help` must be quick
    from ravel.types.branches import MergeResult
    from ravel.types.commits import CommitItem
    from ravel.types.timelines import BranchState, PastCommits, TimelineWindow

branch = typer.Typer(
    no_args_is_help=True, help="Create, list, fork and merge branches; show and adopt revoked commits."
)

BranchArgument = Annotated[
    str,
    typer.Argument(help="Name, REPO:NAME, id, or unique prefix of an id.", autocompletion=complete_branches),
]
_MERGE_FIELDS = ("branch", "merged", "commit", "carried")
_TEXT_WIDTH = 72
_SHOWN = 20
_SHOWN_MAX = 1000
_END = 1 << 53
"""Behind every position."""


@branch.command("create")
def create(context: typer.Context, repo: RepoArgument, name: str, as_json: JsonOption = False) -> None:
    """Add a branch to a repo."""
    answer = client(context).create_branch(repo, name)
    print_answer(answer, as_json=as_json)


@branch.command("checkpoint")
def checkpoint(context: typer.Context, branch: BranchArgument, as_json: JsonOption = False) -> None:
    """Propose a checkpoint of a branch as it is now; signers approve it with `ravel quorum approve`.

    What the checkpoint does not have in its past stands after it from then on, whenever it was written.
    """
    answer = client(context).propose_checkpoint(branch)
    print_answer(answer, as_json=as_json)


@branch.command("compact")
def compact(
    context: typer.Context,
    branch: BranchArgument,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be released, and write nothing.")
    ] = False,
    without_missing: Annotated[
        bool,
        typer.Option(
            "--without-missing",
            help="Also where bodies that the documents need are absent. All nodes lose their content.",
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Release the bodies that the branch has so far, on all nodes. Its set, dict and text keep their content.

    Each node erases them when it likes: `ravel gc`, with erase_after_days in its configuration. Erased posts cannot be read
    again. Order, authors and signatures stay, and can be checked.
    """
    answer = client(context).compact_branch(branch, dry_run=dry_run, without_missing=without_missing)
    print_answer(answer, as_json=as_json)


@branch.command("list")
def list_branches(
    context: typer.Context,
    repo: RepoArgument,
    everything: Annotated[bool, typer.Option("--all", help="Include archived branches.")] = False,
    as_json: JsonOption = False,
) -> None:
    """List the branches of a repo."""
    answer = client(context).list_branches(repo)
    if not everything:
        answer["branches"] = [item for item in answer["branches"] if not item["archived"]]
    if as_json:
        print_json(answer)
        return
    print_table(
        ("branch", "name", "commits", "heads", "pending", "unread", "void", "rejected"),
        (
            (
                item["branch"],
                item["name"],
                item["commits"],
                item["head_count"],
                item["pending"],
                item["unread"],
                item["void"],
                item["rejected"],
            )
            for item in answer["branches"]
        ),
    )


@branch.command("rename")
def rename(context: typer.Context, branch: BranchArgument, name: str, as_json: JsonOption = False) -> None:
    """Rename a branch for all members. To point `main` elsewhere, rename both."""
    answer = client(context).edit_branch(branch, name=name)
    print_answer(answer, as_json=as_json)


@branch.command("fork")
def fork(
    context: typer.Context,
    branch: BranchArgument,
    name: Annotated[str, typer.Argument(help="Of the new branch.")],
    at: Annotated[str, typer.Option(help="The commit to continue; by default the branch's heads.")] = "",
    as_json: JsonOption = False,
) -> None:
    """Create a branch that continues another from one of its commits. `ravel log --whole` shows both."""
    answer = client(context).fork_branch(branch, name, commit=at)
    print_answer(answer, as_json=as_json)


@branch.command("merge")
def merge(
    context: typer.Context,
    source: Annotated[
        str,
        typer.Argument(
            help="The branch to merge from: name, id or prefix.", autocompletion=complete_branches
        ),
    ],
    target: Annotated[
        str, typer.Argument(help="The branch to merge into.", autocompletion=complete_branches)
    ],
    as_json: JsonOption = False,
) -> None:
    """Merge a branch into another. One must continue the other, or both the same branch.

    What the target does not have yet is written there again, by you, each commit with its origin. Merging once more
    takes only what is new since.
    """
    print_merge(client(context).merge_branch(target, source), as_json=as_json)


def print_merge(answer: "MergeResult", *, as_json: bool) -> None:
    """Print what a merge wrote, and on stderr what it left and what to do about it."""
    if as_json:
        print_json(answer)
        return
    names, left = answer["files_left"], answer["left"]
    if answer["commit"] is not None:
        print_fields((name, value) for name, value in answer.items() if name in _MERGE_FIELDS)
    elif names or left:
        print("Nothing was merged.")
    else:
        print("Nothing to merge: the target has it all.")
    if left:
        print(
            f"note: {counted(left, 'commit')} too large to be carried with the origin, or not readable",
            file=sys.stderr,
        )
    if names:
        print(
            f"note: not carried, since other keys encrypt them: {display_safe(', '.join(names))}. "
            "Save them with `ravel file get` and add them with `ravel file add`",
            file=sys.stderr,
        )


@branch.command("capability")
def capability(
    context: typer.Context, branch: BranchArgument, local: LocalOption = False, as_json: JsonOption = False
) -> None:
    """Print the branch's read capability. It is a secret: anyone who has it reads this branch, unseen by members.

    It tells nothing of the repo's other branches or members, and opens what follows until the repo is renewed, or
    somebody is excluded from it.
    """
    show_capability(client(context).share_branch(branch), local=local, as_json=as_json)


@branch.command("archive")
def archive(
    context: typer.Context,
    branch: BranchArgument,
    undo: Annotated[bool, typer.Option("--undo", help="Undo it.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Archive a branch for all members. Lists omit it; nothing is deleted, and it stays writable."""
    answer = client(context).edit_branch(branch, archived=not undo)
    print_answer(answer, as_json=as_json)


@branch.command("voids")
def voids(context: typer.Context, branch: BranchArgument, as_json: JsonOption = False) -> None:
    """List revoked (void) commits: accepted once, and out of the timeline since their author's rights ended."""
    answer = client(context).list_voids(branch)
    if as_json:
        print_json(answer)
        return
    print_table(
        ("commit", "author", "rule", "reason"),
        (
            (item["commit"], person(item["author_name"], item["author"]), item["rule"], item["reason"])
            for item in answer["voids"]
        ),
    )


@branch.command("adopt")
def adopt(
    context: typer.Context,
    branch: BranchArgument,
    commits: Annotated[list[str], typer.Argument(help="Void commits, by id or unique prefix.")],
    as_json: JsonOption = False,
) -> None:
    """Make revoked commits count again, so that honest work is not lost with its author."""
    answer = client(context).adopt_commits(branch, commits)
    if as_json:
        print_json(answer)
        return
    back = answer["voided"]  # an adoption makes none void
    print_fields([("commit", answer["commit"]), ("repo", answer["repo"]), ("count again", back)])


def show(
    context: typer.Context,
    commit: Annotated[str, typer.Argument(help="A commit's id or a unique prefix.")],
    as_json: JsonOption = False,
) -> None:
    """Show one commit: its references, position, content and verdict."""
    answer = client(context).show_commit(commit)
    print_answer(answer, as_json=as_json)


def why(
    context: typer.Context,
    commit: Annotated[str, typer.Argument(help="A commit's id or a unique prefix.")],
    as_json: JsonOption = False,
) -> None:
    """Explain the verdict on a commit: accepted, void (revoked), pending or rejected, by which rule and commits."""
    answer = client(context).explain_verdict(commit)
    print_answer(answer, as_json=as_json)


def write(
    context: typer.Context,
    branch: BranchArgument,
    text: Annotated[str, typer.Argument(help="The post. `-` reads standard input: each line is a post.")],
    plain: Annotated[
        bool, typer.Option("--plain", help="Take the text as it is: @NAME mentions nobody.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Write a post. It is durable when the command returns, and follows everything that this node has seen.

    @NAME mentions a member, as does @[NAME WITH SPACES]: others see the name that they know. Lines of standard input stay
    as they are.
    """
    api = client(context)
    if text != "-":
        check_text(text)
        print_answer(api.write_post(branch, text, resolve_mentions=not plain), as_json=as_json)
        return
    write_lines(lambda texts: api.write_posts(branch, texts), "post", POSTS_COUNT_MAX, as_json=as_json)


def log(
    context: typer.Context,
    branch: BranchArgument,
    limit: Annotated[
        int | None, typer.Option(min=1, max=1000, help="Number of commits (default: 20).")
    ] = None,
    start: Annotated[
        int | None,
        typer.Option("--from", min=0, help="Start at this position instead of showing the last commits."),
    ] = None,
    end: Annotated[int | None, typer.Option("--to", min=0, help="Stop before this position.")] = None,
    by_time: Annotated[
        bool,
        typer.Option("--by-time", help="Use this node's order by time instead of the order of all nodes."),
    ] = False,
    after: Annotated[str, typer.Option(help="With --by-time: show what follows this commit.")] = "",
    before: Annotated[str, typer.Option(help="With --by-time: show what precedes this commit.")] = "",
    digest: Annotated[
        bool, typer.Option("--digest", help="Print the digest of the whole timeline instead.")
    ] = False,
    at: Annotated[
        str, typer.Option(help="Show the branch as it was at this commit: the end of the commit's history.")
    ] = "",
    whole: Annotated[
        bool, typer.Option("--whole", help="Include what the branch continues, if it is a fork.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Show the end of a branch's timeline, in the order that all nodes agree on.

    Positions count from 0: `--from 100 --to 120` are twenty commits, `--to 120` those before, `--from 100` those after.
    """
    api = client(context)
    if (after or before) and not by_time:
        raise ServiceError(
            "bad_request", "--after and --before go with --by-time", "positions are --from and --to"
        )
    if digest:
        found = api.show_digest(branch)
        print_json(found) if as_json else print_fields(
            [("digest", found["digest"]), ("commits", found["commits"]), ("heads", found["head_count"])]
        )
        return
    shown = limit or _SHOWN
    answer: BranchState | PastCommits | TimelineWindow
    if whole:
        answer = api.show_state(branch, limit=shown)
    elif at:
        answer = api.show_past(branch, at, limit=shown)
    elif by_time:
        answer = api.show_timeline(
            branch, order="time", limit=shown, after=after or None, before=before or None
        )
    elif start is None:
        answer = api.show_timeline(branch, before_position=_END if end is None else end, limit=shown)
    else:
        if end is not None:
            if end <= start:
                raise ServiceError("bad_request", "--to is not behind --from", "give a larger --to")
            shown = min(end - start, limit or _SHOWN_MAX)
        answer = api.show_timeline(branch, after_position=start - 1, limit=shown)
    if as_json:
        print_json(answer)
        return
    print_table(
        ("position", "commit", "rank", "time", "author", "text"),
        (
            (
                item.get("position", ""),
                item["commit"][:12],
                item["rank"],
                iso_time(item["time"]),
                author_of(item),
                post_text(item, _TEXT_WIDTH) or _kind(item),
            )
            for item in answer["items"]
        ),
    )


def _kind(item: "CommitItem") -> str:
    lacks = {
        "erased": item.get("erased"),
        "unreadable": item.get("unreadable"),
        "damaged": item.get("damaged"),
    }
    for name, holds in lacks.items():
        if holds:
            return f"({item['kind']}, {name})"
    named = ", ".join(item.get("files", ()))
    for said in (item.get("continues"), item.get("merged")):
        named = named or (f"{said['branch'][:12]} at {said['commits'][0][:12]}" if said else "")
    return first_line(f"({item['kind']}{': ' if named else ''}{named})", _TEXT_WIDTH)
