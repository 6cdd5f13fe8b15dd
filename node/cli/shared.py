"""Shared parts of all commands: options before the command, the node's folder, its keys and its daemon, and errors."""

import json
import os
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from node.cli.hints import as_called
from node.runtime.errors import LOST_STORE_ADVICE, ServiceError, kind_of
from node.runtime.language import in_language
from ravel.characters import display_safe
from ravel.home import find_home

if TYPE_CHECKING:  # the client is imported when a command needs it: `ravel --help` must be quick
    from node.home.key_file import Keys
    from ravel import Client
    from ravel.types.repos import RepoView

_REPOS_NAMED_MAX: Final = 5
EMPTY_ADVICE: Final = "in a shell, a variable that is not set gives an empty text"
_YES: Final = frozenset({"y", "yes", "j", "ja"})
_NO: Final = frozenset({"n", "no", "nein"})
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Overrides any key, e.g. network.advertise=a.example:7474."
    ),
]
LocalOption = Annotated[
    bool, typer.Option("--local", help="Also make a link that works on this machine only: for trials.")
]


YesOption = Annotated[bool, typer.Option("--yes", help="Do it without asking, as a script must.")]


@dataclass(frozen=True, slots=True)
class Settings:
    """Options that stand before the command."""

    home_option: Path | None
    passphrase_file: str | None = None

    @property
    def home(self) -> Path:
        """Return the node's folder. Raises ServiceError."""
        return find_home(self.home_option)


def settings(context: typer.Context) -> Settings:
    """Return the settings of this run."""
    found = context.find_object(Settings)
    assert found is not None, "the main callback sets them"
    return found


def unlocked(context: typer.Context) -> "Keys":
    """Open the folder's keys; a passphrase comes from where `node.home.passphrases` says. Raises ServiceError."""
    from node.home.identity import open_keys
    from node.home.passphrases import ask_passphrase, given_passphrase

    found = settings(context)

    def passphrase() -> bytes:
        given = given_passphrase(found.passphrase_file, os.environ)
        return ask_passphrase(f"Passphrase of {found.home}: ") if given is None else given

    return open_keys(found.home, passphrase)


def client(context: typer.Context) -> "Client":
    """Connect to the daemon that runs in the folder; wait for one that is starting. Raises ServiceError."""
    from node.home.default_repo import load_default_repo
    from ravel import connect

    home = settings(context).home
    try:
        return connect(home, repo=load_default_repo(home))
    except ServiceError as error:
        if error.code != "not_running":
            raise
    # What follows takes a fifth of a quick command's time to import.
    from node.home.home import open_home
    from node.home.starting import wait_for_daemon
    from ravel.home import is_locked

    opened = open_home(home)
    if not is_locked(home) and not opened.storage_url:
        _check_store(home)
    wait_for_daemon(home, say)
    return connect(home, repo=load_default_repo(home))


def _check_store(home: Path) -> None:
    """Raise ServiceError if no daemon can start there, since the store is lost: to start one is no advice then."""
    from node.home.folder_mark import check_store_stayed
    from storage.engine.errors import LostStore, StorageError
    from storage.engine.sqlite import SqliteBackend

    try:
        check_store_stayed(home)
        SqliteBackend(home).exists()
    except LostStore as error:
        raise ServiceError("storage_failed", str(error), LOST_STORE_ADVICE) from None
    except (StorageError, OSError):  # the start says what is wrong
        pass


def repo_in_use(home: Path, api: "Client", *, is_asked: bool = True) -> str:
    """Return the repo that is meant where none is named: the one in use, else the only one. Raises ServiceError.

    Where the user `is_asked` nothing, the repo in use is not enough: a shell's unset variable names none either.
    """
    from node.home.default_repo import load_default_repo

    chosen, repos = load_default_repo(home), api.list_repos()["repos"]
    own = [one for one in repos if not _is_made_by_itself(one)] or repos
    found = [one for one in repos if one["repo"] == chosen] or own
    if len(found) != 1 or (len(own) > 1 and not is_asked):
        names = ", ".join(one["name"] or one["repo"] for one in own[:_REPOS_NAMED_MAX])
        names += f" and {len(own) - _REPOS_NAMED_MAX} more" if len(own) > _REPOS_NAMED_MAX else ""
        raise ServiceError(
            "ambiguous" if repos else "not_found",
            f"it is not said which repo is meant: {names}" if repos else "there is no repo here yet",
            ("name one, or choose one: `ravel use REPO`" if is_asked else "name one, or leave out --yes")
            if repos
            else "ravel repo create NAME, or ravel repo join -",
        )
    [one] = found
    is_unique = sum(other["name"] == one["name"] for other in repos) == 1
    return one["name"] if one["name"] and is_unique else one["repo"]


def _is_made_by_itself(repo: "RepoView") -> bool:
    """Return True for a repo that nobody means unnamed: of this user's comments or devices, or of another's comments."""
    is_of_comments = repo["name"] == "comments" and repo["permission"] == "owner"
    return repo["of_devices"] or is_of_comments or not repo["whole"]


def say(text: str) -> None:
    """Print a message for the user on stderr, beside the command's output."""
    print(display_safe(as_called(in_language(text))), file=sys.stderr, flush=True)


def confirm(question: "str | Callable[[], str]", *, yes: bool) -> None:
    """Ask before an act that cannot be undone. Raises ServiceError without a terminal, unless an option says yes.

    A function as `question` is called once there is a terminal. It raises where there is nothing to ask about.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise ServiceError(
            "bad_request", "this cannot be undone, and there is no terminal to ask at", "say --yes"
        )
    if not agrees(question if isinstance(question, str) else question()):
        say("Nothing was changed.")
        raise typer.Exit(2)


def agrees(question: str, *, default: bool = False) -> bool:
    """Ask at the terminal, in the reader's language. Letters of every language that has a table are understood."""
    choice = in_language("[Y/n]" if default else "[y/N]")
    while True:
        shown = f"{display_safe(in_language(question))} {choice}"
        typed = typer.prompt(shown, default="", show_default=False, err=True).strip().lower()
        if not typed:
            return default
        if typed in _YES | _NO:
            return typed in _YES
        say("Type y or n.")


def fail(error: ServiceError, *, as_json: bool) -> int:
    """Print an error, and return its exit code."""
    if as_json:
        print(json.dumps(error.as_json(), ensure_ascii=False), flush=True)
    else:
        print(
            f"{in_language('error:')} {display_safe(as_called(in_language(error.message)))}", file=sys.stderr
        )
        if error.advice:
            print(
                f"{in_language('next:'):<6} {display_safe(as_called(in_language(error.advice)))}",
                file=sys.stderr,
            )
    return kind_of(error).exit_code


def note_requests(repos: "Iterable[RepoView]") -> None:
    """Print how to answer requests to join one of these repos, if there are any."""
    if any(one["requests"] for one in repos):
        say("note: `ravel requests list` shows who asks to be let in")


def note_faults(faults: Iterable[str]) -> None:
    """Say last what could be overlooked: that this node may be unable to store, whatever peers hold."""
    for one in faults:
        say(f"warning: what is written or comes may not be stored here: {one}")
