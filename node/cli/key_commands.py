"""CLI: init and key commands: create and encrypt the keys, and back up the user key to a file or 24 words."""

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from node.cli import words
from node.cli.answers import Outcome, Says, Table, prints
from node.cli.founding import Founding, check_founded, wanted_protection
from node.cli.inputs import read_typed
from node.cli.shared import say, settings, unlocked
from node.runtime.errors import EXIT_OK, ServiceError, kind_of
from node.runtime.language import in_language

if TYPE_CHECKING:
    from node.home.key_file import Keys, Protection
    from ravel import Client
    from ravel.home import RunFile

key = typer.Typer(no_args_is_help=True, help="The node's and the user's keys: seal, export and import them.")

PassphraseFlag = Annotated[bool, typer.Option("--passphrase", help="Seal the keys with a passphrase.")]
ClearFlag = Annotated[bool, typer.Option("--clear", help="Store the keys unsealed.")]
KeyringFlag = Annotated[bool, typer.Option("--keyring", help="Seal them with a key in the system's keyring.")]
FromFileOption = Annotated[
    Path | None, typer.Option("--from-file", help="Use the user of a file that `key export` wrote.")
]
FromPassphraseOption = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="A file with that file's passphrase; - for standard input."),
]
NewPassphraseOption = Annotated[
    str | None,
    typer.Option(
        "--new-passphrase-file",
        metavar="FILE",
        help="A file with the new passphrase; - for standard input. By default the command asks.",
    ),
]


def warn_of_clear_keys() -> None:
    """Say what keys in the clear are open to, and how to end that."""
    say(
        "warning: the keys lie in the clear: anyone who copies the folder is this user, and reads all that it reads."
    )
    say("         Seal them with `ravel key seal`, or see that the disk is encrypted.")


BACK_NOTE = (
    "Then a member's link brings a repo back. You can write there once a peer that follows it was compared."
)
"""Text for a user who comes back by words or a file."""


@prints(Says("{said}"))
def init(
    context: typer.Context,
    name: Annotated[str, typer.Option(help="Your name, as members of your repos will see it.")] = "",
    listen: Annotated[str | None, typer.Option(help="host:port for other nodes (*:7474).")] = None,
    api: Annotated[str | None, typer.Option(help="host:port of the local API (127.0.0.1:7475).")] = None,
    storage_url: Annotated[
        str | None, typer.Option(help="A PostgreSQL database for the store (a file in the folder).")
    ] = None,
    passphrase: PassphraseFlag = False,
    keyring: KeyringFlag = False,
    clear: ClearFlag = False,
    words: Annotated[
        bool,
        typer.Option(
            "--words", help="Use the user of the 24 words of `key words`; read them from standard input."
        ),
    ] = False,
    from_file: FromFileOption = None,
    from_passphrase_file: FromPassphraseOption = None,
) -> Outcome:
    """Create a node in the folder: keys, token, configuration. Existing files stay unchanged.

    How the keys are kept is asked on a terminal, unless it is said or a passphrase is given (--passphrase-file).
    """
    from node.home.home import create_home
    from node.home.identity import read_keys
    from node.home.private_files import has_keys
    from ravel.home import command_for

    folder = settings(context).home
    is_new = not has_keys(folder)
    keys_are_given = words or from_file is not None
    if not is_new and keys_are_given:
        raise ServiceError(
            "already_exists",
            f"{folder} has keys already",
            f"where they are unused: {command_for(folder)} up {'--words' if words else '--from-file FILE'}",
        )
    if words and settings(context).passphrase_file == "-":  # noqa: S105  # standard input
        raise ServiceError(
            "bad_request",
            "the words and the passphrase cannot both come by standard input",
            "name a file with the passphrase before the command: --passphrase-file FILE",
        )
    if is_new:
        keys = keys_for(words, from_file, from_passphrase_file)
        protection, secret = choose_protection(context, passphrase, keyring, clear)
        home = create_home(
            folder,
            name=name,
            listen=listen,
            api=api,
            storage=storage_url,
            keys=keys,
            protection=protection,
            passphrase=secret,
            is_recovered=keys_are_given,
        )
    else:
        home = create_home(folder)  # what is missing of it, such as the API's token
        given = (("network.listen", listen), ("api.listen", api), ("storage.url", storage_url))
        wanted = wanted_protection(passphrase=passphrase, keyring=keyring, clear=clear)
        check_founded(home, Founding(name, given, wanted))
    file = read_keys(home.path)
    if is_new and file.protection == "none":
        warn_of_clear_keys()
    answer = {
        "home": str(home.path),
        "config": str(home.config_path),
        "node": file.node,
        "user": file.user,
        "protection": file.protection,
    }
    said = (
        f"Made a node in {folder}." if is_new else f"There is a node in {folder} already; it stays as it is."
    )
    said += f"\nStart it with:  {command_for(home.path)} up"
    if is_new and keys_are_given:
        said += f"\n{BACK_NOTE}"
    return Outcome(answer, shown={**answer, "said": said})


