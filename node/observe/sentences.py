"""Sentences for people on what the node answers in states, codes and counts. The page has its own table of them."""

from typing import TYPE_CHECKING

from node.runtime.wording import date_text, duration_text
from protocol.limits.peers import CLOCK_DRIFT_MAX_SECONDS

if TYPE_CHECKING:  # types of answers: commands must start at once
    from ravel.types.node import ClockComparison, KeyUse
    from ravel.types.repos import RepoStanding


def standing_sentence(standing: "RepoStanding") -> str:
    """Say how a repo stands with others, in one sentence."""
    return standing["sentence"]


def displaced_sentence(use: "KeyUse") -> str:
    """Say that another node uses this node's key; empty where nothing shows that."""
    at = use["displaced_at"]
    if at is None:
        return ""
    return f"another node uses this node's key: peers took it for this one until {date_text(at)}"


def own_commits_sentence(use: "KeyUse") -> str:
    """Say that commits of this user came from a peer that this node did not have; empty where none did."""
    at = use["own_commits_came_at"]
    if at is None:
        return ""
    return (
        f"commits that you wrote and this node did not have came from a peer at {date_text(at)}: "
        "it was set back, or another node uses your key"
    )


def clock_sentence(clock: "ClockComparison") -> str:
    """Say how far the clock is off beside those of members who write now; empty where it is not."""
    ahead = clock["ahead_seconds"]
    if ahead is None or abs(ahead) <= CLOCK_DRIFT_MAX_SECONDS:
        return ""
    who = "a member who writes now" if clock["authors"] == 1 else f"{clock['authors']} members who write now"
    return f"{duration_text(abs(ahead))} {'ahead of' if ahead > 0 else 'behind'} that of {who}"
