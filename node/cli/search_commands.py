"""CLI: search: posts, names of files, texts, and names of branches and tags that have some words."""

import re
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from node.cli.answers import Table, prints, short
from node.cli.shared import say
from node.cli.wording import author_of, first_line, named_text, parse_duration, time_of
from node.runtime.errors import ServiceError
from node.runtime.wording import counted

if TYPE_CHECKING:  # types of answers: `ravel --help` must be quick
    from ravel import Client
    from ravel.types.search import SearchResult

_TEXT_WIDTH = 100
_SHOWN = 20
_SHOWN_MAX = 100
_TIME_HELP = "A date in UTC such as 2026-01-31, or a time ago such as 12h or 7d."


def _print_found(answer: "SearchResult") -> None:
    if answer["names"]:
        named = ("id", lambda one: one.get("commit", one["branch"])[:12])
        Table("names", "kind", "name", ("repo", "repo_name"), named)(answer)
        print()
    Table(
        "hits",
        short("commit"),
        ("time", time_of("time")),
        ("author", author_of),
        ("branch", lambda one: f"{one['repo_name']}:{one['branch_name']}"),
        (
            "text",
            lambda one: first_line(" ".join(named_text(one).split()) or ", ".join(one["files"]), _TEXT_WIDTH),
        ),
        ("root", lambda one: ", ".join(text["root"] for text in one.get("texts", []))),
    )(answer)
    index = answer["index"]
    if index["state"] == "building":
        say(f"note: the index is being made ({index['percent']} %): more may be found later")
    if index["texts_due"]:
        due = counted(index["texts_due"], "text")
        say(
            f"note: {due} {'is' if index['texts_due'] == 1 else 'are'} to be read anew: more may be found later"
        )
    if answer["next"]:
        say(f"note: there may be more: --after={answer['next']}")


@prints(_print_found)
def search(
    api: "Client",
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
) -> "SearchResult":
    """Search posts, names of files, texts, and names of branches and tags of all repos here. The latest come first.

    A post is found by what it says now, not by what it said before an edit. Sets and dicts are not searched. Of a text, the
    last column names what `ravel text pull BRANCH --root NAME` prints.
    """
    return api.search(
        text=" ".join(text),
        repo=repo,
        branch=branch,
        author=author,
        since=search_moment(since),
        until=search_moment(until, is_end=True),
        limit=limit,
        after=after,
    )


def search_moment(text: str, *, is_end: bool = False) -> int | None:
    """Return the Unix seconds of a date or a time ago; its last second of a date that `is_end`. Raises ServiceError."""
    if not text:
        return None
    try:
        if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text) is None:
            return max(0, int(time.time()) - parse_duration(text))
        day = datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
    except (ServiceError, ValueError):
        raise ServiceError("bad_request", f"{text!r} is no date", "say 2026-01-31, 12h or 7d") from None
    return max(0, int(day.timestamp())) + (86_399 if is_end else 0)
