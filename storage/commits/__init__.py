"""Commits as rows: blocks, graph, heads, canonical order, edits, void commits, and what waits for its causes.

Nothing here judges: `verifier` does, before a commit comes here. Start with `commits`; positions are in `position_index`.
"""
