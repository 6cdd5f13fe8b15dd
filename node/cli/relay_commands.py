"""relay: what this node keeps for others."""

from typing import TYPE_CHECKING, Annotated, Final

import typer

from node.cli import words
from node.cli.answers import Outcome, Table, marks, print_fields, prints, short
from node.cli.hints import as_called
from node.cli.links import link_notes, link_outcome, print_link, read_link
from node.cli.printing import say_wrapped, state_word
from node.cli.shared import YesOption, confirm
from node.cli.wording import parse_duration, parse_size, peer_names, show_named, spoken_duration, time_of
from node.runtime.wording import counted, size_text
from ravel.characters import display_safe

if TYPE_CHECKING:  # types of answers: `ravel --help` must be quick
    from collections.abc import Mapping

    from ravel import Client
    from ravel.types.peers import RelayCircuits, RelayedTopic, RelayedTopicList, RelayStatus
    from ravel.types.relay_accounts import JoinedRelay, RelayAccount, RelayAccountList
    from ravel.types.values import Empty

relay = typer.Typer(
    no_args_is_help=True, help="What this relay stores for others and cannot read, and for whom."
)

QuotaOption = Annotated[str, typer.Option("--quota", help="What it may bring: 500MiB, 5GiB.")]
AccountArgument = Annotated[str, typer.Argument(help="The account's name.")]

TopicArgument = Annotated[str, typer.Argument(help="The topic's id, or a unique prefix of one that is kept.")]


_REFUSED_KINDS: Final = {
    "topic": "topics",
    "commits": "commits",
    "file": "files",
    "circuit": "circuits",
    "link": "links to accounts",
}
_REFUSED_TO: Final = {
    "account": "accounts",
    "partner": "partner relays",
    "known": "other known peers",
    "stranger": "strangers",
}


def _print_status(one: "RelayStatus") -> None:
    share = 100 * one["size"] // one["size_max"]
    shown = [
        ("stored", f"{size_text(one['size'])} of {size_text(one['size_max'])} ({share} %)"),
        ("", f"topics {one['topics']:,} of {one['topics_max']:,}, commits {one['commits']:,}"),
        ("", f"{size_text(one['file_size'])} of that are files; {one['files_kept']:,} came since the start"),
        ("forecast", _forecast(one)),
        ("accounts", f"{one['accounts']:,}; their quotas are {size_text(one['promised'])} together"),
        ("accepts", "topics from anyone" if one["takes_strangers"] else "topics from known peers only"),
        ("circuits", _circuits_line(one["circuits"])),
    ]
    if one["blocks_damaged"]:
        damaged = counted(one["blocks_damaged"], "block")
        shown.append(("damaged", as_called(f"{damaged} of files: look at the disk, then `ravel fsck`")))
    print_fields(shown)
    print()
    Table(
        "visitors",
        ("brought by", lambda each: state_word(_REFUSED_TO[each["kind"]])),
        "peers",
        ("stored", lambda each: size_text(each["size"])),
        "connected",
        "circuits",
        ("passed", lambda each: size_text(each["circuit_bytes"])),
    )(one)
    print()
    if not one["refusals"]:
        say_wrapped("refused nothing since the start")
        return
    Table(
        "refusals",
        ("refused", lambda each: state_word(_REFUSED_KINDS[each["what"]])),
        ("to", lambda each: state_word(_REFUSED_TO[each["kind"]])),
        ("reason", lambda each: state_word(each["reason"].replace("_", " "))),
        ("times", "count"),
        ("last", time_of("last_at")),
    )(one)


def _circuits_line(circuits: "RelayCircuits | None") -> str:
    if circuits is None:
        return "none: relay.circuits is off"
    return (
        f"{circuits['open']:,} of {circuits['open_max']:,} open, {circuits['opened']:,} since the start; "
        f"{size_text(circuits['bytes'])} passed, {size_text(circuits['bytes_per_second'])} a second now"
    )


def _forecast(status: "RelayStatus") -> str:
    growth = f"{size_text(status['growth'])} a day came in the last week"
    room = f"{size_text(status['free'])} are free on the disk"
    days = status["full_in_days"]
    if days is None:
        return f"{growth}; {room}"
    what = "relay.size_max" if status["full_first"] == "quota" else "the disk"
    return f"{growth}; {room}; {what} is full in {counted(days, 'day')}"


@relay.command("status")
@prints(_print_status)
def show_status(api: "Client") -> "RelayStatus":
    """Show what this relay stores and for whom, what it refused and why, and when it will be full."""
    return api.show_relay()


