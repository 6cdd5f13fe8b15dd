"""What commands print of things that were made with a token."""

import pytest

from node.cli.access_commands import count_made, print_revoked
from ravel.types.made import MadeThing

LINK: MadeThing = {
    "kind": "ask_link",
    "what": "aaaa",
    "repo": "b" * 52,
    "repo_name": "notes",
    "made_at": 0,
    "expires_at": None,
    "begun": False,
    "ended": True,
    "advice": "",
}
MEMBER: MadeThing = {
    **LINK,
    "kind": "member",
    "what": "cccc",
    "ended": False,
    "advice": "ravel member exclude notes cccc",
}


def test_what_stays_comes_with_the_command_that_ends_it(capsys: pytest.CaptureFixture[str]) -> None:
    begun: MadeThing = {**LINK, "begun": True, "ended": False, "advice": "ravel requests links notes"}
    print_revoked({"made": [LINK, MEMBER, begun]})
    _, _, link, member, unknown = capsys.readouterr().out.splitlines()
    assert link.split("\t")[:3] == ["ask link", "aaaa", "notes"]
    assert link.split("\t")[4:] == ["ended", ""]
    assert member.split("\t")[4:] == ["stays", "ravel member exclude notes cccc"]
    assert unknown.split("\t")[4:] == ["may be there", "ravel requests links notes"]


def test_it_is_said_where_nothing_was_made(capsys: pytest.CaptureFixture[str]) -> None:
    print_revoked({"made": []})
    assert capsys.readouterr().out == "revoked; nothing that was made with it is left\n"


def test_what_has_ended_is_not_counted() -> None:
    assert count_made({"made": [MEMBER, LINK, MEMBER]}) == "2 members"
