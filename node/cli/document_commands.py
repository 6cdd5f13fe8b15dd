"""CLI: document, set, dict and text commands of a branch.

Each command imports the entries that it calls when it runs: `ravel --help` must be quick.
"""

import json
import shlex
import sys
from base64 import b64decode
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, cast

import typer

from node.cli.answers import Fields, Outcome, Table, marks, print_fields, prints
from node.cli.branch_commands import BranchArgument
from node.cli.downloads import check_target, receive
from node.cli.inputs import read_input, write_lines
from node.cli.printing import say_wrapped
from node.cli.shared import EMPTY_ADVICE, say
from node.runtime.errors import ServiceError
from node.runtime.wording import counted
from protocol.limits.users import DOCUMENT_WINDOW_MAX, REQUEST_SIZE_MAX
from ravel.characters import display_safe

if TYPE_CHECKING:
    from ravel import Client
    from ravel.types.document_list import DocumentRemoval, DocumentTitle, DocumentView
    from ravel.types.document_values import DocumentSnapshot
    from ravel.types.documents import (
        DictEditResult,
        DictEntryFields,
        DictEntryView,
        SetEditResult,
        SetItemView,
        TextClient,
        TextPush,
        TextView,
    )

document = typer.Typer(
    no_args_is_help=True, help="Documents of a branch by name: sets, dicts, JSON and texts."
)
set_ = typer.Typer(no_args_is_help=True, help="Sets of a branch.")
dict_ = typer.Typer(no_args_is_help=True, help="Dicts of a branch: values by key.")
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
        help="Texts of up to 1,024 bytes. `-` reads standard input: each line is an item.",
    ),
]

NameOption = Annotated[
    str, typer.Option("--name", help="The document's name; without it, the unnamed one of the branch.")
]
KindArgument = Annotated[str, typer.Argument(metavar="KIND", help="`set`, `dict`, `json` or `text`.")]


@document.command("list")
@prints(Table("documents", "kind", "name", "title", "entries", ("", marks("confusable"))))
def list_documents(
    api: "Client",
    branch: BranchArgument,
    kind: Annotated[str, typer.Option("--kind", help="Only of this kind.")] = "",
    prefix: Annotated[str, typer.Option("--prefix", help="Only names that begin so.")] = "",
) -> Mapping[str, object]:
    """List the documents of a branch, but for those that were removed."""
    documents: list[DocumentView] = []
    offset: int | None = 0
    while offset is not None:
        window = api.list_documents(
            branch=branch, kind=kind, prefix=prefix, offset=offset, limit=DOCUMENT_WINDOW_MAX
        )
        documents += window["documents"]
        offset = window["next"]
    return {"documents": documents}


@document.command("rename")
@prints(Fields("title", "commits"))
def rename_document(
    api: "Client",
    branch: BranchArgument,
    kind: KindArgument,
    title: Annotated[str, typer.Argument(help="What people read; empty for none.")],
    name: NameOption = "",
) -> "DocumentTitle":
    """Give a document a title. Its name stays, and apps find it by that."""
    return api.rename_document(branch=branch, kind=kind, name=name, title=title)


@document.command("rm")
@prints(Fields("commits"))
def remove_document(
    api: "Client", branch: BranchArgument, kind: KindArgument, name: NameOption = ""
) -> "DocumentRemoval":
    """Hide a document from the list. Its next write shows it again, and nothing is lost."""
    return api.remove_document(branch=branch, kind=kind, name=name)


def _print_set_edit(shown: "tuple[SetEditResult, str, list[str]]") -> None:
    answer, field, items = shown
    done = answer[field]  # type: ignore[literal-required]  # `added` or `removed`
    if done:
        say_wrapped(f"{'Added' if field == 'added' else 'Deleted'} {', '.join(done)}.")
    if left := [item for item in dict.fromkeys(items) if item not in done]:
        say(f"{'there already' if field == 'added' else 'not there'}: {', '.join(left)}")


def _print_edited(shown: Any) -> None:  # noqa: ANN401  # an edit of a set, or a count of lines
    _print_set_edit(shown) if isinstance(shown, tuple) else print_fields(shown.items())


def _check_given(what: str, values: Iterable[str]) -> None:
    """Refuse an empty text, which an unset variable of the shell gives. Raises ServiceError `bad_request`."""
    if not all(values):
        raise ServiceError("bad_request", f"an empty {what} was given", EMPTY_ADVICE)


@set_.command("add")
@prints(_print_edited)
def add(api: "Client", branch: BranchArgument, items: ItemsArgument, name: NameOption = "") -> Outcome:
    """Add items. What somebody deletes at the same time without having seen this stays."""
    from protocol.formats.document_kinds import SET_EDIT_COUNT_MAX

    if items == ["-"]:
        return Outcome(
            write_lines(
                lambda part: api.edit_set(branch=branch, name=name, add=part), "item", SET_EDIT_COUNT_MAX
            )
        )
    _check_given("item", items)
    answer = api.edit_set(branch=branch, name=name, add=items)
    return Outcome(answer, shown=(answer, "added", items))


