"""CLI: set, dict and text commands of a branch.

Each command imports the entries that it calls when it runs: `ravel --help` must be quick.
"""

import json
import sys
from base64 import b64decode
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from node.cli.branch_commands import BranchArgument
from node.cli.inputs import read_input
from node.cli.lines import write_lines
from node.cli.shared import (
    JsonOption,
    client,
    print_answer,
    print_fields,
    print_json,
    print_table,
    say,
)
from node.runtime.errors import ServiceError
from node.runtime.wording import counted
from protocol.limits.users import DOCUMENT_WINDOW_MAX, REQUEST_SIZE_MAX
from ravel.characters import display_safe

if TYPE_CHECKING:
    from ravel import Client
    from ravel.types.documents import DictEntryFields, SetItemView

set_ = typer.Typer(no_args_is_help=True, help="The set of a branch.")
dict_ = typer.Typer(no_args_is_help=True, help="The dict of a branch: short values by key.")
text = typer.Typer(no_args_is_help=True, help="The text of a branch, for editors that speak Yjs.")

_FAULTS: Final = {
    "unreadable": "cannot be read, and says nothing",
    "other_client": "has the client id of another author, and says nothing",
    "misplaced": "has words that stand nowhere",
    "used_clocks": "has clocks that its author had used, where it says nothing",
}
ItemsArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="ITEM...",
        help="Texts of up to 1,024 characters. `-` reads standard input: each line is an item.",
    ),
]


@set_.command("add")
def add(
    context: typer.Context, branch: BranchArgument, items: ItemsArgument, as_json: JsonOption = False
) -> None:
    """Add items. What somebody deletes at the same time without having seen this stays."""
    _edit_set(context, branch, items, "add", "added", as_json=as_json)


@set_.command("rm")
def remove(
    context: typer.Context, branch: BranchArgument, items: ItemsArgument, as_json: JsonOption = False
) -> None:
    """Delete items that this node has seen."""
    _edit_set(context, branch, items, "remove", "removed", as_json=as_json)


@set_.command("list")
def list_set(context: typer.Context, branch: BranchArgument, as_json: JsonOption = False) -> None:
    """List the items in the order of their UTF-8 bytes."""

    api = client(context)
    items: list[SetItemView] = []
    offset: int | None = 0
    while offset is not None:
        window = api.show_set(branch=branch, offset=offset, limit=DOCUMENT_WINDOW_MAX)
        items += window["items"]
        offset = window["next"]
    if as_json:
        print_json({"items": items})
        return
    print_table(("item",), ((row["item"],) for row in items))


@set_.command("snapshot")
def snapshot_set(context: typer.Context, branch: BranchArgument, as_json: JsonOption = False) -> None:
    """Compact the set's history: write its content again in few commits. The content does not change."""

    answer = client(context).snapshot_set(branch=branch)
    print_answer(answer, as_json=as_json)


@dict_.command("snapshot")
def snapshot_dict(context: typer.Context, branch: BranchArgument, as_json: JsonOption = False) -> None:
    """Compact the dict's history: write its content again in few commits. The content does not change."""

    answer = client(context).snapshot_dict(branch=branch)
    print_answer(answer, as_json=as_json)


