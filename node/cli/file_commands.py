"""file: files of a branch, streamed to and from the daemon."""

import re
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Annotated, Final

import typer

from node.cli.branch_commands import BranchArgument
from node.cli.completion import complete_files
from node.cli.downloads import check_target, receive
from node.cli.people import author_of
from node.cli.progress import Progress, show_progress
from node.cli.shared import (
    JsonOption,
    client,
    iso_time,
    print_answer,
    print_fields,
    print_json,
    print_table,
)
from node.cli.uploads import Skipped, Upload, Uploader, find_files, name_paths
from node.runtime.errors import ServiceError
from node.runtime.wording import counted
from ravel.characters import display_safe
from ravel.files import Download
from ravel.types.files import FileRefusal, FileView

file = typer.Typer(no_args_is_help=True, help="Files of a branch.")

FileArgument = Annotated[
    str, typer.Argument(help="Name, id, or unique prefix of an id.", autocompletion=complete_files)
]
_PIECE_SIZE: Final = 1 << 20


@file.command("add")
def add(
    context: typer.Context,
    branch: BranchArgument,
    paths: Annotated[
        list[Path],
        typer.Argument(metavar="path", help="Files and folders; - for standard input.", allow_dash=True),
    ],
    name: Annotated[
        str, typer.Option(help="The name in the branch of the one path. [default: the path's last part]")
    ] = "",
    hidden: Annotated[
        bool,
        typer.Option("--hidden", help="Add what is hidden in folders, too: names that begin with a dot."),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Add files, and all files in folders, to a branch. They are durable when the command returns.

    A file in a folder is called FOLDER/PATH. Links in folders are not followed, and empty folders leave nothing. A file that
    the branch has under the same name and with the same content is passed over: a command that was cut can be run again.
    """
    if [str(path) for path in paths] == ["-"] or (len(paths) == 1 and _is_stream(paths[0])):
        print_answer(_add_stream(context, branch, paths[0], name), as_json=as_json)
        return
    if any(str(path) == "-" for path in paths):
        raise ServiceError("bad_request", "standard input is added by itself", "leave the other paths out")
    named, skipped = name_paths(paths, name), Skipped()
    # Looked through twice: the first time tells how much there is, and what cannot be added, before anything is sent.
    total = sum(found.size for found in find_files(named, Skipped(), with_hidden=hidden))
    api = client(context)
    with show_progress("sent", "byte", total) as progress:
        found = find_files(named, skipped, with_hidden=hidden)
        upload = Uploader(lambda body: api.add_files(branch, body), found, progress).run()
    if len(paths) == 1 and paths[0].is_file() and upload.last is not None:
        print_answer(upload.last, as_json=as_json)
        return
    _show_upload(upload, skipped, as_json=as_json)


@file.command("list")
def list_files(context: typer.Context, branch: BranchArgument, as_json: JsonOption = False) -> None:
    """List the files of a branch."""
    api = client(context)
    found: list[FileView] = []
    uses_relays = False
    refusals: list[FileRefusal] = []
    after: int | None = 0
    while after is not None:
        answer = api.list_files(branch, after=after, limit=1000)
        found += answer["files"]
        uses_relays, refusals = answer["uses_relays"], answer["refusals"]
        after = answer["next"]
    if as_json:
        print_json({"files": found})
        return
    print_table(
        ("file", "name", "size", "time", "author", *(["relays"] if uses_relays else [])),
        (
            (
                row["file"][:12],
                row["name"],
                row["size"],
                iso_time(row["time"]),
                author_of(row),
                *([row["relays"] or "none"] if uses_relays else []),
            )
            for row in found
        ),
    )
    lacking = sum(not row["relays"] for row in found) if uses_relays else 0
    if lacking:
        print(f"on no relay: {lacking} of {counted(len(found), 'file')}")
        for one in refusals:
            print(f"relay {one['relay'][:12]} takes no more: {one['reason']}")


@file.command("get")
def get(
    context: typer.Context,
    branch: BranchArgument,
    file: FileArgument,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="The file to write; - for standard output. [default: its name, here]",
            allow_dash=True,
        ),
    ] = None,
    span: Annotated[
        str,
        typer.Option(
            "--range", metavar="START-STOP", help="Only the bytes from START up to, and without, STOP."
        ),
    ] = "",
    force: Annotated[bool, typer.Option("--force", help="Replace what is there.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Read a file. It appears at its place whole, or not at all; a device or a pipe there is written into."""
    start, stop = _parse_range(span)
    with client(context).get_file(branch, file, start=start, stop=stop) as download:
        if out is not None and str(out) == "-":
            for piece in download.pieces:
                sys.stdout.buffer.write(piece)
            return
        name = _local_name(download)
        target = check_target(out or Path(name), name, replaces=force)
        size = max(min(download.size, download.size if stop is None else stop) - start, 0)
        receive(download.pieces, target, size, replaces=force)
    answer = {
        "path": str(out or Path(name)),
        "file": download.file_id,
        "name": download.name,
        "size": size,
    }
    print_answer(answer, as_json=as_json)


@file.command("rm")
def remove(
    context: typer.Context, branch: BranchArgument, file: FileArgument, as_json: JsonOption = False
) -> None:
    """Remove a file from a branch for all members. Nodes that have its content keep it."""
    answer = client(context).remove_file(branch, file)
    print_answer(answer, as_json=as_json)


def _is_stream(path: Path) -> bool:
    """Return True for what is neither file nor folder, but can be read to its end. Raises ServiceError `bad_input`."""
    try:
        mode = path.stat().st_mode
    except OSError:  # said where it is looked for among the others
        return False
    if stat.S_ISCHR(mode):
        raise ServiceError(
            "bad_input",
            f"{path} is a device, whose content may have no end",
            f"pipe as much of it as you want: head -c SIZE {path} | ravel file add BRANCH - --name NAME",
        )
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def _add_stream(context: typer.Context, branch: str, path: Path, name: str) -> FileView:
    """Add a file whose size is not known before its end."""
    if str(path) == "-" and not name:
        raise ServiceError("bad_request", "what comes by standard input has no name", "give one: --name NAME")
    try:
        with (
            sys.stdin.buffer if str(path) == "-" else path.open("rb") as source,
            show_progress("sent", "byte", None) as progress,
        ):
            return client(context).add_file(branch, _read(source, progress), name=name or path.name)
    except OSError as error:
        raise ServiceError("bad_input", f"{path} cannot be read: {error}", "give a readable file") from None


def _show_upload(upload: Upload, skipped: Skipped, *, as_json: bool) -> None:
    answer = {
        "files": upload.count,
        "added": upload.new_count,
        "already": upload.count - upload.new_count,
        "bytes": upload.size,
        "skipped": skipped.count,
    }
    if as_json:
        print_json({**answer, "first_skipped": skipped.first})
        return
    print_fields(answer.items())
    for one in skipped.first:
        print(f"skipped  {display_safe(one['path'])}  ({one['reason']})")


def _read(source: IO[bytes], progress: Progress) -> Iterator[bytes]:
    done = 0
    while piece := source.read(_PIECE_SIZE):
        yield piece
        done += len(piece)
        progress(done)


def _local_name(download: Download[Iterator[bytes]]) -> str:
    """A file's name as one in the current folder: its last part, or the id where that is none."""
    name = download.name.replace("\\", "/").rpartition("/")[2]
    return name if name not in ("", ".", "..") else download.file_id


def _parse_range(text: str) -> tuple[int, int | None]:
    if not text:
        return 0, None
    found = re.fullmatch(r"([0-9]{1,16})-([0-9]{0,16})", text)
    if found is None or (found[2] and int(found[2]) <= int(found[1])):
        raise ServiceError("bad_request", f"{text!r} is not a range", "say 0-1000, or 1000- up to the end")
    return int(found[1]), int(found[2]) if found[2] else None
