"""`ravel repo sync` ends where nobody is there to sync with, and says what is on this computer alone."""

from types import SimpleNamespace
from typing import Any, Final

import pytest

from node.cli import syncing
from node.cli.syncing import (
    HOPELESS_SECONDS,
    NOBODY_SECONDS,
    SECONDS_MAX,
    SyncState,
    print_synced,
    wait_in_sync,
)
from node.runtime.errors import ServiceError

PEER: Final = "p" * 52
RELAY: Final = {
    "peer": PEER,
    "name": "",
    "owner": None,
    "address": "relay.example:7474",
    "relay": True,
    "state": "connected",
    "last_error": None,
    "waiting_topics": 0,
    "topics": [{"repo": "r", "state": "in sync", "bodiless": False}],
}
STANDING: Final = {
    "state": "in_sync",
    "parts": [],
    "in_sync_with": [PEER],
    "progress": None,
    "uncertain": "",
    "unfetched_files": 0,
}


class _Clock:
    """Time that passes by sleeping alone."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        """Return the seconds that were slept."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds


def _api(
    standing: dict[str, Any], peers: list[dict[str, Any]], refusals: list[dict[str, Any]] | None = None
) -> Any:  # noqa: ANN401  # a client
    view = {"repo": "r", "name": "garden", "commits": 6, "standing": standing}
    return SimpleNamespace(
        list_branches=lambda _: {"branches": [{"branch": "b", "repo": "r", "commits": 2}]},
        list_peers=lambda: {"peers": peers},
        list_repos=lambda: {"repos": [view]},
        list_files=lambda *_, **__: {"files": [], "refusals": refusals or []},
    )


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> _Clock:
    """Time that a test has in hand."""
    found = _Clock()
    monkeypatch.setattr(syncing, "time", found)
    return found


@pytest.mark.parametrize(
    "peers, seconds, said, advice",
    [
        ([], NOBODY_SECONDS, "this node dials none", "ravel repo invite garden"),
        (
            [{**RELAY, "topics": []}],
            HOPELESS_SECONDS,
            "no connected peer follows this repo",
            "--timeout SECONDS",
        ),
        (
            [{**RELAY, "state": "dialing"}],
            HOPELESS_SECONDS,
            "dials relay.example:7474",
            "ravel status --verbose",
        ),
        ([RELAY], SECONDS_MAX, "not in sync after", "ravel status --verbose"),
    ],
)
def test_a_sync_ends_where_there_is_no_use_in_waiting(
    clock: _Clock, peers: list[dict[str, Any]], seconds: float, said: str, advice: str
) -> None:
    api = _api({**STANDING, "in_sync_with": []}, peers)
    with pytest.raises(ServiceError) as caught:
        wait_in_sync(api, "garden", None)
    assert caught.value.code == "incomplete"
    assert said in caught.value.message
    assert advice in caught.value.advice
    assert seconds < clock.now < seconds + 1


