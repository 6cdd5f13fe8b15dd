"""CLI: search: posts, names of files, texts, and names of branches and tags that have some words."""

import re
import time
from datetime import UTC, datetime
from typing import Annotated

import typer

from node.cli.people import author_of
from node.cli.posts import named_text
from node.cli.repo_commands import seconds_of
from node.cli.shared import JsonOption, client, first_line, iso_time, print_json, print_table, say
from node.runtime.errors import ServiceError

_TEXT_WIDTH = 100
_SHOWN = 20
_SHOWN_MAX = 100
_TIME_HELP = "A date in UTC such as 2026-01-31, or a time ago such as 12h or 7d."


def search(
    context: typer.Context,
    text: Annotated[
        list[str],
        typer.Argument(help='The words; all must be there. "In quotes": in this order. BEGINNING*: any end.'),
    ],
    repo: Annotated[str, typer.Option("--repo", help="Search this repo alone.")] = "",
    branch: Annotated[str, typer.Option("--branch", help="Search this branch alone.")] = "",
    author: Annotated[str, typer.Option("--author", help="Only of this person: a name or an id.")] = "",
    since: Annotated[str, typer.Option("--since", help=f"Only what is shown since then. {_TIME_HELP}")] = "",
    until: Annotated[str, typer.Option("--until", help=f"Only what is shown until then. {_TIME_HELP}")] = "",
    limit: Annotated[int, typer.Option(min=1, max=_SHOWN_MAX, help="Number of hits.")] = _SHOWN,
    after: Annotated[str, typer.Option("--after", help="Go on after an earlier search, as that says.")] = "",
    as_json: JsonOption = False,
) -> None:
    """Search posts, names of files, texts, and names of branches and tags of all repos here. The latest come first.

    A post is found by what it says now, not by what it said before an edit. Sets and dicts are not searched. Of a text, the
    last column names what `ravel text pull BRANCH --root NAME` prints.
    """
    answer = client(context).search(
        text=" ".join(text),
        repo=repo,
        branch=branch,
        author=author,
        since=_seconds(since),
        until=_seconds(until, is_end=True),
        limit=limit,
        after=after,
    )
    if as_json:
        print_json(answer)
        return
    if answer["names"]:
        print_table(
            ("kind", "name", "repo", "id"),
            (
                (one["kind"], one["name"], one["repo_name"], one.get("commit", one["branch"])[:12])
                for one in answer["names"]
            ),
        )
        print()
    print_table(
        ("commit", "time", "author", "branch", "text", "root"),
        (
            (
                one["commit"][:12],
                iso_time(one["time"]),
                author_of(one),
                f"{one['repo_name']}:{one['branch_name']}",
                first_line(" ".join(named_text(one).split()) or ", ".join(one["files"]), _TEXT_WIDTH),
                ", ".join(text["root"] for text in one.get("texts", [])),
            )
            for one in answer["hits"]
        ),
    )
    if answer["index"]["state"] == "building":
        say(f"note: the index is being made ({answer['index']['percent']} %): more may be found later")
    if answer["index"]["texts_due"]:
        say(f"note: {answer['index']['texts_due']} texts are to be read anew: more may be found later")
    if answer["next"]:
        say(f"note: there may be more: --after={answer['next']}")


def _seconds(text: str, *, is_end: bool = False) -> int | None:
    """Unix seconds of a date or a time ago; of a date that `is_end`, its last. Raises ServiceError."""
    if not text:
        return None
    if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text) is None:
        return max(0, int(time.time()) - seconds_of(text))
    try:
        day = datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        raise ServiceError("bad_request", f"{text!r} is no date", "say 2026-01-31, 12h or 7d") from None
    return max(0, int(day.timestamp())) + (86_399 if is_end else 0)
