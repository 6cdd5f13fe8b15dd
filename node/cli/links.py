"""Links for others: how far they reach, how they are printed, and how a pasted one is read."""

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from node.cli.answers import Outcome
from node.cli.inputs import read_typed
from node.cli.shared import say
from node.runtime.errors import ServiceError
from protocol.formats.text import pasted_word
from protocol.limits.formats import LINK_SIZE_MAX

if TYPE_CHECKING:  # types of answers: `ravel --help` must be quick
    from ravel import Client
    from ravel.types.values import Capability

QrOption = Annotated[bool, typer.Option("--qr", help="Also print a QR code.")]
_NEAR_NOTES = {
    "machine": "note: the link works on this machine only",
    "network": (
        "note: the link works on this network only, as far as this node knows. To reach others: use a relay "
        "(docs/communities/relay.md), or forward a port of the router and set network.advertise."
    ),
}
"""Reach of a link -> a note for its maker."""


def demanded_reach(*, local: bool) -> str:
    """Return how far a link must reach: beyond this machine, unless the user wants one for this machine."""
    return "machine" if local else "network"


def link_outcome(
    answer: Mapping[str, object], link: str, reach: str, *, qr: bool, absent: tuple[str, ...] = ()
) -> Outcome:
    """Return an answer of which people see the link, drawn too if that was asked for, and notes on its reach."""
    return Outcome(answer, shown={"link": link, "reach": reach, "qr": qr, "absent": absent})


def print_link(shown: Mapping[str, object]) -> None:
    """Print a link of `link_outcome`."""
    print(shown["link"])
    if shown["qr"]:
        from node.api.qr import print_qr

        print(print_qr(str(shown["link"])), end="")
    note_reach(str(shown["reach"]))
    for note in shown["absent"]:  # type: ignore[attr-defined]  # a tuple
        say(note)


def note_reach(reach: str) -> None:
    """Say so where a link does not reach everybody."""
    if reach != "anywhere":
        print(_NEAR_NOTES[reach], file=sys.stderr)


def absent_relays(api: "Client", reach: str) -> tuple[str, ...]:
    """Return a note on each relay of this user that is not connected, where the link does not reach everybody."""
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
    return pasted_word(read_typed(2 * LINK_SIZE_MAX) if link == "-" else link)


def with_reach(answer: "Capability", *, local: bool) -> "Capability":
    """Return a read capability. Raises ServiceError where it works on this machine only and that is not wanted."""
    if answer["reach"] == "machine" and not local:
        raise ServiceError(
            "bad_config",
            f"the link would work on this machine only: it names {', '.join(answer['addresses'])}",
            "ravel config set network.listen '*:7474', then `ravel down` and `ravel up`; for a trial: --local",
        )
    return answer


def print_capability(answer: "Capability") -> None:
    """Print a read capability, and a note where it does not reach everybody."""
    print(answer["capability"])
    note_reach(answer["reach"])