@set_.command("rm")
@prints(_print_edited)
def remove(api: "Client", branch: BranchArgument, items: ItemsArgument, name: NameOption = "") -> Outcome:
    """Delete items that this node has seen."""
    from protocol.formats.document_kinds import SET_EDIT_COUNT_MAX

    if items == ["-"]:
        return Outcome(
            write_lines(
                lambda part: api.edit_set(branch=branch, name=name, remove=part), "item", SET_EDIT_COUNT_MAX
            )
        )
    answer = api.edit_set(branch=branch, name=name, remove=items)
    if not answer["removed"]:
        listing = shlex.join(["ravel", "set", "list", branch, *(["--name", name] if name else [])])
        raise ServiceError(
            "not_found", f"the set does not have {', '.join(map(repr, items))}", f"`{listing}` shows it"
        )
    return Outcome(answer, shown=(answer, "removed", items))


@set_.command("list")
@prints(Table("items", "item"))
def list_set(api: "Client", branch: BranchArgument, name: NameOption = "") -> Mapping[str, object]:
    """List the items in the order of their UTF-8 bytes."""
    items: list[SetItemView] = []
    offset: int | None = 0
    while offset is not None:
        window = api.show_set(branch=branch, name=name, offset=offset, limit=DOCUMENT_WINDOW_MAX)
        items += window["items"]
        offset = window["next"]
    return {"items": items}


@set_.command("snapshot")
@prints()
def snapshot_set(api: "Client", branch: BranchArgument, name: NameOption = "") -> "DocumentSnapshot":
    """Compact the set's history: write its content again in few commits. The content does not change."""
    return api.snapshot_set(branch=branch, name=name)


@dict_.command("snapshot")
@prints()
def snapshot_dict(api: "Client", branch: BranchArgument, name: NameOption = "") -> "DocumentSnapshot":
    """Compact the dict's history: write its content again in few commits. The content does not change."""
    return api.snapshot_dict(branch=branch, name=name)


def _print_put(answer: Mapping[str, object]) -> None:
    if answer.get("commits") == []:
        say_wrapped("Nothing to write: the key has that value.")
    elif "put" in answer:
        say_wrapped(f"Put {', '.join(cast('list[str]', answer['put']))}.")
    else:
        print_fields(answer.items())


@dict_.command("put")
@prints(_print_put)
def put(
    api: "Client",
    branch: BranchArgument,
    key: Annotated[
        str,
        typer.Argument(
            help="`-` reads keys and values from standard input: each line is a JSON object of texts by key."
        ),
    ],
    value: Annotated[str | None, typer.Argument(help="A text of up to 262,144 characters.")] = None,
    name: NameOption = "",
) -> Mapping[str, object]:
    """Set the value of a key. It replaces all that this node has seen of the key; conflicts end with that."""
    from protocol.formats.document_kinds import DICT_EDIT_COUNT_MAX

    if key == "-" and value is None:
        return write_lines(lambda lines: _put_all(api, branch, name, lines), "line", DICT_EDIT_COUNT_MAX)
    if value is None:
        raise ServiceError("bad_request", "a key needs a value", "ravel dict put BRANCH KEY VALUE")
    _check_given("key", [key])
    return api.edit_dict(branch=branch, name=name, put={key: value})


def _print_erased(answer: "DictEditResult") -> None:
    say_wrapped(f"Deleted {', '.join(answer['erased'])}.")


@dict_.command("rm")
@prints(_print_erased)
def erase(api: "Client", branch: BranchArgument, key: str, name: NameOption = "") -> "DictEditResult":
    """Delete a key; concurrent values that this node has not seen stay."""
    answer = api.edit_dict(branch=branch, name=name, erase=[key])
    if not answer["erased"]:
        raise ServiceError(
            "not_found", f"the dict has no key {key!r}", "`ravel dict list BRANCH` shows what there is"
        )
    return answer


def _print_entry(answer: "DictEntryView") -> None:
    conflicts = [("conflict", word["value"]) for word in answer["conflicts"]]
    print_fields(
        [("key", answer["key"]), ("value", answer["value"]), ("commit", answer["commit"]), *conflicts]
    )


@dict_.command("get")
@prints(_print_entry)
def get(api: "Client", branch: BranchArgument, key: str, name: NameOption = "") -> "DictEntryView":
    """Show a key's value, and concurrent values (conflicts)."""
    return api.show_entry(branch=branch, key=key, name=name)


