"""CLI: document, set and dict commands of a branch.

Each command imports the entries that it calls when it runs: `ravel --help` must be quick.
"""

import json
import shlex
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from node.cli import words
from node.cli.answers import Outcome, Table, marks, print_fields, prints
from node.cli.branch_commands import BranchArgument
from node.cli.inputs import write_lines
from node.cli.printing import id_text_shown, say_wrapped
from node.cli.shared import EMPTY_ADVICE, say
from node.runtime.errors import ServiceError
from node.runtime.wording import counted
from protocol.limits.users import DOCUMENT_WINDOW_MAX

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
    )

document = typer.Typer(
    no_args_is_help=True, help="Documents of a branch by name: sets, dicts, JSON and texts."
)
set_ = typer.Typer(no_args_is_help=True, help="Sets of a branch.")
dict_ = typer.Typer(no_args_is_help=True, help="Dicts of a branch: values by key.")

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
    branch: BranchArgument = "",
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
@prints(words.DOCUMENT_RENAMED)
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
@prints(words.DOCUMENT_HIDDEN)
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
    if isinstance(shown, tuple):
        _print_set_edit(shown)
    else:
        say_wrapped(f"{counted(shown['items'], 'item')} written.")


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
def list_set(api: "Client", branch: BranchArgument = "", name: NameOption = "") -> Mapping[str, object]:
    """List the items in the order of their UTF-8 bytes."""
    items: list[SetItemView] = []
    offset: int | None = 0
    while offset is not None:
        window = api.show_set(branch=branch, name=name, offset=offset, limit=DOCUMENT_WINDOW_MAX)
        items += window["items"]
        offset = window["next"]
    return {"items": items}


@set_.command("snapshot")
@prints(words.DOCUMENT_COMPACTED)
def snapshot_set(api: "Client", branch: BranchArgument, name: NameOption = "") -> "DocumentSnapshot":
    """Compact the set's history: write its content again in few commits. The content does not change."""
    return api.snapshot_set(branch=branch, name=name)


@dict_.command("snapshot")
@prints(words.DOCUMENT_COMPACTED)
def snapshot_dict(api: "Client", branch: BranchArgument, name: NameOption = "") -> "DocumentSnapshot":
    """Compact the dict's history: write its content again in few commits. The content does not change."""
    return api.snapshot_dict(branch=branch, name=name)


def _print_put(answer: Mapping[str, object]) -> None:
    if answer.get("commits") == []:
        say_wrapped("Nothing to write: the key has that value.")
    elif "put" in answer:
        say_wrapped(f"Put {', '.join(cast('list[str]', answer['put']))}.")
    else:
        say_wrapped(f"{counted(cast('int', answer['lines']), 'line')} written.")


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
        [
            ("key", answer["key"]),
            ("value", answer["value"]),
            ("commit", id_text_shown(answer["commit"])),
            *conflicts,
        ]
    )


@dict_.command("get")
@prints(_print_entry)
def get(api: "Client", branch: BranchArgument, key: str, name: NameOption = "") -> "DictEntryView":
    """Show a key's value, and concurrent values (conflicts)."""
    return api.show_entry(branch=branch, key=key, name=name)


@dict_.command("list")
@prints(Table("entries", "key", "value", ("conflicts", lambda row: len(row["conflicts"]) or "")))
def list_dict(api: "Client", branch: BranchArgument = "", name: NameOption = "") -> Mapping[str, object]:
    """List keys, values, and the number of conflicts of each."""
    entries: list[DictEntryFields] = []
    offset: int | None = 0
    while offset is not None:
        window = api.show_dict(branch=branch, name=name, offset=offset, limit=DOCUMENT_WINDOW_MAX)
        entries += window["entries"]
        offset = window["next"]
    return {"entries": entries}


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
