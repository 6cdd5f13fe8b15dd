"""CLI: JSON documents of a branch.

Each command imports the entries that it calls when it runs: `ravel --help` must be quick.
"""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from node.cli import words
from node.cli.answers import Outcome, Table, prints
from node.cli.branch_commands import BranchArgument
from node.cli.document_commands import NameOption
from node.cli.hints import command
from node.cli.inputs import read_input
from node.cli.shared import say
from node.runtime.errors import ServiceError
from node.runtime.wording import counted
from protocol.limits.users import QUERY_LIMIT_MAX, REQUEST_SIZE_MAX
from ravel.characters import display_safe

if TYPE_CHECKING:
    from ravel import Client
    from ravel.types.document_queries import FoundDocument
    from ravel.types.json_documents import JsonDocumentView, JsonEditResult

json_ = typer.Typer(no_args_is_help=True, help="JSON documents of a branch.")

PathArgument = Annotated[
    str,
    typer.Argument(
        metavar="PATH",
        help="Where: keys of maps, and places in lists from 0, with dots between them. Empty: the whole.",
    ),
]


def _print_value(view: "JsonDocumentView") -> None:
    shown = json.dumps(view["value"], ensure_ascii=False, indent=2)
    print("\n".join(map(display_safe, shown.split("\n"))))
    if view["conflict_count"]:
        say(f"{counted(view['conflict_count'], 'conflict')}: `--json` shows what was put beside it")
    if view["unplaced"]:
        say(f"{counted(len(view['unplaced']), 'item')} of no list: `--json` shows them")


@json_.command("get")
@prints(_print_value)
def get(api: "Client", branch: BranchArgument, name: NameOption = "") -> "JsonDocumentView":
    """Show a document's value."""
    found = api.follow_json_documents(branch, prefix=name, limit=1) if name else None
    if found and name not in [*(one["name"] for one in found["documents"]), *found["unreadable"]]:
        raise ServiceError(
            "not_found",
            f"no JSON document here is called {name!r}",
            f"`{command(f'json query {branch}')}` lists them; `json put` makes one",
        )
    return api.follow_json(branch, name=name)


@json_.command("put")
@prints(words.JSON_PUT)
def put(
    api: "Client",
    branch: BranchArgument,
    path: PathArgument,
    value: Annotated[str, typer.Argument(help="JSON; `-` reads it from standard input.")],
    name: NameOption = "",
) -> "JsonEditResult":
    """Put a value in place of what is there. Maps and lists are taken apart, so that others may edit inside."""
    edit = {"edit": "put", "path": _parse_path(api, branch, name, path), "value": _parse_value(value)}
    return api.edit_json(branch, [edit], name=name)


@json_.command("rm")
@prints(words.JSON_REMOVED)
def remove(
    api: "Client", branch: BranchArgument, path: PathArgument, name: NameOption = ""
) -> "JsonEditResult":
    """Remove a key of a map, or an item of a list."""
    return api.edit_json(
        branch, [{"edit": "remove", "path": _parse_path(api, branch, name, path)}], name=name
    )


@json_.command("query")
@prints(Table("documents", "name", ("value", lambda row: json.dumps(row["value"], ensure_ascii=False))))
def query(
    api: "Client",
    branch: BranchArgument,
    where: Annotated[str, typer.Option(help='A filter, such as \'{"due": {"$lt": "2026-04"}}\'.')] = "",
    sort: Annotated[str, typer.Option(help="Fields with commas between them, `-` in front to go down.")] = "",
    prefix: Annotated[str, typer.Option(help="Only names that begin so.")] = "",
    limit: Annotated[int, typer.Option(min=1, help="At most so many.")] = 100,
) -> Outcome:
    """Find documents by name and fields."""
    documents: list[FoundDocument] = []
    unreadable: list[str] = []
    cursor: str | None = ""
    # One more than wanted tells of the rest: a sorted answer has no cursor to tell it by.
    while cursor is not None and len(documents) <= limit:
        window = api.follow_json_documents(
            branch,
            prefix=prefix,
            where=where,
            sort=sort,
            cursor=cursor,
            limit=min(limit + 1 - len(documents), QUERY_LIMIT_MAX),
        )
        documents += window["documents"]
        unreadable += window["unreadable"]
        cursor = window["cursor"]
    if unreadable:
        say(f"cannot be read now: {', '.join(unreadable)}")
    has_more = len(documents) > limit
    if has_more:
        say(f"note: there are more than {limit}: --limit")
    return Outcome({"documents": documents[:limit], "unreadable": unreadable, "more": has_more})


def _parse_value(text: str) -> object:
    content = read_input("-", REQUEST_SIZE_MAX) if text == "-" else text
    try:
        return json.loads(content, object_pairs_hook=_without_repeats)
    except (ValueError, RecursionError) as error:
        raise ServiceError(
            "bad_input", f"the value is no JSON: {error}", "a text stands in quotes: '\"Buy tea\"'"
        ) from None


def _without_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return a map. Raises ValueError for a key that stands twice, of which one value would be lost."""
    found = dict(pairs)
    if len(found) < len(pairs):
        repeated = next(key for number, (key, _) in enumerate(pairs) if key in dict(pairs[:number]))
        raise ValueError(f"the key {repeated!r} stands twice in one object")
    return found


def _parse_path(api: "Client", branch: str, name: str, text: str) -> list[str | int]:
    """Return a path; what names a place is told by the document, since a map may have numbers as keys."""
    parts = text.split(".") if text else []
    if not any(part.isdecimal() for part in parts):
        return list(parts)
    value: Any = api.follow_json(branch, name=name)["value"]
    path: list[str | int] = []
    for part in parts:
        key = int(part) if isinstance(value, list) and part.isdecimal() else part
        path.append(key)
        if isinstance(value, list) and isinstance(key, int):
            value = value[key] if key < len(value) else None
        else:
            value = value.get(key) if isinstance(value, Mapping) else None
    return path
