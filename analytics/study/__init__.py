"""Replay studies: how many edits keep a timeline in order while commits arrive in any order.

`timelines` follows one branch in memory by each of three ways, edit by edit; `edit_streams` counts such edits at speed.
Research; no other room needs it. Start with `study`.
"""
