"""A zoo of concurrent histories, and its pictures.

`python -m tests.proof.zoo FOLDER` draws each as SVG. `--json` instead of a folder prints those of grants and removals
alone, a line each, for the programs that ask other systems: `tests/proof/zoo_*`.
"""

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from html import escape
from pathlib import Path
from textwrap import wrap
from typing import Final, NamedTuple

from tests.support.memberships import LEVELS, NAMES, Step, parse

PAGE: Final = Path(__file__).resolve().with_name("zoo.txt")
_WIDE: Final = 200
"""Pixels from one author's column to the next."""
_HIGH: Final = 58
"""Pixels from one rank to the next."""
_LEVEL_NAMES: Final = {level: name for name, level in LEVELS.items() if name}


class History(NamedTuple):
    """A history with its founding, the numbers of refused steps, members with their permissions, and why."""

    title: str
    steps: list[Step]
    refused: set[int]
    members: dict[int, int]
    why: str


def histories() -> list[History]:
    """Return all histories of the zoo."""
    _, *parts = PAGE.read_text(encoding="utf-8").split("\n**")
    return [_read(part) for part in parts]


def _read(part: str) -> History:
    title, _, rest = part.partition(".**")
    lines = rest.split("```")[1].strip().splitlines()
    said = {word: text for word, _, text in (line.partition(": ") for line in lines) if word in _SAID}
    told = [line for line in lines if line.partition(": ")[0] not in _SAID]
    pairs = (pair.split("=") for pair in said["members"].split())
    return History(
        title,
        [Step("ann", "found", "", 0, (), names=("ann",)), *_parse(told)],
        set(map(int, said.get("refused", "").split())),
        {NAMES.index(name): LEVELS[level] for name, level in pairs},
        said["why"],
    )


def _parse(lines: Sequence[str]) -> list[Step]:
    """Return steps; `invite-one` admits one user."""
    steps = parse("\n".join(line.replace("invite-one", "invite") for line in lines))
    return [
        replace(step, uses=1) if "invite-one" in line else step
        for step, line in zip(steps, lines, strict=True)
    ]


_SAID: Final = ("refused", "members", "why")


def draw(history: History) -> str:
    """Return the picture of a history: a column for each author, causes above, refused steps in red."""
    ranks = _ranks(history.steps)
    authors = sorted({step.author for step in history.steps}, key=NAMES.index)
    places = [
        (20 + _WIDE * authors.index(step.author), 60 + _HIGH * rank)
        for step, rank in zip(history.steps, ranks, strict=True)
    ]
    members = ", ".join(f"{NAMES[user]} {_LEVEL_NAMES[level]}" for user, level in history.members.items())
    width = max(20 + _WIDE * len(authors), 640)
    bottom = 60 + _HIGH * (max(ranks) + 1)
    why = wrap(history.why, width // 8)
    height = bottom + 30 + 18 * len(why)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" '
        f'font-size="13"><rect width="100%" height="100%" fill="white"/>',
        f'<text x="20" y="28" font-size="17">{escape(history.title)}</text>',
    ]
    for number, step in enumerate(history.steps):
        x, y = places[number]
        for ack in step.acks:
            above_x, above_y = places[ack]
            aside = 180 if x == above_x and y - above_y > _HIGH else 0  # around what stands between
            bend = f"C{x + 85 + aside} {y - 10} {above_x + 85 + aside} {above_y + 40}"
            line = f"M{x + 85} {y} {bend} {above_x + 85} {above_y + 30}"
            parts.append(f'<path d="{line}" stroke="#888" fill="none"/>')
    for number, step in enumerate(history.steps):
        x, y = places[number]
        colour = "#c0392b" if number in history.refused else "#2c6fbb"
        said = escape(f"{number}  {_describe(step)}")
        parts.append(f'<rect x="{x}" y="{y}" width="170" height="30" rx="5" fill="white" stroke="{colour}"/>')
        parts.append(f'<text x="{x + 8}" y="{y + 20}">{said}</text>')
    parts.append(f'<text x="20" y="{bottom + 10}">Members: {escape(members)}</text>')
    for number, line in enumerate(why, start=1):
        parts.append(f'<text x="20" y="{bottom + 10 + 18 * number}" fill="#555">{escape(line)}</text>')
    return "\n".join([*parts, "</svg>"])


def _ranks(steps: Sequence[Step]) -> list[int]:
    """Return the row of each step: under its causes, and under its author's last in the same row."""
    ranks: list[int] = []
    for step in steps:
        rank = 1 + max((ranks[ack] for ack in step.acks), default=-1)
        taken = {ranks[number] for number in range(len(ranks)) if steps[number].author == step.author}
        while rank in taken:
            rank += 1
        ranks.append(rank)
    return ranks


def _describe(step: Step) -> str:
    level = _LEVEL_NAMES.get(step.level, "")
    match step.kind:
        case "found":
            return f"{step.author} founds"
        case "grant":
            return f"{step.author} + {step.user} {level}"
        case "remove":
            return f"{step.author} - {step.user} {level}"
        case "quorum":
            return f"{step.author} quorum {step.level} {' '.join(step.names)}"
        case "propose":
            return f"{step.author} proposes {step.user}"
        case "join" | "revoke" | "approve":
            return f"{step.author} {step.kind} {step.target}"
    return f"{step.author} {step.kind} {level}"


def told(history: History) -> dict[str, object] | None:
    """Return a history by names, without its founding; None if it has more than grants and removals."""
    _, *steps = history.steps
    if any(step.kind not in ("grant", "remove") for step in steps):
        return None
    return {
        "title": history.title,
        "names": sorted({name for step in history.steps for name in (step.author, step.user) if name}),
        "steps": [
            {
                "author": step.author,
                "kind": step.kind,
                "user": step.user,
                "level": _LEVEL_NAMES.get(step.level, ""),
                "acks": step.acks,
            }
            for step in steps
        ],
    }


def main(folder: Path) -> None:
    """Draw each history into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, history in enumerate(histories(), start=1):
        (folder / f"{number:03}.svg").write_text(draw(history), encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1] == "--json":
        for one in filter(None, map(told, histories())):
            print(json.dumps(one))
    else:
        main(Path(sys.argv[1]))
