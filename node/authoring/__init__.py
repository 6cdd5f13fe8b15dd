"""From what a user writes to a commit, its blocks and its publication.

The result passes `node.ingest` as everybody's does. Start with `author`.
"""
