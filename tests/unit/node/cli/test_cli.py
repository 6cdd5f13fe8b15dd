"""The command line without a daemon: help, exit codes, JSON, and texts that cannot steer a terminal."""

import itertools
import json
import pwd
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
import typer
from typer.main import get_command
from typer.testing import CliRunner

import node
from node.cli import main as main_module
from node.cli import progress as progress_module
from node.cli.answers import print_fields, print_table
from node.cli.command_table import COMMANDS, GROUPS
from node.cli.interrupts import say_defect
from node.cli.main import app
from node.cli.progress import show_progress
from node.cli.shared import agrees, confirm, fail
from node.cli.wording import first_line, progress_line
from node.runtime.errors import ERROR_KINDS, ServiceError
from node.runtime.wording import counted
from ravel.characters import display_safe
from ravel.types.values import SyncProgress
from tests.support.processes import RAVEL
from tests.unit.node.cli.conftest import run_command

DOCS = Path(__file__).parents[4] / "docs"


def _commands() -> list[list[str]]:
    found: list[list[str]] = []

    def walk(command: object, path: list[str]) -> None:
        children = getattr(command, "commands", None)
        if children is None:
            found.append(path)
            return
        for name, child in children.items():
            walk(child, [*path, name])

    walk(get_command(app), [])
    return found


@pytest.mark.slow
@pytest.mark.parametrize("path", _commands(), ids=" ".join)
def test_every_command_has_help_and_stands_in_the_docs(path: list[str]) -> None:
    result = CliRunner().invoke(app, [*path, "--help"])
    assert result.exit_code == 0
    assert len(result.output) > 100
    if path != ["run"]:
        assert "--json" in result.output
    assert f"## `ravel {' '.join(path)}`" in (DOCS / "reference/cli.md").read_text(encoding="utf-8")


def test_every_error_code_stands_in_the_docs_with_its_numbers() -> None:
    text = (DOCS / "reference/exit-codes.md").read_text(encoding="utf-8")
    for code, kind in ERROR_KINDS.items():
        assert f"| {kind.exit_code} | `{code}` | {kind.http_status} |" in text, code


def test_errors_have_their_exit_codes_and_a_next_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home = str(tmp_path / "home")
    assert run_command(monkeypatch, "--home", home, "status") == ERROR_KINDS["not_initialised"].exit_code
    said = capsys.readouterr().err
    assert "next:  give the right folder by --home or RAVEL_HOME; a new node here: ravel --home" in said
    assert run_command(monkeypatch, "--home", home, "init", "--clear", "--json") == 0
    assert set(json.loads(capsys.readouterr().out)) == {"home", "config", "node", "user", "protection"}
    assert (
        run_command(monkeypatch, "--home", home, "status", "--json") == ERROR_KINDS["not_running"].exit_code
    )
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "not_running"
    assert run_command(monkeypatch, "--home", home, "nonsense") == 2


