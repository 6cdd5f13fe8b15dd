"""Checking, diagnosing, repairing and backing up a stopped or running node.

What is done to rows is `storage.check`'s. Start with `fsck`, or with `doctor`, which changes nothing.
"""
