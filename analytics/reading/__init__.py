"""Exports as DataFrames: checked whole, fetched from where they lie, each commit once.

Writing exports is `storage.export`'s. Start with `export_reader`.
"""
