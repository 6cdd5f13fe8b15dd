"""browser: browsers of other machines that are paired with this node."""

from typing import Annotated

import typer

from node.cli.shared import JsonOption, client, iso_time, print_fields, print_json, print_table
from node.cli.token_commands import MadeOption, count_made, end_of, print_revoked

browser = typer.Typer(
    no_args_is_help=True, help="Paired browsers of other machines; `ravel open --remote` pairs one."
)


@browser.command("list")
def list_browsers(context: typer.Context, as_json: JsonOption = False) -> None:
    """List paired browsers: when they last came and until when they may, and where they reach this node."""
    answer = client(context).list_browsers()
    if as_json:
        print_json(answer)
        return
    remote = answer["remote"]
    if remote is None:
        print("no other machine can reach the page: [api] tls is empty")
    else:
        print_fields(
            [
                ("page", ", ".join(remote["addresses"])),
                ("certificate until", iso_time(remote["certificate_ends_at"])),
            ]
        )
    if not answer["browsers"]:
        print("no browser is paired")
        return
    print()
    print_table(
        ("name", "paired", "last used", "until", "made"),
        (
            (
                item["name"],
                iso_time(item["created_at"]),
                "never" if item["last_used_at"] is None else iso_time(item["last_used_at"]),
                end_of(item),
                count_made(item["made"]),
            )
            for item in answer["browsers"]
        ),
    )


@browser.command("revoke")
def revoke(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Its name, as in `ravel browser list`.")],
    made: MadeOption = False,
    as_json: JsonOption = False,
) -> None:
    """Revoke a paired browser, at once and for good, and list what was made with it. What it shows ends within seconds."""
    print_revoked(client(context).revoke_browser(browser=name, made=made), as_json=as_json)
