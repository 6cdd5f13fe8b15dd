"""A command that people are told works as it is printed, for the node that they called."""

import re
from pathlib import Path

import pytest

from node.cli import main as main_module
from node.cli import printing
from node.cli.command_table import COMMANDS
from node.cli.hints import as_called, command, note_options
from node.cli.printing import Says, fill_command
from node.cli.shared import fail, say
from node.runtime.errors import ServiceError

NODE = Path(__file__).parents[4] / "node"
HOME = Path("/tmp/a b")  # noqa: S108  # it is only named
CALLED = "ravel --home '/tmp/a b'"


@pytest.fixture(autouse=True)
def _called_for_a_folder() -> None:
    note_options(HOME, None)


@pytest.mark.parametrize(
    "text, said",
    [
        ("`ravel peer list` shows peers", f"`{CALLED} peer list` shows peers"),
        (
            "ravel repo create NAME, or ravel repo join -",
            f"{CALLED} repo create NAME, or {CALLED} repo join -",
        ),
        ("start it with: ravel --home '/tmp/a b' up", f"start it with: {CALLED} up"),
        ("restore a backup: `ravel --home NEW restore B`", "restore a backup: `ravel --home NEW restore B`"),
        (
            "Ravel runs at ravel.example.org, by ravel:join:abc",
            "Ravel runs at ravel.example.org, by ravel:join:abc",
        ),
        ("give the whole id: `ravel id` on their node prints it",) * 2,
        ("ask who runs it for more (`ravel relay change NAME --quota` there)",) * 2,
        ("an admin runs `ravel member grant a b`",) * 2,
        ("run `ravel device remove` on the first device too",) * 2,
        ("give the whole id: `ravel id` prints it there",) * 2,
        ("the new computer's `ravel id` prints its id",) * 2,
        ("for a place of its own, have Ann or Ben run `ravel member grant a b`",) * 2,
        ("für einen eigenen Platz lass Ann `ravel member grant a b` ausführen",) * 2,
        ("On the new computer, `ravel member grant a b` gives it a place",) * 2,
        ("Auf dem neuen Computer gibt `ravel member grant a b` ihm einen Platz",) * 2,
        ("these sign anew with `ravel recovery sign`",) * 2,
        ("copy all of what `ravel recovery sign` printed there",) * 2,
        ("`ravel repo follow -` on the new computer takes it",) * 2,
        ("`ravel id` auf dem neuen Computer zeigt seine Kennung",) * 2,
        ("diese unterschreiben neu mit `ravel recovery sign`",) * 2,
        ("kopiere alles, was `ravel recovery sign` dort gezeigt hat",) * 2,
        ("`ravel device sync` auf dem ersten Gerät",) * 2,
        ("ein Admin darf: `ravel member exclude a`",) * 2,
        (
            "make a new link there: ravel device add; here: ravel device list",
            f"make a new link there: ravel device add; here: {CALLED} device list",
        ),
    ],
)
def test_a_command_for_this_node_names_its_folder_and_one_for_another_does_not(text: str, said: str) -> None:
    assert as_called(text) == said


def test_a_folder_that_is_meant_without_its_name_is_not_named(monkeypatch: pytest.MonkeyPatch) -> None:
    note_options(None, None)
    monkeypatch.setenv("RAVEL_HOME", str(HOME))
    assert as_called(f"a new node here: {CALLED} up") == "a new node here: ravel up"
    monkeypatch.setenv("RAVEL_HOME", "/srv/other")
    assert as_called(f"a new node here: {CALLED} up") == f"a new node here: {CALLED} up"


def test_a_text_that_was_filled_in_before_stays_as_it_is() -> None:
    note_options(HOME, "/tmp/pass word")  # noqa: S108  # it is only named
    for text in ("`ravel up` waits again", "ravel --passphrase-file FILE up --service", "ravel peer list"):
        once = as_called(text)
        assert once.count(CALLED) == 1
        assert as_called(once) == once
    assert as_called("ravel --passphrase-file FILE up") == f"{CALLED} --passphrase-file FILE up"


def test_commands_stay_short_where_no_folder_was_given() -> None:
    note_options(None, None)
    assert as_called("`ravel up` waits again") == "`ravel up` waits again"
    assert command("up") == "ravel up"


def test_a_passphrase_file_is_named_where_keys_are_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    note_options(None, "secret")
    secret = f"--passphrase-file {tmp_path}/secret"
    assert as_called("`ravel up`, then `ravel log main`") == f"`ravel {secret} up`, then `ravel log main`"
    note_options(None, "-")
    assert command("up") == "ravel up", "standard input does not come again"


def test_what_a_person_wrote_in_a_command_stays_as_it_is() -> None:
    assert fill_command("write {branch} 'ravel up'", {"branch": "main"}) == f"{CALLED} write main 'ravel up'"


def test_all_that_speaks_of_a_next_step_names_the_folder(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(printing, "is_terminal", lambda: True)
    say("note: `ravel up`")
    fail(ServiceError("not_found", "nothing; `ravel up`", "ravel up"), as_json=False)
    Says("See `ravel up`.", "up")({})
    lines = "".join(capsys.readouterr()).splitlines()
    assert len(lines) == 5
    assert all(f"{CALLED} up" in line for line in lines), lines


def test_an_error_of_a_command_names_the_folder_that_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "home"
    for words in (["init", "--clear"], ["key", "change-passphrase"]):
        monkeypatch.setattr("sys.argv", ["ravel", "--home", str(home), *words])
        with pytest.raises(SystemExit):
            main_module.main()
    assert f"next:  use: ravel --home {home} key seal" in capsys.readouterr().err


def test_a_command_in_a_sentence_is_one_that_exists() -> None:
    """Unknown words after `ravel` would not get the folder."""
    unknown = set()
    for path in NODE.rglob("*.py"):
        unknown |= set(re.findall(r"`ravel ([a-z]+)", path.read_text(encoding="utf-8"))) - set(COMMANDS)
    assert not unknown
