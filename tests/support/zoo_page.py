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


def read_answers(name: str) -> dict[str, dict[str, Any]]:
    """Return what a system says that was asked, by the history's title."""
    lines = (_FOLDER / f"zoo_{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return {one["title"]: one for one in map(json.loads, lines)}


def members_of(history: zoo.History, levels: dict[str, str]) -> dict[str, str]:
    """Return members with their permissions, as Ravel has them, in another system's words."""
    named = {NAMES[user]: _LEVEL_NAMES[level] for user, level in history.members.items()}
    return {name: levels.get(level, level) for name, level in named.items()}


def differing(asked: dict[str, Any]) -> list[zoo.History]:
    """Return the histories that end with other members in a system that was asked, if only with some keys."""
    answers = read_answers(asked["name"])
    return [
        history
        for history in zoo.histories()
        if history.title in answers
        and any(
            end["members"] != members_of(history, asked["levels"]) for end in _endings(answers[history.title])
        )
    ]


def zoo_page(made: str) -> str:
    """Return the page: answers by the documents, then each history beside what systems say that were asked."""
    said, histories = read_others(), zoo.histories()
    lines = ["# Concurrent histories: what other systems say", "", made]
    lines += [
        f"The [zoo](../../tests/proof/zoo.txt) has {len(histories)} small histories in which members act without knowing"
        " of each other, each with what Ravel says and why; a test asks Ravel. `python -m tests.proof.zoo FOLDER` draws"
        " them. Here stand other systems' answers, by their documents or by their code, as of November 2026. Rules in"
        " brackets are [Ravel's](../specification/membership-rules.md).",
        "",
        "## By question",
        "",
    ]
    lines += [f"- {source}" for source in said["sources"].values()]
    for question in said["questions"]:
        lines += ["", f"**{question['asks']}**", "", "| | |", "|---|---|"]
        lines.append(f"| Ravel | {question['ravel']} |")
        lines += [f"| {title} | {question[name]} |" for name, title in _TITLES.items()]
        if question["better"]:
            lines += ["", f"*Better than ours:* {question['better']}"]
    lines += ["", "Automerge has no members.", "", *_overview(said["asked"])]
    for asked in said["asked"]:
        lines += _asked(asked)
    return "\n".join(lines).rstrip() + "\n"


def _overview(systems: list[dict[str, Any]]) -> list[str]:
    """Return the table of all histories that were put to systems: as Ravel, or the number of the reason."""
    answers = {one["name"]: read_answers(one["name"]) for one in systems}
    lines = [
        "## By history",
        "",
        "Histories of grants and removals alone. `=`: the same members with the same permissions as in Ravel; a number: the"
        " reason, below.",
        "",
        f"| history | {' | '.join(one['title'] for one in systems)} |",
        "|---|" + "---|" * len(systems),
    ]
    for history in filter(zoo.told, zoo.histories()):
        cells = []
        for one in systems:
            reason = one["differs"].get(history.title)
            is_asked = history.title in answers[one["name"]]
            cells.append(str(list(one["reasons"]).index(reason) + 1) if reason else "=" if is_asked else "")
        lines.append(f"| {history.title} | {' | '.join(cells)} |")
    return lines


def _asked(asked: dict[str, Any]) -> list[str]:
    answers, others = read_answers(asked["name"]), differing(asked)
    lines = [
        "",
        f"## {asked['title']}, asked",
        "",
        f"[A program](../../tests/proof/{asked['program']}) puts {len(answers)} histories to {asked['puts']}."
        f" {len(answers) - len(others)} end with the same members as in Ravel; these do not. In brackets: steps that are"
        " refused when they are made.",
        "",
    ]
    for number, (key, reason) in enumerate(asked["reasons"].items(), 1):
        lines += [
            f"**{number}. {reason}**",
            "",
            f"| history | steps | Ravel | {asked['title']} |",
            "|---|---|---|---|",
        ]
        for history in others:
            if asked["differs"][history.title] == key:
                ours = _ends(members_of(history, {}), sorted(history.refused))
                theirs = " *or* ".join(
                    _ends(end["members"], end["refused"]) for end in _endings(answers[history.title])
                )
                lines.append(f"| {history.title} | {_steps(history)} | {ours} | {theirs} |")
        lines.append("")
    return lines[:-1]


def _endings(answer: dict[str, Any]) -> list[dict[str, Any]]:
    """Return how a history can end: one way, or more where keys or digests decide."""
    return [answer, *answer.get("others", [])]


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
