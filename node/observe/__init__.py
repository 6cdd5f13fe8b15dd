"""Views of a running node for pages and commands: standings of repos, use of the disk, metrics, sentences.

Changes nothing. Start with `watching`.
"""
