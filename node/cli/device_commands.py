"""device: several devices of one person."""

from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from node.cli.answers import (
    ID_WIDTH,
    Outcome,
    Table,
    advice_of,
    marks,
    print_table,
    prints,
    say_advice,
    short,
)
from node.cli.links import QrOption, demanded_reach, link_notes, link_outcome, print_link, read_link
from node.cli.printing import id_text_shown, say_wrapped
from node.cli.shared import LocalOption, YesOption, confirm
from node.cli.wording import parse_duration, person, spoken_duration
from node.runtime.errors import ERROR_KINDS, EXIT_OK
from node.runtime.language import in_language
from node.runtime.wording import date_text

if TYPE_CHECKING:  # types of answers: `ravel --help` must be quick
    from ravel import Client
    from ravel.types.devices import (
        DeviceList,
        DeviceRepo,
        DeviceSync,
        LeftRepo,
        LetInDevice,
        MovedRepo,
        PromotedDevice,
        RemovedDevice,
    )
    from ravel.types.recovery import RecoveredRepo

device = typer.Typer(no_args_is_help=True, help="Devices of one person; each is a user of its own.")

DeviceArgument = Annotated[
    str, typer.Argument(help="Its user's id, a unique prefix, or its name, as in `ravel device list`.")
]


@device.command("add")
@prints(print_link)
def add(
    api: "Client",
    expires: Annotated[str, typer.Option(help="How long the link is valid: 10m, 1h; at most 7d.")] = "1h",
    local: LocalOption = False,
    qr: QrOption = False,
) -> Outcome:
    """Print a link that makes another user a device of this one. Keep it secret: its first user gets all repos.

    This node then hands on, by itself, every repo that its user is a member of or comes to later, with what the user
    holds there. No admin is needed.
    """
    answer = api.invite_device(expires_seconds=parse_duration(expires), reach=demanded_reach(local=local))
    about = f"Whoever opens this link within {spoken_duration(expires)} gets all your repos. Open it on your other computer."
    notes = link_notes(api, answer["reach"], answer["addresses"])
    return link_outcome(answer, answer["link"], answer["reach"], qr=qr, about=about, absent=notes)


def passed_sentence(answer: "DeviceList") -> str:
    """Say to which computer this user's place passed; empty if it did not."""
    if answer["moved_to"] is None:
        return ""
    heir = person(answer["moved_to_name"], answer["moved_to"])
    return (
        f"Your place has passed to the computer {heir}, which is the first one. What is here stays, and this "
        "computer writes no more in your repos."
    )


def next_step_sentence(one: "LetInDevice | RecoveredRepo") -> str:
    """Say what gives a key that friends let in a place of its own."""
    if not one["grant"]:
        return "Nobody who is left can give the new key a place of its own; `ravel repo fork` goes on without them."
    if not one["grantors"]:
        return f"On the new computer, `{one['grant']}` gives it a place of its own."
    return f"For a place of its own, have {', '.join(one['grantors'])} run `{one['grant']}`."


def _print_devices(answer: "DeviceList") -> None:
    for key in answer["let_in"]:
        friends = ", ".join(map(person, key["friend_names"], key["friends"]))
        if key["this"]:
            say_wrapped(
                f"You are back in {key['name']} since {date_text(key['time'])}, let in by {friends}. "
                f"{next_step_sentence(key)} An admin excludes the lost key. Then name friends anew."
            )
            continue
        command = f"ravel member exclude {quote(key['name'])} {key['device'][:ID_WIDTH]}"
        say_wrapped(
            f"Friends let the key {key['device'][:ID_WIDTH]} in as you, in {key['name']} on {date_text(key['time'])}: "
            f"{friends}. If that is not you, run `{command}`."
        )
    if not answer["devices"]:
        if answer["joining"]:
            say_wrapped("No computer of the link has answered yet. The daemon goes on trying.")
        elif answer["removed_by"] is not None:
            first = person(answer["removed_by_name"], answer["removed_by"])
            say_wrapped(
                f"This computer was removed from {first}'s devices. What is here stays, and nothing new comes from "
                "their repos. A link of `ravel device add` there makes it a device again."
            )
        elif answer["moved_to"] is not None:
            say_wrapped(passed_sentence(answer))
        else:
            say_wrapped("This is your only device. `ravel device add` makes a link for another one.")
        return
    which = marks("first", "this")
    rows = ((id_text_shown(one["user"]), which(one), one["name"]) for one in answer["devices"])
    print_table(("device", "", "name"), rows)
    held = [
        (item["user"][:ID_WIDTH], repo["name"], repo["permission"] or "nothing", _to_do(repo))
        for item in answer["devices"]
        for repo in item["repos"]
    ]
    if held:
        print()
        print_table(("device", "repo", "may", "what to do"), held)
    for one in answer["stayed"]:
        called = person(one["called"], one["device"])
        say_wrapped(
            f"The removed device {called} is still a member of {one['name']} ({one['permission']}). {advice_of(one)}"
        )


def _to_do(repo: "DeviceRepo") -> str:
    return in_language("`ravel device sync` on the first device") if repo["lacking"] else ""


@device.command("join")
@prints(_print_devices)
def join(
    api: "Client",
    link: Annotated[str, typer.Argument(help="ravel:device:..., or - to read it from standard input.")],
) -> "DeviceList":
    """Become a device of the person who made the link. The person's repos follow.

    With - the link is read from standard input: arguments can be seen by every user of the machine.
    """
    return api.join_as_device(read_link(link))


