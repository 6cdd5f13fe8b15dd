"""token, browser, api: what apps and paired browsers may do with this node's API, and any request to it."""

import json
import re
from collections import Counter
from typing import TYPE_CHECKING, Annotated, Final

import typer

from node.cli.answers import JsonOption, Table, advice_of, print_fields, print_table, prints
from node.cli.inputs import read_input
from node.cli.printing import say_wrapped, state_word
from node.cli.shared import YesOption, client, confirm, say
from node.cli.wording import parse_duration, time_of
from node.runtime.errors import ServiceError
from node.runtime.wording import counted, date_text
from protocol.limits.users import REQUEST_SIZE_MAX

if TYPE_CHECKING:  # types of answers: `ravel --help` must be quick
    from ravel import Client
    from ravel.types.browsers import BrowserList, BrowserView
    from ravel.types.made import MadeThing, Revoked
    from ravel.types.tokens import NewToken, TokenList, TokenView

token = typer.Typer(no_args_is_help=True, help="Tokens that let apps use this node's API.")
browser = typer.Typer(
    no_args_is_help=True, help="Paired browsers of other machines; `ravel open --remote` pairs one."
)

MadeOption = Annotated[
    bool,
    typer.Option(
        "--made",
        help="Also end the links, tokens, browsers, relay accounts and peers that were made with it. Members stay.",
    ),
]
_METHODS: Final = ("GET", "POST", "PUT", "DELETE")


@token.command("create")
@prints(lambda answer: print(answer["token"]))
def create(
    api: "Client",
    name: Annotated[str, typer.Option("--name", help="What to call it: letters, digits, dots, _ and -.")],
    actions: Annotated[
        str,
        typer.Option(
            "--actions",
            help="What it may do, separated by commas: read, write, manage, admin, node, metrics. None includes another.",
        ),
    ],
    repo: Annotated[
        list[str] | None,
        typer.Option("--repo", help="A repo that it is for; may be repeated. Without one, it is for all."),
    ] = None,
    branch: Annotated[
        list[str] | None, typer.Option("--branch", help="A single branch that it is for; may be repeated.")
    ] = None,
    origin: Annotated[
        list[str] | None,
        typer.Option(
            "--origin",
            help="A web origin whose pages may use it, such as http://localhost:8000; may be repeated. Without one, "
            "browsers get no answer for pages of other origins.",
        ),
    ] = None,
    expires: Annotated[str, typer.Option(help="How long it is valid: 60s to 3650d.")] = "90d",
) -> "NewToken":
    """Make a token for an app, and print it. It is shown this once: the node keeps only a hash."""
    from node.contract.tokens import NAME_FORM, find_origin_fault
    from protocol.limits.users import API_TOKEN_SECONDS_MAX, API_TOKEN_SECONDS_MIN

    if not re.search(NAME_FORM, name):
        raise ServiceError(
            "bad_request", f"{name[:100]!r} is no name of a token", "use letters, digits, `.`, `_` and `-`"
        )
    seconds = parse_duration(expires)
    if not API_TOKEN_SECONDS_MIN <= seconds <= API_TOKEN_SECONDS_MAX:
        raise ServiceError("bad_request", f"a token is not valid for {expires}", "say 60s to 3650d")
    fault = next(filter(None, map(find_origin_fault, origin or ())), None)
    if fault is not None:
        raise ServiceError(
            "bad_request", fault, "an origin is https://HOST or http://localhost:PORT, without a path"
        )
    made = api.create_token(
        name=name,
        actions=_actions(actions),
        repos=repo or [],
        branches=branch or [],
        origins=origin or [],
        expires_seconds=seconds,
    )
    say(f"note: apps on this machine reach this node at {api.url}")
    return made


def _actions(text: str) -> list[str]:
    """Split actions at commas. Raises ServiceError `bad_request`."""
    from node.contract.access import ACTIONS
    from node.runtime.resolve import did_you_mean

    found = [action.strip() for action in text.split(",")]
    for one in found:
        if one not in ACTIONS:
            what = f"{one!r} is no action{did_you_mean(one, ACTIONS)}" if one else "an action is missing"
            raise ServiceError(
                "bad_request", what, f"--actions takes {', '.join(ACTIONS)}, separated by commas"
            )
    return found


def _end_of(item: "TokenView | BrowserView") -> str:
    if item["revoked"]:
        return state_word("revoked")
    return state_word("expired") if item["expired"] else date_text(item["expires_at"] or 0)


def count_made(item: "Revoked | TokenView | BrowserView") -> str:
    """Return how many things of each kind were made with a token and last, such as `2 invitations, 1 member`."""
    kinds = Counter(one["kind"].replace("_", " ") for one in item["made"] if not one["ended"])
    return ", ".join(state_word(counted(count, kind)) for kind, count in kinds.items())


def _targets(item: "TokenView") -> str:
    """Return names of repos and branches, or the first characters of ids of those that are not on this node any more."""
    found = [one["name"] or _gone(one["repo"]) for one in item["repos"]]
    found += [f"branch {one['name'] or _gone(one['branch'])}" for one in item["branches"]]
    where = ", ".join(found) or state_word("all repos")
    return f"{where}; pages of {', '.join(item['origins'])}" if item["origins"] else where


