"""CLI: export to Parquet, and the jobs analyze, audit and study."""

import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from node.cli import words
from node.cli.answers import JsonOption, prints
from node.cli.foreground import run_in_front
from node.cli.shared import client, settings
from node.runtime.errors import ERROR_KINDS, EXIT_STOPPED, ServiceError
from node.runtime.install_hint import install_command

if TYPE_CHECKING:  # types of answers: `ravel --help` must be quick
    from ravel import Client
    from ravel.types.node import ExportResult

StrictOption = Annotated[
    bool, typer.Option("--strict", help="Stop at a bad export; else it is named, and others are read.")
]
MasterOption = Annotated[
    str | None, typer.Option(help="Spark master. [default: that of Spark's settings, else local[*]]")
]
ConfOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KEY=VALUE", help="Spark setting, which goes before Ravel's own. May be given several times."
    ),
]
LargeBranchOption = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="COMMITS",
        help="Order branches of at least this many commits in several tasks (2000000).",
    ),
]

_NOTHING_MORE: Final[Mapping[str, str]] = MappingProxyType({})
_SPARK: Final = ("pyspark", "PySpark", "analytics")
"""A package, its name, and the extra that installs it."""


@prints(words.EXPORTED)
def export(api: "Client") -> "ExportResult":
    """Export what is new since the last export as Parquet, and print the folder."""
    return api.export_store()


def analyze(
    context: typer.Context,
    export_folders: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[EXPORT...]",
            help="Exports of nodes, read as one: folders, URLs or @FILE, which lists some; by default this node's.",
        ),
    ] = None,
    out: Annotated[str, typer.Option(help="Folder or URL for tables, digests and report.html.")] = "analysis",
    engine: Annotated[
        Literal["spark", "local"],
        typer.Option(help="Compute with Spark at any size, or with DuckDB in one process, without Java."),
    ] = "spark",
    master: MasterOption = None,
    conf: ConfOption = None,
    no_verify: Annotated[
        bool, typer.Option("--no-verify", help="Compare nothing with the node's ranks.")
    ] = False,
    draw: Annotated[
        str | None,
        typer.Option(metavar="BRANCH", help="Branch to draw: NAME, REPO:NAME, or the start of its id."),
    ] = None,
    csv: Annotated[bool, typer.Option("--csv", help="Also write large tables as CSV.")] = False,
    every_tangle: Annotated[
        bool,
        typer.Option(
            "--every-tangle", help="Also order and count feeds and groups, as the tangles that they are."
        ),
    ] = False,
    no_names: Annotated[
        bool,
        typer.Option(
            "--no-names", help="Show keys, and not the names that a running node knows, on the page."
        ),
    ] = False,
    giant_from: LargeBranchOption = None,
    strict: StrictOption = False,
    as_json: JsonOption = False,
) -> None:
    """Analyze an export: statistics, the order computed anew, and a report. Spark, the default, needs Java 17 or newer."""
    own, environment = ("", {}) if export_folders else _own_export(context)
    needed = ("duckdb", "DuckDB", "analytics-local") if engine == "local" else _SPARK
    names = {} if no_names else _known_names(context)
    options = _options(
        out=out,
        master=master,
        engine=engine,
        conf=conf,
        no_verify=no_verify,
        draw=draw,
        csv=csv,
        every_tangle=every_tangle,
        giant_from=giant_from,
        strict=strict,
        names="-" if names else None,
        json=as_json,
    )
    _run_job(
        "analytics", [*(export_folders or [own]), *options], environment, needed=needed, standard_input=names
    )


def audit(
    context: typer.Context,
    export_folders: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[EXPORT...]",
            help="Exports of nodes, as `analyze` takes them; by default this node's.",
        ),
    ] = None,
    out: Annotated[str, typer.Option(help="Folder or URL for the table of findings.")] = "audit",
    master: MasterOption = None,
    conf: ConfOption = None,
    giant_from: LargeBranchOption = None,
    strict: StrictOption = False,
    as_json: JsonOption = False,
) -> None:
    """Recompute ids and find contradictions in and between exports. Exits with 23 if there are any. Needs Java 17 or newer.

    Ids are recomputed of exports that hold blocks, as export.blocks has them; of others it is said that they were not.
    """
    own, environment = ("", {}) if export_folders else _own_export(context)
    options = _options(out=out, master=master, giant_from=giant_from, conf=conf, strict=strict, json=as_json)
    _run_job("analytics.audit.command", [*(export_folders or [own]), *options], environment)


