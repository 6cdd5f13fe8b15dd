"""Reads a passphrase from a file, a systemd credential or the terminal, never from an argument.

A file may be `-` (standard input) or a descriptor (`/dev/fd/3`). One line end behind a passphrase is not part of it, nor a
byte order mark before it, which some editors write. Texts are compared in Unicode's composed form, which keyboards and
systems differ in.
"""

import getpass
import stat
import sys
import unicodedata
from codecs import BOM_UTF8
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from node.runtime.errors import ServiceError
from node.runtime.language import in_language
from protocol.limits.users import PASSPHRASE_LENGTH_MIN, PASSPHRASE_SIZE_MAX

FILE_VARIABLE: Final = "RAVEL_PASSPHRASE_FILE"
CREDENTIAL_NAME: Final = "ravel-passphrase"
_PURPOSE: Final = (
    "A passphrase seals your key on this disk. Nobody can restore it: if you lose it, only the 24 words help."
)
_TRIES: Final = 3
"""Times that a new passphrase is asked for: a script at a terminal of its own would go on for ever."""
_READ_SIZE: Final = len(BOM_UTF8) + PASSPHRASE_SIZE_MAX + 3
"""Bytes that are read of a file: a passphrase, what may stand around it, and one more, which is too many."""
_CREDENTIALS_VARIABLE: Final = "CREDENTIALS_DIRECTORY"


def given_passphrase(file: str | None, environment: Mapping[str, str]) -> bytes | None:
    """Return the passphrase of a file, else of systemd's credential; None where neither is given. Raises ServiceError."""
    if file is not None:
        return read_passphrase(file)
    folder = environment.get(_CREDENTIALS_VARIABLE)
    path = Path(folder, CREDENTIAL_NAME) if folder else None
    if path is None or not path.exists():
        return None
    return _of_bytes(_read(path), str(path))  # its mode is systemd's to choose


def read_passphrase(file: str) -> bytes:
    """Read the passphrase that a file holds; `-` is standard input. Raises ServiceError `locked`, `bad_config`."""
    if file == "-":
        return _of_bytes(sys.stdin.buffer.read(_READ_SIZE), "standard input")
    path = Path(file)
    try:
        found = path.stat()
    except OSError as error:
        raise _unreadable(str(path), error) from None
    if stat.S_ISREG(found.st_mode) and stat.S_IMODE(found.st_mode) & 0o077:
        raise ServiceError("bad_config", f"{path} can be read by others", f"mend it with: chmod 600 {path}")
    return _of_bytes(_read(path), str(path))


def ask_passphrase(prompt: str) -> bytes:
    """Ask at the terminal, which does not show what is typed. Raises ServiceError `locked` where there is none."""
    if not is_terminal():
        raise ServiceError(
            "locked",
            "a passphrase is needed, and there is no terminal to ask at",
            f"name a file that holds it: --passphrase-file FILE, or {FILE_VARIABLE} (docs/communities/security.md)",
        )
    return _of_bytes(
        getpass.getpass(in_language(prompt)).encode("utf-8", "surrogateescape"), "what was typed", empty=True
    )


def ask_new_passphrase(*, may_be_empty: bool = False) -> bytes:
    """Ask for a new passphrase, typed twice, until both are the same. Raises ServiceError `bad_request`, `locked`."""
    if may_be_empty and is_terminal():
        print(in_language(_PURPOSE), file=sys.stderr)
    prompt = "Passphrase (empty: none, for a trial): " if may_be_empty else "New passphrase: "
    for _ in range(_TRIES):
        first = ask_passphrase(prompt)
        if may_be_empty and not first:
            return first
        try:
            check_new(first)
        except ServiceError as error:
            said = f"{in_language(error.message)}; {in_language(error.advice)}"
        else:
            if ask_passphrase("The same again: ") == first:
                return first
            said = in_language("the two passphrases differ")
        print(f"{in_language('Again')}: {said}.", file=sys.stderr)
    raise ServiceError(
        "bad_request", f"no passphrase was typed twice in {_TRIES} tries", "nothing was changed"
    )


def check_new(passphrase: bytes) -> None:
    """Refuse what guessing would find at once. Raises ServiceError `bad_request`."""
    if len(passphrase.decode("utf-8")) < PASSPHRASE_LENGTH_MIN:
        raise ServiceError(
            "bad_request",
            f"a passphrase has at least {PASSPHRASE_LENGTH_MIN} characters",
            "choose a longer one: four random words, say",
        )


def is_terminal() -> bool:
    """Return True if somebody can be asked."""
    return sys.stdin.isatty()


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_READ_SIZE)
    except OSError as error:
        raise _unreadable(str(path), error) from None


def _of_bytes(content: bytes, name: str, *, empty: bool = False) -> bytes:
    line = content.removeprefix(BOM_UTF8).removesuffix(b"\n").removesuffix(b"\r")
    try:
        text = unicodedata.normalize("NFC", line.decode("utf-8"))
    except UnicodeDecodeError:
        raise ServiceError(
            "bad_request", f"the passphrase of {name} is not UTF-8 text", "write it in UTF-8"
        ) from None
    if len(line) > PASSPHRASE_SIZE_MAX or (not line and not empty):
        raise ServiceError(
            "bad_request",
            f"the passphrase of {name} has not 1 to {PASSPHRASE_SIZE_MAX} bytes",
            "see that it holds the passphrase and nothing else",
        )
    return text.encode()


def _unreadable(name: str, error: OSError) -> ServiceError:
    return ServiceError("locked", f"no passphrase can be read: {error}", f"see that {name} is there")
