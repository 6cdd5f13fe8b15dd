"""CLI: up and down: a node's daemon in the background, made first where there is none."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from node.cli.answers import Outcome, Says, print_fields, prints
from node.cli.founding import Founding, settle_addresses, wanted_protection
from node.cli.key_commands import (
    BACK_NOTE,
    ClearFlag,
    FromFileOption,
    FromPassphraseOption,
    KeyringFlag,
    PassphraseFlag,
    choose_protection,
    keys_for,
    print_words,
    take_up,
    warn_of_clear_keys,
)
from node.cli.links import passing_note
from node.cli.printing import is_verbose, say_wrapped
from node.cli.service_commands import service_note, service_passphrase, start_service
from node.cli.shared import agrees, say, settings
from node.runtime.errors import ServiceError
from node.runtime.language import in_language

_WORDS_QUESTION = "Write down 24 words that bring you back if this computer is lost?"
TimeoutOption = Annotated[float, typer.Option(min=0, help="Seconds after which the command gives up.")]


def _ready(values: Mapping[str, Any]) -> str:
    said = "Ravel runs." if values["started"] else "Ravel runs, since before."
    return "\n".join(filter(None, (said, values["notes"], values["passing"])))


_LAST = (("open", "all of this in a browser"), ("down", "stop it"))
_MADE = Says(
    _ready,
    ("repo create NAME", "begin something"),
    ("repo join -", "paste a link that you were given"),
    *_LAST,
)
_STARTED = Says(_ready, ("status", "see how it stands"), *_LAST)


class _ReadyPrinter:
    """Printer of a start, and of what people do next: who has a node has begun already."""

    has_more = True

    def __call__(self, shown: Mapping[str, Any]) -> None:
        """Print it."""
        (_MADE if shown["created"] else _STARTED)(shown)
        if is_verbose():
            print_fields((name, value) for name, value in shown.items() if name not in ("notes", "passing"))


@prints(_ReadyPrinter())
def up(
    context: typer.Context,
    name: Annotated[str, typer.Option(help="Of a new node: a name for you.")] = "",
    listen: Annotated[
        str | None,
        typer.Option(help="host:port for other nodes (*:7474). A stopped node gets another one by it."),
    ] = None,
    api: Annotated[
        str | None,
        typer.Option(
            help="host:port of the local API (127.0.0.1:7475). A stopped node gets another one by it."
        ),
    ] = None,
    passphrase: PassphraseFlag = False,
    keyring: KeyringFlag = False,
    clear: ClearFlag = False,
    words: Annotated[
        bool,
        typer.Option("--words", help="Be the user of 24 words again, which are asked for."),
    ] = False,
    from_file: FromFileOption = None,
    from_passphrase_file: FromPassphraseOption = None,
    service: Annotated[
        bool, typer.Option("--service", help="Have systemd start it, now and with each login of yours.")
    ] = False,
    timeout: TimeoutOption = 60,
) -> Outcome:
    """Start the daemon in the background, and wait until it answers. Makes the node where there is none.

    With --words or --from-file, it restores the user of a lost computer, also in place of a key that is unused. On a
    running node it does nothing more. `ravel down` stops the daemon. It starts by itself only with --service, which makes
    a systemd unit of yours; `ravel uninstall` removes that. How a new node's keys are kept is asked on a terminal, unless
    it is said.
    """
    from node.home.home import create_home, open_home
    from node.home.identity import open_keys
    from node.home.mnemonic import words_of
    from node.home.passphrases import is_terminal
    from node.home.private_files import has_keys
    from node.home.service import check_settings, check_systemd
    from node.home.starting import DAEMON_LOG_NAME, start_daemon, wait_for_daemon
    from ravel.home import is_locked

    folder = settings(context).home
    if service:
        check_systemd(folder)
    is_new = not has_keys(folder)
    is_back = words or from_file is not None
    secret = None
    ask_keys = partial(keys_for, words, from_file, from_passphrase_file)
    if is_new:
        keys = ask_keys()
        if not (name or is_back) and is_terminal():
            name = typer.prompt(
                in_language("Your name, as others will see it"), default="", show_default=False
            )
        protection, chosen = choose_protection(context, passphrase, keyring, clear)
        if service:
            service_passphrase(protection, settings(context).passphrase_file)
        try:
            create_home(
                folder,
                name=name,
                listen=listen,
                api=api,
                keys=keys,
                protection=protection,
                passphrase=chosen,
                is_recovered=is_back,
            )
        except ServiceError as error:
            # Another `ravel up` was a moment quicker. Who gave words would be somebody else on that node.
            if is_back or error.code != "already_exists":
                raise
            is_new = False
    if is_new:
        secret = chosen if protection == "passphrase" else None
        if protection == "none":
            warn_of_clear_keys()
    is_started = not is_locked(folder)
    if not is_new:
        wanted = wanted_protection(passphrase=passphrase, keyring=keyring, clear=clear)
        addresses = (("network.listen", listen), ("api.listen", api))
        changes = settle_addresses(
            open_home(folder), Founding(name, addresses, wanted), is_running=not is_started
        )
        for key, before, after in changes:
            say(f"note: {key} is now {after}; it was {before}")
    unit = None
    if secret is None and (service or is_started or is_back):
        secret = _passphrase_of(context, folder)
    if service:
        check_settings(open_home(folder).settings)
        found, unit, is_started = start_service(folder, settings(context).passphrase_file, say, timeout)
    elif is_started:
        found = start_daemon(folder, secret, say, timeout)
    else:
        found = wait_for_daemon(folder, say, timeout)
        _check_version(folder)
    if is_back and not is_new:
        found = take_up(folder, ask_keys, secret, found.run, timeout)
    answer = {
        "home": str(folder),
        "node": found.peer,
        "listen": found.listen,
        "api": f"http://{found.api}",
        "pid": found.holder.pid,
        "log": str(folder / DAEMON_LOG_NAME) if is_started and unit is None else None,
        "service": None if unit is None else str(unit.path),
        "created": is_new,
        "started": is_started,
    }
    configured = open_home(folder).config.network.listen
    passing = passing_note(configured, found.listen) if configured.endswith(":0") else ""
    if is_new and not is_back and is_terminal() and agrees(_WORDS_QUESTION, default=True):
        print_words(words_of(open_keys(folder, lambda: secret or b"").user_seed))
    notes = "" if unit is None else service_note(unit)
    if is_back:
        notes = "\n".join(filter(None, (notes, BACK_NOTE)))
    return Outcome(answer, shown={**answer, "notes": notes, "passing": passing})


def _print_stopped(shown: tuple[int | None, Path, bool]) -> None:
    pid, folder, has_service = shown
    say_wrapped(
        f"No daemon runs in {folder}."
        if pid is None
        else "Stopped. Everything that was acknowledged is on the disk."
    )
    if has_service:
        say_wrapped("It starts again with your next login, as a service.")


@prints(_print_stopped)
def down(context: typer.Context, timeout: TimeoutOption = 60) -> Outcome:
    """Stop the daemon, and wait until it has ended. Everything that was acknowledged is durable."""
    from node.home.home import open_home
    from node.home.service import service_of
    from node.home.starting import stop_daemon

    folder = settings(context).home
    open_home(folder)
    pid = stop_daemon(folder, timeout)
    shown = (pid, folder, service_of(folder).is_installed)
    return Outcome({"stopped": pid is not None, "pid": pid}, shown=shown)


def _check_version(folder: Path) -> None:
    """Raise ServiceError if a daemon of another version runs since before: commands could not read its answers."""
    from node.runtime.version import VERSION
    from ravel import connect
    from ravel.home import command_for

    api = connect(folder)
    try:
        version = api.show_status()["version"]
    except ServiceError as error:
        if error.code != "incompatible":  # it answers, and says itself what it lacks: `ravel doctor` tells
            return
        version = "another"
    finally:
        api.close()
    if version != VERSION:
        which = "another version" if version == "another" else f"version {version}"
        raise ServiceError(
            "incompatible",
            f"the daemon that runs in {folder} is of {which}, and this is {VERSION}",
            f"start it again with this one: {command_for(folder)} down; {command_for(folder)} up",
        )


def _passphrase_of(context: typer.Context, folder: Path) -> bytes | None:
    """Return the passphrase of sealed keys, tried before a daemon is started with it. None where there is none."""
    import os

    from node.home.identity import open_keys, read_keys
    from node.home.passphrases import ask_passphrase, given_passphrase

    if read_keys(folder).protection != "passphrase":
        return None
    given = given_passphrase(settings(context).passphrase_file, os.environ)
    found = ask_passphrase(f"Passphrase of {folder}: ") if given is None else given
    open_keys(folder, lambda: found)
    return found
