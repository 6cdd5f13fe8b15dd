"""Replay studies: how many edits keep a timeline in order while commits arrive in any order.

`edit_streams` counts them.
Research; no other room needs it. Start with `study`.
"""
