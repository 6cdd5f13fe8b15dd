"""reply, edit, delete, post: what people do with posts beside writing them."""

from typing import Annotated

import typer

from node.cli.people import author_of
from node.cli.posts import check_text, named_text, post_text
from node.cli.shared import (
    JsonOption,
    client,
    first_line,
    iso_time,
    print_answer,
    print_json,
    print_table,
    say,
)

post = typer.Typer(no_args_is_help=True, help="Show threads and versions of posts; hide posts.")

PostArgument = Annotated[
    str, typer.Argument(help="The post: its commit's id or a unique prefix, as `ravel log` shows it.")
]
PlainOption = Annotated[bool, typer.Option("--plain", help="Take the text as it is: @NAME mentions nobody.")]
_TEXT_WIDTH = 72
_SHOWN = 100
_SHOWN_MAX = 1000
LimitOption = Annotated[int, typer.Option(min=1, max=_SHOWN_MAX, help="Number of commits.")]


def reply(
    context: typer.Context,
    commit: PostArgument,
    text: Annotated[
        str, typer.Argument(help="The reply. @NAME mentions a member, as does @[NAME WITH SPACES].")
    ],
    plain: PlainOption = False,
    as_json: JsonOption = False,
) -> None:
    """Reply to a post, in its branch. `ravel post thread` shows the thread."""
    check_text(text)
    answer = client(context).reply_to_post(commit, text, resolve_mentions=not plain)
    print_answer(answer, as_json=as_json)


def edit(
    context: typer.Context,
    commit: PostArgument,
    text: Annotated[str, typer.Argument(help="The new text, whole. @NAME mentions a member.")],
    plain: PlainOption = False,
    as_json: JsonOption = False,
) -> None:
    """Give a post of your own another text, also from another of your devices.

    Earlier texts stay readable (`ravel post history`) until the branch is compacted. Older nodes show the edit as a post.
    """
    check_text(text)
    answer = client(context).edit_post(commit, text, resolve_mentions=not plain)
    print_answer(answer, as_json=as_json)


def delete(context: typer.Context, commit: PostArgument, as_json: JsonOption = False) -> None:
    """Delete a post of your own, for good. No edit brings it back.

    It leaves the timelines. Members can still read it with `ravel post history`, and older nodes show it, until the
    branch is compacted and each node has erased it.
    """
    answer = client(context).delete_post(commit)
    print_answer(answer, as_json=as_json)
    if not as_json:
        say("note: it can be read in its history until the branch is compacted: `ravel branch compact`")


@post.command("hide")
def hide(context: typer.Context, commit: PostArgument, as_json: JsonOption = False) -> None:
    """Hide a post from all members' timelines, as an admin. Its history stays readable; older nodes show it."""
    answer = client(context).hide_post(commit, hidden=True)
    print_answer(answer, as_json=as_json)


@post.command("unhide")
def unhide(context: typer.Context, commit: PostArgument, as_json: JsonOption = False) -> None:
    """Show a hidden post again, as an admin."""
    answer = client(context).hide_post(commit, hidden=False)
    print_answer(answer, as_json=as_json)


@post.command("history")
def history(
    context: typer.Context,
    commit: PostArgument,
    limit: LimitOption = _SHOWN,
    before: Annotated[str, typer.Option(help="Show the versions before this commit.")] = "",
    as_json: JsonOption = False,
) -> None:
    """Show what a post said over time, also if it was deleted or hidden. The last edit counts."""
    answer = client(context).show_versions(commit, limit=limit, before=before)
    if as_json:
        print_json(answer)
        return
    print_table(
        ("commit", "time", "author", "version", "text"),
        (
            (
                item["commit"][:12],
                iso_time(item["time"]),
                author_of(item),
                item["version"],
                first_line(named_text(item), _TEXT_WIDTH) or ("(erased)" if item.get("erased") else ""),
            )
            for item in answer["versions"]
        ),
    )
    if answer["previous"]:
        say(f"note: there are earlier versions: --before {answer['previous'][:12]}")


@post.command("thread")
def thread(
    context: typer.Context,
    commit: PostArgument,
    limit: LimitOption = _SHOWN,
    after: Annotated[str, typer.Option(help="Show the replies after this commit.")] = "",
    as_json: JsonOption = False,
) -> None:
    """Show the thread that a post begins or is in: the first post, and the replies in the order of the timeline."""
    answer = client(context).show_thread(commit, limit=limit, after=after)
    if as_json:
        print_json(answer)
        return
    print_table(
        ("commit", "time", "author", "text"),
        (
            (
                item["commit"][:12],
                iso_time(item["time"]),
                author_of(item),
                post_text(item, _TEXT_WIDTH) or f"({item['kind']})",
            )
            for item in answer["items"]
        ),
    )
    if answer["next"]:
        say(f"note: the thread goes on: --after {answer['next'][:12]}")
