"""CLI: backup, restore, fsck, gc, doctor, debug."""

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from node.cli import words
from node.cli.answers import Outcome, Table, advice_of, print_fields, prints
from node.cli.hints import as_called
from node.cli.printing import is_terminal, is_verbose, paint, say_wrapped, terminal_width, wrap
from node.cli.shared import settings, unlocked
from node.runtime.errors import ERROR_KINDS, EXIT_OK, LOST_STORE_ADVICE, ServiceError
from node.runtime.language import in_language
from node.runtime.wording import counted, date_text
from ravel.characters import display_safe

if TYPE_CHECKING:  # commands that check nothing do not load it
    from node.care.repair import RepairReport
    from storage.check.check_integrity import CheckFindings

debug = typer.Typer(no_args_is_help=True, help="Collect information for support.")

_ADVICE: Final = {
    "damaged": "let the daemon run, and connect to a peer that follows the branch: `ravel peer add`; "
    "`ravel status` counts what is left",
    "log": "let the daemon run, and connect to a peer that follows your repos, which sends back what it has; "
    "only if there is none: `ravel fsck --accept-loss`",
    "snapshot": "its author wrote it so; nothing of the store is damaged",
}
_ELSE: Final = (
    "restore a backup (`ravel restore`), or fetch the repo from a peer into a new folder "
    "(docs/communities/backups.md)"
)
_REPAIR: Final = "stop the daemon, and: ravel fsck --repair"


def _print_backup(answer: Mapping[str, Any]) -> None:
    if "backups" not in answer:
        words.BACKED_UP(answer)
        return
    for one in answer["backups"]:
        made_at = "" if one["created_at"] is None else f" of {date_text(one['created_at'])}"
        print(display_safe(f"{one['path']}{made_at}: {counted(len(one['problems']), 'problem')}"))
        for problem in one["problems"]:
            print(display_safe(f"  {problem}"))
    if answer["problems"]:
        say_wrapped(
            "what to do: remove the files that are named, and back up again: what the node still has is written anew"
        )
    else:
        print("all is as it must be")


@prints(_print_backup)
def backup(
    context: typer.Context,
    folder: Annotated[Path, typer.Argument(help="The folder of this node's backups, made if it is absent.")],
    keep: Annotated[
        int | None,
        typer.Option(min=1, metavar="COUNT", help="Remove older backups: so many stay. --check first."),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing: read what all backups in the folder need.")
    ] = False,
) -> Outcome:
    """Write a backup of the node (store, keys, configuration) into a folder of backups. The daemon may run.

    What the folder has is not written again. Each backup has a folder in it, named by a number and the date, needs no other
    backup, and appears when it is whole. One may be removed by hand; the next run frees what it alone needed. Before you
    remove any, have --check read the rest.
    The keys in it are as they are in the node's folder: sealed, or in the clear.
    """
    from node.care.backup import check_backups, create_backup
    from node.cli.progress import show_progress

    if check and keep is not None:
        raise typer.BadParameter("--keep does not go with --check")
    with show_progress("read", "byte", None) as progress:
        if not check:
            home = settings(context).home
            made = create_backup(home, folder, int(time.time()), keep=keep, progress=progress)
            return Outcome(made.as_json())
        found = check_backups(folder, progress)
    problems = sum(len(one.problems) for one in found)
    listed = [{**asdict(one), "path": str(one.path)} for one in found]
    code = ERROR_KINDS["damaged"].exit_code if problems else EXIT_OK
    return Outcome({"path": str(folder), "backups": listed, "problems": problems}, exit_code=code)


def _print_restored(shown: tuple[Mapping[str, object], str]) -> None:
    answer, advice = shown
    print_fields(answer.items())
    print(as_called(advice))