def test_a_sync_goes_on_while_topics_take_turns_and_says_how_many_wait(
    clock: _Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    """The peer is not known to follow the repo until the last of them was compared."""
    met_after = 5 * HOPELESS_SECONDS
    standing, peer = {**STANDING, "in_sync_with": []}, {**RELAY, "topics": []}
    api = _api(standing, [peer])

    def list_peers() -> dict[str, Any]:
        left = round(met_after - clock.now) // 30
        peer["waiting_topics"] = left
        standing["in_sync_with"] = [] if left else [PEER]
        return {"peers": [peer]}

    api.list_peers = list_peers
    wait_in_sync(api, "garden", None)
    assert clock.now > met_after - 30
    said = capsys.readouterr().err
    assert "waiting: 10 topics not compared yet with a peer" in said
    assert "no connected peer" not in said


def test_a_sync_ends_where_who_is_connected_has_no_more_to_give(
    clock: _Clock, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A computer whose place passed on stays connected, and follows the repo as it was before."""
    monkeypatch.setattr(syncing, "is_terminal", lambda: True)
    said, part = "nobody who follows all of it is connected", {"code": "follows_parts", "peers": []}
    with pytest.raises(ServiceError, match=said):
        wait_in_sync(_api({**STANDING, "in_sync_with": [], "parts": [part]}, [RELAY]), "garden", None)
    assert HOPELESS_SECONDS < clock.now < HOPELESS_SECONDS + 1
    assert capsys.readouterr().err.count(f"waiting: {said}") == 4, "said again while one waits"


def test_a_sync_where_the_place_passed_on_waits_until_somebody_has_the_move(clock: _Clock) -> None:
    standing = {**STANDING, "state": "former", "in_sync_with": [], "unheld": 1}
    with pytest.raises(ServiceError, match="not in sync"):
        wait_in_sync(_api(standing, [RELAY]), "garden", 20)
    assert clock.now > 20
    before = clock.now
    wait_in_sync(_api({**standing, "unheld": 0}, [RELAY]), "garden", None)
    assert clock.now == before


def test_a_sync_without_progress_says_on_a_terminal_how_the_repo_stands(
    clock: _Clock, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(syncing, "is_terminal", lambda: True)
    standing = {**STANDING, "in_sync_with": [], "parts": [{"code": "comparing", "peers": []}]}
    with pytest.raises(ServiceError, match="not in sync after 40 s"):
        wait_in_sync(_api(standing, [RELAY]), "garden", 40)
    assert capsys.readouterr().err.count("waiting: comparing with a peer") == 2


def test_a_time_that_was_given_is_waited_for(clock: _Clock) -> None:
    with pytest.raises(ServiceError, match="not in sync after 200 s"):
        wait_in_sync(_api({**STANDING, "in_sync_with": []}, []), "garden", 200)


def test_commits_are_counted_as_a_join_counts_them(clock: _Clock) -> None:
    assert wait_in_sync(_api(STANDING, [RELAY]), "garden", None).answer("garden")["commits"] == 6


@pytest.mark.parametrize("holders, bodiless", [([PEER], True), ([], False)])
def test_bodies_lack_only_where_a_holder_has_erased_them(holders: list[str], bodiless: bool) -> None:
    erased = {**RELAY, "topics": [{"repo": "r", "state": "in sync", "bodiless": True}]}
    state = SyncState.load(_api({**STANDING, "in_sync_with": holders}, [erased]), "garden")
    assert state.answer("garden")["bodiless"] is bodiless


@pytest.mark.parametrize(
    "code, why, advice",
    [
        ("account_full", "your account there has used its quota", "ask who runs it for more"),
        ("file_too_large", "a file is larger than all that it keeps", "use a further relay"),
        ("not_kept", "it follows the repo itself", "use a relay that does not follow the repo"),
        ("of_a_later_version", "of_a_later_version", ""),
    ],
)
def test_a_file_that_a_relay_did_not_take_is_said_with_what_to_do(
    clock: _Clock, capsys: pytest.CaptureFixture[str], code: str, why: str, advice: str
) -> None:
    api = _api({**STANDING, "unfetched_files": 1}, [RELAY], [{"relay": PEER, "reason": code}])
    state = wait_in_sync(api, "garden", None)
    print_synced({**state.answer("garden"), **state.told(api, "garden")})
    shown = capsys.readouterr().out
    assert "garden is in sync with relay" in shown
    assert "6 commits in all, those of 1 branch and of the membership" in shown
    assert "1 of your files is on this computer alone" in shown
    assert f"takes no more: {why}" in shown
    assert advice in shown
    assert ("next:  " in shown) == bool(advice)


def test_a_repo_that_this_node_does_not_list_yet_waits_for_peers(clock: _Clock) -> None:
    assert SyncState([], [], None).reason() == "no peer is connected, and this node dials none"
