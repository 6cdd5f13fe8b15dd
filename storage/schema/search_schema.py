"""Tables of the search index. `schema` explains the conventions of all tables; `storage.commits.search_index` uses them.

No word stands here in the clear, only its keyed hash. The index is derived from commits, and can be made anew.
"""

from sqlalchemy import BigInteger, Column, Index, Integer, Table

from storage.schema.columns import NUM, Bytes, metadata

search_state = Table(
    "search_state",
    metadata,
    Column("num", NUM, primary_key=True),
    Column("hash_key", Bytes(), nullable=False),  # sealed
    Column("upto", BigInteger, nullable=False),  # number of the last commit that was looked at
    Column("rules", Integer, nullable=False),  # by which texts were made into words
)
"""One row while there is an index."""

search_parts = Table(
    "search_parts",
    metadata,
    Column("num", NUM, primary_key=True),  # negative: of a branch's text, see `search_texts`
    Column("branch_num", NUM, nullable=False),
    Column("base", BigInteger, nullable=False),  # what the part's numbers of commits are counted from
    Column("first", BigInteger, nullable=False),  # lowest number of a commit in it
    Column("last", BigInteger, nullable=False),  # highest
    Column("oldest", BigInteger, nullable=False),  # unix milliseconds: the lowest display time in it
    Column("newest", BigInteger, nullable=False),  # highest
    Column("size", BigInteger, nullable=False),  # numbers in the lists of all its words
    Index("search_parts_branch", "branch_num", "num"),
)
"""Parts of a branch, filled one after another: each has a key of its own, and is rewritten by itself."""

search_words = Table(
    "search_words",
    metadata,
    Column("part_num", NUM, primary_key=True),
    Column("word", BigInteger, primary_key=True),  # its keyed hash
    Column("places", Bytes(), nullable=False),  # of commits: 4 bytes each, from the part's base
    sqlite_with_rowid=False,  # rows of one part lie together, and are written and removed together
)

search_texts = Table(
    "search_texts",
    metadata,
    Column("branch_num", NUM, primary_key=True),
    Column(
        "due", BigInteger, nullable=False
    ),  # how often it was noted that it is to be read anew; 0: it is not
    Column(
        "sources", Bytes(), nullable=False
    ),  # numbers of the branches that it is made of; none before it was read with all of what they have in it
    Column("content", Bytes()),  # sealed; null: a search finds nothing in it
)
"""Texts of branches. What the index has of a text is the part with the branch's number, negative."""

search_queue = Table(
    "search_queue",
    metadata,
    Column("commit_num", NUM, primary_key=True),
)
"""Commits that were looked at, and whose bodies have come or gone since."""
