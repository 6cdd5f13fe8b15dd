"""Tests when a history counts as healed."""

from dataclasses import replace
from pathlib import Path

from sqlalchemy import delete, insert

from protocol.crypto.keys import EpochKey
from protocol.ids import EpochId
from storage.repos.deletion import forget_claim
from storage.repos.epochs import add_epoch
from storage.schema.schema import pending
from tests.promise import healing
from tests.promise.people import Person
from tests.support.ids import as_commit_id


def test_what_waits_on_the_topic_of_a_key_that_is_tried_changes_nothing_that_is_known(tmp_path: Path) -> None:
    # It goes when the key's turn is over, and whoever forged it gives it again: for ever.
    person = Person(tmp_path, "ann", 1)
    person.create_repo()
    own = person.epoch()
    claim = replace(
        own, epoch_id=EpochId(as_commit_id(b"e" * 32)), key=EpochKey(b"k" * 32), writers_topic=None,
        writers_secret=None, claimed_by=person.user,
    )  # fmt: skip
    replica = person.replica
    before = healing._state_of(person)

    def wait_on(topic_num: int, name: bytes) -> None:
        row = dict.fromkeys(("branch_num", "id_key", "author_key", "size", "cause_count", "lacking"), 1)
        with replica.change() as change:
            of = {"topic_num": topic_num, "commit_id": name * 32, "reason": "causes"}
            change.connection.execute(insert(pending).values({**row, **of}))

    with replica.change() as change:
        num = add_epoch(replica.database, change.connection, claim)
        assert num is not None
        change.refresh()
    wait_on(replica.by_topic[claim.topic].num, b"f")
    during = healing._state_of(person)
    assert during != before
    assert healing._known([during]) == healing._known([before])
    with replica.change() as change:
        forget_claim(change.connection, num)
        change.refresh()
    assert healing._state_of(person) == before
    wait_on(replica.by_topic[own.topic].num, b"g")
    waits = healing._state_of(person)
    assert healing._known([waits]) != healing._known([before])
    with replica.change() as change:
        change.connection.execute(delete(pending))
    assert healing._state_of(person) == before
    replica.close()