@key.command("show")
@prints(words.KEYS_SHOWN)
def show(context: typer.Context) -> Mapping[str, object]:
    """Show how the keys are stored: sealed by a passphrase or the keyring, or unsealed (none)."""
    from node.home.home import open_home
    from node.home.identity import read_keys

    file = read_keys(open_home(settings(context).home).path)
    answer: dict[str, object] = {"node": file.node, "user": file.user, "protection": file.protection}
    if file.cost is not None:
        answer |= {"memory": file.cost.memory, "passes": file.cost.passes}
    return answer


@key.command("seal")
@prints(words.KEYS_SEALED)
def seal(
    context: typer.Context,
    passphrase: PassphraseFlag = False,
    keyring: KeyringFlag = False,
    new_passphrase_file: NewPassphraseOption = None,
) -> Mapping[str, object]:
    """Seal the keys, with a passphrase by default. A running daemon goes on; its next start asks.

    Copies of the store from before its secrets were sealed are removed.
    """
    if passphrase and keyring:
        raise _one_way()
    keys = _opened(context)
    if keyring:
        return _change(context, keys, "keyring", b"")
    return _change(context, keys, "passphrase", _new_passphrase(new_passphrase_file))


@key.command("change-passphrase")
@prints(words.KEYS_SEALED)
def change_passphrase(
    context: typer.Context, new_passphrase_file: NewPassphraseOption = None
) -> Mapping[str, object]:
    """Seal the keys with another passphrase. Backups and exports keep the one that they were made with."""
    from node.home.home import open_home
    from node.home.identity import read_keys

    if read_keys(open_home(settings(context).home).path).protection != "passphrase":
        raise ServiceError("bad_request", "the keys are not sealed with a passphrase", "use: ravel key seal")
    return _change(context, unlocked(context), "passphrase", _new_passphrase(new_passphrase_file))


@key.command("unseal")
@prints(words.KEYS_UNSEALED)
def unseal(context: typer.Context) -> Mapping[str, object]:
    """Keep the keys in the clear from now on: a machine can then start the node by itself."""
    answer = _change(context, _opened(context), "none", b"")
    warn_of_clear_keys()
    return answer


@key.command("export")
@prints(words.KEY_EXPORTED)
def export(
    context: typer.Context,
    out: Annotated[Path, typer.Argument(help="The file to create.")],
    new_passphrase_file: NewPassphraseOption = None,
) -> Mapping[str, object]:
    """Write the user's key to a file, sealed with a passphrase. `ravel up --from-file` uses it on another node."""
    from node.home.key_file import encode_key_file, seal_user_key
    from node.home.private_files import create_file

    file = seal_user_key(_opened(context).user_seed, _new_passphrase(new_passphrase_file))
    try:
        create_file(out, encode_key_file(file))
    except FileExistsError:
        raise ServiceError("already_exists", f"{out} is there already", "choose another name") from None
    except OSError as error:
        raise ServiceError(
            "storage_failed", f"{out} could not be written: {error}", "choose another place"
        ) from None
    return {"path": str(out), "user": file.user}


def _print_words(answer: Mapping[str, list[str]]) -> None:
    print_words(answer["words"])


def print_words(found: Sequence[str]) -> None:
    """Print the words of a key, six a line, with their numbers."""
    for row in range(0, len(found), 6):
        print("  ".join(f"{row + place:2} {word:<8}" for place, word in enumerate(found[row : row + 6], 1)))


@key.command("words")
@prints(_print_words)
def show_words(context: typer.Context) -> Mapping[str, object]:
    """Print the user's key as 24 words, to be written on paper: another node takes them up by `up --words`.

    Anyone who has the words is this user. They do not change when the passphrase does.
    """
    from node.home.mnemonic import words_of

    return {"words": words_of(_opened(context).user_seed)}


def _describe_refresh(item: Mapping[str, object]) -> str:
    if item["error"] is not None:
        return f"not stated: {item['error']}"
    return "in use" if item["epoch"] is not None else "stated; in use once an admin renews the repo"


@key.command("refresh")
@prints(Table("repos", "name", ("fresh key", _describe_refresh), empty=words.NO_MEMBERSHIP))
def refresh(api: "Client") -> Outcome:
    """State a fresh key in each repo, to which its next secrets are sealed: a stolen copy of this node opens nothing newer.

    Where you are an admin, new secrets follow at once. Elsewhere an admin starts them (`ravel repo renew`), or an admin's
    node does after some days. Use it after a theft, after restoring a backup, and now and then.
    """
    found: list[dict[str, object]] = []
    exit_code = EXIT_OK
    for one in api.list_repos()["repos"]:
        if not one["whole"] or one["permission"] in ("none", "former", "joining", "damaged"):
            continue
        try:
            fresh = api.state_prekey(one["repo"])
            found.append({**fresh, "name": one["name"], "error": None})
        except ServiceError as error:
            found.append({"repo": one["repo"], "name": one["name"], "epoch": None, "error": error.message})
            exit_code = exit_code or kind_of(error).exit_code
    return Outcome({"repos": found}, exit_code=exit_code)


