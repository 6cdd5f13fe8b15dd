"""The page of measured figures, made from the data file of the newest runs."""

import tomllib
from pathlib import Path
from typing import Any, Final

DATA: Final = Path(__file__).parents[2] / "benchmarks" / "figures.toml"
PAGE: Final = Path(__file__).parents[2] / "docs" / "understanding" / "performance.md"
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
    lines += [
        "",
        "## Measure again",
        "",
        "`python -m benchmarks.bench_ingest` and so on, on an idle machine: each prints one JSON line a figure, and its"
        " docstring states the method. `make bench` runs all.",
    ]
    return "\n".join(lines) + "\n"


def _cells(one: dict[str, Any]) -> list[str]:
    met = ("yes" if one["is_met"] else "**no**") if one["goal"] else ""
    return [met if name == "is_met" else one[name] for name in _COLUMNS]