def test_a_path_that_the_system_refuses_is_an_error_with_advice_and_no_defect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    long = str(tmp_path / ("x" * 300))
    assert run_command(monkeypatch, "--home", long, "status") == ERROR_KINDS["storage_failed"].exit_code
    said = capsys.readouterr().err
    assert "File name too long" in said
    assert "next:" in said

    def defect(*_: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(main_module, "app", defect)
    monkeypatch.setattr("sys.argv", ["ravel"])
    with pytest.raises(OSError, match="Input/output"):
        main_module.main()


def test_a_deleted_current_folder_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gone, home = tmp_path / "gone", str(tmp_path / "home")
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    for arguments in (("--home", "x", "status"), ("--home", home, "restore", "backup")):
        assert run_command(monkeypatch, *arguments) != 1
        said = capsys.readouterr().err
        assert "next:" in said
        assert "Traceback" not in said
    assert run_command(monkeypatch, "--home", "x", "status") == ERROR_KINDS["bad_request"].exit_code
    assert "the current folder has been deleted" in capsys.readouterr().err


def test_help_needs_no_home_folder(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _without_home(monkeypatch)
    assert run_command(monkeypatch, "status", "--help") == 0
    assert run_command(monkeypatch, "status") == ERROR_KINDS["bad_request"].exit_code
    assert "next:  name the node's folder: --home FOLDER" in capsys.readouterr().err


def _without_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """As for a user number without an entry, in an empty environment."""
    for name in ("HOME", "XDG_DATA_HOME", "RAVEL_HOME"):
        monkeypatch.delenv(name, raising=False)

    def refuse(_number: int) -> None:
        raise KeyError

    monkeypatch.setattr(pwd, "getpwuid", refuse)


def test_init_says_what_to_type_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RAVEL_HOME", str(tmp_path / "home"))
    assert run_command(monkeypatch, "init", "--clear", "--listen", "127.0.0.1:0") == 0
    assert "Start it with:  ravel up\n" in capsys.readouterr().out
    assert run_command(monkeypatch, "id") == 0
    assert "node" in capsys.readouterr().out


def test_a_bad_expiry_is_refused_before_anything_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAVEL_HOME", str(tmp_path / "home"))
    run_command(monkeypatch, "init", "--clear")
    assert run_command(monkeypatch, "repo", "invite", "x", "--expires", "soon") != 0


def test_a_number_out_of_bounds_is_told_them_and_its_unit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RAVEL_HOME", str(tmp_path / "home"))
    run_command(monkeypatch, "init", "--clear")
    for typed, said in (("-3", "-3"), ("10 GB", "'10 GB'")):
        code = run_command(monkeypatch, "config", "set", "storage.size_max", typed)
        assert code == ERROR_KINDS["bad_config"].exit_code
        assert f"size_max is a number from 0 to 1073741824 MiB, not {said}" in capsys.readouterr().err


def test_a_no_changes_nothing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: True, readline=lambda: "n\n"))
    monkeypatch.setattr(typer, "prompt", lambda *_, **__: "n")
    with pytest.raises(typer.Exit) as caught:
        confirm("Exclude ben?", yes=False)
    assert caught.value.exit_code == 2
    assert "Nothing was changed." in capsys.readouterr().err


