"""relay: what this node keeps for others."""

from typing import Annotated

import typer

from node.cli.shared import JsonOption, client, iso_time, print_answer, print_json, print_table

relay = typer.Typer(no_args_is_help=True, help="Topics that this relay stores for others and cannot read.")

TopicArgument = Annotated[str, typer.Argument(help="The topic's id, or a unique prefix of one that is kept.")]


@relay.command("list")
def list_topics(context: typer.Context, as_json: JsonOption = False) -> None:
    """List the stored topics and their size, most recently used first."""
    answer = client(context).list_relayed_topics()
    if as_json:
        print_json(answer)
        return
    print_table(
        ("topic", "commits", "bytes", "of files", "touched", "pinned", "of"),
        (
            (
                one["topic"],
                one["commits"],
                one["size"],
                one["file_size"],
                iso_time(one["touched_at"]),
                "pinned" if one["pinned"] else "",
                "known peers" if one["known"] else "strangers" if one["shared"] else "a stranger",
            )
            for one in answer["topics"]
        ),
    )
    print(f"{answer['size']:,} of {answer['size_max']:,} bytes")
    print("anyone may add topics" if answer["takes_strangers"] else "only known peers may add topics")
    for peer in answer["allowed"]:
        print(f"allowed  {peer}")


@relay.command("pin")
def pin(context: typer.Context, topic: TopicArgument, as_json: JsonOption = False) -> None:
    """Pin a topic: it is never deleted to make room."""
    answer = client(context).pin_topic(topic)
    print_answer(answer, as_json=as_json)


@relay.command("unpin")
def unpin(context: typer.Context, topic: TopicArgument, as_json: JsonOption = False) -> None:
    """Let a topic be forgotten to make room, like others."""
    answer = client(context).unpin_topic(topic)
    print_answer(answer, as_json=as_json)


@relay.command("allow")
def allow(
    context: typer.Context,
    peer: Annotated[str, typer.Argument(help="The node id that `ravel id` prints there.")],
    as_json: JsonOption = False,
) -> None:
    """Trust a peer: its topics are accepted where strangers' are refused, and strangers' topics do not displace them."""
    answer = client(context).allow_peer(peer)
    print_answer(answer, as_json=as_json)


@relay.command("deny")
def deny(
    context: typer.Context,
    peer: Annotated[str, typer.Argument(help="The node's id, or a unique prefix of one that is allowed.")],
    as_json: JsonOption = False,
) -> None:
    """Stop trusting a peer; `ravel peer ban` blocks it."""
    answer = client(context).deny_peer(peer)
    print_answer(answer, as_json=as_json)
