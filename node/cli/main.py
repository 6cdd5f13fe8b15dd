"""`ravel` entry point: the options before the command, and what maps expected failures to a message and an exit code."""

# isort: off
import node.cli.interrupts  # noqa: F401  # before all that takes a while to import

# isort: on
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from node.cli.command_table import LazyGroup
from node.cli.hints import note_options
from node.cli.shared import Settings, fail
from node.cli.streams import OutputFailed, end_output, open_streams
from node.runtime.errors import EXIT_OK, ServiceError, kind_of
from node.runtime.version import VERSION

_EPILOG = "Commands speak to the running daemon of the folder. Exit codes and JSON: docs/apps/errors.md."

app = typer.Typer(
    cls=LazyGroup,
    no_args_is_help=True,
    add_completion=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    epilog=_EPILOG,
    help="A replica node for encrypted tangles.",
)


def _show_version(wanted: bool) -> None:  # as typer calls it
    if wanted:
        print(VERSION)
        raise typer.Exit


@app.callback()
def configure(
    context: typer.Context,
    home: Annotated[
        str | None,
        typer.Option(
            "--home",
            "-H",
            envvar="RAVEL_HOME",
            metavar="<path>",
            help="The node's folder (~/.local/share/ravel).",
        ),
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
    """Take the options that stand before the command."""
    context.obj = found = Settings(Path(home) if home else None, passphrase_file)
    # What the environment says, it says again to the next command.
    note_options(
        found.home if home and _is_typed(context, "home") else None,
        passphrase_file if _is_typed(context, "passphrase_file") else None,
    )


def _is_typed(context: typer.Context, option: str) -> bool:
    source = context.get_parameter_source(option)
    return source is not None and source.name == "COMMANDLINE"


def main() -> None:
    """Run one command; the process's exit code is one of `node.runtime.errors`."""
    open_streams()
    code: int = EXIT_OK
    try:
        try:
            app()
        except SystemExit as end:
            code = int(end.code or EXIT_OK)
        except ServiceError as error:
            code = kind_of(error).exit_code
            fail(error, as_json="--json" in sys.argv)
        except OSError as error:  # of a path that was given: commands map what goes wrong with their own
            problem = _path_problem(error)
            if problem is None:
                raise
            code = fail(problem, as_json="--json" in sys.argv)
        except UnicodeEncodeError:
            problem = ServiceError("bad_request", "an argument is not UTF-8 text", "type it in UTF-8")
            code = fail(problem, as_json="--json" in sys.argv)
        sys.stdout.flush()
    except OutputFailed as failed:
        code = end_output(failed) or code
    sys.exit(code)


def _path_problem(error: OSError) -> ServiceError | None:
    """Return the error for people if the system refused a path; None if the error names no path, and so is a defect."""
    if error.filename is not None:
        advice = "check the path, its permissions, and the room there"
        return ServiceError("storage_failed", f"{error.filename}: {error.strerror}", advice)
    try:
        os.getcwd()
    except FileNotFoundError:
        return ServiceError(
            "bad_request", "the current folder has been deleted", "cd to another one, or give whole paths"
        )
    return None


if __name__ == "__main__":
    main()
