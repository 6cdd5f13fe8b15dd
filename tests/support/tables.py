"""Whether what a node holds in memory of its repos and branches is what its store has."""

from dataclasses import fields

from node.ingest.replica import Replica
from node.ingest.tables import load_tables


def assert_tables_are_stored(replica: Replica) -> None:
    """The tables, with counts of this moment, are what a first reading gives, in the same order."""
    with replica.database.read() as connection:
        stored = load_tables(connection)
    here = replica.read_tables()
    for field in fields(stored):
        ours, theirs = getattr(here, field.name), getattr(stored, field.name)
        assert ours == theirs, field.name
        if field.name in ("repos", "epochs", "branches", "topics"):
            assert list(ours) == list(theirs), f"{field.name} in another order"