def test_a_question_understands_a_yes_in_german_and_asks_again_what_is_neither(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    typed, asked = ["vielleicht", "J"], list[str]()

    def prompt(text: str, **_: object) -> str:
        asked.append(text)
        return typed.pop(0)

    monkeypatch.setattr(typer, "prompt", prompt)
    assert agrees("Write down 24 words that bring you back if this computer is lost?", default=True)
    assert asked[0].endswith("verloren ist? [J/n]")
    assert capsys.readouterr().err == "Tippe j oder n.\n"


@pytest.mark.slow
def test_a_wrong_line_is_told_in_the_readers_language(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    for arguments, told in (
        (("invite",), "Den Befehl 'invite' gibt es nicht. Tippe: ravel repo invite"),
        (("members",), "Den Befehl 'members' gibt es nicht. Meinst du 'member'?"),
        (("repo", "craete"), "Tippe: ravel repo create. Es gibt: create"),
        (("write", "hello"), "Das Argument 'text' fehlt. 'hello' wurde als branch verstanden"),
        (("write", "main", "hello", "you"), "Zu viel: you. Ein Text aus mehreren Wörtern steht"),
        (("status", "--nonsense"), "Die Option --nonsense gibt es nicht"),
        (("log", "main", "--limit", "x"), "'--limit': es muss eine ganze Zahl sein"),
        (("log", "main", "--limit", "0"), "'--limit': es muss mindestens 1 sein"),
        (("repo", "invite", "--permission", "x"), "'--permission': 'x' ist keins von 'read', 'write'"),
    ):
        assert run_command(monkeypatch, *arguments) == 2
        said = " ".join(capsys.readouterr().err.replace("│", " ").split())
        assert told in said, said
        assert "Fehler" in said
        assert "for help" not in said


def test_help_groups_commands_by_what_they_are_for() -> None:
    shown = CliRunner().invoke(app, ["--help"]).output
    places = [shown.index(f" {heading} ─") for heading in GROUPS]
    assert places == sorted(places)
    assert sum(map(len, GROUPS.values())) == len(COMMANDS)


@pytest.mark.parametrize(
    "text", ["\x1b[31mred", "a\x07b", "line\nbreak", "right\u202eleft", "zero\u200bwidth", "\x9b31m", "\x00"]
)
def test_what_could_steer_a_terminal_is_not_shown(text: str) -> None:
    shown = display_safe(text)
    assert all(char.isprintable() for char in shown)
    assert len(shown) == len(text)


def test_texts_are_cut_to_one_line() -> None:
    assert first_line("one\ntwo", 10) == "one …"
    assert first_line("x" * 20, 10) == "x" * 9 + "…"
    assert first_line(None, 10) == ""


def test_the_node_makes_no_errors_of_unknown_codes() -> None:
    made = [
        code
        for path in Path(node.__file__).parent.rglob("*.py")
        for code in re.findall(r'\bServiceError\(\s*"(.*?)"', path.read_text(encoding="utf-8"))
    ]
    assert len(made) > 200
    assert set(made) <= ERROR_KINDS.keys()


def test_an_error_of_a_code_that_a_newer_node_says_has_the_exit_code_of_a_defect(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert fail(ServiceError("of_a_later_version", "no"), as_json=False) == 1
    assert capsys.readouterr().err == "error: no\n"


def test_an_error_is_shown_without_advice_where_there_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert fail(ServiceError("not_found", "gone"), as_json=False) == 4
    assert capsys.readouterr().err == "error: gone\n"


def test_the_tests_run_the_command_that_is_installed() -> None:
    assert RAVEL[1:] == ["-P", "-m", "node.cli.main"]


def test_fields_show_lists_and_nothing_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    print_fields([("heads", ["a", "b"]), ("time", None)])
    assert capsys.readouterr().out == "heads  a, b\ntime\n"


def test_fields_in_a_field_are_named_by_both_and_nothing_looks_like_python(
    capsys: pytest.CaptureFixture[str],
) -> None:
    offers = [{"branch": "b", "commits": ["c", "d"]}, {"branch": "e", "commits": []}]
    print_fields([("tangles", {"group": ["a", "b"], "none": {}}), ("relay", True), ("offers", offers)])
    shown = (
        "tangles.group  a, b\nrelay          yes\noffers         branch b, commits c, d; branch e, commits\n"
    )
    assert capsys.readouterr().out == shown


def test_a_piped_table_begins_with_the_names_of_its_columns(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("name", "size"), [("a\tb", 1)])
    assert capsys.readouterr().out == "name\tsize\na b\t1\n"
    print_table(("item",), [("pears",)])  # which another command reads
    assert capsys.readouterr().out == "pears\n"


def test_every_command_takes_a_short_option_for_help() -> None:
    for path in ([], ["repo"], ["log"]):
        assert CliRunner().invoke(app, [*path, "-h"]).exit_code == 0


def test_an_import_of_unknown_length_says_at_its_end_how_far_it_came(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with show_progress("imported", "commit", None) as progress:
        progress(1000)
        progress(1234)
    assert capsys.readouterr().err.splitlines()[-1] == "imported 1234 commits"


def test_a_total_and_a_time_that_become_known_are_shown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a cut most is here already: from what this command has seen, no time could be told."""
    monkeypatch.setattr(progress_module, "_LINE_SECONDS", 0.0)
    with show_progress("synced", "commit", None) as progress:
        progress(25_000, None, None)
        progress(25_030, 60_001, 130)
        progress(25_030, 60_001, 140)  # nothing moved: no line is said twice
        progress(60_001, 60_001)
    assert capsys.readouterr().err.splitlines() == [
        "synced 25000 commits",
        "synced 25030 of 60001 commits, 2 min left",
        "synced 60001 of 60001 commits",
    ]


def test_a_transfer_between_nodes_is_one_line() -> None:
    whole: SyncProgress = {
        "direction": "receiving",
        "done": 25_030,
        "total": 60_001,
        "rate": 5600,
        "seconds_left": 7,
    }
    assert progress_line(whole) == "receiving, 25030 of 60001 commits, 5600 a second, 7 s left"
    unknown: SyncProgress = {**whole, "total": None, "rate": None, "seconds_left": None}
    assert progress_line(unknown) == "receiving, 25030 of an unknown number of commits"
    still: SyncProgress = {**whole, "direction": "sending", "rate": 0, "seconds_left": None}
    assert progress_line(still) == "sending, 25030 of 60001 commits, standing still"


def test_one_of_something_is_said_in_the_singular(capsys: pytest.CaptureFixture[str]) -> None:
    for count in (0, 1, 2):
        with show_progress("wrote", "post", None) as progress:
            progress(count)
    with show_progress("sent", "byte", 1) as progress:
        progress(1)
    assert capsys.readouterr().err.splitlines() == ["wrote 1 post", "wrote 2 posts", "sent 1 of 1 byte"]
    assert (counted(1, "branch", "branches"), counted(0, "branch", "branches")) == ("1 branch", "0 branches")


def test_a_text_without_quotes_is_told_how_it_is_written(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for arguments in (("write", "main", "hello", "world"), ("me", "Alice"), ("repo", "create", "a", "b")):
        assert run_command(monkeypatch, *arguments) == 2
        said = " ".join(capsys.readouterr().err.replace("│", " ").split())
        assert "A text of several words stands in quotes" in said
        assert "an option has its name before it" in said


@pytest.mark.parametrize(
    "arguments, what",
    [
        (("set", "add", "main", "pears", ""), "item"),
        (("dict", "put", "main", "", "green"), "key"),
        (("branch", "list", ""), "repo"),
        (("repo", "sync", ""), "repo"),
        (("member", "exclude", "", "ben"), "repo"),
        (("log", ""), "branch"),
    ],
    ids=lambda one: "" if isinstance(one, str) else " ".join(one),
)
def test_an_unset_variable_of_the_shell_is_no_item_no_key_and_no_repo_that_is_left_out(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    what: str,
) -> None:
    assert run_command(monkeypatch, *arguments) == ERROR_KINDS["bad_request"].exit_code
    said = capsys.readouterr().err
    assert f"error: an empty {what} was given" in said
    assert "a variable that is not set" in said


@pytest.mark.slow
def test_what_is_no_command_or_lacks_something_is_told_what_to_type(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for arguments, told in (
        (("invite",), "No such command 'invite'. Type: ravel repo invite"),
        (("join", "garden"), "Type: ravel repo join, ravel device join"),
        (("send", "hello"), "Type: ravel write"),
        (("help",), "Type: ravel --help"),
        (("members",), "Did you mean 'member'"),
        (("repo", "delete"), "Type: ravel repo forget. There are: create, invite"),
        (("repo", "craete"), "Type: ravel repo create. There are: create"),
        (("peer", "ls"), "Type: ravel peer list"),
        (("xyzzy",), "No such command 'xyzzy'. See: ravel --help"),
        (("log", "main", "--limit", "0"), "Invalid value for '--limit': it must be 1 or more"),
        (("repo", "xyzzy"), "No such command 'xyzzy'. There are: create"),
        (("watch",), "Missing argument 'branch'. See: ravel branch list"),
        (("write", "hello you"), "'hello you' was taken for the branch. Type: ravel write main 'hello you'"),
        (("file", "get", "a.jpg"), "'a.jpg' was taken for the branch. Type: ravel file get main a.jpg"),
        (("post", "hi"), "No such command 'hi'. Type: ravel write main hi. There are: hide"),
        (("member", "grant", "ben"), "'ben' was taken for the repo. See: ravel member list"),
        (("json", "set", "main", "x", "1"), "Type: ravel json put. There are: get, put"),
        (("dict", "set"), "Type: ravel dict put"),
        (("set", "put"), "Type: ravel set add"),
    ):
        assert run_command(monkeypatch, *arguments) == 2
        said = " ".join(capsys.readouterr().err.replace("│", " ").split())
        assert told in said, said


@pytest.mark.slow
def test_help_shows_every_word_that_is_written_and_breaks_lines_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for path, words in (
        (("open",), "That needs [api] tls."),
        (("file", "add"), "[default: the path's last part]"),
        (("write",), "@[NAME WITH SPACES]: others see"),
        (("watch",), "or a `reset`, after which all that was shown before is to be forgotten."),
    ):
        shown = CliRunner().invoke(app, [*path, "--help"]).output
        assert words in " ".join(shown.replace("│", " ").split()), path
    about = CliRunner().invoke(app, ["watch", "--help"]).output.partition("Arguments")[0]
    lines = [line.strip() for line in about.splitlines()[5:] if line.strip()]
    for line, after in itertools.pairwise(lines):
        if not line.endswith("."):
            assert len(line) + 1 + len(after.split()[0]) > 76, "the next word has no room"


def test_ctrl_c_while_commands_are_imported_prints_no_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    say_defect(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert capsys.readouterr().err == ""
    say_defect(ValueError, ValueError("a defect"), None)
    assert "ValueError: a defect" in capsys.readouterr().err
