"""CLI: run, status, storage, id and open."""

import sys
from typing import TYPE_CHECKING, Annotated, Final

import typer

from node.cli.answers import Outcome, Table, print_fields, prints
from node.cli.printing import is_terminal, is_verbose, say_wrapped
from node.cli.shared import SetOption, client, note_faults, note_requests, settings, unlocked
from node.cli.status_view import damaged_line, lost_line, print_overview, print_standings
from node.cli.streams import lose_output
from node.cli.wording import path_line, progress_line, topic_name
from node.observe.sentences import (
    called,
    clock_sentence,
    displaced_sentence,
    own_commits_sentence,
    version_sentence,
)
from node.runtime.wording import counted, date_text, size_text
from ravel.characters import display_safe

if TYPE_CHECKING:  # types of answers: `ravel --help` must be quick
    from collections.abc import Mapping

    from ravel import Client
    from ravel.types.browsers import PairingCode
    from ravel.types.node import (
        ExportStatus,
        NodeStatus,
        OwnAddressView,
        StorageUse,
        StoreBound,
    )
    from ravel.types.peers import TopicView
    from ravel.types.repos import RepoView
    from ravel.types.search import SearchIndexView

_PAIRS_A_LINE: Final = 8
"""Pairs of digits of a fingerprint, which has 32, that a person compares at a look."""


def run(
    context: typer.Context,
    listen: Annotated[str | None, typer.Option(help="Overrides network.listen.")] = None,
    api: Annotated[str | None, typer.Option(help="Overrides api.listen.")] = None,
    log_level: Annotated[str | None, typer.Option(help="Overrides log.level.")] = None,
    storage_url: Annotated[str | None, typer.Option(help="Overrides storage.url.")] = None,
    options: SetOption = None,
) -> None:
    """Run the daemon in the foreground, until Ctrl-C or SIGTERM. Prints one line when it is ready.

    Options override environment variables (RAVEL_NETWORK_LISTEN), which override the configuration file.
    """
    lose_output()
    # structlog imports rich where it is, to colour what a terminal shows: 3 MB of a daemon, which logs plain lines.
    rich = sys.modules.get("rich")
    sys.modules["rich"] = None  # type: ignore[assignment]  # so an import fails
    from node.daemon import run as run_daemon
    from node.home.home import open_home

    if rich is None:
        del sys.modules["rich"]
    else:
        sys.modules["rich"] = rich

    named = (
        ("network.listen", listen),
        ("api.listen", api),
        ("log.level", log_level),
        ("storage.url", storage_url),
    )
    given = [f"{key}={value}" for key, value in named if value is not None]
    run_daemon(open_home(settings(context).home, [*(options or ()), *given]), lambda: unlocked(context))


class _StatusPrinter:
    """Printer of a node's status: an overview, or with `--verbose` all that is known."""

    has_more = True

    def __call__(self, shown: "tuple[NodeStatus, list[RepoView], str]") -> None:
        """Print it."""
        status, repos, name = shown
        if is_verbose():
            _print_status(status, repos)
        else:
            print_overview(status, repos, name)
        note_requests(repos)
        if is_verbose():
            note_faults(status["faults"])


def _print_status(answer: "NodeStatus", repos: "list[RepoView]") -> None:
    use = answer["key_use"]
    lines = {
        **answer,
        "addresses": _addresses_line(answer["addresses"]),
        "router": f"{answer['router']['state']}: {answer['router']['detail']}".removesuffix(": "),
        "damaged": damaged_line(answer["damaged"]),
        "lost_writes": lost_line(answer["lost_writes"]),
        "key_use": "; ".join(filter(None, (displaced_sentence(use), own_commits_sentence(use)))),
        "clock": clock_sentence(answer["clock"]),
        "faults": "; ".join(answer["faults"]),
        "storage_bound": _bound_line(answer["storage_bound"]),
        "export": _export_line(answer["export"]),
        "search": _search_line(answer["search"]),
    }
    print_fields((name, value) for name, value in lines.items() if name != "peers" and value != "")
    if repos:
        print()
        print_standings(repos)
    for peer in answer["peers"]:
        kind = "relay" if peer["relay"] else "peer"
        name = f"{called(peer)}  " if called(peer) else ""
        said = f"{name}{peer['peer']}  {peer['state']} ({peer['direction']}, {path_line(peer)})"
        print(f"\n{kind} {display_safe(said)}")
        if peer["last_error"]:
            print_fields([("  last error", peer["last_error"])])
        if said := version_sentence(peer):
            print_fields([("  version", said)])
        if peer["waiting_topics"]:
            print_fields([("  topics", f"{peer['waiting_topics']} wait for their turn to be compared")])
        _TOPICS(peer)


@prints(_StatusPrinter())
def status(context: typer.Context) -> Outcome:
    """Show how each repo stands with others, which computers are connected, and what is wrong. --verbose shows all."""
    api = client(context)
    answer, repos = api.show_status(), api.list_repos()["repos"]
    standings = [{"repo": one["repo"], "name": one["name"], **one["standing"]} for one in repos]
    name = api.show_me()["name"] or ""
    return Outcome({**answer, "standings": standings}, shown=(answer, repos, name))


