"""The page of other systems' figures beside Ravel's, made from the newest run of `make observatory`.

`python -m tests.support.observatory_page` writes and prints it.
"""

import json
import tomllib
from pathlib import Path
from typing import Any, Final, NamedTuple

_PEERS: Final = Path(__file__).parents[2] / "benchmarks" / "peers"
DATA: Final = _PEERS / "figures.jsonl"
PAGE: Final = Path(__file__).parents[2] / "docs" / "understanding" / "observatory.md"
_OURS: Final = "ravel"
_PROPERTIES: Final = {
    "entry": "an entry is",
    "is_signed": "signed",
    "is_encrypted": "encrypted",
    "is_durable": "durable when it counts",
    "order": "order",
}

_IDLE_RATE: Final = 10_000
"""Signatures a second that a machine checks at least, where nothing else runs."""
_BUSY: Final = " **The machine was busy: compare processor times and bytes, not seconds.**"


class Run(NamedTuple):
    """One run: what it depended on, and figures by workload and system."""

    about: dict[str, Any]
    figures: dict[str, dict[str, dict[str, Any]]]


def read_run() -> Run:
    """Return the newest run."""
    about, *lines = map(json.loads, DATA.read_text(encoding="utf-8").splitlines())
    figures: dict[str, dict[str, dict[str, Any]]] = {}
    for line in lines:
        figures.setdefault(line["figure"], {})[line["system"]] = line
    return Run(about, figures)


def read_systems() -> dict[str, Any]:
    """Return what is said of systems and workloads."""
    return tomllib.loads((_PEERS / "systems.toml").read_text(encoding="utf-8"))


def observatory_page(made: str) -> str:
    """Return the page: what is compared, the figures, and where Ravel is not first."""
    run, said = read_run(), read_systems()
    systems = said["systems"]
    rate = run.about["verifications_per_second"]
    names = {
        "entries": f"{run.about['entries']:,}",
        "away": max(1, run.about["entries"] // 50),
        "check": round(1e6 / rate),
    }
    rounds = "1 round" if run.about["value"] == 1 else f"{run.about['value']} rounds"
    titles = {one["name"]: one["title"].format_map(names) for one in said["workloads"]}
    lines = ["# Observatory: the same work by other systems", "", made]
    lines += [
        f"Median of {rounds} (least to most), in which the systems took turns on one machine, {run.about['day']}, commit"
        f" {run.about['commit']}; libsodium checks {rate:,.0f} signatures a second there. **Bold**: the first of a row, and"
        " medians within its rounds. Members are processes on one machine that speak over the loopback: no"
        f" figure says how a system does on a slow line.{_BUSY if rate < _IDLE_RATE else ''}",
        "",
        *_table([""] + [_title(one) for one in systems]),
        *[_row([label, *(one[name] for one in systems)]) for name, label in _PROPERTIES.items()],
        "",
        "## Figures",
        "",
        *_table([""] + [one["title"] for one in systems]),
    ]
    notes: list[str] = []
    for workload in said["workloads"]:
        found = run.figures.get(workload["name"], {})
        cells = [_cell(workload["name"], one, found, notes) for one in systems]
        lines.append(_row([titles[workload["name"]], *cells]))
    lines += ["", *(f"{number}. {text}." for number, text in enumerate(notes, 1)), "", said["not_run"]]
    lines += ["", "## Where Ravel is not first", ""]
    for workload in said["workloads"]:
        found = run.figures.get(workload["name"], {})
        if _OURS in found and not is_first(_OURS, found):
            before = [one for one in systems if _median(found, one) < _median(found, {"name": _OURS})]
            ahead = ", ".join(
                f"{one['title']} ({_times(_median(found, {'name': _OURS}) / _median(found, one))})"
                for one in sorted(before, key=lambda one: _median(found, one))
            )
            lines.append(f"- **{titles[workload['name']]}**: {ahead}. {workload['why'].format_map(names)}")
    lines += [
        "",
        "## Measure again",
        "",
        "`make observatory` installs the versions that are named above into `benchmarks/peers` (npm; Node.js and git must be"
        " here), runs all, and writes [the data](../../benchmarks/peers/figures.jsonl) and this page. The head of"
        " `benchmarks/bench_peers.py` says what is done, and when the clock runs. Each system is used by a file in"
        " [benchmarks/peers](../../benchmarks/peers): who knows one better is asked to mend it.",
    ]
    return "\n".join(lines) + "\n"


def _title(system: dict[str, Any]) -> str:
    versions = json.loads((_PEERS / "package.json").read_text(encoding="utf-8"))["dependencies"]
    return ", ".join(f"{name} {versions[name]}" for name in system["packages"]) or str(system["title"])


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _table(heads: list[str]) -> list[str]:
    return [_row(heads), "|" + "---|" * len(heads)]


def _median(found: dict[str, dict[str, Any]], system: dict[str, Any]) -> float:
    """Return the figure of a system, or one beyond all if it has none."""
    line = found.get(system["name"])
    return float(line["value"]) if line else float("inf")


def is_first(system: str, found: dict[str, dict[str, Any]]) -> bool:
    """Return True if a system has the least median of a workload, or one within the rounds of who has that."""
    best = min(found.values(), key=lambda line: float(line["value"]))
    return bool(found[system]["value"] <= best["most"])


def _cell(
    workload: str,
    system: dict[str, Any],
    found: dict[str, dict[str, Any]],
    notes: list[str],
) -> str:
    """Return a figure with its range, or the number of the note that says why there is none."""
    line = found.get(system["name"])
    if line is None:
        why = system.get("cannot", {}).get(workload, "not run")
        if why not in notes:
            notes.append(why)
        return f"[{notes.index(why) + 1}]"
    value = f"{_amount(line['value'])} {line['unit']}"
    shown = f"**{value}**" if len(found) > 1 and is_first(system["name"], found) else value
    return f"{shown} ({_amount(line['least'])} to {_amount(line['most'])})"


def _amount(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _times(ratio: float) -> str:
    return f"{ratio:,.0f} times" if ratio >= 10 else f"{ratio:.1f} times"


if __name__ == "__main__":
    from tests.reference import MADE

    PAGE.write_text(observatory_page(MADE), encoding="utf-8")
    print(PAGE.read_text(encoding="utf-8"))
