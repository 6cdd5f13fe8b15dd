"""export, analyze: the store as Parquet, and Spark on it."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from node.cli.shared import JsonOption, client, print_fields, print_json, settings
from node.errors import ERROR_KINDS, ServiceError


def export(context: typer.Context, as_json: JsonOption = False) -> None:
    """Write what is new since the last export as Parquet, and print where."""
    answer = client(context).export()
    print_json(answer) if as_json else print_fields(answer.items())


def analyze(
    context: typer.Context,
    export_folder: Annotated[
        Path | None, typer.Argument(metavar="[EXPORT]", help="An export; by default this node's.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for tables, digests and report.html.")] = Path("analysis"),
    master: Annotated[str, typer.Option(help="Spark master.")] = "local[*]",
    verify: Annotated[bool, typer.Option(help="Compare Spark's ranks with the node's own.")] = True,
    as_json: JsonOption = False,
) -> None:
    """Run Spark on an export: statistics, the bulk linearization, and a report. Needs Java 17 or newer."""
    if find_spec("pyspark") is None:
        raise ServiceError(
            "missing_extra", "PySpark is not installed", "install it: pip install 'ravel-node[analytics]'"
        )
    if export_folder is None:
        from node.home import open_home

        export_folder = open_home(settings(context).home).export_folder
    # A process of its own: the CLI and the daemon never import Spark. -P: nor what lies in the current folder.
    command = [
        sys.executable,
        "-P",
        "-m",
        "analytics",
        str(export_folder),
        "--out",
        str(out),
        "--master",
        master,
    ]
    command += [] if verify else ["--no-verify"]
    command += ["--json"] if as_json else []
    code = subprocess.run(command, check=False).returncode
    if code != 0:
        known = {kind.exit_code for kind in ERROR_KINDS.values()}
        raise typer.Exit(code if code in known else ERROR_KINDS["internal"].exit_code)
