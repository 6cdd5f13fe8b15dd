"""What a person or a page looks at: watching branches, doctor, debug bundle, use of the disk.

Changes nothing. Start with `doctor`.
"""