@prints(_print_restored)
def restore(
    context: typer.Context,
    source: Annotated[
        Path,
        typer.Argument(metavar="BACKUP", help="A folder of backups, for the newest; or one of those in it."),
    ],
    storage_url: Annotated[
        str | None, typer.Option(help='Another database than the backup\'s; "" for a file in the folder.')
    ] = None,
    is_latest: Annotated[
        bool,
        typer.Option(
            "--latest",
            help="Declare that nothing was written since the backup, so that the node writes without asking a peer.",
        ),
    ] = False,
) -> Outcome:
    """Create a node in --home from a backup. The folder must be absent or empty. Every file is checked first.

    A PostgreSQL database must be empty, too. With --storage-url a store moves from one database to another.
    It is the same node and the same user: never run it beside the one that the backup was made of.
    It writes to a repo once a peer that follows the repo has been met, for a place of your feed that was used since would be
    used twice. With --latest it writes at once.
    """
    from node.care.backup import restore_backup
    from ravel.home import command_for

    home = settings(context).home
    made = restore_backup(source, home, storage_url, is_latest=is_latest)
    lines = [f"\nThis is the node as it was at {date_text(made.created_at)}, with its keys."]
    if not is_latest:
        lines.append(
            "It writes to a repo once it has met a peer that follows it. If there is none: ravel fsck --accept-loss"
        )
    if storage_url is not None:
        lines.append(
            f"First name the database that you gave:  {command_for(home)} config set storage.url URL"
        )
    lines.append(f"Start it with:  {command_for(home)} up")
    return Outcome(made.as_json(), shown=(made.as_json(), "\n".join(lines)))


@dataclass(frozen=True, slots=True)
class _Checked:
    """The result of `ravel fsck`: findings, and the repair where one was made."""

    left: "CheckFindings"
    repair: "RepairReport | None" = None
    dry_run: bool = False
    is_accepted: bool = False
    """The loss of a store that is not there was accepted."""


def _print_checked(checked: _Checked) -> None:
    if checked.is_accepted:
        say_wrapped("the loss is accepted: the next start makes an empty store")
        return
    if checked.repair is not None:
        _print_repair(checked.repair, dry_run=checked.dry_run)
    _print_findings(checked.left, is_repaired=checked.repair is not None)