@dict_.command("put")
def put(
    context: typer.Context,
    branch: BranchArgument,
    key: Annotated[
        str,
        typer.Argument(
            help="`-` reads keys and values from standard input: each line is a JSON object of texts by key."
        ),
    ],
    value: Annotated[str | None, typer.Argument(help="A text of up to 16,384 characters.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Set the value of a key. It replaces all that this node has seen of the key; conflicts end with that."""
    from protocol.document_kinds import DICT_EDIT_COUNT_MAX

    api = client(context)
    if key == "-" and value is None:
        write_lines(lambda lines: _put_all(api, branch, lines), "line", DICT_EDIT_COUNT_MAX, as_json=as_json)
        return
    if value is None:
        raise ServiceError("bad_request", "a key needs a value", "ravel dict put BRANCH KEY VALUE")
    answer = api.edit_dict(branch=branch, put={key: value})
    if as_json:
        print_json(answer)
    elif answer["commits"]:
        print_fields([("put", answer["put"]), ("commits", answer["commits"])])
    else:
        print("nothing to write: the key has that value")


@dict_.command("rm")
def erase(context: typer.Context, branch: BranchArgument, key: str, as_json: JsonOption = False) -> None:
    """Delete a key; concurrent values that this node has not seen stay."""

    answer = client(context).edit_dict(branch=branch, erase=[key])
    if not answer["erased"]:
        raise ServiceError(
            "not_found", f"the dict has no key {key!r}", "`ravel dict list` shows what there is"
        )
    print_json(answer) if as_json else print_fields(
        [("deleted", answer["erased"]), ("commits", answer["commits"])]
    )


@dict_.command("get")
def get(context: typer.Context, branch: BranchArgument, key: str, as_json: JsonOption = False) -> None:
    """Show a key's value, and concurrent values (conflicts)."""

    answer = client(context).show_entry(branch=branch, key=key)
    if as_json:
        print_json(answer)
        return
    conflicts = [("conflict", word["value"]) for word in answer["conflicts"]]
    print_fields(
        [("key", answer["key"]), ("value", answer["value"]), ("commit", answer["commit"]), *conflicts]
    )


@dict_.command("list")
def list_dict(context: typer.Context, branch: BranchArgument, as_json: JsonOption = False) -> None:
    """List keys, values, and the number of conflicts of each."""

    api = client(context)
    entries: list[DictEntryFields] = []
    offset: int | None = 0
    while offset is not None:
        window = api.show_dict(branch=branch, offset=offset, limit=DOCUMENT_WINDOW_MAX)
        entries += window["entries"]
        offset = window["next"]
    if as_json:
        print_json({"entries": entries})
        return
    print_table(
        ("key", "value", "conflicts"),
        ((row["key"], row["value"], len(row["conflicts"]) or "") for row in entries),
    )


UpdateArgument = Annotated[
    Path, typer.Argument(help="A file with a Yjs update (v1); - for standard input.", allow_dash=True)
]


@text.command("client")
def give_client(context: typer.Context, branch: BranchArgument, as_json: JsonOption = False) -> None:
    """Get a Yjs client id for an editor of the text. No other editor gets it; set it before anything is typed."""
    answer = client(context).open_text(branch)
    print_json(answer) if as_json else print_fields(
        [("client", answer["client"]), ("clock", answer["clock"])]
    )


@text.command("push")
def push(
    context: typer.Context, branch: BranchArgument, path: UpdateArgument, as_json: JsonOption = False
) -> None:
    """Write a Yjs update of an editor that has a client id of `ravel text client`. What the text has is left out."""
    answer = client(context).push_text(branch, read_input(str(path), REQUEST_SIZE_MAX))
    print_json(answer) if as_json else print_fields([("commit", answer["commit"])])


@text.command("import")
def import_text(
    context: typer.Context, branch: BranchArgument, path: UpdateArgument, as_json: JsonOption = False
) -> None:
    """Type the texts of another Yjs document at the ends of the texts of the same names."""
    answer = client(context).import_text(branch, read_input(str(path), REQUEST_SIZE_MAX))
    print_json(answer) if as_json else print_fields([("commit", answer["commit"])])


@text.command("pull")
def pull(
    context: typer.Context,
    branch: BranchArgument,
    root: Annotated[
        str | None, typer.Option(metavar="NAME", help="Print the root type of this name as plain text.")
    ] = None,
    out: Annotated[
        Path,
        typer.Option("--out", "-o", help="The file to write; - for standard output.", allow_dash=True),
    ] = Path("-"),
    as_json: JsonOption = False,
) -> None:
    """Read the whole text as one Yjs update, or with --root as plain text."""
    answer = client(context).pull_text(branch, root=root)
    if as_json:
        print_json(answer)
        return
    if root is not None and not answer["text"]:
        say(f"note: no text called {root!r} has words here")
    for one in answer["faults"]:
        print(f"commit {one['commit']}: {_FAULTS[one['fault']]}", file=sys.stderr)
    count = answer["refused"] + answer["passed_over"]
    if count > len(answer["faults"]):
        verb = "says less than it" if count == 1 else "say less than they"
        print(f"{counted(count, 'update')} in all {verb} would", file=sys.stderr)
    if root is not None and str(out) == "-" and sys.stdout.isatty():
        print("\n".join(map(display_safe, (answer["text"] or "").split("\n"))))
        return
    content = (answer["text"] or "").encode() if root is not None else b64decode(answer["update"])
    try:
        if str(out) == "-":
            sys.stdout.buffer.write(content)
        else:
            out.write_bytes(content)
    except OSError as error:
        raise ServiceError(
            "storage_failed", f"{out} cannot be written: {error}", "choose another --out"
        ) from None


def _edit_set(
    context: typer.Context,
    branch: str,
    items: list[str],
    field: Literal["add", "remove"],
    answered: Literal["added", "removed"],
    *,
    as_json: bool,
) -> None:
    """Edit a set by one field of the request, whose answer stands in another; the one item `-` stands for lines."""
    from protocol.document_kinds import SET_EDIT_COUNT_MAX

    api = client(context)
    if items == ["-"]:
        write_lines(
            lambda part: api.edit_set(branch=branch, **{field: part}),
            "item",
            SET_EDIT_COUNT_MAX,
            as_json=as_json,
        )
        return
    answer = api.edit_set(branch=branch, **{field: items})
    done = answer[answered]
    if field == "remove" and not done:
        raise ServiceError(
            "not_found", f"the set does not have {', '.join(map(repr, items))}", "`ravel set list` shows it"
        )
    if as_json:
        print_json(answer)
        return
    if done:
        print_fields([(answered, done), ("commits", answer["commits"])])
    if left := [item for item in dict.fromkeys(items) if item not in done]:
        say(f"{'there already' if field == 'add' else 'not there'}: {', '.join(left)}")


def _put_all(api: "Client", branch: str, lines: list[str]) -> None:
    """Put what these lines say, the last one of a key, in as few commits as hold it."""
    from protocol.document_kinds import DICT_EDIT_COUNT_MAX

    entries = [*{key: value for line in lines for key, value in _read_entries(line).items()}.items()]
    for start in range(0, len(entries), DICT_EDIT_COUNT_MAX):
        api.edit_dict(branch=branch, put=dict(entries[start : start + DICT_EDIT_COUNT_MAX]))


def _read_entries(line: str) -> dict[str, str]:
    try:
        entries = json.loads(line)
    except ValueError as error:
        raise ServiceError("bad_input", f"a line is no JSON: {error}: {line[:80]!r}") from None
    if not isinstance(entries, dict) or not all(isinstance(value, str) for value in entries.values()):
        raise ServiceError(
            "bad_input", f"a line is no object of texts: {line[:80]!r}", 'write {"key": "value"} on each line'
        )
    return entries
