"""recovery: friends who let a person in again whose keys are lost."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Final

import typer

from node.cli.answers import Outcome, print_table, prints, say_advice
from node.cli.device_commands import next_step_sentence, passed_sentence
from node.cli.inputs import read_typed
from node.cli.member_commands import UserArgument
from node.cli.printing import id_text_shown, say_wrapped
from node.cli.shared import YesOption, confirm
from node.cli.wording import person
from node.runtime.errors import ERROR_KINDS, EXIT_OK
from node.runtime.language import in_language
from protocol.formats.text import pasted_word
from protocol.limits.formats import LINK_SIZE_MAX

if TYPE_CHECKING:  # types of answers: `ravel --help` must be quick
    from ravel import Client
    from ravel.types.recovery import (
        NamedFriends,
        RecoveredRepo,
        RecoveryList,
        RecoveryPerson,
        RecoveryResult,
        RecoverySignatures,
        RepoFriends,
    )

_TEXT_KIND: Final = "ravel:recovery:"
_PASTED_SIZE_MAX: Final = 64 * 2 * LINK_SIZE_MAX

recovery = typer.Typer(no_args_is_help=True, help="Friends who let you in again if your keys are lost.")


def _friends(one: "RepoFriends") -> str:
    return ", ".join(map(person, one["friend_names"], one["friends"])) or in_language("nobody")


def _print_list(shown: "tuple[RecoveryList, str]") -> None:
    answer, passed = shown
    if answer["repos"]:
        rows = ((one["name"], _friends(one), str(one["need"])) for one in answer["repos"])
        print_table(("repo", "friends", "needed"), rows)
        say_advice(answer["repos"])
    elif not answer["let_in"]:
        say_wrapped(passed or "Nobody can let you in again. `ravel recovery friends` names friends.")
    if answer["let_in"]:
        say_wrapped(
            "Friends let this key in. Whom you name can let you in again once an admin has granted you rights; the friends "
            "of your lost key let each new key in once."
        )
    if answer["persons"]:
        print()
        others = ((one["name"], person(one["user_name"], one["user"]), _of(one)) for one in answer["persons"])
        print_table(("repo", "you sign for", "needed"), others)


def _of(one: "RecoveryPerson") -> str:
    return f"{one['need']}/{one['friends']}"


@recovery.command("show")
@prints(_print_list)
def show(api: "Client") -> Outcome:
    """Show your friends in each repo, and the members who named you."""
    answer = api.list_friends()
    passed = "" if answer["repos"] else passed_sentence(api.list_devices())
    return Outcome(answer, (answer, passed))


def _print_named(answer: "NamedFriends") -> None:
    rows = ((one["name"], "" if one["advice"] else _friends(one), _need(one)) for one in answer["repos"])
    print_table(("repo", "friends", "needed"), rows)
    say_advice(answer["repos"])


def _need(one: "RepoFriends") -> str:
    return "" if one["advice"] else str(one["need"])


@recovery.command("friends")
@prints(_print_named)
def friends(
    api: "Client",
    users: Annotated[
        list[str] | None, typer.Argument(metavar="FRIENDS...", help="Names or ids of members.")
    ] = None,
    need: Annotated[
        int | None, typer.Option(help="How many of them must sign: more than half (the default).")
    ] = None,
    repo: Annotated[str, typer.Option(help="Only in this repo. Without it: in all of yours.")] = "",
    none: Annotated[bool, typer.Option("--none", help="Take it back: nobody may let you in again.")] = False,
    yes: YesOption = False,
) -> Outcome:
    """Name friends who together may let in a new key as you. Those who conspire can be you, in all that you may do.

    In each repo these are the ones who are members there. Naming again replaces them.
    """
    if none == bool(users):
        raise typer.BadParameter("name friends, or give --none")
    if users and (need == 1 or len(set(users)) == 1):
        confirm(
            f"{users[0]} alone can be you then, at any time and in all that you may do. Name friends so?",
            yes=yes,
        )
    answer = api.name_friends(users or [], need=need, only=repo)
    return Outcome(answer, exit_code=_code(answer["repos"]))


def _code(repos: "Sequence[RepoFriends | RecoveredRepo]") -> int:
    is_undone = any(one["advice"] for one in repos)
    return ERROR_KINDS["not_permitted"].exit_code if is_undone else EXIT_OK


def _print_signed(answer: "RecoverySignatures") -> None:
    for text in answer["texts"]:
        print(text)


@recovery.command("sign")
@prints(_print_signed)
def sign(
    api: "Client",
    member: UserArgument,
    new_id: Annotated[str, typer.Argument(help="The new user's id, as `ravel id` prints it there.")],
    yes: YesOption = False,
) -> "RecoverySignatures":
    """Sign as a friend that a new key is a member's, and print a text to pass on. It is no secret.

    Who reads it sees your key, the new one and the ids of the repos.

    Whoever brings enough texts of friends lets the key in: `ravel recovery finish`.
    """
    confirm(
        lambda: (
            f"Have you talked to {member} in person, who read this id to you? Who holds the key {new_id} will be {member} "
            f"in your repos, and may do all that {member} may. Sign?"
        ),
        yes=yes,
    )
    return api.sign_recovery(member, new_id)


def _state(one: "RecoveredRepo") -> str:
    return in_language("let in" if one["let_in"] else "in before" if one["already"] else "not yet")


def _print_finished(answer: "RecoveryResult") -> None:
    rows = (
        (
            one["name"] or one["repo"],
            person(one["member_name"], one["member"] or ""),
            id_text_shown(one["user"]),
            _signed(one),
            _state(one),
        )
        for one in answer["repos"]
    )
    print_table(("repo", "member", "new key", "signed", "state"), rows)
    if len({one["user"] for one in answer["repos"]}) > 1:
        say_wrapped("These texts are for different keys. Friends sign for the same one.")
    say_advice(answer["repos"])
    if any(one["let_in"] for one in answer["repos"]):
        say_wrapped(
            "`ravel repo capability REPO` prints a link for each of these repos. `ravel repo follow -` on the new computer "
            "takes it."
        )
    for one in answer["repos"]:
        if one["let_in"] or one["grant"]:
            say_wrapped(f"{one['name']}: {next_step_sentence(one)}")


def _signed(one: "RecoveredRepo") -> str:
    return f"{one['signed']}/{one['need']}" if one["need"] else str(one["signed"])


@recovery.command("finish")
@prints(_print_finished)
def finish(
    api: "Client",
    texts: Annotated[
        list[str],
        typer.Argument(
            metavar="TEXT...", help="Texts of `ravel recovery sign`, or - to read them from standard input."
        ),
    ],
) -> Outcome:
    """Let a new key in where enough friends have signed. Any member of the repo may run it."""
    if texts == ["-"]:
        # Lines into which mail has broken a text are joined.
        pasted = pasted_word(read_typed(_PASTED_SIZE_MAX))
        texts = re.split(f"(?<!^)(?={_TEXT_KIND})", pasted)
    answer = api.finish_recovery(texts)
    return Outcome(answer, exit_code=_code(answer["repos"]))
