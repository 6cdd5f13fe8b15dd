"""Windows of random histories with liars: what they confirm is accepted by a full replica, whatever a source leaves out.

The histories are `tests.histories`'s. A newcomer has all or some of the root branch, and of a branch what a source chose to
send. It trusts owners, admins and nobody who is malicious. Or it has nothing but the founding, and a link that names a head
which a full replica has accepted.
"""

from pathlib import Path
from random import Random
from typing import Final

import pytest

from protocol.ids import CommitId
from storage.commits.commits import load_facts
from storage.commits.pending import load_rejected
from storage.commits.void_marks import load_void_ids
from tests.histories.plots import tell
from tests.histories.real_commits import Founded, found, make_commits
from tests.histories.tales import BRANCHES, FOUNDING
from tests.support.ids import as_commit_id
from tests.support.reference_histories import ROOT
from tests.support.windows import confirm_window, open_copy

COUNT: Final = 30
FAULTY: Final = (305, 380, 468, 1224, 1304, 1313)
"""Seeds of histories in which something stands on a post that is rejected."""
VIEWS: Final = 12


@pytest.fixture(scope="module")
def founded(tmp_path_factory: pytest.TempPathFactory) -> Founded:
    return found(tmp_path_factory.mktemp("founded") / "founded")


@pytest.mark.slow
def test_what_a_window_confirms_is_accepted_by_a_full_replica(founded: Founded, tmp_path: Path) -> None:
    confirmed = listed = waiting = rejected = by_word = 0
    for seed in (*FAULTY, *range(COUNT)):
        tale, rng = tell(seed), Random(seed)
        commits = make_commits(founded, tale)
        steps = tale.steps[len(FOUNDING) :]
        everything = [commits.items[step.number] for step in steps]
        with open_copy(founded, tmp_path / "full", everything) as full:
            ids = {as_commit_id(commits.ids[step.number]): step for step in steps}
            with full.database.read() as connection:
                accepted = load_facts(connection, ids.keys())
                fallen = load_rejected(connection, sorted(ids))
                void: dict[str, set[CommitId]] = {
                    name: set(load_void_ids(connection, one.num))
                    for name in BRANCHES
                    for one in full.branches.values()
                    if one.name == name
                }
        of_root = [commits.items[step.number] for step in steps if step.branch == ROOT]
        with open_copy(founded, tmp_path / "partial", of_root) as partial:
            for _ in range(VIEWS):
                name, share = rng.choice(BRANCHES), rng.choice((0.3, 0.7, 1.0))
                # Who hides a fault shows what stands on it.
                hidden = {one for one in fallen if rng.random() < 0.5}
                sent = [
                    step
                    for step in steps
                    if step.branch == name
                    and rng.random() < share
                    and as_commit_id(commits.ids[step.number]) not in hidden
                ]
                items = [commits.items[step.number] for step in sent]
                rng.shuffle(items)
                standing = confirm_window(partial, items, name, tale.malicious)
                assert set(standing.confirmed) <= accepted.keys(), (
                    seed,
                    "nobody sees what a full replica rejects",
                )
                assert not void[name].intersection(standing.listed), (seed, "nor what is void there")
                assert set(standing.rejected) <= fallen, (
                    seed,
                    "what is rejected here is rejected everywhere",
                )
                ranks = [(accepted[one].rank, one) for one in standing.listed]
                assert ranks == sorted(ranks), (seed, "and it stands in their order")
                assert len(standing.confirmed) + len(standing.rejected) <= len(items)
                confirmed += len(standing.confirmed)
                listed += len(standing.listed)
                waiting += len(standing.waiting)
                rejected += len(standing.rejected)
        with open_copy(founded, tmp_path / "named", []) as newcomer:
            for name in BRANCHES:
                sent = [step for step in steps if step.branch == name and rng.random() < 0.8]
                heads = [
                    raw
                    for step in sent
                    if (raw := as_commit_id(commits.ids[step.number])) in accepted and raw not in void[name]
                ]
                items = [commits.items[step.number] for step in sent]
                standing = confirm_window(
                    newcomer, items, name, tale.malicious, rng.sample(heads, min(1, len(heads)))
                )
                assert set(standing.confirmed) <= accepted.keys(), (seed, "an honest link names nothing else")
                assert set(standing.rejected) <= fallen, seed
                by_word += len(standing.by_word)
    assert min(confirmed, listed, waiting, rejected, by_word) > COUNT // 4