class _StoragePrinter:
    """Printer of the use of the disk: in sentences on a terminal; all numbers in a pipe and where all is asked for."""

    has_more = True

    def __call__(self, answer: "StorageUse") -> None:
        """Print it."""
        size = ("size", lambda one: size_text(one["size"]))
        causes = Table("causes", "cause", "commits", size)
        if is_terminal() and not is_verbose():
            say_wrapped(_storage_sentence(answer))
            if (relay := answer["relay"]) is not None:
                kept, most = size_text(relay["size"]), size_text(relay["size_max"])
                say_wrapped(f"Kept for others: {kept} of {most}, in {counted(relay['topics'], 'topic')}.")
            if answer["causes"]:
                say_wrapped("Of what came in the last 30 days:")
                causes(answer)
            return
        parts = ("database", "log", "older", "packs", "free")
        print_fields((name, size_text(answer[name])) for name in parts)  # type: ignore[literal-required]  # named above
        if (relay := answer["relay"]) is not None:
            room = f"{size_text(relay['size'])} of {size_text(relay['size_max'])}, {counted(relay['topics'], 'topic')}"
            print_fields([("relay", room)])
        Table("days", "day", "commits", size)(answer)
        causes(answer)


def _storage_sentence(answer: "StorageUse") -> str:
    whole = answer["database"] + answer["log"] + answer["older"] + answer["packs"]
    said = f"Ravel takes {size_text(whole)} here, and {size_text(answer['free'])} of the disk are free."
    if answer["packs"]:
        said += f" Files take {size_text(answer['packs'])}."
    if answer["older"]:
        said += f" Copies from before repairs and upgrades take {size_text(answer['older'])}."
    return said


@prints(_StoragePrinter())
def storage(api: "Client") -> "StorageUse":
    """Show disk use, growth on each of the last days and by cause, and a relay's free quota."""
    return api.show_storage()


def _state_line(topic: "TopicView") -> str:
    if topic["stalled_since"]:
        reason = (topic["stalled_because"] or "").replace("_", " ")
        return f"stalled since {date_text(topic['stalled_since'])}: {reason}"
    if not topic["bodiless"]:
        return topic["state"]
    return f"{topic['state']}, but for commits that need bodies which the peer has erased"


def _addresses_line(addresses: list["OwnAddressView"]) -> str:
    if not addresses:
        return "none: this machine is on no network"
    return ", ".join(f"{one['address']} ({one['reach']}, {one['found_by']})" for one in addresses)


def _search_line(index: "SearchIndexView") -> str:
    if index["state"] == "building":
        return f"the index is being made: {index['percent']} %"
    return "" if index["state"] == "ready" else "left out: search.enabled is false"


def _bound_line(bound: "StoreBound | None") -> str:
    if bound is None:
        return ""
    days = "" if bound["days"] is None else f", posts of {counted(bound['days'], 'day')}"
    return f"{size_text(bound['size'])} of {size_text(bound['size_max'])}{days}, {bound['state'].replace('_', ' ')}"


def _export_line(export: "ExportStatus") -> str:
    if export["last_error"]:
        return f"failed: {export['last_error']}"
    when = date_text(export["finished_at"]) if export["finished_at"] else "not since the start"
    every = f", every {counted(export['interval'], 'minute')}" if export["interval"] else ""
    return f"{when}{every}, to {export['destination']}"


_TOPICS = Table(
    "topics",
    ("topic", topic_name),
    ("state", _state_line),
    "behind",
    ("to send", "to_send"),
    "sent",
    "confirmed",
    "received",
    ("progress", lambda topic: "" if topic["progress"] is None else progress_line(topic["progress"])),
)


@prints()
def show_id(context: typer.Context) -> "Mapping[str, object]":
    """Print the node's id (what peers dial) and the user's id (what commits are signed with)."""
    from node.home.home import open_home
    from node.home.identity import read_keys

    file = read_keys(open_home(settings(context).home).path)
    return {"node": file.node, "user": file.user}


def _print_page(shown: "tuple[str, bool] | PairingCode") -> None:
    if not isinstance(shown, tuple):
        _print_pairing(shown)
        return
    address, starts_browser = shown
    print(address, flush=True)
    if starts_browser:
        import webbrowser

        webbrowser.open(address)


@prints(_print_page)
def open_page(
    api: "Client",
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Start a browser, or only print the address.")
    ] = True,
    remote: Annotated[
        bool,
        typer.Option(
            "--remote",
            help="Pair a browser of another machine, such as a phone: print address, code and QR code.",
        ),
    ] = False,
) -> Outcome:
    """Open the node's web page. The address holds a code that is good once, for a minute, on this machine.

    With --remote it holds one that pairs a browser of another machine, once, within 10 minutes. That needs [api] tls.
    """
    if remote:
        return Outcome(api.make_pairing_code())
    answer = api.make_page_code()
    address = api.url + answer["path"]
    return Outcome(
        {"address": address, "expires_seconds": answer["expires_seconds"]}, shown=(address, browser)
    )


def _print_pairing(answer: "PairingCode") -> None:
    """Print addresses, code and fingerprint with which a person pairs a browser of another machine."""
    from node.api.qr import print_qr

    addresses, pairs = answer["addresses"], answer["fingerprint"].split(":")
    print(print_qr(addresses[0]), end="")
    print(f"\nScan it, or open one of these there, within {answer['expires_seconds'] // 60} minutes, once:\n")
    for address in addresses:
        print(f"  {address.partition('#')[0]}")
    print(f"\ncode         {answer['code']}")
    for number in range(0, len(pairs), _PAIRS_A_LINE):
        print(
            f"{'fingerprint' if not number else '':<11}  {':'.join(pairs[number : number + _PAIRS_A_LINE])}"
        )
    print(
        "\nThe browser warns, unless the certificate is one that it knows. Have it show the certificate, and go on only if "
        "the SHA-256 fingerprint is this one."
    )
