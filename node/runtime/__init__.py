"""Basics for every other room: errors with their codes, logs, metrics, blocking work, the clock.

Knows no repo and no peer. Start with `errors`.
"""
