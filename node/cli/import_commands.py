"""import: other systems' histories into a branch, in batches that the daemon makes durable one by one."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from node.cli.completion import complete_branches
from node.cli.progress import show_progress
from node.cli.shared import JsonOption, client, imported_ids, print_answer
from node.cli.ssb_commands import import_ssb
from node.runtime.errors import ServiceError
from protocol.limits.formats import NAME_SIZE_MAX

if TYPE_CHECKING:  # types of answers: `ravel --help` must be quick
    from node.importers.item import PackedItem
    from ravel.types.files import ImportResult

import_ = typer.Typer(no_args_is_help=True, help="Import a history; a second run adds what is new.")
import_.command("ssb")(import_ssb)

BranchOption = Annotated[
    str,
    typer.Option(
        "--branch",
        help="Branch to import into: name, REPO:NAME, id or prefix.",
        autocompletion=complete_branches,
    ),
]


@import_.command("git")
def import_git(
    context: typer.Context,
    path: Annotated[Path, typer.Argument(help="A git repository.")],
    branch: BranchOption,
    revision: Annotated[str, typer.Option("--rev", help="What to import: a branch, tag or commit.")] = "HEAD",
    as_json: JsonOption = False,
) -> None:
    """Import a git history: one commit for each git commit, with its parents, author, time and message."""
    from node.importers.git_history import GitHistory
    from node.importers.item import pack

    history = GitHistory(path, revision)
    history.open()
    imported = set(imported_ids(client(context), branch, "git"))
    if imported:
        history.go_on(imported)
    answer = _send(context, branch, "git", pack(history.items()), history.commit_count)
    print_answer({**answer, "cut_parents": history.cut_parents}, as_json=as_json)


@import_.command("jsonl")
def import_jsonl(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="JSON Lines, or the same with .gz.")],
    branch: BranchOption,
    source: Annotated[
        str,
        typer.Option(
            help="A name for the source of these ids; a second import from it adds what is new. [default: the file's name]"
        ),
    ] = "",
    as_json: JsonOption = False,
) -> None:
    """Import JSON Lines: objects with id, parents, author, time (unix seconds) and text; parents stand before children."""
    from node.importers.item import pack
    from node.importers.jsonl import read_jsonl

    name = f"jsonl:{source or file.name.removesuffix('.gz')}"
    if len(name) > NAME_SIZE_MAX:
        raise ServiceError("bad_request", "the source's name is too long", "give a short --source")
    print_answer(_send(context, branch, name, pack(read_jsonl(file)), None), as_json=as_json)


def _send(
    context: typer.Context, branch: str, source: str, batches: Iterator["list[PackedItem]"], total: int | None
) -> "ImportResult":
    from node.importers.item import read_ahead

    api = client(context)
    answer: ImportResult = {"imported": 0, "already": 0, "heads": 0}
    with show_progress("imported", "commit", total) as progress:
        for batch in read_ahead(batches):
            part = api.import_commits(branch, batch, source)
            answer["imported"] += part["imported"]
            answer["already"] += part["already"]
            answer["heads"] = part["heads"]
            progress(answer["imported"] + answer["already"])
    if not answer["imported"] + answer["already"]:  # not even the branch was looked for
        raise ServiceError(
            "bad_input", "there is nothing in it to import", "give a source that has something"
        )
    return answer
