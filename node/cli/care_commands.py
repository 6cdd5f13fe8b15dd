"""CLI: backup, restore, fsck, gc, doctor, debug."""

import time
from pathlib import Path
from typing import Annotated

import typer

from node.cli.fsck_report import findings_report, print_findings, print_repair, repair_report
from node.cli.shared import (
    JsonOption,
    iso_time,
    print_answer,
    print_fields,
    print_json,
    print_table,
    settings,
    unlocked,
)
from node.runtime.errors import ERROR_KINDS, LOST_STORE_ADVICE, ServiceError

debug = typer.Typer(no_args_is_help=True, help="Collect information for support.")


def backup(
    context: typer.Context,
    out: Annotated[Path, typer.Argument(help="The folder to create.")],
    as_json: JsonOption = False,
) -> None:
    """Write a backup of the node (store, keys, configuration). The daemon may run.

    The keys in it are as they are in the folder: sealed, or in the clear. It appears under its name when it is whole.
    """
    from node.care.backup import create_backup

    made = create_backup(settings(context).home, out, int(time.time()))
    print_json(made.as_json()) if as_json else print_fields(made.as_json().items())


def restore(
    context: typer.Context,
    source: Annotated[Path, typer.Argument(metavar="BACKUP", help="A folder that `ravel backup` wrote.")],
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
    as_json: JsonOption = False,
) -> None:
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
    if as_json:
        print_json(made.as_json())
        return
    print_fields(made.as_json().items())
    print(f"\nThis is the node as it was at {iso_time(made.created_at)} (UTC), with its keys.")
    if not is_latest:
        print(
            "It writes to a repo once it has met a peer that follows it. If there is none: ravel fsck --accept-loss"
        )
    if storage_url is not None:
        print(f"First name the database that you gave:  {command_for(home)} config set storage.url URL")
    print(f"Start it with:  {command_for(home)} up")


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
    as_json: JsonOption = False,
) -> None:
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
    from node.home.home import open_home, room_advice
    from storage.check.check_integrity import CheckFindings
    from storage.engine.database import LostStore, NoStore, StorageError

    if dry_run and not repair:
        raise typer.BadParameter("--dry-run goes with --repair")
    home = open_home(settings(context).home)
    store_key = unlocked(context).store_key
    try:
        if accept_loss:
            accept_loss_of(home.path)
        if repair:
            done = repair_store(home.path, store_key, home.storage_url, dry_run=dry_run)
            left = done.left
            report = {"repair": repair_report(done, dry_run=dry_run)}
        else:
            done, left, report = None, check_store(home.path, store_key, home.storage_url), {}
    except LostStore as error:
        raise ServiceError("storage_failed", str(error), LOST_STORE_ADVICE) from None
    except NoStore:
        if not accept_loss:
            raise ServiceError(
                "storage_failed", "there is no store yet", "the next start makes one: ravel up"
            ) from None
        if as_json:
            print_json(findings_report(CheckFindings()))
        else:
            print("the loss is accepted: the next start makes an empty store")
        return
    except (StorageError, OSError) as error:
        advice = room_advice(home.path) or "restore a backup: ravel restore BACKUP"
        raise ServiceError("storage_failed", str(error), advice) from None
    if as_json:
        print_json({**findings_report(left), **report})
    else:
        if done is not None:
            print_repair(done, dry_run=dry_run)
        print_findings(left, is_repaired=repair)
    if left.kinds:
        raise typer.Exit(ERROR_KINDS["damaged"].exit_code)


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
    as_json: JsonOption = False,
) -> None:
    """Delete from the store what no commit and no file needs. Stop the daemon first, except for --dry-run.

    With erase_after_days in the configuration, bodies that a compaction let go that long ago are erased before.
    Where a quarter of the database's file is unused then, it is written anew without that.

    A pack of which something is needed stays whole. A removed file whose removal turns out void has no content then.
    """
    from node.content.erasing import DAY_MS, Erased, erase_store, measure_erasable
    from node.home.home import hold_content, lock_home, open_home
    from protocol.keys import StoreKey
    from storage.blobs.garbage_collection import collect_garbage, find_garbage
    from storage.engine.database import StorageError
    from storage.engine.quarantine import empty_quarantine, measure_quarantine
    from storage.engine.vacuum import estimate_vacuum, measure_unused, vacuum_store

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
    answer = {
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
    print_answer(answer, as_json=as_json)


def doctor(context: typer.Context, as_json: JsonOption = False) -> None:
    """Find what stops the node from working now or soon, and say what to do. Changes nothing."""
    from dataclasses import asdict

    from node.care.doctor import PROBLEM, examine

    checks = examine(settings(context).home)
    problems = sum(check.state == PROBLEM for check in checks)
    if as_json:
        print_json({"checks": [asdict(check) for check in checks], "problems": problems})
    else:
        columns = ("check", "state", "what was seen", "what to do")
        print_table(columns, ((one.name, one.state, one.detail, one.advice) for one in checks))
    if problems:
        raise typer.Exit(ERROR_KINDS["unhealthy"].exit_code)


@debug.command("bundle")
def bundle(
    context: typer.Context,
    out: Annotated[Path, typer.Argument(help="The archive to create, such as ravel-debug.tar.gz.")],
    as_json: JsonOption = False,
) -> None:
    """Write an archive for support: checks, status, metrics, latest log lines, configuration, versions. It holds no secrets.

    It holds ids, addresses and names of branches, and no key, token, link or text that anybody wrote.
    """
    from node.care.bundle import write_bundle

    names = write_bundle(settings(context).home, out, int(time.time()))
    answer = {"path": str(out), "parts": names}
    print_answer(answer, as_json=as_json)