@prints(_print_checked)
def fsck(
    context: typer.Context,
    repair: Annotated[
        bool, typer.Option("--repair", help="Repair what can be repaired here, and ask peers for the rest.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="With --repair: show what it would do, and change nothing.")
    ] = False,
    accept_loss: Annotated[
        bool,
        typer.Option("--accept-loss", help="Write again although writes were lost and no peer was asked."),
    ] = False,
) -> Outcome:
    """Check the whole store: hashes, references, signatures, verdicts, ranks, heads and counts.

    It reads one moment of the store, beside the daemon or without one, and changes nothing.
    With --repair, for which the daemon must be stopped, a copy of the database is kept, what follows from commits is made
    again, and damaged blocks are taken out. The daemon asks peers for them, once it runs and is connected to any.
    With --accept-loss, for which the daemon must be stopped too, a node whose log was damaged writes again before it has met
    a peer. Where a peer has commits of yours that were lost here, your next ones fork your feed, which everybody sees.
    """
    from node.care.fsck import check_store
    from node.care.repair import accept_loss as accept_loss_of
    from node.care.repair import repair_store
    from node.home.folder_mark import check_store_stayed
    from node.home.home import open_home, room_advice
    from storage.check.check_integrity import CheckFindings
    from storage.engine.database import LostStore, NoStore, StorageError

    if dry_run and not repair:
        raise typer.BadParameter("--dry-run goes with --repair")
    home = open_home(settings(context).home)
    store_key = unlocked(context).store_key
    report: dict[str, object] = {}
    try:
        if accept_loss:
            accept_loss_of(home.path)
        check_store_stayed(home.path)
        if repair:
            done = repair_store(home.path, store_key, home.storage_url, dry_run=dry_run)
            checked = _Checked(done.left, done, dry_run)
            report = {"repair": _repair_report(done, dry_run=dry_run)}
        else:
            checked = _Checked(check_store(home.path, store_key, home.storage_url))
    except LostStore as error:
        raise ServiceError("storage_failed", str(error), LOST_STORE_ADVICE) from None
    except NoStore:
        if not accept_loss:
            raise ServiceError(
                "storage_failed", "there is no store yet", "the next start makes one: ravel up"
            ) from None
        checked = _Checked(CheckFindings(), is_accepted=True)
    except (StorageError, OSError) as error:
        advice = room_advice(home.path) or "restore a backup: ravel restore BACKUP"
        raise ServiceError("storage_failed", str(error), advice) from None
    code = ERROR_KINDS["damaged"].exit_code if checked.left.kinds else EXIT_OK
    return Outcome({**_findings_report(checked.left), **report}, shown=checked, exit_code=code)


def _findings_report(findings: "CheckFindings") -> dict[str, object]:
    return {
        "checked": dict(findings.checked),
        "problems": findings.kinds.total(),
        "kinds": dict(findings.kinds),
        "shown": [asdict(problem) for problem in findings.problems],
    }


def _repair_report(repair: "RepairReport", *, dry_run: bool) -> dict[str, object]:
    return {
        "dry_run": dry_run,
        "found": dict(repair.found.kinds),
        "changed": dict(repair.changed),
        "damaged": {"commits": repair.damaged.commits, "blocks": repair.damaged.blocks},
        "advice": {kind: _ADVICE.get(kind, _ELSE) for kind in repair.left.kinds},
        "copy": None if repair.copy is None else str(repair.copy),
    }


def _print_repair(repair: "RepairReport", *, dry_run: bool) -> None:
    print_fields((f"found {kind}", count) for kind, count in repair.found.kinds.items())
    done = "would change" if dry_run else "changed"
    print_fields((f"{done} {name}", count) for name, count in repair.changed.items())
    if not repair.found.kinds:
        say_wrapped("there is nothing to repair")
    elif repair.copy is not None:
        print(display_safe(f"the database as it was: {repair.copy}"))
    elif not repair.changed:
        say_wrapped("nothing of it can be put right here")
    if repair.left.kinds:
        print("what is left:")


def _print_findings(findings: "CheckFindings", *, is_repaired: bool) -> None:
    print_fields((f"checked {name.replace('_', ' ')}", count) for name, count in findings.checked.items())
    for problem in findings.problems:
        print(display_safe(f"{problem.kind}: {problem.about}: {problem.detail}"))
    advice = {_ADVICE.get(kind, _ELSE if is_repaired else _REPAIR) for kind in findings.kinds}
    for one in sorted(advice):
        print(f"what to do: {as_called(one)}")
    print(counted(findings.kinds.total(), "problem") if findings.kinds else "all is as it must be")


@prints(words.COLLECTED)
def collect(
    context: typer.Context,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be deleted, and delete nothing.")
    ] = False,
    removed: Annotated[
        bool,
        typer.Option(
            "--removed", help="Also delete the content of files that were removed from their branch."
        ),
    ] = False,
    quarantine: Annotated[
        bool, typer.Option("--quarantine", help="Also delete what starts and repairs moved to quarantine.")
    ] = False,
) -> Mapping[str, object]:
    """Delete from the store what no commit and no file needs. Stop the daemon first, except for --dry-run.

    With erase_after_days in the configuration, bodies that a compaction let go that long ago are erased before.
    Where a quarter of the database's file is unused then, it is written anew without that.

    A pack of which a quarter is not needed is written anew without that. A removed file whose removal turns out void has
    no content then.
    """
    from node.content.erasing import Erased, erase_store, measure_erasable
    from node.home.home import hold_content, lock_home, open_home
    from protocol.crypto.keys import StoreKey
    from storage.blobs.garbage_collection import collect_garbage, find_garbage
    from storage.engine.database import StorageError
    from storage.engine.quarantine import empty_quarantine, measure_quarantine
    from storage.engine.vacuum import estimate_vacuum, measure_unused, vacuum_store
    from storage.repos.repos import DAY_MS

    opened = open_home(settings(context).home)
    home, url, days = opened.path, opened.storage_url, opened.config.storage.erase_after_days
    now_ms = time.time_ns() // 1_000_000
    # What is erased is read, garbage is not.
    store_key = unlocked(context).store_key if days else StoreKey(b"")
    erased = Erased(0, 0)
    try:
        if dry_run:
            with hold_content(home, alone=False):
                if days:
                    erased = measure_erasable(home, store_key, now_ms - days * DAY_MS, url)
                garbage = find_garbage(home, url, keep_removed=not removed)
                shrunk = estimate_vacuum(home, url, erased.size + garbage.block_size)
                aside = measure_quarantine(home)
        else:
            with lock_home(home), hold_content(home, alone=True):
                unused = measure_unused(home, url)
                if days:
                    erased = erase_store(home, store_key, now_ms - days * DAY_MS, now_ms, url)
                garbage = collect_garbage(home, url, keep_removed=not removed)
                shrunk = vacuum_store(home, url, unused + garbage.block_size)
                aside = empty_quarantine(home) if quarantine else measure_quarantine(home)
    except (StorageError, OSError) as error:
        raise ServiceError("storage_failed", str(error), "`ravel fsck` tells more") from None
    return {
        "erased": erased.bodies,
        "erased_size": erased.size,
        "blocks": garbage.blocks,
        "block_size": garbage.block_size,
        "packs": len(garbage.packs),
        "pack_size": garbage.pack_size,
        "dead_size": garbage.dead_size,
        "shrunk_size": shrunk.size,
        "not_shrunk_because": shrunk.because,
        "quarantine_size": aside.size,
        "quarantine_deleted": quarantine and not dry_run,
        "dry_run": dry_run,
    }


