"""Content of files: packs on the disk, and which blocks are still needed.

Blocks of commits themselves are rows (`storage.commits.blocks`). Start with `packs`.
"""
