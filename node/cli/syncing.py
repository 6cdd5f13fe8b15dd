"""Waiting until a repo is in sync: what is looked at, when there is no use in waiting on, and what people are told."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from node.cli.printing import calendar_text, id_text_shown, is_terminal, say_wrapped
from node.cli.progress import show_progress
from node.cli.shared import say
from node.observe.sentences import called, refusal_advice, refusal_sentence, standing_sentence
from node.runtime.errors import ServiceError
from node.runtime.wording import counted, date_text

if TYPE_CHECKING:  # types of answers: `ravel --help` must be quick
    from ravel import Client
    from ravel.types.branches import BranchView
    from ravel.types.peers import PeerView, TopicView
    from ravel.types.repos import RepoStanding, RepoView

SECONDS_MAX: Final = 3600.0
"""Seconds that a sync may take where no other time is given."""
NOBODY_SECONDS: Final = 10.0
"""Seconds in which a computer may connect where this node knows of none to dial."""
HOPELESS_SECONDS: Final = 60.0
"""Seconds without a peer that has the repo, in which each address is dialed twice."""
_POLL_SECONDS: Final = 0.2
_SAID_SECONDS: Final = 15.0
"""Seconds without progress, after which a terminal is told again what the command waits for."""
_HELD_SECONDS: Final = 1.0
"""Seconds to wait for another computer to take what was written, before a message says that none has it."""
_PEERS_NAMED_MAX: Final = 3
_BRANCHES_LOOKED_AT_MAX: Final = 20
"""Branches whose refused files at relays are looked up: one request each."""
_NOBODY: Final = "no peer is connected, and this node dials none"
_BODILESS: Final = (
    "Not here: commits whose bodies are needed to judge them and that peer has erased, and what follows them. "
    "They come from a peer that has the bodies."
)


@dataclass(frozen=True, slots=True)
class SyncState:
    """A repo at one look: its branches, the peers with its topics, and how it stands; None while it is not listed."""

    branches: "list[BranchView]"
    peers: "list[tuple[PeerView, list[TopicView]]]"
    view: "RepoView | None"

    @classmethod
    def load(cls, api: "Client", repo: str) -> "SyncState":
        """Ask the daemon how a repo stands. Costs O(branches and peers) by three requests."""
        branches = api.list_branches(repo)["branches"]
        ids = {item["branch"] for item in branches} | {item["repo"] for item in branches}
        peers = [
            (peer, [topic for topic in peer["topics"] if topic["repo"] in ids])
            for peer in api.list_peers()["peers"]
        ]
        return cls(
            branches, peers, next((one for one in api.list_repos()["repos"] if one["repo"] in ids), None)
        )

    @property
    def standing(self) -> "RepoStanding | None":
        """Return how the repo stands; None while it is not listed."""
        return None if self.view is None else self.view["standing"]

    @property
    def sentence(self) -> str:
        """Return how the repo stands, for people."""
        return "" if self.standing is None else standing_sentence(self.standing, calendar_text)

    @property
    def held_by(self) -> "list[PeerView]":
        """Return the connected peers that hold all of it."""
        level = [] if self.standing is None else self.standing["in_sync_with"]
        return [peer for peer, _ in self.peers if peer["peer"] in level]

    @property
    def waiting_topics(self) -> int:
        """Return how many topics wait for their turn to be compared with the peer with which most do."""
        return max((peer["waiting_topics"] for peer, _ in self.peers), default=0)

    def answer(self, repo: str) -> dict[str, object]:
        """Return what programs get."""
        held_by = self.held_by
        is_relay = {peer["peer"]: peer["relay"] for peer in held_by}  # one may have two connections
        return {
            "repo": repo,
            "branches": len(self.branches),
            "commits": 0 if self.view is None else self.view["commits"],
            "bodiless": bool(held_by)
            and all(
                any(topic["bodiless"] for topic in topics) for peer, topics in self.peers if peer in held_by
            ),
            "held_by": [{"peer": peer, "relay": relay} for peer, relay in sorted(is_relay.items())],
            "standing": self.standing,
        }

    def told(self, api: "Client", repo: str) -> dict[str, object]:
        """Return further fields for people: names, and why relays refuse while files are on this node alone."""
        name = repo if self.view is None else self.view["name"] or repo
        holders = {peer["peer"]: _name_of(peer) for peer in self.held_by}
        refusals: dict[str, str] = {}
        if self.standing is not None and self.standing["unfetched_files"]:
            names = {peer["peer"]: _name_of(peer) for peer, _ in self.peers}
            for branch in self.branches[:_BRANCHES_LOOKED_AT_MAX]:
                for one in api.list_files(branch["branch"], limit=1)["refusals"]:
                    who = names.get(one["relay"]) or f"relay {id_text_shown(one['relay'])}"
                    refusals[who] = one["reason"]
        return {"name": name, "holders": [*holders.values()], "refusals": refusals}

    def reason(self) -> str | None:
        """Return why to wait on, empty while commits come; None where there is nothing to wait for."""
        standing = self.standing
        if standing is None:
            return self._why_none_can_sync()
        if standing["state"] == "cut_off":
            return None  # who is cut off waits for keys that it does not get
        if standing["state"] == "former" and not standing["unheld"]:
            return None  # who is no member any more gets nothing new
        if not self.held_by:
            return self._why_none_can_sync()
        uncertain = standing["uncertain"]
        return f"peers are asked for commits of yours ({uncertain})" if uncertain else None

    def _why_none_can_sync(self) -> str:
        if not self.peers:
            return _NOBODY
        connected = [topics for peer, topics in self.peers if peer["state"] == "connected"]
        if not connected:
            tried = ", ".join(
                peer["address"] + (f" ({peer['last_error']})" if peer["last_error"] else "")
                for peer, _ in self.peers[:_PEERS_NAMED_MAX]
            )
            return f"no peer is connected; this node dials {tried}"
        parts = [] if self.standing is None else self.standing["parts"]
        partial = [one for one in parts if one["code"] == "keeps_parts"]
        if partial:
            return f"a peer keeps contents of {counted(partial[0]['count'], 'branch', 'branches')} alone"
        recent = [one for one in parts if one["code"] == "keeps_recent"]
        if recent:
            return f"a peer keeps posts of {counted(recent[0]['count'], 'day')}"
        if any(one["code"] == "follows_parts" for one in parts):
            return "nobody who follows all of it is connected"
        if self.waiting_topics:
            return f"{counted(self.waiting_topics, 'topic')} not compared yet with a peer"
        if not any(topic["state"] != "not joined" for topics in connected for topic in topics):
            return f"no connected peer follows this repo ({len(connected)} connected)"
        return ""


def wait_in_sync(api: "Client", repo: str, timeout: float | None) -> SyncState:
    """Look at a repo until a peer holds the same, and show progress. Raises ServiceError `incomplete`.

    Without a `timeout` it ends early if no peer is there to sync with and no topic waits for its turn.
    """
    begun = time.monotonic()
    hopeless_from, said, said_at, is_moving, waiting = begun, "", begun, False, 0
    with show_progress("synced", "commit", None) as synced:
        while (reason := (state := SyncState.load(api, repo)).reason()) is not None:
            progress = None if state.standing is None else state.standing["progress"]
            if progress is not None:
                is_moving = True
                synced(progress["done"], progress["total"], progress["seconds_left"])
            now, is_late = time.monotonic(), is_terminal() and time.monotonic() - said_at >= _SAID_SECONDS
            if progress is not None and not reason:
                said_at = now
            elif reason not in ("", said) or is_late:
                say(f"waiting: {reason or state.sentence}")
                said_at = now
            said, before, waiting = reason, waiting, state.waiting_topics
            if not reason or waiting < before:
                hopeless_from = now
            alone_max = NOBODY_SECONDS if reason == _NOBODY else HOPELESS_SECONDS
            if now - begun > (SECONDS_MAX if timeout is None else timeout) or (
                timeout is None and now - hopeless_from > alone_max
            ):
                raise _not_in_sync(repo, reason, now - begun)
            time.sleep(_POLL_SECONDS)  # the daemon is another process, and has no answer that waits for this
        if is_moving and state.view is not None:
            synced(state.view["commits"], state.view["commits"])
    return state


def say_where(api: "Client", branch: str) -> str:
    """Return a warning if no other node holds what was just written to a branch of a shared repo; empty if one does.

    Waits a second at most, and not where nobody is connected who follows the repo.
    """
    deadline = time.monotonic() + _HELD_SECONDS
    while True:
        alone = [
            one["standing"]["state"]
            for one in api.list_repos()["repos"]
            if one["standing"]["unheld"] and one["standing"]["held_at"] is not None
            if branch in {item["branch"] for item in api.list_branches(one["repo"])["branches"]}
        ]
        if not alone:
            return ""
        if alone[0] in ("alone", "not_shared") or time.monotonic() > deadline:
            return "On this computer only, until another computer or a relay is reached."
        time.sleep(_POLL_SECONDS)  # the daemon is another process, and has no answer that waits for this


def _not_in_sync(repo: str, reason: str, seconds: float) -> ServiceError:
    if reason == _NOBODY:
        advice = (
            f"`ravel repo invite {repo}` gives somebody a link; "
            "`ravel peer add HOST:PORT PEER` names a computer that has it"
        )
    else:
        advice = "`ravel status --verbose` tells how each branch stands with each peer; --timeout SECONDS waits longer"
    return ServiceError(
        "incomplete", f"not in sync after {seconds:.0f} s{f': {reason}' if reason else ''}", advice
    )


def _name_of(peer: "PeerView") -> str:
    return called(peer) or f"{'relay' if peer['relay'] else 'peer'} {id_text_shown(peer['peer'])}"


def print_synced(shown: Mapping[str, Any]) -> None:
    """Print who holds the repo's commits; first those that no other computer has."""
    standing = shown["standing"]
    when = calendar_text if is_terminal() else date_text
    # More than `ravel log --digest` counts of the branches: who is a member is said by commits, too.
    branches = counted(shown["branches"], "branch", "branches")
    much = f"{counted(shown['commits'], 'commit')} in all, those of {branches} and of the membership"
    if shown["holders"]:
        say_wrapped(f"{shown['name']} is in sync with {' and '.join(shown['holders'])}: {much}.", "well")
    elif standing is not None:
        say_wrapped(f"{shown['name']}: {standing_sentence(standing, when)}.")
    alone = 0 if standing is None else standing["unfetched_files"]
    if alone:
        verb = "is" if alone == 1 else "are"
        say_wrapped(f"{alone} of your files {verb} on this computer alone, as far as known.", "look")
        for relay, code in shown["refusals"].items():
            say_wrapped(f"{relay} takes no more: {refusal_sentence(code)}.")
            if advice := refusal_advice(code):
                say_wrapped(f"next:  {advice}", indent="       ")
        if not shown["refusals"] and any(one["relay"] for one in shown["held_by"]):
            say_wrapped("The relay has not taken all of them. `ravel file list BRANCH` shows which.")
        elif not shown["refusals"]:
            say_wrapped(
                "next:  members fetch a file when they open it; a relay keeps it: `ravel peer add --relay HOST:PORT PEER-ID`"
            )
    if shown["bodiless"]:
        say_wrapped(_BODILESS)