@dict_.command("list")
@prints(Table("entries", "key", "value", ("conflicts", lambda row: len(row["conflicts"]) or "")))
def list_dict(api: "Client", branch: BranchArgument, name: NameOption = "") -> Mapping[str, object]:
    """List keys, values, and the number of conflicts of each."""
    entries: list[DictEntryFields] = []
    offset: int | None = 0
    while offset is not None:
        window = api.show_dict(branch=branch, name=name, offset=offset, limit=DOCUMENT_WINDOW_MAX)
        entries += window["entries"]
        offset = window["next"]
    return {"entries": entries}


UpdateArgument = Annotated[
    Path, typer.Argument(help="A file with a Yjs update (v1); - for standard input.", allow_dash=True)
]


@text.command("client")
@prints(Fields("client", "clock"))
def give_client(api: "Client", branch: BranchArgument) -> "TextClient":
    """Get a Yjs client id for an editor of the text. No other editor gets it; set it before anything is typed."""
    return api.open_text(branch)


@text.command("push")
@prints(Fields("commit"))
def push(api: "Client", branch: BranchArgument, path: UpdateArgument) -> "TextPush":
    """Write a Yjs update of an editor that has a client id of `ravel text client`. What the text has is left out."""
    return api.push_text(branch, read_input(str(path), REQUEST_SIZE_MAX))


@text.command("import")
@prints(Fields("commit"))
def import_text(api: "Client", branch: BranchArgument, path: UpdateArgument) -> "TextPush":
    """Type the texts of another Yjs document at the ends of the texts of the same names."""
    return api.import_text(branch, read_input(str(path), REQUEST_SIZE_MAX))


def _write_text(shown: "tuple[TextView, str | None, Path]") -> None:
    """Print or write a text or an update, and say on stderr what it lacks. Raises ServiceError."""
    answer, root, out = shown
    if root is None and str(out) == "-" and sys.stdout.isatty():
        raise ServiceError(
            "bad_request",
            "an update is bytes for editors, and nothing that a terminal shows",
            "`ravel text pull BRANCH --root NAME` prints a text (the page calls its first one `text`); --out FILE writes "
            "the update",
        )
    if root is not None and not answer["text"]:
        absent = f"no text called {root!r} has words here"
        if str(out) != "-":  # a name that is mistyped must not empty what is there
            raise ServiceError(
                "not_found", absent, "`ravel document list BRANCH --kind text` shows what there is"
            )
        say(f"note: {absent}")
    for one in answer["faults"]:
        say(f"commit {one['commit']}: {_FAULTS[one['fault']]}")
    count = answer["refused"] + answer["passed_over"]
    if count > len(answer["faults"]):
        verb = "says less than it" if count == 1 else "say less than they"
        say(f"{counted(count, 'update')} in all {verb} would")
    if root is not None and str(out) == "-" and sys.stdout.isatty():
        print("\n".join(map(display_safe, (answer["text"] or "").split("\n"))))
        return
    content = (answer["text"] or "").encode() if root is not None else b64decode(answer["update"])
    if str(out) == "-":
        sys.stdout.buffer.write(content)
    else:
        receive(iter([content]), check_target(out, "text", replaces=True), None, replaces=True)


@text.command("pull")
@prints(_write_text)
def pull(
    api: "Client",
    branch: BranchArgument,
    root: Annotated[
        str | None, typer.Option(metavar="NAME", help="Print the root type of this name as plain text.")
    ] = None,
    out: Annotated[
        Path,
        typer.Option("--out", "-o", help="The file to write; - for standard output.", allow_dash=True),
    ] = Path("-"),
) -> Outcome:
    """Read the whole text as one Yjs update, or with --root as plain text."""
    answer = api.pull_text(branch, root=root)
    return Outcome(answer, shown=(answer, root, out))


def _put_all(api: "Client", branch: str, name: str, lines: list[str]) -> None:
    """Put the entries of lines, the last one of each key, in as few commits as hold them."""
    from protocol.formats.document_kinds import DICT_EDIT_COUNT_MAX

    entries = [*{key: value for line in lines for key, value in _read_entries(line).items()}.items()]
    for start in range(0, len(entries), DICT_EDIT_COUNT_MAX):
        api.edit_dict(branch=branch, name=name, put=dict(entries[start : start + DICT_EDIT_COUNT_MAX]))


def _read_entries(line: str) -> dict[str, str]:
    try:
        entries = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ServiceError("bad_input", f"a line is no JSON: {error}: {line[:80]!r}") from None
    if not isinstance(entries, dict) or not all(isinstance(value, str) for value in entries.values()):
        raise ServiceError(
            "bad_input", f"a line is no object of texts: {line[:80]!r}", 'write {"key": "value"} on each line'
        )
    return entries
