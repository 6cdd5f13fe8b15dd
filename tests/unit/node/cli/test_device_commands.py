"""Commands of a person's devices: what is left to do is said in full, and a removed computer is told."""

from typing import Any

import pytest
import typer

from node.cli import printing
from node.cli.links import print_link
from node.cli.shared import agrees
from node.runtime.errors import ERROR_KINDS, EXIT_STOPPED
from node.runtime.language import Speaker, load_table
from tests.unit.node.cli.conftest import Invoke

DEVICE, REPO = "d" * 52, "r" * 52


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prints as on a terminal of 110 columns."""
    monkeypatch.setattr(printing, "is_terminal", lambda: True)
    monkeypatch.setattr(printing, "terminal_width", lambda: 110)


def _left(**values: object) -> dict[str, Any]:
    return {
        "repo": REPO,
        "name": "notes",
        "taken_back": True,
        "excluded": True,
        "renewed": True,
        "left": False,
        "advice": "",
        **values,
    }


@pytest.mark.usefixtures("terminal")
def test_what_is_left_after_a_removal_is_said_in_full(invoke: Invoke) -> None:
    command = f"ravel member exclude 'our garden' {DEVICE}"
    advice = f"others gave it the permission write; ask an admin for `{command}`"
    stays = _left(name="our garden", excluded=False, renewed=False, advice=advice)
    answer = {"device": DEVICE, "repos": [stays, _left()]}
    done = invoke("device", "remove", DEVICE, "--yes", remove_device=lambda _: answer)
    assert done.exit_code == ERROR_KINDS["not_permitted"].exit_code
    first, *_ = done.stdout.splitlines()
    assert first == "The device is not removed everywhere: something is left to do in 1 of 2 repos."
    assert "taken back, still a member" in done.stdout
    assert command in " ".join(done.stdout.split())
    whole = {"device": DEVICE, "repos": [_left()]}
    done = invoke("device", "remove", DEVICE, "--yes", remove_device=lambda _: whole)
    assert done.exit_code == 0
    assert "everywhere" not in done.stdout
    assert "still a member" not in done.stdout
    itself = {
        "device": DEVICE,
        "repos": [_left(excluded=False, renewed=False), _left(excluded=False, left=True)],
    }
    done = invoke("device", "remove", DEVICE, "--yes", remove_device=lambda _: itself)
    assert done.stdout.count("still a member") == 1, "of all repos but that of the devices"


@pytest.mark.parametrize(
    "link, command",
    [("ravel:device:a", "device join -"), ("ravel:relay:a", "relay join -"), ("ravel:repo:a", "repo join -")],
)
def test_the_note_of_a_link_names_the_command_that_takes_it(
    capsys: pytest.CaptureFixture[str], link: str, command: str
) -> None:
    print_link({"link": link, "reach": "machine", "qr": False, "about": "", "absent": ()})
    assert f"then ravel --home FOLDER {command}\n" in capsys.readouterr().err


def test_ctrl_c_at_a_question_ends_as_elsewhere(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object, **__: object) -> str:  # as typer's own does
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt:
            raise typer.Abort from None

    monkeypatch.setattr("node.cli.device_commands.confirm", lambda *_, **__: agrees("Remove it?"))
    monkeypatch.setattr(typer, "prompt", stop)
    done = invoke("device", "remove", DEVICE)
    assert (done.exit_code, "Aborted" in done.output) == (EXIT_STOPPED, False)


def test_a_removed_computer_is_told(invoke: Invoke) -> None:
    answer = {"devices": [], "joining": False, "stayed": [], "removed_by": DEVICE, "removed_by_name": "Ben"}
    answer |= {"moved_to": None, "moved_to_name": "", "let_in": []}
    done = invoke("device", "list", list_devices=lambda: answer)
    assert done.stdout.startswith("This computer was removed from Ben's devices.")
    done = invoke("device", "list", list_devices=lambda: {**answer, "removed_by": None})
    assert done.stdout.startswith("This is your only device.")


@pytest.mark.usefixtures("terminal")
def test_a_removed_device_that_stays_a_member_is_named_with_the_command(invoke: Invoke) -> None:
    me = {"user": REPO, "name": "Desk", "first": True, "this": True, "repos": []}
    command = f"ravel member exclude work {DEVICE}"
    stayed = {"device": DEVICE, "called": "Lap", "repo": REPO, "name": "work", "permission": "write"}
    answer = {"devices": [me], "stayed": [{**stayed, "advice": f"an admin may: `{command}`"}], "let_in": []}
    said = " ".join(invoke("device", "list", list_devices=lambda: answer).stdout.split())
    friends = {
        "device": DEVICE,
        "this": False,
        "repo": REPO,
        "name": "our garden",
        "friends": [REPO],
        "friend_names": ["Ben"],
        "time": 0,
        "grant": "ravel member grant",
        "grantors": ["Ben", "Cat"],
    }
    told = " ".join(
        invoke("device", "list", list_devices=lambda: {**answer, "let_in": [friends]}).stdout.split()
    )
    assert f"Friends let the key {DEVICE[:12]} in as you, in our garden on 1970-01-01" in told
    assert f"`ravel member exclude 'our garden' {DEVICE[:12]}`" in told
    back = {**answer, "let_in": [{**friends, "this": True}]}
    told = " ".join(invoke("device", "list", list_devices=lambda: back).stdout.split())
    assert "You are back in our garden since 1970-01-01" in told
    assert "have Ben, Cat run `ravel member grant`" in told
    assert "member exclude 'our garden'" not in told
    assert "The removed device Lap is still a member of work (write)." in said
    assert command in said


@pytest.mark.parametrize("advice, is_kept_on", [("", True), ("try again", False)])
def test_who_passed_no_place_on_is_not_asked_to_leave_the_computer_on(
    invoke: Invoke, advice: str, is_kept_on: bool
) -> None:
    moved = {"repo": REPO, "name": "notes", "moved": not advice, "already": False, "signs": False}
    answer = {"device": DEVICE, "repos": [{**moved, "advice": advice}]}
    done = invoke("device", "promote", DEVICE, "--yes", promote_device=lambda _: answer)
    assert ("Leave this computer on" in done.stdout) is is_kept_on


def test_what_is_left_to_do_is_said_in_german(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    advice = "Ann is no member any more; have an admin invite the new key"
    one = {
        "repo": REPO,
        "name": "notes",
        "member": DEVICE,
        "member_name": "Ann",
        "signed": 2,
        "need": 2,
        "user": REPO,
    }
    answer = {"repos": [{**one, "let_in": False, "already": False, "advice": advice}]}
    said = " ".join(invoke("recovery", "finish", "TEXT", finish_recovery=lambda _: answer).stdout.split())
    assert said.endswith("notes: Ann ist nicht mehr Mitglied; lass einen Admin den neuen Schlüssel einladen")


def test_a_device_is_looked_for_before_anybody_is_asked(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    phone = {"user": "a" * 52, "name": "Pocket", "first": False, "this": False, "repos": []}
    answers = {
        "list_devices": lambda: {"devices": [phone], "moved_to": None, "moved_to_name": ""},
        "show_status": lambda: {"user": REPO},
        "list_repos": lambda: {"repos": []},
    }
    for device, refusal in (("nobody", "no device is called 'nobody'"), ("Pocket", "no terminal to ask at")):
        assert refusal in str(invoke("device", "promote", device, **answers).exception)
    monkeypatch.setattr("node.cli.device_commands.confirm", lambda question, **_: asked.append(question()))
    answer = {"device": DEVICE, "repos": []}
    invoke("device", "promote", "Pocket", **answers, promote_device=lambda _: answer)
    assert "run `ravel peer add` there first. Make Pocket your first device?" in asked[0]
    assert Speaker(load_table("de"))(asked[0]).endswith("Pocket zum ersten Gerät machen?")


def test_who_passed_its_place_on_is_not_asked_to_name_friends(invoke: Invoke) -> None:
    listed: dict[str, Any] = {"moved_to": DEVICE, "moved_to_name": "Pocket"}
    answers = {
        "list_friends": lambda: {"repos": [], "persons": [], "let_in": False},
        "list_devices": lambda: listed,
    }
    assert "Your place has passed to the computer Pocket" in invoke("recovery", "show", **answers).stdout
    listed["moved_to"] = None
    assert "names friends" in invoke("recovery", "show", **answers).stdout
