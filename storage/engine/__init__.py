"""Opening a store and changing it safely: SQLite or PostgreSQL, one writer, transactions, durability, encryption of columns.

Knows no commit and no repo: what the rows mean is said in `storage.repos` and `storage.commits`. Start with `database`.
"""
