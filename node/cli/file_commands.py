"""file: files of a branch, streamed to and from the daemon."""

import re
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Final

import typer

from node.cli import words
from node.cli.answers import Outcome, Table, prints, short
from node.cli.branch_commands import BranchArgument
from node.cli.completion import complete_files
from node.cli.downloads import check_target, receive
from node.cli.printing import say_wrapped, state_word
from node.cli.progress import Progress, show_progress
from node.cli.shared import YesOption, confirm
from node.cli.uploads import Skipped, Upload, Uploader, find_files, name_paths
from node.cli.wording import author_of, peer_names, time_of
from node.contract.files import find_path_fault
from node.observe.sentences import refusal_advice, refusal_sentence
from node.runtime.errors import ServiceError
from node.runtime.wording import counted, size_text
from ravel.files import Download

if TYPE_CHECKING:  # types of answers: `ravel --help` must be quick
    from ravel import Client
    from ravel.types.files import FileList, FileView, RemovedFile

file = typer.Typer(no_args_is_help=True, help="Files of a branch.")

FileArgument = Annotated[
    str, typer.Argument(help="Name, id, or unique prefix of an id.", autocompletion=complete_files)
]
_PIECE_SIZE: Final = 1 << 20


def _upload_counts(upload: Upload, skipped: Skipped) -> dict[str, object]:
    return {
        "files": upload.count,
        "added": upload.new_count,
        "already": upload.count - upload.new_count,
        "bytes": upload.size,
        "skipped": skipped.count,
    }


@file.command("add")
@prints(words.FILE_ADDED)
def add(
    api: "Client",
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
) -> Outcome:
    """Add files, and all files in folders, to a branch. They are durable when the command returns.

    A file in a folder is called FOLDER/PATH. Links in folders are not followed, and empty folders leave nothing. A file that
    the branch has under the same name and with the same content is passed over: a command that was cut can be run again. One
    that no branch can call so is left out, and the exit code is 3.
    """
    if [str(path) for path in paths] == ["-"] or (len(paths) == 1 and _is_stream(paths[0])):
        return Outcome(_add_stream(api, branch, paths[0], name))
    if any(str(path) == "-" for path in paths):
        raise ServiceError("bad_request", "standard input is added by itself", "leave the other paths out")
    named, skipped = name_paths(paths, name), Skipped()
    # Looked through twice: the first time tells how much there is, and what cannot be added, before anything is sent.
    total = sum(found.size for found in find_files(named, Skipped(), with_hidden=hidden))
    with show_progress("read", "byte", total) as progress:
        found = find_files(named, skipped, with_hidden=hidden)
        upload = Uploader(lambda body: api.add_files(branch, body), found, progress).run()
    if len(paths) == 1 and paths[0].is_file() and upload.last is not None:
        return Outcome(upload.last)
    answer = {**_upload_counts(upload, skipped), "first_skipped": skipped.first}
    return Outcome(answer, exit_code=skipped.exit_code)


_PLACES: Final = {
    "only_here": "only here so far",
    "here": "here",
    "away": "comes when you get it",
    "unknown": "",
}


def _print_files(shown: "tuple[list[FileView], FileList, Mapping[str, str]]") -> None:
    found, answer, names = shown
    uses_relays = answer["uses_relays"]
    relays = [("relays", lambda row: row["relays"] or state_word("none"))] if uses_relays else []
    is_told = any(row["place"] != "here" for row in found)
    where = [("where", lambda row: state_word(_PLACES[row["place"]]))] if is_told else []
    columns = (
        short("file"),
        "name",
        ("size", lambda row: "" if row["size"] is None else size_text(row["size"])),
        ("time", time_of("time")),
        ("author", author_of),
        *where,
        *relays,
    )
    Table("files", *columns)({"files": found})
    lacking = sum(not row["relays"] for row in found) if uses_relays else 0
    if lacking:
        print(f"on no relay: {lacking} of {counted(len(found), 'file')}")
        for one in answer["refusals"]:
            relay = names.get(one["relay"], one["relay"][:12])
            say_wrapped(f"relay {relay} takes no more: {refusal_sentence(one['reason'])}")
            if advice := refusal_advice(one["reason"]):
                say_wrapped(f"next:  {advice}", indent="       ")


@file.command("list")
@prints(_print_files)
def list_files(api: "Client", branch: BranchArgument = "") -> Outcome:
    """List the files of a branch."""
    found, answer = _all_files(api, branch, places=True)
    names = peer_names(api) if answer["refusals"] else {}
    return Outcome({"files": found}, shown=(found, answer, names))


def _all_files(api: "Client", branch: str, *, places: bool = False) -> "tuple[list[FileView], FileList]":
    """List all files of a branch, and the last window. Costs a request for each 1,000."""
    found: list[FileView] = []
    after: int | None = 0
    while after is not None:
        answer = api.list_files(branch, after=after, limit=1000, places=places)
        found += answer["files"]
        after = answer["next"]
    return found, answer


