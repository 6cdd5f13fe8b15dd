"""branch, tag, write, log, show, why: branches, their timelines, single commits and their names."""

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from node.cli import words
from node.cli.answers import Fields, Outcome, Table, prints, short
from node.cli.commit_view import CommitPrinter, VerdictPrinter, kind_line
from node.cli.completion import complete_branches
from node.cli.inputs import read_input, unix_moment, write_lines
from node.cli.links import capability_outcome, print_link
from node.cli.printing import id_text_shown, is_terminal, is_verbose, say_wrapped
from node.cli.repo_commands import RepoArgument
from node.cli.shared import LocalOption, YesOption, confirm, say
from node.cli.syncing import say_where
from node.cli.timeline_view import print_arriving, print_days, with_changes
from node.cli.uploads import FilesOption, attach_files
from node.cli.wording import (
    author,
    author_of,
    check_text,
    post_text,
    time_of,
    with_branch_names,
    without_attached,
)
from node.runtime.errors import ServiceError
from node.runtime.language import in_language
from node.runtime.wording import counted
from protocol.limits.formats import TEXT_SIZE_MAX
from protocol.limits.users import POSTS_COUNT_MAX

if TYPE_CHECKING:  # types of answers: `ravel --help` must be quick
    from collections.abc import Mapping, Sequence

    from ravel import Client
    from ravel.types.branches import BranchList, BranchView, CompactionResult, MergeResult
    from ravel.types.commits import CommitView, VerdictView, VoidList
    from ravel.types.members import MemberChangeView, MembershipChange
    from ravel.types.quorums import Proposal
    from ravel.types.timelines import BranchState, PastCommits, TimelineDigest, TimelineWindow
    from ravel.types.values import RootCommit

branch = typer.Typer(
    no_args_is_help=True, help="Create, list, fork and merge branches; show and adopt revoked commits."
)
tag = typer.Typer(no_args_is_help=True, help="Tags: movable names of single commits.")

BranchArgument = Annotated[
    str,
    typer.Argument(
        help="Name, REPO:NAME, id, or unique prefix of an id. Where it may be left out: main of the repo in use, or of the "
        "only one.",
        autocompletion=complete_branches,
    ),
]
_TEXT_WIDTH = 72
_SHOWN = 20
_SHOWN_MAX = 1000
_END = 1 << 53
"""A position behind all others."""


@branch.command("create")
@prints(words.BRANCH_CREATED)
def create(api: "Client", repo: RepoArgument, name: str) -> "BranchView":
    """Add a branch to a repo."""
    return api.create_branch(repo, name)


@branch.command("checkpoint")
@prints(words.CHECKPOINT_PROPOSED)
def checkpoint(api: "Client", branch: BranchArgument) -> "Proposal":
    """Propose a checkpoint of a branch as it is now; signers approve it with `ravel quorum approve`.

    What the checkpoint does not have in its past stands after it from then on, whenever it was written.
    """
    return api.propose_checkpoint(branch)


@branch.command("compact")
@prints(words.BRANCH_COMPACTED)
def compact(
    api: "Client",
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
    yes: YesOption = False,
) -> "CompactionResult":
    """Release the bodies that the branch has so far, on all nodes. Its set, dict and text keep their content.

    Each node erases them when it likes: `ravel gc`, with erase_after_days in its configuration. Erased posts cannot be read
    again. Order, authors and signatures stay, and can be checked.
    """
    if not dry_run:
        confirm(f"Posts that {branch} has so far will be erased on all computers. Compact {branch}?", yes=yes)
    return api.compact_branch(branch, dry_run=dry_run, without_missing=without_missing)


@branch.command("list")
@prints(
    Table(
        "branches",
        "name",
        "commits",
        ("waiting", lambda item: item["pending"] or ""),
        ("void", lambda item: item["void"] or ""),
        ("main", lambda item: item["main"] or ""),
        short("branch"),
        more=(("heads", "head_count"), ("of a newer format", "unread"), "rejected"),
    )
)
def list_branches(
    api: "Client",
    repo: RepoArgument = "",
    everything: Annotated[bool, typer.Option("--all", help="Include archived branches.")] = False,
) -> "BranchList":
    """List the branches of a repo."""
    answer = api.list_branches(repo)
    if not everything:
        answer["branches"] = [item for item in answer["branches"] if not item["archived"]]
    return answer


