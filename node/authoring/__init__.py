"""From what a user writes to a commit, its blocks and its publication.

The result passes `node.ingest` as what others write does. Services write by `writing`. Start with `author`.
"""