_CHECKS = Table("checks", ("check", "name"), "state", ("what was seen", "detail"), ("what to do", advice_of))


class _DoctorPrinter:
    """Printer of checks: on a terminal those that want a look; in a pipe and where all is asked for, each."""

    has_more = True

    def __call__(self, answer: "dict[str, Any]") -> None:
        """Print them."""
        if not is_terminal() or is_verbose():
            _CHECKS(answer)
            return
        bad = [one for one in answer["checks"] if one["state"] != "ok"]
        fine = len(answer["checks"]) - len(bad)
        said = counted(fine, "check is fine", "checks are fine")
        if not bad:
            say_wrapped(f"All {said}.", "well")
            return
        say_wrapped(f"{said}, {counted(len(bad), 'wants', 'want')} a look:")
        bad = [
            {**one, **{part: in_language(one[part]) for part in ("name", "detail", "advice")}} for one in bad
        ]
        width = max(len(one["name"]) for one in bad)
        for one in bad:
            lines = wrap(display_safe(one["detail"]), max(terminal_width() - width - 4, 20))
            for number, line in enumerate(lines):
                before = one["name"] if number == 0 else ""
                print(f"  {before:<{width}}  {paint(line, 'act' if one['state'] == 'problem' else 'look')}")
            for line in (
                wrap(display_safe(as_called(one["advice"])), max(terminal_width() - width - 11, 20))
                if one["advice"]
                else ()
            ):
                print(f"  {'':<{width}}  {line}")


@prints(_DoctorPrinter())
def doctor(context: typer.Context) -> Outcome:
    """Find what stops the node from working now or soon, and say what to do. Changes nothing."""
    from node.care.doctor import PROBLEM, examine

    checks = examine(settings(context).home)
    problems = sum(check.state == PROBLEM for check in checks)
    code = ERROR_KINDS["unhealthy"].exit_code if problems else EXIT_OK
    return Outcome({"checks": [asdict(check) for check in checks], "problems": problems}, exit_code=code)


@debug.command("bundle")
@prints(words.BUNDLED)
def bundle(
    context: typer.Context,
    out: Annotated[Path, typer.Argument(help="The archive to create, such as ravel-debug.tar.gz.")],
) -> Mapping[str, object]:
    """Write an archive for support: checks, status, metrics, latest log lines, configuration, versions. It holds no secrets.

    It holds ids, addresses and names of branches, and no key, token, link or text that anybody wrote.
    """
    from node.care.debug_bundle import write_bundle

    return {"path": str(out), "parts": write_bundle(settings(context).home, out, int(time.time()))}