@branch.command("rename")
@prints(words.BRANCH_RENAMED)
def rename(api: "Client", branch: BranchArgument, name: str) -> "RootCommit":
    """Rename a branch for all members."""
    return api.edit_branch(branch, name=name)


@branch.command("main")
@prints(words.MAIN_POINTED)
def main(api: "Client", branch: BranchArgument) -> "RootCommit":
    """Point main at a branch, for all members: from then on the name `main` means this one.

    The earlier one keeps its name in lists and what it has, its comments and links too; name it by its id, or rename it.
    """
    return api.point_main(branch)


@branch.command("fork")
@prints(words.BRANCH_FORKED)
def fork(
    api: "Client",
    branch: BranchArgument,
    name: Annotated[str, typer.Argument(help="Of the new branch.")],
    at: Annotated[str, typer.Option(help="The commit to continue; by default the branch's heads.")] = "",
) -> "BranchView":
    """Create a branch that continues another from one of its commits. `ravel log --whole` shows both."""
    return api.fork_branch(branch, name, commit=at)


def print_merge(shown: "tuple[MergeResult, str]") -> None:
    """Print what a merge wrote into a branch. Print on stderr what it left out, and what to do about it."""
    answer, target = shown
    names, left = answer["files_left"], answer["left"]
    if answer["commit"] is not None:
        words.MERGED({**answer, "target": target})
    elif names or left:
        say_wrapped("Nothing was merged.")
    else:
        say_wrapped("Nothing to merge: the target has it all.")
    if left:
        say(f"note: {counted(left, 'commit')} too large to be carried with the origin, or not readable")
    if names:
        say(
            f"note: not carried, since other keys encrypt them: {', '.join(names)}. "
            "Save them with `ravel file get` and add them with `ravel file add`"
        )


@branch.command("merge")
@prints(print_merge)
def merge(
    api: "Client",
    source: Annotated[
        str,
        typer.Argument(
            help="The branch to merge from: name, id or prefix.", autocompletion=complete_branches
        ),
    ],
    target: Annotated[
        str, typer.Argument(help="The branch to merge into.", autocompletion=complete_branches)
    ],
) -> Outcome:
    """Merge a branch into another. One must continue the other, or both the same branch.

    What the target does not have yet is written there again, by you, each commit with its origin. Merging once more
    takes only what is new since.
    """
    answer = api.merge_branch(target, source)
    return Outcome(answer, shown=(answer, target))


@branch.command("capability")
@prints(print_link)
def capability(api: "Client", branch: BranchArgument, local: LocalOption = False) -> Outcome:
    """Print the branch's read capability. It is a secret: anyone who has it reads this branch, unseen by members.

    It tells nothing of the repo's other branches or members, and opens what follows until the repo is renewed, or
    somebody is excluded from it.
    """
    about = "Whoever has this link reads the branch, until the repo is renewed. Send it by a channel that you trust."
    return capability_outcome(api, api.share_branch(branch), about, local=local)


@branch.command("archive")
@prints(words.BRANCH_ARCHIVED)
def archive(
    api: "Client",
    branch: BranchArgument,
    undo: Annotated[bool, typer.Option("--undo", help="Undo it.")] = False,
) -> "RootCommit":
    """Archive a branch for all members. Lists omit it; nothing is deleted, and it stays writable."""
    return api.edit_branch(branch, archived=not undo)


@branch.command("voids")
@prints(Table("voids", short("commit"), ("author", author), "rule", "reason"))
def voids(api: "Client", branch: BranchArgument) -> "VoidList":
    """List revoked (void) commits: accepted once, and out of the timeline since their author's rights ended."""
    return api.list_voids(branch)


