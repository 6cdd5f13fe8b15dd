"""Keys that an init or an opening gives, where there are more epochs than one commit can open."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from node.authoring import epoch_starts
from node.ingest.tables import Tables
from protocol.formats.body import Permission
from protocol.formats.epochs import EpochOpen, GivenEpoch
from tests.support.memberships import REPO
from tests.unit.verifier.test_epochs import History, epoch, key_of


@pytest.fixture
def history(monkeypatch: pytest.MonkeyPatch) -> History:
    """Ann and ben start epochs beside each other; one of ben's, of the largest id, opens all his others. Keys: 4 at most."""
    monkeypatch.setattr(epoch_starts, "EPOCH_KEY_COUNT_MAX", 4)
    monkeypatch.setattr(epoch_starts, "_OPENED_AT_LEAST", 2)
    made = History()
    made.grant("ann", "ben", Permission.ADMIN)
    base = made.count - 1
    made.start("ann", base)
    started = sorted((made.start("ben", base) for _ in range(7)), key=epoch)
    given = EpochOpen(tuple(GivenEpoch(epoch(one), key_of(one)) for one in started[:-1]))
    made.do("ben", given, *started, into=started[-1])
    return made


def _tables(history: History) -> Tables:
    numbers = [number for number in range(history.count) if history.epochs.find(epoch(number)) is not None]
    held = {epoch(one): SimpleNamespace(epoch_id=epoch(one), key=key_of(one)) for one in numbers}
    return cast(Tables, SimpleNamespace(held_epochs=lambda _: held))


def test_an_opening_gives_first_what_opens_the_rest(history: History) -> None:
    # A cut by ids left epochs closed, and every later write of every member was refused.
    heads, own = history.now.heads, epoch(2)
    repo, written_in = SimpleNamespace(num=1, repo_id=REPO), SimpleNamespace(epoch_id=own)
    body: Any = epoch_starts.make_open(history.membership, _tables(history), repo, written_in, heads)  # type: ignore[arg-type]  # the fields of Tables that it reads
    assert 0 < len(body.epochs) <= 4
    assert not history.epochs.find_unopened([own, *(one.epoch for one in body.epochs)], heads)


def test_an_init_gives_first_what_opens_the_rest(history: History) -> None:
    heads, own = history.now.heads, epoch(2)
    follows = {tip.started_epoch for tip in history.now.epoch_tips()}
    repo: Any = SimpleNamespace(num=1, repo_id=REPO)
    given = epoch_starts._choose_keys(history.membership, _tables(history), repo, heads, own, follows)
    assert len(given) == 4
    assert own in {one.epoch for one in given}
    assert not history.epochs.find_unopened([one.epoch for one in given], heads)
