"""Branches as a user reads them: windows of a timeline, one commit with its past, why a commit is void.

The order itself is kept by `storage.commits.position_index`. Start with `timelines`.
"""
