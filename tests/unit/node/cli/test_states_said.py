"""States and standings in the reader's language, on a terminal; a pipe has the words of the API."""

import pytest

from node.cli import words
from node.cli.printing import state_word


@pytest.fixture(autouse=True)
def _in_german(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")


def test_a_state_is_said_in_german_on_a_terminal_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    assert state_word("waiting") == "waiting"
    monkeypatch.setattr("node.cli.printing.is_terminal", lambda: True)
    assert [state_word(one) for one in ("waiting", "accepted", "unheard-of")] == [
        "wartet",
        "angenommen",
        "unheard-of",
    ]


def test_a_standing_that_begins_a_line_is_said_in_german(capsys: pytest.CaptureFixture[str]) -> None:
    parts = [{"code": "ask_sending", "peers": [], "people": [], "count": 0, "at": None, "words": []}]
    standing = {"state": "joining", "parts": parts}
    words.REPO_JOINED(
        {"name": "garden", "called": "garden", "permission": "joining", "standing": standing, "asks": True}
    )
    assert "\nBitte um Aufnahme: Sie geht hinaus" in capsys.readouterr().out


@pytest.mark.parametrize(
    "code, permission, said",
    [
        ("reading", "former", "Ein Schlüssel, der hereingelassen wurde, ist Mitglied, sobald alles da ist."),
        ("reading_branches", "former", "Du darfst lesen, und bist kein Mitglied."),
        ("behind", "write", "Du folgst garden. Du darfst schreiben."),
    ],
)
def test_who_follows_is_called_no_member_only_where_that_is_known(
    capsys: pytest.CaptureFixture[str], code: str, permission: str, said: str
) -> None:
    standing = {"state": "syncing", "parts": [{"code": code}]}
    words.REPO_FOLLOWED(
        {"name": "garden", "called": "garden", "commits": 3, "permission": permission, "standing": standing}
    )
    assert said in " ".join(capsys.readouterr().out.split())
