"""Shared parts of all commands: the node folder, JSON or text output, escaping of untrusted text."""

import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from node.runtime.errors import LOST_STORE_ADVICE, ServiceError, kind_of
from protocol.limits.users import IMPORTED_WINDOW_MAX
from ravel.characters import display_safe
from ravel.home import find_home

if TYPE_CHECKING:  # the client is imported when a command needs it: `ravel --help` must be quick
    from node.home.key_file import Keys
    from ravel import Client
    from ravel.types.node import NodeStatus
    from ravel.types.peers import PeerView, TopicView
    from ravel.types.repos import RepoView

SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Overrides any key, e.g. network.advertise=a.example:7474."
    ),
]
LocalOption = Annotated[
    bool, typer.Option("--local", help="Also make a link that works on this machine only: for trials.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


@dataclass(frozen=True, slots=True)
class Settings:
    """Options that stand before the command."""

    home_option: Path | None
    passphrase_file: str | None = None

    @property
    def home(self) -> Path:
        """The node's folder. Raises ServiceError."""
        return find_home(self.home_option)


def settings(context: typer.Context) -> Settings:
    """The settings of this run."""
    found = context.find_object(Settings)
    assert found is not None, "the main callback sets them"
    return found


def unlocked(context: typer.Context) -> "Keys":
    """The folder's keys; a passphrase comes from where `node.home.passphrases` says. Raises ServiceError."""
    from node.home.identity import open_keys
    from node.home.passphrases import ask_passphrase, given_passphrase

    found = settings(context)

    def passphrase() -> bytes:
        given = given_passphrase(found.passphrase_file, os.environ)
        return ask_passphrase(f"Passphrase of {found.home}: ") if given is None else given

    return open_keys(found.home, passphrase)


def client(context: typer.Context) -> "Client":
    """The API of the daemon that runs in the folder; one that is starting is waited for. Raises ServiceError."""
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


def imported_ids(api: "Client", branch: str, source: str) -> Iterator[str]:
    """Yield the ids that this node imported into a branch from a source, asked for window by window."""
    after: int | None = 0
    while after is not None:
        window = api.list_imported(branch, source=source, after=after, limit=IMPORTED_WINDOW_MAX)
        yield from window["items"]
        after = window["next"]


def _check_store(home: Path) -> None:
    """Raise ServiceError if no daemon can start there, since the store is lost: to start one is no advice then."""
    from storage.engine.errors import LostStore, StorageError
    from storage.engine.sqlite import SqliteBackend

    try:
        SqliteBackend(home).exists()
    except LostStore as error:
        raise ServiceError("storage_failed", str(error), LOST_STORE_ADVICE) from None
    except (StorageError, OSError):  # the start says what is wrong
        pass


def print_json(answer: Mapping[str, object]) -> None:
    """One JSON object on standard output."""
    print(json.dumps(answer, ensure_ascii=False), flush=True)


def print_answer(answer: Mapping[str, object], *, as_json: bool) -> None:
    """A whole answer: as JSON, or each of its fields on a line."""
    print_json(answer) if as_json else print_fields(answer.items())


def print_fields(fields: Iterable[tuple[str, object]]) -> None:
    """Names and values, one a line."""
    rows = [(name, _as_text(value)) for pair in fields for name, value in _flat(*pair)]
    width = max((len(name) for name, _ in rows), default=0)
    for name, value in rows:
        print(f"{name:<{width}}  {display_safe(value)}")


def _flat(name: str, value: object) -> Iterator[tuple[str, object]]:
    """A field, or those of a field that has fields, each called by both names."""
    if not isinstance(value, Mapping):
        yield name, value
        return
    for key, part in value.items():
        yield from _flat(f"{name}.{key}", part)


def _as_text(value: object) -> str:
    if isinstance(value, list):
        is_nested = any(isinstance(item, Mapping) for item in value)
        return ("; " if is_nested else ", ").join(_as_text(item) for item in value)
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_as_text(part)}" for key, part in value.items())
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else str(value)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A table: drawn with rich on a terminal, tab-separated where it is piped. The names of its columns come first.

    A piped list of one column has no name: another command reads its lines (`ravel set add BRANCH -`).
    """
    texts = [[display_safe(_as_text(value)) for value in row] for row in rows]
    if not sys.stdout.isatty():
        for row in (columns, *texts) if len(columns) > 1 else texts:
            print("\t".join(row))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(*columns, box=None, pad_edge=False, header_style="bold")
    for row in texts:
        table.add_row(*(Text(value) for value in row))
    Console().print(table)


def topic_name(topic: "TopicView") -> str:
    """A topic as tables name it: the repo's name, and what of it travels there."""
    return topic["name"] if topic["kind"] == "epoch" else f"{topic['name']} ({topic['kind']})"


def path_line(peer: "PeerView") -> str:
    """Where a connection goes: the peer's address, or the relay between."""
    if peer["through"] is None:
        if peer["path"] == "punched":
            return f"{peer['address']} through both routers"
        is_shown = not peer["websocket"] or "://" in peer["address"]
        return peer["address"] if is_shown else f"{peer['address']} by WebSocket"
    return f"through relay {peer['through_name'] or peer['through']}"


def iso_time(seconds: int) -> str:
    """Unix seconds as a date and time in UTC; authors may assert any number."""
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M")
    except (OverflowError, OSError, ValueError):
        return "?"


def first_line(text: str | None, width: int) -> str:
    """The first line of a text, cut to a width."""
    line = (text or "").strip().partition("\n")[0]
    return line if len(line) <= width else line[: width - 1] + "…"


def say(text: str) -> None:
    """Tell the user, beside what the command prints, what it is about."""
    print(display_safe(text), file=sys.stderr, flush=True)


def fail(error: ServiceError, *, as_json: bool) -> int:
    """Say an error, and give the exit code."""
    if as_json:
        print_json(error.as_json())
    else:
        print(f"error: {display_safe(error.message)}", file=sys.stderr)
        if error.advice:
            print(f"next:  {display_safe(error.advice)}", file=sys.stderr)
    return kind_of(error).exit_code


def note_requests(repos: "Iterable[RepoView]") -> None:
    """Say how to answer those who ask to be let into one of these repos, if any does."""
    if any(one["requests"] for one in repos):
        print("note: `ravel requests list` shows who asks to be let in", file=sys.stderr)


def note_faults(status: "NodeStatus") -> None:
    """Say last what else would be overlooked: that this node may store nothing, whatever peers hold."""
    for one in status["faults"]:
        say(f"warning: what is written or comes may not be stored here: {one}")