def _gone(target: str) -> str:
    return f"{target[:12]} (gone)"


@token.command("list")
@prints(
    Table(
        "tokens",
        "name",
        ("actions", lambda item: ",".join(item["actions"])),
        ("for", _targets),
        ("expires", _end_of),
        ("last used", time_of("last_used_at")),
        ("made", count_made),
    )
)
def list_tokens(api: "Client") -> "TokenList":
    """List tokens: what each may do and where, until when, when it was last used, and what was made with it."""
    return api.list_tokens()


def print_revoked(answer: "Revoked") -> None:
    """Print what was made with a revoked token, and the commands that end what is left of it."""
    if not answer["made"]:
        print("revoked; nothing that was made with it is left")
        return
    print("revoked; made with it:")
    print_table(
        ("made", "what", "repo", "at", "now", "ended by"),
        (
            (
                one["kind"].replace("_", " "),
                one["what"],
                one["repo_name"] or one["repo"] or "",
                date_text(one["made_at"]),
                _state_of(one),
                advice_of(one),
            )
            for one in answer["made"]
        ),
    )


def _state_of(one: "MadeThing") -> str:
    if one["begun"]:
        return state_word("may be there")
    return state_word("ended" if one["ended"] else "stays")


@token.command("revoke")
@prints(print_revoked)
def revoke(
    api: "Client",
    name: Annotated[str, typer.Argument(help="Its name, as in `ravel token list`.")],
    made: MadeOption = False,
    yes: YesOption = False,
) -> "Revoked":
    """Revoke a token, at once and for good, and list what was made with it and stays."""

    def question() -> str:
        _check_listed("token", name, [one["name"] for one in api.list_tokens()["tokens"]])
        return f"Apps with the token {name} will reach this node no more. Revoke {name}?"

    confirm(question, yes=yes)
    return api.revoke_token(token=name, made=made)


def _check_listed(what: str, name: str, names: list[str]) -> None:
    """Raise ServiceError `not_found` for a name that no list has: nobody is asked about it."""
    from node.runtime.resolve import did_you_mean

    if name not in names:
        raise ServiceError(
            "not_found",
            f"no {what} is called {name!r}{did_you_mean(name, names)}",
            f"`ravel {what} list` shows what there is",
        )


def _print_browsers(answer: "BrowserList") -> None:
    remote = answer["remote"]
    if remote is None:
        say_wrapped("no other machine can reach the page: [api] tls is empty")
    else:
        print_fields(
            [
                ("page", ", ".join(remote["addresses"])),
                ("certificate until", date_text(remote["certificate_ends_at"])),
            ]
        )
    if not answer["browsers"]:
        say_wrapped("no browser is paired")
        return
    print()
    Table(
        "browsers",
        "name",
        ("paired", time_of("created_at")),
        ("last used", time_of("last_used_at")),
        ("until", _end_of),
        ("made", count_made),
    )(answer)


@browser.command("list")
@prints(_print_browsers)
def list_browsers(api: "Client") -> "BrowserList":
    """List paired browsers with last use, expiry and address."""
    return api.list_browsers()


@browser.command("revoke")
@prints(print_revoked)
def revoke_browser(
    api: "Client",
    name: Annotated[str, typer.Argument(help="Its name, as in `ravel browser list`.")],
    made: MadeOption = False,
    yes: YesOption = False,
) -> "Revoked":
    """Revoke a paired browser, at once and for good, and list what was made with it. What it shows ends within seconds."""

    def question() -> str:
        _check_listed("browser", name, [one["name"] for one in api.list_browsers()["browsers"]])
        return f"The browser {name} will reach this node no more, unless it is paired again. Revoke {name}?"

    confirm(question, yes=yes)
    return api.revoke_browser(browser=name, made=made)


def call_api(
    context: typer.Context,
    method: Annotated[str, typer.Argument(help="GET, POST, PUT or DELETE.")],
    path: Annotated[str, typer.Argument(help="The path below /api/v1, as /repos?limit=5.")],
    data: Annotated[
        str | None,
        typer.Option(metavar="JSON|@FILE|-", help="The body: JSON, a file with it, or - for standard input."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Call an endpoint of the HTTP API, and print its answer. docs/reference/endpoints.md lists all.

    `ravel api POST /branches/notes:main/commits --data '{"text": "hello"}'` writes a post. --json prints one line.
    """
    verb = method.upper()
    if verb not in _METHODS:
        raise ServiceError(
            "bad_request", f"{method!r} is none of {', '.join(_METHODS)}", "ravel api GET /status"
        )
    body = None if data is None else _read_body(data)
    answer = client(context).request(verb, path, body)
    try:
        found = json.loads(answer)
    except ValueError:
        raise ServiceError(
            "bad_request", f"{path} answers with content and not with JSON", "`ravel file get` gets a file"
        ) from None
    print(json.dumps(found, ensure_ascii=False, indent=None if as_json else 2), flush=True)


def _read_body(data: str) -> bytes:
    if data == "-" or data.startswith("@"):
        return read_input(data.removeprefix("@"), REQUEST_SIZE_MAX)
    return data.encode()
