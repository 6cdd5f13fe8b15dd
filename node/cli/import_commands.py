"""import: other systems' histories into branches, in batches that the daemon makes durable one by one."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from node.cli import words
from node.cli.answers import Outcome, print_table, prints
from node.cli.completion import complete_branches
from node.cli.printing import say_wrapped
from node.cli.progress import show_progress
from node.runtime.errors import ERROR_KINDS, EXIT_OK, ServiceError
from node.runtime.wording import counted
from protocol.limits.formats import NAME_SIZE_MAX
from protocol.limits.users import IMPORTED_WINDOW_MAX
from ravel.characters import display_safe

if TYPE_CHECKING:  # types of answers: `ravel --help` must be quick
    from node.importers.item import PackedItem
    from node.importers.ssb_log import RefusedLine, SsbReport
    from ravel import Client
    from ravel.types.files import ImportResult

import_ = typer.Typer(no_args_is_help=True, help="Import a history; a second run adds what is new.")

BranchOption = Annotated[
    str,
    typer.Option(
        "--branch",
        help="Branch to import into: name, REPO:NAME, id or prefix.",
        autocompletion=complete_branches,
    ),
]


def _print_log(report: "SsbReport") -> None:
    feeds = counted(len(report.feeds), "feed")
    say_wrapped(
        f"Imported {counted(report.imported, 'message')} of {feeds}. There already: {report.already}."
    )
    if report.refused:
        say_wrapped(f"Refused: {report.refused.total()}.")
        print_table(("reason", "messages"), report.refused.most_common())


@import_.command("ssb")
@prints(_print_log)
def import_ssb(
    api: "Client",
    file: Annotated[
        Path, typer.Argument(help="JSON Lines of {key, value, timestamp}, or the same with .gz.")
    ],
    repo: Annotated[str, typer.Option("--repo", help="Repo to import into: name, id or prefix.")],
    hmac_key: Annotated[
        str, typer.Option(help="The network's HMAC key, 32 bytes in base64, where it has one.")
    ] = "",
    refused: Annotated[
        Path | None, typer.Option(help="Write every refused message to this file, one JSON object a line.")
    ] = None,
) -> Outcome:
    """Import a Scuttlebutt log. Verifies each message; each feed becomes a branch ssb/... ; lists what is refused."""
    from node.importers.ssb_log import hmac_key_of, import_ssb_log

    key = hmac_key_of(hmac_key)
    if hmac_key and key is None:
        raise ServiceError("bad_request", "the HMAC key is not 32 bytes in base64", "give the network's key")
    if refused is not None and refused.exists() and refused.samefile(file):
        raise ServiceError(
            "bad_request", f"{file} is the log itself, which --refused would empty", "name another file"
        )
    target = _RepoTarget(api, repo)
    try:
        with _refusals(refused) as on_refusal, show_progress("imported", "message", None) as progress:
            report = import_ssb_log(file, target, key, progress=progress, on_refusal=on_refusal)
    except KeyboardInterrupt:
        raise _stopped(target.sent) from None
    if not report.imported + report.already + report.refused.total():
        raise ServiceError("bad_input", "there is nothing in it to import", "give a log that has messages")
    is_all_refused = not report.imported + report.already
    code = ERROR_KINDS["bad_input"].exit_code if is_all_refused else EXIT_OK
    return Outcome(report.as_json(), shown=report, exit_code=code)


class _RepoTarget:
    """The branches of a repo, through the API."""

    def __init__(self, api: "Client", repo: str) -> None:
        self._api = api
        self._repo = repo
        self.sent = 0
        self._ids = {one["name"]: one["branch"] for one in api.list_branches(repo)["branches"]}

    def load(self, branch: str) -> Iterator[str]:
        """Yield the ids that were imported into a branch."""
        from node.importers.ssb_log import SSB_SOURCE

        if branch in self._ids:
            yield from imported_ids(self._api, self._ids[branch], SSB_SOURCE)

    def send(self, branch: str, batch: "list[PackedItem]") -> None:
        """Import a batch."""
        from node.importers.ssb_log import SSB_SOURCE

        if branch not in self._ids:
            self._ids[branch] = self._api.create_branch(self._repo, branch)["branch"]
        self.sent += self._api.import_commits(self._ids[branch], batch, SSB_SOURCE)["imported"]


@contextmanager
def _refusals(path: Path | None) -> Iterator[Callable[["RefusedLine"], None]]:
    """Give a function that writes refusals to a file, or drops them where there is none."""
    if path is None:
        yield lambda _: None
        return
    try:
        with path.open("w", encoding="utf-8") as file:
            yield lambda entry: print(json.dumps(entry), file=file)
    except OSError as error:
        raise ServiceError("bad_input", f"{display_safe(str(path))} cannot be written: {error}") from None


@import_.command("git")
@prints(words.IMPORTED)
def import_git(
    api: "Client",
    path: Annotated[Path, typer.Argument(help="A git repository.")],
    branch: BranchOption,
    revision: Annotated[str, typer.Option("--rev", help="What to import: a branch, tag or commit.")] = "HEAD",
) -> Mapping[str, object]:
    """Import a git history: one commit for each git commit, with its parents, author, time and message."""
    from node.importers.git_history import GitHistory
    from node.importers.item import pack

    history = GitHistory(path, revision)
    history.open()
    imported = set(imported_ids(api, branch, "git"))
    if imported:
        history.resume(imported)
    answer = _send(api, branch, "git", pack(history.items()), history.commit_count)
    return {**answer, "cut_parents": history.cut_parents}


@import_.command("jsonl")
@prints(words.IMPORTED)
def import_jsonl(
    api: "Client",
    file: Annotated[Path, typer.Argument(help="JSON Lines, or the same with .gz.")],
    branch: BranchOption,
    source: Annotated[
        str,
        typer.Option(
            help="A name for the source of these ids; a second import from it adds what is new. [default: the file's name]"
        ),
    ] = "",
) -> Mapping[str, object]:
    """Import JSON Lines: objects with id, parents, author, time (unix seconds) and text; parents stand before children."""
    from node.importers.item import pack
    from node.importers.jsonl import read_jsonl

    name = f"jsonl:{source or file.name.removesuffix('.gz')}"
    if len(name) > NAME_SIZE_MAX:
        raise ServiceError("bad_request", "the source's name is too long", "give a short --source")
    return _send(api, branch, name, pack(read_jsonl(file)), None)


def _send(
    api: "Client", branch: str, source: str, batches: Iterator["list[PackedItem]"], total: int | None
) -> "ImportResult":
    from node.importers.item import read_ahead

    answer: ImportResult = {"imported": 0, "already": 0, "heads": 0}
    try:
        with show_progress("imported", "commit", total) as progress:
            for batch in read_ahead(batches):
                part = api.import_commits(branch, batch, source)
                answer["imported"] += part["imported"]
                answer["already"] += part["already"]
                answer["heads"] = part["heads"]
                progress(answer["imported"] + answer["already"])
    except KeyboardInterrupt:
        raise _stopped(answer["imported"]) from None
    if not answer["imported"] + answer["already"]:  # not even the branch was looked for
        raise ServiceError(
            "bad_input", "there is nothing in it to import", "give a source that has something"
        )
    return answer


def _stopped(imported: int) -> ServiceError:
    """Return what a person is told who stopped an import with Ctrl-C."""
    said = f"the import was stopped; imported before that: {imported}"
    return ServiceError("interrupted", said, "run the command again: it adds what is missing")


def imported_ids(api: "Client", branch: str, source: str) -> Iterator[str]:
    """Yield the ids that this node imported into a branch from a source, asked for window by window."""
    after: int | None = 0
    while after is not None:
        window = api.list_imported(branch, source=source, after=after, limit=IMPORTED_WINDOW_MAX)
        yield from window["items"]
        after = window["next"]
