"""Commands that people are told: one function calls them as `ravel` was called, so that they can be pasted.

Sentences, answers of the daemon and errors name commands as `ravel COMMAND`. Those for this node get the options that the
user gave before the command. Those for another person's node stay as they are.
"""

import re
import shlex
from contextlib import suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Final

from node.cli.command_table import COMMANDS
from ravel.errors import RavelError
from ravel.home import command_for, find_home

_KEY_COMMANDS: Final = frozenset({"fsck", "gc", "init", "key", "run", "up"})
"""Commands that open the folder's keys, and so take a passphrase."""
_OPTION: Final = r"--passphrase-file (?:[^\s'\"]|'[^']*'|\"[^\"]*\")+ "
_COMMAND: Final = re.compile(rf"(?<![\w./:-])ravel ({_OPTION})?(?=({'|'.join(COMMANDS)})\b)")
_BEFORE_ANOTHERS: Final = re.compile(
    r"(?:\bthere: |\b[Oo]n the new computer, |\b[Aa]uf dem neuen Computer gibt |\bthe new computer's |"
    r"\b(?:an admin|who runs it|these sign|place of its own, have"
    r"|ein Admin|diese unterschreiben|eigenen Platz lass)\b[^;.]*)$"
)
"""Words before a command that somebody else types, in each language."""
_BEHIND_ANOTHERS: Final = re.compile(
    r"[^`;]*` (?:(?:prints it |printed )?there\b|on (?:the other|the new|the first|their|that) (?:node|computer|device)\b"
    r"|dort\b|auf (?:dem|deren) (?:(?:anderen|neuen|ersten) )?(?:Node|Computer|Gerät)\b)"
)
"""The rest of a command that is typed on another node, and the words behind it."""
_options: Final[ContextVar[tuple[str, str]]] = ContextVar("options", default=("ravel", ""))
"""How the user called `ravel`, and the option that names a passphrase, empty where none was given."""


def note_options(home: Path | None, passphrase_file: str | None) -> None:
    """Remember the options that the user typed before the command; None for those that come from elsewhere."""
    # What came by standard input does not come again.
    is_file = passphrase_file not in (None, "-")
    option = (
        f" --passphrase-file {shlex.quote(str(Path(passphrase_file or '').absolute()))}" if is_file else ""
    )
    _options.set(("ravel" if home is None else command_for(home), option))


def as_called(text: str) -> str:
    """Return a text in which commands for this node have the options that were given before the command."""
    ravel, secret = _options.get()
    # Some errors name the folder already, also one that is meant where none is named.
    with suppress(RavelError):
        text = text.replace(f"{command_for(find_home()) if ravel == 'ravel' else ravel} ", "ravel ")
    if not secret and ravel == "ravel":
        return text

    def call(found: re.Match[str]) -> str:
        before, behind = text[: found.start()], text[found.end() :]
        is_anothers = _BEFORE_ANOTHERS.search(before.rstrip("`")) or _BEHIND_ANOTHERS.match(behind)
        return found[0] if is_anothers else f"{ravel} {found[1]}" if found[1] else _called(found[2])

    return _COMMAND.sub(call, text)


def command(words: str) -> str:
    """Return a command that calls `ravel` as the user did. `--home NEW` before the words means another folder."""
    return f"ravel {words}" if words.startswith("--home ") else _called(words.partition(" ")[0]) + words


def _called(name: str) -> str:
    ravel, secret = _options.get()
    return f"{ravel}{secret if name in _KEY_COMMANDS else ''} "