def _opened(context: typer.Context) -> "Keys":
    from node.home.home import open_home

    open_home(settings(context).home)
    return unlocked(context)


def keys_for(words: bool, from_file: Path | None, passphrase_file: str | None) -> "Keys":
    """Make keys, with the user key of words or of a file where that is asked."""
    from node.home.key_file import fresh_keys, read_user_seed
    from node.home.mnemonic import seed_of
    from node.home.passphrases import ask_passphrase, is_terminal, read_passphrase
    from protocol.limits.files import KEY_FILE_SIZE_MAX
    from protocol.limits.users import WORDS_SIZE_MAX
    from ravel.home import read_private

    if words and from_file is not None:
        raise ServiceError("bad_request", "a user comes by words or by a file, not by both", "choose one")
    if words:
        return fresh_keys(seed_of(_ask_words() if is_terminal() else read_typed(WORDS_SIZE_MAX)))
    if from_file is not None:
        if not from_file.exists():
            raise ServiceError(
                "bad_input", f"{from_file} is not there", "give a file that `ravel key export` wrote"
            )

        def passphrase() -> bytes:
            if passphrase_file is None:
                return ask_passphrase(f"Passphrase of {from_file}: ")
            return read_passphrase(passphrase_file)

        content = read_private(from_file, KEY_FILE_SIZE_MAX)
        return fresh_keys(read_user_seed(content, str(from_file), passphrase))
    return fresh_keys()


def take_up(
    folder: Path, ask_keys: Callable[[], "Keys"], passphrase: bytes | None, past_run: str, timeout: float
) -> "RunFile":
    """Ask for keys, let a running daemon become their user, and wait until it has restarted.

    Raises ServiceError `already_exists` where its own key was used, before anything is typed.
    """
    from node.home.identity import key_in_use
    from node.home.mnemonic import words_of
    from node.home.starting import wait_for_daemon
    from ravel import connect

    api = connect(folder)
    try:
        if not api.show_keys()["unused"]:
            raise key_in_use(folder)
        words = " ".join(words_of(ask_keys().user_seed))
        api.recover_user(words=words, passphrase=(passphrase or b"").decode())
    finally:
        api.close()
    return wait_for_daemon(folder, say, timeout, past_run=past_run)


def _ask_words() -> str:
    """Read the words as they are typed, on as many lines as on the paper. An empty line ends them early."""
    from node.home.mnemonic import WORD_COUNT, split_words
    from node.home.passphrases import ask_passphrase
    from protocol.limits.users import WORDS_SIZE_MAX

    print(in_language("The 24 words, in one line or several, which are not shown:"), file=sys.stderr)
    text = ""
    while (count := len(split_words(text))) < WORD_COUNT and len(text) <= WORDS_SIZE_MAX:
        line = ask_passphrase(f"{count} of {WORD_COUNT}: ").decode()
        if not line:
            break
        text += f"{line}\n"
    return text


def choose_protection(
    context: typer.Context, passphrase: bool, keyring: bool, clear: bool
) -> tuple["Protection", bytes]:
    """Return how new keys are kept, and the passphrase where they are sealed with one."""
    import os

    from node.home.passphrases import ask_new_passphrase, check_new, given_passphrase, is_terminal

    if passphrase + keyring + clear > 1:
        raise _one_way()
    if clear:
        return "none", b""
    if keyring:
        return "keyring", b""
    given = given_passphrase(settings(context).passphrase_file, os.environ)
    if given is not None:
        check_new(given)
        return "passphrase", given
    if not passphrase and not is_terminal():
        raise ServiceError(
            "bad_request",
            "it is not said how the keys are to be kept, and there is no terminal to ask at",
            "say --clear or --keyring, or name a file with a passphrase before the command: --passphrase-file FILE",
        )
    typed = ask_new_passphrase(may_be_empty=not passphrase)
    return ("passphrase", typed) if typed else ("none", b"")


def _new_passphrase(file: str | None) -> bytes:
    from node.home.passphrases import ask_new_passphrase, check_new, read_passphrase

    if file is None:
        return ask_new_passphrase()
    found = read_passphrase(file)
    check_new(found)
    return found


def _change(
    context: typer.Context, keys: "Keys", protection: "Protection", passphrase: bytes
) -> dict[str, object]:
    from node.home.identity import change_protection

    folder = settings(context).home
    try:
        removed = change_protection(folder, keys, protection, passphrase)
    except OSError as error:
        raise ServiceError(
            "storage_failed", f"{folder} cannot be written: {error}", "check space and permissions there"
        ) from None
    return {"protection": protection, "removed": [str(path) for path in removed]}


def _one_way() -> ServiceError:
    return ServiceError("bad_request", "the keys are kept in one way", "choose one of the options")
