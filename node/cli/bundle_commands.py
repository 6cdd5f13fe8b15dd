"""bundle: a repo's publications in a file, sealed, for a stick or a mail."""

import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Final

import typer

from node.cli import words
from node.cli.answers import Outcome, prints
from node.cli.completion import complete_branches
from node.cli.downloads import check_target, receive
from node.cli.inputs import unix_moment
from node.cli.progress import Progress, show_progress
from node.cli.repo_commands import RepoArgument
from node.cli.shared import say
from node.runtime.errors import ERROR_KINDS, EXIT_OK, ServiceError
from node.runtime.wording import counted

if TYPE_CHECKING:  # types of answers: `ravel --help` must be quick
    from protocol.formats.bundle import BundleEnd
    from ravel import Client

bundle = typer.Typer(
    no_args_is_help=True, help="Carry a repo by a file, sealed: only its members can use it."
)

_PIECE_SIZE: Final = 1 << 20


@bundle.command("write")
@prints(words.BUNDLE_WRITTEN)
def write(
    api: "Client",
    repo: RepoArgument = "",
    *,
    to: Annotated[Path, typer.Option("--to", metavar="FILE", help="The file to write.")],
    since: Annotated[
        str,
        typer.Option(
            metavar="DATE",
            help="Only what this node has taken in from then on: 2026-11-01, 2026-11-01T18:00:00 (local time), or 7d ago.",
        ),
    ] = "",
    branches: Annotated[
        str,
        typer.Option(
            help="Only these, with commas between their names or ids. What members and rights need is always in it.",
            autocompletion=complete_branches,
        ),
    ] = "",
    force: Annotated[bool, typer.Option("--force", help="Replace what is there.")] = False,
) -> Outcome:
    """Write a repo to a file, as peers exchange it. It appears under its name when it is whole.

    Posts and edits are in it, the content of files is not. Who is no member sees how many commits there are, and when the
    bundle begins; no text, name or key.
    """
    _require_plain(to)
    moment = unix_moment(since, int(time.time())) if since else None
    ends: list[BundleEnd] = []
    with api.write_bundle(repo, since=moment, branches=branches) as pieces:
        receive(_checked(pieces, ends), check_target(to, "repo.bundle", replaces=force), None, replaces=force)
    end = ends[0]
    keeping = api.show_keeping(repo)
    if absent := keeping["absent"] + keeping["older_absent"]:
        say(
            f"note: contents of {counted(absent, 'commit')} are not kept on this computer, and none of them is in the file. "
            "Have a computer write it that keeps all"
        )
    answer = {
        "path": str(to),
        "size": to.stat().st_size,
        "commits": end.count,
        "left_out": end.left_out,
        "since": moment,
    }
    return Outcome(answer, exit_code=_incomplete(end.left_out))


@bundle.command("read")
@prints(words.BUNDLE_READ)
def read(
    api: "Client",
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A file that `ravel bundle write` has written.")
    ],
) -> Outcome:
    """Take what a bundle carries of your repos. All of it is checked, as if a peer had sent it.

    What is here is passed over: a reading that was cut goes on when the command is run again.
    """
    _require_plain(file)
    with _opened(file) as source, show_progress("read", "byte", file.stat().st_size) as progress:
        answer = api.read_bundle(_pieces(source, progress))
    return Outcome(answer, exit_code=_incomplete(answer["waiting"], answer["unopened"], answer["missing"]))


def _incomplete(*counts: int) -> int:
    return ERROR_KINDS["incomplete"].exit_code if any(counts) else EXIT_OK


def _require_plain(path: Path) -> None:
    """Raise ServiceError `bad_input` for a pipe or a device: reading may have no end, and writing may destroy a disk."""
    try:
        mode = path.stat().st_mode
    except OSError:  # said where it is opened
        return
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise ServiceError(
            "bad_input", f"{path} is a pipe or a device", "give a file on the disk or the stick"
        )


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    try:
        with path.open("rb") as source:
            yield source
    except OSError as error:
        raise ServiceError(
            "bad_input", f"{path} cannot be read: {error.strerror or error}", "give a readable file"
        ) from None


def _pieces(source: IO[bytes], progress: Progress) -> Iterator[bytes]:
    done = 0
    while piece := source.read(_PIECE_SIZE):
        yield piece
        done += len(piece)
        progress(done)


def _checked(pieces: Iterator[bytes], ends: "list[BundleEnd]") -> Iterator[bytes]:
    """Hand on a bundle's bytes, and note its end. Raises ServiceError `interrupted` where it has none."""
    from protocol.codec import DecodeError
    from protocol.formats.bundle import BundleDecoder, BundleEnd

    decoder = BundleDecoder()
    try:
        for piece in pieces:
            ends += [one for one in decoder.feed(piece) if isinstance(one, BundleEnd)]
            yield piece
        decoder.finish()
    except DecodeError as error:
        raise ServiceError(
            "interrupted",
            f"the daemon stopped sending: {error.detail}",
            "look at the daemon's log, and run the command again",
        ) from None
