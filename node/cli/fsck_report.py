"""Prints the results of `ravel fsck`: findings, repairs done, and advice."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Final

from node.cli.shared import print_fields
from ravel.characters import display_safe

if TYPE_CHECKING:  # commands that check nothing do not load it
    from node.care.repair import Repair
    from storage.check.check_integrity import CheckFindings

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


def findings_report(findings: "CheckFindings") -> dict[str, object]:
    """What a check found, for `--json`."""
    return {
        "checked": dict(findings.checked),
        "problems": findings.kinds.total(),
        "kinds": dict(findings.kinds),
        "shown": [asdict(problem) for problem in findings.problems],
    }


def repair_report(repair: "Repair", *, dry_run: bool) -> dict[str, object]:
    """What a repair did, for `--json`."""
    return {
        "dry_run": dry_run,
        "found": dict(repair.found.kinds),
        "changed": dict(repair.changed),
        "damaged": {"commits": repair.damaged.commits, "blocks": repair.damaged.blocks},
        "advice": {kind: _ADVICE.get(kind, _ELSE) for kind in repair.left.kinds},
        "copy": None if repair.copy is None else str(repair.copy),
    }


def print_repair(repair: "Repair", *, dry_run: bool) -> None:
    """What a repair did, for people."""
    print_fields((f"found {kind}", count) for kind, count in repair.found.kinds.items())
    done = "would change" if dry_run else "changed"
    print_fields((f"{done} {name}", count) for name, count in repair.changed.items())
    if not repair.found.kinds:
        print("there is nothing to repair")
    elif repair.copy is not None:
        print(display_safe(f"the database as it was: {repair.copy}"))
    elif not repair.changed:
        print("nothing of it can be put right here")
    if repair.left.kinds:
        print("what is left:")


def print_findings(findings: "CheckFindings", *, is_repaired: bool) -> None:
    """What a check found, for people; after a repair with what to do about the rest."""
    print_fields((f"checked {name.replace('_', ' ')}", count) for name, count in findings.checked.items())
    for problem in findings.problems:
        print(display_safe(f"{problem.kind}: {problem.about}: {problem.detail}"))
    advice = {_ADVICE.get(kind, _ELSE if is_repaired else _REPAIR) for kind in findings.kinds}
    for one in sorted(advice):
        print(f"what to do: {one}")
    print(f"{findings.kinds.total()} problems" if findings.kinds else "all is as it must be")
