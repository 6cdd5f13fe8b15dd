"""Builds a community of ten years, and keeps it as it was when it was one year old.

python -m benchmarks.decade.build FOLDER [--share 1.0] [--seed 1]

Makes `FOLDER/year` and `FOLDER/decade`, each with the folders of a node (`node`, the first admin's, who has all) and of two
relays. Killed at any moment, it goes on where it was when it is started again. `--share 0.1` makes a community of a tenth of
the size: less of everything but years.
"""

import argparse
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Final

import msgspec

from benchmarks.common import note
from benchmarks.decade.life import Life, user_seed
from benchmarks.decade.plan import ADMINS, Event, Plan, Sitting, Sizes
from benchmarks.decade.relays import fill_relay
from node.home.folder_mark import write_mark
from node.home.identity import open_keys
from node.home.key_file import encode_key_file, seal_node_keys
from node.home.private_files import KEYS_NAME, replace_file
from protocol.crypto.signing import public_key
from protocol.ids import PeerId
from tests.e2e.cluster import Peer, run_ravel
from tests.support.keys import no_passphrase

RELAYS: Final = ("relay-1", "relay-2")
_GROWING: Final = "growing"
_SIZES: Final = "sizes.json"
_TOLD_SECONDS: Final = 10.0


def sizes_of(share: float) -> Sizes:
    """Return the sizes of a community that has this share of the whole one's."""
    whole = Sizes()
    some = {one.name: max(1, round(getattr(whole, one.name) * share)) for one in fields(Sizes)}
    small = Sizes(**some)
    return replace(
        small,
        members=max(small.members, 3 * ADMINS),
        left=min(small.left, max(small.members, 3 * ADMINS) - ADMINS - 1),
        epochs=max(small.epochs, small.repos + 2),
        branches=max(small.branches, small.repos),
    )


def build(folder: Path, sizes: Sizes, seed: int, tell: Callable[[str], None] = note) -> None:
    """Build both folders, or what is left of it. Raises ValueError for a folder of other sizes."""
    folder.mkdir(parents=True, exist_ok=True)
    _check_sizes(folder / _SIZES, {**asdict(sizes), "seed": seed})
    growing, year, decade = (folder / name for name in (_GROWING, "year", "decade"))
    if decade.exists():
        return
    plan = Plan(sizes, seed)
    _prepare(growing, seed)
    _grow(growing, plan, plan.year, tell)
    if not year.exists():
        part = folder / "year.part"
        shutil.rmtree(part, ignore_errors=True)
        shutil.copytree(growing, part)
        for name in ("node", *RELAYS):
            write_mark(part / name)  # of a copy, a start would ask peers before anything is written
        part.rename(year)
    _grow(growing, plan, len(plan.events), tell)
    growing.rename(decade)


def _check_sizes(path: Path, wanted: Mapping[str, int]) -> None:
    if not path.exists():
        path.write_bytes(msgspec.json.encode(wanted))
    found = msgspec.json.decode(path.read_bytes())
    if found != wanted:
        raise ValueError(f"{path.parent} is of another community: {found}, not {wanted}")


def _prepare(growing: Path, seed: int) -> None:
    """Make the folders that are not there yet, each in one step."""
    growing.mkdir(exist_ok=True)
    for name in ("node", *RELAYS):
        if (growing / name).exists():
            continue
        part = growing / f"{name}.part"
        shutil.rmtree(part, ignore_errors=True)
        made = Peer(part)
        # No search index: one would be made beside what is measured.
        run_ravel(made, "config", "set", "search.enabled", "false")
        if name in RELAYS:
            run_ravel(made, "config", "set", "relay.enabled", "true")
        else:
            keys = replace(open_keys(part, no_passphrase), user_seed=user_seed(seed, 0))
            replace_file(part / KEYS_NAME, encode_key_file(seal_node_keys(keys, "none", b"")))
        part.rename(growing / name)
    (growing / "late").mkdir(exist_ok=True)


def _grow(growing: Path, plan: Plan, count: int, tell: Callable[[str], None]) -> None:
    """Play so many events, and bring what they made to the relays."""
    began = told = time.perf_counter()
    posts = 0

    def tell_event(event: Event, number: int) -> None:
        nonlocal told, posts
        if isinstance(event.what, Sitting):
            posts += sum(len(run.answers) for run in event.what.runs)
        now = time.perf_counter()
        if now - told >= _TOLD_SECONDS or number + 1 == count:
            told = now
            tell(
                f"event {number + 1} of {len(plan.events)}; {posts} posts in {now - began:.0f} s: "
                f"{posts / (now - began):.0f}/s"
            )

    def tell_topic(done: int, of: int) -> None:
        nonlocal told
        now = time.perf_counter()
        if now - told >= _TOLD_SECONDS:
            told = now
            tell(f"{name}: {done} topics of {of}")

    life = Life(growing / "node", growing / "late", plan)
    try:
        life.play(count, tell_event)
        peer = PeerId(public_key(open_keys(growing / "node", no_passphrase).node_seed))
        for name in RELAYS:
            fill_relay(growing / name, life.replica, peer, tell_topic)
    finally:
        life.close()


def main() -> None:
    """Build."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    began = time.perf_counter()
    build(options.folder, sizes_of(options.share), options.seed)
    note(f"built in {time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
