"""Where a name is known, no raw id stands; where it is not, an id does. Bytes for programs come on no terminal."""

from pathlib import Path
from typing import Any

import pytest

from node.cli import answers, branch_commands, inbox_commands, member_commands, peer_commands, relay_commands
from node.cli.status_view import print_overview
from node.cli.text_commands import _write_text
from node.runtime.errors import ServiceError

Capture = pytest.CaptureFixture[str]
PEER, OTHER, BRANCH = "p" * 52, "q" * 52, "b" * 52


class Api:
    """A node that calls one peer a name, and has one branch."""

    def list_petnames(self) -> dict[str, Any]:
        """List names of peers."""
        return {"petnames": [], "peers": [{"user": PEER, "name": "Ben's laptop"}]}

    def list_branches(self, repo: str) -> dict[str, Any]:
        """List the branch."""
        return {"branches": [{"branch": BRANCH, "name": "main"}]}

    def list_offers(self, repo: str, **_: object) -> dict[str, Any]:
        """List offers to the branch and to one that is not here."""
        offer = {"offer": "o" * 52, "kind": "comment", "author": "u" * 52, "author_name": "Ben", "commits": 1}
        offer |= {"status": "open", "readable": True, "note": "well", "answers": "", "merged": False}
        taken = {"kind": "pull", "status": "accepted", "commits": 9, "merged": True}
        unread = {"kind": "pull", "commits": 0}
        return {
            "offers": [
                {**offer, "branch": BRANCH},
                {**offer, "branch": OTHER},
                {**offer, **taken, "branch": BRANCH},
                {**offer, **unread, "branch": BRANCH},
            ]
        }

    def list_tags(self, repo: str) -> dict[str, Any]:
        """List a tag of the branch."""
        return {"tags": [{"name": "v1", "commit": "c" * 52, "branch": BRANCH}]}

    def list_peers(self) -> dict[str, Any]:
        """List peers that are not connected."""
        known = {"peer": PEER, "address": "a:1", "source": "link", "reached_at": None}
        return {"peers": [], "known": [known], "banned": [PEER, OTHER]}

    def list_relayed_topics(self) -> dict[str, Any]:
        """List no topics, and whom the relay trusts."""
        return {"topics": [], "size": 0, "size_max": 1, "takes_strangers": False, "allowed": [PEER]}

    def ban_peer(self, peer: str) -> dict[str, Any]:
        """Ban a peer."""
        return {"peer": peer, "banned": True}

    unban_peer = ban_peer

    def allow_peer(self, peer: str) -> dict[str, Any]:
        """Trust a peer, or trust it no more."""
        return {"peer": peer, "allowed": True}

    deny_peer = allow_peer


@pytest.fixture(autouse=True)
def _node_that_knows_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "client", lambda _: Api())


def _printed(capsys: Capture, command: Any, **values: object) -> str:  # noqa: ANN401  # a command
    command(as_json=False, context_of_run=None, **values)
    return capsys.readouterr().out


def test_offers_and_tags_say_what_branch_they_are_for(capsys: Capture) -> None:
    offers = _printed(capsys, inbox_commands.list_offers, repo="garden", status="", limit=9)
    first, second = offers.splitlines()[1:3]
    assert "\tmain\t" in first
    assert BRANCH not in first
    assert f"\t{OTHER}\t" in second, "a branch that is not here has no name"
    assert "\tmain" in _printed(capsys, branch_commands.list_tags, repo="garden")


def test_offers_say_what_is_merged_and_no_number_of_commits_that_are_not_here(capsys: Capture) -> None:
    offers = _printed(capsys, inbox_commands.list_offers, repo="garden", status="", limit=9)
    merged, unread = offers.splitlines()[3:]
    assert merged.split("\t")[4:6] == ["9", "merged"]
    assert unread.split("\t")[4:6] == ["", "open"]


