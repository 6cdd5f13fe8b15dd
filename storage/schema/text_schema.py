"""Tables of texts as they stand. `schema` explains the conventions of all tables; `storage.commits.kept_texts` uses them.

All of it is derived from commits, and can be made anew.
"""

from sqlalchemy import BigInteger, Column, Index, Table

from storage.schema.columns import NUM, Bytes, metadata

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
"""What client ids say in a text, in stretches of their clocks."""
