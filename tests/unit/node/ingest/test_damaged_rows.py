"""A stored commit whose row or blocks have changed gives a StorageError, whatever the change."""

from pathlib import Path

import pytest
from sqlalchemy import text

from node.ingest.replica import Replica
from storage.engine.errors import StorageError
from tests.support.builders import STORE_KEY, World

DAMAGE = {
    "no block is named": "UPDATE commits SET block_nums = x'' WHERE num = 1",
    "the body's block is not named": "UPDATE commits SET block_nums = CAST(substr(block_nums, 1, 8) AS BLOB) WHERE num = 1",
    "numbers are a text": "UPDATE commits SET block_nums = 'aaaaaaaabbbbbbbb' WHERE num = 1",
    "another block is named": (
        "UPDATE commits SET block_nums = CAST(substr(block_nums, 1, 8) || x'0900000000000000' AS BLOB) WHERE num = 1"
    ),
    "the body's block has changed": "UPDATE blocks SET encoded = CAST(encoded || x'00' AS BLOB) WHERE num = 2",
    "the body's block is empty": "UPDATE blocks SET encoded = x'' WHERE num = 2",
    "the commit's block has changed": "UPDATE blocks SET encoded = CAST(x'00' || encoded AS BLOB) WHERE num = 1",
}


@pytest.mark.parametrize("change", DAMAGE.values(), ids=DAMAGE)
def test_a_changed_row_of_a_root_branch_keeps_the_node_from_starting_with_a_reason(
    tmp_path: Path, change: str
) -> None:
    world = World(tmp_path)
    with world.replica.database.write() as connection:
        assert connection.execute(text(change)).rowcount == 1
    world.close()
    with pytest.raises(StorageError):
        Replica(tmp_path, STORE_KEY)
