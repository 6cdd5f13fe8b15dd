"""relay: what this node keeps for others."""

import re
from typing import TYPE_CHECKING, Annotated, Final

import typer

from node.cli.repo_commands import given, note_reach, seconds_of
from node.cli.shared import JsonOption, client, iso_time, print_answer, print_json, print_table
from node.runtime.errors import ServiceError
from node.runtime.wording import counted

if TYPE_CHECKING:  # a command imports the types of one call
    from ravel.types.peers import RelayStatus

relay = typer.Typer(
    no_args_is_help=True, help="What this relay stores for others and cannot read, and for whom."
)

_UNITS: Final = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
QuotaOption = Annotated[str, typer.Option("--quota", help="What it may bring: 500MiB, 5GiB.")]
AccountArgument = Annotated[str, typer.Argument(help="The account's name.")]

TopicArgument = Annotated[str, typer.Argument(help="The topic's id, or a unique prefix of one that is kept.")]


_WHAT: Final = {
    "topic": "topics",
    "commits": "commits",
    "file": "files",
    "circuit": "circuits",
    "link": "links to accounts",
}
_WHO: Final = {
    "account": "accounts",
    "partner": "partner relays",
    "known": "other known peers",
    "stranger": "strangers",
}


@relay.command("status")
def show_status(context: typer.Context, as_json: JsonOption = False) -> None:
    """Show what this relay stores and for whom, what it refused and why, and when it will be full."""
    one = client(context).show_relay()
    if as_json:
        print_json(one)
        return
    share = 100 * one["size"] // one["size_max"]
    print(f"stored     {size_text(one['size'])} of {size_text(one['size_max'])} ({share} %)")
    print(f"           topics {one['topics']:,} of {one['topics_max']:,}, commits {one['commits']:,}")
    print(
        f"           {size_text(one['file_size'])} of that are files; {one['files_kept']:,} came since the start"
    )
    print(f"forecast   {_forecast(one)}")
    print(f"accounts   {one['accounts']:,}; their quotas are {size_text(one['promised'])} together")
    print(f"accepts    {'topics from anyone' if one['takes_strangers'] else 'topics from known peers only'}")
    circuits = one["circuits"]
    if circuits is None:
        print("circuits   none: relay.circuits is off")
    else:
        print(
            f"circuits   {circuits['open']:,} of {circuits['open_max']:,} open, {circuits['opened']:,} since the start; "
            f"{size_text(circuits['bytes'])} passed, {size_text(circuits['bytes_per_second'])} a second now"
        )
    if one["blocks_damaged"]:
        print(
            f"damaged    {counted(one['blocks_damaged'], 'block')} of files: look at the disk, then `ravel fsck`"
        )
    print()
    print_table(
        ("brought by", "peers", "stored", "connected", "circuits", "passed"),
        (
            (
                _WHO[each["kind"]],
                each["peers"],
                size_text(each["size"]),
                each["connected"],
                each["circuits"],
                size_text(each["circuit_bytes"]),
            )
            for each in one["visitors"]
        ),
    )
    print()
    if not one["refusals"]:
        print("refused nothing since the start")
        return
    print_table(
        ("refused", "to", "reason", "times", "last"),
        (
            (
                _WHAT[each["what"]],
                _WHO[each["kind"]],
                each["reason"],
                each["count"],
                iso_time(each["last_at"]),
            )
            for each in one["refusals"]
        ),
    )


def _forecast(status: "RelayStatus") -> str:
    growth = f"{size_text(status['growth'])} a day came in the last week"
    room = f"{size_text(status['free'])} are free on the disk"
    days = status["full_in_days"]
    if days is None:
        return f"{growth}; {room}"
    what = "relay.size_max" if status["full_first"] == "quota" else "the disk"
    return f"{growth}; {room}; {what} is full in {counted(days, 'day')}"


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


@relay.command("invite")
def invite(
    context: typer.Context,
    name: Annotated[str, typer.Option("--name", help="The account's name; it is made if there is none.")],
    quota: QuotaOption,
    expires: Annotated[str, typer.Option(help="How long the link is valid: 30m, 12h, 7d.")] = "7d",
    as_json: JsonOption = False,
) -> None:
    """Make a link that gives one node an account at this relay. Each node of a person needs a link of its own."""
    answer = client(context).invite_to_relay(name, bytes_of(quota), expires_seconds=seconds_of(expires))
    print_answer(answer, as_json=as_json)
    note_reach(answer["reach"])


@relay.command("join")
def join(
    context: typer.Context,
    link: Annotated[str, typer.Argument(help="ravel:..., or - to read it from standard input.")],
    as_json: JsonOption = False,
) -> None:
    """Use a link to an account at a relay, from `ravel relay invite` there: it stores what this node follows.

    With - the link is read from standard input: arguments can be seen by every user of the machine.
    """
    print_answer(client(context).join_relay(given(link)), as_json=as_json)


@relay.command("accounts")
def list_accounts(context: typer.Context, as_json: JsonOption = False) -> None:
    """List accounts, their quotas and what they use."""
    answer = client(context).list_relay_accounts()
    if as_json:
        print_json(answer)
        return
    print_table(
        (
            "account",
            "stored",
            "quota",
            "used",
            "nodes",
            "connected",
            "circuits today",
            "unused links",
            "since",
        ),
        (
            (
                one["name"],
                size_text(one["used"]),
                size_text(one["quota"]),
                f"{100 * one['used'] // one['quota']} %",
                len(one["nodes"]),
                one["connected"],
                size_text(one["circuit_bytes"]),
                one["links"],
                iso_time(one["created_at"]),
            )
            for one in answer["accounts"]
        ),
    )
    print("others may add topics, too" if answer["takes_strangers"] else "only known nodes may add topics")


@relay.command("change")
def change(
    context: typer.Context, account: AccountArgument, quota: QuotaOption, as_json: JsonOption = False
) -> None:
    """Change an account's quota. What is stored stays."""
    print_answer(client(context).change_relay_account(account, bytes_of(quota)), as_json=as_json)


@relay.command("revoke")
def revoke(context: typer.Context, account: AccountArgument, as_json: JsonOption = False) -> None:
    """Delete an account: its nodes are strangers again. What they brought stays until there is no room."""
    print_answer(client(context).revoke_relay_account(account), as_json=as_json)


def size_text(size: int) -> str:
    """A number of bytes for people: 1.5 GiB."""
    for unit, power in reversed(_UNITS.items()):
        if size >= power:
            return f"{size / power:.1f} {unit}"
    return f"{size} bytes"


def bytes_of(text: str) -> int:
    """A size such as 500MiB or 5GiB. Raises ServiceError."""
    found = re.fullmatch(r"([0-9]{1,7})([KMGT]iB)", text)
    if found is None or int(found[1]) == 0:
        raise ServiceError("bad_request", f"{text!r} is not a size", "say 500MiB or 5GiB")
    return int(found[1]) * _UNITS[found[2]]
