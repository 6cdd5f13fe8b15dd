"""device: several devices of one person."""

from typing import TYPE_CHECKING, Annotated

import typer

from node.cli.repo_commands import demanded_reach, given, seconds_of, show_link
from node.cli.shared import JsonOption, LocalOption, client, print_fields, print_json, print_table

if TYPE_CHECKING:  # types of answers: `ravel --help` must be quick
    from ravel.types.devices import DeviceList, DeviceView, LeftRepo

device = typer.Typer(no_args_is_help=True, help="Devices of one person; each is a user of its own.")

DeviceArgument = Annotated[
    str, typer.Argument(help="Its user's id, a unique prefix, or its name, as in `ravel device list`.")
]


@device.command("add")
def add(
    context: typer.Context,
    expires: Annotated[str, typer.Option(help="How long the link is valid: 10m, 1h; at most 7d.")] = "1h",
    local: LocalOption = False,
    qr: Annotated[bool, typer.Option("--qr", help="Also print a QR code.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Print a link that makes another user a device of this one. Keep it secret: its first user gets all repos.

    This node then hands on, by itself, every repo that its user is a member of or comes to later, with what the user
    holds where it may grant that. What an admin has to do `ravel device list` tells.
    """
    answer = client(context).invite_device(
        expires_seconds=seconds_of(expires), reach=demanded_reach(local=local)
    )
    if as_json:
        print_json(answer)
        return
    show_link(answer["link"], answer["reach"], qr=qr)


@device.command("join")
def join(
    context: typer.Context,
    link: Annotated[str, typer.Argument(help="ravel:device:..., or - to read it from standard input.")],
    as_json: JsonOption = False,
) -> None:
    """Become a device of the person who made the link. The person's repos follow.

    With - the link is read from standard input: arguments can be seen by every user of the machine.
    """
    _show(client(context).join_as_device(given(link)), as_json=as_json)


@device.command("list")
def list_devices(context: typer.Context, as_json: JsonOption = False) -> None:
    """List the devices of this person, the repos that each lacks, and which device can hand them on."""
    _show(client(context).list_devices(), as_json=as_json)


@device.command("sync")
def sync(context: typer.Context, as_json: JsonOption = False) -> None:
    """Hand repos to this person's other devices again, including repos taken from them since. Run it on the first device.

    Repos that come later are handed on without it, each once.
    """
    answer = client(context).sync_devices()
    if as_json:
        print_json(answer)
        return
    print_table(
        ("device", "repo", "what to do"),
        ((item["device"][:12], item["name"], item["advice"]) for item in answer["given"]),
    )


@device.command("remove")
def remove(context: typer.Context, device: DeviceArgument, as_json: JsonOption = False) -> None:
    """Exclude a device from every repo where this user may, and end its link to this person.

    This user's own id: it is a device of nobody any more, and stays a member of the repos.
    """
    answer = client(context).remove_device(device)
    if as_json:
        print_json(answer)
        return
    print_table(
        ("repo", "done", "what to do"),
        (
            (
                item["name"],
                ", ".join(_done(item)) or "nothing",
                item["advice"],
            )
            for item in answer["repos"]
        ),
    )


def _show(answer: "DeviceList", *, as_json: bool) -> None:
    if as_json:
        print_json(answer)
        return
    if not answer["devices"]:
        state = "no peer of the link has answered yet" if answer["joining"] else "none: `ravel device add`"
        print_fields([("person", answer["person"]), ("devices", state)])
        return
    print_table(
        ("device", "", "repos", "name"),
        (
            (
                item["user"],
                ", ".join(
                    word for word, holds in (("first", item["first"]), ("this", item["this"])) if holds
                ),
                "" if item["first"] else f"{_whole(item)} of {len(item['repos'])}",
                item["name"],
            )
            for item in answer["devices"]
        ),
    )
    for item in answer["devices"]:
        for lacking in item["repos"]:
            if lacking["advice"]:
                held = lacking["permission"] or "nothing"
                print(f"{item['user'][:12]} holds {held} in {lacking['name']}: {lacking['advice']}")


def _done(item: "LeftRepo") -> list[str]:
    steps = (("excluded", item["excluded"]), ("taken back", item["taken_back"]), ("left", item["left"]))
    return [name for name, is_done in steps if is_done]


def _whole(item: "DeviceView") -> int:
    return sum(not repo["advice"] for repo in item["repos"])
