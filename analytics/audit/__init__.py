"""Search for exports that contradict themselves, each other, or the ids of their blocks.

Start with `audit`.
"""
