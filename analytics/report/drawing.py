"""Draws a commit graph as SVG: one lane per author, rank from left to right, parents as curves.

SVG that takes its colours from the page. Of what authors wrote, names alone go into it, escaped.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Final

from analytics.report.page import Names, short
from ravel.exports.schema import text_id

COMMITS_MAX: Final = 60
"""More than these are no longer told apart on a page."""
LANES_MAX: Final = 12
"""Further authors share the last lane."""

_STEP: Final = 46  # pixels from rank to rank
_LANE: Final = 44
_SUBLANE: Final = 26  # between commits of one author at one rank
_LEFT: Final = 104
_TOP: Final = 24
_RADIUS: Final = 8
_NAME_LENGTH_MAX: Final = 12  # characters beside a lane
_SMALLEST: Final = 0.6  # how far a drawing shrinks to fit; a narrower page scrolls it


@dataclass(frozen=True, slots=True)
class DrawnCommit:
    """One commit of a drawing."""

    commit_id: bytes
    author: bytes
    rank: int
    acks: tuple[bytes, ...]
    is_void: bool
    is_checkpoint: bool


@dataclass(frozen=True, slots=True)
class Drawing:
    """One drawn branch: commits, lanes and size."""

    name: str
    branch_id: bytes
    commits: tuple[DrawnCommit, ...]
    total: int  # commits of the branch
    first_rank: int | None = None  # of commits from the middle; None: all, or the last


def draw_tangle(commits: Sequence[DrawnCommit], names: Names) -> str:
    """Return the SVG element of these commits of one branch; acks of others are stubs to the left."""
    lanes = _lanes(commits)
    places = _places(commits, lanes)
    ranks = sorted({commit.rank for commit in commits})
    width = _LEFT + _STEP * len(ranks)
    lane_tops = _lane_tops(commits, lanes)
    height = lane_tops[-1] + 10
    heads = {commit.commit_id for commit in commits} - {ack for commit in commits for ack in commit.acks}
    parts = [
        f'<svg class="tangle" role="img" aria-label="Drawing of a tangle: {len(commits)} commits" '
        f'viewBox="0 0 {width} {height}" style="min-width:{round(width * _SMALLEST)}px">'
    ]
    parts += _lane_lines(lanes, lane_tops, width, names)
    for commit in commits:
        known = [ack for ack in commit.acks if ack in places]
        parts += [_edge(places[ack], places[commit.commit_id], commit) for ack in known]
        if len(known) < len(commit.acks):
            parts.append(_stub(places[commit.commit_id]))
    parts += [_node(commit, places[commit.commit_id], commit.commit_id in heads) for commit in commits]
    return "\n".join((*parts, "</svg>"))


def _lanes(commits: Sequence[DrawnCommit]) -> dict[bytes, int]:
    """Return the lane of each author: in the order in which they enter."""
    entered = dict.fromkeys(commit.author for commit in sorted(commits, key=_by_rank))
    return {author: min(lane, LANES_MAX - 1) for lane, author in enumerate(entered)}


def _by_rank(commit: DrawnCommit) -> tuple[int, bytes]:
    return commit.rank, commit.commit_id


def _crowds(commits: Sequence[DrawnCommit], lanes: Mapping[bytes, int]) -> dict[tuple[int, int], list[bytes]]:
    """Commits that share lane and rank."""
    crowds: dict[tuple[int, int], list[bytes]] = {}
    for commit in sorted(commits, key=_by_rank):
        crowds.setdefault((lanes[commit.author], commit.rank), []).append(commit.commit_id)
    return crowds


def _lane_tops(commits: Sequence[DrawnCommit], lanes: Mapping[bytes, int]) -> list[int]:
    """Return where each lane begins, and the last one ends."""
    most = dict.fromkeys(lanes.values(), 1)
    for (lane, _), crowd in _crowds(commits, lanes).items():
        most[lane] = max(most[lane], len(crowd))
    tops = [_TOP]
    for lane in sorted(most):
        tops.append(tops[-1] + _LANE + _SUBLANE * (most[lane] - 1))
    return tops


def _places(commits: Sequence[DrawnCommit], lanes: Mapping[bytes, int]) -> dict[bytes, tuple[int, int]]:
    columns = {rank: at for at, rank in enumerate(sorted({commit.rank for commit in commits}))}
    tops = _lane_tops(commits, lanes)
    return {
        commit_id: (_LEFT + _STEP * columns[rank] + _STEP // 2, tops[lane] + _LANE // 2 + _SUBLANE * at)
        for (lane, rank), crowd in _crowds(commits, lanes).items()
        for at, commit_id in enumerate(crowd)
    }


def _lane_lines(lanes: Mapping[bytes, int], tops: Sequence[int], width: int, names: Names) -> list[str]:
    authors: dict[int, list[bytes]] = {}
    for author, lane in lanes.items():
        authors.setdefault(lane, []).append(author)
    parts = []
    for lane, sharing in authors.items():
        ids = [text_id(author) for author in sharing]
        name = names.known.get(ids[0], "")
        called = (
            f"{name[: _NAME_LENGTH_MAX - 1]}\N{HORIZONTAL ELLIPSIS}" if len(name) > _NAME_LENGTH_MAX else name
        )
        label = escape(called.strip() or short(ids[0])) if len(ids) == 1 else f"{len(ids)} more"
        sharers = escape(" ".join(names.known.get(one, one) for one in ids))
        middle = tops[lane] + _LANE // 2
        parts.append(
            f'<line x1="{_LEFT}" y1="{middle}" x2="{width}" y2="{middle}" class="lane"/>'
            f'<text x="0" y="{middle + 4}" class="lane-name">{label}<title>{sharers}</title></text>'
        )
    return parts


def _edge(cause: tuple[int, int], effect: tuple[int, int], commit: DrawnCommit) -> str:
    (from_x, from_y), (x, y) = cause, effect
    kind = "edge merge" if len(commit.acks) > 1 else "edge"
    bend = max(12, (x - from_x) // 2)
    return f'<path class="{kind}" d="M{from_x} {from_y}C{from_x + bend} {from_y} {x - bend} {y} {x} {y}"/>'


def _stub(effect: tuple[int, int]) -> str:
    """Draw the stub of an ack that is not in the drawing."""
    x, y = effect
    return f'<path class="edge cut" d="M{x - _STEP // 2} {y - _RADIUS}L{x} {y}"/>'


def _node(commit: DrawnCommit, place: tuple[int, int], is_head: bool) -> str:
    x, y = place
    kinds = ["node"]
    kinds += ["void"] if commit.is_void else []
    kinds += ["merge"] if len(commit.acks) > 1 else []
    kinds += ["head"] if is_head and not commit.is_void else []
    words = [text_id(commit.commit_id), f"rank {commit.rank}", *kinds[1:]]
    if commit.is_checkpoint:
        kinds.append("checkpoint")
        words.append("checkpoint")
        side = 2 * _RADIUS + 2
        shape = f'<rect x="{x - side // 2}" y="{y - side // 2}" width="{side}" height="{side}" rx="2"/>'
    else:
        shape = f'<circle cx="{x}" cy="{y}" r="{_RADIUS}"/>'
    inner = f'<circle class="inner" cx="{x}" cy="{y}" r="3"/>' if len(commit.acks) > 1 else ""
    reach = _RADIUS + 4
    strike = (
        f'<path class="strike" d="M{x - reach} {y + reach}L{x + reach} {y - reach}"/>'
        if commit.is_void
        else ""
    )
    return f'<g class="{" ".join(kinds)}"><title>{", ".join(words)}</title>{shape}{inner}{strike}</g>'


def _legend() -> str:
    """Return what the signs of a drawing mean."""
    plain = DrawnCommit(b"", b"", 0, (), False, False)
    signs = (
        (plain, False, "commit"),
        (replace(plain, acks=(b"1", b"2")), False, "merge"),
        (plain, True, "head: nothing follows it"),
        (replace(plain, is_checkpoint=True), False, "checkpoint"),
        (replace(plain, is_void=True), False, "void"),
    )
    items = [
        f'<li><svg class="tangle" viewBox="0 0 28 28" aria-hidden="true">{_node(commit, (14, 14), is_head)}</svg> '
        f"{word}</li>"
        for commit, is_head, word in signs
    ]
    return f'<ul class="legend">{"".join(items)}</ul>'


LEGEND: Final = _legend()
"""HTML."""
