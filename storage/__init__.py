"""Store of a node: rows in SQLite or PostgreSQL (synchronous, by SQLAlchemy Core), packs, and exports.

An operation costs O(what it is given and what it returns), and O(log n) in its tables for each look-up by an index, unless
its docstring says more. n is the number of commits of the branch where nothing else is said.
"""
