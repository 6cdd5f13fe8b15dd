"""reply, edit, delete, post: what people do with posts beside writing them."""

from typing import TYPE_CHECKING, Annotated

import typer

from node.cli import words
from node.cli.answers import Table, prints, short
from node.cli.commit_view import kind_line
from node.cli.shared import YesOption, confirm, say
from node.cli.uploads import FilesOption, attach_files
from node.cli.wording import author_of, check_text, first_line, lack_said, named_text, post_text, time_of

if TYPE_CHECKING:  # types of answers: `ravel --help` must be quick
    from ravel import Client
    from ravel.types.posts import HiddenPost, PostVersions, Thread, WrittenPost

post = typer.Typer(no_args_is_help=True, help="Show threads and versions of posts; hide posts.")

PostArgument = Annotated[
    str, typer.Argument(help="The post: its commit's id or a unique prefix, as `ravel log` shows it.")
]
PlainOption = Annotated[bool, typer.Option("--plain", help="Take the text as it is: @NAME mentions nobody.")]
_TEXT_WIDTH = 72
_SHOWN = 100
_SHOWN_MAX = 1000
LimitOption = Annotated[int, typer.Option(min=1, max=_SHOWN_MAX, help="Number of commits.")]


@prints(words.REPLIED)
def reply(
    api: "Client",
    commit: PostArgument,
    text: Annotated[
        str, typer.Argument(help="The reply. @NAME mentions a member, as does @[NAME WITH SPACES].")
    ],
    plain: PlainOption = False,
    files: FilesOption = None,
) -> "WrittenPost":
    """Reply to a post, in its branch. `ravel post thread` shows the thread."""
    check_text(text)
    attachments = attach_files(api, api.show_commit(commit)["branch"], files) if files else []
    return api.reply_to_post(commit, text, resolve_mentions=not plain, attachments=attachments)


@prints(words.EDITED)
def edit(
    api: "Client",
    commit: PostArgument,
    text: Annotated[str, typer.Argument(help="The new text, whole. @NAME mentions a member.")],
    plain: PlainOption = False,
) -> "WrittenPost":
    """Give a post of your own another text, also from another of your devices.

    Earlier texts stay readable (`ravel post history`) until the branch is compacted. Older nodes show the edit as a post.
    """
    check_text(text)
    return api.edit_post(commit, text, resolve_mentions=not plain)


@prints(words.DELETED)
def delete(api: "Client", commit: PostArgument, yes: YesOption = False) -> "WrittenPost":
    """Delete a post of your own, for good, and remove its files. No edit brings it back.

    It leaves the timelines. Members can still read it with `ravel post history`, and older nodes show it, until the
    branch is compacted and each node has erased it.
    """

    def question() -> str:
        text = first_line(api.show_commit(commit).get("text"), _TEXT_WIDTH)
        return f"No edit brings the post {text or commit!r} back. Delete it?"

    confirm(question, yes=yes)
    return api.delete_post(commit)


@post.command("hide")
@prints(words.HIDDEN)
def hide(api: "Client", commit: PostArgument) -> "HiddenPost":
    """Hide a post from all members' timelines, as an admin. Its history stays readable; older nodes show it."""
    return api.hide_post(commit, hidden=True)


@post.command("unhide")
@prints(words.SHOWN)
def unhide(api: "Client", commit: PostArgument) -> "HiddenPost":
    """Show a hidden post again, as an admin."""
    return api.hide_post(commit, hidden=False)


def _print_versions(answer: "PostVersions") -> None:
    Table(
        "versions",
        short("commit"),
        ("time", time_of("time")),
        ("author", author_of),
        "version",
        (
            "text",
            lambda item: (
                first_line(named_text(item), _TEXT_WIDTH)
                or (f"({lack})" if (lack := lack_said(item)) else "")
            ),
        ),
    )(answer)
    if answer["previous"]:
        say(f"note: there are earlier versions: --before {answer['previous'][:12]}")


@post.command("history")
@prints(_print_versions)
def history(
    api: "Client",
    commit: PostArgument,
    limit: LimitOption = _SHOWN,
    before: Annotated[str, typer.Option(help="Show the versions before this commit.")] = "",
) -> "PostVersions":
    """Show what a post said over time, also if it was deleted or hidden. The last edit counts."""
    return api.show_versions(commit, limit=limit, before=before)


def _print_thread(answer: "Thread") -> None:
    Table(
        "items",
        short("commit"),
        ("time", time_of("time")),
        ("author", author_of),
        ("text", lambda item: post_text(item, _TEXT_WIDTH) or kind_line(item)),
    )(answer)
    if answer["next"]:
        say(f"note: the thread goes on: --after {answer['next'][:12]}")


@post.command("thread")
@prints(_print_thread)
def thread(
    api: "Client",
    commit: PostArgument,
    limit: LimitOption = _SHOWN,
    after: Annotated[str, typer.Option(help="Show the replies after this commit.")] = "",
) -> "Thread":
    """Show the thread that a post begins or is in: the first post, and the replies in the order of the timeline."""
    return api.show_thread(commit, limit=limit, after=after)
