"""The page of measured figures, made from the data file of the newest runs."""

import json
import tomllib
from pathlib import Path
from typing import Any, Final

DATA: Final = Path(__file__).parents[2] / "benchmarks" / "figures.toml"
PAGE: Final = Path(__file__).parents[2] / "docs" / "understanding" / "performance.md"
DECADE: Final = DATA.parent / "decade" / "figures.jsonl"
_OF_DECADE: Final = {
    "decade_commits": "commits",
    "decade_authors": "people who wrote",
    "decade_epochs": "epochs",
    "decade_branches": "branches, root branches included",
    "decade_start": "start until `/readyz`",
    "decade_start_processor": "the same, processor time",
    "decade_start_memory": "memory of the daemon then",
    "decade_relay_start_processor": "start of a relay, processor time",
    "decade_relay_start_memory": "memory of the relay then",
    "decade_write_processor": "one post, processor time",
    "decade_grant_processor": "a follower becomes a member, told in up to 64 epochs, processor time of the admin's node",
    "decade_exclusion_processor": "a member is excluded, processor time of the admin's node",
    "decade_topics_with_relay": "topics of a connection with a relay",
    "decade_relay_again_bytes": "the same, when both sides are level: bytes of meeting again",
    "decade_topics_directly": "topics of a direct connection, when the first posts are there",
    "decade_topics_level": "the same, when both sides have all and meet again",
    "decade_join": "a newcomer's join, until the first posts are there",
    "decade_join_bytes": "the same, bytes",
    "decade_first_sync_bytes": "first sync, bytes a commit",
    "decade_first_sync_processor": "first sync, processor time of the newcomer for a commit",
    "decade_first_sync_last_tenth_processor": "the same, last tenth to first",
    "decade_size_database": "size of the database",
    "decade_status_processor": "`ravel status`, processor time",
    "decade_repo_list_processor": "`ravel repo list`, processor time",
    "decade_doctor_processor": "`ravel doctor`, processor time",
}
"""Figures of the decade that the page shows, and what it calls them."""
_COLUMNS: Final = ("figure", "goal", "limit", "value", "is_met", "machine", "commit")


def read_figures() -> dict[str, Any]:
    """Return the data file: the machines by letter, and the figures in their order."""
    return tomllib.loads(DATA.read_text(encoding="utf-8"))


def figures_page(made: str) -> str:
    """Return the page: one table, what bounds each figure, and how to measure again."""
    data = read_figures()
    lines = ["# Performance", "", made]
    lines += [
        "The data file is [benchmarks/figures.toml](../../benchmarks/figures.toml). A number behind a colon is the ratio to"
        " the peer or limit, measured in the same run.",
        "",
        "| figure | goal | peer or limit | value | met | machine | commit |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += ["| " + " | ".join(map(str, _cells(one))) + " |" for one in data["figures"]]
    lines += ["", "**Machines.**", ""]
    lines += [f"- {letter}: {text}." for letter, text in data["machines"].items()]
    lines += ["", "## What bounds each", ""]
    lines += [f"- **{one['figure']}** (`{one['by']}`). {one['bound_by']}" for one in data["figures"]]
    lines += ["", *_decade_lines(data["decade"])]
    lines += [
        "",
        "## Measure again",
        "",
        "`python -m benchmarks.bench_ingest` and so on, on an idle machine: each prints one JSON line a figure, and its"
        " docstring states the method. `make bench` runs all.",
        "",
        "The last table is made of the lines that `make decade` prints, kept in"
        " [benchmarks/decade/figures.jsonl](../../benchmarks/decade/figures.jsonl).",
    ]
    return "\n".join(lines) + "\n"


def _cells(one: dict[str, Any]) -> list[str]:
    met = ("yes" if one["is_met"] else "**no**") if one["goal"] else ""
    return [met if name == "is_met" else one[name] for name in _COLUMNS]


def _decade_lines(run: dict[str, Any]) -> list[str]:
    """Return the section about a community of ten years."""
    found = {one["figure"]: one for one in map(json.loads, DECADE.read_text(encoding="utf-8").splitlines())}
    lines = [
        "## A community of ten years",
        "",
        "The same community when it was one year old, and at ten years ([benchmarks/decade](../../benchmarks/decade))."
        f" {run['about']} Machine {run['machine']}, commit {run['commit']}.",
        "",
        "| figure | one year | ten years | ratio | goal |",
        "|---|---|---|---|---|",
    ]
    for name, label in _OF_DECADE.items():
        if name in found:
            one = found[name]
            values = " | ".join(_amount(one[when], one["of"]) for when in ("year", "decade"))
            lines.append(f"| {label} | {values} | {one['value']:.3g} | {one.get('goal', '')} |")
    return lines


def _amount(value: float, unit: str) -> str:
    """Return a value with its unit, if that is one: what is counted, the label says."""
    shown = f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"
    name = unit.partition(" ")[0]
    return f"{shown} {name}" if name in ("s", "ms", "us", "bytes", "KB", "MB") else shown
