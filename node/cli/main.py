"""`ravel` entry point: registers all commands, and maps expected failures to a message and an exit code."""

import io
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from node.cli import (
    branch_commands,
    care_commands,
    device_commands,
    document_commands,
    export_commands,
    feed_commands,
    file_commands,
    import_commands,
    inbox_commands,
    key_commands,
    member_commands,
    node_commands,
    peer_commands,
    quorum_commands,
    relay_commands,
    repo_commands,
    tag_commands,
    tangle_commands,
    token_commands,
    watch_commands,
)
from node.cli.shared import Settings, fail
from node.runtime.errors import ServiceError
from node.runtime.version import VERSION

_EPILOG = "Commands speak to the running daemon of the folder. Exit codes and JSON: docs/reference."

app = typer.Typer(
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    epilog=_EPILOG,
    help="A replica node for encrypted tangles.",
)

app.command("init")(key_commands.init)
app.command("run")(node_commands.run)
app.command("status")(node_commands.status)
app.command("storage")(node_commands.storage)
app.command("open")(node_commands.open_page)
app.command("id")(node_commands.show_id)
app.add_typer(key_commands.key, name="key")
app.add_typer(node_commands.config, name="config")
app.add_typer(repo_commands.repo, name="repo")
app.add_typer(device_commands.device, name="device")
app.add_typer(member_commands.member, name="member")
app.add_typer(quorum_commands.quorum, name="quorum")
app.add_typer(branch_commands.branch, name="branch")
app.command("write")(branch_commands.write)
app.command("log")(branch_commands.log)
app.command("watch")(watch_commands.watch)
app.command("show")(branch_commands.show)
app.command("why")(branch_commands.why)
for name, group in document_commands.GROUPS.items():
    app.add_typer(group, name=name)
app.add_typer(file_commands.file, name="file")
app.add_typer(feed_commands.feed, name="feed")
app.add_typer(import_commands.import_, name="import")
app.command("export")(export_commands.export)
app.command("analyze")(export_commands.analyze)
app.command("study")(export_commands.study)
app.command("audit")(export_commands.audit)
app.add_typer(inbox_commands.inbox, name="inbox")
app.add_typer(tag_commands.tag, name="tag")
app.add_typer(tangle_commands.tangle, name="tangle")
app.add_typer(peer_commands.peer, name="peer")
app.add_typer(relay_commands.relay, name="relay")
app.add_typer(token_commands.token, name="token")
app.command("backup")(care_commands.backup)
app.command("restore")(care_commands.restore)
app.command("fsck")(care_commands.fsck)
app.command("gc")(care_commands.collect)
app.command("doctor")(care_commands.doctor)
app.add_typer(care_commands.debug, name="debug")


def _default_home() -> Path:
    state = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    return Path(state).expanduser() / "ravel"


def _show_version(wanted: bool) -> None:  # as typer calls it
    if wanted:
        print(VERSION)
        raise typer.Exit


@app.callback()
def configure(
    context: typer.Context,
    home: Annotated[
        Path | None,
        typer.Option("--home", "-H", envvar="RAVEL_HOME", help="The node's folder (~/.local/share/ravel)."),
    ] = None,
    passphrase_file: Annotated[
        str | None,
        typer.Option(
            "--passphrase-file",
            envvar="RAVEL_PASSPHRASE_FILE",
            metavar="FILE",
            help="A file with the passphrase of sealed keys; - for standard input.",
        ),
    ] = None,
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Options for every command."""
    context.obj = Settings((home or _default_home()).expanduser().absolute(), passphrase_file)


def main() -> None:
    """Run one command; the process's exit code is one of `node.runtime.errors`."""
    as_json = "--json" in sys.argv
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Texts come from everywhere; a terminal that cannot show one must not fail the command.
            stream.reconfigure(errors="backslashreplace")
    try:
        app()
    except ServiceError as error:
        sys.exit(fail(error, as_json=as_json))
    except UnicodeEncodeError:
        problem = ServiceError("bad_request", "an argument is not UTF-8 text", "type it in UTF-8")
        sys.exit(fail(problem, as_json=as_json))
    except BrokenPipeError:  # the reader of our output has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)


if __name__ == "__main__":
    main()
