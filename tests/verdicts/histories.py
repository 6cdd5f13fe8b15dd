"""All makers of histories: the named ones, by families, and the random ones."""

import gzip
import json
from itertools import groupby
from pathlib import Path

from . import (  # noqa: F401  # importing a family registers its cases
    family_apart,
    family_bodies,
    family_branches,
    family_checkpoints,
    family_claims,
    family_commits,
    family_council,
    family_device_removals,
    family_devices,
    family_due,
    family_epochs,
    family_keys,
    family_moves,
    family_order,
    family_places,
    family_prekeys,
    family_publications,
    family_quorums,
    family_readings,
    family_recovery,
    family_rights,
    family_rules,
    scenarios,
)
from .cases import CASES, tell
from .random_histories import random_history

VECTORS = Path(__file__).resolve().parent.parent / "vectors" / "verdicts.json.gz"
OF_EACH_FAMILY = 56
SIZE_MAX = 16_000
# In these Ravel has differed once, or they alone show a rule (M17, M19, Q3, R4, N4, E8): they are always among the vectors.
PINNED = {
    "a checkpoint in the root branch moves nothing",
    "a checkpoint whose approval falls, and that is adopted",
    "a box that only a rejected hand-over has",
    "a device removal beside a device grant by a forerunner that it knows, and by one that it does not",
    "a grant that does not count, and nobody starts the epoch that is due",
    "a key that only a rejected opening gives",
    "a leave of who may hold an epoch that opens the one in use, and a writer starts an epoch beside a note",
    "a leave of who was handed the epoch in use, and a writer starts an epoch beside a note",
    "a proposal that was used up",
    "a second init that acks something",
    "an own box in an init that is rejected whoever holds its key",
    "keys that a rejected init gives, whose own key comes later",
    "a signer whom the quorum has excluded goes on signing",
    "an admin's epoch that was due stays though its author is taken down to writing",
    "ranks",
    "recovery friends out of order, and friends who are no keys",
    "the 15th device, and the 16th",
    "the 64th device grant of a user, and the 65th",
    "the body of an init outside the root branch",
}


def named():
    """All named histories, judged."""
    for _, history in of_families():
        yield history


def of_families():
    """All named histories, each with its family."""
    for history in scenarios.histories():
        yield "scenarios", history
    for entry in CASES:
        yield entry[4].__module__, tell(entry)


def written(families):
    """The text of a file of histories with their families: of each some, evenly among those that are not large."""
    lines = []
    for _, family in groupby(families, key=lambda one: one[0]):
        texts = [(one["name"], json.dumps(one, separators=(",", ":"))) for _, one in family]
        small = [name for name, text in texts if len(text) <= SIZE_MAX]
        count = min(OF_EACH_FAMILY, len(small))
        chosen = PINNED | {small[number * len(small) // count] for number in range(count)}
        lines += [text for name, text in texts if name in chosen]
    return '{"histories": [\n' + ",\n".join(lines) + "\n]}\n"


def write_vectors() -> None:
    """Write the vectors where they are not these: compressed bytes may differ from machine to machine."""
    text = written(of_families()).encode()
    if not VECTORS.exists() or gzip.decompress(VECTORS.read_bytes()) != text:
        VECTORS.write_bytes(gzip.compress(text, mtime=0))


__all__ = ["VECTORS", "named", "of_families", "random_history", "write_vectors", "written"]
