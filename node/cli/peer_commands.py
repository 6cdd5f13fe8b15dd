"""peer: which nodes this one keeps a connection to."""

import time
from typing import Annotated

import typer

from node.cli.progress import progress_line
from node.cli.shared import (
    JsonOption,
    client,
    path_line,
    print_answer,
    print_fields,
    print_json,
    print_table,
    topic_name,
)
from ravel.characters import display_safe

peer = typer.Typer(no_args_is_help=True, help="Peers that this node connects to.")


@peer.command("add")
def add(
    context: typer.Context,
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
    as_json: JsonOption = False,
) -> None:
    """Add a peer, or another address of one, and stay connected. Anyone who answers there must prove that key."""
    answer = client(context).add_peer(address, peer, relay=relay)
    if as_json:
        print_json(answer)
        return
    is_asked = client(context).show_peer(answer["peer"])["relay"]
    # Whether it is a relay is known once it is connected: until then, what was asked for is all there is to say.
    is_known = answer["state"] == "connected"
    shown = {
        **answer,
        "relay": "not asked" if not is_asked else answer["relay"] if is_known else "to be asked",
    }
    print_fields((name, value) for name, value in shown.items() if name != "topics")


@peer.command("list")
def list_peers(context: typer.Context, as_json: JsonOption = False) -> None:
    """List peers and connections, the source of each address, and the last contact."""
    answer = client(context).list_peers()
    if as_json:
        print_json(answer)
        return
    print_table(
        ("peer", "address", "direction", "state", "source", "reached_at", "last_error", "name"),
        (
            (
                item["peer"],
                path_line(item),
                item["direction"],
                item["state"],
                item["source"],
                _time(item["reached_at"]),
                item["last_error"],
                item["name"],
            )
            for item in answer["peers"]
        ),
    )
    for item in answer["peers"]:
        for topic in item["topics"]:
            if topic["progress"] is not None:
                who, what = display_safe(item["name"] or item["peer"]), display_safe(topic_name(topic))
                print(f"{who}  {what}: {progress_line(topic['progress'])}")
    for known in answer["known"]:
        print(f"known   {known['peer']}  {known['address']}  {known['source']}  {_time(known['reached_at'])}")
    for banned in answer["banned"]:
        print(f"banned  {banned}")


@peer.command("remove")
def remove(context: typer.Context, peer: str, as_json: JsonOption = False) -> None:
    """Remove a peer: disconnect it, and do not dial it again."""
    answer = client(context).remove_peer(peer)
    if as_json:
        print_json(answer)


@peer.command("ban")
def ban(context: typer.Context, peer: str, as_json: JsonOption = False) -> None:
    """Block a peer: disconnect it, and neither dial nor serve it again."""
    answer = client(context).ban_peer(peer)
    print_answer(answer, as_json=as_json)


@peer.command("unban")
def unban(context: typer.Context, peer: str, as_json: JsonOption = False) -> None:
    """Unblock a peer, so that it may connect; `ravel peer add` dials it."""
    answer = client(context).unban_peer(peer)
    print_answer(answer, as_json=as_json)


def _time(seconds: int | None) -> str:
    return "never" if seconds is None else time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))
