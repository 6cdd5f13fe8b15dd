"""The scenarios of membership, played as scenarios.txt has them."""

import re
from pathlib import Path

from .rules import WRITE, members, permission
from .story import Story

PAGE = Path(__file__).resolve().parent / "scenarios.txt"
FENCE = re.compile(r"\*\*(.+?)\.\*\*\n\n```\n(.*?)```", re.S)


def scenarios():
    """Return the scenarios: title and lines of each."""
    text = PAGE.read_text()
    return [(title, body.strip().splitlines()) for title, body in FENCE.findall(text)]


def play(title, lines, content=False):
    """Make a history of a scenario and compare its members with those of the page.

    With content, each author also writes into a branch where it writes operations, if it may.
    """
    story = Story(f"scenario{' with content' if content else ''}: {title}", ["R", "N"] if content else ["R"])
    refused = next((line.split(":")[1].split() for line in lines if line.startswith("refused:")), [])
    wanted = next(line.split(":")[1].split() for line in lines if line.startswith("members:"))
    done = {"0": story.graph.init}
    branch = None
    if content:
        branch = story.branch("ann")
        done["0"] = story.heads()[0]
    number = 0
    for line in lines:
        if line.startswith(("refused:", "members:")):
            continue
        number += 1
        said, parents = line.split(" < ")
        label, said = said.split(": ") if ": " in said else (str(number), said)
        acks = [done[parent] for parent in parents.split()]
        expect = (
            "not_permitted|unknown_author|needs_quorum|nothing_to_remove|bad_move|bad_recovery|rejected_cause"
            if str(number) in refused
            else "accepted"
        )
        if content and permission(story.view(acks), story.id(said.split()[0])) >= WRITE:
            story.note(said.split()[0], said, branch=branch, acks=[branch], place=acks, expect=None)
        done[label] = done[str(number)] = step(story, said.split(), done, acks=acks, expect=expect)
    after = members(story.view([one.id for one in story.accepted()]))
    assert set(after) == {story.id(user) for user in wanted}, title
    return story.finish()


def step(story, words, done, **how):
    """Write what one line says."""
    author, verb, *rest = words
    if verb == "+":
        return story.grant(author, *rest, **how)
    if verb == "*":
        return story.device(author, *rest, **how)
    if verb == ">":
        return story.move(author, rest[0], done[rest[1]], **how)
    if verb == "friends":
        return story.friends(author, int(rest[0]), rest[1:], **how)
    if verb == "recover":
        naming, user, level, *friends = rest
        return story.recover(author, done[naming], user, level, friends, **how)
    if verb == "-":
        return story.remove(author, *rest, **how)
    if verb == ".":
        return story.note(author, **how)
    if verb == "invite":
        return story.invite(author, *rest, **how)
    if verb == "join":
        return story.join(author, done[rest[0]], **how)
    if verb == "revoke":
        return story.revoke(author, done[rest[0]], **how)
    if verb == "quorum":
        return story.quorum(author, int(rest[0]), rest[1:], **how)
    if verb == "propose":
        return story.propose(author, *rest, **how)
    if verb == "approve":
        return story.approve(author, done[rest[0]], **how)
    raise ValueError(verb)


def histories():
    """Yield all scenarios as histories."""
    for title, lines in scenarios():
        yield play(title, lines)
        yield play(title, lines, content=True)
