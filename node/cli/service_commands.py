"""uninstall, and a node as a service: systemd starts its daemon with the login."""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from node.cli.answers import Outcome, prints
from node.cli.printing import calendar_text, is_terminal, say_wrapped
from node.cli.shared import agrees, client, say, settings
from node.observe.sentences import standing_sentence
from node.runtime.errors import ServiceError
from node.runtime.wording import date_text, size_text

if TYPE_CHECKING:  # types of answers: `ravel --help` must be quick
    from node.home.service import Service
    from ravel.home import RunFile
    from ravel.types.repos import RepoView

_KEPT: Final = {
    "passphrase": "sealed with a passphrase",
    "keyring": "sealed with a key in the system's keyring",
    "none": "in the clear",
}
_ALONE: Final = frozenset({"unheld", "unheld_unknown", "unfetched_files"})
"""Parts of a standing by which this may be the only computer that has something."""
_PARTS: Final = ("service", "home")


def service_passphrase(protection: str, file: str | None) -> Path | None:
    """Return the file with the passphrase of a service; None if it needs none. Raises ServiceError."""
    if protection != "passphrase":
        return None
    path = None if file in (None, "-") else Path(file or "").absolute()
    if path is None or not path.is_file():
        raise ServiceError(
            "bad_request",
            "nobody is there to type a passphrase when the service starts",
            "name a file that only you can read: ravel --passphrase-file FILE up --service; or keep the keys another way: "
            "`ravel key seal --keyring` or `ravel key unseal`",
        )
    return path


def start_service(
    folder: Path, passphrase_file: str | None, tell: Callable[[str], None], timeout: float
) -> "tuple[RunFile, Service, bool]":
    """Let systemd run a folder's daemon; return the daemon, its service, and True if it was started now.

    A daemon that runs otherwise is stopped first. Raises ServiceError.
    """
    from node.home.identity import read_keys
    from node.home.service import service_of, unit_text
    from node.home.starting import stop_daemon, wait_for_daemon
    from ravel.home import is_locked

    text = unit_text(folder, service_passphrase(read_keys(folder).protection, passphrase_file))
    service = service_of(folder)
    is_up = service.is_installed and service.is_active
    if is_up and is_locked(folder) and service.path.read_text(encoding="utf-8") == text:
        return wait_for_daemon(folder, tell, timeout), service, False
    if is_up:
        service.stop()
    else:
        stop_daemon(folder, timeout)
    service.install(text)
    return wait_for_daemon(folder, tell, timeout), service, True


def service_note(service: "Service") -> str:
    """Say when a service runs, and how it is undone."""
    from node.home.service import lingers

    logged_out = (
        "It runs also while you are not logged in (lingering is on)."
        if lingers()
        else "It stops with your last logout; `loginctl enable-linger` lets your services run without a login (lingering)."
    )
    return (
        f"systemd starts it with each login: {service.path}\n{logged_out}\n"
        "`ravel uninstall` removes the service."
    )


def _print_uninstalled(shown: Mapping[str, Any]) -> None:
    if "service" in shown["removed"]:
        say_wrapped("Removed the service.")
    if not shown["removed"]:
        say_wrapped("Nothing was removed.")
    if "home" not in shown["removed"]:
        return
    if shown["gone"]:
        say_wrapped(f"Removed {shown['home']}.")
        return
    stays = f"Others stay there: {', '.join(shown['others'])}." if shown["others"] else "The folder stays."
    say_wrapped(f"Removed Ravel's files from {shown['home']}. {stays}")


@prints(_print_uninstalled)
def uninstall(
    context: typer.Context,
    yes: Annotated[
        list[str] | None,
        typer.Option(
            "--yes", metavar="service|home", help="Remove this part without asking; may be repeated."
        ),
    ] = None,
) -> Outcome:
    """Say what Ravel keeps where on this computer and what would be lost, and remove what you confirm, each part by itself.

    The parts are the service of `ravel up --service` and the node's folder with keys and store. Without a terminal only
    what --yes names is removed. The program stays: remove it as you installed it.
    """
    from node.care.uninstall import find_installed, remove_home
    from node.home.service import check_systemd, service_of
    from node.home.starting import stop_daemon

    wanted = set(yes or ())
    if unknown := wanted - set(_PARTS):
        raise typer.BadParameter(f"{', '.join(sorted(unknown))} is no part: say {' or '.join(_PARTS)}")
    folder = settings(context).home
    found = find_installed(folder)
    repos = _list_repos(context) if found.running else None
    _say_parts(asdict(found), repos)
    removed: list[str] = []
    is_gone = False
    service = service_of(folder)
    if found.service is not None and _is_wanted("service", wanted, f"Stop and remove {found.service}?"):
        check_systemd(folder)
        service.remove()
        removed.append("service")
    if service.is_installed and "home" in wanted:
        raise ServiceError(
            "bad_request",
            "the service starts what is in the folder",
            "ravel uninstall --yes service --yes home",
        )
    # A folder whose service stays is not asked about.
    if not service.is_installed and _is_wanted(
        "home", wanted, f"Delete {folder}, with your key and all that Ravel keeps there?"
    ):
        stop_daemon(folder)
        is_gone = remove_home(folder)
        removed.append("home")
    alone = None if repos is None else [one["repo"] for one in repos if _is_alone(one)]
    answer = {**asdict(found), "alone": alone, "removed": removed}
    return Outcome(answer, shown={**answer, "gone": is_gone})


def _list_repos(context: typer.Context) -> "list[RepoView] | None":
    try:
        return client(context).list_repos()["repos"]
    except ServiceError:  # a daemon that answers no more can be removed too
        return None


def _say_parts(found: Mapping[str, Any], repos: "list[RepoView] | None") -> None:
    """Print on stderr where the node's parts are, and what would be lost with them."""
    sizes = f"{size_text(found['size'])}, of which the store has {size_text(found['store_size'])}"
    say(f"folder   {found['home']}: {sizes}; keys {_KEPT[found['protection']]}")
    for name, what in (("database", "store"), ("exports", "exports")):
        if found[name]:
            say(f"{what:<8} {found[name]}: stays")
    say(f"service  {found['service'] or 'none'}")
    say("program  stays; as you installed it: `uv tool uninstall ravel-node`, or pipx, or delete its folder")
    say("")
    say("Who deletes the folder loses:")
    say("  the key, unless you have the 24 words on paper: `ravel key words` prints them")
    if repos is None:
        say(
            "  what no other computer has. Only a running node can tell what that is: `ravel up`, then `ravel status`"
        )
        return
    when = calendar_text if is_terminal() else date_text
    for one in filter(_is_alone, repos):
        say(f"  {one['name'] or one['repo']}: {standing_sentence(one['standing'], when)}")
    if not any(map(_is_alone, repos)):
        say("  nothing else, as far as known: other computers have all that you wrote")


def _is_alone(repo: "RepoView") -> bool:
    return any(part["code"] in _ALONE for part in repo["standing"]["parts"])


def _is_wanted(part: str, wanted: set[str], question: str) -> bool:
    from node.home.passphrases import is_terminal as can_ask

    if part in wanted:
        return True
    return can_ask() and not wanted and agrees(question)
