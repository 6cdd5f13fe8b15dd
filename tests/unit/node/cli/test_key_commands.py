"""The commands of keys, run in this process: what they ask, what they refuse, what they give, and what they never say."""

import hashlib
import io
import json
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from node.cli.main import main
from node.home.mnemonic import words_of
from node.runtime.errors import ERROR_KINDS, ServiceError
from protocol.crypto.keys import UserSeed
from tests.support.keyrings import MemoryKeyring, memory_keyring

FIRST, SECOND = "four random words", "neither stored nor said"


@dataclass
class CommandResult:
    """A command that ended."""

    code: str
    """`ok`, or the error's code."""
    out: str
    said: str
    """On standard error."""

    @property
    def json(self) -> Any:  # noqa: ANN401  # as the command gives it
        """The answer."""
        return json.loads(self.out)


Run = Callable[..., CommandResult]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command on the folder `home`, or another one."""
    by_exit = {kind.exit_code: code for code, kind in ERROR_KINDS.items()} | {0: "ok"}

    def run(*arguments: str, stdin: str = "", home: str = "home") -> CommandResult:
        monkeypatch.setattr(sys, "argv", ["ravel", "--home", str(tmp_path / home), *arguments])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        code = 0
        try:
            main()
        except SystemExit as ended:
            code = int(ended.code or 0)
        captured = capsys.readouterr()
        return CommandResult(by_exit[code], captured.out, captured.err)

    return run


@pytest.fixture
def passphrase(tmp_path: Path) -> Callable[[str], str]:
    """Makes files of passphrases."""

    def make(text: str) -> str:
        path = tmp_path / f"passphrase-{len(text)}"
        path.write_text(text + "\n")
        path.chmod(0o600)
        return str(path)

    return make


@pytest.mark.slow
def test_how_keys_are_kept_must_be_said_where_nobody_can_be_asked(
    tmp_path: Path, run: Run, passphrase: Callable[[str], str]
) -> None:
    refused = run("init")
    assert (refused.code, "--clear" in refused.said) == ("bad_request", True)
    assert run("init", "--clear", "--keyring").code == "bad_request"
    assert run("init", "--passphrase").code == "locked"
    assert run("--passphrase-file", passphrase("seven77"), "init").code == "bad_request"
    assert "standard input" in run("--passphrase-file", "-", "init", "--words", stdin="zoo zoo").said
    assert not (tmp_path / "home").exists()
    made = run("init", "--clear", "--json")
    assert (made.json["protection"], "in the clear" in made.said) == ("none", True)
    again = run("init", "--json")
    assert (again.code, again.said, again.json["user"]) == ("ok", "", made.json["user"])


@pytest.mark.slow
def test_words_are_typed_on_as_many_lines_as_they_stand_on(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    given = words_of(UserSeed(hashlib.sha256(b"ann").digest()))
    made = run("init", "--clear", "--words", "--json", stdin=" ".join(given)).json
    lines = [f"{place} {word}" for place, word in enumerate(given, 1)]
    asked: list[str] = []

    def typed(prompt: str) -> str:
        asked.append(prompt)
        return lines[len(asked) - 1] if len(asked) <= len(lines) else ""

    monkeypatch.setattr("getpass.getpass", typed)
    monkeypatch.setattr("node.home.passphrases.is_terminal", lambda: True)
    taken = run("init", "--clear", "--words", "--json", home="again").json
    assert taken["user"] == made["user"]
    assert asked == [f"{count} of 24: " for count in range(24)]
    asked, lines = [], lines[:7]
    refused = run("init", "--clear", "--words", home="third")
    assert "there are 7 words, not 24" in refused.said


def test_a_passphrase_is_asked_for_where_one_can_be(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def typed(prompt: str) -> str:
        asked.append(prompt)
        return ""

    monkeypatch.setattr("getpass.getpass", typed)
    monkeypatch.setattr("node.home.passphrases.is_terminal", lambda: True)
    assert run("init", "--json").json["protection"] == "none"
    assert len(asked) == 1, "an empty answer is enough"
    assert run("init").code == "ok"
    assert len(asked) == 1, "what is there stays as it is"


@pytest.mark.extended
@pytest.mark.slow
def test_keys_are_sealed_changed_and_unsealed(
    tmp_path: Path, run: Run, passphrase: Callable[[str], str]
) -> None:
    first, second = passphrase(FIRST), passphrase(SECOND)
    user = run("init", "--clear", "--json").json["user"]
    assert run("key", "change-passphrase", "--new-passphrase-file", first).code == "bad_request"
    (tmp_path / "home" / "ravel-of-r0009.sqlite").touch()
    sealed = run("key", "seal", "--new-passphrase-file", first, "--json").json
    assert sealed == {
        "protection": "passphrase",
        "removed": [str(tmp_path / "home" / "ravel-of-r0009.sqlite")],
    }
    shown = run("key", "show", "--json").json
    assert (shown["protection"], shown["user"], shown["memory"]) == ("passphrase", user, 256 << 20)
    assert run("id", "--json").json["user"] == user, "without a passphrase"
    assert run("key", "words").code == "locked"
    wrong = run("--passphrase-file", second, "key", "unseal")
    assert (wrong.code, SECOND in wrong.said) == ("wrong_passphrase", False)
    changed = run(
        "--passphrase-file", "-", "key", "change-passphrase", "--new-passphrase-file", second, stdin=FIRST
    )
    assert changed.code == "ok"
    assert run("--passphrase-file", first, "key", "words").code == "wrong_passphrase"
    unsealed = run("--passphrase-file", second, "key", "unseal")
    assert (unsealed.code, "in the clear" in unsealed.said) == ("ok", True)
    assert run("key", "show", "--json").json == {"node": shown["node"], "user": user, "protection": "none"}


@pytest.mark.slow
def test_a_user_is_taken_up_by_words(tmp_path: Path, run: Run) -> None:
    # Words by chance are words of a message now and then, and pass in another order one time in 256.
    given = words_of(UserSeed(hashlib.sha256(b"ann").digest()))
    made = run("init", "--clear", "--words", "--json", stdin=" ".join(given)).json
    words = run("key", "words", "--json").json["words"]
    assert words == given
    assert re.findall(r"[a-z]+", run("key", "words").out) == words
    slips: tuple[list[str], ...] = (
        [words[1], words[0], *words[2:]],
        words[:23],
        ["nonsense", *words[1:]],
        [],
    )
    for slip in slips:
        refused = run("init", "--clear", "--words", stdin=" ".join(slip), home="again")
        assert refused.code == "bad_input"
        assert not any(word in refused.said.split() for word in words)
    assert not (tmp_path / "again").exists(), "nothing is made of a slip"
    taken = run(
        "init", "--clear", "--words", "--json", stdin="  ".join(words).upper() + "\n", home="again"
    ).json
    assert taken["user"] == made["user"]
    assert taken["node"] != made["node"]
    printed = run("key", "words").out
    for number, paper in enumerate((printed, "\n".join(words), f"\ufeff{printed}")):
        answer = run("init", "--clear", "--words", "--json", stdin=paper, home=f"printed {number}")
        assert answer.json["user"] == made["user"]
    assert run("init", "--words", stdin=" ".join(words), home="again").code == "already_exists"


@pytest.mark.extended
@pytest.mark.slow
def test_a_user_is_taken_up_by_a_file(tmp_path: Path, run: Run, passphrase: Callable[[str], str]) -> None:
    first, second, out = passphrase(FIRST), passphrase(SECOND), str(tmp_path / "user.key")
    made = run("init", "--clear", "--json").json
    exported = run("key", "export", out, "--new-passphrase-file", first, "--json").json
    assert exported == {"path": out, "user": made["user"]}
    assert run("key", "export", out, "--new-passphrase-file", first).code == "already_exists"
    take = ("init", "--clear", "--from-file", out, "--from-passphrase-file")
    assert run(*take, second, home="again").code == "wrong_passphrase"
    assert run("init", "--clear", "--words", "--from-file", out, home="again").code == "bad_request"
    config = str(tmp_path / "home" / "config.toml")
    assert run("init", "--clear", "--from-file", config, home="again").code == "bad_input"
    assert not (tmp_path / "again").exists()
    keys = ("init", "--clear", "--from-file", str(tmp_path / "home" / "keys.json"))  # as of a backup
    for home, given in (("again", (*take, first)), ("third", keys)):
        taken = run(*given, "--json", home=home).json
        assert (taken["user"], taken["node"] != made["node"]) == (made["user"], True)


@pytest.fixture
def memory() -> Iterator[MemoryKeyring]:
    with memory_keyring() as backend:
        yield backend


@pytest.mark.slow
def test_the_keyring_opens_keys_without_asking(run: Run, memory: MemoryKeyring) -> None:
    assert run("init", "--keyring", "--json").json["protection"] == "keyring"
    assert run("key", "words").code == "ok"
    assert len(memory.kept) == 1
    memory.is_locked = True
    refused = run("key", "words")
    assert (refused.code, "collection is locked" in refused.said) == ("locked", True)
    memory.is_locked = False
    assert run("key", "unseal").code == "ok"
    assert memory.kept == {}
    assert run("key", "seal", "--keyring").code == "ok"
    assert run("key", "seal", "--keyring", "--passphrase").code == "bad_request"
    assert len(memory.kept) == 1


def test_a_fresh_key_that_could_not_be_stated_is_no_success(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def state(repo: str) -> dict[str, object]:
        if repo == "uncertain":
            raise ServiceError("feed_uncertain", "the node may not write before it met a peer")
        return {"repo": repo, "commit": "c", "epoch": "e"}

    def repos(*named: tuple[str, str]) -> SimpleNamespace:
        found = [{"repo": repo, "name": repo, "whole": True, "permission": held} for repo, held in named]
        return SimpleNamespace(list_repos=lambda: {"repos": found}, state_prekey=state)

    def refresh(*named: tuple[str, str]) -> CommandResult:
        monkeypatch.setattr("node.cli.answers.client", lambda _: repos(*named))
        return run("key", "refresh")

    assert refresh(("one", "owner")).code == "ok"
    mixed = refresh(("uncertain", "read"), ("one", "owner"))
    assert (mixed.code, "may not write" in mixed.out, "in use" in mixed.out) == ("feed_uncertain", True, True)
    for held in ("none", "former", "joining"):
        told = refresh(("uncertain", held))
        assert (told.code, "You are a member of no repo here." in told.said + told.out) == ("ok", True)