def study(
    name: Annotated[str, typer.Argument(metavar="STUDY", help="The study to run: scuttlesort.")],
    exports: Annotated[
        list[str] | None,
        typer.Argument(metavar="EXPORT", help="Exports whose largest branches are replayed too."),
    ] = None,
    out: Annotated[str, typer.Option(help="Folder or URL for tables and study.html.")] = "study",
    quick: Annotated[bool, typer.Option("--quick", help="Small tangles: minutes, not hours.")] = False,
    heights: Annotated[str | None, typer.Option(help="Commits of the tangles: 32K,64K.")] = None,
    widths: Annotated[str | None, typer.Option(help="Feeds of the tangles: 4,64.")] = None,
    seeds: Annotated[int | None, typer.Option(help="Runs of each scenario.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Resume the study in --out.")] = False,
    master: MasterOption = None,
    conf: ConfOption = None,
    strict: StrictOption = False,
    as_json: JsonOption = False,
) -> None:
    """Replay tangles in Spark and count the edits that keep a timeline in order. Needs Java 17 or newer."""
    if name != "scuttlesort":
        raise ServiceError("bad_request", f"there is no study {name!r}", "ravel study scuttlesort")
    plan = _options(quick=quick, heights=heights, widths=widths, seeds=seeds, resume=resume)
    options = _options(out=out, master=master, conf=conf, strict=strict, json=as_json)
    _run_job("analytics.study.command", [name, *(exports or []), *plan, *options])


def _own_export(context: typer.Context) -> tuple[str, dict[str, str]]:
    """Return the destination of this node's exports, and the environment that the driver of that store needs."""
    from node.home.home import open_home

    home = open_home(settings(context).home)
    destination, options = home.export_destination, home.config.export.options
    if not options or "://" not in destination:
        return destination, {}
    # fsspec takes a driver's options from a variable of its name, so that they stand in no command line.
    return destination, {f"FSSPEC_{destination.partition('://')[0].upper()}": json.dumps(options)}


def _known_names(context: typer.Context) -> dict[str, str]:
    """Return the names of users, nodes and repos by their ids; nothing where no daemon runs."""
    try:
        api = client(context)
        repos = api.list_repos()["repos"]
        names = {repo["repo"]: repo["name"] for repo in repos}
        for repo in (one["repo"] for one in repos if one["whole"]):  # of others no members are known
            for member in api.list_members(repo)["members"]:
                if member["name"]:
                    names[member["user"]] = member["name"]
        petnames = api.list_petnames()
        names |= {one["user"]: one["name"] for one in (*petnames["petnames"], *petnames["peers"])}
        return {api.show_status()["node"]: "This node"} | names
    except ServiceError:
        return {}


def _options(**given: object) -> list[str]:
    """Return options as a job's command takes them: flags, values, and lists of values; None is not given."""
    found = []
    for name, value in given.items():
        values = value if isinstance(value, list) else [] if value is None or value is False else [value]
        option = f"--{name.replace('_', '-')}"
        found += [option if one is True else f"{option}={one}" for one in values]
    return found


def _run_job(
    module: str,
    arguments: Sequence[str],
    environment: Mapping[str, str] = _NOTHING_MORE,
    *,
    needed: tuple[str, str, str] = _SPARK,
    standard_input: Mapping[str, str] = _NOTHING_MORE,
) -> None:
    """Run a job in a process of its own: the CLI and the daemon never import Spark. -P: nor the current folder's files."""
    package, name, extra = needed
    if find_spec(package) is None:
        advice = f"install it: {install_command(extra)}"
        if module == "analytics" and needed is _SPARK:
            advice += "; or give --engine local, which needs neither it nor Java"
        raise ServiceError("missing_extra", f"{name} is not installed", advice)
    command = [sys.executable, "-P", "-m", module, *arguments]
    given = json.dumps(dict(standard_input)).encode() if standard_input else None
    code = run_in_front(command, {**os.environ, **environment}, given)
    if code in (EXIT_STOPPED, -signal.SIGINT):
        raise typer.Exit(EXIT_STOPPED)
    if code != 0:
        known = {kind.exit_code for kind in ERROR_KINDS.values()}
        raise typer.Exit(code if code in known else ERROR_KINDS["internal"].exit_code)
