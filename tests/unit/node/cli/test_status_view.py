"""`ravel status` says "all well" of a node alone of which nothing else is to be said."""

from pathlib import Path
from typing import Any, Final, get_type_hints

import pytest

from node.cli.hints import note_options
from node.cli.status_view import print_overview
from node.observe.sentences import standing_sentence
from ravel.types.repos import StandingPart

_CODES: Final[frozenset[str]] = frozenset(
    get_type_hints(StandingPart, include_extras=True)["code"].__metadata__[0].extra_json_schema["enum"]
)
_GO_ON: Final = {
    *("in_sync", "alone", "held", "not_shared", "follows_parts", "keeps_parts", "keeps_recent", "former"),
    *("own_comments", "reading", "reading_branches", "not_kept", "older_not_kept"),
    *("comparing", "behind", "sending", "syncing", "topics_waiting"),
    *("joining", "ask_sending", "ask_waiting", "ask_accepted", "requests", "guests"),
}
"""Parts of a standing that harm nothing, or that end by themselves."""
_TO_DO: Final = {
    *("excluded", "link_ended", "join_refused", "membership_damaged", "own_forks", "false_checkpoint"),
    *("let_in", "place_claimed", "signers_gone"),
    *("ask_refused", "ask_closed", "ask_expired", "ask_failed"),
}
"""Parts that stay until a person does something."""


def _bound(state: str) -> dict[str, Any]:
    return {"size": 3 << 30, "size_max": 1 << 30, "days": 90, "state": state}


_WELL: Final[dict[str, Any]] = {
    "faults": [],
    "key_use": {"displaced_at": None, "own_commits_came_at": None},
    "clock": {"ahead_seconds": None, "authors": 0},
    "damaged": {"commits": 0, "blocks": 0},
    "lost_writes": {"repos": [], "detail": ""},
    "storage_bound": None,
    "export": {"last_error": ""},
    "peers": [],
}
_FAULTS: Final[dict[str, dict[str, Any]]] = {
    "a full disk": {"faults": ["no room"]},
    "a second node with this key": {"key_use": {**_WELL["key_use"], "displaced_at": 1}},
    "a node that was set back": {"key_use": {**_WELL["key_use"], "own_commits_came_at": 1}},
    "a clock that is apart": {"clock": {"ahead_seconds": 300_000, "authors": 2}},
    "damage": {"damaged": {"commits": 0, "blocks": 1}},
    "lost writes": {"lost_writes": {"repos": ["r"], "detail": "2 acknowledged writes were lost"}},
    "a store over its bound, and nobody connected": {"storage_bound": _bound("alone")},
    "a store over its bound that nothing can leave": {"storage_bound": _bound("stuck")},
    "an export that failed": {"export": {"last_error": "no such bucket"}},
}


def _repo(*codes: str) -> dict[str, Any]:
    parts = [
        {"code": code, "count": 1, "people": ["Ann"], "reason": "r", "at": 1, "seconds": 1} for code in codes
    ]
    return {"name": "notes", "repo": "r" * 52, "standing": {"state": "in_sync", "parts": parts}}


def _first_line(status: Any, repos: Any, capsys: pytest.CaptureFixture[str]) -> str:  # noqa: ANN401  # parts of answers
    print_overview(status, repos, "Ann")
    return capsys.readouterr().out.splitlines()[0].partition("· ")[2]


@pytest.mark.parametrize("code", sorted(_CODES))
def test_all_is_well_alone_where_no_repo_needs_anything(
    code: str, capsys: pytest.CaptureFixture[str]
) -> None:
    said = "all well" if code in _GO_ON else "1 thing to look at" if code in _TO_DO else "running"
    assert _first_line(_WELL, [_repo("in_sync"), _repo("in_sync", code)], capsys) == said


@pytest.mark.parametrize("fault", _FAULTS)
def test_what_is_wrong_with_the_node_is_counted(fault: str, capsys: pytest.CaptureFixture[str]) -> None:
    status = {**_WELL, **_FAULTS[fault]}
    assert _first_line(status, [_repo("in_sync")], capsys) == "1 thing to look at"
    assert _first_line(status, [_repo("excluded")], capsys) == "2 things to look at"


def test_old_contents_are_not_said_to_be_away_by_the_rule_alone() -> None:
    said = standing_sentence({"parts": [{"code": "older_not_kept", "count": 7}]})  # type: ignore[typeddict-item]  # a part
    assert said == "posts and files older than 7 days need not be here, and come when you open them"


@pytest.mark.parametrize("state", ["under", "giving_up"])
def test_a_bound_that_is_kept_or_soon_is_needs_nobody(state: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert _first_line({**_WELL, "storage_bound": _bound(state)}, [], capsys) == "all well"


def test_a_computer_that_is_connected_does_not_wait_beside_that(capsys: pytest.CaptureFixture[str]) -> None:
    def peer(name: str, state: str) -> dict[str, Any]:
        fields = {
            "peer": name,
            "name": name,
            "owner": None,
            "address": "a:1",
            "through": None,
            "path": "direct",
        }
        news: dict[str, Any] = {
            "newer_features": [],
            "older_features": [],
            "relay": False,
            "last_error": None,
            "unknown_messages": 0,
        }
        return {**fields, **news, "state": state, "websocket": False}

    peers = [peer("ben", "waiting"), peer("ben", "connected"), peer("cat", "dialing")]
    status: Any = {**_WELL, "peers": peers}
    print_overview(status, [], "Ann")
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if "direct" in line]
    assert [(row[0], row[2]) for row in rows] == [("ben", "connected"), ("cat", "dialing:")]


def test_a_command_that_a_state_names_is_for_this_folder(capsys: pytest.CaptureFixture[str]) -> None:
    part = {"code": "let_in", "reason": "ravel member grant notes a owner", "people": []}
    note_options(Path("/tmp/ann"), None)  # noqa: S108  # it is only named
    try:
        print_overview(_WELL, [_repo("in_sync") | {"standing": {"state": "in_sync", "parts": [part]}}], "Ann")  # type: ignore[arg-type,list-item]
    finally:
        note_options(None, None)
    assert "`ravel --home /tmp/ann member grant notes a owner`" in capsys.readouterr().out
