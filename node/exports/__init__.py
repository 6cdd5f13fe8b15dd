"""Exports of the store: one at a time, by a process of its own, on request and on schedule.

The format is `storage.export`'s. Start with `exports`.
"""
