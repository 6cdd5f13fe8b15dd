"""Checking a store, and repairing what follows from commits or from rows that can be read.

Damage that only a peer can heal is written down (`storage.commits.damaged`) and asked for by `node.sync`. Start with
`check_integrity`.

Each check and each repair costs O(rows of the tables that it is about); those of blocks cost O(bytes).
"""
