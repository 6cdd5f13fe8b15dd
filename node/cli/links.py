"""Links for others: how far they reach, how they are printed, and how a pasted one is read."""

import shlex
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from node.cli.answers import Outcome
from node.cli.inputs import read_typed
from node.cli.printing import is_terminal
from node.cli.shared import say
from node.runtime.errors import ServiceError
from node.runtime.language import in_language
from protocol.formats.text import pasted_word
from protocol.limits.formats import LINK_SIZE_MAX

if TYPE_CHECKING:  # types of answers: `ravel --help` must be quick
    from ravel import Client
    from ravel.types.values import Capability

QrOption = Annotated[bool, typer.Option("--qr", help="Also print a QR code.")]
_NEAR_NOTES = {
    "machine": (
        "note: the link works on this machine only. For a trial, a second node in another folder takes it: "
        "ravel --home FOLDER up, then ravel --home FOLDER {command}"
    ),
    "network": (
        "note: the link works on this network only, as far as this node knows. To reach others: use a relay "
        "(docs/communities/relay.md), or forward a port of the router and set network.advertise."
    ),
}
"""Reach of a link -> a note for its maker."""
_TAKERS = {"ravel:device:": "device join -", "ravel:relay:": "relay join -"}
"""Kind of a link -> the command that takes it, where another than of repos does."""


def demanded_reach(*, local: bool) -> str:
    """Return how far a link must reach: beyond this machine, unless the user wants one for this machine."""
    return "machine" if local else "network"


def link_outcome(
    answer: Mapping[str, object],
    link: str,
    reach: str,
    *,
    qr: bool,
    about: str = "",
    absent: tuple[str, ...] = (),
) -> Outcome:
    """Return the printed answer about a link: the link, drawn if asked for, its effect, and where it reaches."""
    return Outcome(answer, shown={"link": link, "reach": reach, "qr": qr, "about": about, "absent": absent})


def print_link(shown: Mapping[str, object]) -> None:
    """Print a link of `link_outcome`. A pipe gets the link alone; what it does is said beside it."""
    if shown["about"]:
        say(str(shown["about"]))
    print(shown["link"] if not is_terminal() else f"\n  {shown['link']}\n")
    if shown["qr"]:
        from node.api.qr import print_qr

        print(print_qr(str(shown["link"])), end="")
    _note_reach(str(shown["reach"]), str(shown["link"]))
    for note in shown["absent"]:  # type: ignore[attr-defined]  # a tuple
        say(note)


def _note_reach(reach: str, link: str) -> None:
    """Say so where a link does not reach everybody."""
    if reach != "anywhere":
        taker = next((one for kind, one in _TAKERS.items() if link.startswith(kind)), "repo join -")
        say(_NEAR_NOTES[reach].format(command=taker))


def link_notes(api: "Client", reach: str, addresses: Sequence[str]) -> tuple[str, ...]:
    """Return notes on a link that dies with the daemon, and on relays of this user that it does not name."""
    return (*_passing(api, addresses), *_absent_relays(api, reach))


def _passing(api: "Client", addresses: Sequence[str]) -> tuple[str, ...]:
    """Return a note where the link names a port that another start of the daemon will not have."""
    settings = {one["setting"]: one["value"] for one in api.list_settings()["settings"]}
    listen = api.show_status()["listen"]
    if not settings["network.listen"].endswith(":0") or not any(
        one.rpartition(":")[2] == listen.rpartition(":")[2] for one in addresses
    ):
        return ()
    return (passing_note(settings["network.listen"], listen),)


def passing_note(configured: str, listen: str) -> str:
    """Return what to do where others are given a port that the system chose, and will not choose again."""
    lasting = f"{configured.rpartition(':')[0]}:{listen.rpartition(':')[2]}"
    return (
        f"note: port {listen.rpartition(':')[2]} lasts until the daemon stops, for network.listen says port 0. To keep it: "
        f"ravel config set network.listen {shlex.quote(lasting)}"
    )


def _absent_relays(api: "Client", reach: str) -> tuple[str, ...]:
    if reach == "anywhere":
        return ()
    away = (
        one
        for one in api.list_peers()["peers"]
        if one["state"] != "connected"
        and one["source"] == "configured"
        and api.show_peer(one["peer"])["relay"]
    )
    return tuple(
        f"note: the relay at {one['address']} is not connected, so the link does not name it: "
        f"{one['last_error'] or 'it has not answered yet'}. Make a new link once `ravel peer list` shows it as connected."
        for one in away
    )


def read_link(link: str) -> str:
    """Return a link that was given, or read one from standard input: a line of a terminal, all of a pipe or a file.

    Lines into which mail or a chat has broken it are joined.
    """
    if link == "-" and sys.stdin.isatty():
        print(in_language("Paste the link, then press Enter:"), end=" ", file=sys.stderr, flush=True)
    return pasted_word(read_typed(2 * LINK_SIZE_MAX) if link == "-" else link)


def capability_outcome(api: "Client", answer: "Capability", about: str, *, local: bool) -> Outcome:
    """Return a read capability as people see it.

    Raises ServiceError where it works on this machine only and that is not wanted.
    """
    if answer["reach"] == "machine" and not local:
        raise ServiceError(
            "bad_config",
            f"the link would work on this machine only: it names {', '.join(answer['addresses'])}",
            "ravel config set network.listen '*:7474', then `ravel down` and `ravel up`; for a trial on this machine alone, "
            "the same command with --local",
        )
    notes = link_notes(api, answer["reach"], answer["addresses"])
    return link_outcome(answer, answer["capability"], answer["reach"], qr=False, about=about, absent=notes)
