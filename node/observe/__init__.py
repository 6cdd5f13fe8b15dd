"""What a page or a command looks at in a running node: watching branches, use of the disk.

Changes nothing. Start with `watching`.
"""
