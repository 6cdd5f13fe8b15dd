"""Tables of documents. `schema` has the conventions of all tables.

They hold what commits come to, and can be made anew from these. `storage.commits.document_rows` keeps those of values, whose
items and keys stand here in the clear, as names of branches and files do; values stand in the commits' bodies alone.
`storage.commits.kept_texts` keeps texts, sealed. Erasing a body leaves no copy of it.
"""

from typing import Final

from sqlalchemy import BigInteger, Boolean, Column, Index, Integer, String, Table, UniqueConstraint

from storage.schema.columns import NUM, Bytes, metadata

documents = Table(
    "documents",
    metadata,
    Column("num", NUM, primary_key=True),
    Column("branch_num", NUM, nullable=False),
    Column("kind", String, nullable=False),
    Column("name", String, nullable=False),
    Column("depth", Integer, nullable=False),  # branches that this one continues, one by another
    Column("origins", Bytes(), nullable=False),  # their numbers, 8 bytes each
    # Whether its rows are to be made anew before they are read: then no change is written to them.
    Column("is_stale", Boolean, nullable=False),
    Column("has_snapshots", Boolean, nullable=False),
    # The number of the last commit when its rows were made anew; what happens to one up to it asks for that again.
    Column("made_upto", BigInteger, nullable=False),
    Column("entry_count", BigInteger, nullable=False),  # items or keys that are there
    Column("changed_num", BigInteger, nullable=False),  # of the sequence of `commits.num`
    UniqueConstraint("branch_num", "kind", "name", name="documents_in_branch"),
    Index("documents_forks", "kind", "name", "depth"),
    Index("documents_changes", "branch_num", "is_stale", "changed_num", "num"),
)
"""Documents that anything was said of. A branch's own documents include what it continues."""

document_operations = Table(
    "document_operations",
    metadata,
    # In the order of arrival: a row at a random place costs several times as much.
    Column("doc_num", NUM, primary_key=True),
    Column("source_num", NUM, primary_key=True),  # of the commit whose body says it
    Column("key", Bytes(), primary_key=True),  # UTF-8
    Column("name", Bytes(32), primary_key=True),  # the id that its commit had first
    Column(
        "place_num", NUM, nullable=False
    ),  # of the commit whose place it has: another where a snapshot says it
    Column("depth", Integer, nullable=False),  # of the branch of that commit
    Column("is_there", Boolean, nullable=False),
    Column("is_live", Boolean, nullable=False),  # its commit is not void
    Column("replaced", BigInteger, nullable=False),  # live operations about the key that name it
    Column("position", Bytes()),  # that it gives an item of a list (`verifier.json_contents.find_position`)
    Column("added", BigInteger),  # that it adds to a counter (`verifier.json_contents.find_increment`)
    # Packed names of the commits whose operations about the key it replaces. Null: none, or the rows were made anew.
    Column("replaces", Bytes()),
    sqlite_with_rowid=False,
)
"""Operations, also those that count no more. One *stands* if it is live and nothing replaces it."""

document_increments = Table(
    "document_increments",
    metadata,
    Column("doc_num", NUM, primary_key=True),
    Column("key", Bytes(), primary_key=True),
    Column("source_num", NUM, primary_key=True),
    Column("name", Bytes(32), primary_key=True),
    Column("place_num", NUM, nullable=False),
    Column("depth", Integer, nullable=False),
    Column("added", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)
"""Standing increments of counters, each with its operation."""

document_sources = Table(
    "document_sources",
    metadata,
    Column("doc_num", NUM, primary_key=True),
    Column("name", Bytes(32), primary_key=True),
    Column("source_num", NUM, primary_key=True),
    sqlite_with_rowid=False,
)
"""Commits whose bodies say operations of others by their names: carried ones, and snapshots."""

document_tips = Table(
    "document_tips",
    metadata,
    Column("doc_num", NUM, primary_key=True),
    Column("key", Bytes(), primary_key=True),
    Column("depth", Integer, primary_key=True),  # with the next three: the place in canonical order
    Column("passed", BigInteger, primary_key=True),
    Column("rank", BigInteger, primary_key=True),
    Column("commit_id", Bytes(32), primary_key=True),
    Column("source_num", NUM, primary_key=True),
    Column("name", Bytes(32), nullable=False),
    Column("is_there", Boolean, nullable=False),
    Column("position", Bytes()),
    Column("added_count", BigInteger),  # of a counter's row, with the next: how many increments stand
    Column("added", String),  # their sum in digits: no column of numbers holds each
    sqlite_with_rowid=False,
)
"""Operations that stand. Increments have one row for all of a counter (`storage.commits.document_counters`)."""

document_unmet = Table(
    "document_unmet",
    metadata,
    Column("doc_num", NUM, primary_key=True),
    Column("key", Bytes(), primary_key=True),
    Column("name", Bytes(32), primary_key=True),
    Column("replaced", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)
"""Counts of what replaces operations that are not here: copies that may still be carried here, and lies."""

document_positions = Table(
    "document_positions",
    metadata,
    Column("doc_num", NUM, primary_key=True),
    Column("key", Bytes(), primary_key=True),
    Column("position", Bytes(), nullable=False),
    Index("document_positions_order", "doc_num", "position"),
    sqlite_with_rowid=False,
)
"""Items of the lists of JSON documents: the key of each, and the position that shows."""

OF_DOCUMENTS: Final = (
    document_operations,
    document_increments,
    document_sources,
    document_tips,
    document_unmet,
    document_positions,
)
"""Tables of what documents come to, by `doc_num`."""

document_indexes = Table(
    "document_indexes",
    metadata,
    Column("num", NUM, primary_key=True),
    Column("branch_num", NUM, nullable=False),
    Column("prefix", String, nullable=False),  # names that begin so are in it
    Column("fields", String, nullable=False),  # as queries name an order
    # The last change of documents that it has: the change's number, and that of the document. Level up to there.
    Column("upto", BigInteger, nullable=False),
    Column("upto_num", BigInteger, nullable=False),
    UniqueConstraint("branch_num", "prefix", "fields", name="document_indexes_of_branch"),
)
"""Indexes of JSON documents that apps have declared here."""

document_index_entries = Table(
    "document_index_entries",
    metadata,
    Column("index_num", NUM, primary_key=True),
    Column("name", String, primary_key=True),
    Column("place", Bytes(), nullable=False),  # keys of its fields in their order, and its name
    Index("document_index_entries_places", "index_num", "place"),
    sqlite_with_rowid=False,
)
"""Where documents stand in an index. Values of fields are in the clear here, cut short."""

texts = Table(
    "texts",
    metadata,
    Column("branch_num", NUM, primary_key=True),
    # Grows each time that something counts no more or again: what was read of the text before is void.
    Column("token", BigInteger, nullable=False),
    Column("sources", Bytes(), nullable=False),  # packed numbers of the branches that it is made of
    Column("upto", BigInteger, nullable=False),  # of `commits.num`: the branch's commits up to it are in it
    Column("summary", Bytes()),  # what `node.content.text_keeping` makes of it; sealed. Null: nothing is kept
)
"""Texts of branches that were read here."""

text_blocks = Table(
    "text_blocks",
    metadata,
    Column("num", NUM, primary_key=True),
    Column("branch_num", NUM, nullable=False),
    Column("client", BigInteger, nullable=False),  # a Yjs client id
    Column("clock", BigInteger, nullable=False),  # the first clock that it has
    Column("content", Bytes(), nullable=False),  # sealed
    Index("text_blocks_branch", "branch_num", "client", "clock"),
)
"""Words of client ids in a text, in stretches of their clocks."""