def _print_topics(shown: "tuple[RelayedTopicList, Mapping[str, str]]") -> None:
    answer, names = shown
    Table(
        "topics",
        short("topic"),
        "commits",
        ("size", lambda one: size_text(one["size"])),
        ("of files", lambda one: size_text(one["file_size"])),
        ("touched", time_of("touched_at")),
        ("pinned", marks("pinned")),
        (
            "of",
            lambda one: state_word(
                "known peers" if one["known"] else "strangers" if one["shared"] else "a stranger"
            ),
        ),
    )(answer)
    print(f"{size_text(answer['size'])} of {size_text(answer['size_max'])} are used.")
    print("Anyone may add topics." if answer["takes_strangers"] else "Only known peers may add topics.")
    for peer in answer["allowed"]:
        print(display_safe(f"allowed  {peer}  {names.get(peer, '')}").rstrip())


@relay.command("list")
@prints(_print_topics)
def list_topics(api: "Client") -> Outcome:
    """List the stored topics and their size, most recently used first."""
    answer = api.list_relayed_topics()
    return Outcome(answer, shown=(answer, peer_names(api)))


@relay.command("pin")
@prints(words.TOPIC_PINNED)
def pin(api: "Client", topic: TopicArgument) -> "RelayedTopic":
    """Pin a topic: it is never deleted to make room."""
    return api.pin_topic(topic)


@relay.command("unpin")
@prints(words.TOPIC_UNPINNED)
def unpin(api: "Client", topic: TopicArgument) -> "RelayedTopic":
    """Let a topic be forgotten to make room, like others."""
    return api.unpin_topic(topic)


@relay.command("allow")
@prints(words.PEER_ALLOWED)
def allow(
    api: "Client", peer: Annotated[str, typer.Argument(help="The node id that `ravel id` prints there.")]
) -> Outcome:
    """Trust a peer: its topics are accepted where strangers' are refused, and strangers' topics do not displace them."""
    return show_named(api, api.allow_peer(peer))


@relay.command("deny")
@prints(words.PEER_DENIED)
def deny(
    api: "Client",
    peer: Annotated[str, typer.Argument(help="The node's id, or a unique prefix of one that is allowed.")],
) -> Outcome:
    """Stop trusting a peer; `ravel peer ban` blocks it."""
    return show_named(api, api.deny_peer(peer))


@relay.command("invite")
@prints(print_link)
def invite(
    api: "Client",
    name: Annotated[str, typer.Option("--name", help="The account's name; it is made if there is none.")],
    quota: QuotaOption,
    expires: Annotated[str, typer.Option(help="How long the link is valid: 30m, 12h, 7d.")] = "7d",
) -> Outcome:
    """Make a link that gives one node an account at this relay. Each node of a person needs a link of its own."""
    answer = api.invite_to_relay(name, parse_size(quota), expires_seconds=parse_duration(expires))
    about = (
        f"The node that opens this link within {spoken_duration(expires)} may bring {size_text(answer['quota'])} "
        f"to this relay, as {answer['name']}. It works once."
    )
    notes = link_notes(api, answer["reach"], answer["addresses"])
    return link_outcome(answer, answer["link"], answer["reach"], qr=False, about=about, absent=notes)


@relay.command("join")
@prints(words.RELAY_JOINED)
def join(
    api: "Client",
    link: Annotated[str, typer.Argument(help="ravel:..., or - to read it from standard input.")],
) -> "JoinedRelay":
    """Use a link to an account at a relay, from `ravel relay invite` there: it stores what this node follows.

    With - the link is read from standard input: arguments can be seen by every user of the machine.
    """
    return api.join_relay(read_link(link))


def _print_accounts(answer: "RelayAccountList") -> None:
    Table(
        "accounts",
        ("account", "name"),
        ("stored", lambda one: size_text(one["used"])),
        ("quota", lambda one: size_text(one["quota"])),
        ("used", lambda one: f"{100 * one['used'] // one['quota']} %"),
        ("nodes", lambda one: len(one["nodes"])),
        "connected",
        ("circuits today", lambda one: size_text(one["circuit_bytes"])),
        ("unused links", "links"),
        ("since", time_of("created_at")),
    )(answer)
    print("others may add topics, too" if answer["takes_strangers"] else "only known nodes may add topics")


@relay.command("accounts")
@prints(_print_accounts)
def list_accounts(api: "Client") -> "RelayAccountList":
    """List accounts, their quotas and what they use."""
    return api.list_relay_accounts()


@relay.command("change")
@prints(words.ACCOUNT_CHANGED)
def change(api: "Client", account: AccountArgument, quota: QuotaOption) -> "RelayAccount":
    """Change an account's quota. What is stored stays."""
    return api.change_relay_account(account, parse_size(quota))


@relay.command("revoke")
@prints(words.ACCOUNT_REVOKED)
def revoke(api: "Client", account: AccountArgument, yes: YesOption = False) -> "Empty":
    """Delete an account: its nodes are strangers again. What they brought stays until there is no room."""
    confirm(
        f"Nodes of {account} will be strangers here, and what they brought may be deleted. Revoke {account}?",
        yes=yes,
    )
    return api.revoke_relay_account(account)