@branch.command("adopt")
@prints(words.BRANCH_ADOPTED)
def adopt(
    api: "Client",
    branch: BranchArgument,
    commits: Annotated[list[str], typer.Argument(help="Void commits, by id or unique prefix.")],
) -> "MembershipChange":
    """Make revoked commits count again, so that honest work is not lost with its author."""
    return api.adopt_commits(branch, commits)


@tag.command("set")
@prints(words.TAG_SET)
def set_tag(api: "Client", repo: RepoArgument, name: str, commit: str) -> "RootCommit":
    """Tag a commit of one of the repo's branches, or move the tag to it."""
    return api.set_tag(repo, name, commit)


@tag.command("list")
@prints(
    Table(
        "tags",
        "name",
        short("commit"),
        ("branch", lambda item: item["branch_name"] or id_text_shown(item["branch"])),
    )
)
def list_tags(api: "Client", repo: RepoArgument = "") -> Outcome:
    """List the tags of a repo. `ravel log BRANCH --at NAME` shows a branch as it was there."""
    answer = api.list_tags(repo)
    return Outcome(answer, shown={"tags": with_branch_names(api, repo, answer["tags"])})


@tag.command("rm")
@prints(words.TAG_REMOVED)
def remove_tag(api: "Client", repo: RepoArgument, name: str) -> "RootCommit":
    """Delete a tag; the commit stays."""
    return api.remove_tag(repo, name)


@prints(CommitPrinter())
def show(
    api: "Client", commit: Annotated[str, typer.Argument(help="A commit's id or a unique prefix.")]
) -> "CommitView":
    """Show one commit: its references, position, content and verdict."""
    return api.show_commit(commit)


@prints(VerdictPrinter())
def why(
    api: "Client", commit: Annotated[str, typer.Argument(help="A commit's id or a unique prefix.")]
) -> "VerdictView":
    """Explain the verdict on a commit: accepted, void (revoked), pending or rejected, by which rule and commits."""
    return api.explain_verdict(commit)


@prints(words.WRITTEN)
def write(
    api: "Client",
    branch: BranchArgument,
    text: Annotated[str, typer.Argument(help="The post. `-` reads standard input: each line is a post.")],
    plain: Annotated[
        bool, typer.Option("--plain", help="Take the text as it is: @NAME mentions nobody.")
    ] = False,
    whole: Annotated[
        bool, typer.Option("--whole", help="With -: take all of standard input as one post of several lines.")
    ] = False,
    files: FilesOption = None,
) -> "Mapping[str, object] | Outcome":
    """Write a post, with files or without. It is durable when the command returns, and follows everything that this node has
    seen.

    @NAME mentions a member, as does @[NAME WITH SPACES]: others see the name that they know. Lines of standard input stay
    as they are.
    """
    if whole:
        text = (
            read_input("-", 4 * TEXT_SIZE_MAX).decode("utf-8-sig", "replace").rstrip("\n")
            if text == "-"
            else text
        )
    elif text == "-":
        if files:
            raise ServiceError("bad_request", "files go with one post", "say --whole")
        return write_lines(lambda texts: api.write_posts(branch, texts), "post", POSTS_COUNT_MAX)
    check_text(text)
    attachments = attach_files(api, branch, files) if files else []
    answer = api.write_post(branch, text, resolve_mentions=not plain, attachments=attachments)
    where = say_where(api, answer["branch"]) if is_terminal() else ""
    return Outcome(answer, shown={**answer, "where": where})


_TIMELINE = Table(
    "items",
    ("position", lambda item: item.get("position", "")),
    short("commit"),
    "rank",
    ("time", time_of("time")),
    ("author", author_of),
    ("text", lambda item: post_text(item, _TEXT_WIDTH) or kind_line(item)),
)