@device.command("list")
@prints(_print_devices)
def list_devices(api: "Client") -> "DeviceList":
    """List the devices of this person, and what each may do in every repo."""
    return api.list_devices()


@device.command("sync")
@prints(Table("given", short("device"), ("repo", "name"), ("what to do", advice_of)))
def sync(api: "Client") -> "DeviceSync":
    """Hand repos to this person's other devices again, including repos taken from them since. Run it on the first device.

    Repos that come later are handed on without it, each once.
    """
    return api.sync_devices()


_DONE = marks("excluded", ("new secrets", "renewed"), ("taken back", "taken_back"), "left")


def _done(repo: "LeftRepo") -> str:
    stays = "" if repo["excluded"] or repo["left"] else in_language("still a member")
    return ", ".join(filter(None, (_DONE(repo), stays))) or "nothing"


def _print_removed(answer: "RemovedDevice") -> None:
    repos = answer["repos"]
    if undone := [one for one in repos if one["advice"]]:
        say_wrapped(
            f"The device is not removed everywhere: something is left to do in {len(undone)} of {len(repos)} repos."
        )
    print_table(("repo", "done"), ((one["name"], _done(one)) for one in repos))
    say_advice(undone)


@device.command("remove")
@prints(_print_removed)
def remove(api: "Client", device: DeviceArgument, yes: YesOption = False) -> Outcome:
    """Take a device out of every repo, and end its link to this person. The first device needs no admin for it.

    This user's own id: it is a device of nobody any more, and stays a member of the repos.
    """

    def question() -> str:
        from node.runtime.resolve import resolve
        from protocol.formats.text import parse_id

        found = api.list_devices()["devices"]
        one = resolve("device", device, [(parse_id(one["user"]), one["name"], one) for one in found])
        called = one["name"] or device
        if one["this"]:
            return "This computer stays a member of your repos, and is nobody's device any more. Remove it?"
        return (
            f"{called} will read and write nothing new in your repos. Edits and deletions that it made of your other "
            f"devices' posts, or they of its posts, are undone. Remove the device {called}?"
        )

    confirm(question, yes=yes)
    answer = api.remove_device(device)
    is_undone = any(one["advice"] for one in answer["repos"])
    return Outcome(answer, exit_code=ERROR_KINDS["not_permitted"].exit_code if is_undone else EXIT_OK)


def _state(repo: "MovedRepo") -> str:
    state = "passed" if repo["moved"] else "passed before" if repo["already"] else "not passed"
    return in_language(state)


def _print_promoted(answer: "PromotedDevice") -> None:
    repos = answer["repos"]
    failed = [one for one in repos if one["advice"]]
    if failed:
        say_wrapped(f"Your place did not pass in {len(failed)} of {len(repos)} repos. Run it again then.")
    print_table(("repo", "your place"), ((one["name"], _state(one)) for one in repos))
    say_advice(failed)
    if signs := [one["name"] for one in repos if one["signs"]]:
        say_wrapped(f"An owner has to name the signers anew (`ravel quorum set`) in: {', '.join(signs)}.")
    if len(failed) < len(repos):
        say_wrapped("Leave this computer on until `ravel status` says that another one has it.")


def _find_called(api: "Client", device: str) -> str:
    """Return what a device is called, or is given as. Raises ServiceError where this person has none such."""
    from node.runtime.resolve import resolve
    from protocol.formats.text import parse_id

    listed = api.list_devices()
    known = [(one["user"], one["name"]) for one in listed["devices"]]
    if listed["moved_to"] is not None:  # it passed in some repos, and the rest is to follow
        known.append((listed["moved_to"], listed["moved_to_name"]))
    return resolve("device", device, [(parse_id(user), name, name or device) for user, name in known])


@device.command("promote")
@prints(_print_promoted)
def promote(api: "Client", device: DeviceArgument, yes: YesOption = False) -> Outcome:
    """Make another device the first one: this user's place in every repo passes to it. Run it on the first device.

    This user is no member any more. It keeps what it has and writes no more. Run it again for repos that failed.
    """
    called = "" if yes else _find_called(api, device)

    def question() -> str:
        me = api.show_status()["user"]
        signed = [
            one["name"]
            for one in api.list_repos()["repos"]
            if one["permission"] not in ("former", "joining", "damaged")
            and one["whole"]
            and any(me in quorum["signers"] for quorum in api.show_quorum(one["repo"])["quorums"])
        ]
        said = [
            f"{called} will have your place in all your repos: it adds and removes your devices, and acts for you. This "
            "computer keeps what it has and writes no more, and cannot undo it. Nobody who copied its key before is "
            "stopped by this. If the new one knows no other member's computer, run `ravel peer add` there first."
        ]
        if signed:
            said.append(f"You sign no more in {', '.join(signed)}: an owner names the signers anew.")
        return " ".join([*said, f"Make {called} your first device?"])

    confirm(question, yes=yes)
    answer = api.promote_device(device)
    is_undone = any(one["advice"] for one in answer["repos"])
    return Outcome(answer, exit_code=ERROR_KINDS["not_permitted"].exit_code if is_undone else EXIT_OK)
