"""peer: which nodes this one keeps a connection to."""

from typing import TYPE_CHECKING, Annotated

import typer

from node.cli import words
from node.cli.answers import Outcome, Table, prints, short
from node.cli.printing import id_text_shown, is_terminal, is_verbose, moment, state_word
from node.cli.wording import path_line, peer_names, progress_line, show_named, time_of, topic_name
from node.observe.sentences import called
from node.runtime.wording import counted
from ravel.characters import display_safe

if TYPE_CHECKING:  # types of answers: `ravel --help` must be quick
    from collections.abc import Mapping

    from ravel import Client
    from ravel.types.peers import PeerList
    from ravel.types.values import Empty

peer = typer.Typer(no_args_is_help=True, help="Peers that this node connects to.")


@peer.command("add")
@prints(words.PEER_ADDED)
def add(
    api: "Client",
    address: Annotated[str, typer.Argument(help="host:port, or wss://host:port/path.")],
    peer: Annotated[str, typer.Argument(help="The node id that `ravel id` prints there.")],
    relay: Annotated[
        bool | None,
        typer.Option(
            "--relay/--no-relay",
            help="Ask the peer, if it is a relay, to store everything that this node follows, or no longer. "
            "With neither it stays as it is.",
        ),
    ] = None,
) -> Outcome:
    """Add a peer, or another address of one, and stay connected. Anyone who answers there must prove that key."""
    answer = api.add_peer(address, peer, relay=relay)
    # Whether it is a relay is known once it is connected: until then, what was asked for is all there is to say.
    is_asked, is_known = api.show_peer(answer["peer"])["relay"], answer["state"] == "connected"
    role = (
        "" if not is_asked else "yes" if is_known and answer["relay"] else "no" if is_known else "to be asked"
    )
    return Outcome(answer, shown={**answer, "role": role})


_PEERS = Table(
    "peers",
    "peer",
    ("address", path_line),
    "direction",
    "state",
    "source",
    ("reached_at", time_of("reached_at")),
    "last_error",
    ("name", called),
)
_COMPUTERS = Table(
    "peers",
    ("computer", lambda item: called(item) or (item["address"] if item["through"] is None else "")),
    (
        "how",
        lambda item: state_word(
            "relay" if item["relay"] else "direct" if item["through"] is None else path_line(item)
        ),
    ),
    "state",
    (
        "seen",
        lambda item: moment(item["since"]) if item["state"] == "connected" else time_of("reached_at")(item),
    ),
    ("last error", lambda item: "" if item["state"] == "connected" else item["last_error"]),
    short("peer"),
)


class _PeersPrinter:
    """Printer of peers: whom this node talks with; a pipe and `--verbose` get all that is known of each."""

    has_more = True

    def __call__(self, shown: "tuple[PeerList, Mapping[str, str]]") -> None:
        """Print them."""
        answer, names = shown
        if is_terminal() and not is_verbose():
            if answer["peers"]:
                _COMPUTERS(answer)
            else:
                print("No computer is connected, and this node dials none.")
            if hidden := len(answer["known"]):
                print(f"{counted(hidden, 'further address', 'further addresses')} known: --verbose")
        else:
            _print_all(answer, names)
        for banned in answer["banned"]:
            print(display_safe(f"banned  {id_text_shown(banned)}  {names.get(banned, '')}").rstrip())


def _print_all(answer: "PeerList", names: "Mapping[str, str]") -> None:
    _PEERS(answer)
    for item in answer["peers"]:
        for topic in item["topics"]:
            if topic["progress"] is not None:
                who, what = display_safe(called(item) or item["peer"]), display_safe(topic_name(topic))
                print(f"{who}  {what}: {progress_line(topic['progress'])}")
    reached = time_of("reached_at")
    for known in answer["known"]:
        said = f"{known['peer']}  {known['address']}  {known['source']}  {reached(known)}"
        print(display_safe(f"known   {said}  {names.get(known['peer'], '')}").rstrip())


@peer.command("list")
@prints(_PeersPrinter())
def list_peers(api: "Client") -> Outcome:
    """List peers and connections, the source of each address, and the last contact."""
    answer = api.list_peers()
    return Outcome(answer, shown=(answer, peer_names(api)))


@peer.command("remove")
@prints(words.PEER_REMOVED)
def remove(api: "Client", peer: str) -> "Empty":
    """Remove a peer: disconnect it, and do not dial it again."""
    return api.remove_peer(peer)


@peer.command("ban")
@prints(words.PEER_BANNED)
def ban(api: "Client", peer: str) -> Outcome:
    """Block a peer: disconnect it, and neither dial nor serve it again."""
    return show_named(api, api.ban_peer(peer))


@peer.command("unban")
@prints(words.PEER_UNBANNED)
def unban(api: "Client", peer: str) -> Outcome:
    """Unblock a peer, so that it may connect; `ravel peer add` dials it."""
    return show_named(api, api.unban_peer(peer))
