"""Builds an analysis on the one before it in the same folder: branches without news keep their order and their rows.

What is counted again is `analytics.engines`'. Start with `increment`, then `state`.
"""
