"""init, run, status, id: the node itself."""

from typing import Annotated

import typer

from node.cli.shared import JsonOption, client, iso_time, print_fields, print_json, print_table, settings


def init(
    context: typer.Context,
    name: Annotated[str, typer.Option(help="A name for people; peers do not see it.")] = "",
    listen: Annotated[str | None, typer.Option(help="host:port for other nodes (127.0.0.1:7474).")] = None,
    api: Annotated[str | None, typer.Option(help="host:port of the local API (127.0.0.1:7475).")] = None,
    as_json: JsonOption = False,
) -> None:
    """Make a node in the folder: keys, token, configuration. What is there already stays as it is."""
    from node.home import create_home
    from protocol.signing import public_key
    from protocol.text import id_text

    home = create_home(settings(context).home, name=name, listen=listen, api=api)
    answer = {
        "home": str(home.path),
        "config": str(home.config_path),
        "node": id_text(public_key(home.node_seed)),
        "user": id_text(public_key(home.user_seed)),
    }
    if as_json:
        print_json(answer)
        return
    print_fields(answer.items())
    print(f"\nStart it with:  ravel --home {home.path} run")


def run(context: typer.Context) -> None:
    """Run the daemon in the foreground, until Ctrl-C or SIGTERM. Prints one line when it is ready."""
    from node.daemon import run as run_daemon
    from node.home import open_home

    run_daemon(open_home(settings(context).home))


def status(context: typer.Context, as_json: JsonOption = False) -> None:
    """Show the running node: what it holds, and how it stands with its peers."""
    answer = client(context).status()
    if as_json:
        print_json(answer)
        return
    print_fields((name, value) for name, value in answer.items() if name != "peers")
    for peer in answer["peers"]:
        print(f"\npeer {peer['peer']}  {peer['state']} ({peer['direction']}, {peer['address']})")
        if peer["last_error"]:
            print_fields([("  last error", peer["last_error"])])
        print_table(
            ("branch", "state", "behind", "to send", "sent", "received"),
            (
                (
                    topic["name"],
                    f"stalled since {iso_time(topic['stalled_since'])}"
                    if topic["stalled_since"]
                    else topic["state"],
                    topic["behind"],
                    topic["to_send"],
                    topic["sent"],
                    topic["received"],
                )
                for topic in peer["topics"]
            ),
        )


def show_id(context: typer.Context, as_json: JsonOption = False) -> None:
    """Print the node's id (what peers dial) and the user's id (what commits are signed with)."""
    from node.home import open_home
    from protocol.signing import public_key
    from protocol.text import id_text

    home = open_home(settings(context).home)
    answer = {"node": id_text(public_key(home.node_seed)), "user": id_text(public_key(home.user_seed))}
    if as_json:
        print_json(answer)
    else:
        print_fields(answer.items())


def open_page(
    context: typer.Context,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Start a browser, or print the address only.")
    ] = True,
    as_json: JsonOption = False,
) -> None:
    """Open the node's web page. The address holds a code that is good once, for a minute, on this machine."""
    api = client(context)
    answer = api.make_code()
    address = api.base_url + answer["path"]
    if as_json:
        print_json({"address": address, "expires_seconds": answer["expires_seconds"]})
        return
    print(address, flush=True)
    if browser:
        import webbrowser

        webbrowser.open(address)
