"""The page of what other systems say of concurrent histories, made from the zoo and from the answers kept beside it."""

import json
import tomllib
from pathlib import Path
from typing import Any, Final

from tests.proof import zoo
from tests.support.memberships import LEVELS, NAMES

PAGE: Final = Path(__file__).parents[2] / "docs" / "understanding" / "zoo.md"
_FOLDER: Final = zoo.PAGE.parent
_LEVEL_NAMES: Final = {level: name for name, level in LEVELS.items() if name}


def read_others() -> dict[str, Any]:
    """Return what is said of other systems."""
    return tomllib.loads((_FOLDER / "zoo_others.toml").read_text(encoding="utf-8"))


def read_matrix() -> dict[str, dict[str, Any]]:
    """Return what Matrix says, by the history's title."""
    lines = (_FOLDER / "zoo_matrix.jsonl").read_text(encoding="utf-8").splitlines()
    return {one["title"]: one for one in map(json.loads, lines)}


def members_of(history: zoo.History) -> dict[str, str]:
    """Return members with their permissions, as Ravel has them."""
    return {NAMES[user]: _LEVEL_NAMES[level] for user, level in history.members.items()}


def zoo_page(made: str) -> str:
    """Return the page: answers by the documents, then Matrix beside Ravel."""
    said, matrix, histories = read_others(), read_matrix(), zoo.histories()
    lines = ["# Concurrent histories: what other systems say", "", made]
    lines += [
        f"The [zoo](../../tests/proof/zoo.txt) has {len(histories)} small histories in which members act without knowing"
        " of each other, each with what Ravel says and why; a test asks Ravel. `python -m tests.proof.zoo FOLDER` draws"
        " them. Here stand other systems' answers, by their documents or by their code, as of November 2026. Rules in"
        " brackets are [Ravel's](../specification/membership-rules.md).",
        "",
        "## By their documents",
        "",
    ]
    lines += [f"- {source}" for source in said["sources"].values()]
    for question in said["questions"]:
        lines += ["", f"**{question['asks']}**", "", "| | |", "|---|---|"]
        lines.append(f"| Ravel | {question['ravel']} |")
        lines += [f"| {title} | {question[name]} |" for name, title in _TITLES.items()]
        if question["better"]:
            lines += ["", f"*Better than ours:* {question['better']}"]
    lines += ["", "Automerge has no members.", "", "## Matrix, asked", ""]
    compared = [history for history in histories if history.title in matrix]
    differing = [one for one in compared if members_of(one) != matrix[one.title]["members"]]
    lines += [
        f"[A program](../../tests/proof/zoo_matrix.py) puts the {len(compared)} histories of grants and removals alone to"
        f" Synapse's rules and state resolution. {len(compared) - len(differing)} end with the same members as in Ravel;"
        " these do not. In brackets: steps that are refused when they are made.",
        "",
    ]
    for key, reason in said["reasons"].items():
        lines += [f"**{reason}**", "", "| history | steps | Ravel | Matrix |", "|---|---|---|---|"]
        for history in differing:
            if said["differs"][history.title] == key:
                theirs = matrix[history.title]
                lines.append(
                    f"| {history.title} | {_steps(history)} | {_ends(members_of(history), sorted(history.refused))}"
                    f" | {_ends(theirs['members'], theirs['refused'])} |"
                )
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


_TITLES: Final = {
    "p2panda": "p2panda",
    "keyhive": "Keyhive",
    "groups": "Scuttlebutt",
    "matrix": "Matrix",
}


def _steps(history: zoo.History) -> str:
    told = zoo.told(history)
    assert told is not None
    return "<br>".join(
        f"{number}. {step.author} {'+' if step.kind == 'grant' else '-'} {step.user}"
        f" {_LEVEL_NAMES.get(step.level, '')}".rstrip()
        + f" < {' '.join(map(str, step.acks))}"
        for number, step in enumerate(history.steps[1:], start=1)
    )


def _ends(members: dict[str, str], refused: list[int]) -> str:
    ended = ", ".join(f"{name} {level}" for name, level in sorted(members.items()))
    return ended + (f" ({', '.join(map(str, refused))})" if refused else "")