@file.command("get")
@prints(words.FILE_GOT)
def get(
    api: "Client",
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
) -> Mapping[str, object] | None:
    """Read a file, or all files of a folder. Each appears at its place whole, or not at all.

    A device or a pipe that is there is written into.
    """
    start, stop = _parse_range(span)
    try:
        return _get_file(api, branch, file, out, (start, stop), force=force)
    except ServiceError as error:
        if error.code != "not_found" or span or (out is not None and str(out) == "-"):
            raise
        found, _ = _all_files(api, branch)
        # Of files with one name the last one counts.
        inside = {one["name"]: one for one in found if one["name"].startswith(f"{file.rstrip('/')}/")}
        if not inside:
            raise
    return _get_folder(api, branch, file.rstrip("/"), [*inside.values()], out, force=force)


def _get_folder(
    api: "Client", branch: str, folder: str, inside: "list[FileView]", out: Path | None, *, force: bool
) -> dict[str, object]:
    """Write files below a folder of the disk. Names that lead out of it are refused, before anything is written."""
    base = out or Path(folder.rpartition("/")[2])
    places = {one["name"]: base / one["name"].removeprefix(f"{folder}/") for one in inside}
    for name, place in places.items():
        if fault := find_path_fault(name):
            raise ServiceError(
                "bad_input",
                f"{name!r} cannot be put into a folder: {fault}",
                "get it alone, with --out",
            )
        check_target(place, name, replaces=force)
    size = 0
    for one in inside:
        target = places[one["name"]]
        target.parent.mkdir(parents=True, exist_ok=True)
        with _open_listed(api, branch, one) as download:
            receive(
                download.pieces,
                check_target(target, one["name"], replaces=force),
                download.size,
                replaces=force,
            )
        size += download.size
    return {"path": str(base), "files": len(inside), "size": size}


@contextmanager
def _open_listed(api: "Client", branch: str, one: "FileView") -> Iterator[Download[Iterator[bytes]]]:
    """Open a listed file by its id, since its name may have had other contents; by its name if contents share an id."""
    with ExitStack() as stack:
        try:
            download = stack.enter_context(api.get_file(branch, one["file"]))
        except ServiceError as error:
            if error.code != "ambiguous":
                raise
            download = stack.enter_context(api.get_file(branch, one["name"]))
        yield download


def _get_file(
    api: "Client", branch: str, file: str, out: Path | None, span: tuple[int, int | None], *, force: bool
) -> dict[str, object] | None:
    """Write a file, or a part of it, to its place; return None if it went to standard output."""
    start, stop = span
    with api.get_file(branch, file, start=start, stop=stop) as download:
        if out is not None and str(out) == "-":
            for piece in download.pieces:
                sys.stdout.buffer.write(piece)
            return None
        name = _local_name(download)
        target = check_target(out or Path(name), name, replaces=force)
        size = max(min(download.size, download.size if stop is None else stop) - start, 0)
        receive(download.pieces, target, size, replaces=force)
    return {
        "path": str(out or Path(name)),
        "file": download.file_id,
        "name": download.name,
        "size": size,
    }


@file.command("rm")
@prints(words.FILE_REMOVED)
def remove(
    api: "Client", branch: BranchArgument, file: FileArgument, yes: YesOption = False
) -> "RemovedFile":
    """Remove a file from a branch for all members. Nodes keep its content but send it to nobody."""

    def question() -> str:
        found, _ = _all_files(api, branch)
        if not any(one["name"] == file or one["file"].startswith(file) for one in found):
            raise ServiceError(
                "not_found", f"no file is called {file!r}", f"`ravel file list {branch}` shows what there is"
            )
        return f"Nobody will get {file} from {branch} any more. Remove {file}?"

    confirm(question, yes=yes)
    return api.remove_file(branch, file)


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


def _add_stream(api: "Client", branch: str, path: Path, name: str) -> "FileView":
    """Add a file whose size is not known before its end."""
    if str(path) == "-" and not name:
        raise ServiceError("bad_request", "what comes by standard input has no name", "give one: --name NAME")
    try:
        with (
            sys.stdin.buffer if str(path) == "-" else path.open("rb") as source,
            show_progress("read", "byte", None) as progress,
        ):
            return api.add_file(branch, _read(source, progress), name=name or path.name)
    except OSError as error:
        raise ServiceError("bad_input", f"{path} cannot be read: {error}", "give a readable file") from None


def _read(source: IO[bytes], progress: Progress) -> Iterator[bytes]:
    done = 0
    while piece := source.read(_PIECE_SIZE):
        yield piece
        done += len(piece)
        progress(done)


def _local_name(download: Download[Iterator[bytes]]) -> str:
    """Return a file's name in the current folder: its last part, or the id where that is none."""
    name = download.name.replace("\\", "/").rpartition("/")[2]
    return name if name not in ("", ".", "..") else download.file_id


def _parse_range(text: str) -> tuple[int, int | None]:
    if not text:
        return 0, None
    found = re.fullmatch(r"([0-9]{1,16})-([0-9]{0,16})", text)
    if found is None or (found[2] and int(found[2]) <= int(found[1])):
        raise ServiceError("bad_request", f"{text!r} is not a range", "say 0-1000, or 1000- up to the end")
    return int(found[1]), int(found[2]) if found[2] else None