class _TimelinePrinter:
    """Printer of a timeline: by days on a terminal, as a table in a pipe and where all is asked for."""

    has_more = True

    def __call__(self, answer: "Mapping[str, Any]") -> None:
        """Print it."""
        if "digest" in answer:
            _DIGEST(answer)
        elif is_terminal() and not is_verbose():
            items = with_changes(
                without_attached(answer["items"]),
                answer["changes"](),
                is_end=answer.get("next") is None and "at" not in answer,
            )
            if not items and answer["is_since"]:
                print(in_language("Nothing was written since then."))
            elif items or not answer.get("arriving", {"items": ()})["items"]:
                print_days(items, _line)
            if "arriving" in answer:
                print_arriving(answer["arriving"], _line)
        else:
            arriving = answer.get("arriving", {"items": ()})
            _TIMELINE({**answer, "items": [*without_attached(answer["items"]), *arriving["items"]]})
        if answer.get("is_since") and answer["next"] is not None:
            say(f"note: there may be more: --by-time --after={answer['next']}")


def _line(item: Any) -> str:  # noqa: ANN401  # a CommitItem, or a row of members, which has a `change`
    return item.get("change") or post_text(item, 2 * _TEXT_WIDTH) or kind_line(item)


_DIGEST = Fields("digest", ("commits of the branch", "commits"), ("heads", "head_count"))


@prints(_TimelinePrinter())
def log(
    api: "Client",
    branch: BranchArgument = "",
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
    since: Annotated[
        str | None,
        typer.Option(help="Show what was written from a day on, in the order by time: 2026-11-01, 7d."),
    ] = None,
    digest: Annotated[
        bool, typer.Option("--digest", help="Print the digest of the whole timeline instead.")
    ] = False,
    at: Annotated[
        str, typer.Option(help="Show the branch as it was at this commit: the end of the commit's history.")
    ] = "",
    whole: Annotated[
        bool, typer.Option("--whole", help="Include what the branch continues, if it is a fork.")
    ] = False,
) -> "TimelineDigest | Outcome":
    """Show the end of a branch's timeline, in the order that all nodes agree on.

    On a terminal, who came, left or has another name stands between the commits.

    Positions count from 0: `--from 100 --to 120` are twenty commits, `--to 120` those before, `--from 100` those after.
    """
    if (after or before) and not by_time:
        raise ServiceError(
            "bad_request", "--after and --before go with --by-time", "positions are --from and --to"
        )
    given = {
        "--digest": digest,
        "--whole": whole,
        "--at": bool(at),
        "--by-time": by_time and since is None,
        "--since": since is not None,
        "--from and --to": start is not None or end is not None,
    }
    if len(chosen := [name for name, is_given in given.items() if is_given]) > 1:
        raise ServiceError(
            "bad_request", f"{chosen[0]} shows something else than {chosen[1]}", "give one of them"
        )
    if digest:
        return api.show_digest(branch)
    shown = limit or _SHOWN
    moment = None if since is None else unix_moment(since, int(time.time()))
    answer: BranchState | PastCommits | TimelineWindow
    if whole:
        answer = api.show_state(branch, limit=shown)
    elif at:
        answer = api.show_past(branch, at, limit=shown)
    elif moment is not None:
        answer = api.show_timeline(branch, order="time", limit=shown, since=moment)
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
    # A terminal alone asks for them: for scripts they are an answer of their own.
    shown_too = {"changes": lambda: _changes(api, branch, answer, moment), "is_since": moment is not None}
    return Outcome(answer, shown={**answer, **shown_too})


def _changes(
    api: "Client", branch: str, answer: "BranchState | PastCommits | TimelineWindow", moment: int | None
) -> "Sequence[MemberChangeView]":
    """List changes of members since a moment, or since the first commit that is shown.

    Costs a request for each repo before the branch's.
    """
    found = api.show_state(branch, limit=1)["branch"]
    times = [one["time"] for one in answer["items"]]
    first = 0 if answer.get("previous", 0) is None else max(min(times, default=0), 0)
    since = first if moment is None else moment
    for repo in api.list_repos()["repos"]:
        if repo["permission"] != "joining" and any(
            one["branch"] == found for one in api.list_branches(repo["repo"])["branches"]
        ):
            return api.list_member_changes(repo["repo"], since=since)["changes"]
    return []  # a branch that is followed by itself
