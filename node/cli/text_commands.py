"""CLI: text commands: the live texts of a branch, in an editor of this computer, and as Yjs updates for other programs.

Each command imports the entries that it calls when it runs: `ravel --help` must be quick.
"""

import shlex
import sys
import time
from base64 import b64decode
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from node.cli import words
from node.cli.answers import Fields, Outcome, Table, prints
from node.cli.branch_commands import BranchArgument
from node.cli.downloads import check_target, receive
from node.cli.editor import edited, find_editor
from node.cli.inputs import read_input
from node.cli.shared import say
from node.cli.text_edits import Edit, find_edits
from node.runtime.errors import ServiceError
from node.runtime.wording import counted
from protocol.limits.users import REQUEST_SIZE_MAX
from ravel.characters import display_safe

if TYPE_CHECKING:
    from node.content.text_process import ClearText
    from ravel import Client
    from ravel.types.documents import TextClient, TextPush, TextView

text = typer.Typer(
    no_args_is_help=True, help="The live texts of a branch: edit one, or serve editors that speak Yjs."
)

_FIRST_ROOT: Final = "text"
"""The text that the page shows first."""
_ALL: Final = 1 << 53
"""More characters than all texts of a branch have."""
_NOTHING: Final = b"\0\0"
"""The Yjs update that says nothing: who may not write is told so by it."""
_SOON_SECONDS: Final = 2.0
"""Seconds within which a person changes nothing: an editor that ends so soon has opened a window elsewhere."""
_FAULTS: Final = {
    "unreadable": "cannot be read, and says nothing",
    "other_client": "has the client id of another author, and says nothing",
    "misplaced": "has words that stand nowhere",
    "used_clocks": "has clocks that its author had used, where it says nothing",
}


def _texts_of(update: bytes) -> "list[ClearText]":
    """Return the texts that have words. Raises ServiceError."""
    from node.content.text_process import run_worker

    return run_worker([update], clear_size=_ALL).clear or []


@text.command("list")
@prints(Table("texts", "name", "title", "characters"))
def list_texts(api: "Client", branch: BranchArgument = "") -> Mapping[str, object]:
    """List the texts of a branch that have words."""
    found = _texts_of(b64decode(api.pull_text(branch)["update"]))
    return {"texts": [{"name": one.root, "title": one.title, "characters": len(one.text)} for one in found]}


@text.command("edit")
@prints(words.TEXT_EDITED)
def edit_text(
    api: "Client",
    branch: BranchArgument = "",
    root: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="Its name or title; by default the only text, or the one called text."
        ),
    ] = "",
) -> Mapping[str, object]:
    """Open a text in your editor, and write what you change. A name that no text has begins one.

    The editor is the command in $VISUAL, else in $EDITOR; it must end only when you have finished. What others write
    meanwhile stays, and your changes go beside it. Where the editor or the write fails, your file is kept.
    """
    editor = find_editor()
    try:
        answer = api.pull_text(branch)
    except ServiceError as error:
        if error.code != "not_found" or root:
            raise
        advice = f"a text of that name in main: ravel text edit --root {shlex.quote(branch)}"
        raise ServiceError(error.code, error.message, f"{error.advice}; {advice}") from None
    update, target = b64decode(answer["update"]), answer["branch"]
    texts = _texts_of(update)
    name = _choose(texts, root)
    before = next((one.text for one in texts if one.root == name), "")
    api.push_text(target, _NOTHING)
    _type(update, name, 1, [(0, 0, "")])
    began = time.monotonic()
    with edited(editor, name, before) as after:
        edits = find_edits(before, after)
        said = {"branch": target, "root": name, "edits": len(edits)}
        if not edits:
            if time.monotonic() - began < _SOON_SECONDS:
                say(
                    "note: an editor with a window of its own needs an option to wait, as in EDITOR='code --wait'"
                )
            return {**said, "commit": None, "merged": False}
        client = api.open_text(target)["client"]
        pushed = api.push_text(target, _type(update, name, client, edits))
        now = api.pull_text(target, root=name)["text"]
    return {**said, "commit": pushed["commit"], "merged": now != after}


def _choose(texts: "Sequence[ClearText]", wanted: str) -> str:
    """Return the name of the text that is meant. Raises ServiceError `ambiguous`."""
    names = [one.root for one in texts]
    if wanted:
        titled = [one.root for one in texts if one.title == wanted]
        return titled[0] if wanted not in names and len(titled) == 1 else wanted
    if not names or _FIRST_ROOT in names:
        return _FIRST_ROOT
    if len(names) > 1:
        raise ServiceError(
            "ambiguous", f"it is not said which text is meant: {', '.join(names)}", "name one: --root NAME"
        )
    return names[0]


def _type(update: bytes, root: str, client: int, edits: Sequence[Edit]) -> bytes:
    """Return the update that makes edits of a text under a client id. Raises ServiceError `bad_input`."""
    from node.content.text_process import run_worker

    typed = run_worker([update], typed=(client, [(root, list(edits))])).typed
    if typed is None:
        raise ServiceError(
            "bad_input",
            f"{root} holds more than a text editor shows",
            "edit it with the program that wrote it",
        )
    return typed


UpdateArgument = Annotated[
    Path, typer.Argument(help="A file with a Yjs update (v1); - for standard input.", allow_dash=True)
]


@text.command("client")
@prints(Fields("client", "clock"))
def give_client(api: "Client", branch: BranchArgument) -> "TextClient":
    """Get a Yjs client id for an editor of the text. No other editor gets it; set it before anything is typed."""
    return api.open_text(branch)


@text.command("push")
@prints(words.TEXT_PUSHED)
def push(api: "Client", branch: BranchArgument, path: UpdateArgument) -> "TextPush":
    """Write a Yjs update of an editor that has a client id of `ravel text client`. What the text has is left out."""
    return api.push_text(branch, read_input(str(path), REQUEST_SIZE_MAX))


@text.command("import")
@prints(words.TEXT_PUSHED)
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
            raise ServiceError("not_found", absent, "`ravel text list BRANCH` shows what there is")
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
