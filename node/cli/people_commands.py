"""me, name: what this user calls itself, and what it calls others."""

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from node.cli import words
from node.cli.answers import Outcome, Says, Table, prints, short
from node.cli.printing import id_text_shown
from node.runtime.errors import ServiceError
from node.runtime.wording import counted
from protocol.limits.formats import PROFILE_COLOR_COUNT

if TYPE_CHECKING:  # types of answers: `ravel --help` must be quick
    from ravel import Client
    from ravel.types.people import OwnName


def _own_name(answer: Mapping[str, Any]) -> str:
    """Print this user's name, and where others see it."""
    counts = Counter(repo["state"] for repo in answer["repos"])
    user = id_text_shown(answer["user"])
    lines = ["You have no name yet: `ravel me --name NAME` states one."]
    if answer["name"]:
        lines = [f"You are called {answer['name']}.  {user}"]
        if answer["shown"]:
            lines = [
                f"Others see you as {answer['shown']}; this computer is called {answer['name']}.  {user}"
            ]
        told = counts["stated"], counts["due"]
        if told[0]:
            lines.append(f"Members see it in {counted(told[0], 'repo')}.")
        if told[1]:
            lines.append(
                f"It comes to {counted(told[1], 'repo')} within a minute, or when this computer can write there."
            )
        if absent := counts["not_permitted"]:
            lines.append(f"It is not seen in {counted(absent, 'repo')}, where you may not write.")
    if answer["color"] is not None:
        lines.append(f"Your color has the number {answer['color']}.")
    return "\n".join(lines)


@prints(Says(_own_name))
def me(
    api: "Client",
    name: Annotated[str | None, typer.Option(help="Your name, as members of your repos see it.")] = None,
    color: Annotated[
        int | None,
        typer.Option(
            min=0, max=PROFILE_COLOR_COUNT - 1, help="The number of the color that you are shown in."
        ),
    ] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Take name and color away.")] = False,
) -> "OwnName":
    """State your name, or show it. Members of each repo see it where you may write, also in repos that come later.

    A name proves nothing: others may state the same one. Earlier names stay in the repo's history.
    """
    if remove and (name is not None or color is not None):
        raise ServiceError("bad_request", "--remove goes alone", "ravel me --remove")
    if remove:
        return api.state_me(None)
    answer = api.show_me()
    if name is None and color is None:
        return answer
    return api.state_me(
        answer["name"] if name is None else name, color=answer["color"] if color is None else color
    )


_PETNAMES = Table(
    "listed",
    short("user"),
    "name",
    ("", "kind"),
    empty=Says("You have given nobody a name of your own yet.", "name USER NAME"),
)


@prints(lambda answer: (_PETNAMES if "listed" in answer else words.PETNAME_SET)(answer))
def name(
    api: "Client",
    user: Annotated[
        str | None,
        typer.Argument(help="A name, an id, or a unique prefix of one. Without it, petnames are listed."),
    ] = None,
    petname: Annotated[str | None, typer.Argument(help="What you call the user.")] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Take the name away.")] = False,
    peer: Annotated[bool, typer.Option("--peer", help="Name a node by its id, and not a user.")] = False,
) -> Outcome:
    """Name a user for yourself: a petname. It never leaves this node, and goes before what the user calls itself."""
    if user is None:
        answer = api.list_petnames()
        listed = [{**one, "kind": ""} for one in answer["petnames"]]
        listed += [{**one, "kind": "peer"} for one in answer["peers"]]
        return Outcome(answer, shown={"listed": listed})
    if remove == (petname is not None):
        raise ServiceError(
            "bad_request", "say a name, or --remove", f"ravel name {user} NAME, or ravel name {user} --remove"
        )
    return Outcome(api.set_petname(user, petname, peer=peer))