@pytest.mark.parametrize(
    "command", [peer_commands.ban, peer_commands.unban, relay_commands.allow, relay_commands.deny]
)
def test_a_peer_that_has_a_name_is_called_by_it(command: object, capsys: Capture) -> None:
    said = _printed(capsys, command, peer=PEER)
    assert "Ben's laptop" in said
    assert PEER not in said
    assert OTHER in _printed(capsys, command, peer=OTHER)


def test_lists_of_peers_have_the_names_beside_the_ids(capsys: Capture) -> None:
    assert _printed(capsys, peer_commands.list_peers).count(f"{PEER}  ") == 2
    lines = [
        *_printed(capsys, peer_commands.list_peers).splitlines(),
        *_printed(capsys, relay_commands.list_topics).splitlines(),
    ]
    of_peer = [line for line in lines if PEER in line]
    assert len(of_peer) == 3
    assert all(line.endswith("  Ben's laptop") for line in of_peer)


def test_the_bytes_of_a_text_go_to_a_file_or_a_pipe_and_not_to_a_terminal(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    answer: Any = {"update": "aGk=", "text": None, "faults": [], "refused": 0, "passed_over": 0}
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    with pytest.raises(ServiceError, match="nothing that a terminal shows") as caught:
        _write_text((answer, None, Path("-")))
    assert "--root NAME" in caught.value.advice
    _write_text((answer, None, tmp_path / "out"))
    assert (tmp_path / "out").read_bytes() == b"hi"


def test_a_relay_has_one_name_in_the_whole_status(capsys: Capture) -> None:
    peer: dict[str, Any] = {"name": "", "owner": None, "peer": PEER, "relay": True}
    part = {"code": "in_sync", "peers": [peer], "count": 0, "at": None}
    repo = {"repo": "r" * 52, "name": "garden", "standing": {"state": "in_sync", "parts": [part]}}
    shown = peer | {"address": "relay.example:7474", "through": None, "path": "direct", "state": "connected"}
    shown |= {"newer_features": [], "older_features": [], "unknown_messages": 0, "last_error": ""}
    status: Any = {
        "faults": [],
        "key_use": {"displaced_at": None, "own_commits_came_at": None},
        "clock": {"ahead_seconds": None, "authors": 0},
        "damaged": {"commits": 0, "blocks": 0},
        "lost_writes": {"repos": []},
        "storage_bound": None,
        "export": {"last_error": ""},
        "peers": [shown],
    }
    repos: Any = [repo]
    print_overview(status, repos, "Ann")
    said = capsys.readouterr().out
    assert "garden  in sync with relay.example:7474\n" in said
    assert PEER[:12] not in said


@pytest.mark.parametrize(
    "kind, said",
    [
        ("comment", "Accepted: others see the comment beside the document now."),
        ("trust", "Accepted: comments of this author are shown at once from now on."),
        ("pull", "Accepted: all computers that follow the repo follow the offered branch."),
    ],
)
def test_an_offer_that_is_accepted_is_said_by_its_kind(capsys: Capture, kind: str, said: str) -> None:
    inbox_commands._print_accepted(
        ({"offer": "o" * 52, "status": "accepted", "commit": "c" * 52}, "notes", kind)
    )
    assert capsys.readouterr().out == f"{said}\n"


def test_who_was_let_in_by_friends_or_took_a_place_is_told_so() -> None:
    came: dict[str, Any] = {"kind": "recovered", "time": 0, "author": OTHER, "author_name": "Ann"}
    came |= {"friends": [PEER, BRANCH], "friend_names": ["Cat", ""], "place_of": None, "place_since": None}
    said = member_commands._came({"came": came})
    assert said.startswith(f"let in by the friends Cat, {BRANCH[:12]}, ")
    moved = {**came, "kind": "founded", "time": None, "place_of": OTHER, "place_since": 0}
    said = member_commands._came({"came": moved})
    assert said.startswith(f"founded it; in the place of {OTHER[:12]} since ")
