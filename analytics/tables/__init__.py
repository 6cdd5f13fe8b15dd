"""Statistics: from DataFrame to DataFrame, and the tables that are written.

Pictures and sentences are `analytics.report`'s. Start with `statistics`.
"""
