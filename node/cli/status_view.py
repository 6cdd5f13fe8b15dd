"""Prints how a node is: what is wrong and its command first, a sentence on each repo, a line on each peer."""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from node.cli.hints import as_called, command
from node.cli.printing import (
    calendar_text,
    cell_width,
    cut,
    id_text_shown,
    is_terminal,
    pad,
    paint,
    print_next,
    print_table,
    say_wrapped,
    terminal_width,
    wrap,
)
from node.cli.wording import path_line
from node.observe.sentences import (
    bound_sentence,
    called,
    clock_sentence,
    displaced_sentence,
    own_commits_sentence,
    standing_sentence,
    version_word,
)
from node.runtime.language import in_language
from node.runtime.wording import counted, date_text
from ravel.characters import display_safe

if TYPE_CHECKING:  # types of answers: `ravel --help` must be quick
    from ravel.types.node import DamagedCounts, LostWrites, NodeStatus
    from ravel.types.peers import PeerView
    from ravel.types.repos import RepoStanding, RepoView

_NAME_MAX: Final = 24
_WELL: Final = frozenset(
    {
        *("in_sync", "own_comments", "reading", "reading_branches", "requests", "guests"),
        *("not_kept", "older_not_kept"),
    }
)
"""Parts of a standing beside which a repo is as it should be."""
_GOING: Final = _WELL | {
    *("alone", "held", "not_shared", "follows_parts", "keeps_parts", "keeps_recent", "former"),
    *("comparing", "behind", "sending", "syncing", "topics_waiting"),
    *("joining", "ask_sending", "ask_waiting", "ask_accepted"),
}
"""Parts that others' nodes end by themselves, or that nobody ends: of these alone nobody has to know."""
_ACT: Final = frozenset(
    {
        *("excluded", "link_ended", "join_refused", "membership_damaged", "own_forks"),
        *("false_checkpoint", "let_in", "place_claimed", "signers_gone"),
        *("ask_refused", "ask_closed", "ask_expired", "ask_failed"),
    }
)
"""Parts by which somebody has to do something."""


def print_overview(status: "NodeStatus", repos: "Sequence[RepoView]", name: str) -> None:
    """Print how the node is, in some ten lines."""
    problems = [*_problems(status)]
    state, colour = "all well", "well"
    if not all(_codes(one) <= _GOING for one in repos):
        state = "running"  # a repo below says what is absent, or what only this computer has
    if count := len(problems) + sum(_level(one) == "act" for one in repos):
        state, colour = f"{counted(count, 'thing')} to look at", "look"
    who = display_safe(name or in_language("No name yet"))
    print(f"{who}, {in_language('this computer')} · {paint(in_language(state), colour)}")
    if problems:
        print()
        for problem, words in problems:
            say_wrapped(f"  {problem}", "act", indent="  ")
            print(f"    {command(words)}")
    print()
    if repos:
        names = {one["peer"]: _peer_name(one) for one in status["peers"]}
        print_standings(repos, names)
    else:
        say_wrapped("No repo yet.")
        print_next([command("repo create NAME"), command("repo join -")])
    if status["peers"]:
        print()
        print_table(("computer", "how", "state"), map(_peer_row, _without_other_dials(status["peers"])))
    if is_terminal():
        print(f"\n{in_language('details')}: {command('status --verbose')}")


def print_standings(
    repos: "Sequence[RepoView]", called_by_id: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Print a sentence on each repo behind its name, in the colour of its state. `called_by_id`: peers without a name."""
    names = [display_safe(one["name"] or id_text_shown(one["repo"])) for one in repos]
    width = min(max(map(cell_width, names)), _NAME_MAX)
    when = calendar_text if is_terminal() else date_text
    for one, name in zip(repos, names, strict=True):
        sentence = standing_sentence(_with_names(one["standing"], called_by_id), when)
        said = display_safe(as_called(in_language(sentence)))
        if not is_terminal():
            print(f"{name}  {said}")
            continue
        lines = [*wrap(said, max(terminal_width() - width - 2, 20))]
        for number, line in enumerate(lines):
            before = pad(cut(name, width), width) if number == 0 else " " * width
            print(f"{before}  {paint(line, _level(one))}")


def _codes(repo: "RepoView") -> set[str]:
    return {one["code"] for one in repo["standing"]["parts"]}


def _level(repo: "RepoView") -> str:
    codes = _codes(repo)
    return "act" if codes & _ACT else "well" if codes <= _WELL else "look"


def _with_names(standing: "RepoStanding", names: Mapping[str, str]) -> "RepoStanding":
    """Return a standing in which peers that have no name get theirs from `names`."""
    parts = [
        {
            **part,
            "peers": [
                one if called(one) else {**one, "name": names.get(one["peer"], "")} for one in part["peers"]
            ],
        }
        if "peers" in part
        else part
        for part in standing["parts"]
    ]
    return {**standing, "parts": parts}  # type: ignore[typeddict-item]  # parts of parts


def _peer_name(peer: "PeerView") -> str:
    return called(peer) or (peer["address"] if peer["through"] is None else id_text_shown(peer["peer"]))


def _without_other_dials(peers: "Sequence[PeerView]") -> "list[PeerView]":
    """Return peers without failing dials to a peer that is connected by its own dial or by another address."""
    connected = {one["peer"] for one in peers if one["state"] == "connected"}
    return [one for one in peers if one["state"] == "connected" or one["peer"] not in connected]


def _peer_row(peer: "PeerView") -> tuple[str, str, str]:
    name = _peer_name(peer)
    way = "direct" if peer["through"] is None and peer["path"] != "punched" else path_line(peer)
    state = (
        peer["state"]
        if peer["state"] == "connected"
        else f"{peer['state']}: {peer['last_error'] or 'no answer yet'}"
    )
    if word := version_word(peer):
        state += f", {word} version of Ravel"
    return in_language(name), "relay" if peer["relay"] else in_language(way), in_language(state)


def _problems(status: "NodeStatus") -> Iterator[tuple[str, str]]:
    """Yield what is wrong with the node itself, and the words of the command that helps or explains."""
    for fault in status["faults"]:
        yield f"What is written or comes may not be stored here: {fault}.", "doctor"
    use = status["key_use"]
    for said in filter(None, (displaced_sentence(use), own_commits_sentence(use))):
        yield f"{said[0].upper()}{said[1:]}.", "doctor"
    if clock := clock_sentence(status["clock"]):
        yield f"This computer's clock is {clock}.", "doctor"
    if any(status["damaged"].values()):
        yield f"{damaged_line(status['damaged'])}.", "doctor"
    if lost := lost_line(status["lost_writes"]):
        yield f"{lost[0].upper()}{lost[1:]}.", "doctor"
    if over := bound_sentence(status["storage_bound"]):
        yield f"{over[0].upper()}{over[1:]}.", "config set storage.size_max MIB"
    if status["export"]["last_error"]:
        yield f"The export failed: {status['export']['last_error']}.", "export"


def damaged_line(damaged: "DamagedCounts") -> str:
    """Say how much is damaged here; empty where nothing is."""
    if not any(damaged.values()):
        return ""
    commits, blocks = counted(damaged["commits"], "commit"), counted(damaged["blocks"], "block")
    return f"{commits} and {blocks} of files are damaged here, and asked of peers"


def lost_line(lost: "LostWrites") -> str:
    """Return a line that says that writes were lost, and what follows; empty if none were."""
    if not lost["repos"]:
        return ""
    return f"{lost['detail']}; you cannot write to {counted(len(lost['repos']), 'repo')} until a peer was compared"
